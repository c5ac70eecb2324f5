//! Lifecycle and settings of a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Interactive,
    Plan,
    Autopilot,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStart {
    pub session_id: String,
    /// Version of the log format.
    pub version: u32,
    pub producer: String,
    pub copilot_version: String,
    pub start_time: String,
    pub selected_model: Option<String>,
    pub reasoning_effort: Option<String>,
    pub context: Option<WorkingDirectory>,
    /// Whether it accepts remote control, and whether another process has it open.
    pub remote_steerable: Option<bool>,
    pub already_in_use: Option<bool>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkingDirectory {
    pub cwd: String,
    pub git_root: Option<String>,
    pub repository: Option<String>,
    pub branch: Option<String>,
}

/// The working directory changed, as the host reports it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextChanged {
    #[serde(flatten)]
    pub directory: WorkingDirectory,
    pub repository_host: Option<String>,
    pub host_type: Option<String>,
    pub base_commit: Option<String>,
    pub head_commit: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionResume {
    pub resume_time: String,
    pub event_count: u64,
    pub events_file_size_bytes: Option<u64>,
    pub selected_model: Option<String>,
    pub reasoning_effort: Option<String>,
    pub context: Option<WorkingDirectory>,
    pub session_was_active: Option<bool>,
    pub continue_pending_work: Option<bool>,
}

/// The session was handed to another agent, which has a session id of its own for it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Handoff {
    pub handoff_time: String,
    pub source_type: HandoffSource,
    /// Session id of the other agent.
    pub remote_session_id: Option<String>,
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

impl CodeChanges {
    /// Adds further changes. A file is listed once.
    pub fn add(&mut self, more: &Self) {
        self.lines_added += more.lines_added;
        self.lines_removed += more.lines_removed;
        for file in &more.files_modified {
            if !self.files_modified.contains(file) {
                self.files_modified.push(file.clone());
            }
        }
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionShutdown {
    /// `routine` or `error`.
    pub shutdown_type: String,
    pub error_reason: Option<String>,
    pub total_api_duration_ms: u64,
    /// Milliseconds since the epoch.
    pub session_start_time: u64,
    pub code_changes: CodeChanges,
    pub model_metrics: BTreeMap<String, ModelMetric>,
    pub current_model: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ModelMetric {
    pub requests: RequestMetric,
    pub usage: UsageMetric,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RequestMetric {
    pub count: Option<u64>,
    pub cost: Option<f64>,
}

/// The wire requires these four numbers; a provider that reported none leaves them at zero here and absent in
/// `assistant.usage`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageMetric {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub reasoning_tokens: Option<u64>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionError {
    /// `authentication`, `rate_limit`, `query`, ...
    pub error_type: String,
    pub message: String,
    pub status_code: Option<u16>,
    pub error_code: Option<String>,
    /// Page that people can open about it.
    pub url: Option<String>,
    /// Id of the request in GitHub's logs.
    pub provider_call_id: Option<String>,
    /// Id of the request in the logs of Copilot's service.
    pub service_request_id: Option<String>,
    /// Whether it is for current listeners only and not logged.
    #[serde(skip)]
    pub transient: bool,
}

impl SessionError {
    pub fn new(error_type: impl Into<String>, message: impl Into<String>) -> Self {
        Self { error_type: error_type.into(), message: message.into(), ..Self::default() }
    }

    pub(crate) fn is_ephemeral(&self) -> bool {
        self.transient
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionWarning {
    pub warning_type: String,
    pub message: String,
    pub url: Option<String>,
    /// Whether it is for current listeners only and not logged.
    #[serde(skip)]
    pub transient: bool,
}

impl SessionWarning {
    pub fn new(warning_type: &str, message: String) -> Self {
        Self { warning_type: warning_type.to_owned(), message, url: None, transient: false }
    }

    pub(crate) fn is_ephemeral(&self) -> bool {
        self.transient
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    pub info_type: String,
    pub message: String,
    pub url: Option<String>,
    /// Advice for the user.
    pub tip: Option<String>,
    /// Whether it is for current listeners only and not logged.
    #[serde(skip)]
    pub transient: bool,
}

impl SessionInfo {
    pub fn new(info_type: &str, message: String) -> Self {
        Self { info_type: info_type.to_owned(), message, url: None, tip: None, transient: false }
    }

    /// Whether it is for current listeners only and not logged.
    pub(crate) fn is_ephemeral(&self) -> bool {
        self.transient
            || matches!(
                self.info_type.as_str(),
                "model_retry" | "file_created" | "configuration" | "cancellation" | "autopilot_continuation"
            )
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionIdle {
    pub aborted: Option<bool>,
    pub mode: Option<Mode>,
}

/// The conversation was cleared.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextCleared {
    pub messages_cleared: u64,
    /// First message of the new conversation.
    pub initial_message: Option<String>,
}

/// Detail of reasoning summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningSummary {
    None,
    Concise,
    Detailed,
}

/// Verbosity of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verbosity {
    Low,
    Medium,
    High,
}

/// Context window, for models that have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextTier {
    Default,
    LongContext,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChange {
    pub previous_model: Option<String>,
    pub new_model: String,
    pub previous_reasoning_effort: Option<String>,
    pub reasoning_effort: Option<String>,
    pub reasoning_summary: Option<ReasoningSummary>,
    pub verbosity: Option<Verbosity>,
    pub context_tier: Option<ContextTier>,
    /// Origin of the choice.
    pub source: Option<String>,
    /// Reason, if nobody chose it.
    pub cause: Option<String>,
}

/// The capabilities of the session's clients changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CapabilitiesChanged {
    pub ui: UiCapabilities,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UiCapabilities {
    pub elicitation: bool,
}

/// A slash command that waits for a client to accept it.
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

/// A client is asked to run a slash command that it registered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecute {
    pub request_id: String,
    /// As it was typed: `/deploy production`.
    pub command: String,
    pub command_name: String,
    pub args: String,
}

/// All slash commands that clients registered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandsChanged {
    pub commands: Vec<ClientCommand>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCommand {
    pub name: String,
    pub description: Option<String>,
}

/// Logged counterpart of [`SnapshotRewind`]: events from this one on no longer count. The log itself is not rewritten.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryTruncated {
    pub up_to_event_id: String,
}

/// The history was rewound: events from this one on no longer count.
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

/// Approval mode for calls that no rule decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// The user is asked.
    Manual,
    /// The user is asked, with the opinion of a model.
    Assisted,
    /// Calls are allowed.
    AllowAll,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsChanged {
    pub previous_mode: Option<PermissionMode>,
    pub mode: PermissionMode,
    pub assisted_approval_model: Option<String>,
}

/// The events before this one are those of another session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    pub from_session_id: String,
}

/// The session was assigned to a run of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAssigned {
    pub run: String,
    /// Name of the job, or of the task if only that was started.
    pub job: String,
    /// Position of the task in the job.
    pub work_id: u32,
    pub task: String,
    /// Whether the session drives the work rather than only doing it.
    pub driving: bool,
}

/// The session was opened with a configured agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentAssigned {
    /// Name of the agent in the configuration.
    pub agent: String,
    /// Runtime that the agent is based on.
    pub runtime: String,
    /// Host that it works on by ssh. The conversation of the agent is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModeNoticeDelivered {
    pub mode: Mode,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaskComplete {
    pub summary: Option<String>,
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

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageInfo {
    pub token_limit: u64,
    pub current_tokens: u64,
    pub messages_length: u64,
    pub system_tokens: Option<u64>,
    pub conversation_tokens: Option<u64>,
    pub tool_definitions_tokens: Option<u64>,
    pub is_initial: Option<bool>,
}

/// Logged counterpart of `assistant.usage`, so that totals survive a resume.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageRecord {
    pub usage: super::AssistantUsage,
    /// Number of calls that the record sums up, where an agent reports whole turns; 0 if it does not tell. Absent for one
    /// call.
    pub calls: Option<u64>,
    /// Whether the cost was computed from a price, not reported.
    pub computed: Option<bool>,
}

impl From<super::AssistantUsage> for UsageRecord {
    fn from(usage: super::AssistantUsage) -> Self {
        Self { usage, calls: None, computed: None }
    }
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

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServerStatusChanged {
    pub server_name: String,
    pub status: String,
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

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInterrupted {
    /// `model_call`, `retry_backoff`, `tool_call` or `background_agent`.
    pub activity: String,
    pub turn: u64,
    pub elapsed_ms: u64,
    pub model: Option<String>,
    pub cancel_phase: Option<String>,
    pub tool_call_ids: Option<Vec<String>>,
    pub tool_names: Option<Vec<String>>,
}
