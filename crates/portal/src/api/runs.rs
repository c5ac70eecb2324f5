//! Jobs and their runs.

use std::path::PathBuf;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::stream::unfold;
use hangar_jobs::prompt_run::PromptWork;
use hangar_jobs::record::RunId;
use hangar_registry::error::RegistryError;
use hangar_registry::frame;
use hangar_registry::runs::{JobsView, Run, RunDetails, Runs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::input::{Json, Name, Query};
use super::{App, Endpoint, Of, delete, get, input, post, put, stream};
use crate::problem::Problem;

const DEFAULT_LIMIT: u64 = 50;
const MOST: u64 = 200;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/jobs", "List the jobs that can be run", jobs).answers::<JobsView>(200),
        put("/api/v1/jobs/entry", "Install another file of jobs", install)
            .body::<Entry>()
            .answers::<JobsView>(200),
        get("/api/v1/runs", "List runs, newest first", list).query::<Listing>().answers::<Listed>(200),
        post("/api/v1/runs", "Run a job, or a prompt in the queue", start)
            .body::<Start>()
            .answers::<RunDetails>(201),
        get("/api/v1/runs/{id}", "Get a run", look).answers::<RunDetails>(200),
        delete("/api/v1/runs/{id}", "Delete a run that has ended; its sessions stay", erase).empty(204),
        post("/api/v1/runs/{id}/stop", "Stop a run", stop).answers::<RunDetails>(202),
        post("/api/v1/runs/{id}/resume", "Continue a run whose process ended", resume)
            .answers::<RunDetails>(200),
        post("/api/v1/runs/{id}/retry", "Run the same job again", retry).answers::<RunDetails>(201),
        get("/api/v1/runs/{id}/stream", "Stream the records of a run", hear)
            .query::<After>()
            .streams("Each record with its number as `id`; `run` with the run when it changes"),
    ]
}

/// Reads files, which must not hold others up.
async fn aside<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&Runs) -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, Problem> {
    let runs = app.runs.clone();
    let done = tokio::task::spawn_blocking(move || work(&runs)).await;
    Ok(done.map_err(|error| RegistryError::Store(error.to_string()))??)
}

async fn jobs(State(app): Of) -> Result<Answer<JobsView>, Problem> {
    Ok(Answer(aside(&app, |runs| Ok(runs.jobs())).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "JobsFile")]
struct Entry {
    /// An absolute path.
    #[schemars(regex(pattern = "^/"))]
    path: PathBuf,
}

async fn install(State(app): Of, Json(Entry { path }): Json<Entry>) -> Result<Answer<JobsView>, Problem> {
    let install = move |runs: &Runs| {
        runs.install_file(&path)?;
        Ok(runs.jobs())
    };
    Ok(Answer(aside(&app, install).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RunQuery")]
struct Listing {
    /// Default: 50.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

#[skip_serializing_none]
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RunList")]
struct Listed {
    runs: Vec<Run>,
    next: Option<String>,
}

async fn list(
    State(app): Of,
    Query(Listing { limit, cursor }): Query<Listing>,
) -> Result<Answer<Listed>, Problem> {
    let limit = input::count(limit, DEFAULT_LIMIT, MOST)? as usize;
    let found = aside(&app, move |runs| {
        // One more than asked for tells whether there are more.
        let mut found = runs.list(limit + 1, cursor.as_deref())?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|run| run.id.clone());
        Ok(Listed { runs: found, next })
    });
    Ok(Answer(found.await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewRun")]
struct Start {
    /// The job to run, unless there is a `prompt`.
    job: Option<String>,
    /// Prompt of a session that waits for its slot in the queue, in place of a job.
    prompt: Option<String>,
    /// Model of the prompt; that of the agent where absent.
    model: Option<String>,
    /// Input, for a job that requires it.
    #[serde(default)]
    input: String,
    /// An absolute path.
    #[schemars(regex(pattern = "^/"))]
    workspace: PathBuf,
    /// Agent or runtime for tasks that name none; the default agent where absent.
    agent: Option<String>,
}

async fn start(
    State(app): Of,
    Json(Start { job, prompt, model, input, workspace, agent }): Json<Start>,
) -> Result<(StatusCode, Answer<RunDetails>), Problem> {
    let agent = agent.filter(|agent| !agent.is_empty());
    let model = model.filter(|model| !model.is_empty());
    let run = match (job, prompt) {
        (Some(job), None) if model.is_none() => app.runs.start_job(&job, input, workspace, agent)?,
        (None, Some(prompt)) if input.is_empty() => {
            app.runs.start_prompt(PromptWork { prompt, agent, model, directory: workspace })?
        }
        _ => {
            let why = "a run needs either a `job` with its `input`, or a `prompt` and perhaps a `model`";
            return Err(RegistryError::Unprocessable(why.to_owned()).into());
        }
    };
    Ok((StatusCode::CREATED, Answer(run)))
}

async fn look(State(app): Of, Name(id): Name) -> Result<Answer<RunDetails>, Problem> {
    Ok(Answer(aside(&app, |runs| runs.details(&RunId(id))).await?))
}

async fn erase(State(app): Of, Name(id): Name) -> Result<StatusCode, Problem> {
    aside(&app, |runs| runs.delete(&RunId(id))).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn stop(State(app): Of, Name(id): Name) -> Result<(StatusCode, Answer<RunDetails>), Problem> {
    Ok((StatusCode::ACCEPTED, Answer(app.runs.stop(&RunId(id)).await?)))
}

async fn resume(State(app): Of, Name(id): Name) -> Result<Answer<RunDetails>, Problem> {
    Ok(Answer(app.runs.resume(&RunId(id))?))
}

async fn retry(State(app): Of, Name(id): Name) -> Result<(StatusCode, Answer<RunDetails>), Problem> {
    Ok((StatusCode::CREATED, Answer(app.runs.retry(&RunId(id))?)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RunPosition")]
struct After {
    /// Last record that the reader has; the header `Last-Event-ID` takes precedence.
    after: Option<u64>,
}

async fn hear(
    State(app): Of,
    Name(id): Name,
    Query(After { after }): Query<After>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = stream::last_event_id(&headers)?.or(after);
    let following = aside(&app, move |runs| runs.follow(&RunId(id), after)).await?;
    Ok(stream::response(unfold((following, true), |(mut following, first)| async move {
        if first {
            return Some((Ok(frame::HEARTBEAT), (following, false)));
        }
        match tokio::time::timeout(stream::HEARTBEAT_EVERY, following.next()).await {
            Err(_) => Some((Ok(frame::HEARTBEAT), (following, false))),
            Ok(Ok(message)) => Some((Ok(message), (following, false))),
            Ok(Err(_)) => None,
        }
    })))
}
