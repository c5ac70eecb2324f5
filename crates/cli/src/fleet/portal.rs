//! `hangar up --fleet`: the sessions of a fleet for the registry, listed from facts and followed by copies of their logs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use futures_util::future::BoxFuture;
use hangar_fleet::control::{Answer, ControlCommand};
use hangar_fleet::facts::{
    CordonFact, CordonMode, FleetSessionState, OriginFact, SessionFact, WorkerFact, check_name,
};
use hangar_fleet::order::{Labels, Order, OrderId, SessionSettings};
use hangar_fleet::watch::{FactChange, FactReader};
use hangar_fleet::work_queue::WorkQueue;
use hangar_fleet::{Broker, FleetError, VERSION, placing};
use hangar_portal::fleet::{FleetHost, FleetView, FleetWorker, WorkerMode};
use hangar_registry::error::RegistryError;
use hangar_registry::host::{FleetCommand, FleetSessions, JoinedSession, NewFleetSession};
use hangar_registry::hub::{Hub, iso};
use hangar_registry::ledger::{Ledger, LedgerConfig};
use hangar_registry::resource::{OpenIn, SessionPolicy, SessionResource, SessionState};
use hangar_runtimes::runtime::{AgentAnswer, PermissionReply};
use hangar_store::{SessionId, Store};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::mpsc;

use super::follow;
use super::listing::{age, state_of};
use super::submit::{Wanted, workspace};
use super::worker::machine_name;
use crate::redact;
use crate::runtimes::choice;
use crate::settings::Settings;

/// Portals with one home, at most.
const MOST_PORTALS: usize = 64;
/// Changes of facts that wait for the registry. Lists are right even if one is dropped.
const CHANGES: usize = 1024;

/// A portal of a fleet.
#[derive(Clone)]
pub(crate) struct FleetPortal(Arc<Inner>);

pub(super) struct Inner {
    pub(super) broker: Broker,
    queue: WorkQueue,
    settings: Settings,
    /// Copies of the logs that are followed.
    pub(super) store: Store,
    directory: PathBuf,
    facts: RwLock<Facts>,
    pub(super) changes: mpsc::Sender<FleetChange>,
    /// Whether changes were dropped because too many waited. It is set at first: the registry knows of none.
    missed: AtomicBool,
    /// The other end, until the registry takes it.
    changed: Mutex<Option<mpsc::Receiver<FleetChange>>>,
    _lock: File,
}

/// A change that the registry is told of.
pub(super) enum FleetChange {
    Session(SessionId),
    /// A question was answered or withdrawn.
    Settled(SessionId, String),
}

/// The facts that are known, with an index by time.
#[derive(Default)]
struct Facts {
    sessions: HashMap<SessionId, SessionFact>,
    by_time: BTreeSet<(Reverse<Timestamp>, SessionId)>,
    workers: BTreeMap<String, WorkerFact>,
}

impl Facts {
    fn put(&mut self, id: SessionId, mut fact: SessionFact) {
        let at = fact.at;
        if let Some(old) = self.sessions.remove(&id) {
            self.by_time.remove(&(Reverse(old.at), id.clone()));
            // The log of the session may be ahead of its fact.
            fact.kept = fact.kept.or(old.kept);
        }
        self.sessions.insert(id.clone(), fact);
        self.by_time.insert((Reverse(at), id));
    }
}

impl FleetPortal {
    /// Connects, and returns once all facts are known.
    pub(crate) async fn connect(settings: &Settings, url: &str) -> Result<Self> {
        let url = Some(url).filter(|url| !url.is_empty());
        let broker = super::connect(settings, url, "hangar up").await?;
        let (directory, lock) = own_directory(&settings.home.join("fleet").join("portals"))?;
        let mut reader = FactReader::open(&broker).await?;
        let (changes, changed) = mpsc::channel(CHANGES);
        let portal = Self(Arc::new(Inner {
            queue: WorkQueue::new(&broker),
            broker,
            settings: settings.clone(),
            store: Store::new(&directory),
            directory,
            facts: RwLock::default(),
            changes,
            missed: AtomicBool::new(true),
            changed: Mutex::new(Some(changed)),
            _lock: lock,
        }));
        while let Some(()) = portal.0.take(reader.next().await) {}
        let inner = Arc::downgrade(&portal.0);
        tokio::spawn(async move {
            loop {
                let change = reader.next().await;
                let Some(inner) = inner.upgrade() else { return };
                let _ = inner.take(change);
            }
        });
        Ok(portal)
    }

    pub(crate) fn store(&self) -> Store {
        self.0.store.clone()
    }

    /// A ledger of the sessions that are followed. That of a session is on its worker.
    pub(crate) fn ledger(&self) -> Result<Ledger> {
        Ok(Ledger::open(LedgerConfig {
            dir: self.0.directory.join("ledger"),
            store: self.store(),
            runs: crate::jobs::store(&self.0.settings),
            agents: Vec::new(),
            own: choice::NATIVE.to_owned(),
            zone: crate::queue::budgets::load(&self.0.settings)?.zone,
        })?)
    }

    /// Aborts the sessions of a run whose process is gone: the one that takes it up begins their tasks anew.
    pub(crate) async fn abort_run(&self, run: &str) {
        let left: Vec<SessionId> = {
            let facts = self.0.facts.read();
            let of_run = facts.sessions.iter().filter(|(_, fact)| fact.run.as_deref() == Some(run));
            let at_work = |state| matches!(state, FleetSessionState::Queued | FleetSessionState::Running);
            of_run.filter(|(_, fact)| at_work(fact.state)).map(|(id, _)| id.clone()).collect()
        };
        for id in left {
            if let Err(error) = self.0.tell(&id, FleetCommand::Abort).await {
                tracing::warn!(session = %id, %error, "a session of the run before could not be aborted");
            }
        }
    }

    /// Tells the registry what changes, until it ends.
    pub(crate) fn announce_to(&self, hub: &Hub) {
        let Some(mut changed) = self.0.changed.lock().take() else { return };
        let portal = Arc::clone(&self.0);
        let registry = hub.clone();
        hub.spawn(async move {
            loop {
                // Questions of before, and those whose changes did not fit into the queue.
                if portal.missed.swap(false, Ordering::Relaxed) {
                    for id in portal.asking() {
                        registry.fleet_changed(&id).await;
                    }
                }
                let change = tokio::select! {
                    change = changed.recv() => change,
                    () = registry.stopping().cancelled() => return,
                };
                match change {
                    Some(FleetChange::Session(id)) => registry.fleet_changed(&id).await,
                    Some(FleetChange::Settled(id, question)) => registry.question_settled(&id, &question),
                    None => return,
                }
            }
        });
    }
}

impl Inner {
    /// Takes a change in. `None` once all facts are known.
    fn take(&self, change: FactChange) -> Option<()> {
        match change {
            FactChange::Session(fact) => {
                let Ok(id) = fact.session.parse::<SessionId>() else { return Some(()) };
                let is_same = {
                    let mut facts = self.facts.write();
                    let is_same = facts.sessions.get(&id) == Some(&*fact);
                    facts.put(id.clone(), *fact);
                    is_same
                };
                if !is_same && self.changes.try_send(FleetChange::Session(id)).is_err() {
                    self.missed.store(true, Ordering::Relaxed);
                }
            }
            FactChange::Worker(fact) => drop(self.facts.write().workers.insert(fact.name.clone(), *fact)),
            FactChange::CaughtUp => return None,
        }
        Some(())
    }

    /// Sessions that ask a person.
    fn asking(&self) -> Vec<SessionId> {
        let facts = self.facts.read();
        facts.sessions.iter().filter(|(_, fact)| fact.asked > 0).map(|(id, _)| id.clone()).collect()
    }

    fn fact(&self, id: &SessionId) -> Option<SessionFact> {
        self.facts.read().sessions.get(id).cloned()
    }

    /// The work of a session was kept, as its log says.
    pub(super) fn note_kept(&self, id: &SessionId, reference: &str) {
        if let Some(fact) = self.facts.write().sessions.get_mut(id) {
            fact.kept = Some(reference.to_owned());
        }
    }

    /// Ref of the work of the last session of a run.
    fn kept_of_run(&self, run: &str) -> Option<String> {
        let facts = self.facts.read();
        let of_run = facts.by_time.iter().filter_map(|(_, id)| facts.sessions.get(id));
        of_run.filter(|fact| fact.run.as_deref() == Some(run)).find_map(|fact| fact.kept.clone())
    }

    async fn open(&self, id: &SessionId, new: NewFleetSession) -> Result<(), RegistryError> {
        // Another portal may have opened it: its facts may be on their way.
        let (known, _) = self.broker.fact_now::<SessionFact>(id.as_str()).await.map_err(refused)?;
        if let Some(known) = known {
            self.facts.write().put(id.clone(), known);
            return Ok(());
        }
        let NewFleetSession { session: new, run } = new;
        let redactor = redact::of_machine(&self.settings);
        let unprocessable = |error: anyhow::Error| RegistryError::Unprocessable(format!("{error:#}"));
        let labels = Labels::parse(&new.labels).map_err(|error| unprocessable(error.into()))?;
        let is_local = new.remote.is_none() && labels.is_empty();
        if is_local && !new.workspace.is_dir() {
            let why = "give the git `remote` to work on, a `workspace` here that has one, or a `workspace` of workers with `labels`";
            return Err(RegistryError::Unprocessable(why.to_owned()));
        }
        let path = Some(new.workspace.clone()).filter(|path| !path.as_os_str().is_empty());
        let reference = match &run {
            // Tasks of a run go on with each other's work.
            Some(run) if is_local => self.kept_of_run(&run.run),
            _ => None,
        };
        let wanted = Wanted {
            remote: new.remote,
            reference: reference.or(new.reference),
            directory: new.workspace,
            path,
        };
        let settings = SessionSettings {
            runtime: new.runtime,
            agent: new.agent,
            model: new.model,
            effort: new.effort,
            name: new.name.map(|name| redactor.text(name)),
            asks: new.policy == Some(SessionPolicy::Ask),
            job_tools: run.is_some() && new.mcp_config.is_some(),
            run: run.and_then(|run| serde_json::to_value(run).ok()),
            ..SessionSettings::default()
        };
        let prompt = new.prompt.filter(|prompt| !prompt.trim().is_empty());
        let order = Order {
            v: VERSION,
            // The same for a request that is repeated, in any portal.
            id: OrderId(id.to_string()),
            session: id.to_string(),
            workspace: workspace(&wanted, &labels).await.map_err(unprocessable)?,
            labels,
            prompt: redactor.text(prompt.clone().unwrap_or_default()),
            settings,
            from: machine_name(),
            placed: Timestamp::now(),
        };
        let fact = match prompt {
            Some(_) => {
                placing::place(&self.broker, &self.queue, &order).await.map_err(refused)?;
                SessionFact::queued(&order)
            }
            None => placing::register(&self.broker, &order).await.map_err(refused)?,
        };
        let mut facts = self.facts.write();
        if !facts.sessions.contains_key(id) {
            facts.put(id.clone(), fact);
        }
        Ok(())
    }

    pub(super) async fn tell(&self, id: &SessionId, what: FleetCommand) -> Result<(), RegistryError> {
        let command = match what {
            FleetCommand::Send { id: message, text } => return self.send(id, message, text).await,
            FleetCommand::Steer { text } => {
                let steer = ControlCommand::Steer { text: text.clone() };
                return match self.broker.command(id, steer).await {
                    Err(FleetError::NoOwner(_)) => {
                        self.send(id, uuid::Uuid::new_v4().to_string(), text).await
                    }
                    told => told.map_err(refused),
                };
            }
            FleetCommand::Abort => ControlCommand::Abort,
            FleetCommand::Answer { request_id, answer } => {
                ControlCommand::Answer { request: request_id, answer: answer_of(answer) }
            }
        };
        let is_abort = command == ControlCommand::Abort;
        match self.broker.command(id, command).await {
            Err(FleetError::NoOwner(_)) if is_abort => self.withdraw(id).await,
            Err(FleetError::NoOwner(_)) => {
                Err(RegistryError::Invalid("nobody has the session, so nothing is asked".to_owned()))
            }
            Err(FleetError::Invalid(why)) => Err(RegistryError::Invalid(why)),
            told => told.map_err(refused),
        }
    }

    async fn send(&self, id: &SessionId, message: String, text: String) -> Result<(), RegistryError> {
        let redactor = redact::of_machine(&self.settings);
        let text = redactor.text(text);
        let origin = self.broker.fact::<OriginFact>(id.as_str()).await.map_err(refused)?;
        let origin = origin.ok_or_else(|| RegistryError::NoSession(id.to_string()))?;
        let order = Order {
            v: VERSION,
            id: OrderId(message),
            session: id.to_string(),
            labels: origin.labels,
            prompt: text,
            settings: origin.settings,
            workspace: origin.workspace,
            from: machine_name(),
            placed: Timestamp::now(),
        };
        placing::deliver(&self.broker, &self.queue, &order).await.map_err(refused)
    }

    /// Takes back the order of a session that no worker has yet.
    async fn withdraw(&self, id: &SessionId) -> Result<(), RegistryError> {
        let order =
            self.fact(id).filter(|fact| fact.state == FleetSessionState::Queued).and_then(|fact| fact.order);
        let Some(order) = order else { return Err(RegistryError::NotOpen(id.clone())) };
        let by = format!("portal-{}", machine_name());
        match placing::withdraw(&self.broker, id, &order, &by).await.map_err(refused)? {
            true => Ok(()),
            false => Err(RegistryError::NotOpen(id.clone())),
        }
    }
}

/// A refusal by the fleet, for the registry.
fn refused(error: FleetError) -> RegistryError {
    match error {
        FleetError::Invalid(why) => RegistryError::Unprocessable(why),
        error => RegistryError::Fleet(error.to_string()),
    }
}

fn answer_of(answer: AgentAnswer) -> Answer {
    match answer {
        AgentAnswer::Permission(PermissionReply::Once) => Answer::Once,
        AgentAnswer::Permission(PermissionReply::ForSession) => Answer::ForSession,
        AgentAnswer::Permission(PermissionReply::Denied { feedback }) => Answer::Denied { feedback },
        AgentAnswer::Question(text) => Answer::Text { text },
        AgentAnswer::Plan { approved, feedback } => Answer::Plan { approved, feedback },
        AgentAnswer::Elicitation { action, content } => {
            let action = serde_json::to_value(action).unwrap_or_default();
            Answer::Elicitation { action: action.as_str().unwrap_or("cancel").to_owned(), content }
        }
    }
}

impl FleetSessions for FleetPortal {
    fn list(&self, words: Option<&str>) -> Vec<(Timestamp, SessionId)> {
        let facts = self.0.facts.read();
        let mentions = |id: &SessionId| {
            let Some(words) = words else { return true };
            let Some(fact) = facts.sessions.get(id) else { return false };
            let texts = [Some(&fact.title), Some(&fact.session), fact.remote.as_ref(), fact.path.as_ref()];
            texts.into_iter().flatten().any(|text| text.to_lowercase().contains(words))
        };
        let listed = facts.by_time.iter().filter(|(_, id)| mentions(id));
        listed.map(|(Reverse(at), id)| (*at, id.clone())).collect()
    }

    fn look(&self, id: &SessionId) -> Option<SessionResource> {
        self.0.facts.read().sessions.get(id).map(resource)
    }

    fn join(&self, id: &SessionId) -> BoxFuture<'static, Result<Option<JoinedSession>, RegistryError>> {
        let (portal, id) = (Arc::clone(&self.0), id.clone());
        Box::pin(async move {
            match portal.fact(&id) {
                Some(_) => follow::join(portal, id).await.map(Some),
                None => Ok(None),
            }
        })
    }

    fn open(&self, id: &SessionId, new: NewFleetSession) -> BoxFuture<'static, Result<(), RegistryError>> {
        let (portal, id) = (Arc::clone(&self.0), id.clone());
        Box::pin(async move { portal.open(&id, new).await })
    }

    fn tell(&self, id: &SessionId, what: FleetCommand) -> BoxFuture<'static, Result<(), RegistryError>> {
        let (portal, id) = (Arc::clone(&self.0), id.clone());
        Box::pin(async move { portal.tell(&id, what).await })
    }
}

/// A session as lists show it.
fn resource(fact: &SessionFact) -> SessionResource {
    let is_failed = matches!(fact.state, FleetSessionState::Failed | FleetSessionState::Parked);
    SessionResource {
        id: fact.session.clone(),
        name: Some(fact.title.clone()).filter(|title| !title.is_empty()),
        state: match fact.state {
            FleetSessionState::Queued => SessionState::Queued,
            FleetSessionState::Running if fact.asked > 0 => SessionState::Waiting,
            FleetSessionState::Running => SessionState::Working,
            FleetSessionState::Idle => SessionState::Idle,
            FleetSessionState::Failed | FleetSessionState::Parked => SessionState::Failed,
        },
        runtime: fact.runtime.clone().unwrap_or_else(|| choice::NATIVE.to_owned()),
        agent: fact.agent.clone(),
        model: fact.model.clone(),
        effort: None,
        workspace: fact.remote.clone().or_else(|| fact.path.clone()).unwrap_or_default(),
        created_at: iso(fact.created.unwrap_or(fact.at)),
        updated_at: iso(fact.at),
        events: fact.events,
        usage: Default::default(),
        context: None,
        approvals: fact.asked as usize,
        run: None,
        resumable: true,
        error: fact.why.clone().filter(|_| is_failed),
        policy: Some(if fact.asks { SessionPolicy::Ask } else { SessionPolicy::AllowAll }),
        no_progress: None,
        open: fact.worker.is_some().then_some(OpenIn::Worker),
        worker: fact.worker.clone(),
        waits: fact.why.clone().filter(|_| fact.state == FleetSessionState::Queued),
        canvases: None,
    }
}

impl FleetHost for FleetPortal {
    fn view(&self) -> FleetView {
        let (now, lease) = (Timestamp::now(), self.0.broker.settings().lease);
        let facts = self.0.facts.read();
        let count = |state| facts.sessions.values().filter(|fact| fact.state == state).count() as u64;
        let queued = facts.sessions.values().filter(|fact| fact.state == FleetSessionState::Queued);
        let oldest = queued.map(|fact| fact.at).min();
        let (version, server) = self.0.broker.server();
        FleetView {
            servers: self.0.broker.settings().shown(),
            server,
            server_version: version,
            connected: self.0.broker.is_connected(),
            lease_seconds: lease.as_secs(),
            orders_waiting: count(FleetSessionState::Queued),
            oldest_order_seconds: oldest.map(|at| now.duration_since(at).as_secs_f64().max(0.0)),
            sessions_running: count(FleetSessionState::Running),
            sessions_parked: count(FleetSessionState::Parked),
            sessions: facts.sessions.len() as u64,
            workers: facts.workers.values().map(|worker| shown(worker, now, lease.as_secs())).collect(),
        }
    }

    fn set_mode(&self, name: &str, mode: WorkerMode) -> BoxFuture<'static, Result<bool, String>> {
        let (portal, name) = (Arc::clone(&self.0), name.to_owned());
        Box::pin(async move {
            if check_name(&name).is_err() || !portal.facts.read().workers.contains_key(&name) {
                return Ok(false);
            }
            let mode = match mode {
                WorkerMode::Open => CordonMode::Open,
                WorkerMode::Cordoned => CordonMode::Cordoned,
                WorkerMode::Draining => CordonMode::Draining,
            };
            let fact = CordonFact { worker: name, mode, at: Timestamp::now() };
            portal.broker.put_fact(&fact).await.map_err(|error| error.to_string())?;
            Ok(true)
        })
    }
}

fn shown(worker: &WorkerFact, now: Timestamp, lease: u64) -> FleetWorker {
    FleetWorker {
        name: worker.name.clone(),
        state: state_of(worker, now, i64::try_from(lease).unwrap_or(i64::MAX)).to_owned(),
        labels: worker.labels.iter().map(str::to_owned).collect(),
        slots: worker.slots,
        busy: worker.busy,
        version: worker.version.clone(),
        free_bytes: worker.free_bytes,
        load: worker.load,
        seen_at: iso(worker.at),
        seconds_since_heartbeat: u64::try_from(age(worker, now)).unwrap_or_default(),
        trouble: worker.trouble.clone(),
        takeovers: worker.takeovers,
        append_ms: worker.append_ms,
    }
}

/// A directory for the copies of this process. Those of earlier processes are removed.
fn own_directory(portals: &Path) -> Result<(PathBuf, File)> {
    hangar_disk::ensure_dir(portals).with_context(|| format!("cannot create {}", portals.display()))?;
    for n in 0..MOST_PORTALS {
        let path = portals.join(format!("{n}.lock"));
        let file = hangar_disk::private().write(true).create(true).truncate(false).open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        let directory = portals.join(n.to_string());
        match std::fs::remove_dir_all(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot empty {}", directory.display())),
        }
        hangar_disk::ensure_dir(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        return Ok((directory, file));
    }
    bail!("{MOST_PORTALS} portals of a fleet run with this home; give this one its own with HANGAR_HOME")
}
