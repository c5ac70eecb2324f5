//! Requests of views about sessions of other agents: which session they are for, and those that are for none. The terminal itself
//! is one view; others join over a socket.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt;
use hangar_peer::{Peer, raw};
use hangar_protocol::rpc::{ErrorObject, Id, RpcMessage, codes};
use hangar_runtimes::runtime::Consent;
use hangar_store::{SessionId, Store};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::agent_session::{self, Inbox};
use super::agent_views::ViewMessage;
use super::frames::Frames;
use crate::endpoint::TerminalPresence;
use crate::runtimes::AgentRuntimes;
use crate::runtimes::args::RunWithArgs;
use crate::selection::SessionSelection;
use crate::settings::Settings;

/// Requests that may wait for one session.
const REQUESTS: usize = 64;

/// A request about one session.
pub(crate) struct ViewRequest {
    pub(crate) asker: Asker,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// The view that asked, and waits for an answer.
pub(crate) struct Asker {
    pub(super) peer: Peer,
    id: Id,
}

impl Asker {
    pub(crate) fn new(peer: Peer, id: Id) -> Self {
        Self { peer, id }
    }

    pub(crate) fn answer(self, result: Result<Value, String>) {
        let refusal = |message| ErrorObject { code: codes::INTERNAL_ERROR, message, data: None };
        let result = result.map_err(refusal).and_then(|value| {
            raw(&value).ok_or_else(|| refusal("the answer cannot be written as JSON".to_owned()))
        });
        self.peer.respond(self.id, result);
    }
}

/// Surroundings of all sessions of a server.
pub(crate) struct AgentContext {
    pub(crate) settings: Settings,
    pub(crate) runtimes: Arc<AgentRuntimes>,
    pub(crate) store: Store,
    /// Tells other processes which sessions are open here.
    pub(crate) presence: Option<TerminalPresence>,
}

/// Request that opens a session.
pub(crate) struct AgentOpening {
    pub(crate) args: RunWithArgs,
    pub(crate) selection: SessionSelection,
    pub(crate) consent: Consent,
    pub(crate) front: AgentFront,
}

/// Kind of clients that a session has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentFront {
    /// The terminal, and views that join it. The session ends when the terminal says so.
    Terminal,
    /// SDK clients. The session ends with the last of them.
    Program,
}

/// Open sessions of other agents, each owned by one task.
#[derive(Default)]
pub(crate) struct AgentSessions {
    handles: HashMap<String, SessionHandle>,
    tasks: JoinSet<()>,
}

/// The server's end of a session. Dropping it ends the session.
struct SessionHandle {
    requests: mpsc::Sender<ViewRequest>,
    /// Takes the request that ends the session.
    ending: oneshot::Sender<Asker>,
}

impl AgentSessions {
    pub(crate) fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }

    pub(crate) fn contains(&self, session_id: &str) -> bool {
        self.handles.contains_key(session_id)
    }

    pub(crate) fn open(&mut self, context: Arc<AgentContext>, opening: AgentOpening, asker: Asker) {
        let session_id = opening.selection.id().to_string();
        let (requests, inbox) = mpsc::channel(REQUESTS);
        let (ending, ended) = oneshot::channel();
        let inbox = Inbox { requests: inbox, ended };
        self.tasks.spawn(FutureExt::boxed(agent_session::run(context, opening, asker, inbox)));
        self.handles.insert(session_id, SessionHandle { requests, ending });
    }

    /// Ends a session, which answers when it has ended.
    fn end(&mut self, request: ViewRequest) {
        match self.handles.remove(session_of(&request.params)) {
            // A session that has ended by itself has nothing left to do.
            Some(session) => {
                if let Err(asker) = session.ending.send(request.asker) {
                    asker.answer(Ok(Value::Null));
                }
            }
            None => self.pass_on(request),
        }
    }

    pub(crate) fn pass_on(&self, request: ViewRequest) {
        let Some(session) = self.handles.get(session_of(&request.params)) else {
            let problem = "the agent of this session has ended; /resume goes on with it".to_owned();
            return request.asker.answer(Err(problem));
        };
        if let Err(refused) = session.requests.try_send(request) {
            let (mpsc::error::TrySendError::Full(request) | mpsc::error::TrySendError::Closed(request)) =
                refused;
            let problem = "the session takes no requests just now; wait a moment".to_owned();
            request.asker.answer(Err(problem));
        }
    }

    /// Forgets sessions that have ended by themselves.
    pub(crate) fn reap(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.handles.retain(|_, session| !session.requests.is_closed());
    }

    /// Resolves when a session has ended, if there is any.
    async fn one_ended(&mut self) -> Option<()> {
        self.tasks.join_next().await.map(drop)
    }

    /// Ends all sessions. The future resolves when they have ended.
    pub(crate) fn end_all(&mut self) -> impl Future<Output = ()> + use<> {
        self.handles.clear();
        let mut tasks = std::mem::take(&mut self.tasks);
        async move { while tasks.join_next().await.is_some() {} }
    }
}

fn session_of(params: &Value) -> &str {
    params["sessionId"].as_str().unwrap_or_default()
}

pub(super) struct AgentServer {
    context: Arc<AgentContext>,
    /// The terminal's own view.
    owner: Peer,
    args: RunWithArgs,
    sessions: AgentSessions,
}

/// Parameters that open a session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenParams {
    session_id: String,
    runtime: String,
    /// Whether the session is the one that the flags were typed for.
    #[serde(default)]
    typed: bool,
}

impl AgentServer {
    pub(super) fn new(context: AgentContext, args: RunWithArgs, owner: Peer) -> Self {
        let context = Arc::new(context);
        Self { context, owner, args, sessions: AgentSessions::default() }
    }

    /// Serves the terminal's connection to its end, and other views meanwhile, then ends all sessions.
    pub(super) async fn run(
        mut self,
        reader: impl AsyncRead + Unpin,
        mut views: mpsc::Receiver<ViewMessage>,
        stop: &CancellationToken,
    ) {
        let mut frames = Frames::new(reader);
        loop {
            tokio::select! {
                body = frames.next() => match body {
                    Some(body) => self.take(&body),
                    None => break,
                },
                Some(message) = views.recv() => self.take_view(message),
                () = stop.cancelled() => break,
                Some(()) = self.sessions.one_ended() => self.sessions.reap(),
            }
        }
        self.sessions.end_all().await;
    }

    fn take(&mut self, body: &[u8]) {
        let Some(request) = ViewRequest::parse(&self.owner, body) else { return };
        match request.method.as_str() {
            "session.create" | "session.resume" => self.open(request),
            "sessions.bulkDelete" => self.delete(request),
            "session.destroy" => self.sessions.end(request),
            _ => self.sessions.pass_on(request),
        }
    }

    /// Takes a request of another view. It joins sessions that are open, and neither opens nor ends any.
    fn take_view(&mut self, ViewMessage { peer, body }: ViewMessage) {
        let Some(request) = ViewRequest::parse(&peer, &body) else { return };
        match request.method.as_str() {
            "session.create" | "sessions.bulkDelete" => {
                request
                    .asker
                    .answer(Err("sessions are opened and deleted in the terminal itself".to_owned()));
            }
            "session.destroy" => request.asker.answer(Ok(Value::Null)),
            _ => self.sessions.pass_on(request),
        }
    }

    fn open(&mut self, request: ViewRequest) {
        let ViewRequest { asker, method, params } = request;
        let opened = OpenParams::deserialize(&params).map_err(|error| error.to_string()).and_then(|params| {
            let session_id: SessionId =
                params.session_id.parse().map_err(|_| "the id of the session is not one".to_owned())?;
            Ok((params, session_id))
        });
        let (params, session_id) = match opened {
            Ok(opened) => opened,
            Err(problem) => return asker.answer(Err(problem)),
        };
        let is_new = method == "session.create";
        let args = self.args_for(&params, is_new);
        let selection = SessionSelection::by_id(session_id, !is_new);
        let consent = args.terminal_consent();
        let opening = AgentOpening { args, selection, consent, front: AgentFront::Terminal };
        self.sessions.open(Arc::clone(&self.context), opening, asker);
    }

    /// Flags for a session: all for the one that they were typed for and for new ones like it.
    fn args_for(&self, params: &OpenParams, is_new: bool) -> RunWithArgs {
        let same = self.args.agent.runtime.as_ref() == Some(&params.runtime);
        let mut args = if same && (is_new || params.typed) { self.args.clone() } else { self.args.common() };
        if !params.typed {
            args.input.attachment.clear();
        }
        args.agent.runtime = Some(params.runtime.clone());
        args
    }

    fn delete(&self, request: ViewRequest) {
        let ids = request.params["sessionIds"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let problems: Vec<String> = ids
            .filter_map(|id| {
                let deleted = id.parse().map_err(|_| format!("`{id}` is no session"));
                deleted.and_then(|id| self.context.store.delete(&id).map_err(|error| error.to_string())).err()
            })
            .collect();
        let result = if problems.is_empty() { Ok(json!({})) } else { Err(problems.join("; ")) };
        request.asker.answer(result);
    }
}

impl ViewRequest {
    fn parse(peer: &Peer, body: &[u8]) -> Option<Self> {
        let Ok(RpcMessage::Request { id, method, params }) = RpcMessage::parse(body) else { return None };
        let params = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        Some(Self { asker: Asker::new(peer.clone(), id), method, params })
    }
}
