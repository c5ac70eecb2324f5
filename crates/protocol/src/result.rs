//! The `result` line, which ends a headless run. It is not an event: it has no id and is never logged.

use serde::{Deserialize, Serialize};

use crate::data::CodeChanges;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    #[serde(rename = "type")]
    pub kind: ResultKind,
    pub timestamp: String,
    pub session_id: String,
    pub exit_code: u8,
    pub usage: RunUsage,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultKind {
    Result,
}

/// Usage of a run. Members after `code_changes` are ours: the reference has no token counts here.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunUsage {
    pub premium_requests: u64,
    pub total_api_duration_ms: u64,
    pub session_duration_ms: u64,
    pub code_changes: CodeChanges,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// Known cost; that of the session, if no call is unpriced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Calls whose cost is not known, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpriced_calls: Option<u64>,
}
