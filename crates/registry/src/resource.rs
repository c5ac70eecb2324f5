//! Sessions as the API shows them.

use hangar_protocol::data::{PermissionMode, RunAssigned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::canvas::Canvas;
use crate::session_stats::{ContextUsage, Used};

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Session")]
pub struct SessionResource {
    pub id: String,
    pub name: Option<String>,
    pub state: SessionState,
    pub runtime: String,
    /// Configured agent that it was opened with.
    pub agent: Option<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub workspace: String,
    pub created_at: String,
    pub updated_at: String,
    /// Number of the last event in the log.
    pub events: u64,
    pub usage: Used,
    pub context: Option<ContextUsage>,
    /// Number of unanswered questions.
    pub approvals: usize,
    pub run: Option<RunLink>,
    /// Whether a message can be sent to it.
    pub resumable: bool,
    /// Error of the last turn, if it failed.
    pub error: Option<String>,
    pub policy: Option<SessionPolicy>,
    /// The sentence that its turn makes no progress, while it makes none.
    pub no_progress: Option<String>,
    /// Process that has it open; absent if it is closed.
    pub open: Option<OpenIn>,
    /// Worker of the fleet that has it.
    pub worker: Option<String>,
    /// Sentence that says why it waits for a worker.
    pub waits: Option<String>,
    /// Its open canvases; absent if there are none.
    pub canvases: Option<Vec<Canvas>>,
}

/// Process in which a session is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpenIn {
    /// This portal.
    Portal,
    /// A terminal, which this portal has joined.
    Terminal,
    /// A worker of the fleet.
    Worker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// A turn is in progress.
    Working,
    /// It waits for an answer.
    Waiting,
    /// It is open and has nothing to do.
    Idle,
    /// It waits for a worker of the fleet.
    Queued,
    /// It is not open.
    Closed,
    /// Its last turn ended in an error.
    Failed,
}

/// Permission policy of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Policy")]
pub enum SessionPolicy {
    Ask,
    AllowAll,
}

impl From<PermissionMode> for SessionPolicy {
    fn from(mode: PermissionMode) -> Self {
        match mode {
            PermissionMode::Manual | PermissionMode::Assisted => SessionPolicy::Ask,
            PermissionMode::AllowAll => SessionPolicy::AllowAll,
        }
    }
}

/// The run of a job that a session works for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunLink {
    pub id: String,
    pub job: String,
    pub work_id: u32,
    pub task: String,
    /// Whether it checks the work; also true if it does both.
    pub driving: bool,
}

impl From<&RunAssigned> for RunLink {
    fn from(assigned: &RunAssigned) -> Self {
        Self {
            id: assigned.run.clone(),
            job: assigned.job.clone(),
            work_id: assigned.work_id,
            task: assigned.task.clone(),
            driving: assigned.driving,
        }
    }
}
