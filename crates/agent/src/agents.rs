//! Agents that a session may hand work to: what each is for, what it may use, and how it is told to behave.

pub mod builtin;
pub mod call;
pub mod crew;
pub mod fleet;
pub mod outfit;
pub mod roll;
mod tool_names;

use serde_json::{Map, Value};

/// A kind of agent, from wherever it was described.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// What it is among those of its kind: for one from a file, the file's name.
    pub id: String,
    /// What it is called by.
    pub name: String,
    /// What people are shown.
    pub display_name: String,
    pub description: String,
    /// What stands for the session's own role in the system prompt.
    pub prompt: String,
    pub tools: AgentTools,
    /// Models in order of preference. Empty: the model of whoever calls it.
    pub models: Vec<String>,
    pub effort: Option<String>,
    /// MCP servers of its own, by name, as they were configured.
    pub mcp_servers: Map<String, Value>,
    /// Skills that it is given from the start.
    pub skills: Vec<String>,
    /// What those skills say, once they have been read.
    pub briefing: String,
    /// Whether the model may call it. A person always may, unless `user_invocable` says otherwise.
    pub model_invocable: bool,
    pub user_invocable: bool,
    pub source: AgentSource,
}

/// The tools of an agent, by the names of tools and their aliases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentTools {
    /// All that whoever calls it has.
    Inherited,
    Only(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentSource {
    Builtin,
    /// A file of the project, of the user or of a plugin.
    File(std::path::PathBuf),
    /// Brought by a client.
    Client,
}

impl AgentDefinition {
    /// The role and what the agent knows from the start.
    pub fn role(&self) -> String {
        match (self.prompt.is_empty(), self.briefing.is_empty()) {
            (_, true) => self.prompt.clone(),
            (true, false) => self.briefing.clone(),
            (false, false) => format!("{}\n\n{}", self.prompt, self.briefing),
        }
    }
}
