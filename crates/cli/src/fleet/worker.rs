//! `hangar worker`: takes orders while it has free slots, and carries them out. Dials out and listens on nothing.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::FutureExt;
use hangar_fleet::Broker;
use hangar_fleet::facts::{CordonFact, CordonMode, WorkerFact, check_name};
use hangar_fleet::lease::LeaseInstant;
use hangar_fleet::order::Labels;
use hangar_fleet::queue::OrderQueue;
use hangar_fleet::replica::ClaimedLogs;
use hangar_fleet::work_queue::WorkQueue;
use hangar_registry::queue::Scheduler;
use hangar_scheduler::limits::Limits;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::args::WorkerArgs;
use super::at_work::AtWork;
use super::attempt;
use super::workspace::Workspaces;
use crate::config::live::{ConfigChange, LiveConfig};
use crate::exit::Exit;
use crate::machine::Machine;
use crate::output::remark;
use crate::queue::config::across_machines;
use crate::settings::Settings;

/// Wait for an order of the only pool, and of one of several: a free slot looks at them in turn.
const ONE_POOL: Duration = Duration::from_secs(20);
const OF_SEVERAL: Duration = Duration::from_secs(2);
/// Pause after the servers could not be asked.
const AFTER_ERROR: Duration = Duration::from_secs(1);
/// Pause between two looks for new pools and for the word of an operator, at most.
const LOOK: Duration = Duration::from_secs(3);
/// Time in which sessions are handed over when the process is told to end.
const HAND_OVER: Duration = Duration::from_secs(20);
/// Time in which the servers are told that the worker has ended.
const LAST_BEAT: Duration = Duration::from_secs(3);

/// A worker at work.
pub(super) struct Worker {
    pub(super) name: String,
    pub(super) labels: Labels,
    pub(super) broker: Broker,
    pub(super) queue: WorkQueue,
    /// Settings whose sessions have a copy on the servers.
    pub(super) settings: Settings,
    /// The same with the last `config.toml` that can be used, for sessions that are opened.
    pub(super) config: LiveConfig,
    pub(super) claims: ClaimedLogs,
    pub(super) at_work: AtWork,
    pub(super) workspaces: Workspaces,
    /// The queue of this machine, whose limits hold for orders too.
    pub(super) scheduler: Scheduler,
    /// Limits of `[limits]` that hold for all machines together; absent if none is set.
    pub(super) limits: Mutex<Option<Limits>>,
    /// Agents and accounts of this machine.
    pub(super) machine: Machine,
    pub(super) takeovers: AtomicU64,
    /// Microseconds of the last append.
    pub(super) append_micros: AtomicU64,
    pub(super) trouble: Mutex<Option<String>>,
    /// Cancelled when sessions are to be handed over.
    pub(super) hand_over: CancellationToken,
    slots: u32,
    busy: AtomicU32,
    mode: Mutex<CordonMode>,
    /// Factor of the delays before retries; 1 outside tests.
    retry_scale: f64,
}

pub(super) async fn run(settings: &Settings, args: &WorkerArgs) -> Result<Exit> {
    let labels = Labels::parse(&args.label)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => machine_name(),
    };
    check_name(&name)?;
    let _held = hold_home(settings)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let slots = args.slots.unwrap_or_else(|| u32::try_from(cores).unwrap_or(1));
    // Caught before the first order, so that none is left without a word.
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    let broker =
        super::connect(settings, args.fleet.fleet.as_deref(), &format!("hangar worker {name}")).await?;
    let claims = ClaimedLogs::default();
    let replicated = settings.with_replica(Arc::new(claims.clone()));
    let worker = Arc::new(Worker {
        labels,
        queue: WorkQueue::new(&broker),
        config: LiveConfig::new(replicated.clone()),
        settings: replicated,
        claims,
        at_work: AtWork::default(),
        workspaces: Workspaces::new(settings),
        scheduler: crate::queue::working_scheduler(settings)?,
        limits: Mutex::new(across_machines(settings)?),
        machine: Machine::new(settings)?,
        takeovers: AtomicU64::new(0),
        append_micros: AtomicU64::new(0),
        trouble: Mutex::default(),
        hand_over: CancellationToken::new(),
        slots,
        retry_scale: settings.number::<f64>("HANGAR_RETRY_SCALE")?.unwrap_or(1.0).clamp(0.0, 1.0),
        busy: AtomicU32::new(0),
        mode: Mutex::default(),
        name,
        broker,
    });
    let mode = worker.cordon().await.unwrap_or_default();
    *worker.mode.lock() = mode;
    worker.beat(false).await?;
    let shown = worker.broker.settings().shown();
    remark(&format!("worker {} is ready with {slots} slots in the fleet {shown}", worker.name));
    let (modes, mode) = watch::channel(mode);
    let tasks = TaskTracker::new();
    let watching = tokio::spawn(FutureExt::boxed(Arc::clone(&worker).watch(modes)));
    let following = tokio::spawn(FutureExt::boxed(Arc::clone(&worker).follow_config()));
    let pulling = tokio::spawn(FutureExt::boxed(Arc::clone(&worker).pull_all(mode.clone(), tasks.clone())));
    let mut ending = mode;
    tokio::select! {
        drained = ending.wait_for(|mode| *mode == CordonMode::Draining) => {
            let _ = drained;
            remark("draining: it takes no more orders and ends when it has none");
        }
        _ = interrupt.recv() => remark("it takes no more orders and ends when it has none; again: hands them over"),
        _ = terminate.recv() => worker.hand_over.cancel(),
    }
    pulling.abort();
    let _ = pulling.await;
    tasks.close();
    tokio::select! {
        () = tasks.wait() => {}
        _ = interrupt.recv() => worker.hand_over.cancel(),
        _ = terminate.recv() => worker.hand_over.cancel(),
        () = worker.hand_over.cancelled() => {}
    }
    if tokio::time::timeout(HAND_OVER, tasks.wait()).await.is_err() {
        remark("some sessions did not stop in time; their leases end by themselves");
    }
    following.abort();
    watching.abort();
    // A heartbeat that is on its way must not come after the last one.
    let _ = watching.await;
    // Servers that are away, or are electing a leader, do not take it. A worker whose heartbeat is old counts as gone too.
    match tokio::time::timeout(LAST_BEAT, worker.beat(true)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("the end of this worker could not be published: {error:#}"),
        Err(_) => tracing::warn!("the end of this worker could not be published: the servers do not answer"),
    }
    Ok(Exit::Done)
}

impl Worker {
    /// A delay before a retry; shorter in tests.
    pub(super) fn scaled(&self, delay: Duration) -> Duration {
        delay.mul_f64(self.retry_scale)
    }

    /// Publishes the heartbeat.
    async fn beat(&self, gone: bool) -> Result<()> {
        let micros = self.append_micros.load(Ordering::Relaxed);
        let fact = WorkerFact {
            name: self.name.clone(),
            labels: self.labels.clone(),
            slots: self.slots,
            busy: self.busy.load(Ordering::Relaxed),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            free_bytes: free_bytes(&self.settings.home),
            load: load(),
            at: Timestamp::now(),
            mode: *self.mode.lock(),
            gone,
            trouble: self.trouble.lock().clone(),
            takeovers: self.takeovers.load(Ordering::Relaxed),
            append_ms: (micros > 0).then(|| micros as f64 / 1000.0),
        };
        Ok(self.broker.put_fact(&fact).await?)
    }

    /// The word of an operator.
    async fn cordon(&self) -> Option<CordonMode> {
        self.broker.fact::<CordonFact>(&self.name).await.ok().flatten().map(|fact| fact.mode)
    }

    /// Publishes heartbeats, and passes on the word of operators.
    async fn watch(self: Arc<Self>, modes: watch::Sender<CordonMode>) {
        let lease = self.broker.settings().lease;
        let look = LOOK.min(lease / 3);
        let mut beaten = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(look).await;
            let mut is_due = beaten.elapsed() >= lease / 3;
            if let Some(mode) = self.cordon().await
                && modes.send_if_modified(|known| std::mem::replace(known, mode) != mode)
            {
                *self.mode.lock() = mode;
                is_due = true;
            }
            if is_due {
                beaten = tokio::time::Instant::now();
                // The next one tells the same.
                match tokio::time::timeout(lease, self.beat(false)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::warn!("the heartbeat could not be published: {error:#}"),
                    Err(_) => tracing::warn!("the servers do not answer"),
                }
            }
        }
    }

    /// Limits and retries apply to what is granted after a change of `config.toml`. One that cannot be used changes nothing.
    async fn follow_config(self: Arc<Self>) {
        loop {
            if let ConfigChange::Refused(why) = self.config.changed().await {
                *self.trouble.lock() =
                    Some(format!("config.toml cannot be used, so all settings stay: {why}"));
                continue;
            }
            let settings = self.config.settings();
            match (crate::queue::configured(&settings), across_machines(&settings)) {
                (Ok((limits, retries)), Ok(shared)) => {
                    self.scheduler.configure(limits, retries);
                    *self.limits.lock() = shared;
                }
                (Err(error), _) | (_, Err(error)) => {
                    tracing::error!("the limits stay as they were: {error:#}");
                }
            }
        }
    }

    /// Takes orders of all pools that the labels admit. New pools are found as they come.
    async fn pull_all(self: Arc<Self>, mode: watch::Receiver<CordonMode>, tasks: TaskTracker) {
        let slots = Arc::new(Semaphore::new(self.slots as usize));
        let (several, is_several) = watch::channel(false);
        let mut pools: BTreeMap<String, tokio_util::task::AbortOnDropHandle<()>> = BTreeMap::new();
        loop {
            match self.queue.pools().await {
                Ok(found) => {
                    let ours = found.into_iter().filter(|pool| self.labels.admit(pool));
                    for pool in ours.chain(["any".to_owned()]) {
                        let puller = Puller {
                            worker: Arc::clone(&self),
                            pool: pool.clone(),
                            slots: Arc::clone(&slots),
                            mode: mode.clone(),
                            is_several: is_several.clone(),
                            tasks: tasks.clone(),
                        };
                        pools.entry(pool).or_insert_with(|| {
                            tokio_util::task::AbortOnDropHandle::new(tokio::spawn(FutureExt::boxed(
                                puller.run(),
                            )))
                        });
                    }
                    several.send_replace(pools.len() > 1);
                }
                Err(error) => tracing::warn!(%error, "the pools cannot be listed"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Takes the orders of one pool.
struct Puller {
    worker: Arc<Worker>,
    pool: String,
    slots: Arc<Semaphore>,
    mode: watch::Receiver<CordonMode>,
    is_several: watch::Receiver<bool>,
    tasks: TaskTracker,
}

impl Puller {
    async fn run(mut self) {
        loop {
            if self.mode.wait_for(|mode| *mode == CordonMode::Open).await.is_err() {
                return;
            }
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else { return };
            let wait = if *self.is_several.borrow() { OF_SEVERAL } else { ONE_POOL };
            // The lease of the order may begin right after this.
            let since = LeaseInstant::now();
            let wait = wait.min(self.worker.broker.settings().lease / 6);
            let pulled = tokio::select! {
                pulled = self.worker.queue.pull(&self.pool, wait) => pulled,
                // An order that is on its way goes to another worker when its lease ends.
                _ = self.mode.wait_for(|mode| *mode != CordonMode::Open) => continue,
            };
            match pulled {
                Ok(Some(ticket)) => {
                    let worker = Arc::clone(&self.worker);
                    self.tasks.spawn(FutureExt::boxed(async move {
                        worker.busy.fetch_add(1, Ordering::Relaxed);
                        attempt::carry_out(&worker, ticket.into(), since).await;
                        worker.busy.fetch_sub(1, Ordering::Relaxed);
                        drop(slot);
                    }));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, pool = self.pool, "no order could be taken");
                    tokio::time::sleep(AFTER_ERROR).await;
                }
            }
        }
    }
}

/// Lock of the home: two workers with one home would write the same sessions.
fn hold_home(settings: &Settings) -> Result<File> {
    let directory = settings.home.join("fleet");
    hangar_disk::ensure_dir(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let path = directory.join("worker.lock");
    let file = hangar_disk::private().write(true).create(true).truncate(false).open(&path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another worker runs with the home {}; give this one its own with HANGAR_HOME",
            settings.home.display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Name of this machine, as far as it can be a name of a worker.
pub(super) fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = name.trim().chars().map(plain).take(64).collect();
    if name.is_empty() { "worker".to_owned() } else { name }
}

fn free_bytes(home: &std::path::Path) -> Option<u64> {
    let room = rustix::fs::statvfs(home).ok()?;
    Some(room.f_bavail.saturating_mul(room.f_frsize))
}

fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
