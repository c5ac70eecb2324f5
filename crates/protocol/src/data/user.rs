//! What enters a session from outside the model.

use serde::{Deserialize, Serialize};

use super::Mode;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// The session was idle.
    Idle,
    /// Injected into a run that was under way.
    Steering,
    /// Waited for the run before it.
    Queued,
}

/// What the display was in from which a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentMode {
    Interactive,
    Plan,
    Autopilot,
    /// A line for commands. The session itself has no such mode.
    Shell,
}

impl AgentMode {
    /// The mode of the session that it stands for.
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

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    pub content: String,
    /// What the model is shown instead of `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformed_content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_mode: Option<AgentMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_autopilot_continuation: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_agent_task_id: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Attachment {
    File {
        path: String,
        display_name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line_range: Option<LineRange>,
        /// What the model is told of it besides the path: `12 lines`.
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
        #[serde(default, skip_serializing_if = "Option::is_none")]
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
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        mime_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_name: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRange {
    pub start: u64,
    pub end: u64,
}

/// From one place in a text to another, counted from zero.
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

/// A message that Hangar itself puts before the model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SystemNotification {
    pub content: String,
    pub kind: NotificationKind,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum NotificationKind {
    AgentCompleted {
        agent_id: String,
        agent_type: String,
        status: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_name: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
    },
    AgentIdle {
        agent_id: String,
        agent_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_name: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    ShellCompleted {
        shell_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    ShellDetachedCompleted {
        shell_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    InstructionDiscovered {
        source_path: String,
        trigger_file: String,
        trigger_tool: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    Unclassified {},
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInputRequested {
    pub request_id: String,
    pub question: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_freeform: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInputCompleted {
    pub request_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was_freeform: Option<bool>,
}
