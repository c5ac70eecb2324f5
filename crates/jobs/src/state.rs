//! A run as its records tell it, and what it does next. Pure: everything that a run knows comes from its log, so a process
//! that finds the log knows as much as the one that wrote it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use hangar_protocol::data::RunAssigned;
use jiff::Timestamp;
use serde::Serialize;

use crate::entry::{CommandCheck, DRIVING, Work, WorkId};
use crate::progress::{NextAction, ProgressInput, WorkProgress};
use crate::prompt::Values;
use crate::record::{
    CrashError, Limit, RunEnd, RunFact, RunId, RunOrder, RunRecord, Subject, TaskEnd, TaskId, TaskSessionId,
    Worktree,
};
use crate::task::{TaskMode, TaskOrder, TaskRun};

/// Maximum number of running tasks of one run; the rest of a wide `Par` is queued.
const MAX_PARALLEL_TASKS: usize = 64;
/// Maximum number of tasks that a run starts in all, whatever its loops do.
const MAX_TASKS: u64 = 10_000;

/// Next step of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunStep {
    /// Logs a fact.
    Note(RunFact),
    /// Performs an effect and logs its result.
    Do(RunEffect),
}

#[derive(Debug, Clone, PartialEq)]
pub enum RunEffect {
    Open {
        task: TaskId,
        driving: bool,
        model: String,
        runtime: Option<String>,
        directory: PathBuf,
        /// When the task started.
        since: Timestamp,
    },
    Ask {
        task: TaskId,
        session: TaskSessionId,
        prompt: String,
    },
    Check {
        task: TaskId,
        commands: Vec<CommandCheck>,
        files: Vec<String>,
        directory: PathBuf,
    },
    MakeWorktree {
        place: String,
        number: u64,
        from: PathBuf,
    },
    LeaveWorktree {
        place: String,
        worktree: Worktree,
    },
}

/// Owner of an effect. Each has at most one running.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EffectOwner {
    Task(TaskId),
    Worktree(String),
}

impl RunEffect {
    pub fn owner(&self) -> EffectOwner {
        match self {
            RunEffect::Open { task, .. } | RunEffect::Ask { task, .. } | RunEffect::Check { task, .. } => {
                EffectOwner::Task(*task)
            }
            RunEffect::MakeWorktree { place, .. } | RunEffect::LeaveWorktree { place, .. } => {
                EffectOwner::Worktree(place.clone())
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum WorkStatus {
    Running { task: TaskId },
    Succeeded,
    Failed,
}

/// A log that does not begin as the log of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRun {
    #[error("the log does not begin with the start of a run")]
    NoStart,
    #[error("the entry of the run has no job or task \"{0}\"")]
    NothingToDo(String),
}

#[derive(Debug, Clone)]
pub struct RunProgress {
    run: RunId,
    order: RunOrder,
    work: Work,
    progress: WorkProgress,
    tasks: BTreeMap<TaskId, TaskRun>,
    works: BTreeMap<WorkId, WorkStatus>,
    worktrees: BTreeMap<String, Worktree>,
    worktrees_made: u64,
    tasks_started: u64,
    previous: Option<String>,
    crashed: Option<CrashError>,
    turns: u64,
    tokens: u64,
    at_work: Duration,
    last: Timestamp,
    records: u64,
    end: Option<RunEnd>,
}

impl RunProgress {
    /// Folds the records.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Result<Self, NoRun> {
        let mut records = records.into_iter();
        let mut state = records.next().map_or(Err(NoRun::NoStart), Self::begin)?;
        for record in records {
            state.apply(record);
        }
        Ok(state)
    }

    /// A run that has just started.
    pub fn begin(first: &RunRecord) -> Result<Self, NoRun> {
        let RunFact::RunStarted { run, order } = &first.fact else { return Err(NoRun::NoStart) };
        let work = order.work().ok_or_else(|| NoRun::NothingToDo(order.subject.name().to_owned()))?;
        Ok(Self {
            run: run.clone(),
            order: order.clone(),
            progress: WorkProgress::begin(&work),
            work,
            tasks: BTreeMap::new(),
            works: BTreeMap::new(),
            worktrees: BTreeMap::new(),
            worktrees_made: 0,
            tasks_started: 0,
            previous: None,
            crashed: None,
            turns: 0,
            tokens: 0,
            at_work: Duration::ZERO,
            last: first.at,
            records: 1,
            end: None,
        })
    }

    pub fn run(&self) -> &RunId {
        &self.run
    }

    pub fn order(&self) -> &RunOrder {
        &self.order
    }

    pub fn end(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }

    /// The latest execution of each work.
    pub fn works(&self) -> &BTreeMap<WorkId, WorkStatus> {
        &self.works
    }

    /// Worktrees that were made and not left.
    pub fn worktrees(&self) -> &BTreeMap<String, Worktree> {
        &self.worktrees
    }

    pub fn turns(&self) -> u64 {
        self.turns
    }

    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    pub fn next_seq(&self) -> u64 {
        self.records
    }

    pub fn is_running(&self, task: TaskId) -> bool {
        self.tasks.get(&task).is_some_and(|task| task.end().is_none())
    }

    /// Assignment of a session that works on a task.
    pub fn assignment(&self, task: TaskId, driving: bool) -> Option<RunAssigned> {
        let task = self.tasks.get(&task)?;
        Some(RunAssigned {
            run: self.run.0.clone(),
            job: self.order.subject.name().to_owned(),
            work_id: task.work().0,
            task: task.name().to_owned(),
            driving,
        })
    }

    /// Whether all its tasks wait for sessions, and so for slots.
    fn only_waits(&self) -> bool {
        !self.tasks.is_empty() && self.tasks.values().all(TaskRun::wants_session)
    }

    /// Remaining working time, if it is limited. A run that only waits has no time running out.
    pub fn time_left(&self, now: Timestamp) -> Option<Duration> {
        if self.only_waits() {
            return None;
        }
        let limit = Duration::from_secs(self.order.limits().seconds?);
        Some(limit.saturating_sub(self.at_work + since(self.last, now)))
    }

    /// Whether another process can continue it. A leased session is gone with its owner.
    pub fn can_resume(&self) -> bool {
        self.end.is_none() && self.borrowed().is_none()
    }

    fn borrowed(&self) -> Option<&TaskSessionId> {
        match &self.order.subject {
            Subject::Job { .. } => None,
            Subject::Task { borrowed_session, .. } => borrowed_session.as_ref(),
        }
    }

    pub fn apply(&mut self, record: &RunRecord) {
        // The time in which no process was at work does not count, nor does that in the queue.
        if record.fact != RunFact::RunResumed && !self.only_waits() {
            self.at_work += since(self.last, record.at);
        }
        self.last = record.at;
        self.records = record.seq + 1;
        let work = &self.work;
        match &record.fact {
            RunFact::RunStarted { .. } => {}
            RunFact::RunResumed => self.tasks.values_mut().for_each(|task| task.apply(&record.fact)),
            RunFact::WorktreeMade { place, worktree } => {
                self.worktrees_made += 1;
                self.progress.apply(work, &ProgressInput::WorktreeMade(place, &worktree.directory));
                self.worktrees.insert(place.clone(), worktree.clone());
            }
            RunFact::WorktreeLeft { place, .. } => {
                self.worktrees.remove(place);
                self.progress.apply(work, &ProgressInput::WorktreeLeft(place));
            }
            RunFact::WorktreeFailed { error, .. } => self.crashed = Some(error.clone()),
            RunFact::WorkStarted { work_id, task, directory, .. } => {
                self.tasks_started += 1;
                self.progress.apply(work, &ProgressInput::Started(*work_id));
                self.works.insert(*work_id, WorkStatus::Running { task: *task });
                if let Some(order) = self.task_order(*task, *work_id, directory.clone(), record.at) {
                    self.tasks.insert(*task, TaskRun::new(order));
                }
            }
            RunFact::SessionStarted { task, .. }
            | RunFact::SessionRefused { task, .. }
            | RunFact::Prompted { task, .. }
            | RunFact::TurnEnded { task, .. }
            | RunFact::Checked { task, .. }
            | RunFact::Decided { task, .. }
            | RunFact::SessionStopped { task, .. }
            | RunFact::TaskStopped { task }
            | RunFact::TaskEnded { task, .. } => {
                match &record.fact {
                    RunFact::Prompted { .. } => self.turns += 1,
                    RunFact::TurnEnded { tokens, .. } => self.tokens += tokens,
                    _ => {}
                }
                if let Some(run) = self.tasks.get_mut(task) {
                    run.apply(&record.fact);
                }
            }
            RunFact::WorkStopped { work_id, task, succeeded } => {
                let status = if *succeeded { WorkStatus::Succeeded } else { WorkStatus::Failed };
                self.works.insert(*work_id, status);
                let Some(task) = self.tasks.remove(task) else { return };
                self.previous = Some(task.name().to_owned());
                match task.end() {
                    Some(TaskEnd::Crashed { error }) => self.crashed = Some(error.clone()),
                    _ => self.progress.apply(work, &ProgressInput::Stopped(*work_id, *succeeded)),
                }
            }
            RunFact::RunEnded { end } => self.end = Some(end.clone()),
        }
    }

    fn task_order(
        &self,
        id: TaskId,
        work: WorkId,
        directory: PathBuf,
        started: Timestamp,
    ) -> Option<TaskOrder> {
        let entry = &self.order.entry;
        let reference = self.work.task(work)?;
        let task = entry.tasks.get(&reference.task_id)?.clone();
        let driving_model = entry.models.get(DRIVING).cloned().unwrap_or_default();
        let named = reference.model_override.as_ref().or(task.model.as_ref());
        let named = named.and_then(|model| entry.model_id(model)).map(str::to_owned);
        let separate = task.criteria.as_ref().and_then(|criteria| criteria.run_condition_in_same_session);
        let mode = match self.borrowed() {
            Some(session) => TaskMode::Borrowing(session.clone()),
            None if separate == Some(false) => TaskMode::Multi,
            None => TaskMode::Single,
        };
        let borrowing = matches!(mode, TaskMode::Borrowing(_));
        // A configured agent has a model of its own.
        let usual = if task.agent.is_some() { String::new() } else { driving_model.clone() };
        let model = named.clone().unwrap_or(usual);
        let input = &self.order.input;
        let skip = matches!(self.order.subject, Subject::Task { skip_availability: true, .. });
        Some(TaskOrder {
            id,
            work,
            name: reference.task_id.clone(),
            started,
            mode,
            values: Values {
                user_input: (!input.is_empty()).then(|| input.clone()),
                // A borrowed session has a model of its own, which the task does not choose.
                task_model: Some(if borrowing { named.unwrap_or_default() } else { model.clone() }),
                ..Values::default()
            },
            model,
            runtime: task.worker().map(str::to_owned).or_else(|| self.order.runtime.clone()),
            driving_model,
            driving_runtime: self.order.runtime.clone(),
            driving_retries: entry.driving_session_retries.clone(),
            directory,
            previous: self.previous.clone(),
            check_availability: !borrowing && !skip,
            task,
        })
    }

    /// Next step of an owner that has no effect running. `None` if all have to wait.
    pub fn next(&self, busy: &BTreeSet<EffectOwner>) -> Option<RunStep> {
        let ended = |end: RunEnd| Some(RunStep::Note(RunFact::RunEnded { end }));
        if self.end.is_some() {
            return None;
        }
        if let Some(error) = &self.crashed {
            return ended(RunEnd::Failed { error: Some(error.clone()) });
        }
        match self.progress.result() {
            Some(true) => return ended(RunEnd::Succeeded),
            Some(false) => return ended(RunEnd::Failed { error: None }),
            None => {}
        }
        for (id, task) in &self.tasks {
            if let Some(end) = task.end() {
                let (work_id, succeeded) = (task.work(), end.succeeded());
                return Some(RunStep::Note(RunFact::WorkStopped { work_id, task: *id, succeeded }));
            }
        }
        for wish in self.progress.wishes(&self.order.working_directory) {
            if let Some(step) = self.grant(wish, busy) {
                return Some(step);
            }
        }
        for task in
            self.tasks.iter().filter(|(id, _)| !busy.contains(&EffectOwner::Task(**id))).map(|(_, task)| task)
        {
            match task.next() {
                Some(RunStep::Note(RunFact::Prompted { .. })) if self.limit().is_some() => {
                    return ended(RunEnd::LimitReached { limit: self.limit()? });
                }
                Some(RunStep::Note(RunFact::Prompted { .. })) if task.limit_reached().is_some() => {
                    return task.limit_reached();
                }
                Some(step) => return Some(step),
                None => {}
            }
        }
        None
    }

    /// The limit that forbids another prompt.
    fn limit(&self) -> Option<Limit> {
        let limits = self.order.limits();
        if limits.turns.is_some_and(|turns| self.turns >= turns) {
            return Some(Limit::Turns);
        }
        limits.tokens.filter(|tokens| self.tokens >= *tokens).map(|_| Limit::Tokens)
    }

    fn grant(&self, wish: NextAction, busy: &BTreeSet<EffectOwner>) -> Option<RunStep> {
        match wish {
            NextAction::Start { .. } if self.tasks.len() >= MAX_PARALLEL_TASKS => None,
            NextAction::Start { .. } if self.tasks_started >= MAX_TASKS => {
                Some(RunStep::Note(RunFact::RunEnded { end: RunEnd::LimitReached { limit: Limit::Tasks } }))
            }
            NextAction::Start { work, directory } => {
                let name = self.work.task(work)?.task_id.clone();
                let task = TaskId(self.tasks_started);
                Some(RunStep::Note(RunFact::WorkStarted { work_id: work, task, name, directory }))
            }
            NextAction::MakeWorktree { place, .. } | NextAction::LeaveWorktree { place }
                if busy.contains(&EffectOwner::Worktree(place.clone())) =>
            {
                None
            }
            NextAction::MakeWorktree { place, from } => {
                Some(RunStep::Do(RunEffect::MakeWorktree { place, number: self.worktrees_made, from }))
            }
            NextAction::LeaveWorktree { place } => {
                let worktree = self.worktrees.get(&place)?.clone();
                Some(RunStep::Do(RunEffect::LeaveWorktree { place, worktree }))
            }
        }
    }
}

/// Clocks may be set back.
fn since(earlier: Timestamp, later: Timestamp) -> Duration {
    Duration::try_from(later.duration_since(earlier)).unwrap_or_default()
}
