//! Records of a run: a few kinds of facts, in the order in which they happened. All else is computed from them, and the
//! output of agents is in the logs of their sessions.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use hangar_runtimes::outcome::TurnFailure;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::decision::Decision;
use crate::entry::{Job, JobLimits, Model, TaskWork, Work, WorkId};
use crate::tools::Round;
use crate::validate::ValidEntry;

/// A line of a run's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub seq: u64,
    #[serde(with = "iso")]
    pub at: Timestamp,
    #[serde(flatten)]
    pub fact: RunFact,
}

/// A run of a job, sorted by when it began.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One execution of a task within a run. Not the name of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task-{}", self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskSessionId(pub String);

impl fmt::Display for TaskSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Order of a run, complete enough to run it again.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunOrder {
    pub subject: Subject,
    #[serde(default)]
    pub input: String,
    pub working_directory: PathBuf,
    /// The agent for tasks that name none, and for driving sessions.
    pub runtime: Option<String>,
    /// The entry as it was then.
    pub entry: Arc<ValidEntry>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Subject {
    Job {
        name: String,
    },
    /// One task, in sessions of its own or in a leased one.
    #[serde(rename_all = "camelCase")]
    Task {
        name: String,
        model: Option<String>,
        borrowed_session: Option<TaskSessionId>,
        #[serde(default)]
        skip_availability: bool,
    },
}

impl Subject {
    pub fn name(&self) -> &str {
        match self {
            Subject::Job { name } | Subject::Task { name, .. } => name,
        }
    }
}

impl RunOrder {
    /// Work of the order. `None` if the entry has nothing of that name.
    pub fn work(&self) -> Option<Work> {
        match &self.subject {
            Subject::Job { name } => self.entry.jobs.get(name).map(|job| job.work.clone()),
            Subject::Task { name, model, .. } => self.entry.tasks.contains_key(name).then(|| {
                Work::Ref(TaskWork {
                    work_id_in_job: WorkId(0),
                    task_id: name.clone(),
                    model_override: model.clone().map(Model::Id),
                    worktree: false,
                })
            }),
        }
    }

    fn job(&self) -> Option<&Job> {
        match &self.subject {
            Subject::Job { name } => self.entry.jobs.get(name),
            Subject::Task { .. } => None,
        }
    }

    /// Priority of its work in the queue.
    pub fn priority(&self) -> i32 {
        self.job().map_or(0, |job| job.priority)
    }

    /// Labels of its work in the queue.
    pub fn labels(&self) -> BTreeSet<String> {
        self.job().map(|job| job.labels.clone()).unwrap_or_default()
    }

    /// The agents that the work needs, by their names; `None` is the default one.
    pub fn runtimes(&self) -> BTreeSet<Option<&str>> {
        let driving = self.runtime.as_deref();
        let work = self.work();
        let works = work.iter().flat_map(Work::tasks);
        let tasks = works.filter_map(|work| self.entry.tasks.get(&work.task_id));
        tasks
            .flat_map(|task| {
                let judged =
                    task.criteria.as_ref().and_then(|criteria| criteria.run_condition_in_same_session);
                let apart = (judged == Some(false)).then_some(driving);
                [Some(task.worker().or(driving)), apart].into_iter().flatten()
            })
            .collect()
    }

    pub fn limits(&self) -> JobLimits {
        match &self.subject {
            Subject::Job { name } => self.entry.jobs.get(name).map(|job| job.limits).unwrap_or_default(),
            Subject::Task { .. } => JobLimits::default(),
        }
    }
}

/// Fact about a run.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum RunFact {
    RunStarted {
        run: RunId,
        order: RunOrder,
    },
    /// Another process continues. The sessions of the previous one are gone.
    RunResumed,
    WorktreeMade {
        place: String,
        worktree: Worktree,
    },
    WorktreeLeft {
        place: String,
        /// Whether it was kept, because something was changed in it.
        kept: bool,
    },
    WorktreeFailed {
        place: String,
        error: CrashError,
    },
    WorkStarted {
        work_id: WorkId,
        task: TaskId,
        name: String,
        directory: PathBuf,
    },
    SessionStarted {
        task: TaskId,
        session: TaskSessionId,
        driving: bool,
        model: String,
        runtime: Option<String>,
    },
    /// No session could be opened.
    SessionRefused {
        task: TaskId,
        error: CrashError,
    },
    /// About to be sent.
    Prompted {
        task: TaskId,
        session: TaskSessionId,
        prompt: String,
    },
    TurnEnded {
        task: TaskId,
        session: TaskSessionId,
        end: TurnReport,
        #[serde(default)]
        tokens: u64,
    },
    /// The commands and files of the criteria were checked.
    Checked {
        task: TaskId,
        failures: Vec<CheckFailure>,
    },
    Decided {
        task: TaskId,
        decision: Decision,
        /// The decision in words.
        reason: String,
    },
    SessionStopped {
        task: TaskId,
        session: TaskSessionId,
        succeeded: bool,
    },
    /// This task alone was stopped.
    TaskStopped {
        task: TaskId,
    },
    TaskEnded {
        task: TaskId,
        end: TaskEnd,
    },
    WorkStopped {
        work_id: WorkId,
        task: TaskId,
        succeeded: bool,
    },
    RunEnded {
        end: RunEnd,
    },
}

impl RunFact {
    pub(crate) fn decided(task: TaskId, decision: Decision) -> Self {
        RunFact::Decided { task, reason: decision.to_string(), decision }
    }
}

/// End of an agent's turn on one prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "end")]
pub enum TurnReport {
    Completed { round: Round },
    Crashed { error: CrashError },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "end")]
pub enum TaskEnd {
    Succeeded,
    Failed,
    /// It is unknown whether it succeeded.
    Crashed {
        error: CrashError,
    },
}

impl TaskEnd {
    pub fn succeeded(&self) -> bool {
        matches!(self, TaskEnd::Succeeded)
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum RunEnd {
    Succeeded,
    Failed {
        /// Why, if it is not that a task failed.
        error: Option<CrashError>,
    },
    /// The turn was cancelled.
    Canceled,
    LimitReached {
        limit: Limit,
    },
    /// Its process ended, and it cannot be continued.
    Interrupted,
}

impl fmt::Display for RunEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunEnd::Succeeded => f.write_str("succeeded"),
            RunEnd::Failed { error: None } => f.write_str("failed"),
            RunEnd::Failed { error: Some(error) } => write!(f, "failed: {error}"),
            RunEnd::Canceled => f.write_str("was stopped"),
            RunEnd::LimitReached { limit } => write!(f, "reached its limit of {limit}"),
            RunEnd::Interrupted => f.write_str("was interrupted"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    Turns,
    Time,
    Tokens,
    /// More tasks than any run may start.
    Tasks,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Turns => "turns",
            Limit::Time => "time",
            Limit::Tokens => "tokens",
            Limit::Tasks => "tasks",
        })
    }
}

/// Why something could not be done at all, in contrast to done and not good enough.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct CrashError {
    pub name: String,
    pub message: String,
    pub cause: Option<String>,
    /// Whether a cap of the turn or the session is used up, which says nothing about the account.
    #[serde(default, rename = "ownCap", skip_serializing_if = "std::ops::Not::not")]
    pub own_cap: bool,
}

impl CrashError {
    pub fn new(name: &str, message: impl Into<String>) -> Self {
        Self { name: name.to_owned(), message: message.into(), cause: None, own_cap: false }
    }

    /// The error as JSON, as decisions show it.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| self.message.clone())
    }
}

impl From<&TurnFailure> for CrashError {
    fn from(failure: &TurnFailure) -> Self {
        let stderr = failure.evidence.stderr.trim();
        Self {
            name: failure.kind.as_str().to_owned(),
            message: failure.message.clone(),
            cause: (!stderr.is_empty()).then(|| stderr.to_owned()),
            own_cap: failure.is_own_cap(),
        }
    }
}

/// A command or a file of the criteria that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "check")]
pub enum CheckFailure {
    Command {
        run: String,
        /// Why it did not exit with 0.
        how: String,
        /// The end of what it wrote.
        output: String,
    },
    File {
        path: String,
    },
}

impl fmt::Display for CheckFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckFailure::Command { run, how, .. } => write!(f, "`{run}` {how}"),
            CheckFailure::File { path } => write!(f, "{path} does not exist"),
        }
    }
}

/// A git worktree that was made for a part of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Worktree {
    pub root: PathBuf,
    /// Working directory in it: the same path within the repository as outside.
    pub directory: PathBuf,
    pub branch: String,
    /// The commit that it began with.
    pub base: String,
}

mod iso {
    use jiff::Timestamp;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{at:.3}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
