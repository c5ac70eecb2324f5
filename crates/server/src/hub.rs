//! The sessions that are alive and the clients that are connected.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hangar_agent::features::Features;
use hangar_agent::session::Command;
use hangar_engine::{BackgroundWork, Engine, Naming, NoComposer, Options, ServerStart, supervise};
use hangar_files::ClientFiles;
use hangar_git::Git;
use hangar_protocol::data::{AgentMode, Mode};
use hangar_protocol::rpc::{ErrorObject, codes};
use hangar_protocol::{Body, Event};
use hangar_store::client_session::ClientSession;
use hangar_store::{SessionId, SessionMeta, Store};
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::audience::{Audience, Broadcast, ClientHooks, ClientTool, Member};
use crate::client::{Client, ClientId};
use crate::client_shells::ClientShells;
use crate::client_tools::{ExternalTool, PendingCalls};
use crate::commands::PendingCommands;
use crate::elicitations::Elicitations;
use crate::extensions::{ExtensionHost, SessionExtensions};
use crate::finder::Finder;
use crate::foreground::Foreground;
use crate::handshake::ServerAccess;
use crate::inference;
use crate::log_pages::LogReaders;
use crate::methods::{ClientPlugins, Failure};
use crate::open_locks::OpenLocks;
use crate::opener::{AccountHost, OpenRequest, SessionOpener};
use crate::other_agents::OtherAgents;
use crate::peer::notification;
use crate::presence::Presence;
use crate::recent_events::RecentEvents;
use crate::remote::{RemoteAccess, RemoteControl};
use crate::session_files::SessionDir;
use crate::session_fs::FsProvider;
use crate::task::{SessionJob, SessionTask};
use hangar_spec::{SessionSpec, ToolDeclaration};

/// Capacity of a session's job queue; senders wait beyond it.
const JOBS: usize = 64;
/// Maximum number of live sessions.
const MAX_SESSIONS: usize = 10_000;
/// Maximum number of connected clients. Each costs two tasks and its buffers.
const MAX_CLIENTS: usize = 256;

pub struct ServerHubConfig {
    pub opener: Box<dyn SessionOpener>,
    pub account: Box<dyn AccountHost>,
    pub finder: Box<dyn Finder>,
    pub store: Store,
    pub access: ServerAccess,
    /// Version of the server, as clients are told it.
    pub version: String,
    pub git: Git,
    /// Working directory of the server: relative paths of requests without a session start there.
    pub directory: PathBuf,
    pub now: fn() -> Timestamp,
    pub features: Features,
    /// Settings of sessions that their clients do not name.
    pub defaults: SessionSpec,
    /// How the first prompt names a session.
    pub naming: Naming,
    /// Maximum wait for background work before a prompt is reported as ended.
    pub task_wait: Duration,
    /// Idle time after which a session is closed; `None` keeps it open.
    pub idle_timeout: Option<Duration>,
    /// Flushes telemetry and the like before `shutdown` is answered: clients may kill the server right after the
    /// answer.
    pub farewell: fn(),
    /// Lets portals of this machine join sessions.
    pub remote_access: Option<Box<dyn RemoteAccess>>,
    /// Finds and starts extensions; none are there without it.
    pub extensions: Option<Box<dyn ExtensionHost>>,
    /// Told which sessions are alive.
    pub presence: Option<Box<dyn Presence>>,
    /// Runs the sessions of other agents; there are none without it.
    pub other_agents: Option<Box<dyn OtherAgents>>,
}

pub struct ServerHub {
    config: ServerHubConfig,
    sessions: Mutex<HashMap<String, Arc<ServedSession>>>,
    clients: Mutex<HashMap<ClientId, Arc<Client>>>,
    next_client: AtomicU64,
    /// A session is opened by one client at a time, so that two that open the same one meet in it.
    opening: OpenLocks,
    stopping: CancellationToken,
    pub(crate) log_readers: LogReaders,
    pub(crate) foreground: Foreground,
    /// Plugins that clients bring to all later sessions.
    pub(crate) client_plugins: Mutex<ClientPlugins>,
    pub(crate) remote: RemoteControl,
    /// Client that says how extensions are started.
    launch_provider: Mutex<Weak<Client>>,
}

/// Lifecycle events of a session as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    Created,
    Updated,
    Deleted,
    /// A view shows it.
    Foreground,
    /// A view shows another one.
    Background,
}

/// A session that is alive.
pub(crate) struct ServedSession {
    pub(crate) id: SessionId,
    pub(crate) dir: SessionDir,
    /// The same, if a client keeps it.
    pub(crate) client_files: Option<ClientFiles>,
    /// Store that lists the session: the common one, unless the client named a directory.
    pub(crate) store: Store,
    pub(crate) audience: Arc<Audience>,
    pub(crate) pending: Arc<PendingCalls>,
    /// Commands that a client carries out.
    pub(crate) executing: PendingCommands,
    /// Number of events that the session has published; long polls watch it.
    pub(crate) news: watch::Sender<u64>,
    pub(crate) history: RecentEvents,
    pub(crate) elicitations: Elicitations,
    /// Commands that clients run.
    pub(crate) shells: Arc<ClientShells>,
    /// Held while what clients say of the session is changed.
    pub(crate) client_metadata: tokio::sync::Mutex<()>,
    pub(crate) extensions: SessionExtensions,
    jobs: mpsc::Sender<SessionJob>,
    closing: AtomicBool,
    done: CancellationToken,
}

/// Place of a session's files.
pub(crate) struct SessionPlace {
    pub(crate) dir: SessionDir,
    pub(crate) client_files: Option<ClientFiles>,
    pub(crate) store: Store,
}

impl ServedSession {
    /// A session, and the queue of jobs that its task takes.
    pub(crate) fn new(
        id: SessionId,
        place: SessionPlace,
        audience: &Arc<Audience>,
        pending: Arc<PendingCalls>,
    ) -> (Arc<Self>, mpsc::Receiver<SessionJob>) {
        let (jobs, queue) = mpsc::channel(JOBS);
        let SessionPlace { dir, client_files, store } = place;
        let live = Arc::new(Self {
            dir,
            client_files,
            store,
            id,
            audience: Arc::clone(audience),
            pending,
            executing: PendingCommands::default(),
            news: watch::Sender::new(0),
            history: RecentEvents::default(),
            elicitations: Elicitations::default(),
            shells: Arc::default(),
            client_metadata: tokio::sync::Mutex::default(),
            extensions: SessionExtensions::default(),
            jobs,
            closing: AtomicBool::new(false),
            done: CancellationToken::new(),
        });
        audience.watch(&live);
        (live, queue)
    }

    /// Runs a closure in the session's task and returns its result.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut SessionTask) -> T + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Failure>> {
        let (answer, answered) = oneshot::channel();
        let job: SessionJob = Box::new(move |task| {
            // The caller may have gone.
            let _ = answer.send(job(task));
        });
        // Two hundred closures share the code that waits.
        Box::pin(self.answered(job, answered))
    }

    async fn answered<T>(&self, job: SessionJob, answered: oneshot::Receiver<T>) -> Result<T, Failure> {
        let gone = || Failure::new(format!("Session not found for sessionId: {}", self.id));
        self.jobs.send(job).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }

    pub(crate) async fn command(&self, command: Command) -> Result<(), Failure> {
        self.ask(move |task| task.command(command)).await
    }

    /// Tools that a client runs for this session.
    pub(crate) fn tools(&self, declarations: &[ToolDeclaration]) -> Vec<ClientTool> {
        client_tools(self.id.as_str(), &self.pending, declarations)
    }

    /// Metadata of the session as lists show it, from wherever it is kept.
    pub(crate) async fn meta(&self) -> Result<Option<SessionMeta>, Failure> {
        match self.store.look(&self.id) {
            Some(listed) => Ok(Some(listed.meta)),
            None => self.dir.facts().await,
        }
    }

    pub(crate) fn saw(&self, event: &Event) {
        self.history.push(event);
        self.news.send_modify(|count| *count += 1);
    }

    /// Ends the session and waits until it is closed.
    pub(crate) async fn close(&self) {
        self.close_by(SessionTask::end).await;
    }

    /// The same for a session that ends in its own way.
    pub(crate) async fn close_by(&self, end: impl FnOnce(&mut SessionTask) + Send + 'static) {
        self.closing.store(true, Ordering::Relaxed);
        // A session that has ended already needs no telling.
        let _ = self.ask(end).await;
        self.done.cancelled().await;
    }

    /// Waits for news of the session. False if it is over, after which there are none.
    pub(crate) async fn changed(&self, news: &mut watch::Receiver<u64>) -> bool {
        tokio::select! {
            changed = news.changed() => changed.is_ok(),
            () = self.done.cancelled() => false,
        }
    }

    /// Waits until the session is closed.
    pub(crate) async fn ended(&self) {
        self.done.cancelled().await;
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed) || self.jobs.is_closed()
    }
}

impl ServerHub {
    pub fn new(config: ServerHubConfig) -> Arc<Self> {
        Arc::new(Self {
            config,
            sessions: Mutex::default(),
            clients: Mutex::default(),
            next_client: AtomicU64::new(0),
            opening: OpenLocks::default(),
            stopping: CancellationToken::new(),
            log_readers: LogReaders::default(),
            foreground: Foreground::default(),
            client_plugins: Mutex::default(),
            remote: RemoteControl::default(),
            launch_provider: Mutex::default(),
        })
    }

    pub(crate) fn config(&self) -> &ServerHubConfig {
        &self.config
    }

    pub(crate) fn next_client(&self) -> ClientId {
        ClientId(self.next_client.fetch_add(1, Ordering::Relaxed))
    }

    /// Waits until a client asks the server to stop.
    pub async fn stopped(&self) {
        self.stopping.cancelled().await;
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Ends all sessions because of something outside, not because their users asked: a signal, or a terminal that is gone.
    pub async fn close_from_outside(&self) {
        let live: Vec<Arc<ServedSession>> = self.sessions.lock().values().cloned().collect();
        let abort = || Command::Abort { reason: "remote_command".to_owned() };
        // A session that has ended already has nothing to abort.
        let _ = futures_util::future::join_all(live.iter().map(|live| live.command(abort()))).await;
        self.close().await;
    }

    /// Ends all sessions, so that each has its last word in its log.
    pub async fn close(&self) {
        let live: Vec<Arc<ServedSession>> = self.sessions.lock().values().cloned().collect();
        futures_util::future::join_all(live.iter().map(|live| live.close())).await;
        if let Some(agents) = &self.config.other_agents {
            agents.close().await;
        }
    }

    /// Records an event in all sessions of the server's home, such as that its settings have changed.
    pub async fn record_in_all(&self, body: &Body) {
        let is_here = |live: &&Arc<ServedSession>| live.store.root() == self.config.store.root();
        let live: Vec<Arc<ServedSession>> = self.sessions.lock().values().filter(is_here).cloned().collect();
        let record = |live: Arc<ServedSession>| {
            let body = body.clone();
            // A session that has ended needs no telling.
            async move { live.ask(move |task| task.record(body)).await.ok() }
        };
        futures_util::future::join_all(live.into_iter().map(record)).await;
    }

    /// Adds a client to those that receive lifecycle events.
    pub(crate) fn joined(&self, client: &Arc<Client>) -> Result<(), ErrorObject> {
        let mut clients = self.clients.lock();
        if clients.len() >= MAX_CLIENTS {
            let message =
                format!("{MAX_CLIENTS} clients are connected to this server already; disconnect one");
            return Err(ErrorObject { code: codes::INTERNAL_ERROR, message, data: None });
        }
        clients.insert(client.id, Arc::clone(client));
        Ok(())
    }

    /// Removes a client. Its sessions continue without it if they have other clients or are working.
    pub(crate) fn left(self: &Arc<Self>, client: &Arc<Client>) {
        // A client that was never admitted has no sessions.
        if self.clients.lock().remove(&client.id).is_none() {
            return;
        }
        let sessions: Vec<Arc<ServedSession>> = self.sessions.lock().values().cloned().collect();
        for live in sessions {
            if client.extension.is_some() {
                live.pending.abandon(&live.audience.tools_of(client.id));
            }
            if live.audience.leave(client.id) {
                let now = (self.config.now)();
                tokio::spawn(FutureExt::boxed(async move {
                    // A session that has ended has nothing to refresh.
                    let _ = live.ask(move |task| task.client_left(now)).await;
                }));
            }
        }
    }

    /// Checks that sessions may use this mode.
    pub(crate) fn admits(&self, mode: Mode) -> Result<(), Failure> {
        match self.config.features.absent_mode(mode) {
            Some(feature) => Err(Failure::new(format!("the feature `{feature}` is off on this server"))),
            None => Ok(()),
        }
    }

    /// The same for the mode that a prompt is sent in.
    pub(crate) fn admits_prompt(&self, mode: Option<AgentMode>) -> Result<(), Failure> {
        mode.and_then(AgentMode::of_session).map_or(Ok(()), |mode| self.admits(mode))
    }

    /// Store of the sessions of a specification.
    pub(crate) fn store_of(&self, spec: &SessionSpec) -> Store {
        spec.identity.config_dir.as_ref().map_or_else(|| self.config.store.clone(), |dir| Store::new(dir))
    }

    /// The folder that holds everything the server keeps.
    pub(crate) fn home(&self) -> PathBuf {
        let root = self.config.store.root();
        root.parent().unwrap_or(root).to_path_buf()
    }

    /// Sends a lifecycle event of a session to every client. A new session has no earlier start time.
    pub(crate) fn announce(&self, what: Lifecycle, session_id: &str, began: Option<&str>) {
        let kind = match what {
            Lifecycle::Created => "session.created",
            Lifecycle::Updated => "session.updated",
            Lifecycle::Deleted => "session.deleted",
            Lifecycle::Foreground => "session.foreground",
            Lifecycle::Background => "session.background",
        };
        let now = hangar_agent::session::iso((self.config.now)());
        let mut params = json!({ "type": kind, "sessionId": session_id });
        // Nothing is left to tell of one that is gone.
        if what != Lifecycle::Deleted {
            params["metadata"] = json!({ "startTime": began.unwrap_or(&now), "modifiedTime": now });
        }
        let frame = notification("session.lifecycle", &params);
        for client in self.clients.lock().values() {
            client.peer.send(Arc::clone(&frame));
        }
    }

    /// The same for a session that may be alive, which knows when it began.
    pub(crate) fn announce_live(&self, what: Lifecycle, session_id: &str) {
        let live = self.sessions.lock().get(session_id).cloned();
        self.announce(what, session_id, live.as_ref().and_then(|live| live.audience.began()));
    }

    /// Announces to other processes that a session is open, or closed. A session whose files a client keeps is not announced.
    fn tell_presence(&self, live: &ServedSession, tell: fn(&dyn Presence, &SessionId)) {
        if let Some(presence) = self.config.presence.as_deref().filter(|_| self.is_common(live)) {
            tell(presence, &live.id);
        }
    }

    /// Whether other processes find the session in the home.
    fn is_common(&self, live: &ServedSession) -> bool {
        live.client_files.is_none() && live.store.root() == self.config.store.root()
    }

    /// Access of portals to a session, if they can have it.
    pub(crate) fn remote_access(&self, live: &ServedSession) -> Option<&dyn RemoteAccess> {
        self.config.remote_access.as_deref().filter(|_| self.is_common(live))
    }

    /// A session that is alive and stays so.
    pub(crate) fn live(&self, id: &str) -> Result<Arc<ServedSession>, Failure> {
        let live = self.sessions.lock().get(id).filter(|live| !live.is_closing()).cloned();
        live.ok_or_else(|| Failure::new(format!("Session not found for sessionId: {id}")))
    }

    /// Joins a session that is alive, or opens it. Says which of the two it was.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        id: SessionId,
        spec: SessionSpec,
        client: &Arc<Client>,
    ) -> Result<Attached, Failure> {
        let _one_at_a_time = self.opening.lock(id.as_str()).await;
        let known = self.sessions.lock().get(id.as_str()).cloned();
        if let Some(live) = known {
            // No client is left to answer the open questions, and the new one does not continue pending work.
            let orphaned = live.audience.is_empty() && !spec.entry.continue_pending.unwrap_or(false);
            if orphaned {
                live.close().await;
            }
            if !live.is_closing() {
                live.audience.join(self.member(&live.audience.session_id, &live.pending, &spec, client));
                live.ask(SessionTask::refresh).await?;
                return Ok(Attached { live, how: AttachKind::Joined });
            }
            live.done.cancelled().await;
        }
        if self.sessions.lock().len() >= MAX_SESSIONS {
            return Err(Failure::new(format!("{MAX_SESSIONS} sessions are open already")));
        }
        let mut spec = spec.over(self.config.defaults.clone());
        let brought: Vec<PathBuf> = self.client_plugins.lock().dirs().cloned().collect();
        if !brought.is_empty() {
            spec.customization.plugin_dirs.get_or_insert_default().extend(brought);
        }
        let client_session = load_client_session(client, &id).await?;
        let store = self.store_of(&spec);
        let dir = match &client_session {
            Some(client_session) => SessionDir(Arc::new(client_session.files.clone())),
            None => SessionDir::local(store.session_dir(&id)),
        };
        let client_files = client_session.as_ref().map(|client_session| client_session.files.clone());
        let audience = Arc::new(Audience::new(id.as_str(), self));
        let pending = Arc::new(PendingCalls::default());
        let opened = self.config.opener.open(OpenRequest {
            id: id.clone(),
            spec: &spec,
            sink: Box::new(Broadcast(Arc::clone(&audience))),
            hooks: Arc::new(ClientHooks(Arc::clone(&audience))),
            transport: inference::transport(&audience, &spec, client.is_request_proxy()),
            client_session,
        })?;
        audience.join(self.member(id.as_str(), &pending, &spec, client));
        let (live, queue) =
            ServedSession::new(id, SessionPlace { dir, client_files, store }, &audience, pending);
        // A session whose metadata cannot be read counts as unnamed.
        let named = live.meta().await.ok().flatten().is_some_and(|meta| meta.name.is_some());
        audience.set_began(&opened.parts.driver.session().state().started);
        let options = Options {
            servers: ServerStart::WithPrompt,
            naming: if named { Naming::Named } else { self.config.naming },
            waits_for: BackgroundWork::All,
            task_wait: self.config.task_wait,
            announces_tools: true,
            features: self.config.features.clone(),
        };
        // Operations that need more than the session are methods here.
        let engine = Engine::new(opened.parts, options, Arc::new(NoComposer));
        let mut task =
            SessionTask::new(engine, opened.surroundings, queue, spec, audience, self.config.idle_timeout);
        task.restore_schedules((self.config.now)());
        task.refresh();
        self.add(&live);
        let (hub, ended) = (Arc::clone(self), Arc::clone(&live));
        tokio::spawn(FutureExt::boxed(async move {
            supervise(&mut task, std::future::pending()).await;
            drop(task);
            hub.forget(&ended);
        }));
        Ok(Attached { live, how: AttachKind::Opened })
    }

    fn member(
        &self,
        session_id: &str,
        pending: &Arc<PendingCalls>,
        spec: &SessionSpec,
        client: &Arc<Client>,
    ) -> Member {
        let tools = client_tools(session_id, pending, spec.client.tools.as_deref().unwrap_or_default());
        Member::new(Arc::clone(client), spec, tools)
    }

    /// Composes a session that is alive anew, for changes that a living one cannot take over. If that fails, it goes on
    /// as it was.
    pub(crate) async fn reopen(
        self: &Arc<Self>,
        live: &Arc<ServedSession>,
        change: SessionSpec,
    ) -> Result<(), Failure> {
        let hub = Arc::clone(self);
        let (audience, id) = (Arc::clone(&live.audience), live.id.clone());
        let client_session = match &live.client_files {
            None => None,
            Some(files) => Some(ClientSession::load(files.clone()).await.map_err(Failure::from_files)?),
        };
        live.ask(move |task| {
            let stored = client_session.as_ref().and_then(|client_session| client_session.stored.as_ref());
            let moved =
                stored.is_some_and(|stored| stored.last_event_id() != task.session().state().last_event);
            if !task.engine.driver().is_idle() || moved {
                return Err(Failure::new("the session is at work; abort it or wait for it to be idle"));
            }
            task.engine.driver_mut().rest();
            let effort = change.model.effort.clone();
            let mut changed = task.spec.clone();
            changed.adopt(change);
            let mut spec = changed.clone();
            spec.entry.silent = Some(true);
            // The effort may have changed since the session was created. The log has the current one.
            spec.model.effort = effort;
            let opened = hub.config.opener.open(OpenRequest {
                id,
                spec: &spec,
                sink: Box::new(Broadcast(Arc::clone(&audience))),
                hooks: Arc::new(ClientHooks(Arc::clone(&audience))),
                transport: inference::transport(&audience, &spec, audience.request_proxy().is_some()),
                client_session,
            })?;
            task.spec = changed;
            task.replace(opened);
            Ok(())
        })
        .await?
    }

    /// Adds a session to those that are alive.
    pub(crate) fn add(&self, live: &Arc<ServedSession>) {
        self.sessions.lock().insert(live.id.to_string(), Arc::clone(live));
        self.tell_presence(live, |presence, id| presence.opened(id));
    }

    /// Removes a session that has ended, with everything that belongs to it.
    pub(crate) fn forget(&self, live: &Arc<ServedSession>) {
        let mut sessions = self.sessions.lock();
        let is_current = sessions.get(live.id.as_str()).is_some_and(|known| Arc::ptr_eq(known, live));
        if is_current {
            sessions.remove(live.id.as_str());
        }
        drop(sessions);
        if is_current {
            self.tell_presence(live, |presence, id| presence.closed(id));
            self.remote.closed(live, self.remote_access(live));
        }
        live.shells.close();
        live.extensions.close();
        live.done.cancel();
    }

    /// A client is done with a session. The last one to go closes it.
    pub(crate) async fn leave(&self, id: &str, client: ClientId) -> Result<(), Failure> {
        let live = self.live(id)?;
        let (own, others): (Vec<bool>, Vec<bool>) = {
            let members = live.audience.members();
            let is_extension = |member: &Member| member.client.extension.is_some();
            let (own, others): (Vec<&Member>, Vec<&Member>) =
                members.iter().partition(|member| member.client.id == client);
            (own.into_iter().map(is_extension).collect(), others.into_iter().map(is_extension).collect())
        };
        // Extensions belong to the session: neither do they end it, nor do they keep it.
        let last = !own.contains(&true) && !others.contains(&false);
        if last {
            // Its hooks receive the end of the session, so it stays until then.
            live.close().await;
            live.audience.leave(client);
            return Ok(());
        }
        live.audience.leave(client);
        let now = (self.config.now)();
        live.ask(move |task| task.client_left(now)).await
    }

    /// Client that says how extensions are started, if there is one.
    pub(crate) fn launch_provider(&self) -> Option<Arc<Client>> {
        self.launch_provider.lock().upgrade().filter(|client| !client.peer.is_closed())
    }

    /// Has a client say how extensions are started. It must do so before the first session.
    pub(crate) fn set_launch_provider(&self, client: &Arc<Client>) -> Result<(), Failure> {
        if !self.sessions.lock().is_empty() {
            return Err(Failure::new(
                "the provider of extension launches cannot be set while sessions are open; call \
                 registerExtensionLaunchProvider before creating any",
            ));
        }
        *self.launch_provider.lock() = Arc::downgrade(client);
        Ok(())
    }

    /// Registers a client as the storage of its sessions' files. It must do so before its first session.
    pub(crate) fn keep_files(&self, client: &Client, provider: FsProvider) -> Result<(), Failure> {
        if !self.sessions.lock().is_empty() {
            return Err(Failure::new(
                "Cannot set session filesystem provider while sessions are active. Call sessionFs.setProvider before \
                 creating any sessions.",
            ));
        }
        client.keep_files(provider);
        Ok(())
    }
}

fn client_tools(
    session_id: &str,
    pending: &Arc<PendingCalls>,
    declarations: &[ToolDeclaration],
) -> Vec<ClientTool> {
    let tool = |declaration: &ToolDeclaration| ClientTool {
        tool: Arc::new(ExternalTool::new(session_id, declaration, pending)),
        overrides_builtin: declaration.overrides_built_in_tool.unwrap_or(false),
    };
    declarations.iter().map(tool).collect()
}

/// Loads a session from the client that keeps its files.
pub(crate) async fn load_client_session(
    client: &Client,
    id: &SessionId,
) -> Result<Option<ClientSession>, Failure> {
    let Some(files) = client.session_files(id) else { return Ok(None) };
    Ok(Some(ClientSession::load(files).await.map_err(Failure::from_files)?))
}

pub(crate) struct Attached {
    pub(crate) live: Arc<ServedSession>,
    pub(crate) how: AttachKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachKind {
    Opened,
    Joined,
}
