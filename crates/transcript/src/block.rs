//! The blocks of a transcript.

use std::sync::Arc;

use serde_json::Value;

use crate::stream_text::StreamText;

/// One piece of a transcript: a message, a thought, a call, a question or a notice.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Name that is unique within its lane and stays when the block changes.
    pub key: String,
    /// Id of the event that made the block.
    pub event_id: String,
    /// Time of its start, as the event has it.
    pub at: String,
    /// Whether a rewind took it back: still in the log, no longer in the conversation.
    pub rewound: bool,
    pub body: BlockBody,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BlockBody {
    User(UserBlock),
    Text(TextBlock),
    Reasoning(TextBlock),
    Tool(Box<ToolBlock>),
    Ask(Box<AskBlock>),
    Notice(NoticeBlock),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserBlock {
    pub text: String,
    /// `idle`, `steering` or `queued`.
    pub delivery: Option<String>,
    /// Names of the attachments.
    pub attachments: Vec<String>,
    /// Sender, if it is not the user.
    pub source: Option<String>,
}

/// Text or reasoning of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextBlock {
    pub text: StreamText,
    /// Whether more of it may come.
    pub open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolState {
    /// The model still writes the arguments.
    Writing,
    Queued,
    Running,
    Ok,
    Failed,
}

impl ToolState {
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Ok | Self::Failed)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolBlock {
    pub call: String,
    pub name: String,
    pub title: Option<String>,
    pub args: Value,
    /// The arguments while the model still writes them.
    pub draft: StreamText,
    pub state: ToolState,
    pub output: StreamText,
    pub progress: Option<String>,
    /// Unified diff of the call's changes.
    pub diff: Option<String>,
    pub error: Option<String>,
    pub exit_code: Option<i64>,
    pub pictures: Vec<Picture>,
    pub ended_at: Option<String>,
    /// Whether a question about it is pending.
    pub asking: bool,
    pub verdict: Option<PermissionVerdict>,
    pub agent: Option<Arc<AgentInfo>>,
}

/// Raster image in the result of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    pub mime_type: String,
    /// Size of the image, not of its base64.
    pub bytes: usize,
    pub base64: Arc<str>,
}

/// Answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionVerdict {
    pub outcome: VerdictOutcome,
    pub detail: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerdictOutcome {
    Approved,
    Denied,
    Answered,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentState {
    Running,
    Ok,
    Failed,
}

/// A sub-agent. Its blocks are in a lane of its own, by `id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInfo {
    pub id: String,
    pub name: String,
    pub description: String,
    /// Whether it runs in the background.
    pub background: bool,
    pub model: Option<String>,
    pub state: AgentState,
    pub error: Option<String>,
    pub tools: Option<i64>,
    pub tokens: Option<i64>,
    pub ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskKind {
    Permission,
    Question,
    Elicitation,
    Plan,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AskBlock {
    pub request: String,
    pub ask: AskKind,
    /// The call that it is about.
    pub call: Option<String>,
    /// The call that waits for the answer: its own, or the one that was running when it was asked.
    pub holds: Option<String>,
    /// Data of the event that asked.
    pub data: Value,
    pub outcome: Option<VerdictOutcome>,
    pub detail: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    Info,
    Good,
    Warning,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeBlock {
    pub level: NoticeLevel,
    pub text: String,
    pub detail: Option<String>,
}

impl Block {
    pub fn as_tool(&self) -> Option<&ToolBlock> {
        match &self.body {
            BlockBody::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    pub(crate) fn as_tool_mut(&mut self) -> Option<&mut ToolBlock> {
        match &mut self.body {
            BlockBody::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    pub(crate) fn as_text_mut(&mut self) -> Option<&mut TextBlock> {
        match &mut self.body {
            BlockBody::Text(text) | BlockBody::Reasoning(text) => Some(text),
            _ => None,
        }
    }
}
