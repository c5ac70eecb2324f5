//! Events of one model call.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCallStart {
    pub turn_id: String,
    pub model: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    Success,
    Error,
    Cancelled,
    Rejected,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCallFinished {
    pub turn_id: String,
    pub dispatch_duration_ms: u64,
    pub outcome: CallOutcome,
    /// Version of the rule behind `contains_built_in_file_edit_request`.
    pub edit_classifier_version: u32,
    pub interaction_id: Option<String>,
    pub contains_built_in_file_edit_request: Option<bool>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCallFailure {
    pub model: Option<String>,
    pub status_code: Option<u16>,
    pub duration_ms: Option<u64>,
    pub api_endpoint: Option<String>,
    /// `api` for an error response, `transport` for no proper response.
    pub failure_kind: Option<String>,
    /// `top_level` or `subagent`.
    pub source: String,
    pub error_message: Option<String>,
    pub error_code: Option<String>,
    pub error_type: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCallFinalResult {
    pub model: Option<String>,
    pub is_byok: bool,
    /// `success`, `http_400`, `http_429`, `http_5xx`, `transport_error`, ...
    pub result: String,
}

/// An answer in the vendor's own items, logged right before the `assistant.message` that tells it in ours. The vendor that
/// sent them gets them back as they came: it signs or encrypts some, and refuses the next request without them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelItems {
    pub message_id: String,
    pub origin: ModelOrigin,
    /// JSON in the form of the wire: content blocks, output items, or a message.
    pub items: Box<RawValue>,
    /// Whether the vendor paused the answer, which goes on when its items are sent back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Digest of the request that was answered, where the vendor binds reasoning to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<NonZeroU64>,
}

/// Reservation of a model call, logged before the call is made, or its end. A call without an end was in flight when its
/// process was killed: the provider may charge it, so the whole reservation counts as used.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
    /// Number of the call in its process.
    pub call: u64,
    /// Absent once the call has ended.
    pub bound: Option<super::AssistantUsage>,
}

/// Where items of an answer come from. They mean something there and nowhere else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelOrigin {
    /// Base URL, without credentials.
    pub provider: String,
    /// `/chat/completions`, `/responses` or `/v1/messages`.
    pub wire: String,
    pub model: String,
    /// Fingerprint of the account, which tells two accounts apart and nothing else.
    pub account: String,
}
