//! A run as the API shows it: a fold over its records.

use std::collections::{BTreeMap, VecDeque};

use hangar_jobs::chart::{ChartGraph, chart};
use hangar_jobs::record::{CheckFailure, RunEnd, RunFact, RunId, RunRecord, TaskId};
use hangar_scheduler::item::ItemId;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::slots::item_id;
use crate::hub::iso;

/// Decisions that are shown of a run; of a long one the last.
const MOST_DECISIONS: usize = 1000;
/// Checks that are shown of a run; of a long one the last.
const MOST_CHECKS: usize = 100;
/// Sessions that are shown of a work; of many attempts the last.
const MOST_SESSIONS: usize = 100;

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub id: String,
    /// Name of the job, or of the task if only that was started.
    pub job: String,
    pub state: RunState,
    pub started_at: String,
    pub ended_at: Option<String>,
    pub workspace: String,
    pub input: Option<String>,
    pub turns: u64,
    pub tokens: u64,
    /// Why it ended, if the state does not say it all.
    pub reason: Option<String>,
    pub works: Vec<WorkView>,
    /// Whether it can be continued.
    pub resumable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    Running,
    Succeeded,
    Failed,
    Canceled,
    /// Its process ended first.
    Interrupted,
    /// It reached one of its limits.
    Limited,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RunWork")]
pub struct WorkView {
    pub work_id: u32,
    pub task: String,
    pub state: WorkState,
    /// Number of starts; more than one in a loop.
    pub starts: u64,
    /// Why it waits in the queue, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// Sessions of the last start.
    pub sessions: Vec<SessionView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkState {
    Waiting,
    Running,
    Succeeded,
    Failed,
    /// It or its run was stopped.
    Stopped,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "RunSession")]
pub struct SessionView {
    pub id: String,
    /// Whether it checks the work; also true if it does both.
    pub driving: bool,
    /// Counted separately for sessions that work and sessions that check.
    pub attempt: u64,
    pub succeeded: Option<bool>,
}

/// A run with its chart and decisions.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RunDetails {
    #[serde(flatten)]
    pub run: Run,
    pub chart: ChartGraph,
    pub decisions: Vec<DecisionView>,
    /// Checks of the commands and files of criteria, in order.
    pub checks: Vec<CheckView>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Decision")]
pub struct DecisionView {
    pub at: String,
    pub work_id: u32,
    pub task: String,
    pub reason: String,
}

/// A check of the commands and files of a task's criteria.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Check")]
pub struct CheckView {
    pub at: String,
    pub work_id: u32,
    pub task: String,
    /// None if all is as it should be.
    pub failures: Vec<FailedCheck>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FailedCheck {
    /// The command or file, and what is wrong with it.
    pub what: String,
    /// The end of what a command wrote.
    pub output: Option<String>,
}

impl From<&CheckFailure> for FailedCheck {
    fn from(failure: &CheckFailure) -> Self {
        let output = match failure {
            CheckFailure::Command { output, .. } => Some(output.clone()),
            CheckFailure::File { .. } => None,
        };
        Self { what: failure.to_string(), output }
    }
}

/// The fold.
#[derive(Debug, Clone)]
pub(crate) struct RunView {
    run: Run,
    chart: ChartGraph,
    decisions: VecDeque<DecisionView>,
    checks: VecDeque<CheckView>,
    works: BTreeMap<u32, WorkView>,
    tasks: BTreeMap<TaskId, u32>,
    attempts: BTreeMap<(u32, bool), u64>,
    pub(crate) end: Option<RunEnd>,
    pub(crate) next_seq: u64,
    borrows: bool,
}

impl RunView {
    /// Folds the records. `None` if they do not begin as a run.
    pub(crate) fn fold<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Option<Self> {
        let mut records = records.into_iter();
        let mut view = Self::begin(records.next()?)?;
        records.for_each(|record| view.apply(record));
        Some(view)
    }

    pub(crate) fn begin(first: &RunRecord) -> Option<Self> {
        let RunFact::RunStarted { run, order } = &first.fact else { return None };
        let work = order.work()?;
        let works = work.tasks().into_iter().map(|task| {
            let id = task.work_id_in_job.0;
            let view = WorkView {
                work_id: id,
                task: task.task_id.clone(),
                state: WorkState::Waiting,
                starts: 0,
                waits: None,
                sessions: Vec::new(),
            };
            (id, view)
        });
        let borrows =
            matches!(&order.subject, hangar_jobs::record::Subject::Task { borrowed_session: Some(_), .. });
        Some(Self {
            run: Run {
                id: run.0.clone(),
                job: order.subject.name().to_owned(),
                state: RunState::Running,
                started_at: iso(first.at),
                ended_at: None,
                workspace: order.working_directory.display().to_string(),
                input: (!order.input.is_empty()).then(|| order.input.clone()),
                turns: 0,
                tokens: 0,
                reason: None,
                works: Vec::new(),
                resumable: false,
            },
            works: works.collect(),
            chart: chart(&work),
            decisions: VecDeque::new(),
            checks: VecDeque::new(),
            tasks: BTreeMap::new(),
            attempts: BTreeMap::new(),
            end: None,
            next_seq: first.seq + 1,
            borrows,
        })
    }

    pub(crate) fn apply(&mut self, record: &RunRecord) {
        self.next_seq = record.seq + 1;
        match &record.fact {
            RunFact::WorkStarted { work_id, task, .. } => {
                self.tasks.insert(*task, work_id.0);
                self.attempts.retain(|(work, _), _| *work != work_id.0);
                if let Some(work) = self.works.get_mut(&work_id.0) {
                    work.state = WorkState::Running;
                    work.starts += 1;
                    work.sessions.clear();
                }
            }
            RunFact::SessionStarted { task, session, driving, .. } => {
                let Some(id) = self.tasks.get(task).copied() else { return };
                let attempt = self.attempts.entry((id, *driving)).or_default();
                *attempt += 1;
                let attempt = *attempt;
                if let Some(work) = self.works.get_mut(&id) {
                    if work.sessions.len() >= MOST_SESSIONS {
                        work.sessions.remove(0);
                    }
                    let id = session.0.clone();
                    work.sessions.push(SessionView { id, driving: *driving, attempt, succeeded: None });
                }
            }
            RunFact::SessionStopped { task, session, succeeded } => {
                if let Some(work) = self.work_of(*task)
                    && let Some(view) = work.sessions.iter_mut().find(|view| view.id == session.0)
                {
                    view.succeeded = Some(*succeeded);
                }
            }
            RunFact::Prompted { .. } => self.run.turns += 1,
            RunFact::TurnEnded { tokens, .. } => self.run.tokens += tokens,
            RunFact::Decided { task, reason, .. } => {
                let Some(work_id) = self.tasks.get(task).copied() else { return };
                let task = self.works.get(&work_id).map(|work| work.task.clone()).unwrap_or_default();
                if self.decisions.len() >= MOST_DECISIONS {
                    self.decisions.pop_front();
                }
                self.decisions.push_back(DecisionView {
                    at: iso(record.at),
                    work_id,
                    task,
                    reason: reason.clone(),
                });
            }
            RunFact::Checked { task, failures } => {
                let Some(work_id) = self.tasks.get(task).copied() else { return };
                let task = self.works.get(&work_id).map(|work| work.task.clone()).unwrap_or_default();
                if self.checks.len() >= MOST_CHECKS {
                    self.checks.pop_front();
                }
                let failures = failures.iter().map(FailedCheck::from).collect();
                self.checks.push_back(CheckView { at: iso(record.at), work_id, task, failures });
            }
            RunFact::TaskStopped { task } => {
                if let Some(work) = self.work_of(*task) {
                    work.state = WorkState::Stopped;
                }
            }
            RunFact::WorkStopped { work_id, succeeded, .. } => {
                if let Some(work) =
                    self.works.get_mut(&work_id.0).filter(|work| work.state != WorkState::Stopped)
                {
                    work.state = if *succeeded { WorkState::Succeeded } else { WorkState::Failed };
                }
            }
            RunFact::RunEnded { end } => self.ended(end, iso(record.at)),
            RunFact::RunStarted { .. }
            | RunFact::RunResumed
            | RunFact::WorktreeMade { .. }
            | RunFact::WorktreeLeft { .. }
            | RunFact::WorktreeFailed { .. }
            | RunFact::SessionRefused { .. }
            | RunFact::TaskEnded { .. } => {}
        }
    }

    fn ended(&mut self, end: &RunEnd, at: String) {
        for work in self.works.values_mut().filter(|work| work.state == WorkState::Running) {
            work.state = WorkState::Stopped;
        }
        self.run.ended_at = Some(at);
        (self.run.state, self.run.reason) = match end {
            RunEnd::Succeeded => (RunState::Succeeded, None),
            RunEnd::Failed { error } => (RunState::Failed, error.as_ref().map(ToString::to_string)),
            RunEnd::Canceled => (RunState::Canceled, None),
            RunEnd::LimitReached { limit } => {
                (RunState::Limited, Some(format!("the run reached its limit of {limit}")))
            }
            RunEnd::Interrupted => (
                RunState::Interrupted,
                Some("the session that it worked in was closed with the portal".to_owned()),
            ),
        };
        self.end = Some(end.clone());
    }

    fn work_of(&mut self, task: TaskId) -> Option<&mut WorkView> {
        self.works.get_mut(self.tasks.get(&task)?)
    }

    /// Its state now; `under_way` if a process is working on it.
    pub(crate) fn run(&self, under_way: bool) -> Run {
        let left = self.end.is_none() && !under_way;
        Run {
            state: if left { RunState::Interrupted } else { self.run.state },
            works: self.works.values().cloned().collect(),
            resumable: left && !self.borrows,
            ..self.run.clone()
        }
    }

    /// Adds why tasks wait, from the reasons of their items in the queue.
    pub(crate) fn explain(&self, run: &mut Run, reasons: &[(ItemId, String)]) {
        for (task, work) in &self.tasks {
            let item = item_id(&RunId(self.run.id.clone()), *task);
            let reason = reasons.iter().find(|(id, _)| *id == item).map(|(_, reason)| reason.clone());
            if let Some(view) = run.works.iter_mut().find(|view| view.work_id == *work) {
                view.waits = reason;
            }
        }
    }

    pub(crate) fn details(&self, under_way: bool) -> RunDetails {
        RunDetails {
            run: self.run(under_way),
            chart: self.chart.clone(),
            decisions: self.decisions.iter().cloned().collect(),
            checks: self.checks.iter().cloned().collect(),
        }
    }
}
