//! All sessions: lists, facts about one, the latest, the one in the foreground.

use hangar_agent::log::{LogError, Seq, SessionLog};
use hangar_agent::session::state::project;
use hangar_protocol::Event;
use hangar_store::client_session::{self, ClientSession};
use hangar_store::fork::{self as forks, ForkError};
use hangar_store::{Filter, SessionId, SessionSummary};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply, SessionParams};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.list", run: |call| Box::pin(list(call)) },
    Method { name: "session.getMetadata", run: |call| Box::pin(metadata(call)) },
    Method { name: "session.getLastId", run: |call| Box::pin(last(call)) },
    Method { name: "sessions.fork", run: |call| Box::pin(fork(call)) },
    Method { name: "session.getForeground", run: |call| Box::pin(foreground(call)) },
    Method { name: "session.setForeground", run: |call| Box::pin(set_foreground(call)) },
];

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListParams {
    filter: Option<FilterParams>,
    source: Option<String>,
    /// Number of sessions that are listed with all metadata; the rest are listed by id.
    metadata_limit: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FilterParams {
    cwd: Option<String>,
    working_directory: Option<String>,
    git_root: Option<String>,
    repository: Option<String>,
    branch: Option<String>,
}

pub(super) async fn list(call: Call) -> Result<Reply, Failure> {
    let params: ListParams = call.params()?;
    if params.source.as_deref() == Some("remote") {
        return Reply::of(json!({ "sessions": [] }));
    }
    let filter = params.filter.unwrap_or_default();
    let filter = Filter {
        cwd: filter.cwd.or(filter.working_directory),
        git_root: filter.git_root,
        repository: filter.repository,
        branch: filter.branch,
    };
    let sessions = call.hub.config().store.list(&filter)?;
    let limit = params.metadata_limit.unwrap_or(usize::MAX);
    let told = |(at, session)| if at < limit { describe(session) } else { mention(session) };
    let begun = sessions.iter().filter(|session| session.log_bytes > 0);
    let sessions: Vec<Value> = begun.enumerate().map(told).collect();
    Reply::of(json!({ "sessions": sessions }))
}

/// Basic entry of a session in a list.
fn mention(session: &SessionSummary) -> Value {
    json!({
        "sessionId": session.id.as_str(),
        "startTime": hangar_agent::session::iso(session.meta.created_at),
        "modifiedTime": hangar_agent::session::iso(session.meta.updated_at),
        "isRemote": false,
        "isDetached": false,
    })
}

pub(super) fn describe(session: &SessionSummary) -> Value {
    let mut value = mention(session);
    if let Some(name) = &session.meta.name {
        value["summary"] = json!(name.as_str());
        value["name"] = json!(name.as_str());
    }
    if let Some(client) = &session.meta.client_name {
        value["clientName"] = json!(client);
    }
    if let Some(context) = &session.meta.context {
        value["context"] = json!(context);
    }
    value
}

pub(super) async fn metadata(call: Call) -> Result<Reply, Failure> {
    let SessionParams { session_id } = call.params()?;
    let found = session_id.parse().ok().and_then(|id: SessionId| call.hub.config().store.look(&id));
    match found {
        Some(session) => Reply::of(json!({ "session": describe(&session) })),
        None => Reply::of(json!({})),
    }
}

async fn last(call: Call) -> Result<Reply, Failure> {
    let last = call.hub.config().store.last(&Filter::default())?;
    let id: Option<SessionId> = last.map(|session| session.id);
    Reply::of(id.map_or_else(|| json!({}), |id| json!({ "sessionId": id.as_str() })))
}

async fn foreground(call: Call) -> Result<Reply, Failure> {
    let Some(session_id) = call.hub.foreground.shown() else { return Reply::of(json!({})) };
    let mut shown = json!({ "sessionId": session_id });
    if let Ok(live) = call.hub.live(&session_id) {
        shown["workspacePath"] = json!(live.dir.shown());
    }
    Reply::of(shown)
}

async fn set_foreground(call: Call) -> Result<Reply, Failure> {
    if !call.hub.foreground.has_view() {
        return Reply::unsuccessful("Not running in TUI+server mode");
    }
    let SessionParams { session_id } = call.params()?;
    match call.hub.foreground.request(session_id).await {
        Ok(()) => Reply::success(),
        Err(reason) => Reply::unsuccessful(&reason),
    }
}

/// The events of a session that still count.
pub(super) async fn events(call: &Call, id: &SessionId) -> Result<Vec<Event>, Failure> {
    let (files, store) = match call.hub.live(id.as_str()) {
        Ok(live) => (live.client_files.clone(), live.store.clone()),
        Err(_) => (call.client.session_files(id), call.hub.config().store.clone()),
    };
    let events = match files {
        Some(files) => client_session::read_events(&files).await.map_err(Failure::from_files)?,
        None => store.read(id)?.collect::<Result<_, _>>()?,
    };
    Ok(project(events))
}

/// A new session with the history of another, up to an event that is not part of it any more.
async fn fork(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        session_id: String,
        to_event_id: Option<String>,
        name: Option<String>,
    }
    let params: Params = call.params()?;
    let missing =
        || Failure::new(format!("Session {} not found or has no persisted events", params.session_id));
    let source: SessionId = params.session_id.parse().map_err(|_| missing())?;
    if let Ok(live) = call.hub.live(&params.session_id) {
        // Work in progress is logged before the log is copied.
        live.ask(|_| ()).await?;
    }
    let kept = events(&call, &source).await.map_err(|_| missing())?;
    let id: SessionId = uuid::Uuid::new_v4()
        .to_string()
        .parse()
        .map_err(|error: hangar_store::InvalidId| Failure::new(error.to_string()))?;
    let now = (call.hub.config().now)();
    let kept = forks::events(kept, params.to_event_id.as_deref(), (&source, &id), now);
    let kept = kept.map_err(|error| match error {
        ForkError::NoEvent(event) => Failure::new(format!("Event {event} not found in the session")),
        ForkError::Empty => missing(),
        other => Failure::new(other.to_string()),
    })?;
    let store = &call.hub.config().store;
    let meta = forks::meta(store, &source, params.name.clone(), now)?;
    let name = meta.name.as_ref().map(|name| name.as_str().to_owned());
    match call.client.session_files(&id) {
        None => forks::create(store, &source, &id, meta, &kept)
            .map_err(|error| Failure::new(error.to_string()))?,
        Some(files) => {
            let unwritten = |error: LogError| Failure::new(error.to_string());
            let mut log = ClientSession { files, stored: None }.create(id.clone(), meta)?;
            log.append(Seq(0), &kept).map_err(unwritten)?;
            if let Some(written) = log.settle() {
                written.await.map_err(unwritten)?;
            }
        }
    }
    let mut result = json!({ "sessionId": id.as_str() });
    if let Some(name) = name {
        result["name"] = json!(name);
    }
    Reply::of(result)
}
