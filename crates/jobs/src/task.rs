//! One task of a run: what it has come to, and what it does next. Pure: facts come in, the next step comes out.
//!
//! A task sends prompts. Each sending is a [`Mission`]: it needs a session, may crash and be tried again in a new one, and
//! ends with what the agent reported. Between missions the criteria are judged.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::decision::{Decision, names};
use crate::entry::{Criteria, DrivingRetry, Task, ToolName, WorkId};
use crate::prompt::{TaskPrompt, Values, expand_dynamic};
use crate::record::{CheckFailure, CrashError, RunFact, TaskEnd, TaskId, TaskSessionId, TurnReport};
use crate::retry;
use crate::state::{RunEffect, RunStep};
use crate::tools::{JobTool, Round};

/// Maximum number of attempts of one prompt, if sessions crash.
pub const CRASH_ATTEMPTS: u32 = 5;
/// Maximum number of attempts of one prompt that the end of Hangar's own process may cut off, in case that the agent ends it.
const MOST_INTERRUPTIONS: u32 = 200;
/// Stands before a prompt that is sent again because the session crashed.
pub const SESSION_CRASH_PREFIX: &str = "The session crashed, please redo and here is the last request:\n";
/// Size of a failed check's output that an agent is shown.
const SHOWN_OUTPUT: usize = 4 << 10;

/// Sessions that a task works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskMode {
    /// In a leased session, which stays open.
    Borrowing(TaskSessionId),
    /// In one of its own, for everything.
    Single,
    /// In one of its own for each mission.
    Multi,
}

/// Order of a task.
#[derive(Debug, Clone)]
pub(crate) struct TaskOrder {
    pub id: TaskId,
    pub work: WorkId,
    pub name: String,
    pub started: Timestamp,
    pub task: Task,
    pub mode: TaskMode,
    pub model: String,
    pub runtime: Option<String>,
    pub driving_model: String,
    pub driving_runtime: Option<String>,
    pub driving_retries: Option<Vec<DrivingRetry>>,
    pub directory: PathBuf,
    pub values: Values,
    /// The task that ended before this one began.
    pub previous: Option<String>,
    pub check_availability: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct TaskRun {
    order: TaskOrder,
    values: Values,
    sessions: Vec<OpenSession>,
    phase: Phase,
    judgement: Judgement,
    /// Number of the retry; 0 is the first try.
    retry: u32,
    /// Prompts that were sent, and tokens of their turns.
    turns: u64,
    tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenSession {
    id: TaskSessionId,
    dead: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    /// Checks that the required task ran before.
    Previous,
    Mission(Mission),
    /// The agent has done its part.
    Judging,
    Verdict {
        passed: bool,
        announced: bool,
    },
    Drained,
    Ending {
        succeeded: bool,
    },
    Crashing {
        error: CrashError,
        told: bool,
    },
    Over(TaskEnd),
}

#[derive(Debug, Clone, PartialEq)]
struct Mission {
    purpose: Purpose,
    prompt: String,
    /// Attempts before this one that the agent ended.
    crashes: u32,
    /// Attempts that the end of Hangar's own process cut off. The agent is not to blame, so they use up no attempts.
    interruptions: u32,
    at: At,
}

impl Mission {
    /// Text that is sent.
    fn words(&self) -> String {
        let prefix = if self.crashes + self.interruptions > 0 { SESSION_CRASH_PREFIX } else { "" };
        format!("{prefix}{}", self.prompt)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Availability,
    Prompt,
    Condition,
}

#[derive(Debug, Clone, PartialEq)]
enum At {
    Due,
    Asked,
    Crashed(CrashError),
    /// The dead session is put away before the next one.
    Burying {
        interrupted: bool,
    },
    Refused(CrashError),
    /// A retry that no session survived.
    GivenUp,
    Done(Round),
}

/// Results of the criteria since the last prompt.
#[derive(Debug, Clone, Default, PartialEq)]
struct Judgement {
    missing: Vec<JobTool>,
    missing_told: bool,
    failures: Option<Vec<CheckFailure>>,
    failures_told: bool,
    condition: Option<bool>,
}

impl Judgement {
    fn passed(&self) -> bool {
        self.missing.is_empty()
            && self.failures.as_ref().is_none_or(Vec::is_empty)
            && self.condition.unwrap_or(true)
    }
}

impl TaskRun {
    pub(crate) fn new(order: TaskOrder) -> Self {
        let values = order.values.clone();
        let mut run = Self {
            order,
            values,
            sessions: Vec::new(),
            phase: Phase::Previous,
            judgement: Judgement::default(),
            retry: 0,
            turns: 0,
            tokens: 0,
        };
        // Where there is a condition too, it has the last word about availability.
        if run.wanted_before().is_none() || (run.came_in_order() && run.availability_condition().is_some()) {
            run.phase = run.after_previous();
        }
        run
    }

    pub(crate) fn work(&self) -> WorkId {
        self.order.work
    }

    pub(crate) fn name(&self) -> &str {
        &self.order.name
    }

    pub(crate) fn end(&self) -> Option<&TaskEnd> {
        match &self.phase {
            Phase::Over(end) => Some(end),
            _ => None,
        }
    }

    fn criteria(&self) -> Option<&Criteria> {
        self.order.task.criteria.as_ref()
    }

    fn wanted_before(&self) -> Option<&[String]> {
        let availability = self.order.task.availability.as_ref().filter(|_| self.order.check_availability)?;
        availability.previous_tasks.as_deref()
    }

    fn came_in_order(&self) -> bool {
        let wanted = self.wanted_before().unwrap_or_default();
        self.order.previous.as_ref().is_some_and(|previous| wanted.contains(previous))
    }

    fn availability_condition(&self) -> Option<&TaskPrompt> {
        let availability = self.order.task.availability.as_ref().filter(|_| self.order.check_availability)?;
        availability.condition.as_ref()
    }

    fn after_previous(&self) -> Phase {
        match self.availability_condition() {
            Some(condition) => self.mission(Purpose::Availability, condition, ""),
            None => self.mission(Purpose::Prompt, &self.order.task.prompt, ""),
        }
    }

    /// Values change, so a prompt is made when it is about to be sent.
    fn mission(&self, purpose: Purpose, prompt: &TaskPrompt, suffix: &str) -> Phase {
        match expand_dynamic(prompt, &self.values) {
            Ok(prompt) => {
                let prompt = format!("{prompt}{suffix}");
                Phase::Mission(Mission { purpose, prompt, crashes: 0, interruptions: 0, at: At::Due })
            }
            Err(error) => {
                Phase::Crashing { error: CrashError::new("invalid_prompt", error.to_string()), told: false }
            }
        }
    }

    fn retry_mission(&self) -> Phase {
        let mut suffix = String::new();
        if !self.judgement.missing.is_empty() {
            suffix.push_str(&format!("\n## Required Tool Not Called: {}", names(&self.judgement.missing)));
        }
        for failure in self.judgement.failures.iter().flatten() {
            suffix.push_str(&format!("\n## Check Failed: {failure}"));
            if let CheckFailure::Command { output, .. } = failure
                && !output.is_empty()
            {
                suffix.push('\n');
                suffix.push_str(tail(output, SHOWN_OUTPUT));
            }
        }
        let additional =
            self.criteria().and_then(|criteria| criteria.failure_action.additional_prompt.as_ref());
        if let Some(Ok(additional)) = additional.map(|prompt| expand_dynamic(prompt, &self.values)) {
            suffix.push_str(&format!("\n## You accidentally Stopped\n{additional}"));
        }
        self.mission(Purpose::Prompt, &self.order.task.prompt, &suffix)
    }

    // What happened.

    pub(crate) fn apply(&mut self, fact: &RunFact) {
        match fact {
            RunFact::Prompted { .. } => self.turns += 1,
            RunFact::TurnEnded { tokens, .. } => self.tokens += tokens,
            _ => {}
        }
        match fact {
            RunFact::SessionStarted { session, .. } => {
                self.sessions.push(OpenSession { id: session.clone(), dead: false });
            }
            RunFact::SessionRefused { error, .. } => self.at(At::Refused(error.clone())),
            RunFact::Prompted { .. } => self.at(At::Asked),
            RunFact::TurnEnded { end: TurnReport::Completed { round }, .. } => {
                if let Some(document) = &round.document {
                    self.values.document = Some(document.clone());
                }
                if let Some(answer) = &round.answer {
                    self.values.answer = Some(answer.clone());
                }
                self.at(At::Done(round.clone()));
            }
            RunFact::TurnEnded { end: TurnReport::Crashed { error }, session, .. } => {
                self.bury_later(session);
                self.at(At::Crashed(error.clone()));
            }
            RunFact::Checked { failures, .. } => self.judgement.failures = Some(failures.clone()),
            RunFact::Decided { decision, .. } => self.decided(decision),
            RunFact::SessionStopped { session, .. } => {
                self.sessions.retain(|open| open.id != *session);
                self.next_attempt();
            }
            RunFact::TaskStopped { .. } => {
                let error = CrashError::new("task_stopped", "the task was stopped");
                self.phase = Phase::Crashing { error, told: false };
            }
            RunFact::TaskEnded { end, .. } => self.phase = Phase::Over(end.clone()),
            RunFact::RunResumed => self.interrupted(),
            RunFact::RunStarted { .. }
            | RunFact::WorktreeMade { .. }
            | RunFact::WorktreeLeft { .. }
            | RunFact::WorktreeFailed { .. }
            | RunFact::WorkStarted { .. }
            | RunFact::WorkStopped { .. }
            | RunFact::RunEnded { .. } => {}
        }
        self.settle();
    }

    fn at(&mut self, at: At) {
        if let Phase::Mission(mission) = &mut self.phase {
            mission.at = at;
        }
    }

    fn bury_later(&mut self, session: &TaskSessionId) {
        for open in self.sessions.iter_mut().filter(|open| open.id == *session) {
            open.dead = true;
        }
    }

    fn next_attempt(&mut self) {
        let buried = self.sessions.iter().all(|open| !open.dead);
        if let Phase::Mission(mission) = &mut self.phase
            && let At::Burying { interrupted } = mission.at
            && buried
        {
            match interrupted {
                true => mission.interruptions += 1,
                false => mission.crashes += 1,
            }
            mission.at = At::Due;
        }
    }

    /// The process that the sessions belonged to is gone, and they with it.
    fn interrupted(&mut self) {
        for open in &mut self.sessions {
            open.dead = true;
        }
        if let Phase::Mission(mission) = &mut self.phase
            && mission.at == At::Asked
        {
            let message = "hangar was ended while the agent was at work";
            mission.at = At::Crashed(CrashError::new(retry::INTERRUPTED, message));
        }
    }

    fn decided(&mut self, decision: &Decision) {
        match decision {
            Decision::AvailabilityPassed => {
                self.phase = self.mission(Purpose::Prompt, &self.order.task.prompt, "");
            }
            Decision::AvailabilityFailed { .. } | Decision::PreviousTaskMissing { .. } | Decision::Failed => {
                self.phase = Phase::Ending { succeeded: false };
            }
            Decision::ToolsMissing { .. } => self.judgement.missing_told = true,
            Decision::ChecksFailed { .. } => self.judgement.failures_told = true,
            Decision::ConditionPassed => self.judged(true),
            Decision::ConditionFailed { .. } => self.judged(false),
            Decision::RetryStarted { retry } => {
                self.retry = *retry;
                self.phase = self.retry_mission();
            }
            Decision::PassedOnRetry { .. } => self.phase = Phase::Verdict { passed: true, announced: true },
            Decision::FailedOnRetry { .. } => self.phase = Phase::Verdict { passed: false, announced: true },
            Decision::BudgetDrained { .. } => self.phase = Phase::Drained,
            Decision::Succeeded => self.phase = Phase::Ending { succeeded: true },
            Decision::SessionCrashed { error } => {
                self.at(At::Burying { interrupted: error.name == retry::INTERRUPTED });
                self.next_attempt();
            }
            Decision::BorrowedSessionCrashed { error }
            | Decision::BorrowedSessionCrashedInRetry { error } => {
                self.phase = Phase::Crashing { error: error.clone(), told: false };
            }
            Decision::CrashedInRetry { .. } => self.at(At::GivenUp),
            Decision::ReplacementFailed { error } => match &mut self.phase {
                Phase::Mission(mission)
                    if self.retry > 0 && mission.purpose == Purpose::Prompt && retry::is_retryable(error) =>
                {
                    mission.at = At::GivenUp;
                }
                _ => self.phase = Phase::Crashing { error: error.clone(), told: false },
            },
            Decision::TaskError { error } => {
                self.phase = Phase::Crashing { error: error.clone(), told: true };
            }
        }
    }

    fn judged(&mut self, condition: bool) {
        self.judgement.condition = Some(condition);
        self.phase = Phase::Judging;
    }

    /// Advances while nothing has to be logged or done.
    fn settle(&mut self) {
        if let Phase::Mission(Mission { purpose: Purpose::Prompt, at: At::Done(round), .. }) = &self.phase
            && (self.order.mode != TaskMode::Multi || self.sessions.is_empty())
        {
            let wanted = self.criteria().and_then(|criteria| criteria.tool_executed.as_ref());
            let wanted = wanted.into_iter().flatten().filter_map(ToolName::known);
            let missing = wanted.filter(|tool| !round.tools.contains(tool)).collect();
            self.judgement = Judgement { missing, ..Judgement::default() };
            self.phase = Phase::Judging;
        }
        if self.phase == Phase::Judging && self.judging().is_none() {
            let condition = self.criteria().and_then(|criteria| criteria.condition.as_ref());
            self.phase = match condition.filter(|_| self.judgement.condition.is_none()) {
                Some(condition) => self.mission(Purpose::Condition, condition, ""),
                None => Phase::Verdict { passed: self.judgement.passed(), announced: self.retry == 0 },
            };
        }
    }

    // What is next.

    /// Whether it can do nothing before it has a session.
    pub(crate) fn wants_session(&self) -> bool {
        matches!(self.next(), Some(RunStep::Do(RunEffect::Open { .. })))
    }

    pub(crate) fn next(&self) -> Option<RunStep> {
        let stop = |session: &OpenSession, succeeded: bool| {
            self.note(RunFact::SessionStopped { task: self.order.id, session: session.id.clone(), succeeded })
        };
        let end = |end: TaskEnd| self.note(RunFact::TaskEnded { task: self.order.id, end });
        Some(match &self.phase {
            Phase::Over(_) => return None,
            Phase::Previous if self.came_in_order() => self.decide(Decision::AvailabilityPassed),
            Phase::Previous => {
                let wanted = self.wanted_before().unwrap_or_default().to_vec();
                self.decide(Decision::PreviousTaskMissing { wanted, previous: self.order.previous.clone() })
            }
            Phase::Mission(mission) => return self.mission_step(mission),
            Phase::Judging => return self.judging(),
            Phase::Verdict { passed, announced } => {
                let retry = self.retry;
                let budget = self.criteria().map_or(0, |criteria| criteria.failure_action.retry_times);
                self.decide(match (passed, announced) {
                    (true, false) => Decision::PassedOnRetry { retry },
                    (false, false) => Decision::FailedOnRetry { retry },
                    (true, true) => Decision::Succeeded,
                    (false, true) if retry < budget => Decision::RetryStarted { retry: retry + 1 },
                    (false, true) => Decision::BudgetDrained { retries: retry },
                })
            }
            Phase::Drained => self.decide(Decision::Failed),
            Phase::Ending { succeeded } => match (self.sessions.first(), succeeded) {
                (Some(session), succeeded) => stop(session, *succeeded),
                (None, true) => end(TaskEnd::Succeeded),
                (None, false) => end(TaskEnd::Failed),
            },
            Phase::Crashing { error, told: false } => {
                self.decide(Decision::TaskError { error: error.clone() })
            }
            Phase::Crashing { error, told: true } => match self.sessions.first() {
                Some(session) => stop(session, false),
                None => end(TaskEnd::Crashed { error: error.clone() }),
            },
        })
    }

    fn note(&self, fact: RunFact) -> RunStep {
        RunStep::Note(fact)
    }

    /// The failure of the task, once a limit of its own forbids another prompt.
    pub(crate) fn limit_reached(&self) -> Option<RunStep> {
        let limits = self.order.task.limits;
        let over = |used: u64, limit: Option<u64>, what: &str| {
            let limit = limit.filter(|limit| used >= *limit)?;
            let message = format!("task \"{}\" has used its {limit} {what}", self.order.name);
            Some(self.decide(Decision::TaskError { error: CrashError::new("limit_reached", message) }))
        };
        over(self.turns, limits.turns, "turns").or_else(|| over(self.tokens, limits.tokens, "tokens"))
    }

    fn decide(&self, decision: Decision) -> RunStep {
        RunStep::Note(RunFact::decided(self.order.id, decision))
    }

    fn mission_step(&self, mission: &Mission) -> Option<RunStep> {
        let task = self.order.id;
        let stop = |session: &OpenSession, succeeded: bool| {
            self.note(RunFact::SessionStopped { task, session: session.id.clone(), succeeded })
        };
        Some(match &mission.at {
            At::Due => {
                if let Some(dead) = self.sessions.iter().find(|open| open.dead) {
                    return Some(stop(dead, false));
                }
                match self.session() {
                    Some(session) => self.note(RunFact::Prompted {
                        task,
                        session: session.clone(),
                        prompt: mission.words(),
                    }),
                    None => self.open(mission),
                }
            }
            At::Asked => RunStep::Do(RunEffect::Ask {
                task,
                session: self.session()?.clone(),
                prompt: mission.words(),
            }),
            At::Crashed(error) => self.decide(self.after_crash(mission, error.clone())),
            At::Burying { .. } => stop(self.sessions.iter().find(|open| open.dead)?, false),
            At::Refused(error) if mission.crashes + mission.interruptions > 0 => {
                self.decide(Decision::ReplacementFailed { error: error.clone() })
            }
            At::Refused(error) => self.decide(self.exhausted(mission, error.clone())),
            At::GivenUp => match self.sessions.first() {
                Some(session) => stop(session, false),
                None => self.decide(Decision::FailedOnRetry { retry: self.retry }),
            },
            At::Done(round) => {
                let passed = round.says_yes() && !round.tools.contains(&JobTool::PrerequisiteFailed);
                if let (TaskMode::Multi, Some(session)) = (&self.order.mode, self.sessions.first()) {
                    return Some(stop(session, mission.purpose == Purpose::Prompt || passed));
                }
                match (mission.purpose, passed) {
                    // Settled already.
                    (Purpose::Prompt, _) => return None,
                    (Purpose::Availability, true) => self.decide(Decision::AvailabilityPassed),
                    (Purpose::Availability, false) => {
                        let condition = self.availability_condition().cloned().unwrap_or_default();
                        self.decide(Decision::AvailabilityFailed { condition })
                    }
                    (Purpose::Condition, _) if round.says_yes() => self.decide(Decision::ConditionPassed),
                    (Purpose::Condition, _) => {
                        let condition = self.criteria().and_then(|criteria| criteria.condition.clone());
                        self.decide(Decision::ConditionFailed { condition: condition.unwrap_or_default() })
                    }
                }
            }
        })
    }

    fn session(&self) -> Option<&TaskSessionId> {
        match &self.order.mode {
            TaskMode::Borrowing(session) => Some(session),
            TaskMode::Single | TaskMode::Multi => self.sessions.first().map(|open| &open.id),
        }
    }

    fn open(&self, mission: &Mission) -> RunStep {
        let on_driving_model = self.drives(mission);
        let runtime = if on_driving_model { &self.order.driving_runtime } else { &self.order.runtime };
        RunStep::Do(RunEffect::Open {
            task: self.order.id,
            driving: self.order.mode == TaskMode::Single || on_driving_model,
            model: self.model(mission),
            runtime: runtime.clone(),
            directory: self.order.directory.clone(),
            since: self.order.started,
        })
    }

    /// Whether a mission is put to a session of the driving model.
    fn drives(&self, mission: &Mission) -> bool {
        self.order.mode == TaskMode::Multi && mission.purpose != Purpose::Prompt
    }

    /// The models that the attempts after the first are made on, in order.
    fn replacements(&self, mission: &Mission) -> Vec<String> {
        match (&self.order.mode, &self.order.driving_retries) {
            (TaskMode::Borrowing(_), _) => Vec::new(),
            (TaskMode::Multi, Some(retries)) if self.drives(mission) => {
                let rounds = retries.iter().map(|retry| retry.retries).max().unwrap_or_default();
                (0..rounds)
                    .flat_map(|round| retries.iter().filter(move |retry| retry.retries > round))
                    .map(|retry| retry.model_id.clone())
                    .collect()
            }
            _ if self.drives(mission) => same(&self.order.driving_model),
            _ => same(&self.order.model),
        }
    }

    fn model(&self, mission: &Mission) -> String {
        let first = if self.drives(mission) { &self.order.driving_model } else { &self.order.model };
        match mission.crashes.checked_sub(1) {
            None => first.clone(),
            Some(index) => {
                self.replacements(mission).into_iter().nth(index as usize).unwrap_or_else(|| first.clone())
            }
        }
    }

    fn after_crash(&self, mission: &Mission, error: CrashError) -> Decision {
        match &self.order.mode {
            TaskMode::Borrowing(_) if self.retry > 0 => Decision::BorrowedSessionCrashedInRetry { error },
            TaskMode::Borrowing(_) => Decision::BorrowedSessionCrashed { error },
            TaskMode::Single | TaskMode::Multi => {
                if error.name == retry::INTERRUPTED && mission.interruptions < MOST_INTERRUPTIONS {
                    return Decision::SessionCrashed { error };
                }
                let (model, replacements) = (self.model(mission), self.replacements(mission));
                match replacements.get(mission.crashes as usize) {
                    Some(next) if retry::is_worthwhile(&error, &model, next) => {
                        Decision::SessionCrashed { error }
                    }
                    _ => self.exhausted(mission, error),
                }
            }
        }
    }

    /// No attempt is left. A retry has failed then, unless the next one is bound to fail too; anything else cannot be told.
    fn exhausted(&self, mission: &Mission, error: CrashError) -> Decision {
        match mission.purpose {
            Purpose::Prompt if self.retry > 0 && retry::is_retryable(&error) => {
                Decision::CrashedInRetry { retry: self.retry, error }
            }
            Purpose::Prompt | Purpose::Availability | Purpose::Condition => Decision::TaskError { error },
        }
    }

    fn judging(&self) -> Option<RunStep> {
        let criteria = self.criteria()?;
        let judgement = &self.judgement;
        if !judgement.missing.is_empty() && !judgement.missing_told {
            return Some(self.decide(Decision::ToolsMissing { tools: judgement.missing.clone() }));
        }
        match &judgement.failures {
            None if !criteria.commands.is_empty() || !criteria.files.is_empty() => {
                Some(RunStep::Do(RunEffect::Check {
                    task: self.order.id,
                    commands: criteria.commands.clone(),
                    files: criteria.files.clone(),
                    directory: self.order.directory.clone(),
                }))
            }
            Some(failures) if !failures.is_empty() && !judgement.failures_told => {
                Some(self.decide(Decision::ChecksFailed { failures: failures.clone() }))
            }
            _ => None,
        }
    }
}

fn same(model: &str) -> Vec<String> {
    vec![model.to_owned(); CRASH_ATTEMPTS as usize - 1]
}

/// The end of a text, from a whole character on.
fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}
