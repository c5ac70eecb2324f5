//! Handle of the queue for the work of this process: it enqueues items, waits for their slots and gives them back.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use hangar_scheduler::budget::{BudgetScope, Budgets};
use hangar_scheduler::item::{ItemId, WorkItem};
use hangar_scheduler::limits::Limits;
use hangar_scheduler::queue::Queue;
use hangar_scheduler::record::{Outcome, QueueFact};
use hangar_scheduler::retry::{AttemptFailure, RetryPolicy};
use hangar_scheduler::state::{ItemStatus, SchedulerMode};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};

use super::log::{Grants, QueueError, QueueLog};
use super::view::QueueView;

/// Interval at which a process that waits for slots reads what others have appended.
const POLL_EVERY: Duration = Duration::from_millis(100);
/// The same for a process that waits for nothing, and only has to hear that everything is to stop.
const IDLE_POLL_EVERY: Duration = Duration::from_secs(1);
/// Time for which a pool is used without a host that could not be reached.
const HOST_REST: Duration = Duration::from_secs(60);

/// Configuration of the queue.
pub struct SchedulerConfig {
    pub dir: PathBuf,
    pub limits: Limits,
    pub retries: RetryPolicy,
    pub now: fn() -> Timestamp,
    /// A random number from 0 to 1.
    pub random: fn() -> f64,
    /// Time zone of the sentences that say why something waits.
    pub zone: TimeZone,
}

/// A part of the life of an item of this process that has ended.
#[derive(Debug, Clone)]
pub enum WorkNews {
    /// It got its slot.
    Granted { item: WorkItem, at: Timestamp },
    /// It gave its slot back; with the failure, if it failed.
    Ended { item: WorkItem, since: Timestamp, at: Timestamp, failure: Option<AttemptFailure> },
}

/// Receives news of work. Must not block: the queue waits for it.
pub trait WorkListener: Send + Sync {
    fn hear(&self, news: WorkNews);
}

#[derive(Clone)]
pub struct Scheduler(Arc<Inner>);

struct Inner {
    log: Mutex<LogState>,
    retries: Mutex<RetryPolicy>,
    /// Hosts that could not be reached, and until when pools are used without them. As many as are configured.
    unreachable: Mutex<HashMap<String, Timestamp>>,
    now: fn() -> Timestamp,
    random: fn() -> f64,
    zone: TimeZone,
    /// Changes with the queue.
    changes: watch::Sender<u64>,
    /// Notified when work begins to wait.
    waits: Arc<Notify>,
    listener: OnceLock<Arc<dyn WorkListener>>,
}

struct LogState {
    log: QueueLog,
    /// Facts that could not be written, such as the end of work when the disk was full.
    unwritten: Vec<QueueFact>,
    /// Whether a task reads what other processes append.
    polled: bool,
    /// Items whose owners wait for their slots.
    waiting: HashMap<ItemId, oneshot::Sender<()>>,
}

impl LogState {
    /// Tells those that wait of their slots.
    fn tell(&mut self) {
        let granted = match self.log.take_grants() {
            Grants::Items(items) => items,
            Grants::Any => self.waiting.keys().cloned().collect(),
        };
        for id in granted {
            if self.is_running(&id)
                && let Some(waiting) = self.waiting.remove(&id)
            {
                // A receiver that is gone has parked its item.
                let _ = waiting.send(());
            }
        }
    }

    /// Whether an item of this process has a slot.
    fn is_running(&self, id: &ItemId) -> bool {
        let entry = self.log.queue().entry(id).filter(|entry| entry.owner == *self.log.owner());
        entry.is_some_and(|entry| matches!(entry.status, ItemStatus::Running { .. }))
    }
}

impl Scheduler {
    pub fn open(config: SchedulerConfig) -> Result<Self, QueueError> {
        let log = QueueLog::open(config.dir, config.limits)?;
        Ok(Self(Arc::new(Inner {
            log: Mutex::new(LogState { log, unwritten: Vec::new(), polled: false, waiting: HashMap::new() }),
            retries: Mutex::new(config.retries),
            unreachable: Mutex::default(),
            now: config.now,
            random: config.random,
            zone: config.zone,
            changes: watch::Sender::new(0),
            waits: Arc::default(),
            listener: OnceLock::new(),
        })))
    }

    /// Waits for a slot. An item that the queue knows keeps its place and its delay. A future that is dropped parks the item.
    pub async fn acquire(&self, item: WorkItem) -> Result<Slot, QueueError> {
        let mut changes = self.0.changes.subscribe();
        // The slot of an attempt before this one may not be free yet.
        while self.is_running(&item.id) {
            changed(&mut changes).await;
        }
        let slot = Slot { scheduler: self.clone(), id: item.id.clone(), held: true };
        let run = item.run.clone();
        let (granted, told) = oneshot::channel();
        self.0.log.lock().waiting.insert(item.id.clone(), granted);
        self.transact(|_, owner| vec![QueueFact::Enqueued { item, owner: owner.clone() }])?;
        self.poll();
        if let Some(reason) = self.reason(&slot.id) {
            tracing::info!(item = %slot.id, run = run.as_deref(), "work waits: {reason}");
        }
        // The sender is kept until the slot is granted.
        let _ = told.await;
        if let Some((item, at)) = self.running_item(&slot.id) {
            self.hear(WorkNews::Granted { item, at });
        }
        Ok(slot)
    }

    /// Counts work that is not queued, until the slot is dropped.
    pub fn count(&self, item: WorkItem) -> Result<Slot, QueueError> {
        let id = item.id.clone();
        self.transact(|_, owner| vec![QueueFact::Counted { item, owner: owner.clone() }])?;
        Ok(Slot { scheduler: self.clone(), id, held: true })
    }

    /// The host of a pool that has the least work, running and waiting; the first of several. A host that could not be reached
    /// a short time ago is used only if that is so of all.
    pub fn least_loaded(&self, pool: &[String]) -> Option<String> {
        let (now, unreachable) = ((self.0.now)(), self.0.unreachable.lock());
        let rests = |host: &String| unreachable.get(host).is_some_and(|until| now < *until);
        let state = self.0.log.lock();
        let items = || state.log.queue().state().items.values();
        // What nobody works for may be left for ever.
        let at_work = || items().filter(|entry| !matches!(entry.status, ItemStatus::Parked { .. }));
        let load = |host: &String| at_work().filter(|entry| entry.item.host == *host).count();
        pool.iter().min_by_key(|host| (rests(host), load(host))).cloned()
    }

    /// A host could not be reached. Pools are used without it for some time.
    pub fn host_failed(&self, host: &str) {
        let until = (self.0.now)().checked_add(HOST_REST).unwrap_or(Timestamp::MAX);
        let known = self.0.unreachable.lock().insert(host.to_owned(), until);
        if known.is_none() {
            tracing::warn!(
                host,
                "the host cannot be reached; pools are used without it for {} s",
                HOST_REST.as_secs()
            );
        }
    }

    /// A host has done its work.
    pub fn host_answered(&self, host: &str) {
        self.0.unreachable.lock().remove(host);
    }

    /// Replaces limits, budgets and the retry policy. Work that runs goes on.
    pub fn configure(&self, limits: Limits, retries: RetryPolicy) {
        *self.0.retries.lock() = retries;
        self.0.log.lock().log.set_limits(limits);
        if let Err(error) = self.refresh() {
            tracing::error!(%error, "the queue cannot be read");
        }
    }

    /// Removes the items of a run that wait.
    pub fn withdraw_run(&self, run: &str) {
        self.withdraw(|item| item.run.as_deref() == Some(run));
    }

    /// Removes items that wait.
    pub fn withdraw(&self, wanted: impl Fn(&WorkItem) -> bool) {
        let withdrawn = self.transact(|queue, _| {
            let entries = queue.state().items.values();
            let waiting = entries.filter(|entry| !matches!(entry.status, ItemStatus::Running { .. }));
            let waiting = waiting.filter(|entry| wanted(&entry.item));
            waiting.map(|entry| QueueFact::Withdrawn { item: entry.item.id.clone() }).collect()
        });
        if let Err(error) = withdrawn {
            tracing::error!(%error, "work could not be removed from the queue");
        }
    }

    /// Removes items that no process waits for: those that their processes have left. An item that another process waits for
    /// is none of this one's business, which may not even know its run.
    pub fn forget(&self, unwanted: impl Fn(&WorkItem) -> bool) {
        let forgotten = self.refresh().and_then(|()| {
            self.transact(|queue, _| {
                let entries = queue.state().items.values();
                let left = entries.filter(|entry| matches!(entry.status, ItemStatus::Parked { .. }));
                let left = left.filter(|entry| unwanted(&entry.item));
                left.map(|entry| QueueFact::Withdrawn { item: entry.item.id.clone() }).collect()
            })
        });
        if let Err(error) = forgotten {
            tracing::error!(%error, "work that has ended could not be removed from the queue");
        }
    }

    /// Adds the listener of this process. A second one is ignored.
    pub fn listen(&self, listener: Arc<dyn WorkListener>) {
        let _ = self.0.listener.set(listener);
    }

    fn hear(&self, news: WorkNews) {
        match &news {
            WorkNews::Granted { item, .. } => {
                tracing::info!(item = %item.id, run = item.run, agent = %item.runtime, project = %item.project, attempt = item.attempt, "work has a slot");
            }
            WorkNews::Ended { item, failure, .. } => {
                let failure = failure.as_ref().map(|failure| &failure.message);
                tracing::info!(item = %item.id, run = item.run, agent = %item.runtime, project = %item.project, failure, "work has ended");
            }
        }
        if let Some(listener) = self.0.listener.get() {
            listener.hear(news);
        }
    }

    /// The item of this process and the time that it got its slot, if it has one.
    fn running_item(&self, id: &ItemId) -> Option<(WorkItem, Timestamp)> {
        let state = self.0.log.lock();
        let entry = state.log.queue().entry(id)?;
        match entry.status {
            ItemStatus::Running { since, .. } => Some((entry.item.clone(), since)),
            ItemStatus::Waiting { .. } | ItemStatus::Parked { .. } => None,
        }
    }

    /// The configured budgets.
    pub fn budgets(&self) -> Budgets {
        self.0.log.lock().log.queue().limits().budgets.clone()
    }

    /// Runs that have work in the queue.
    pub fn runs(&self) -> BTreeSet<String> {
        let state = self.0.log.lock();
        let items = state.log.queue().state().items.values();
        items.filter_map(|entry| entry.item.run.clone()).collect()
    }

    /// Replaces the figures of budgets by newer ones.
    pub fn spent(&self, figures: &[QueueFact]) -> Result<(), QueueError> {
        let is_news = !self.0.log.lock().log.queue().spent(figures).is_empty();
        if is_news { self.transact(|queue, _| queue.spent(figures)) } else { Ok(()) }
    }

    /// Raises a budget by a sum. False if there is no such budget.
    pub fn raise(&self, scope: &BudgetScope, usd: f64) -> Result<bool, QueueError> {
        let mut raised = false;
        let now = (self.0.now)();
        self.transact(|queue, _| {
            let fact = queue.raise(scope, usd, now);
            raised = fact.is_some();
            fact.into_iter().collect()
        })?;
        Ok(raised)
    }

    pub fn pause(&self) -> Result<(), QueueError> {
        self.transact(|_, _| vec![QueueFact::Paused])
    }

    /// Continues a queue that was paused or drained, and tries accounts again that were held.
    pub fn resume(&self) -> Result<(), QueueError> {
        self.transact(|queue, _| queue.resumed())
    }

    pub fn drain(&self) -> Result<(), QueueError> {
        self.transact(|_, _| vec![QueueFact::Drained])
    }

    /// Tells all processes to stop what runs.
    pub fn stop_all(&self) -> Result<(), QueueError> {
        self.transact(|_, _| vec![QueueFact::Stopped])
    }

    /// Resolves when everything is told to stop.
    pub async fn stopped(&self) {
        let mut changes = self.0.changes.subscribe();
        let stops = || self.0.log.lock().log.queue().state().stops;
        let before = stops();
        self.poll();
        while stops() <= before {
            changed(&mut changes).await;
        }
    }

    /// Resolves when the queue is drained and the run only waits for slots.
    pub async fn drained(&self, run: &str) {
        let mut changes = self.0.changes.subscribe();
        self.poll();
        while !self.is_drained(run) {
            changed(&mut changes).await;
        }
    }

    fn is_drained(&self, run: &str) -> bool {
        let state = self.0.log.lock();
        let state = state.log.queue().state();
        let mut items =
            state.items.values().filter(|entry| entry.item.run.as_deref() == Some(run)).peekable();
        state.mode == SchedulerMode::Draining
            && items.peek().is_some()
            && items.all(|entry| !matches!(entry.status, ItemStatus::Running { .. }))
    }

    /// Resolves when no work of the queue runs, in any process. Returns the number of turns that people started and that run:
    /// they pass no queue, and may wait for a person.
    pub async fn queue_idle(&self) -> Result<usize, QueueError> {
        loop {
            self.refresh()?;
            let (queued, others) = self.running_kinds();
            if queued == 0 {
                return Ok(others);
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Numbers of running items that were queued, and of others.
    pub fn running_kinds(&self) -> (usize, usize) {
        let state = self.0.log.lock();
        let mut kinds = (0, 0);
        for entry in state.log.queue().state().items.values() {
            match entry.status {
                ItemStatus::Running { queued: true, .. } => kinds.0 += 1,
                ItemStatus::Running { queued: false, .. } => kinds.1 += 1,
                ItemStatus::Waiting { .. } | ItemStatus::Parked { .. } => {}
            }
        }
        kinds
    }

    /// Resolves when nothing runs, in any process.
    pub async fn idle(&self) -> Result<(), QueueError> {
        loop {
            self.refresh()?;
            if self.0.log.lock().log.queue().running() == 0 {
                return Ok(());
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// The queue as it is now.
    pub fn view(&self) -> Result<QueueView, QueueError> {
        self.view_of(usize::MAX)
    }

    /// The queue as it is now, with at most `most` of the items that wait.
    pub fn view_of(&self, most: usize) -> Result<QueueView, QueueError> {
        self.refresh()?;
        let state = self.0.log.lock();
        Ok(QueueView::of(state.log.queue(), (self.0.now)(), &self.0.zone, most))
    }

    /// Why the items of a run wait, by their ids.
    pub fn reasons(&self, run: &str) -> Vec<(ItemId, String)> {
        let (state, now) = (self.0.log.lock(), (self.0.now)());
        let queue = state.log.queue();
        let reasons = queue.reasons(now, &self.0.zone);
        let items = queue.state().items.values().map(|entry| &entry.item);
        let items = items.filter(|item| item.run.as_deref() == Some(run));
        items.filter_map(|item| Some((item.id.clone(), reasons.of(&item.id)?))).collect()
    }

    /// Why one item waits.
    pub fn reason(&self, id: &ItemId) -> Option<String> {
        let (state, now) = (self.0.log.lock(), (self.0.now)());
        state.log.queue().reason(id, now, &self.0.zone)
    }

    /// Reads what other processes have appended, and decides what time alone has made possible.
    fn refresh(&self) -> Result<(), QueueError> {
        let has_unwritten = !self.0.log.lock().unwritten.is_empty();
        if has_unwritten {
            self.transact(|_, _| Vec::new())?;
        }
        let done = {
            let mut state = self.0.log.lock();
            let done = state.log.refresh((self.0.now)());
            state.tell();
            done
        };
        self.0.changes.send_modify(|changes| *changes += 1);
        done
    }

    fn is_running(&self, id: &ItemId) -> bool {
        self.0.log.lock().is_running(id)
    }

    fn transact(
        &self,
        facts: impl FnOnce(&Queue, &hangar_scheduler::item::OwnerId) -> Vec<QueueFact>,
    ) -> Result<(), QueueError> {
        let done = {
            let mut state = self.0.log.lock();
            let unwritten = std::mem::take(&mut state.unwritten);
            let again = unwritten.clone();
            let done = state.log.transact((self.0.now)(), |queue, owner| {
                let mut all = unwritten;
                all.extend(facts(queue, owner));
                all
            });
            if done.is_err() {
                state.unwritten = again;
            }
            state.tell();
            done
        };
        self.0.changes.send_modify(|changes| *changes += 1);
        done
    }

    /// Ends the work of a slot. What cannot be written is written as soon as it can be.
    fn end(&self, facts: impl Fn(&Queue) -> Vec<QueueFact>, id: &ItemId) {
        // An error forgets the queue, and what follows from it for the item.
        let expected = facts(self.0.log.lock().log.queue());
        if let Err(error) = self.transact(|queue, _| facts(queue)) {
            tracing::error!(%error, item = %id, "the end of work could not be put on record");
            let finished = || vec![QueueFact::Finished { item: id.clone(), outcome: Outcome::Done }];
            let lost = if expected.is_empty() { finished() } else { expected };
            self.0.log.lock().unwritten.extend(lost);
            if tokio::runtime::Handle::try_current().is_ok() {
                self.poll();
            }
        }
    }

    /// Starts the task that reads what other processes append. It ends with the last user of the queue.
    fn poll(&self) {
        if std::mem::replace(&mut self.0.log.lock().polled, true) {
            self.0.waits.notify_one();
            return;
        }
        let (inner, waits) = (Arc::downgrade(&self.0), Arc::clone(&self.0.waits));
        tokio::spawn(FutureExt::boxed(async move {
            while let Some(inner) = inner.upgrade() {
                let scheduler = Scheduler(inner);
                if scheduler.is_due()
                    && let Err(error) = scheduler.refresh()
                {
                    tracing::error!(%error, "the queue cannot be read");
                }
                let idle = scheduler.0.log.lock().waiting.is_empty();
                // The task ends with the last user, so it keeps none.
                drop(scheduler);
                match idle {
                    true => drop(tokio::time::timeout(IDLE_POLL_EVERY, waits.notified()).await),
                    false => tokio::time::sleep(POLL_EVERY).await,
                }
            }
        }));
    }

    /// Whether the file, the time or the end of another process may have changed something.
    fn is_due(&self) -> bool {
        let state = self.0.log.lock();
        let due = state.log.queue().next_wake().is_some_and(|wake| wake <= (self.0.now)());
        due || !state.unwritten.is_empty() || state.log.is_behind() || state.log.has_gone_owner()
    }
}

async fn changed(changes: &mut watch::Receiver<u64>) {
    // The sender is part of the scheduler that waits.
    let _ = changes.changed().await;
}

/// A slot, or a place in the queue on the way to one. Dropping it parks the item, so that its work can be taken up again.
#[must_use]
pub struct Slot {
    scheduler: Scheduler,
    id: ItemId,
    held: bool,
}

impl Slot {
    /// The agent has answered, so its account works.
    pub fn answered(&self) {
        let id = &self.id;
        let in_doubt = self.scheduler.0.log.lock().log.queue().answered(id).is_some();
        if in_doubt
            && let Err(error) = self.scheduler.transact(|queue, _| queue.answered(id).into_iter().collect())
        {
            tracing::error!(%error, item = %id, "the breaker could not be closed");
        }
    }

    /// Remarks on the work while it runs; `None` takes the remark back.
    pub fn remark(&self, remark: Option<&str>) {
        let (item, remark) = (self.id.clone(), remark.map(str::to_owned));
        if let Err(error) = self.scheduler.transact(|_, _| vec![QueueFact::Remarked { item, remark }]) {
            tracing::error!(%error, item = %self.id, "a remark could not be put on record");
        }
    }

    /// Tells the listener that the work ends.
    fn tell(&self, failure: Option<&AttemptFailure>) {
        if let Some((item, since)) = self.scheduler.running_item(&self.id) {
            let at = (self.scheduler.0.now)();
            self.scheduler.hear(WorkNews::Ended { item, since, at, failure: failure.cloned() });
        }
    }

    /// The work has ended well.
    pub fn finish(mut self) {
        self.held = false;
        self.tell(None);
        self.scheduler.end(|queue| queue.succeeded(&self.id), &self.id);
    }

    /// The work has failed. The queue keeps its place if it is worth a retry.
    pub fn fail(mut self, failure: &AttemptFailure) {
        self.held = false;
        self.tell(Some(failure));
        let inner = &self.scheduler.0;
        let (now, random) = ((inner.now)(), (inner.random)());
        let retries = inner.retries.lock().clone();
        self.scheduler.end(|queue| queue.failed(&self.id, failure, &retries, now, random), &self.id);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.held {
            self.scheduler.0.log.lock().waiting.remove(&self.id);
            self.scheduler.end(|_| vec![QueueFact::Parked { item: self.id.clone() }], &self.id);
        }
    }
}
