//! The queue: what runs, what waits and why, and its controls.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use hangar_registry::error::RegistryError;
use hangar_registry::queue::{QueueError, QueueView, Scheduler};

use super::{App, Endpoint, Of, get, post};
use crate::problem::Problem;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/queue", "Show the queue: what runs, what waits and why", look).answers::<QueueView>(200),
        post("/api/v1/queue/pause", "Start nothing new", pause).answers::<QueueView>(200),
        post("/api/v1/queue/resume", "Continue the queue, and try held accounts again", resume)
            .answers::<QueueView>(200),
        post("/api/v1/queue/drain", "Finish what runs and start nothing new", drain)
            .answers::<QueueView>(202),
        post("/api/v1/queue/stop", "Stop all that runs", stop).answers::<QueueView>(202),
    ]
}

/// Does something with the queue and shows it. Files are read and written, which must not hold others up.
async fn shown(
    app: &App,
    change: impl FnOnce(&Scheduler) -> Result<(), QueueError> + Send + 'static,
) -> Result<Answer<QueueView>, Problem> {
    let (scheduler, hub) = (app.hub.scheduler().clone(), app.hub.clone());
    let done = tokio::task::spawn_blocking(move || {
        change(&scheduler)?;
        Ok::<_, QueueError>(scheduler.view()?.with_notes(&hub.without_progress()))
    });
    let done = done.await.map_err(|error| RegistryError::Store(error.to_string()))?;
    Ok(Answer(done.map_err(|error| RegistryError::Store(error.to_string()))?))
}

async fn look(State(app): Of) -> Result<Answer<QueueView>, Problem> {
    shown(&app, |_| Ok(())).await
}

async fn pause(State(app): Of) -> Result<Answer<QueueView>, Problem> {
    shown(&app, Scheduler::pause).await
}

async fn resume(State(app): Of) -> Result<Answer<QueueView>, Problem> {
    shown(&app, Scheduler::resume).await
}

async fn drain(State(app): Of) -> Result<(StatusCode, Answer<QueueView>), Problem> {
    Ok((StatusCode::ACCEPTED, shown(&app, Scheduler::drain).await?))
}

async fn stop(State(app): Of) -> Result<(StatusCode, Answer<QueueView>), Problem> {
    Ok((StatusCode::ACCEPTED, shown(&app, Scheduler::stop_all).await?))
}
