//! The records of a run in the words of the callbacks of its job, its tasks and their sessions.
//!
//! Callbacks have the order of the records. A job that
//! was stopped says so and nothing else; one that could not be carried out has failed first and says why then.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use hangar_jobs::driver::{RunListener, RunNotice};
use hangar_jobs::record::{
    CrashError, RunEnd, RunFact, RunId, RunRecord, TaskEnd, TaskId, TaskSessionId, TurnReport,
};

use super::entities::{
    JobStatus, PolledJob, PolledSession, PolledTables, PolledTask, SessionOwner, TaskOwner, WorkStatus,
};
use super::response::{JobCallback, JobResponse, SessionCallback, TaskCallback, TaskResponse};
use super::table::Named;

/// Converts one run's records into callbacks.
pub(crate) struct RunCallbacks {
    tables: Arc<PolledTables>,
    subject: Subject,
    tasks: HashMap<TaskId, Named<PolledTask>>,
    sessions: HashMap<TaskSessionId, Named<PolledSession>>,
}

enum Subject {
    Job(Arc<PolledJob>),
    /// One task in a session that stays open.
    Borrower(Named<PolledTask>),
}

impl RunCallbacks {
    pub(crate) fn of_job(tables: Arc<PolledTables>, job: Arc<PolledJob>) -> Self {
        Self { tables, subject: Subject::Job(job), tasks: HashMap::new(), sessions: HashMap::new() }
    }

    /// Callbacks of a task in a leased session, to which its prompts are reported.
    pub(crate) fn of_borrower(
        tables: Arc<PolledTables>,
        task: Named<PolledTask>,
        lent: (TaskSessionId, Named<PolledSession>),
    ) -> Self {
        let subject = Subject::Borrower(task);
        Self { tables, subject, tasks: HashMap::new(), sessions: HashMap::from([lent]) }
    }

    /// Listener for the executor of the run.
    pub(crate) fn into_audience(self) -> Arc<dyn RunListener> {
        Arc::new(Listening(Mutex::new(self)))
    }

    fn hear(&mut self, notice: RunNotice<'_>) {
        match notice {
            RunNotice::Record(record) => self.record(record),
            RunNotice::Event { session, event, .. } => {
                if let Some(session) = self.session(session) {
                    session.tell(|callbacks| callbacks.event(event));
                }
            }
        }
    }

    fn record(&mut self, record: &RunRecord) {
        match &record.fact {
            RunFact::WorkStarted { work_id, task, .. } => {
                let named = self.begin_task(*task);
                self.tasks.insert(*task, named.clone());
                if let Subject::Job(job) = &self.subject {
                    let running = WorkStatus::Running { task: named.id.clone() };
                    job.progress().works.insert(*work_id, running);
                    let callback = JobCallback::WorkStarted { work_id: work_id.0, task_id: named.id };
                    job.log.push(callback.into());
                }
            }
            RunFact::SessionStarted { task, session, driving, .. } => {
                let named = self.begin_session();
                self.sessions.insert(session.clone(), named.clone());
                let callback =
                    TaskCallback::TaskSessionStarted { session_id: named.id, is_driving: *driving };
                self.tell_task(*task, callback);
            }
            RunFact::Prompted { session, prompt, .. } => {
                if let Some(session) = self.session(session) {
                    let prompt = prompt.clone();
                    session.log.push(SessionCallback::OnGeneratedUserPrompt { prompt }.into());
                }
            }
            RunFact::TurnEnded { session, end, .. } => self.turn_ended(session, end),
            RunFact::Decided { task, reason, .. } => {
                self.tell_task(*task, TaskCallback::TaskDecision { reason: reason.clone() });
            }
            RunFact::SessionStopped { task, session, succeeded } => {
                let Some(named) = self.sessions.remove(session) else { return };
                named.entity.log.close();
                let callback =
                    TaskCallback::TaskSessionStopped { session_id: named.id, succeeded: *succeeded };
                self.tell_task(*task, callback);
            }
            // A client that stops a task receives nothing more of it.
            RunFact::TaskStopped { task } => self.close_task(*task),
            RunFact::TaskEnded { task, end } => {
                match end {
                    TaskEnd::Succeeded => self.tell_task(*task, TaskCallback::TaskSucceeded),
                    TaskEnd::Failed => self.tell_task(*task, TaskCallback::TaskFailed),
                    TaskEnd::Crashed { error } => {
                        self.tell_task(*task, TaskCallback::TaskFailed);
                        self.tell_task(*task, TaskResponse::Error { task_error: error.json() });
                    }
                }
                self.close_task(*task);
            }
            RunFact::WorkStopped { work_id, task, succeeded } => {
                self.tasks.remove(task);
                if let Subject::Job(job) = &self.subject {
                    let status = if *succeeded { WorkStatus::Succeeded } else { WorkStatus::Failed };
                    job.progress().works.insert(*work_id, status);
                    let callback = JobCallback::WorkStopped { work_id: work_id.0, succeeded: *succeeded };
                    job.log.push(callback.into());
                }
            }
            RunFact::RunEnded { end } => self.run_ended(end),
            RunFact::RunStarted { .. }
            | RunFact::RunResumed
            | RunFact::WorktreeMade { .. }
            | RunFact::WorktreeLeft { .. }
            | RunFact::WorktreeFailed { .. }
            | RunFact::SessionRefused { .. }
            | RunFact::Checked { .. } => {}
        }
    }

    /// Ends everything that the run leaves open.
    fn run_ended(&mut self, end: &RunEnd) {
        for (_, named) in self.tasks.drain() {
            named.entity.log.close();
        }
        match &self.subject {
            Subject::Borrower(named) => named.entity.log.close(),
            Subject::Job(job) => {
                for (_, named) in self.sessions.drain() {
                    named.entity.log.close();
                }
                let failed = |error: Option<&CrashError>| {
                    let error = error.map(|error| JobResponse::Error { job_error: error.json() });
                    std::iter::once(JobCallback::JobFailed.into()).chain(error)
                };
                match end {
                    RunEnd::Succeeded => job.end(JobStatus::Succeeded, [JobCallback::JobSucceeded.into()]),
                    RunEnd::Canceled => job.end(JobStatus::Canceled, [JobCallback::JobCanceled.into()]),
                    RunEnd::Failed { error } => job.end(JobStatus::Failed, failed(error.as_ref())),
                    RunEnd::LimitReached { .. } | RunEnd::Interrupted => {
                        let error = CrashError::new("stopped", format!("the job {end}"));
                        job.end(JobStatus::Failed, failed(Some(&error)));
                    }
                }
            }
        }
    }

    fn begin_task(&self, task: TaskId) -> Named<PolledTask> {
        match &self.subject {
            Subject::Borrower(named) => named.clone(),
            Subject::Job(job) => {
                let owner = TaskOwner::Job { job: Arc::clone(job), task };
                self.tables.tasks.put(PolledTask { log: self.tables.log(), owner })
            }
        }
    }

    fn begin_session(&self) -> Named<PolledSession> {
        self.tables.sessions.put(PolledSession::of_task(&self.tables))
    }

    /// A leased session reports the ends of its turns itself.
    fn turn_ended(&self, session: &TaskSessionId, end: &TurnReport) {
        let Some(session) = self.session(session).filter(|session| session.owner == SessionOwner::Task)
        else {
            return;
        };
        session.tell(|callbacks| match end {
            TurnReport::Completed { .. } => callbacks.turn_ended(None),
            TurnReport::Crashed { error } => callbacks.turn_ended(Some(&error.message)),
        });
    }

    fn session(&self, session: &TaskSessionId) -> Option<&PolledSession> {
        Some(&self.sessions.get(session)?.entity)
    }

    fn tell_task(&self, task: TaskId, response: impl Into<TaskResponse>) {
        if let Some(task) = self.tasks.get(&task) {
            task.entity.log.push(response.into());
        }
    }

    fn close_task(&self, task: TaskId) {
        if let Some(task) = self.tasks.get(&task) {
            task.entity.log.close();
        }
    }
}

struct Listening(Mutex<RunCallbacks>);

impl RunListener for Listening {
    fn hear(&self, _: &RunId, notice: RunNotice<'_>) {
        self.0.lock().hear(notice);
    }
}

/// Marks the run as abandoned if it did not end.
impl Drop for Listening {
    fn drop(&mut self) {
        self.0.get_mut().run_ended(&RunEnd::Interrupted);
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
