//! The protocol's shapes, those that are used here. Requests are read with tolerance: what is unknown is left out.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// The version of the protocol that is spoken.
pub(crate) const PROTOCOL_VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewSession {
    pub(crate) cwd: PathBuf,
    #[serde(default)]
    pub(crate) mcp_servers: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoadSession {
    pub(crate) session_id: String,
    pub(crate) cwd: PathBuf,
    #[serde(default)]
    pub(crate) mcp_servers: Vec<Value>,
}

/// An MCP server that a client brings, beside its name. Which kind it is says `type`, where it is there; all agents have
/// to know the kind that has none.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct McpServer {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) command: Option<String>,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: Vec<Pair>,
    pub(crate) url: Option<String>,
    #[serde(default)]
    pub(crate) headers: Vec<Pair>,
}

/// A variable or a header.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) value: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct ListSessions {
    pub(crate) cwd: Option<String>,
    pub(crate) cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionParams {
    pub(crate) session_id: String,
}

#[derive(Deserialize)]
pub(crate) struct PromptParams {
    #[serde(default)]
    pub(crate) prompt: Vec<ContentBlock>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetMode {
    pub(crate) mode_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetModel {
    pub(crate) model_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetConfigOption {
    pub(crate) config_id: String,
    pub(crate) value: Value,
}

/// A piece of what is said, either way.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum ContentBlock {
    Text {
        text: String,
    },
    Image {
        data: String,
        mime_type: String,
    },
    /// A text or a file that comes along with the prompt.
    Resource {
        resource: Resource,
    },
    ResourceLink {
        uri: String,
    },
    #[serde(other)]
    Other,
}

impl ContentBlock {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resource {
    pub(crate) uri: String,
    pub(crate) mime_type: Option<String>,
    pub(crate) text: Option<String>,
    /// Base64.
    pub(crate) blob: Option<String>,
}

/// News of a session.
#[expect(clippy::enum_variant_names, reason = "the names are the protocol's")]
#[derive(Debug, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Update {
    UserMessageChunk { content: ContentBlock },
    AgentMessageChunk { content: ContentBlock },
    AgentThoughtChunk { content: ContentBlock },
    ToolCall(ToolCall),
    ToolCallUpdate(ToolCallUpdate),
    AvailableCommandsUpdate { available_commands: Vec<AvailableCommand> },
    CurrentModeUpdate { current_mode_id: &'static str },
    ConfigOptionUpdate { config_options: Value },
    SessionInfoUpdate { title: String, updated_at: String },
    UsageUpdate { used: u64, size: u64 },
}

impl Update {
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self::AgentMessageChunk { content: ContentBlock::text(text) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolKind {
    Read,
    Edit,
    Execute,
    Fetch,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolCallStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCall {
    pub(crate) tool_call_id: String,
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    pub(crate) status: ToolCallStatus,
    pub(crate) raw_input: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) locations: Vec<FileLocation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) content: Vec<ToolCallContent>,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCallUpdate {
    pub(crate) tool_call_id: String,
    pub(crate) status: ToolCallStatus,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) raw_output: Option<Value>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct FileLocation {
    pub(crate) path: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum ToolCallContent {
    Content { content: ContentBlock },
    Diff { path: String, old_text: String, new_text: String },
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct AvailableCommand {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input: Option<CommandInput>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CommandInput {
    pub(crate) hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopReason {
    EndTurn,
    Cancelled,
}

/// Usage of a session since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Usage {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) total_tokens: u64,
    pub(crate) cached_read_tokens: u64,
    pub(crate) cached_write_tokens: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptAnswer {
    pub(crate) stop_reason: StopReason,
    pub(crate) usage: Usage,
}

/// Decision of the client about a permission.
#[derive(Debug, Deserialize)]
pub(crate) struct PermissionAnswer {
    pub(crate) outcome: PermissionDecision,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum PermissionDecision {
    Selected {
        option_id: String,
    },
    #[serde(other)]
    Cancelled,
}
