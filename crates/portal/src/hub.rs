//! All sessions of the home, and those that are open here among them.

mod pump;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hangar_protocol::Event;
use hangar_runtimes::runtime::{Command, Consent, Live, Order, Runtime};
use hangar_store::{SessionId, SessionName, Store};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approvals::{Approval, ApprovalState, Approvals, Kind, NotOpen, Reply};
use crate::catalogue::Catalogue;
use crate::digest::Digest;
use crate::frame::{self, Item};
use crate::house::{House, Record, Wanted};
use crate::live::{Asker, Listener, LiveSession, LiveState};
use crate::resource::{Policy, RunLink, Session, SessionState};
use crate::trouble::Trouble;
use pump::Pump;

/// News of resources that may wait for a reader. Who falls further behind loads the lists again.
const FEED_QUEUE: usize = 1024;
/// News that may wait for whoever borrowed a session.
const BORROWED_QUEUE: usize = 256;
/// How long an agent that was told to stop may take.
const FAREWELL: Duration = Duration::from_secs(10);
/// Names on their way into the log of a session.
const NAME_QUEUE: usize = 4;
/// Sessions that are known to work for a run.
const MOST_LINKS: usize = 20_000;
/// Longest name of a session.
const MAX_NAME: usize = 500;

/// What is handed in.
pub struct HubConfig {
    pub house: Arc<dyn House>,
    pub store: Store,
    pub now: fn() -> Timestamp,
}

#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    house: Arc<dyn House>,
    store: Store,
    now: fn() -> Timestamp,
    /// Differs with every start of the server.
    boot: String,
    live: Mutex<HashMap<SessionId, Arc<LiveSession>>>,
    /// Sessions that are being opened, so that it is done once.
    opening: Mutex<HashSet<SessionId>>,
    opened: Notify,
    /// Changes when a session is opened, for those who watch a file.
    openings: watch::Sender<u64>,
    approvals: Mutex<Approvals>,
    catalogue: Catalogue,
    links: Mutex<HashMap<SessionId, RunLink>>,
    feed: broadcast::Sender<Bytes>,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

/// What a new session is to be.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// The default agent where absent.
    pub runtime: Option<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub workspace: PathBuf,
    /// Asks where the agent can, unless somebody says otherwise.
    pub policy: Option<Policy>,
    pub name: Option<String>,
    pub prompt: Option<String>,
    /// For agents that take MCP servers.
    pub mcp_config: Option<String>,
}

/// When a message reaches its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// As a turn of its own, after those that wait.
    #[default]
    Enqueue,
    /// Into the turn that is under way, where the agent can do that.
    Immediate,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whoever is being opened is so no longer, however that went.
struct Opening<'a> {
    hub: &'a Inner,
    id: SessionId,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        lock(&self.hub.opening).remove(&self.id);
        self.hub.opened.notify_waiters();
    }
}

impl Hub {
    pub fn new(config: HubConfig) -> Self {
        let (feed, _) = broadcast::channel(FEED_QUEUE);
        Self(Arc::new(Inner {
            catalogue: Catalogue::new(config.store.clone()),
            house: config.house,
            store: config.store,
            now: config.now,
            boot: uuid::Uuid::new_v4().to_string(),
            live: Mutex::default(),
            opening: Mutex::default(),
            opened: Notify::new(),
            openings: watch::Sender::new(0),
            approvals: Mutex::default(),
            links: Mutex::default(),
            feed,
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }

    pub fn boot(&self) -> &str {
        &self.0.boot
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub fn now(&self) -> Timestamp {
        (self.0.now)()
    }

    pub fn runtimes(&self) -> &[Arc<dyn Runtime>] {
        self.0.house.runtimes()
    }

    /// An agent by its name; the default one without.
    pub fn runtime(&self, name: Option<&str>) -> Result<&Arc<dyn Runtime>, Trouble> {
        let found = match name {
            Some(name) => self.runtimes().iter().find(|runtime| runtime.card().name == name),
            None => self.runtimes().first(),
        };
        found.ok_or_else(|| Trouble::NoRuntime(name.unwrap_or("default").to_owned()))
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    /// News of all resources, each a message for a stream.
    pub(crate) fn feed(&self) -> broadcast::Receiver<Bytes> {
        self.0.feed.subscribe()
    }

    /// Tells whoever listens to resources that one of them has changed.
    pub(crate) fn announce(&self, kind: &str, resource: &impl Serialize) {
        if self.0.feed.receiver_count() > 0 {
            let _ = self.0.feed.send(frame::named(kind, resource));
        }
    }

    /// Changes whenever a session is opened here.
    pub(crate) fn openings(&self) -> watch::Receiver<u64> {
        self.0.openings.subscribe()
    }

    /// Done when the portal is to stop.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Runs beside everything else, and ends before the portal does.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(task);
    }

    pub(crate) fn live(&self, id: &SessionId) -> Option<Arc<LiveSession>> {
        lock(&self.0.live).get(id).cloned()
    }

    /// Sessions that are open here.
    pub fn open_sessions(&self) -> usize {
        lock(&self.0.live).len()
    }

    // ---- opening ----

    pub async fn open(&self, new: NewSession) -> Result<Session, Trouble> {
        let runtime = Arc::clone(self.runtime(new.runtime.as_deref())?);
        let workspace = directory(new.workspace)?;
        let asks = runtime.card().capabilities.permission_callbacks;
        let policy = new.policy.unwrap_or(if asks { Policy::Ask } else { Policy::AllowAll });
        if policy == Policy::Ask && !asks {
            return Err(Trouble::CannotAsk(runtime.card().name.to_string()));
        }
        let name = new.name.map(name_of).transpose()?;
        let id: SessionId = uuid::Uuid::new_v4()
            .to_string()
            .parse()
            .map_err(|error: hangar_store::InvalidId| Trouble::Invalid(error.to_string()))?;
        let wanted = Wanted {
            id: id.clone(),
            runtime: runtime.card().name.to_string(),
            model: new.model,
            effort: new.effort,
            workspace,
            consent: consent(policy),
        };
        let mut order = self.0.house.order(wanted).map_err(Trouble::Unprocessable)?;
        if runtime.card().capabilities.mcp_config {
            order.mcp_config = new.mcp_config;
        }
        self.start(&runtime, order, policy, Log::New).await?;
        if let Some(name) = name {
            self.rename(&id, name).await?;
        }
        if let Some(prompt) = new.prompt.filter(|prompt| !prompt.trim().is_empty()) {
            self.send(&id, prompt, Delivery::Enqueue).await?;
        }
        self.session(&id).ok_or_else(|| Trouble::NoSession(id.to_string()))
    }

    /// Opens a session for a run, which has it until it lets go of it.
    pub(crate) async fn open_for_run(
        &self,
        runtime: &Arc<dyn Runtime>,
        order: Order,
    ) -> Result<Live, Trouble> {
        let wanted = Wanted {
            id: session_id(&order.session_id)?,
            runtime: runtime.card().name.to_string(),
            model: order.model.clone(),
            effort: order.effort.clone(),
            workspace: order.workspace.clone(),
            consent: Consent::Given,
        };
        let configured = self.0.house.order(wanted).map_err(Trouble::Unprocessable)?;
        let order = Order { mcp_config: order.mcp_config, ..configured };
        let live = self.start(runtime, order, Policy::AllowAll, Log::New).await?;
        Ok(self.lend_out(&live, Keeper::Borrower))
    }

    /// Opens a session again that was closed.
    async fn reopen(&self, id: &SessionId) -> Result<Arc<LiveSession>, Trouble> {
        if !self.0.store.contains(id) {
            return Err(Trouble::NoSession(id.to_string()));
        }
        let past = self.0.house.past(id)?;
        let runtime = Arc::clone(self.runtime(Some(&past.runtime))?);
        let capabilities = &runtime.card().capabilities;
        if !capabilities.resume {
            return Err(Trouble::NotResumable(past.runtime));
        }
        let record = match capabilities.own_log {
            true if self.0.store.is_in_use(id) => {
                return Err(Trouble::BusyElsewhere { id: id.clone(), pid: None });
            }
            true => None,
            false => Some(self.0.house.take_up(id)?),
        };
        let policy = if capabilities.permission_callbacks { Policy::Ask } else { Policy::AllowAll };
        let workspace = past.workspace.unwrap_or_default();
        if !workspace.is_dir() {
            let gone = workspace.display();
            return Err(Trouble::Unprocessable(format!(
                "the session worked in {gone}, which is no directory any more; make it again to go on"
            )));
        }
        let wanted = Wanted {
            id: id.clone(),
            runtime: past.runtime,
            model: None,
            effort: None,
            workspace,
            consent: consent(policy),
        };
        let mut order = self.0.house.order(wanted).map_err(Trouble::Unprocessable)?;
        // The session keeps the model that it had.
        order.model = None;
        order.resume =
            Some(record.as_ref().map(|record| record.resume(past.agent_session.clone())).unwrap_or_default());
        self.start(&runtime, order, policy, Log::Resumed(record)).await
    }

    async fn start(
        &self,
        runtime: &Arc<dyn Runtime>,
        order: Order,
        policy: Policy,
        log: Log,
    ) -> Result<Arc<LiveSession>, Trouble> {
        if self.0.stopping.is_cancelled() {
            return Err(Trouble::Stopping);
        }
        let id = session_id(&order.session_id)?;
        let card = runtime.card();
        let (name, own_log) = (card.name.to_string(), card.capabilities.own_log);
        let steers = card.capabilities.steering;
        let before = match log {
            Log::New => Digest::default(),
            Log::Resumed(_) => self.0.catalogue.digest(&id)?,
        };
        let begun = order.clone();
        let opened = tokio::select! {
            opened = runtime.open(order) => opened,
            () = self.0.stopping.cancelled() => return Err(Trouble::Stopping),
        };
        let opened = opened.map_err(|failure| Trouble::NotOpened(failure.message))?;
        let record = match log {
            Log::New if own_log => None,
            Log::New => Some(self.0.house.begin(&id, &begun, &name)?),
            Log::Resumed(record) => record,
        };
        let (names, renamed) = mpsc::channel(NAME_QUEUE);
        let live = Arc::new(LiveSession {
            id: id.clone(),
            runtime: name,
            policy,
            own_log,
            steers,
            commands: opened.commands.clone(),
            names,
            state: Mutex::new(LiveState::new(before, begun.model)),
            over: CancellationToken::new(),
        });
        lock(&self.0.live).insert(id, Arc::clone(&live));
        self.0.openings.send_modify(|openings| *openings += 1);
        let pump = Pump { hub: self.clone(), live: Arc::clone(&live), agent: opened, record, renamed };
        self.spawn(pump.run());
        self.changed(&live);
        Ok(live)
    }

    // ---- telling sessions things ----

    /// Sends a message. A session that is closed is opened for it.
    pub async fn send(
        &self,
        id: &SessionId,
        text: String,
        delivery: Delivery,
    ) -> Result<SessionState, Trouble> {
        let live = self.woken(id).await?;
        {
            // Prompts are counted in the order in which the agent gets them.
            let mut state = live.state();
            let steers = delivery == Delivery::Immediate && state.is_working() && live.steers;
            if !steers && !state.takes_prompts() {
                return Err(Trouble::QueueFull(id.clone()));
            }
            let command = if steers { Command::Steer(text) } else { Command::Send(text) };
            if live.commands.try_send(command).is_err() {
                return Err(Trouble::QueueFull(id.clone()));
            }
            if !steers {
                state.prompted(Asker::Anybody);
            }
        }
        self.changed(&live);
        let state = live.state().state();
        Ok(state)
    }

    /// The session, open.
    async fn woken(&self, id: &SessionId) -> Result<Arc<LiveSession>, Trouble> {
        loop {
            let opened = self.0.opened.notified();
            tokio::pin!(opened);
            opened.as_mut().enable();
            let ending = match self.live(id) {
                Some(live) if live.commands.is_closed() || self.was_taken_over(&live) => Some(live),
                Some(live) => return Ok(live),
                None => None,
            };
            if let Some(ending) = ending {
                // Its agent is going, or has to; its log is about to be closed.
                let _ = ending.commands.try_send(Command::Stop);
                let _ = tokio::time::timeout(FAREWELL, ending.over.cancelled()).await;
                lock(&self.0.live).remove(id);
                continue;
            }
            if lock(&self.0.opening).insert(id.clone()) {
                let _opening = Opening { hub: &self.0, id: id.clone() };
                return self.reopen(id).await;
            }
            opened.await;
        }
    }

    /// Whether another process has gone on with a session while it had nothing to do here. What it wrote is not known to the
    /// agent here, which therefore must not go on.
    fn was_taken_over(&self, live: &LiveSession) -> bool {
        let (rested, known) = {
            let state = live.state();
            (state.has_rested(), state.digest.at.offset)
        };
        live.own_log && rested && self.0.store.log_bytes(&live.id).is_some_and(|length| length > known)
    }

    /// Ends the turn that is under way.
    pub async fn abort(&self, id: &SessionId) -> Result<(), Trouble> {
        let live = self.opened(id)?;
        let _ = live.commands.send(Command::Abort).await;
        Ok(())
    }

    /// Ends the agent. The log stays.
    pub async fn stop(&self, id: &SessionId) -> Result<(), Trouble> {
        if let Some(live) = self.live(id) {
            let _ = live.commands.send(Command::Stop).await;
            return Ok(());
        }
        if self.0.store.contains(id) { Ok(()) } else { Err(Trouble::NoSession(id.to_string())) }
    }

    fn opened(&self, id: &SessionId) -> Result<Arc<LiveSession>, Trouble> {
        match self.live(id) {
            Some(live) => Ok(live),
            None if self.0.store.contains(id) => Err(Trouble::NotOpen(id.clone())),
            None => Err(Trouble::NoSession(id.to_string())),
        }
    }

    pub async fn rename(&self, id: &SessionId, name: String) -> Result<Session, Trouble> {
        let name = name_of(name)?;
        match self.live(id) {
            Some(live) => {
                // Whoever writes the log writes the name.
                let _ = match live.own_log {
                    true => live.commands.send(Command::Rename(name.clone())).await.is_ok(),
                    false => live.names.send(name.clone()).await.is_ok(),
                };
                self.0.catalogue.renamed(id, name);
            }
            None => self.0.store.rename(id, SessionName::Given(name))?,
        }
        let session = self.session(id).ok_or_else(|| Trouble::NoSession(id.to_string()))?;
        self.announce("session", &session);
        Ok(session)
    }

    /// Ends a session and removes its files.
    pub async fn delete(&self, id: &SessionId) -> Result<(), Trouble> {
        if let Some(live) = self.live(id) {
            let _ = live.commands.send(Command::Stop).await;
            let _ = tokio::time::timeout(FAREWELL, live.over.cancelled()).await;
        }
        let (store, id) = (self.0.store.clone(), id.clone());
        let deleted = id.clone();
        tokio::task::spawn_blocking(move || store.delete(&deleted))
            .await
            .map_err(|error| Trouble::Store(error.to_string()))??;
        self.0.catalogue.forget(&id);
        // Those who read its file look again.
        self.0.openings.send_modify(|openings| *openings += 1);
        self.announce("session", &Gone { id: id.to_string(), deleted: true });
        Ok(())
    }

    /// Has somebody hear what a session that is open here says from now on.
    pub(crate) fn listen(&self, id: &SessionId, listener: Arc<dyn Listener>) -> Result<(), Trouble> {
        self.opened(id)?.listen(listener);
        Ok(())
    }

    // ---- borrowing ----

    /// Lends a session to a task. It stays open when the task lets go of it.
    pub async fn lend(&self, id: &SessionId) -> Result<Live, Trouble> {
        let live = self.woken(id).await?;
        if live.borrower().is_some() {
            return Err(Trouble::Borrowed(id.clone()));
        }
        Ok(self.lend_out(&live, Keeper::Hub))
    }

    fn lend_out(&self, live: &Arc<LiveSession>, keeper: Keeper) -> Live {
        let (commands, mut orders) = mpsc::channel::<Command>(BORROWED_QUEUE);
        let (news, heard) = mpsc::channel(BORROWED_QUEUE);
        live.lend(news);
        let loan = Loan { live: Arc::clone(live), keeper };
        let hub = self.clone();
        let passing = async move {
            while let Some(command) = orders.recv().await {
                if matches!(command, Command::Stop) && loan.keeper == Keeper::Hub {
                    return;
                }
                let Ok(place) = loan.live.commands.reserve().await else { return };
                let mut state = loan.live.state();
                if matches!(command, Command::Send(_)) {
                    state.prompted(Asker::Borrower);
                }
                place.send(command);
                drop(state);
                hub.changed(&loan.live);
            }
        };
        let owner = tokio::spawn(passing).abort_handle();
        Live::new(commands, heard, owner)
    }

    /// Says which run a session works for.
    pub(crate) fn link(&self, id: &SessionId, link: RunLink) {
        {
            let mut links = lock(&self.0.links);
            if links.len() >= MOST_LINKS
                && let Some(any) = links.keys().next().cloned()
            {
                links.remove(&any);
            }
            links.insert(id.clone(), link);
        }
        if let Some(live) = self.live(id) {
            self.changed(&live);
        }
    }

    pub(crate) fn link_of(&self, id: &SessionId) -> Option<RunLink> {
        lock(&self.0.links).get(id).cloned()
    }

    // ---- what sessions say ----

    /// Tells everybody how a session is now.
    pub(crate) fn changed(&self, live: &LiveSession) {
        let heard = self.0.feed.receiver_count() > 0;
        if !heard && !live.is_watched() {
            return;
        }
        if let Some(session) = self.session(&live.id) {
            let message = frame::named("session", &session);
            live.tell(Item::Session(message.clone()));
            let _ = self.0.feed.send(message);
        }
    }

    /// A session as lists show it.
    pub fn session(&self, id: &SessionId) -> Option<Session> {
        let summary = self.0.store.look(id)?;
        self.describe(summary).ok()
    }

    pub(crate) fn describe(&self, summary: hangar_store::SessionSummary) -> Result<Session, Trouble> {
        let hangar_store::SessionSummary { id, meta, log_bytes } = summary;
        let live = self.live(&id);
        let digest = match &live {
            Some(live) => live.state().digest.clone(),
            None => self.0.catalogue.digest_of(&id, log_bytes)?,
        };
        let runtime = self.runtime_of(&digest, live.as_deref());
        let known = self.runtime(Some(&runtime)).ok();
        let mut session = Session {
            name: meta.name.map(|name| name.as_str().to_owned()),
            state: if digest.error.is_some() { SessionState::Failed } else { SessionState::Closed },
            model: digest.model.clone(),
            effort: digest.effort.clone(),
            workspace: digest
                .workspace
                .clone()
                .or(meta.context.map(|context| context.cwd))
                .unwrap_or_default(),
            created_at: iso(meta.created_at),
            updated_at: iso(meta.updated_at),
            events: digest.at.seq,
            usage: digest.used(),
            context: digest.context,
            approvals: 0,
            run: self.link_of(&id),
            resumable: known.is_some_and(|runtime| runtime.card().capabilities.resume),
            error: digest.error.clone(),
            policy: None,
            runtime,
            id: id.to_string(),
        };
        if let Some(live) = live {
            let state = live.state();
            session.state = state.state();
            session.model = session.model.or_else(|| state.model.clone());
            session.error = state.error().cloned();
            session.usage = state.used();
            session.approvals = state.asked();
            session.policy = Some(live.policy);
            session.resumable = true;
        }
        if let Some(name) = self.0.catalogue.name_given(&id) {
            session.name = Some(name);
        }
        Ok(session)
    }

    fn runtime_of(&self, digest: &Digest, live: Option<&LiveSession>) -> String {
        if let Some(live) = live {
            return live.runtime.clone();
        }
        let known =
            |name: &String| self.runtimes().iter().any(|runtime| runtime.card().name == name.as_str());
        let told = digest.agent.as_ref().or(digest.producer.as_ref()).filter(|name| known(name));
        // Logs that other programs wrote are for our own agent to go on with.
        told.cloned().unwrap_or_else(|| {
            let own = self.runtimes().iter().find(|runtime| runtime.card().capabilities.own_log);
            own.map(|runtime| runtime.card().name.to_string()).unwrap_or_default()
        })
    }

    // ---- questions ----

    pub fn approvals(&self) -> Vec<Approval> {
        lock(&self.0.approvals).list()
    }

    /// Answers a question. Whoever comes second is told so.
    pub async fn answer(&self, id: &str, reply: Reply) -> Result<Approval, Trouble> {
        let closed = |error: NotOpen| match error {
            NotOpen::Unknown => Trouble::NoApproval(id.to_owned()),
            NotOpen::AlreadyAnswered => Trouble::AlreadyAnswered(id.to_owned()),
        };
        let (approval, answer) = {
            let mut approvals = lock(&self.0.approvals);
            let kind = approvals.get(id).map_err(closed)?.kind;
            let answer = reply.to(kind).map_err(|missing| Trouble::Invalid(missing.to_owned()))?;
            (approvals.settle(id).map_err(closed)?, answer)
        };
        if let Some(live) = self.live(&approval.session_id) {
            live.state().settle(id);
            let _ = live.commands.send(Command::Answer { request_id: id.to_owned(), answer }).await;
            self.changed(&live);
        }
        self.announce("approval", &approval);
        Ok(approval)
    }

    fn asked(&self, live: &LiveSession, kind: Kind, request_id: &str, event: &Event) {
        live.state().ask(request_id);
        let Ok(Ok(event_json)) = serde_json::to_string(event).map(RawValue::from_string) else { return };
        let name = self.0.store.look(&live.id).and_then(|summary| summary.meta.name);
        let approval = Approval {
            id: request_id.to_owned(),
            session_id: live.id.clone(),
            session_name: name.map(|name| name.as_str().to_owned()),
            kind,
            event: event_json,
            since: event.timestamp().to_owned(),
            state: ApprovalState::Open,
        };
        self.announce("approval", &approval);
        lock(&self.0.approvals).open(approval);
    }

    fn settled(&self, live: &LiveSession, request_id: &str) {
        live.state().settle(request_id);
        let settled = lock(&self.0.approvals).settle(request_id);
        if let Ok(approval) = settled {
            self.announce("approval", &approval);
        }
    }

    /// Nobody waits for answers any more.
    fn settle_all(&self, live: &LiveSession) {
        let open: Vec<String> = {
            let approvals = lock(&self.0.approvals);
            approvals.of(&live.id).map(|approval| approval.id.clone()).collect()
        };
        open.iter().for_each(|id| self.settled(live, id));
    }

    // ---- the end ----

    /// Asks everything to end.
    pub fn stop_portal(&self) {
        self.0.stopping.cancel();
    }

    /// Ends all agents and waits for them, within bounds.
    pub async fn close(&self) {
        self.0.stopping.cancel();
        let all: Vec<Arc<LiveSession>> = lock(&self.0.live).values().cloned().collect();
        for live in &all {
            let _ = live.commands.try_send(Command::Stop);
        }
        self.0.tasks.close();
        let _ = tokio::time::timeout(FAREWELL, self.0.tasks.wait()).await;
    }
}

/// The log of a session that is about to be opened.
enum Log {
    New,
    Resumed(Option<Box<dyn Record>>),
}

/// Who ends a session that was lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeper {
    Hub,
    Borrower,
}

/// A session in somebody else's hands. Letting go of it gives it back, or ends it.
struct Loan {
    live: Arc<LiveSession>,
    keeper: Keeper,
}

impl Drop for Loan {
    fn drop(&mut self) {
        if self.keeper == Keeper::Borrower {
            let _ = self.live.commands.try_send(Command::Stop);
        }
    }
}

#[derive(Serialize)]
struct Gone {
    id: String,
    deleted: bool,
}

fn consent(policy: Policy) -> Consent {
    match policy {
        Policy::Ask => Consent::Asked,
        Policy::AllowAll => Consent::Given,
    }
}

fn session_id(text: &str) -> Result<SessionId, Trouble> {
    text.parse().map_err(|_| Trouble::NoSession(text.to_owned()))
}

fn name_of(name: String) -> Result<String, Trouble> {
    let name = name.trim().to_owned();
    if name.is_empty() || name.chars().count() > MAX_NAME {
        return Err(Trouble::Invalid(format!("a name has 1 to {MAX_NAME} characters")));
    }
    Ok(name)
}

/// The directory that somebody typed, if it is one.
pub(crate) fn directory(typed: PathBuf) -> Result<PathBuf, Trouble> {
    let shown = typed.display();
    if !typed.is_absolute() {
        return Err(Trouble::Unprocessable(format!("the workspace `{shown}` is not an absolute path")));
    }
    if !typed.is_dir() {
        return Err(Trouble::Unprocessable(format!("the workspace {shown} is not a directory")));
    }
    Ok(typed)
}

pub(crate) fn iso(at: Timestamp) -> String {
    format!("{at:.3}")
}
