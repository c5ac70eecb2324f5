//! Output of the model: messages, reasoning, their deltas, turns and usage.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStart {
    pub turn_id: String,
    pub interaction_id: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    pub turn_id: String,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRetry {
    pub turn_id: String,
    pub model: Option<String>,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolType {
    /// Called with a JSON object.
    Function,
    /// Called with free text.
    Custom,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequest {
    pub tool_call_id: String,
    pub name: String,
    /// An object for a function, a string for a custom tool or for arguments that were not JSON.
    #[serde(default)]
    pub arguments: serde_json::Value,
    #[serde(rename = "type")]
    pub kind: Option<ToolType>,
    pub intention_summary: Option<String>,
    pub tool_title: Option<String>,
    pub mcp_server_name: Option<String>,
    pub mcp_tool_name: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    pub message_id: String,
    pub originating_message_id: Option<String>,
    pub model: Option<String>,
    pub content: String,
    #[serde(default)]
    pub tool_requests: Vec<ToolRequest>,
    pub interaction_id: Option<String>,
    pub turn_id: Option<String>,
    pub reasoning_text: Option<String>,
    /// A provider's own token for its reasoning (a signature), to be sent back unchanged.
    pub reasoning_opaque: Option<String>,
    /// Reasoning that only the provider can read, to be sent back unchanged.
    pub encrypted_content: Option<String>,
    pub output_tokens: Option<u64>,
    pub api_call_id: Option<String>,
    /// Id of the request in GitHub's logs.
    pub request_id: Option<String>,
    /// Id of the request in the logs of Copilot's service.
    pub service_request_id: Option<String>,
    /// Part of the answer that the text is, where the model says so: `commentary` or `final_answer`.
    pub phase: Option<String>,
    pub parent_tool_call_id: Option<String>,
}

/// An answer that ended before the model had finished it: it was aborted, the connection failed, or the process was killed.
/// The reference has no such event; readers that do not know it skip it.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnswerCut {
    /// Id of the message in its deltas.
    pub message_id: String,
    pub content: String,
    pub reasoning_text: Option<String>,
    pub interaction_id: Option<String>,
    pub turn_id: Option<String>,
    pub parent_tool_call_id: Option<String>,
    /// Whether the process was killed, so that no other event tells of the interruption.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
}

/// What the model is about to do, in its own words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AssistantIntent {
    pub intent: String,
}

/// Bytes of the current answer that have arrived.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamingDelta {
    pub total_response_size_bytes: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageStart {
    pub message_id: String,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageDelta {
    pub message_id: String,
    pub delta_content: String,
    pub parent_tool_call_id: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantReasoning {
    pub reasoning_id: String,
    pub content: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningDelta {
    pub reasoning_id: String,
    pub delta_content: String,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallDelta {
    pub tool_call_id: String,
    pub tool_name: Option<String>,
    pub tool_type: Option<ToolType>,
    pub input_delta: String,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantUsage {
    pub model: String,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_tokens: Option<u64>,
    pub cache_write_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    pub cost: Option<f64>,
    pub duration: Option<u64>,
    pub time_to_first_token_ms: Option<f64>,
    /// Mean time between pieces of a streamed answer.
    pub inter_token_latency_ms: Option<f64>,
    /// `user` or `agent`: whether a person's message or the loop caused the call.
    pub initiator: Option<String>,
    pub api_call_id: Option<String>,
    /// Id of the request in GitHub's logs.
    pub provider_call_id: Option<String>,
    /// Id of the request in the logs of Copilot's service.
    pub service_request_id: Option<String>,
    pub api_endpoint: Option<String>,
    pub reasoning_effort: Option<String>,
    pub finish_reason: Option<String>,
    pub parent_tool_call_id: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantIdle {
    pub aborted: Option<bool>,
}
