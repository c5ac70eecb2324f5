//! Sessions.

use std::path::PathBuf;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hangar_registry::error::RegistryError;
use hangar_registry::hub::{MAX_NAME, MessageDelivery, NewSession};
use hangar_registry::page::{MOST_EVENTS, Page, PageRange};
use hangar_registry::resource::{SessionPolicy, SessionResource, SessionState};
use hangar_registry::search::{self, Search, SessionList};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::{Id, Json, Query};
use super::{Endpoint, Of, delete, get, input, patch, post, stream};
use crate::problem::Problem;

const DEFAULT_EVENTS: u64 = 500;
const MAX_MESSAGE_ID: usize = 64;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/sessions", "List sessions, most recent activity first", list)
            .query::<Search>()
            .answers::<SessionList>(200),
        post("/api/v1/sessions", "Open a session", open).body::<New>().answers::<SessionResource>(201),
        get("/api/v1/sessions/{id}", "Get a session", look).answers::<SessionResource>(200),
        patch("/api/v1/sessions/{id}", "Rename a session", rename)
            .body::<Rename>()
            .answers::<SessionResource>(200),
        delete("/api/v1/sessions/{id}", "End a session and remove its files", remove).empty(204),
        post("/api/v1/sessions/{id}/messages", "Send a message; opens a closed session", send)
            .body::<Message>()
            .answers::<Accepted>(202),
        post("/api/v1/sessions/{id}/open", "Open a closed session without a message", wake)
            .answers::<SessionResource>(200),
        post("/api/v1/sessions/{id}/abort", "End the current turn", abort)
            .answers::<Accepted>(202),
        post("/api/v1/sessions/{id}/stop", "End the agent; the log is kept", stop).answers::<Accepted>(202),
        get("/api/v1/sessions/{id}/events", "Read logged events", events)
            .query::<Events>()
            .answers::<Page>(200),
        get("/api/v1/sessions/{id}/stream", "Stream events, from any number on", hear).query::<After>().streams(
            "Each logged event with its number as `id`; ephemeral events without `id`; `session` with the session when \
             the log has been sent and when the state changes; `end` when the session is deleted",
        ),
    ]
}

async fn list(State(app): Of, Query(search): Query<Search>) -> Result<Answer<SessionList>, Problem> {
    let limit = input::count(search.limit, search::DEFAULT_LIMIT, search::MOST)? as usize;
    app.hub.meet_all().await;
    let hub = app.hub.clone();
    // Thousands of small files are read.
    let found = tokio::task::spawn_blocking(move || hub.search(&search, limit)).await;
    let found = found.map_err(|error| RegistryError::Store(error.to_string()))??;
    Ok(Answer(found))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "NewSession")]
struct New {
    /// Default: the default agent.
    runtime: Option<String>,
    /// A configured agent; it has a runtime, a model and all else that the request leaves out.
    agent: Option<String>,
    model: Option<String>,
    effort: Option<String>,
    /// An absolute path. In a portal of a fleet: the directory here whose git remote is worked on, or with `labels` one of the
    /// workers; not needed with `remote`.
    #[serde(default)]
    #[schemars(regex(pattern = "^/"))]
    workspace: PathBuf,
    /// Id of the session (a UUID). A request that is repeated with the same id gives the same session.
    id: Option<String>,
    /// In a portal of a fleet: git remote to work on.
    remote: Option<String>,
    /// In a portal of a fleet: branch or commit to begin at.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// In a portal of a fleet: labels that the worker must have.
    #[serde(default)]
    labels: Vec<String>,
    /// Default: `ask`, if the agent can ask.
    policy: Option<SessionPolicy>,
    /// The first message.
    prompt: Option<String>,
    #[schemars(regex(pattern = r"\S"), length(max = MAX_NAME))]
    name: Option<String>,
}

async fn open(
    State(app): Of,
    Json(new): Json<New>,
) -> Result<(StatusCode, Answer<SessionResource>), Problem> {
    let id = match &new.id {
        Some(text) => Some(
            uuid::Uuid::parse_str(text)
                .ok()
                .and_then(|id| id.to_string().parse().ok())
                .ok_or_else(|| Problem::invalid(format!("the `id` `{text}` is not a UUID")))?,
        ),
        None => None,
    };
    let new = NewSession {
        runtime: new.runtime,
        agent: new.agent.filter(|agent| !agent.is_empty()),
        model: new.model.filter(|model| !model.is_empty()),
        effort: new.effort.filter(|effort| !effort.is_empty()),
        workspace: new.workspace,
        policy: new.policy,
        name: new.name,
        prompt: new.prompt,
        mcp_config: None,
        id,
        remote: new.remote.filter(|remote| !remote.is_empty()),
        reference: new.reference.filter(|reference| !reference.is_empty()),
        labels: new.labels,
    };
    Ok((StatusCode::CREATED, Answer(app.hub.open(new).await?)))
}

async fn look(State(app): Of, Id(id): Id) -> Result<Answer<SessionResource>, Problem> {
    if let Err(error) = app.hub.meet(&id).await {
        tracing::warn!(session = %id, %error, "the session of another process cannot be joined");
    }
    let hub = app.hub.clone();
    let found =
        tokio::task::spawn_blocking(move || hub.session(&id).ok_or(RegistryError::NoSession(id.to_string())));
    Ok(Answer(found.await.map_err(|error| RegistryError::Store(error.to_string()))??))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SessionRename")]
struct Rename {
    #[schemars(regex(pattern = r"\S"), length(max = MAX_NAME))]
    name: String,
}

async fn rename(
    State(app): Of,
    Id(id): Id,
    Json(Rename { name }): Json<Rename>,
) -> Result<Answer<SessionResource>, Problem> {
    Ok(Answer(app.hub.rename(&id, name).await?))
}

async fn remove(State(app): Of, Id(id): Id) -> Result<StatusCode, Problem> {
    app.hub.delete(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewMessage")]
struct Message {
    #[schemars(regex(pattern = r"\S"))]
    text: String,
    #[serde(default)]
    mode: Mode,
    /// In a portal of a fleet: id of the message. A request that is repeated with the same id is the same message.
    #[schemars(length(min = 1, max = 64))]
    id: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Delivery")]
enum Mode {
    /// As a separate turn.
    #[default]
    Enqueue,
    /// Into the current turn, if the agent supports that.
    Immediate,
}

#[derive(Serialize, JsonSchema)]
struct Accepted {
    state: SessionState,
}

async fn send(
    State(app): Of,
    Id(id): Id,
    Json(Message { text, mode, id: message }): Json<Message>,
) -> Result<(StatusCode, Answer<Accepted>), Problem> {
    if text.trim().is_empty() {
        return Err(Problem::invalid("the `text` is empty; say what the agent shall do"));
    }
    let delivery = match mode {
        Mode::Enqueue => MessageDelivery::Enqueue,
        Mode::Immediate => MessageDelivery::Immediate,
    };
    if message.as_ref().is_some_and(|id| id.is_empty() || id.len() > MAX_MESSAGE_ID) {
        return Err(Problem::invalid(format!("the `id` of a message has 1 to {MAX_MESSAGE_ID} bytes")));
    }
    let state = app.hub.send_as(&id, message, text, delivery).await?;
    Ok((StatusCode::ACCEPTED, Answer(Accepted { state })))
}

async fn wake(State(app): Of, Id(id): Id) -> Result<Answer<SessionResource>, Problem> {
    Ok(Answer(app.hub.wake(&id).await?))
}

async fn abort(State(app): Of, Id(id): Id) -> Result<(StatusCode, Answer<Accepted>), Problem> {
    app.hub.abort(&id).await?;
    accepted(&app, &id)
}

async fn stop(State(app): Of, Id(id): Id) -> Result<(StatusCode, Answer<Accepted>), Problem> {
    app.hub.stop(&id).await?;
    accepted(&app, &id)
}

fn accepted(
    app: &super::App,
    id: &hangar_store::SessionId,
) -> Result<(StatusCode, Answer<Accepted>), Problem> {
    let session = app.hub.session(id).ok_or_else(|| RegistryError::NoSession(id.to_string()))?;
    Ok((StatusCode::ACCEPTED, Answer(Accepted { state: session.state })))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EventQuery")]
struct Events {
    /// First events after this number.
    after: Option<u64>,
    /// Last events before this number; with `after`, the first events between the two.
    before: Option<u64>,
    /// Default: 500.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

async fn events(State(app): Of, Id(id): Id, Query(wanted): Query<Events>) -> Result<Answer<Page>, Problem> {
    let span = match (wanted.after, wanted.before) {
        (Some(after), Some(before)) => PageRange::Between(after, before),
        (Some(after), None) => PageRange::After(after),
        (None, Some(before)) => PageRange::Before(before),
        (None, None) => PageRange::Last,
    };
    let limit = input::count(wanted.limit, DEFAULT_EVENTS, MOST_EVENTS)?;
    if app.hub.fleet().is_some() {
        app.hub.meet(&id).await?;
    }
    let hub = app.hub.clone();
    let page = tokio::task::spawn_blocking(move || hub.page(&id, span, limit)).await;
    Ok(Answer(page.map_err(|error| RegistryError::Store(error.to_string()))??))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SessionPosition")]
struct After {
    /// Last event that the reader has; the header `Last-Event-ID` takes precedence.
    after: Option<u64>,
}

async fn hear(
    State(app): Of,
    Id(id): Id,
    Query(After { after }): Query<After>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = stream::last_event_id(&headers)?.or(after).unwrap_or(0);
    if let Err(error) = app.hub.meet(&id).await {
        // Its log is followed instead.
        tracing::warn!(session = %id, %error, "the session of another process cannot be joined");
    }
    let hub = app.hub.clone();
    let subscription = tokio::task::spawn_blocking(move || hub.subscribe(&id, after)).await;
    Ok(stream::session(subscription.map_err(|error| RegistryError::Store(error.to_string()))??))
}
