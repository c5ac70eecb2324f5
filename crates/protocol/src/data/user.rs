//! Input of a session: messages, attachments, system prompt, notifications and answers to questions.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Mode;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// The session was idle.
    Idle,
    /// Injected into the current run.
    Steering,
    /// Queued until the run before it had ended.
    Queued,
}

/// Mode of the client that sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentMode {
    Interactive,
    Plan,
    Autopilot,
    /// Shell input. The session itself has no such mode.
    Shell,
}

impl AgentMode {
    /// The corresponding mode of the session.
    pub fn of_session(self) -> Option<Mode> {
        match self {
            AgentMode::Interactive => Some(Mode::Interactive),
            AgentMode::Plan => Some(Mode::Plan),
            AgentMode::Autopilot => Some(Mode::Autopilot),
            AgentMode::Shell => None,
        }
    }
}

impl From<Mode> for AgentMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Interactive => AgentMode::Interactive,
            Mode::Plan => AgentMode::Plan,
            Mode::Autopilot => AgentMode::Autopilot,
        }
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    pub content: String,
    /// Text that the model is shown instead of `content`.
    pub transformed_content: Option<String>,
    pub message_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    pub source: Option<String>,
    pub delivery: Option<Delivery>,
    pub agent_mode: Option<AgentMode>,
    pub is_autopilot_continuation: Option<bool>,
    pub interaction_id: Option<String>,
    pub turn_id: Option<String>,
    pub parent_agent_task_id: Option<String>,
    /// `traceparent` of the caller, for the spans of this process. Not on the wire.
    #[serde(skip)]
    pub traceparent: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Attachment {
    File {
        path: String,
        display_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        line_range: Option<LineRange>,
        /// Facts that the model is told beside the path: `12 lines`.
        #[serde(skip)]
        facts: Option<String>,
    },
    Directory {
        path: String,
        display_name: String,
        #[serde(skip)]
        facts: Option<String>,
    },
    /// Text that is selected in an editor.
    Selection {
        file_path: String,
        display_name: String,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        selection: Option<Selection>,
    },
    GithubReference {
        number: u64,
        reference_type: String,
        state: String,
        title: String,
        url: String,
    },
    Blob {
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        mime_type: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        display_name: Option<String>,
    },
    /// Data of an extension, as JSON.
    ExtensionContext {
        extension_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        canvas_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        instance_id: Option<String>,
        title: String,
        #[serde(default)]
        payload: serde_json::Value,
        captured_at: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRange {
    pub start: u64,
    pub end: u64,
}

/// Range of a text, counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    pub start: Position,
    pub end: Position,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub line: u64,
    pub character: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemMessage {
    pub role: String,
    pub content: String,
}

/// A notification that Hangar itself adds to the conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SystemNotification {
    pub content: String,
    pub kind: NotificationKind,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum NotificationKind {
    AgentCompleted {
        agent_id: String,
        agent_type: String,
        status: String,
        display_name: Option<String>,
        description: Option<String>,
        prompt: Option<String>,
    },
    AgentIdle {
        agent_id: String,
        agent_type: String,
        display_name: Option<String>,
        description: Option<String>,
    },
    ShellCompleted {
        shell_id: String,
        exit_code: Option<i32>,
        description: Option<String>,
    },
    ShellDetachedCompleted {
        shell_id: String,
        description: Option<String>,
    },
    InstructionDiscovered {
        source_path: String,
        trigger_file: String,
        trigger_tool: String,
        description: Option<String>,
    },
    Unclassified {},
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInputRequested {
    pub request_id: String,
    pub question: String,
    pub choices: Option<Vec<String>>,
    pub allow_freeform: Option<bool>,
    pub tool_call_id: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInputCompleted {
    pub request_id: String,
    pub answer: Option<String>,
    pub was_freeform: Option<bool>,
}
