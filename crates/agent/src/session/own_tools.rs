//! Tools that act on the session itself, so that the loop runs them rather than a [`Tool`](crate::tool::Tool).

use hangar_protocol::data::Mode;
use serde_json::json;

use crate::tool::{ToolSchema, ToolSpec};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnTool {
    TaskComplete,
    AskUser,
}

impl OwnTool {
    const ALL: [OwnTool; 2] = [OwnTool::TaskComplete, OwnTool::AskUser];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            OwnTool::TaskComplete => "task_complete",
            OwnTool::AskUser => "ask_user",
        }
    }

    /// Whether the model is offered the tool: finishing is explicit where nobody watches, asking needs someone to ask.
    pub(super) fn offered(self, mode: Mode, may_ask: bool, questions_answered: bool) -> bool {
        match self {
            OwnTool::TaskComplete => matches!(mode, Mode::Autopilot | Mode::Plan),
            OwnTool::AskUser => may_ask && (questions_answered || mode == Mode::Autopilot),
        }
    }

    pub(super) fn spec(self) -> ToolSpec {
        match self {
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
        }
    }
}

pub(super) fn specs(mode: Mode, may_ask: bool, questions_answered: bool) -> impl Iterator<Item = ToolSpec> {
    OwnTool::ALL
        .into_iter()
        .filter(move |tool| tool.offered(mode, may_ask, questions_answered))
        .map(OwnTool::spec)
}
