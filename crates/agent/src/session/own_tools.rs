//! Tools that act on the session itself, so that the loop runs them rather than a [`Tool`](crate::tool::Tool).

use hangar_protocol::data::Mode;
use serde_json::json;

use crate::agents::call::AgentTool;
use crate::agents::config::AgentConfig;
use crate::tool::{ToolSchema, ToolSpec};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnTool {
    TaskComplete,
    AskUser,
    ExitPlanMode,
    ToolSearch,
    Agents(AgentTool),
}

/// The tool that finds tools.
pub(super) const TOOL_SEARCH: &str = "tool_search_tool";

/// Conditions for showing the session's own tools.
#[derive(Clone, Copy)]
pub(super) struct ToolConditions<'a> {
    pub(super) mode: Mode,
    pub(super) may_ask: bool,
    pub(super) questions_answered: bool,
    pub(super) plans_reviewed: bool,
    /// Whether there are tools that are not shown, or were.
    pub(super) defers_tools: bool,
    /// Agents that the session may start, if any.
    pub(super) agent_config: Option<&'a AgentConfig>,
}

impl OwnTool {
    fn all() -> impl Iterator<Item = Self> {
        let agents = AgentTool::ALL.into_iter().map(OwnTool::Agents);
        let others = [OwnTool::TaskComplete, OwnTool::AskUser, OwnTool::ExitPlanMode, OwnTool::ToolSearch];
        others.into_iter().chain(agents)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::all().find(|tool| tool.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            OwnTool::TaskComplete => "task_complete",
            OwnTool::AskUser => "ask_user",
            OwnTool::ExitPlanMode => "exit_plan_mode",
            OwnTool::ToolSearch => TOOL_SEARCH,
            OwnTool::Agents(tool) => tool.name(),
        }
    }

    /// Whether the tool is shown: `task_complete` in autopilot, `ask_user` if somebody can answer, agent tools if there are
    /// agents.
    pub(super) fn is_shown(self, now: ToolConditions<'_>) -> bool {
        match self {
            OwnTool::TaskComplete => match now.mode {
                Mode::Autopilot => true,
                // A plan that somebody reviews is submitted for approval instead.
                Mode::Plan => !now.plans_reviewed,
                Mode::Interactive => false,
            },
            OwnTool::AskUser => now.may_ask && (now.questions_answered || now.mode == Mode::Autopilot),
            OwnTool::ExitPlanMode => now.mode == Mode::Plan && now.plans_reviewed,
            OwnTool::ToolSearch => now.defers_tools,
            OwnTool::Agents(_) => {
                now.agent_config.is_some_and(|agent_config| agent_config.callable().next().is_some())
            }
        }
    }

    /// Specification of the tool. Agent tools have one if there are agents.
    fn spec(self, now: ToolConditions<'_>) -> Option<ToolSpec> {
        Some(match self {
            OwnTool::Agents(tool) => tool.spec(now.agent_config?),
            OwnTool::TaskComplete => ToolSpec {
                name: self.name().to_owned(),
                title: Some("Completing task".to_owned()),
                description: "Declare the task finished. Call it once, as the last thing you do, when everything that \
                              was asked for is done and you have checked that it works. Do not call it with errors \
                              unresolved, steps left over, or results unverified: keep working instead."
                    .to_owned(),
                input: ToolSchema::function(json!({
                    "type": "object",
                    "properties": {
                        "summary": {
                            "type": "string",
                            "description": "What was done and how it was verified, in a few sentences."
                        }
                    },
                    "required": ["summary"]
                })),
            },
            OwnTool::ToolSearch => ToolSpec {
                name: self.name().to_owned(),
                title: Some("Searching tools".to_owned()),
                description: "Find tools of MCP servers that are not in your list yet. What it finds can be called from \
                              your next answer on. Your messages name the tools that there are."
                    .to_owned(),
                input: ToolSchema::function(json!({
                    "type": "object",
                    "properties": {
                        "query": {
                            "type": "string",
                            "description": "Words about what you want to do, or `select:` and names: \
                                            \"select:a-read,a-write\"."
                        },
                        "limit": { "type": "number", "description": "How many to find; 5 unless you say so." }
                    },
                    "required": ["query"]
                })),
            },
            OwnTool::AskUser => ToolSpec {
                name: self.name().to_owned(),
                title: Some("Asking user".to_owned()),
                description: "Ask the user one question and wait for the answer. Use it when a decision is theirs and \
                              cannot be read from the task or the repository."
                    .to_owned(),
                input: ToolSchema::function(json!({
                    "type": "object",
                    "properties": {
                        "question": { "type": "string", "description": "One question, with what you need to know." },
                        "choices": {
                            "type": "array",
                            "items": { "type": "string" },
                            "description": "Answers to choose from, the one you would recommend first."
                        }
                    },
                    "required": ["question"]
                })),
            },
            OwnTool::ExitPlanMode => ToolSpec {
                name: self.name().to_owned(),
                title: Some("Handing in the plan".to_owned()),
                description: "Hand the plan in for approval. Call it when plan.md in the session folder says all that \
                              is needed to carry the plan out. The user sees the plan and your summary, and decides \
                              whether and how the work begins."
                    .to_owned(),
                input: ToolSchema::function(json!({
                    "type": "object",
                    "properties": {
                        "summary": {
                            "type": "string",
                            "description": "The plan in a few lines."
                        },
                        "actions": {
                            "type": "array",
                            "items": { "type": "string", "enum": ["exit_only", "interactive", "autopilot"] },
                            "description": "The ways to go on that make sense: exit_only stops here, interactive \
                                            begins with the user at hand, autopilot works on its own."
                        },
                        "recommendedAction": {
                            "type": "string",
                            "enum": ["exit_only", "interactive", "autopilot"],
                            "description": "The one that you would choose."
                        }
                    },
                    "required": ["summary"]
                })),
            },
        })
    }
}

/// Specifications of the tools that are shown now, and of those that are kept because they once were.
pub(super) fn specs(
    now: ToolConditions<'_>,
    is_kept: impl Fn(&str) -> bool,
) -> impl Iterator<Item = ToolSpec> {
    let shown = OwnTool::all().filter(move |tool| tool.is_shown(now) || is_kept(tool.name()));
    shown.filter_map(move |tool| tool.spec(now))
}
