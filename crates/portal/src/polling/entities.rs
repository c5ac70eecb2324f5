//! Sessions, tasks and jobs as these routes know them: each a log to poll, and what it takes to stop it.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hangar_jobs::driver::Controls;
use hangar_jobs::entry::WorkId;
use hangar_jobs::record::{RunId, TaskId};
use hangar_store::SessionId;
use jiff::Timestamp;
use serde::Serialize;
use tokio::time::Instant;

use super::callbacks::Callbacks;
use super::item::PollItem;
use super::live::PollLog;
use super::response::{JobResponse, SessionResponse, TaskResponse};
use super::table::{Entity, EntityTable};

/// Time that a job is listed after its end.
const LISTED: Duration = Duration::from_secs(3600);
/// Time after an end in which new readers may come; shorter for tests.
const GRACE: Duration = Duration::from_secs(60);
const TEST_GRACE: Duration = Duration::from_secs(5);

/// All there are.
pub(crate) struct PolledTables {
    pub(crate) sessions: EntityTable<PolledSession>,
    pub(crate) tasks: EntityTable<PolledTask>,
    pub(crate) jobs: EntityTable<PolledJob>,
    grace: Duration,
}

impl PolledTables {
    pub(crate) fn new(test: bool) -> Self {
        Self {
            sessions: EntityTable::default(),
            tasks: EntityTable::default(),
            jobs: EntityTable::default(),
            grace: if test { TEST_GRACE } else { GRACE },
        }
    }

    pub(crate) fn log<T: PollItem>(&self) -> PollLog<T> {
        PollLog::new(self.grace)
    }
}

pub(crate) struct PolledSession {
    pub(crate) log: PollLog<SessionResponse>,
    pub(crate) owner: SessionOwner,
    /// Working directory, if a client named one.
    pub(crate) workspace: Option<PathBuf>,
    callbacks: Mutex<Callbacks>,
}

/// Owner of a session, who may send it messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionOwner {
    /// A client that knows its id, which is the hub's id.
    Client(SessionId),
    /// A task of a job.
    Task,
}

impl PolledSession {
    pub(crate) fn of_client(id: SessionId, workspace: PathBuf, tables: &PolledTables) -> Self {
        let owner = SessionOwner::Client(id);
        Self { log: tables.log(), owner, workspace: Some(workspace), callbacks: Mutex::default() }
    }

    pub(crate) fn of_task(tables: &PolledTables) -> Self {
        Self { log: tables.log(), owner: SessionOwner::Task, workspace: None, callbacks: Mutex::default() }
    }

    /// Pushes callbacks to the log.
    pub(crate) fn tell(&self, told: impl FnOnce(&mut Callbacks) -> Vec<SessionResponse>) {
        let mut callbacks = self.callbacks.lock();
        told(&mut callbacks).into_iter().for_each(|response| self.log.push(response));
    }
}

pub(crate) struct PolledTask {
    pub(crate) log: PollLog<TaskResponse>,
    pub(crate) owner: TaskOwner,
}

pub(crate) enum TaskOwner {
    /// It works in a leased session.
    Borrower,
    /// A job, whose run knows it by this id.
    Job { job: Arc<PolledJob>, task: TaskId },
}

pub(crate) struct PolledJob {
    pub(crate) log: PollLog<JobResponse>,
    pub(crate) name: String,
    pub(crate) started: Timestamp,
    /// Set as soon as its run has begun.
    pub(crate) run: OnceLock<JobRun>,
    progress: Mutex<JobProgress>,
}

/// The run that carries a job out.
#[derive(Debug)]
pub(crate) struct JobRun {
    pub(crate) id: RunId,
    pub(crate) controls: Controls,
}

#[derive(Debug)]
pub(crate) struct JobProgress {
    pub(crate) status: JobStatus,
    ended: Option<Instant>,
    /// The latest execution of each work.
    pub(crate) works: BTreeMap<WorkId, WorkStatus>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum JobStatus {
    Running,
    Succeeded,
    Failed,
    Canceled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkStatus {
    Running { task: String },
    Succeeded,
    Failed,
}

impl PolledJob {
    pub(crate) fn new(name: String, started: Timestamp, tables: &PolledTables) -> Self {
        let progress = JobProgress { status: JobStatus::Running, ended: None, works: BTreeMap::new() };
        Self { log: tables.log(), name, started, run: OnceLock::new(), progress: Mutex::new(progress) }
    }

    pub(crate) fn progress(&self) -> MutexGuard<'_, JobProgress> {
        self.progress.lock()
    }

    /// Whether it is running, or ended recently.
    pub(crate) fn is_listed(&self) -> bool {
        self.progress().ended.is_none_or(|ended| ended.elapsed() < LISTED)
    }

    /// Ends it with its last responses. One that has ended is not changed.
    pub(crate) fn end(&self, status: JobStatus, last: impl IntoIterator<Item = JobResponse>) {
        let mut progress = self.progress();
        if progress.ended.is_some() {
            return;
        }
        progress.status = status;
        progress.ended = Some(Instant::now());
        // Unfinished work has not succeeded.
        for work in progress.works.values_mut().filter(|work| matches!(work, WorkStatus::Running { .. })) {
            *work = WorkStatus::Failed;
        }
        drop(progress);
        last.into_iter().for_each(|response| self.log.push(response));
        self.log.close();
    }
}

impl Entity for PolledSession {
    const PREFIX: &'static str = "session";

    fn is_open(&self) -> bool {
        !self.log.is_closed()
    }

    fn is_done(&self) -> bool {
        self.log.is_done()
    }

    fn bytes(&self) -> usize {
        self.log.bytes()
    }
}

impl Entity for PolledTask {
    const PREFIX: &'static str = "task";

    fn is_open(&self) -> bool {
        !self.log.is_closed()
    }

    fn is_done(&self) -> bool {
        self.log.is_done()
    }

    fn bytes(&self) -> usize {
        self.log.bytes()
    }
}

impl Entity for PolledJob {
    const PREFIX: &'static str = "job";

    fn is_open(&self) -> bool {
        !self.log.is_closed()
    }

    fn is_done(&self) -> bool {
        !self.is_listed() && self.log.is_done()
    }

    fn bytes(&self) -> usize {
        self.log.bytes()
    }
}
