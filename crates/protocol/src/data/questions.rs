//! Questions to the clients of a session other than permissions and `ask_user`, and their answers.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// How the session continues once its plan is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanAction {
    ExitOnly,
    Interactive,
    Autopilot,
    AutopilotFleet,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitPlanModeRequested {
    pub request_id: String,
    pub summary: String,
    pub plan_content: String,
    pub actions: Vec<PlanAction>,
    pub recommended_action: PlanAction,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitPlanModeCompleted {
    pub request_id: String,
    #[serde(flatten)]
    pub decision: PlanDecision,
}

/// Answer to a plan.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanDecision {
    #[serde(default)]
    pub approved: bool,
    pub selected_action: Option<PlanAction>,
    pub auto_approve_edits: Option<bool>,
    pub feedback: Option<String>,
}

/// Question whether another model may take over from one that is at its rate limit.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoModeSwitchRequested {
    pub request_id: String,
    pub error_code: Option<String>,
    pub retry_after_seconds: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoModeSwitchCompleted {
    pub request_id: String,
    pub response: SwitchAnswer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchAnswer {
    Yes,
    YesAlways,
    No,
}

/// A form for a person to fill in.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationRequested {
    pub request_id: String,
    pub tool_call_id: Option<String>,
    /// The MCP server that asks, if one does.
    pub elicitation_source: Option<String>,
    pub message: String,
    /// `form` or `url`.
    pub mode: Option<String>,
    pub requested_schema: Option<serde_json::Value>,
    pub url: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationCompleted {
    pub request_id: String,
    pub action: Option<ElicitationAction>,
    pub content: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitationAction {
    Accept,
    Decline,
    Cancel,
}

/// A question beside the conversation; neither it nor the answer becomes part of it.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EphemeralQuery {
    pub request_id: String,
    pub phase: QueryPhase,
    pub answer: Option<String>,
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryPhase {
    Started,
    Completed,
    Failed,
}

/// Budget of a session.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionLimits {
    pub max_ai_credits: Option<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionLimitsChanged {
    pub session_limits: Option<SessionLimits>,
}

/// A tool call that a person made, beside the conversation.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUserRequested {
    pub tool_call_id: String,
    pub tool_name: String,
    pub arguments: Option<serde_json::Value>,
}
