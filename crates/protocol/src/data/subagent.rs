//! Events about sub-agents. Their own events carry the envelope's `agentId`.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionMode {
    /// The caller waits for the result.
    Sync,
    Background,
}

/// Where the model of a task was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskModelSource {
    TaskArgument,
    CustomAgentDefinition,
    Unset,
}

/// Why an agent runs on its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelSelection {
    ExplicitOverride,
    AgentDefinitionDefault,
    SessionInheritance,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentStarted {
    pub tool_call_id: String,
    pub agent_name: String,
    pub agent_display_name: String,
    pub agent_description: String,
    pub model: Option<String>,
    pub task_model_source: Option<TaskModelSource>,
    pub model_selection_source: Option<ModelSelection>,
    pub resumable: Option<bool>,
    pub agent_type: Option<String>,
    pub execution_mode: Option<ExecutionMode>,
    /// The parent agent; absent for agents of the session itself.
    pub parent_id: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentConfigured {
    pub model: String,
    pub multi_turn: bool,
    pub reasoning_effort: Option<String>,
}

/// The session takes the role of a custom agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentSelected {
    pub agent_name: String,
    pub agent_display_name: String,
    /// Null for all tools.
    pub tools: Option<Vec<String>>,
}

/// The session takes its usual role again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SubagentDeselected {}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentCompleted {
    pub tool_call_id: String,
    pub agent_name: String,
    pub agent_display_name: String,
    pub model: Option<String>,
    pub first_dispatched_model: Option<String>,
    pub model_selection_source: Option<ModelSelection>,
    pub total_tool_calls: Option<u64>,
    pub total_tokens: Option<u64>,
    pub duration_ms: Option<u64>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentFailed {
    pub tool_call_id: String,
    pub agent_name: String,
    pub agent_display_name: String,
    pub error: String,
    pub model: Option<String>,
    pub first_dispatched_model: Option<String>,
    pub model_selection_source: Option<ModelSelection>,
    pub total_tool_calls: Option<u64>,
    pub total_tokens: Option<u64>,
    pub duration_ms: Option<u64>,
}
