//! Invocations of hooks and their results.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookStart {
    pub hook_invocation_id: String,
    pub hook_type: String,
    pub input: Option<serde_json::Value>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookEnd {
    pub hook_invocation_id: String,
    pub hook_type: String,
    pub output: Option<serde_json::Value>,
    pub success: bool,
    pub error: Option<HookError>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HookError {
    pub message: String,
}

/// Progress message of a hook that is running.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HookProgress {
    pub message: String,
    pub temporary: Option<bool>,
}
