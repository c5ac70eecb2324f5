//! Tools that act on the session itself, so that the loop runs them rather than a [`Tool`](crate::tool::Tool).

use hangar_protocol::data::Mode;
use serde_json::json;

use crate::agents::call::AgentTool;
use crate::agents::crew::Crew;
use crate::tool::{ToolSchema, ToolSpec};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnTool {
    TaskComplete,
    AskUser,
    Agents(AgentTool),
}

/// What decides which of the tools are shown.
#[derive(Clone, Copy)]
pub(super) struct Circumstances<'a> {
    pub(super) mode: Mode,
    pub(super) may_ask: bool,
    pub(super) questions_answered: bool,
    /// Who may be given work, if the session may do that.
    pub(super) crew: Option<&'a Crew>,
}

impl OwnTool {
    fn all() -> impl Iterator<Item = Self> {
        let agents = AgentTool::ALL.into_iter().map(OwnTool::Agents);
        [OwnTool::TaskComplete, OwnTool::AskUser].into_iter().chain(agents)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::all().find(|tool| tool.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            OwnTool::TaskComplete => "task_complete",
            OwnTool::AskUser => "ask_user",
            OwnTool::Agents(tool) => tool.name(),
        }
    }

    /// The tool as the model is offered it, where it is: finishing is explicit where nobody watches, asking needs
    /// someone to ask, and work needs someone to be given to.
    fn spec(self, now: Circumstances<'_>) -> Option<ToolSpec> {
        let offered = match self {
            OwnTool::TaskComplete => matches!(now.mode, Mode::Autopilot | Mode::Plan),
            OwnTool::AskUser => now.may_ask && (now.questions_answered || now.mode == Mode::Autopilot),
            OwnTool::Agents(_) => now.crew.is_some_and(|crew| crew.callable().next().is_some()),
        };
        if !offered {
            return None;
        }
        Some(match self {
            OwnTool::Agents(tool) => tool.spec(now.crew?),
            OwnTool::TaskComplete => ToolSpec {
                name: self.name().to_owned(),
                title: Some("Completing task".to_owned()),
                description: "Declare the task finished. Call it once, as the last thing you do, when everything that \
                              was asked for is done and you have checked that it works. Do not call it with errors \
                              unresolved, steps left over, or results unverified: keep working instead."
                    .to_owned(),
                input: ToolSchema::Function(json!({
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
            OwnTool::AskUser => ToolSpec {
                name: self.name().to_owned(),
                title: Some("Asking user".to_owned()),
                description: "Ask the user one question and wait for the answer. Use it when a decision is theirs and \
                              cannot be read from the task or the repository."
                    .to_owned(),
                input: ToolSchema::Function(json!({
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
        })
    }
}

pub(super) fn specs(now: Circumstances<'_>) -> impl Iterator<Item = ToolSpec> {
    OwnTool::all().filter_map(move |tool| tool.spec(now))
}
