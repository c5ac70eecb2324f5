//! Slots: a session of a task is opened only while it has one.

use std::collections::BTreeSet;
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use hangar_scheduler::retry::AttemptFailure;
use jiff::Timestamp;

use crate::record::{RunId, TaskId};

/// Grants slots, and decides when a failed session may be tried again.
pub trait SlotSource: Send + Sync {
    /// Waits for a slot. The error is a sentence.
    fn acquire(&self, request: SlotRequest) -> BoxFuture<'static, Result<Box<dyn TaskSlot>, String>>;

    /// Nobody wants a slot for the task any more.
    fn withdraw_task(&self, run: &RunId, task: TaskId);

    /// Nobody wants a slot for any task of the run any more.
    fn withdraw_run(&self, run: &RunId);
}

/// A slot of a session. Dropped without an end, it leaves the work to be taken up again.
pub trait TaskSlot: Send {
    /// Host that the slot was granted for, where the agent has several.
    fn host(&self) -> Option<&str> {
        None
    }

    /// The agent has answered, so its account works.
    fn answered(&self);

    /// Remarks on the work while it runs, such as that it makes no progress; `None` takes the remark back.
    fn remark(&self, remark: Option<&str>);

    /// The session has ended; with the failure, if it crashed.
    fn end(self: Box<Self>, failure: Option<AttemptFailure>);
}

/// Session that needs a slot.
#[derive(Debug, Clone)]
pub struct SlotRequest {
    pub run: RunId,
    pub task: TaskId,
    /// Name of the job, or of the task if only that was started.
    pub job: String,
    /// Working directory of the run.
    pub project: PathBuf,
    /// The default agent where absent.
    pub runtime: Option<String>,
    pub model: String,
    /// Priority and labels of its job.
    pub priority: i32,
    pub labels: BTreeSet<String>,
    /// When the task started. It decides the place in the queue, also of retries.
    pub since: Timestamp,
}
