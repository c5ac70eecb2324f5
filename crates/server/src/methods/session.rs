//! One session: create, resume, send, abort, read, leave, delete.

use std::collections::BTreeMap;
use std::sync::Arc;

use hangar_agent::model::AnswerSchema;
use hangar_agent::session::{CallOptions, Command, Prompt, Timing};
use hangar_files::SessionFiles;
use hangar_protocol::data::{self, AgentMode};
use hangar_spec::{SessionSpec, TraceContext};
use hangar_store::SessionId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::messages::MessageParams;
use super::model::{check_allowed, obey};
use super::sessions::events;
use super::tasks::until_settled;
use super::{Call, Failure, Method, Reply, SessionParams};
use crate::audience::is_for_clients;
use crate::extensions;
use crate::hub::{AttachKind, Attached, Lifecycle, ServedSession, load_client_session};
use crate::opener::RecomposeScope;
use crate::recompose::recompose;
use crate::system;
use crate::task::SessionTask;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.create", run: |call| Box::pin(create(call)) },
    Method { name: "session.resume", run: |call| Box::pin(resume(call)) },
    Method { name: "session.send", run: |call| Box::pin(send(call)) },
    Method { name: "session.abort", run: |call| Box::pin(abort(call)) },
    Method { name: "session.getMessages", run: |call| Box::pin(messages(call)) },
    Method { name: "session.destroy", run: |call| Box::pin(leave(call)) },
    Method { name: "session.detach", run: |call| Box::pin(leave(call)) },
    Method { name: "session.delete", run: |call| Box::pin(delete(call)) },
    Method { name: "session.suspend", run: |call| Box::pin(suspend(call)) },
    Method { name: "session.shutdown", run: |call| Box::pin(shutdown(call)) },
];

/// Restricts a request for a session to the models that its own rules allow.
pub(super) fn within_rules(mut spec: SessionSpec) -> Result<SessionSpec, Failure> {
    check_allowed(spec.model.allowed.as_deref())?;
    if let Some(allowed) = &spec.model.allowed
        && spec.model.name.as_ref().is_some_and(|model| !allowed.contains(model))
    {
        spec.model.name = allowed.first().cloned();
    }
    Ok(spec)
}

async fn create(call: Call) -> Result<Reply, Failure> {
    let spec = within_rules(call.params()?)?;
    let id = match &spec.entry.session_id {
        Some(id) => parse_id(id)?,
        None => parse_id(&uuid::Uuid::new_v4().to_string())?,
    };
    if let Some(token) = &spec.identity.github_token {
        // A token that is not good is better refused now than with the first message.
        call.hub.config().account.auth(Some(token.clone())).await?;
    }
    let entered = call.hub.enter(id, spec.clone(), &call.client).await?;
    if entered.how == AttachKind::Opened {
        call.hub.announce(Lifecycle::Created, entered.live.id.as_str(), None);
    }
    settle(call, spec, entered).await
}

async fn resume(call: Call) -> Result<Reply, Failure> {
    let spec = within_rules(call.params()?)?;
    let Some(id) = &spec.entry.session_id else {
        return Err(Failure::Params("missing field `sessionId`".to_owned()));
    };
    let id = parse_id(id).map_err(|_| Failure::new(format!("Session not found: {id}")))?;
    if call.client.extension.is_some() {
        return join_extension(call, spec).await;
    }
    if call.hub.live(id.as_str()).is_err() && !is_kept(&call, &id, &spec).await? {
        return Err(Failure::new(format!("Session not found: {id}")));
    }
    let entered = call.hub.enter(id, spec.clone(), &call.client).await?;
    settle(call, spec, entered).await
}

/// Has an extension join its session.
async fn join_extension(call: Call, spec: SessionSpec) -> Result<Reply, Failure> {
    let live = call.live()?;
    let Some(extension) = &call.client.extension else { return Err(Failure::new("not an extension")) };
    extension.arrived.cancel();
    let (id, run) = (extension.id.clone(), extension.run);
    let admitted = match extensions::admit(&call.hub, &live, extension, spec).await {
        Ok(admitted) => admitted,
        Err(failure) => {
            let message = failure.into_message();
            live.extensions.refused(&id, run, message.clone());
            let text = format!("The extension {id} did not join: {message}.");
            live.ask(move |task| task.record(data::SessionWarning::new("extension", text))).await?;
            return Err(Failure::new(message));
        }
    };
    let entered = call.hub.enter(live.id.clone(), admitted.spec.clone(), &call.client).await?;
    let mut reply = settle(call, admitted.spec, entered).await?;
    if !admitted.variables.is_empty() {
        let granted: BTreeMap<String, String> = admitted.variables.into_iter().collect();
        reply.result["grantedEnvironmentVariables"] = json!(granted);
    }
    let settled = reply.then.take();
    reply.then = Some(Box::pin(async move {
        if let Some(settled) = settled {
            settled.await;
        }
        live.extensions.joined(&id, run);
        extensions::SessionExtensions::publish_change(&live).await;
    }));
    Ok(reply)
}

/// Whether the session exists: in the store, or with the client that keeps its files.
async fn is_kept(call: &Call, id: &SessionId, spec: &SessionSpec) -> Result<bool, Failure> {
    match load_client_session(&call.client, id).await? {
        Some(session) => Ok(session.stored.is_some()),
        None => Ok(call.hub.store_of(spec).contains(id)),
    }
}

/// Finishes what both creating and resuming end with: the system prompt, the answer, and then the first events.
pub(super) async fn settle(call: Call, spec: SessionSpec, entered: Attached) -> Result<Reply, Failure> {
    let Attached { live, how } = entered;
    // An extension brings no settings.
    let is_extension = call.client.extension.is_some();
    if how == AttachKind::Joined && !is_extension {
        join(&live, spec.clone()).await?;
    }
    if how == AttachKind::Opened || spec.instructions.system.is_some() {
        let shown = spec.instructions.system.clone();
        let sections = live.ask(move |task| system::to_transform(shown.as_ref(), &task.prompt())).await?;
        let transformed =
            if sections.is_empty() { BTreeMap::new() } else { transform(&call, &live, sections).await? };
        live.ask(move |task| task.settle_system(transformed)).await?;
    }
    let loads = spec.client.extensions.or(call.hub.config().defaults.client.extensions).unwrap_or(false)
        && call.hub.config().extensions.is_some();
    let is_new = loads && live.extensions.turn_on();
    let (mode, model) = live.ask(|task| (task.session().state().mode, super::model::snapshot(task))).await?;
    let started = live.meta().await?.map_or_else(call.hub.config().now, |meta| meta.created_at);
    let elicitation = live.audience.members().iter().any(|member| member.elicitations);
    let mut result = json!({
        "sessionId": live.id.as_str(),
        "nativeSessionId": live.id.as_str(),
        "startTime": hangar_agent::session::iso(started),
        "isRemote": false,
        "mode": mode,
        "modelState": model,
        "capabilities": {
            "ui": {
                "elicitation": elicitation,
                "mcpApps": spec.servers.apps.unwrap_or(false),
                "canvases": spec.client.canvas_renderer.unwrap_or(false),
            },
            "extensions": loads && !is_extension,
        },
    });
    let open = live.ask(|task| super::canvas::opened(task)).await?;
    if !open.is_empty() {
        result["openCanvases"] = json!(open);
    }
    if spec.conversation.is_infinite() {
        result["workspacePath"] = json!(live.dir.shown());
    }
    let continue_pending = spec.entry.continue_pending.unwrap_or(false);
    let limits = spec.entry.limits;
    let silent = spec.entry.silent.unwrap_or(false);
    let hub = Arc::clone(&call.hub);
    let then = Box::pin(async move {
        // A session that ended in between has nothing left to say.
        let _ = match how {
            AttachKind::Opened => live.ask(SessionTask::begin).await,
            AttachKind::Joined if silent => Ok(()),
            AttachKind::Joined => live.command(Command::Rejoined { continue_pending }).await,
        };
        if how == AttachKind::Joined && spec.client.canvases.is_some() {
            super::canvas::announce(&live).await;
        }
        if limits.is_some() {
            let _ = live.command(Command::SetLimits(limits)).await;
        }
        // The model that it has may be from before there were rules.
        let _ = obey(&live, spec.model.allowed.as_deref()).await;
        if is_new {
            extensions::begin(&hub, &live).await;
        }
    });
    Ok(Reply { result, then: Some(then) })
}

/// Applies the settings of a client that joins. Settings that it does not name stay.
async fn join(live: &ServedSession, mut change: SessionSpec) -> Result<(), Failure> {
    // The session stays where it is: others may be working there.
    change.workspace.directory = None;
    let scope =
        RecomposeScope { model: true, is_chosen: false, instructions: true, servers: change.names_servers() };
    let (spec, recomposed) = recompose(live, change.clone(), scope).await?;
    let model = spec.model.name.unwrap_or_default();
    live.ask(move |task| {
        let effort = change.model.effort.clone().or_else(|| task.session().state().effort.clone());
        task.spec.adopt(change);
        task.take_parts(recomposed, &model);
        if !model.is_empty() {
            task.command(Command::SetModel { model, effort });
        }
        task.refresh();
        // Sections that another client transformed stay transformed.
        task.renew_system();
    })
    .await
}

/// Shows the client the sections that it wants to rewrite.
async fn transform(
    call: &Call,
    live: &ServedSession,
    sections: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failure> {
    #[derive(Deserialize)]
    struct TransformedSections {
        sections: BTreeMap<String, Section>,
    }
    #[derive(Deserialize)]
    struct Section {
        content: String,
    }
    let shown: BTreeMap<&str, Value> =
        sections.iter().map(|(name, text)| (name.as_str(), json!({ "content": text }))).collect();
    let params = json!({ "sessionId": live.id.as_str(), "sections": shown });
    let answer: TransformedSections = call
        .client
        .peer
        .request("systemMessage.transform", &params)
        .await
        .map_err(|error| Failure::new(format!("systemMessage.transform: {error}")))?;
    Ok(answer.sections.into_iter().map(|(name, section)| (name, section.content)).collect())
}

pub(super) fn parse_id(id: &str) -> Result<SessionId, Failure> {
    id.parse().map_err(|error: hangar_store::InvalidId| Failure::new(error.to_string()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendParams {
    prompt: String,
    display_prompt: Option<String>,
    #[serde(default)]
    attachments: Vec<Value>,
    mode: Option<String>,
    #[serde(default)]
    prepend: bool,
    agent_mode: Option<AgentMode>,
    source: Option<String>,
    request_headers: Option<BTreeMap<String, String>>,
    response_format: Option<ResponseFormat>,
    /// Whether the answer is sent when the turn ends, not when it is queued.
    #[serde(default)]
    wait: bool,
    #[serde(flatten)]
    trace: TraceContext,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum ResponseFormat {
    JsonSchema { json_schema: Arc<AnswerSchema> },
}

impl ResponseFormat {
    pub(super) fn schema(self) -> Arc<AnswerSchema> {
        let Self::JsonSchema { json_schema } = self;
        json_schema
    }
}

/// When messages are to reach the model.
pub(super) fn timing(
    mode: Option<&str>,
    prepend: bool,
    format: Option<&ResponseFormat>,
) -> Result<Timing, Failure> {
    match mode {
        Some("immediate") if format.is_some() => Err(Failure::new(
            "responseFormat cannot be specified with mode: immediate; a message that joins a turn is answered in the turn's \
             own format. Use mode: enqueue",
        )),
        Some("immediate") => Ok(Timing::Steer),
        _ if prepend => Ok(Timing::Next),
        _ => Ok(Timing::Queue),
    }
}

async fn send(call: Call) -> Result<Reply, Failure> {
    let params: SendParams = call.params()?;
    let live = call.live()?;
    call.hub.admits_prompt(params.agent_mode)?;
    let timing = timing(params.mode.as_deref(), params.prepend, params.response_format.as_ref())?;
    let message = MessageParams {
        prompt: params.prompt,
        display_prompt: params.display_prompt,
        attachments: params.attachments,
        source: params.source,
    };
    let prompt = Prompt {
        timing,
        agent_mode: params.agent_mode,
        call_options: call_options(params.request_headers, params.response_format),
        ..message.into_prompt()
    };
    let result = json!({ "messageId": prompt.message_id });
    deliver(live, vec![prompt], params.trace, params.wait, result).await
}

/// Options of the model calls for a message.
pub(super) fn call_options(
    headers: Option<BTreeMap<String, String>>,
    format: Option<ResponseFormat>,
) -> CallOptions {
    CallOptions {
        headers: headers.unwrap_or_default().into_iter().collect(),
        answer: format.map(ResponseFormat::schema),
    }
}

/// Sends prompts to a session and answers immediately or, if the client asked for it, after the turn.
pub(super) async fn deliver(
    live: Arc<ServedSession>,
    prompts: Vec<Prompt>,
    trace: TraceContext,
    wait: bool,
    result: Value,
) -> Result<Reply, Failure> {
    if wait {
        submit(&live, prompts, trace).await;
        until_settled(&live).await?;
        return Reply::of(result);
    }
    Ok(Reply { result, then: Some(Box::pin(async move { submit(&live, prompts, trace).await })) })
}

async fn submit(live: &Arc<ServedSession>, prompts: Vec<Prompt>, trace: TraceContext) {
    // Where nothing is waited for this is one job, so that what the client asks for next comes behind it.
    let extended = Arc::clone(live);
    let is_pending = live.extensions.is_pending();
    let waiting = live.ask(move |task| match (task.mcp().cloned(), task.engine.pending_fact()) {
        (None, None) if !is_pending => {
            take(task, prompts, &trace);
            None
        }
        (mcp, fact) => Some((mcp, fact, prompts, trace)),
    });
    // A session that ended in between takes no more messages; its end is an event of its own.
    let Ok(Some((mcp, fact, prompts, trace))) = waiting.await else { return };
    // The servers start with the first message, and the model is to know their tools.
    let ready = async {
        if let Some(mcp) = mcp {
            mcp.ready().await;
        }
    };
    let known = async {
        match fact {
            Some(fact) => fact.await,
            None => None,
        }
    };
    let ((), fact, ()) = tokio::join!(ready, known, extended.extensions.ready());
    let _ = live
        .ask(move |task| {
            task.engine.take_fact(fact);
            take(task, prompts, &trace);
        })
        .await;
}

/// Gives the session prompts, which wait if it works.
pub(crate) fn take(task: &mut SessionTask, prompts: Vec<Prompt>, trace: &TraceContext) {
    if !task.clashes.is_empty() {
        return refuse_clash(task);
    }
    task.catch_up();
    for mut prompt in prompts {
        complete(task, &mut prompt, trace);
        // A queued message emits this event itself.
        if !task.session().is_running() && !task.session().is_queue_paused() {
            task.record(data::PendingMessagesModified {});
        }
        task.deliver(prompt);
    }
}

/// Adds to a prompt the trace that it belongs to.
pub(super) fn complete(task: &SessionTask, prompt: &mut Prompt, trace: &TraceContext) {
    let trace = if trace.traceparent.is_some() { trace } else { &task.spec.trace };
    prompt.call_options.headers.extend(trace.headers());
}

pub(super) fn refuse_clash(task: &mut SessionTask) {
    let message = format!(
        "External tool \"{}\" conflicts with a built-in tool of the same name. Set overridesBuiltInTool: true to \
         replace it.",
        task.clashes.join("\", \"")
    );
    let error =
        data::SessionError { error_type: "tool_init".to_owned(), message, ..data::SessionError::default() };
    task.record(error);
    task.record(data::SessionIdle::default());
}

async fn abort(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        reason: Option<String>,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let reason = params.reason.unwrap_or_else(|| "user_initiated".to_owned());
    live.command(Command::Abort { reason }).await?;
    Reply::success()
}

async fn messages(call: Call) -> Result<Reply, Failure> {
    let SessionParams { session_id } = call.params()?;
    let id = parse_id(&session_id)?;
    // The session finishes its current step before the log is read.
    call.hub.live(&session_id)?.ask(|_| ()).await?;
    let events = events(&call, &id).await;
    let mut events = events
        .map_err(|error| Failure::new(format!("Failed to load session events: {}", error.message())))?;
    events.retain(|event| is_for_clients(event.event_kind()));
    Reply::of(json!({ "events": events }))
}

async fn leave(call: Call) -> Result<Reply, Failure> {
    let SessionParams { session_id } = call.params()?;
    match call.hub.leave(&session_id, call.client.id).await {
        Ok(()) => Reply::success(),
        Err(failure) => Reply::unsuccessful(failure.message()),
    }
}

async fn delete(call: Call) -> Result<Reply, Failure> {
    let SessionParams { session_id } = call.params()?;
    let Ok(id) = parse_id(&session_id) else { return Reply::unsuccessful("Session not found") };
    let mut store = call.hub.config().store.clone();
    if let Ok(live) = call.hub.live(&session_id) {
        store = live.store.clone();
        live.close().await;
    }
    if let Some(session) = load_client_session(&call.client, &id).await? {
        if session.stored.is_none() {
            return Reply::unsuccessful(&format!("Session not found: {session_id}"));
        }
        let files: &dyn SessionFiles = &session.files;
        files.remove("", true).await.map_err(Failure::from_files)?;
        call.hub.announce(Lifecycle::Deleted, &session_id, None);
        return Reply::success();
    }
    match store.delete(&id) {
        Ok(()) => {
            call.hub.announce(Lifecycle::Deleted, &session_id, None);
            Reply::success()
        }
        Err(hangar_store::StoreError::NotFound { .. }) => {
            Reply::unsuccessful(&format!("Session not found: {session_id}"))
        }
        Err(error) => Reply::unsuccessful(&error.to_string()),
    }
}

/// Stops what is under way, so that the session can be resumed elsewhere without loose ends.
async fn suspend(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    live.command(Command::Abort { reason: "user_initiated".to_owned() }).await?;
    Reply::null()
}

async fn shutdown(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "type", default)]
        kind: ShutdownKind,
        reason: Option<String>,
    }
    let params: Params = call.params()?;
    let live: Arc<ServedSession> = call.live()?;
    match params.kind {
        ShutdownKind::Routine => live.close().await,
        ShutdownKind::Error => {
            let reason = params.reason.unwrap_or_else(|| "the client ended the session".to_owned());
            live.close_by(move |task| task.end_for(reason)).await;
        }
    }
    Reply::null()
}

/// Why a client ends a session.
#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ShutdownKind {
    #[default]
    Routine,
    Error,
}
