//! Life of a session as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Interactive,
    Plan,
    Autopilot,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStart {
    pub session_id: String,
    /// Version of the log format.
    pub version: u32,
    pub producer: String,
    pub copilot_version: String,
    pub start_time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<WorkingDirectory>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkingDirectory {
    pub cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_root: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// Where a session works now, as whoever hosts it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextChanged {
    #[serde(flatten)]
    pub directory: WorkingDirectory,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_commit: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionResume {
    pub resume_time: String,
    pub event_count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_file_size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<WorkingDirectory>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_was_active: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continue_pending_work: Option<bool>,
}

/// Another agent does the work of the session, under a name of its own for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Handoff {
    pub handoff_time: String,
    pub source_type: HandoffSource,
    /// What the other agent calls the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandoffSource {
    Local,
    Remote,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeChanges {
    pub lines_added: u64,
    pub lines_removed: u64,
    pub files_modified: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionShutdown {
    /// `routine` or `error`.
    pub shutdown_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    pub total_api_duration_ms: u64,
    /// Milliseconds since the epoch.
    pub session_start_time: u64,
    pub code_changes: CodeChanges,
    pub model_metrics: BTreeMap<String, ModelMetric>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_model: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ModelMetric {
    pub requests: RequestMetric,
    pub usage: UsageMetric,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RequestMetric {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// The wire requires these four numbers; a provider that reported none leaves them at zero here and absent in
/// `assistant.usage`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageMetric {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionError {
    /// `authentication`, `rate_limit`, `query`, ...
    pub error_type: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Meant for those who look right now, not for the history.
    #[serde(skip)]
    pub transient: bool,
}

impl SessionError {
    pub(crate) fn is_ephemeral(&self) -> bool {
        self.transient
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionWarning {
    pub warning_type: String,
    pub message: String,
    /// Meant for those who look right now, not for the history.
    #[serde(skip)]
    pub transient: bool,
}

impl SessionWarning {
    pub fn new(warning_type: &str, message: String) -> Self {
        Self { warning_type: warning_type.to_owned(), message, transient: false }
    }

    pub(crate) fn is_ephemeral(&self) -> bool {
        self.transient
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    pub info_type: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Meant for those who look right now, not for the history.
    #[serde(skip)]
    pub transient: bool,
}

impl SessionInfo {
    pub fn new(info_type: &str, message: String) -> Self {
        Self { info_type: info_type.to_owned(), message, url: None, transient: false }
    }

    /// Notices about the moment are not part of the session's history.
    pub(crate) fn is_ephemeral(&self) -> bool {
        self.transient
            || matches!(
                self.info_type.as_str(),
                "model_retry" | "file_created" | "configuration" | "cancellation" | "autopilot_continuation"
            )
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionIdle {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_model: Option<String>,
    pub new_model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_reasoning_effort: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Why, where nobody chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// What the clients of a session can be asked, when that changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CapabilitiesChanged {
    pub ui: UiCapabilities,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UiCapabilities {
    pub elicitation: bool,
}

/// A slash command that waits for a client to say whether it handles it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandQueued {
    pub request_id: String,
    pub command: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandCompleted {
    pub request_id: String,
}

/// A command that a client brought is to be carried out by it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecute {
    pub request_id: String,
    /// As it was typed: `/deploy production`.
    pub command: String,
    pub command_name: String,
    pub args: String,
}

/// The commands that clients bring, all of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandsChanged {
    pub commands: Vec<ClientCommand>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCommand {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The durable twin of [`SnapshotRewind`]: everything from an event on no longer counts. The log itself is not rewritten.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryTruncated {
    pub up_to_event_id: String,
}

impl HistoryTruncated {
    pub const KIND: &'static str = "hangar.history_truncated";
}

/// History from an event on no longer counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRewind {
    pub up_to_event_id: String,
    pub events_removed: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TitleChanged {
    pub title: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileOperation {
    Create,
    Update,
    Delete,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanChanged {
    pub operation: FileOperation,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkspaceFileChanged {
    /// Relative to the session's `files` folder.
    pub path: String,
    pub operation: FileOperation,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModeChanged {
    pub previous_mode: Mode,
    pub new_mode: Mode,
}

/// Who decides about calls that no rule decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// A person is asked.
    Manual,
    /// A person is asked, with the opinion of a model.
    Assisted,
    /// They are allowed.
    AllowAll,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsChanged {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_mode: Option<PermissionMode>,
    pub mode: PermissionMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assisted_approval_model: Option<String>,
}

/// The session works for a run of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAssigned {
    pub run: String,
    /// The name of the job, or of the task if only that was started.
    pub job: String,
    /// The place of the task in the job.
    pub work_id: u32,
    pub task: String,
    /// Whether it decides about the work; a session that does both is driving too.
    pub driving: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModeNoticeDelivered {
    pub mode: Mode,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaskComplete {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutopilotStop {
    TaskComplete,
    CapReached,
    Error,
    Aborted,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutopilotStopped {
    pub reason: AutopilotStop,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    pub token_limit: u64,
    pub pre_truncation_tokens_in_messages: u64,
    pub pre_truncation_messages_length: u64,
    pub post_truncation_tokens_in_messages: u64,
    pub post_truncation_messages_length: u64,
    pub tokens_removed_during_truncation: u64,
    pub messages_removed_during_truncation: u64,
    pub performed_by: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageInfo {
    pub token_limit: u64,
    pub current_tokens: u64,
    pub messages_length: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_definitions_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_initial: Option<bool>,
}

/// The durable twin of `assistant.usage`: what a model call cost, so that totals survive a resume.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageRecord {
    pub usage: super::AssistantUsage,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TodosChanged {}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct BackgroundTasksChanged {}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PendingMessagesModified {}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SkillsLoaded {
    pub skills: Vec<super::LoadedSkill>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct McpServersLoaded {
    pub servers: Vec<serde_json::Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServerStatusChanged {
    pub server_name: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolsUpdated {
    pub model: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Abort {
    /// `user_initiated`, `user_abort`, `remote_command` or `autopilot_credit_limit`.
    pub reason: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInterrupted {
    /// `model_call`, `retry_backoff`, `tool_call` or `background_agent`.
    pub activity: String,
    pub turn: u64,
    pub elapsed_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_phase: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_names: Option<Vec<String>>,
}
