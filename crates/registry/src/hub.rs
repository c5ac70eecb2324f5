//! All sessions of the home, and those that are open here among them.
//!
//! Each operation has a file: opening ([`opening`]), messages ([`speaking`]), leases to tasks ([`leases`]), views
//! ([`showing`]), answers to questions ([`questions`]); sessions of other processes are watched ([`directory_watch`])
//! and joined ([`joining`]). Each open session has one task that reads its agent's events ([`pump`]).

mod charging;
mod directory_watch;
mod joining;
mod leases;
mod noticing;
mod opening;
mod pump;
mod questions;
mod showing;
mod speaking;

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use hangar_runtimes::host::Host;
use hangar_runtimes::runtime::Runtime;
use hangar_store::{SessionId, Store};
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approvals::Approvals;
use crate::catalogue::SessionCatalogue;
use crate::error::RegistryError;
use crate::frame::{self, StreamItem};
use crate::host::{Placement, RegistryHost};
use crate::ledger::Ledger;
use crate::live::LiveSession;
use crate::notice::Notice;
use crate::queue::Scheduler;
use directory_watch::DirectoryWatch;

pub use opening::{BadWorkspace, NewSession};
pub use speaking::{MAX_NAME, MessageDelivery};

/// Capacity of a reader's queue of resource updates. A reader that falls further behind loads the lists again.
const FEED_QUEUE: usize = 1024;
/// Capacity of a reader's queue of notices.
const NOTICE_QUEUE: usize = 256;
/// Grace period of an agent that was told to stop.
const FAREWELL: Duration = Duration::from_secs(10);

/// Name of this machine in limits.
const LOCAL: &str = "local";

/// Configuration of the hub.
pub struct HubConfig {
    pub host: Arc<dyn RegistryHost>,
    pub store: Store,
    pub scheduler: Scheduler,
    pub ledger: Ledger,
    pub now: fn() -> Timestamp,
}

#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    host: Arc<dyn RegistryHost>,
    store: Store,
    scheduler: Scheduler,
    ledger: Ledger,
    /// Sessions whose new calls are not in the ledger yet.
    uncharged: Mutex<charging::Uncharged>,
    notices: broadcast::Sender<Notice>,
    /// Budgets that hold work, as far as notices were sent.
    held_budgets: Mutex<BTreeSet<(String, String)>>,
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
    catalogue: SessionCatalogue,
    /// Watch of the directory, while `feed` has a subscriber.
    directory_watch: Mutex<Option<DirectoryWatch>>,
    feed: broadcast::Sender<Bytes>,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

impl Hub {
    pub fn new(config: HubConfig) -> Self {
        let (feed, _) = broadcast::channel(FEED_QUEUE);
        Self(Arc::new(Inner {
            catalogue: SessionCatalogue::new(config.store.clone()),
            host: config.host,
            store: config.store,
            scheduler: config.scheduler,
            ledger: config.ledger,
            uncharged: Mutex::default(),
            notices: broadcast::channel(NOTICE_QUEUE).0,
            held_budgets: Mutex::default(),
            now: config.now,
            boot: uuid::Uuid::new_v4().to_string(),
            live: Mutex::default(),
            opening: Mutex::default(),
            opened: Notify::new(),
            openings: watch::Sender::new(0),
            approvals: Mutex::default(),
            directory_watch: Mutex::default(),
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

    /// The queue that all work passes.
    pub fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    /// Usage and cost of all model calls.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// Provider account that an agent calls with a model.
    pub fn account(&self, runtime: &str, model: Option<&str>) -> String {
        self.0.host.account(runtime, model.filter(|model| !model.is_empty()))
    }

    /// How the queue counts and places the sessions of an agent.
    pub fn placement(&self, runtime: &str) -> Placement {
        self.0.host.placement(runtime)
    }

    /// Name of the machine that an agent is to work on, for limits: of a pool, the one with the least work.
    pub fn host_name(&self, runtime: &str) -> String {
        let placement = self.placement(runtime);
        if let Some(host) = self.0.scheduler.least_loaded(&placement.pool) {
            return host;
        }
        match placement.host {
            Host::Local => LOCAL.to_owned(),
            Host::Ssh(ssh) => ssh.target,
        }
    }

    pub fn now(&self) -> Timestamp {
        (self.0.now)()
    }

    /// All runtimes and named agents, the default one first.
    pub fn runtimes(&self) -> Arc<[Arc<dyn Runtime>]> {
        self.0.host.runtimes()
    }

    /// An agent by its name; the default one without.
    pub fn runtime(&self, name: Option<&str>) -> Result<Arc<dyn Runtime>, RegistryError> {
        let runtimes = self.runtimes();
        let found = match name {
            Some(name) => runtimes.iter().find(|runtime| runtime.card().name == name),
            None => runtimes.first(),
        };
        found.cloned().ok_or_else(|| RegistryError::NoRuntime(name.unwrap_or("default").to_owned()))
    }

    pub(crate) fn catalogue(&self) -> &SessionCatalogue {
        &self.0.catalogue
    }

    /// Publishes a change of a resource.
    pub fn announce(&self, kind: &str, resource: &impl Serialize) {
        if self.is_heard() {
            let _ = self.0.feed.send(frame::named(kind, resource));
        }
    }

    /// Whether resource updates have a subscriber.
    fn is_heard(&self) -> bool {
        self.0.feed.receiver_count() > 0
    }

    /// Publishes the current state of a session.
    pub(crate) fn changed(&self, live: &LiveSession) {
        if !self.is_heard() && !live.is_watched() {
            return;
        }
        if let Some(session) = self.session(&live.id) {
            let message = frame::named("session", &session);
            live.tell(StreamItem::Session(message.clone()));
            let _ = self.0.feed.send(message);
        }
    }

    /// Changes whenever a session is opened here.
    pub(crate) fn openings(&self) -> watch::Receiver<u64> {
        self.0.openings.subscribe()
    }

    /// Cancelled when everything is to end.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Runs a task that ends before the registry does.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(task.boxed());
    }

    pub(crate) fn live(&self, id: &SessionId) -> Option<Arc<LiveSession>> {
        self.0.live.lock().get(id).cloned()
    }

    /// Cancels everything.
    pub fn shut_down(&self) {
        self.0.stopping.cancel();
    }

    /// Ends all agents and waits for them, within bounds.
    pub async fn close(&self) {
        self.0.stopping.cancel();
        let all: Vec<Arc<LiveSession>> = self.0.live.lock().values().cloned().collect();
        for live in &all {
            live.end_now();
        }
        self.0.tasks.close();
        let _ = tokio::time::timeout(FAREWELL, self.0.tasks.wait()).await;
    }
}

/// A time as the API writes it.
pub fn iso(at: Timestamp) -> String {
    format!("{at:.3}")
}
