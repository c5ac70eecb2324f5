//! Events of one model call.

use serde::{Deserialize, Serialize};
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
