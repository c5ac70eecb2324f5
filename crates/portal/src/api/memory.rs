//! Notes that models keep about repositories.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::{Json, Query};
use super::settings::{aside, parts};
use super::{App, Endpoint, Of, delete, get, patch};
use crate::memory::{MemoryHost, RepositoryMemory};
use crate::problem::Problem;

/// Longest fact, in bytes.
const LONGEST_FACT: usize = 1000;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/memory", "List the notes of models about repositories", list).answers::<MemoryList>(200),
        patch("/api/v1/memory", "Replace the text of a note", edit)
            .body::<NoteEdit>()
            .answers::<MemoryList>(200),
        delete("/api/v1/memory", "Delete a note", remove).query::<NoteName>().answers::<MemoryList>(200),
    ]
}

/// All notes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Memory")]
struct MemoryList {
    repositories: Vec<RepositoryMemory>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteEdit {
    /// Root of the repository.
    repository: String,
    id: u64,
    fact: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteName {
    /// Root of the repository.
    repository: String,
    id: u64,
}

/// Does something with the notes, and lists them.
async fn with_notes(
    app: &App,
    change: impl FnOnce(&dyn MemoryHost) -> Result<bool, String> + Send + 'static,
) -> Result<Answer<MemoryList>, Problem> {
    let host: Arc<dyn MemoryHost> = parts(app)?.memory;
    let failed = |why| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "store_failed", why);
    let done = aside(move || match change(&*host)? {
        true => host.memories().map(Some),
        false => Ok(None),
    });
    match done.await?.map_err(failed)? {
        Some(repositories) => Ok(Answer(MemoryList { repositories })),
        None => Err(Problem::new(StatusCode::NOT_FOUND, "note_not_found", "there is no such note any more")),
    }
}

async fn list(State(app): Of) -> Result<Answer<MemoryList>, Problem> {
    with_notes(&app, |_| Ok(true)).await
}

async fn edit(State(app): Of, Json(edit): Json<NoteEdit>) -> Result<Answer<MemoryList>, Problem> {
    let fact = edit.fact.trim().replace('\n', " ");
    if fact.is_empty() || fact.len() > LONGEST_FACT {
        return Err(Problem::invalid(format!("`fact` has to have 1 to {LONGEST_FACT} bytes")));
    }
    with_notes(&app, move |host| host.edit(&edit.repository, edit.id, &fact)).await
}

async fn remove(State(app): Of, Query(note): Query<NoteName>) -> Result<Answer<MemoryList>, Problem> {
    with_notes(&app, move |host| host.delete(&note.repository, note.id)).await
}
