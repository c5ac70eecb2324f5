//! Hooks: what they were asked and what they said.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookStart {
    pub hook_invocation_id: String,
    pub hook_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookEnd {
    pub hook_invocation_id: String,
    pub hook_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<HookError>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HookError {
    pub message: String,
}

/// What a hook says of itself while it works.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HookProgress {
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<bool>,
}
