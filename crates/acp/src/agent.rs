//! The agent of one client: its requests, in the order in which they come, and its sessions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use hangar_agent::session::iso;
use hangar_agent::session::state::project;
use hangar_peer::Peer;
use hangar_protocol::Event;
use hangar_protocol::rpc::{ErrorObject, Id, codes};
use hangar_store::{Filter, SessionId, Store};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::answers::{answer, error, internal};
use crate::opener::{EditorOpenError, EditorSessionOpener, RequestedSession};
use crate::schema::{
    ListSessions, LoadSession, NewSession, PROTOCOL_VERSION, PromptParams, SessionParams, SetConfigOption,
    SetMode, SetModel,
};
use crate::servers;
use crate::session::{EditorSession, SessionMessage};
use crate::updates::{UpdateDelivery, UpdateSender, UpdateSink, UpdateTranslator};

/// Capacity of a session's queue of messages; the client has to wait beyond it.
const JOBS: usize = 64;
/// Sessions that one client may have open at once.
const MAX_SESSIONS: usize = 1000;
/// Sessions on one page of a list.
const PAGE: usize = 100;
/// The protocol's code for something that is not there.
const RESOURCE_NOT_FOUND: i64 = -32002;

pub struct EditorAgentConfig {
    pub opener: Box<dyn EditorSessionOpener>,
    pub store: Store,
    /// Version of the agent, as clients are told it.
    pub version: String,
}

/// A session that is open.
struct OpenSession {
    jobs: mpsc::Sender<SessionMessage>,
    running: JoinHandle<()>,
}

impl OpenSession {
    /// Ends the session and waits until it is closed.
    async fn close(self) {
        drop(self.jobs);
        if let Err(error) = self.running.await {
            tracing::error!(%error, "the task of a session failed");
        }
    }
}

pub(crate) struct EditorAgent {
    config: Arc<EditorAgentConfig>,
    peer: Peer,
    sessions: HashMap<String, OpenSession>,
}

impl EditorAgent {
    pub(crate) fn new(config: Arc<EditorAgentConfig>, peer: Peer) -> Self {
        Self { config, peer, sessions: HashMap::new() }
    }

    /// Ends all sessions, so that each has its last word in its log and leaves nothing running.
    pub(crate) async fn close(&mut self) {
        join_all(self.sessions.drain().map(|(_, live)| live.close())).await;
    }

    /// Takes a request. Those about a session are answered by its task, when it gets there.
    pub(crate) async fn request(&mut self, id: Id, method: &str, params: Option<&RawValue>) {
        let result = match method {
            "initialize" => Ok(self.capabilities()),
            // The model is configured outside, so there is nothing to log in to or out of.
            "authenticate" | "logout" => Ok(json!({})),
            "session/list" => read(params).and_then(|params| self.list(params)),
            "session/close" => match read(params) {
                Ok(params) => self.close_session(params).await,
                Err(error) => Err(error),
            },
            "session/new" => match read(params) {
                Ok(params) => return self.new_session(id, params),
                Err(error) => Err(error),
            },
            "session/load" => match read(params) {
                Ok(params) => return self.load(id, params).await,
                Err(error) => Err(error),
            },
            "session/prompt" | "session/set_mode" | "session/set_model" | "session/set_config_option" => {
                match job(id.clone(), method, params) {
                    Ok((session_id, job)) => match self.give(&session_id, job).await {
                        Ok(()) => return,
                        Err(error) => Err(error),
                    },
                    Err(error) => Err(error),
                }
            }
            _ => Err(ErrorObject {
                data: Some(json!({ "method": method })),
                ..error(codes::METHOD_NOT_FOUND, format!("Method not found: {method}"))
            }),
        };
        self.peer.respond(id, result.and_then(|value| answer(&value)));
    }

    pub(crate) async fn notified(&mut self, method: &str, params: Option<&RawValue>) {
        if method == "session/cancel"
            && let Ok(SessionParams { session_id }) = read(params)
        {
            // A session that is not there is not doing anything.
            let _ = self.give(&session_id, SessionMessage::Cancel).await;
        }
    }

    fn capabilities(&self) -> Value {
        json!({
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": true,
                "mcpCapabilities": { "http": true, "sse": true },
                "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
                "sessionCapabilities": { "close": {}, "list": {} },
            },
            "agentInfo": { "name": "Hangar", "title": "Hangar", "version": self.config.version },
            "authMethods": [],
        })
    }

    async fn give(&self, session_id: &str, job: SessionMessage) -> Result<(), ErrorObject> {
        let missing = || ErrorObject {
            data: Some(json!({ "sessionId": session_id })),
            ..error(codes::INVALID_PARAMS, format!("Session {session_id} not found"))
        };
        let live = self.sessions.get(session_id).ok_or_else(missing)?;
        live.jobs.send(job).await.map_err(|_| missing())
    }

    fn new_session(&mut self, id: Id, params: NewSession) {
        let session_id = uuid::Uuid::new_v4().to_string();
        let opened = session_id
            .parse::<SessionId>()
            .map_err(|error| internal(error.to_string()))
            .and_then(|id| self.open(&id, params.cwd, params.mcp_servers));
        match opened {
            Ok(task) => {
                let mut choices = task.0.choices();
                choices["sessionId"] = json!(session_id);
                self.peer.respond(id, answer(&choices));
                self.start(session_id, task);
            }
            Err(error) => self.peer.refuse(Some(id), error),
        }
    }

    /// Opens a session of the store. Its conversation is sent again before the answer.
    async fn load(&mut self, id: Id, params: LoadSession) {
        let session_id = params.session_id;
        let absent = || {
            let what = format!("Session {session_id} not found");
            let message = format!("Resource not found: {what}");
            ErrorObject { data: Some(json!({ "uri": what })), ..error(RESOURCE_NOT_FOUND, message) }
        };
        let known = session_id.parse::<SessionId>().ok().filter(|id| self.config.store.contains(id));
        let Some(stored) = known else { return self.peer.refuse(Some(id), absent()) };
        if self.is_open(&session_id) {
            let message = format!("Session {session_id} is already loaded");
            return self.peer.refuse(Some(id), error(codes::INVALID_PARAMS, message));
        }
        // Read before the session is opened: events of the opening are sent as live ones.
        let events = match self.config.store.read(&stored).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
            Ok(events) => project(events),
            Err(error) => return self.peer.refuse(Some(id), internal(error.to_string())),
        };
        match self.open(&stored, params.cwd, params.mcp_servers) {
            Ok(task) => {
                self.tell_again(&session_id, events).await;
                self.peer.respond(id, answer(&task.0.choices()));
                self.start(session_id, task);
            }
            Err(error) => self.peer.refuse(Some(id), error),
        }
    }

    async fn tell_again(&self, session_id: &str, events: Vec<Event>) {
        let channel = self.channel(session_id);
        let mut translator = UpdateTranslator::new(UpdateDelivery::Again);
        for event in &events {
            for update in translator.translate(event) {
                channel.send(&update);
                channel.peer.keep_pace().await;
            }
        }
    }

    fn channel(&self, session_id: &str) -> UpdateSender {
        UpdateSender { peer: self.peer.clone(), session_id: session_id.into() }
    }

    fn is_open(&self, session_id: &str) -> bool {
        self.sessions.get(session_id).is_some_and(|live| !live.running.is_finished())
    }

    fn open(
        &self,
        id: &SessionId,
        cwd: PathBuf,
        mcp_servers: Vec<Value>,
    ) -> Result<(EditorSession, mpsc::Sender<SessionMessage>), ErrorObject> {
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(internal(format!("{MAX_SESSIONS} sessions are open; close some first")));
        }
        let channel = self.channel(id.as_str());
        let told = channel.clone();
        let sink = Box::new(move || Box::new(UpdateSink::new(told.clone())) as _);
        let (mcp_servers, warnings) = servers::configured(mcp_servers);
        let wanted = RequestedSession { id: id.clone(), directory: cwd, mcp_servers, warnings, sink };
        let engine = self.config.opener.open(wanted).map_err(|refused| match refused {
            EditorOpenError::Directory(message) => error(codes::INVALID_PARAMS, message),
            EditorOpenError::Failed(message) => internal(message),
        })?;
        let (jobs, waiting) = mpsc::channel(JOBS);
        Ok((EditorSession::new(channel, engine, waiting), jobs))
    }

    fn start(&mut self, session_id: String, (task, jobs): (EditorSession, mpsc::Sender<SessionMessage>)) {
        let running = tokio::spawn(FutureExt::boxed(task.live()));
        self.sessions.insert(session_id, OpenSession { jobs, running });
    }

    fn list(&self, params: ListSessions) -> Result<Value, ErrorObject> {
        let start = match &params.cursor {
            None => 0,
            Some(cursor) => cursor.parse::<usize>().map_err(|_| {
                error(codes::INVALID_PARAMS, format!("`{cursor}` is not a cursor that a list gave"))
            })?,
        };
        let filter = Filter { cwd: params.cwd, ..Filter::default() };
        let found = self.config.store.list(&filter).map_err(|error| internal(error.to_string()))?;
        let page: Vec<Value> = found
            .iter()
            .skip(start)
            .take(PAGE)
            .map(|session| {
                let mut listed = json!({
                    "sessionId": session.id.as_str(),
                    "cwd": session.meta.context.as_ref().map(|context| context.cwd.as_str()).unwrap_or_default(),
                    "updatedAt": iso(session.meta.updated_at),
                });
                if let Some(name) = &session.meta.name {
                    listed["title"] = json!(name.as_str());
                }
                listed
            })
            .collect();
        let end = start.saturating_add(page.len());
        let mut answer = json!({ "sessions": page });
        if end < found.len() {
            answer["nextCursor"] = json!(end.to_string());
        }
        Ok(answer)
    }

    async fn close_session(&mut self, params: SessionParams) -> Result<Value, ErrorObject> {
        let SessionParams { session_id } = params;
        let Some(live) = self.sessions.remove(&session_id) else {
            let what = format!("Session {session_id} not found");
            let message = format!("Resource not found: {what}");
            return Err(ErrorObject {
                data: Some(json!({ "uri": what })),
                ..error(RESOURCE_NOT_FOUND, message)
            });
        };
        live.close().await;
        Ok(json!({}))
    }
}

/// A request about a session, as a job for its task.
fn job(id: Id, method: &str, params: Option<&RawValue>) -> Result<(String, SessionMessage), ErrorObject> {
    let SessionParams { session_id } = read(params)?;
    let job = match method {
        "session/set_mode" => SessionMessage::SetMode(id, read::<SetMode>(params)?.mode_id),
        "session/set_model" => SessionMessage::SetModel(id, read::<SetModel>(params)?.model_id),
        "session/set_config_option" => {
            let SetConfigOption { config_id, value } = read(params)?;
            SessionMessage::SetConfigOption(id, config_id, value)
        }
        _ => SessionMessage::Prompt(id, read::<PromptParams>(params)?.prompt),
    };
    Ok((session_id, job))
}

fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text)
        .map_err(|problem| error(codes::INVALID_PARAMS, format!("Invalid params: {problem}")))
}
