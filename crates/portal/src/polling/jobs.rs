//! Jobs: what there is, what runs, and starting and stopping them.

use std::path::PathBuf;
use std::sync::Arc;

use hangar_jobs::chart::chart;
use hangar_jobs::record::{RunId, RunOrder, Subject};
use serde_json::{Map, Value, json};

use super::answer::{PollingError, PollingResponse};
use super::entities::{JobRun, JobStatus, PolledJob, WorkStatus};
use super::routes::Text;
use super::runs::RunCallbacks;
use super::{Polling, STOPPING_TIME};

impl Polling {
    pub(super) fn list_jobs(&self) -> PollingResponse {
        let Some(entry) = self.runs.entry() else {
            return PollingResponse::Done(json!({ "grid": [], "jobs": {}, "chart": {} }));
        };
        let charts = entry.jobs.iter().map(|(name, job)| (name.clone(), json!(chart(&job.work))));
        let charts: Map<String, Value> = charts.collect();
        PollingResponse::of(&json!({ "grid": entry.grid, "jobs": entry.jobs, "chart": charts }))
    }

    pub(super) async fn start_job(&self, name: &str, body: Text) -> Result<PollingResponse, PollingResponse> {
        let Some(entry) = self.runs.entry().filter(|entry| entry.jobs.contains_key(name)) else {
            return Ok(PollingError::JobNotFound.into());
        };
        let body = body.read().await?;
        let (directory, input) = body.split_once('\n').unwrap_or((&body, ""));
        let order = RunOrder {
            subject: Subject::Job { name: name.to_owned() },
            input: input.to_owned(),
            working_directory: PathBuf::from(directory.trim()),
            runtime: None,
            entry,
        };
        if self.runs.check_workspace(&order).is_err() {
            return Ok(PollingError::JobNotFound.into());
        }
        if let Err(full) = self.tables.jobs.check_room() {
            return Ok(PollingResponse::Failed(full.to_string()));
        }
        let job = self.tables.jobs.put(PolledJob::new(name.to_owned(), self.hub.now(), &self.tables));
        let run_callbacks = RunCallbacks::of_job(Arc::clone(&self.tables), Arc::clone(&job.entity));
        match self.runs.start(order, run_callbacks.into_audience()) {
            Ok((id, controls)) => {
                // It is set here alone.
                let _ = job.entity.run.set(JobRun { id, controls });
                Ok(PollingResponse::Done(json!({ "jobId": job.id })))
            }
            Err(error) => {
                job.entity.end(JobStatus::Failed, None);
                Ok(PollingResponse::Failed(error.to_string()))
            }
        }
    }

    /// Ends a job. One that has ended stays as it is.
    pub(super) async fn stop_job(&self, id: &str) -> PollingResponse {
        let Some(job) = self.tables.jobs.find(id) else { return PollingError::JobNotFound.into() };
        if let Some(run) = job.run.get() {
            run.controls.stop().await;
            let _ = tokio::time::timeout(STOPPING_TIME, job.log.until_closed()).await;
        }
        PollingResponse::closed()
    }

    pub(crate) fn run_of_job(&self, id: &str) -> Option<RunId> {
        self.tables.jobs.find(id)?.run.get().map(|run| run.id.clone())
    }

    pub(super) fn running_jobs(&self) -> PollingResponse {
        let jobs = self.tables.jobs.all();
        let jobs = jobs.iter().filter(|job| job.entity.is_listed());
        PollingResponse::Done(
            json!({ "jobs": jobs.map(|job| Value::Object(described(&job.id, &job.entity))).collect::<Vec<_>>() }),
        )
    }

    pub(super) fn job_status(&self, id: &str) -> PollingResponse {
        let Some(job) = self.tables.jobs.find(id).filter(|job| job.is_listed()) else {
            return PollingError::JobNotFound.into();
        };
        let mut answer = described(id, &job);
        let works: Vec<Value> = job
            .progress()
            .works
            .iter()
            .map(|(work, status)| match status {
                WorkStatus::Running { task } => {
                    json!({ "workIdInJob": work, "taskId": task, "status": "Running" })
                }
                WorkStatus::Succeeded => json!({ "workIdInJob": work, "status": "Succeeded" }),
                WorkStatus::Failed => json!({ "workIdInJob": work, "status": "Failed" }),
            })
            .collect();
        answer.insert("tasks".to_owned(), works.into());
        PollingResponse::Done(answer.into())
    }
}

fn described(id: &str, job: &PolledJob) -> Map<String, Value> {
    let status = job.progress().status;
    [
        ("jobId", json!(id)),
        ("jobName", json!(job.name)),
        ("startTime", json!(format!("{:.3}", job.started))),
        ("status", json!(status)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect()
}
