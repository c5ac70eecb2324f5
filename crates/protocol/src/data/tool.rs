//! Tool calls and the permissions they need.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use super::session::{CodeChanges, Mode};
use crate::permission::{PermissionOutcome, PermissionPrompt, PermissionRequest};

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStart {
    pub tool_call_id: String,
    pub tool_name: String,
    #[serde(default)]
    pub arguments: Value,
    pub turn_id: Option<String>,
    pub model: Option<String>,
    pub shell_tool_info: Option<ShellToolInfo>,
    pub mcp_server_name: Option<String>,
    pub mcp_tool_name: Option<String>,
    pub parent_tool_call_id: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellToolInfo {
    pub possible_paths: Vec<String>,
    pub has_write_file_redirection: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolPartialResult {
    pub tool_call_id: String,
    /// All output so far, not the last piece of it.
    pub partial_output: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolProgress {
    pub tool_call_id: String,
    pub progress_message: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolShellOutput {
    pub tool_call_id: String,
    /// `stdout` or `stderr`.
    pub stream: String,
    pub text: String,
    pub sequence: u64,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolComplete {
    pub tool_call_id: String,
    pub model: Option<String>,
    pub interaction_id: Option<String>,
    pub turn_id: Option<String>,
    pub shell_execution: Option<ShellExecution>,
    pub success: bool,
    pub result: Option<ToolResult>,
    pub error: Option<ToolError>,
    pub tool_telemetry: Option<Value>,
    pub sandboxed: Option<bool>,
    pub parent_tool_call_id: Option<String>,
}

impl ToolComplete {
    /// Code changes of the call, if it reports any. They are where Copilot CLI has them, so that its logs count too:
    /// lines among the metrics, paths as a JSON text among the restricted properties.
    pub fn code_changes(&self) -> Option<CodeChanges> {
        let telemetry = self.tool_telemetry.as_ref()?;
        let count = |name: &str| telemetry["metrics"][name].as_u64();
        let (added, removed) = (count(LINES_ADDED), count(LINES_REMOVED));
        added.or(removed)?;
        let paths = telemetry["restrictedProperties"][FILE_PATHS].as_str();
        Some(CodeChanges {
            lines_added: added.unwrap_or(0),
            lines_removed: removed.unwrap_or(0),
            files_modified: paths.and_then(|paths| serde_json::from_str(paths).ok()).unwrap_or_default(),
        })
    }

    /// Reports the code changes of the call.
    pub fn set_code_changes(&mut self, changes: &CodeChanges) {
        let object = |value: Option<Value>| match value {
            Some(Value::Object(object)) => object,
            _ => Map::new(),
        };
        let mut telemetry = object(self.tool_telemetry.take());
        let mut restricted = object(telemetry.remove("restrictedProperties"));
        let paths = Value::from(changes.files_modified.clone()).to_string();
        restricted.insert(FILE_PATHS.to_owned(), paths.into());
        let mut metrics = object(telemetry.remove("metrics"));
        metrics.insert(LINES_ADDED.to_owned(), changes.lines_added.into());
        metrics.insert(LINES_REMOVED.to_owned(), changes.lines_removed.into());
        telemetry.insert("restrictedProperties".to_owned(), restricted.into());
        telemetry.insert("metrics".to_owned(), metrics.into());
        self.tool_telemetry = Some(telemetry.into());
    }
}

const LINES_ADDED: &str = "linesAdded";
const LINES_REMOVED: &str = "linesRemoved";
const FILE_PATHS: &str = "filePaths";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellExecution {
    pub exit_code: i32,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Text for the model.
    pub content: String,
    /// Text for people, for instance a diff.
    pub detailed_content: Option<String>,
    /// Content blocks of an MCP server's answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<Value>,
    pub structured_content: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binary_results_for_llm: Vec<BinaryResult>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BinaryResult {
    /// Base64.
    pub data: String,
    pub mime_type: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// Description for the model.
    pub description: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolError {
    pub message: String,
    /// `failure`, `denied`, `interrupted`, `timeout`.
    pub code: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequested {
    pub request_id: String,
    pub permission_request: PermissionRequest,
    /// The request as a person is shown it. Logs of older versions have none.
    pub prompt_request: Option<PermissionPrompt>,
    pub agent_mode: Option<Mode>,
}

impl PermissionRequested {
    pub fn new(request_id: String, permission_request: PermissionRequest) -> Self {
        let prompt_request = Some(permission_request.prompt());
        Self { request_id, permission_request, prompt_request, agent_mode: None }
    }
}

/// A call of a tool that a client runs. The client answers by the request's id.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalToolRequested {
    pub request_id: String,
    pub session_id: String,
    pub tool_call_id: String,
    pub tool_name: String,
    #[serde(default)]
    pub arguments: Value,
    pub working_directory: Option<String>,
    /// Trace context of the call, by the W3C's recommendation.
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalToolCompleted {
    pub request_id: String,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionCompleted {
    pub request_id: String,
    pub tool_call_id: Option<String>,
    pub result: PermissionOutcome,
}

/// Tools that requests have from now on, behind those that they had. A resumed session offers them in the same order, and
/// from the same place of the conversation on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsOffered {
    pub tool_names: Vec<String>,
}

/// Tools that a search has found, whose descriptions the model is shown from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSearchActivated {
    pub strategy: String,
    pub tool_names: Vec<String>,
}
