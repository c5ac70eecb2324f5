//! Changes of files by sessions, taking them back, and search over transcripts.

use axum::Json as Answer;
use axum::extract::State;
use hangar_registry::changes::{self, FileChanges};
use hangar_registry::error::RegistryError;
use hangar_registry::resource::SessionState;
use hangar_registry::transcripts::{self, Hits};
use schemars::JsonSchema;
use serde::Deserialize;

use super::input::{Id, Json, Query};
use super::{App, Endpoint, Of, get, post};
use crate::problem::Problem;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get(
            "/api/v1/sessions/{id}/changes",
            "Show the files that a session changed, in all and by turn",
            look,
        )
        .answers::<FileChanges>(200),
        post("/api/v1/sessions/{id}/changes/revert", "Take a file or a hunk back", revert)
            .body::<Revert>()
            .answers::<FileChanges>(200),
        get("/api/v1/search", "Search the transcripts of all sessions", search)
            .query::<Asked>()
            .answers::<Hits>(200),
    ]
}

/// Reads files, which must not hold others up.
async fn aside<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&App) -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, Problem> {
    let app = app.clone();
    let done = tokio::task::spawn_blocking(move || work(&app)).await;
    Ok(done.map_err(|error| RegistryError::Store(error.to_string()))??)
}

async fn look(State(app): Of, Id(id): Id) -> Result<Answer<FileChanges>, Problem> {
    Ok(Answer(aside(&app, move |app| changes::changes(app.hub.store(), &id)).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RevertFile")]
struct Revert {
    /// As the list of changes has it.
    path: String,
    /// Number of a hunk of the diff over all turns, from 0; the whole file without.
    hunk: Option<usize>,
}

async fn revert(
    State(app): Of,
    Id(id): Id,
    Json(Revert { path, hunk }): Json<Revert>,
) -> Result<Answer<FileChanges>, Problem> {
    let done = aside(&app, move |app| {
        let session = app.hub.session(&id).ok_or_else(|| RegistryError::NoSession(id.to_string()))?;
        if matches!(session.state, SessionState::Working | SessionState::Waiting) {
            return Err(RegistryError::Unprocessable(format!(
                "session {id} is at work; abort its turn, or wait until it has ended"
            )));
        }
        let within = changes::directory(app.hub.store(), &id)?;
        changes::take_back(app.hub.store(), &id, &within, &path, hunk)
    });
    Ok(Answer(done.await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TranscriptQuery")]
struct Asked {
    /// Text to find; case-insensitive.
    query: String,
}

async fn search(State(app): Of, Query(Asked { query }): Query<Asked>) -> Result<Answer<Hits>, Problem> {
    Ok(Answer(aside(&app, move |app| transcripts::search(app.hub.store(), &query)).await?))
}
