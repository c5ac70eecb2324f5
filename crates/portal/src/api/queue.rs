//! The queue: what runs, what waits and why, and its controls.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use hangar_registry::error::RegistryError;
use hangar_registry::queue::{QueueError, QueueView, Scheduler};
use schemars::JsonSchema;
use serde::Deserialize;

use super::input::Query;
use super::{App, Endpoint, Of, get, post};
use crate::problem::Problem;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/queue", "Show the queue: what runs, what waits and why", look)
            .query::<Asked>()
            .answers::<QueueView>(200),
        post("/api/v1/queue/pause", "Start nothing new", pause).answers::<QueueView>(200),
        post("/api/v1/queue/resume", "Continue the queue, and try held accounts again", resume)
            .answers::<QueueView>(200),
        post("/api/v1/queue/drain", "Finish what runs and start nothing new", drain)
            .answers::<QueueView>(202),
        post("/api/v1/queue/stop", "Stop all that runs", stop).answers::<QueueView>(202),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "QueueQuery")]
struct Asked {
    /// Maximum number of the items that wait, the oldest first. Default: all.
    limit: Option<usize>,
}

/// Does something with the queue and shows it. Files are read and written, which must not hold others up.
async fn shown(
    app: &App,
    most: usize,
    change: impl FnOnce(&Scheduler) -> Result<(), QueueError> + Send + 'static,
) -> Result<Answer<QueueView>, Problem> {
    let scheduler = app.hub.scheduler().clone();
    let done = tokio::task::spawn_blocking(move || {
        change(&scheduler)?;
        scheduler.view_of(most)
    });
    let done = done.await.map_err(|error| RegistryError::Store(error.to_string()))?;
    Ok(Answer(done.map_err(|error| RegistryError::Store(error.to_string()))?))
}

async fn look(State(app): Of, Query(asked): Query<Asked>) -> Result<Answer<QueueView>, Problem> {
    shown(&app, asked.limit.unwrap_or(usize::MAX), |_| Ok(())).await
}

async fn pause(State(app): Of) -> Result<Answer<QueueView>, Problem> {
    shown(&app, usize::MAX, Scheduler::pause).await
}

async fn resume(State(app): Of) -> Result<Answer<QueueView>, Problem> {
    shown(&app, usize::MAX, Scheduler::resume).await
}

async fn drain(State(app): Of) -> Result<(StatusCode, Answer<QueueView>), Problem> {
    Ok((StatusCode::ACCEPTED, shown(&app, usize::MAX, Scheduler::drain).await?))
}

async fn stop(State(app): Of) -> Result<(StatusCode, Answer<QueueView>), Problem> {
    Ok((StatusCode::ACCEPTED, shown(&app, usize::MAX, Scheduler::stop_all).await?))
}
