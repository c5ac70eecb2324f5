//! Switches that several agents have, each under a name of its own.

use serde::{Deserialize, Serialize};

use crate::runtime::AgentCard;

/// One of the switches, by the name that it has in configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentOption {
    Bare,
    Stream,
    BuiltinMcp,
    AgentsMd,
    Persona,
    Experimental,
}

impl AgentOption {
    pub const ALL: [Self; 6] =
        [Self::Bare, Self::Stream, Self::BuiltinMcp, Self::AgentsMd, Self::Persona, Self::Experimental];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Stream => "stream",
            Self::BuiltinMcp => "builtin_mcp",
            Self::AgentsMd => "agents_md",
            Self::Persona => "persona",
            Self::Experimental => "experimental",
        }
    }
}

/// Options that a session sets. `None` keeps the agent's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentOptions {
    /// Whether the agent's own hooks, plugins, memories and instruction files are disabled.
    pub bare: Option<bool>,
    /// Answers in pieces.
    pub stream: Option<bool>,
    /// MCP servers that come with the agent.
    pub builtin_mcp: Option<bool>,
    /// Instruction files of the workspace: `AGENTS.md` and its equivalents.
    pub agents_md: Option<bool>,
    /// The custom agent that works.
    pub persona: Option<String>,
    pub experimental: Option<bool>,
}

impl AgentOptions {
    pub fn is_bare(&self) -> bool {
        self.bare == Some(true)
    }

    /// Whether instruction files are ignored.
    pub fn without_agents_md(&self) -> bool {
        self.agents_md == Some(false)
    }

    /// Whether streaming is off.
    pub(crate) fn without_stream(&self) -> bool {
        self.stream == Some(false)
    }

    /// Whether an option needs support by the agent.
    fn asks_for(&self, option: AgentOption, card: &AgentCard) -> bool {
        match option {
            AgentOption::Bare => self.is_bare(),
            AgentOption::Stream => self.stream.is_some_and(|stream| stream != card.capabilities.streaming),
            // Agents without the switch come with no servers that could be switched off.
            AgentOption::BuiltinMcp => self.builtin_mcp == Some(true),
            AgentOption::AgentsMd => self.without_agents_md(),
            AgentOption::Persona => self.persona.is_some(),
            AgentOption::Experimental => self.experimental == Some(true),
        }
    }

    /// Options that are set and not supported by the agent, one sentence each.
    pub(crate) fn unmet(&self, card: &AgentCard) -> Vec<String> {
        let is_unmet = |option: &AgentOption| {
            self.asks_for(*option, card) && !card.capabilities.options.contains(option)
        };
        let sentence = |option: AgentOption| {
            format!("{} has no switch for `{}`; it is not used", card.label, option.as_str())
        };
        AgentOption::ALL.into_iter().filter(is_unmet).map(sentence).collect()
    }
}
