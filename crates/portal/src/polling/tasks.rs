//! Tasks: those that clients start in their sessions, and those of jobs.

use std::sync::Arc;

use hangar_jobs::record::{CrashError, RunOrder, Subject, TaskSessionId};
use serde_json::json;

use super::answer::{PollingError, PollingResponse};
use super::entities::{PolledTask, TaskOwner};
use super::routes::Text;
use super::runs::RunCallbacks;
use super::table::Entity;
use super::{Polling, STOPPING_TIME};

impl Polling {
    pub(super) fn list_tasks(&self) -> PollingResponse {
        let entry = self.runs.entry();
        let tasks = entry.iter().flat_map(|entry| &entry.tasks);
        let tasks =
            tasks.map(|(name, task)| json!({ "name": name, "requireUserInput": task.require_user_input }));
        PollingResponse::Done(json!({ "tasks": tasks.collect::<Vec<_>>() }))
    }

    /// Starts a task in a session that stays its client's.
    pub(super) async fn start_task(
        &self,
        name: &str,
        session: &str,
        body: Text,
    ) -> Result<PollingResponse, PollingResponse> {
        let Some((session, of_hub)) = self.client_session(session) else {
            return Ok(PollingError::SessionNotFound.into());
        };
        let input = body.read().await?;
        let Some(entry) = self.runs.entry() else {
            return Ok(task_error("no_entry", "no jobs are installed".to_owned()));
        };
        if !entry.tasks.contains_key(name) {
            return Ok(task_error("no_task", format!("there is no task \"{name}\"")));
        }
        let live = match self.hub.lease(&of_hub).await {
            Ok(live) => live,
            Err(error) => return Ok(task_error("not_lent", error.to_string())),
        };
        let order = RunOrder {
            subject: Subject::Task {
                name: name.to_owned(),
                model: None,
                borrowed_session: None,
                skip_availability: true,
            },
            input,
            working_directory: session.entity.workspace.clone().unwrap_or_else(|| self.workspace.clone()),
            runtime: None,
            entry,
        };
        let task = self.tables.tasks.put(PolledTask { log: self.tables.log(), owner: TaskOwner::Borrower });
        let lent = TaskSessionId(of_hub.to_string());
        let run_callbacks =
            RunCallbacks::of_borrower(Arc::clone(&self.tables), task.clone(), (lent.clone(), session));
        match self.runs.start_borrowing(order, (lent, live), run_callbacks.into_audience()) {
            Ok(_) => Ok(PollingResponse::Done(json!({ "taskId": task.id }))),
            Err(error) => {
                task.entity.log.close();
                Ok(task_error("not_started", error.to_string()))
            }
        }
    }

    pub(super) async fn stop_task(&self, id: &str) -> PollingResponse {
        let Some(task) = self.tables.tasks.find(id).filter(|task| task.is_open()) else {
            return PollingError::TaskNotFound.into();
        };
        match &task.owner {
            TaskOwner::Borrower => PollingError::TaskCannotClose.into(),
            TaskOwner::Job { job, task: of_run } => {
                if let Some(run) = job.run.get() {
                    run.controls.stop_task(*of_run).await;
                }
                let _ = tokio::time::timeout(STOPPING_TIME, task.log.until_closed()).await;
                PollingResponse::closed()
            }
        }
    }
}

fn task_error(name: &str, message: String) -> PollingResponse {
    PollingResponse::Done(json!({ "taskError": CrashError::new(name, message).json() }))
}
