//! The sessions that are kept, alive or not: found, measured, closed and cleared away.

use hangar_store::{Filter, SessionId, SessionName, SessionSummary};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::session::{parse_id, settle, within_rules};
use super::sessions::describe;
use super::{Call, Failure, Method, Reply, SessionParams};
use crate::hub::{AttachKind, Lifecycle};
use hangar_spec::SessionSpec;

pub(super) const METHODS: &[Method] = &[
    Method { name: "sessions.list", run: |call| Box::pin(super::sessions::list(call)) },
    Method { name: "sessions.getMetadata", run: |call| Box::pin(super::sessions::metadata(call)) },
    Method { name: "sessions.open", run: |call| Box::pin(open(call)) },
    Method { name: "sessions.save", run: |call| Box::pin(save(call)) },
    Method { name: "sessions.close", run: |call| Box::pin(close(call)) },
    Method { name: "sessions.releaseLock", run: |call| Box::pin(release(call)) },
    Method { name: "sessions.findByPrefix", run: |call| Box::pin(find_by_prefix(call)) },
    // Tasks of the cloud are not known here.
    Method { name: "sessions.findByTaskId", run: |_| Box::pin(async { Reply::of(json!({})) }) },
    Method { name: "sessions.getLastForContext", run: |call| Box::pin(last_for_context(call)) },
    Method { name: "sessions.getSizes", run: |call| Box::pin(sizes(call)) },
    Method { name: "sessions.checkInUse", run: |call| Box::pin(check_in_use(call)) },
    Method { name: "sessions.bulkDelete", run: |call| Box::pin(delete_all(call)) },
    Method { name: "sessions.delete", run: |call| Box::pin(delete(call)) },
    Method { name: "sessions.pruneOld", run: |call| Box::pin(prune(call)) },
    Method { name: "sessions.enrichMetadata", run: |call| Box::pin(enrich(call)) },
    Method { name: "sessions.getEventFilePath", run: |call| Box::pin(event_file(call)) },
    Method { name: "sessions.listNonEmptySessionIds", run: |call| Box::pin(non_empty(call)) },
];

fn all(call: &Call) -> Result<Vec<SessionSummary>, Failure> {
    Ok(call.hub.config().store.list(&Filter::default())?)
}

/// Source of a session that is opened, and its settings.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum OpenParams {
    Create { options: Option<SessionSpec> },
    Resume { session_id: String, options: Option<SessionSpec> },
    ResumeLast { context: Option<ContextParams>, options: Option<SessionSpec> },
}

async fn open(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Named {
        kind: Option<Value>,
    }
    if call.params::<Named>()?.kind.is_none() {
        return Reply::of(json!({ "status": "not_found" }));
    }
    let params: OpenParams = call.params()?;
    let store = &call.hub.config().store;
    let (id, spec) = match params {
        OpenParams::Create { options } => {
            let spec = options.unwrap_or_default();
            let id = spec.entry.session_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
            (Some(parse_id(&id)?), spec)
        }
        OpenParams::Resume { session_id, options } => {
            let id = parse_id(&session_id).ok();
            let known = id.filter(|id| call.hub.live(id.as_str()).is_ok() || store.contains(id));
            (known, options.unwrap_or_default())
        }
        OpenParams::ResumeLast { context, options } => {
            (latest(&call, context.as_ref())?, options.unwrap_or_default())
        }
    };
    let Some(id) = id else { return Reply::of(json!({ "status": "not_found" })) };
    let spec = within_rules(spec)?;
    let stored = store.contains(&id);
    let entered = call.hub.enter(id.clone(), spec.clone(), &call.client).await?;
    let new = entered.how == AttachKind::Opened && !stored;
    if new {
        call.hub.announce(Lifecycle::Created, id.as_str(), None);
    }
    let mut reply = settle(call, spec, entered).await?;
    reply.result =
        json!({ "status": if new { "created" } else { "resumed" }, "sessionId": reply.result["sessionId"] });
    Ok(reply)
}

/// Waits for what the session is doing right now to be on record, and on the disk.
async fn save(call: Call) -> Result<Reply, Failure> {
    let SessionParams { session_id } = call.params()?;
    if let Ok(live) = call.hub.live(&session_id) {
        live.ask(|task| task.engine.driver_mut().sync())
            .await?
            .map_err(|error| Failure::new(error.to_string()))?;
        return Reply::of(json!({}));
    }
    // A session that is not open has been saved already.
    match parse_id(&session_id) {
        Ok(id) if call.hub.config().store.contains(&id) => Reply::of(json!({})),
        _ => Err(Failure::new(format!("Session not found: {session_id}"))),
    }
}

async fn close(call: Call) -> Result<Reply, Failure> {
    let SessionParams { session_id } = call.params()?;
    if let Ok(live) = call.hub.live(&session_id) {
        live.close().await;
    }
    Reply::of(json!({}))
}

/// A session that is alive and idle may be taken over by another process.
async fn release(call: Call) -> Result<Reply, Failure> {
    let SessionParams { session_id } = call.params()?;
    if let Ok(live) = call.hub.live(&session_id) {
        live.ask(|task| {
            if task.session().is_idle() {
                task.engine.driver_mut().rest();
            }
        })
        .await?;
    }
    Reply::of(json!({}))
}

async fn find_by_prefix(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        prefix: String,
    }
    let params: Params = call.params()?;
    let sessions = all(&call)?;
    let mut found = sessions.iter().filter(|session| session.id.as_str().starts_with(&params.prefix));
    // A prefix that several begin with names none of them.
    match (found.next(), found.next()) {
        (Some(session), None) if !params.prefix.is_empty() => {
            Reply::of(json!({ "sessionId": session.id.as_str() }))
        }
        _ => Reply::of(json!({})),
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContextParams {
    cwd: Option<String>,
    repository: Option<String>,
    branch: Option<String>,
}

/// The session that was used last in a place.
fn latest(call: &Call, context: Option<&ContextParams>) -> Result<Option<SessionId>, Failure> {
    let Some(context) = context else { return Ok(None) };
    let filter = Filter {
        cwd: context.cwd.clone(),
        repository: context.repository.clone(),
        branch: context.branch.clone(),
        ..Filter::default()
    };
    Ok(call.hub.config().store.last(&filter)?.map(|session| session.id))
}

async fn last_for_context(call: Call) -> Result<Reply, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Params {
        context: Option<ContextParams>,
    }
    let params: Params = call.params()?;
    // Without a place every session counts.
    let context = params.context.unwrap_or_default();
    Reply::of(match latest(&call, Some(&context))? {
        Some(id) => json!({ "sessionId": id.as_str() }),
        None => json!({}),
    })
}

async fn sizes(call: Call) -> Result<Reply, Failure> {
    let store = &call.hub.config().store;
    let sizes: Map<String, Value> =
        all(&call)?.iter().map(|session| (session.id.to_string(), json!(store.size(&session.id)))).collect();
    Reply::of(json!({ "sizes": sizes }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IdsParams {
    session_ids: Vec<String>,
}

async fn check_in_use(call: Call) -> Result<Reply, Failure> {
    let params: IdsParams = call.params()?;
    let store = &call.hub.config().store;
    let in_use = |id: &&String| {
        call.hub.live(id).is_ok() || parse_id(id).is_ok_and(|id| store.contains(&id) && store.is_in_use(&id))
    };
    let found: Vec<&String> = params.session_ids.iter().filter(in_use).collect();
    Reply::of(json!({ "inUse": found }))
}

/// Ends and removes a session. Says how much room that made.
async fn remove(call: &Call, session_id: &str) -> Result<u64, Failure> {
    let id = parse_id(session_id)?;
    if let Ok(live) = call.hub.live(session_id) {
        live.close().await;
    }
    let store = &call.hub.config().store;
    let freed = store.size(&id);
    store.delete(&id)?;
    call.hub.announce(Lifecycle::Deleted, session_id, None);
    Ok(freed)
}

async fn delete_all(call: Call) -> Result<Reply, Failure> {
    let params: IdsParams = call.params()?;
    let mut freed = Map::new();
    for id in params.session_ids {
        // A session that cannot be deleted frees nothing and does not stop the others.
        let bytes = remove(&call, &id).await.unwrap_or(0);
        freed.insert(id, json!(bytes));
    }
    Reply::of(json!({ "freedBytes": freed }))
}

async fn delete(call: Call) -> Result<Reply, Failure> {
    let SessionParams { session_id } = call.params()?;
    remove(&call, &session_id).await?;
    Reply::null()
}

async fn prune(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        older_than_days: u32,
        #[serde(default)]
        dry_run: bool,
        #[serde(default)]
        include_named: bool,
        #[serde(default)]
        exclude_session_ids: Vec<String>,
    }
    let params: Params = call.params()?;
    let now = (call.hub.config().now)();
    let oldest = now.as_second() - i64::from(params.older_than_days) * 24 * 60 * 60;
    let (mut deleted, mut candidates, mut skipped, mut freed) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for session in all(&call)? {
        let id = session.id.to_string();
        if session.meta.updated_at.as_second() > oldest {
            continue;
        }
        let named = matches!(session.meta.name, Some(SessionName::Given(_)));
        let kept = (named && !params.include_named) || params.exclude_session_ids.contains(&id);
        if kept || call.hub.live(&id).is_ok() {
            skipped.push(id);
            continue;
        }
        candidates.push(id.clone());
        if params.dry_run {
            freed += call.hub.config().store.size(&session.id);
        } else if let Ok(bytes) = remove(&call, &id).await {
            freed += bytes;
            deleted.push(id);
        }
    }
    Reply::of(json!({
        "deleted": deleted,
        "candidates": candidates,
        "skipped": skipped,
        "freedBytes": freed,
        "dryRun": params.dry_run,
    }))
}

/// Adds stored metadata to a client's list of sessions.
async fn enrich(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        sessions: Vec<Map<String, Value>>,
    }
    let params: Params = call.params()?;
    let known = all(&call)?;
    let enriched: Vec<Value> = params
        .sessions
        .into_iter()
        .map(|mut given| {
            let found =
                known.iter().find(|session| given.get("sessionId") == Some(&json!(session.id.as_str())));
            if let Some(Value::Object(facts)) = found.map(describe) {
                for (name, fact) in facts {
                    given.entry(name).or_insert(fact);
                }
            }
            Value::Object(given)
        })
        .collect();
    Reply::of(json!({ "sessions": enriched }))
}

async fn event_file(call: Call) -> Result<Reply, Failure> {
    let SessionParams { session_id } = call.params()?;
    if let Ok(live) = call.hub.live(&session_id) {
        return Reply::of(json!({ "filePath": live.dir.path("events.jsonl") }));
    }
    let dir = call.hub.config().store.session_dir(&parse_id(&session_id)?);
    Reply::of(json!({ "filePath": dir.join("events.jsonl").display().to_string() }))
}

async fn non_empty(call: Call) -> Result<Reply, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Params {
        limit: Option<usize>,
    }
    let params: Params = call.params()?;
    let sessions = all(&call)?;
    let ids = sessions.iter().filter(|session| session.log_bytes > 0).map(|session| session.id.as_str());
    let ids: Vec<&str> = ids.take(params.limit.unwrap_or(usize::MAX)).collect();
    Reply::of(json!({ "sessionIds": ids }))
}
