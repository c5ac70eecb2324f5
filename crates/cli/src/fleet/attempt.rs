//! An attempt at an order: whether it may be made here, the claim of its log, and how the queue is told that it ended.
//!
//! Nothing is written without the claim, and nothing is acknowledged before its record is stored. A worker that loses the lease or
//! the claim drops the agent, with its processes, and says nothing more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use hangar_fleet::FleetError;
use hangar_fleet::claim::LogClaim;
use hangar_fleet::facts::{FleetSessionState, SessionFact};
use hangar_fleet::fold::{Claimable, SessionFold};
use hangar_fleet::lease::{LeaseInstant, LeaseKeeper};
use hangar_fleet::leftover;
use hangar_fleet::log::{self, LogEntry, LogItem};
use hangar_fleet::order::{Order, OrderWorkspace};
use hangar_fleet::queue::{Settled, Ticket};
use hangar_fleet::record::{FleetRecord, OrderEnd};
use hangar_fleet::slots::SlotAnswer;
use hangar_registry::host::AgentHost as _;
use hangar_scheduler::item::{ItemId, WorkItem, WorkKind};
use hangar_store::SessionId;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::session::{Carrying, OpenedSession};
use super::worker::Worker;

/// Workers that may be lost with an order, or fail to begin it, before it is given up.
const MOST_ATTEMPTS: u32 = 5;
/// Deliveries after which an order is given up that was never claimed.
const MOST_DELIVERIES: u64 = 100;
/// Delay before an order of a newer version is offered again.
const NEWER: Duration = Duration::from_secs(10);
/// Delay before an order is tried again that could not be begun here.
pub(super) const AFTER_TROUBLE: Duration = Duration::from_secs(2);
/// Delay before an order is tried again that waits for a limit.
const FULL: Duration = Duration::from_secs(1);
/// Part of the lease in which agents are stopped once it cannot be kept. Two thirds have passed then.
const STOPPING: u32 = 6;
/// Attempts to tell the queue how a delivery ended. Its lease ends in any case.
const SETTLING: u32 = 5;

/// How the work on an order ended here.
pub(super) enum Carried {
    /// With a record of its end.
    Over(Settled),
    /// Another worker has it, or will.
    Lost,
}

/// Carries out one order that was asked for at `since`, and tells the queue how that ended.
pub(super) async fn carry_out(worker: &Arc<Worker>, ticket: Arc<dyn Ticket>, since: LeaseInstant) {
    let keeper = LeaseKeeper::start(Arc::clone(&ticket), worker.broker.settings().lease, since);
    let order = match Order::parse(ticket.payload()) {
        Ok(order) => order,
        Err(error) => {
            let settled = match error {
                FleetError::Newer { .. } => Settled::GiveBack(NEWER),
                _ => Settled::Never,
            };
            *worker.trouble.lock() = Some(format!("an order was not taken: {error}"));
            return settle(&*ticket, settled).await;
        }
    };
    let carried = match attempt(worker, &order, &keeper, ticket.deliveries()).await {
        Ok(carried) => carried,
        // To give it back would take it from its next worker.
        Err(_) if keeper.is_over() => Carried::Lost,
        Err(error) => {
            tracing::warn!(order = %order.id, "an order was not carried out: {error:#}");
            *worker.trouble.lock() = Some(format!("order {}: {error:#}", order.id));
            Carried::Over(Settled::GiveBack(worker.scaled(AFTER_TROUBLE)))
        }
    };
    match carried {
        // The servers would take it for the word of the worker that has the order by now.
        Carried::Over(Settled::GiveBack(_)) if keeper.is_over() => {}
        Carried::Over(settled) => settle(&*ticket, settled).await,
        Carried::Lost => {}
    }
}

async fn settle(ticket: &dyn Ticket, how: Settled) {
    for _ in 0..SETTLING {
        match ticket.settle(how).await {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "the end of an order could not be told"),
        }
    }
}

async fn attempt(
    worker: &Arc<Worker>,
    order: &Order,
    keeper: &LeaseKeeper,
    deliveries: u64,
) -> Result<Carried> {
    let (broker, id) = (&worker.broker, order.session_id()?);
    let subject = log::session_subject(broker, &id);
    let limits = worker.limits.lock().clone();
    let mut attempt = worker.at_work.try_enter(&id);
    let mut entries = log::read(broker, &subject).await?;
    let mut fold = SessionFold::of(&entries);
    if attempt.is_none() && !matches!(fold.decide(&order.id, deliveries, MOST_ATTEMPTS), Claimable::Owned(_))
    {
        // An attempt of this worker whose lease is over stops its agents. One whose lease is not goes on.
        let entering = worker.at_work.enter(&id);
        attempt = tokio::time::timeout(broker.settings().lease / 3, entering).await.ok();
        entries = log::read(broker, &subject).await?;
        fold = SessionFold::of(&entries);
    }
    let give_up = match fold.decide(&order.id, deliveries, MOST_ATTEMPTS) {
        Claimable::Over => {
            // Its worker may have been lost before it told anybody.
            leftover::clear(broker, &id).await?;
            return Ok(Carried::Over(Settled::Done));
        }
        // Its owner keeps the lease; if it cannot, the order is delivered again.
        Claimable::Outdated(_) => return Ok(Carried::Lost),
        Claimable::Owned(_) => return Ok(Carried::Over(Settled::GiveBack(broker.settings().lease / 3))),
        Claimable::Exhausted { attempts } => {
            let why = fold.trouble.clone().unwrap_or_else(|| "the workers were lost".to_owned());
            Some(format!("it was tried {attempts} times: {why}"))
        }
        // One that waits for a limit is given out again and again.
        Claimable::Free
            if limits.is_none()
                && may_be_lost(deliveries, idle(order, &entries), broker.settings().lease) =>
        {
            Some(format!("it was given out {deliveries} times, and no worker began it"))
        }
        Claimable::Free => None,
    };
    let Some(_attempt) = attempt else { return Ok(Carried::Lost) };
    if give_up.is_none()
        && let Some(limits) = &limits
    {
        let item = WorkItem { host: worker.name.clone(), ..item(worker, order, &id) };
        if let SlotAnswer::Waits(why) = broker.take_slot(limits, &item, &worker.name).await? {
            show_wait(worker, order, why).await;
            return Ok(Carried::Over(Settled::GiveBack(worker.scaled(FULL))));
        }
    }
    let carried = claimed_attempt(worker, order, keeper, deliveries, &entries, fold, give_up).await;
    // The slot of a session that goes on elsewhere is taken over with it.
    if limits.is_some()
        && !matches!(carried, Ok(Carried::Lost))
        && let Err(error) = broker.free_slot(id.as_str(), &worker.name).await
    {
        tracing::warn!(%error, session = %id, "the slot of a session could not be freed");
    }
    carried
}

/// Time in which nothing has been done about an order: since it was placed, or since the last record of its session. While another
/// order has the session, it only waits.
fn idle(order: &Order, entries: &[LogEntry]) -> Duration {
    let last = entries.iter().rev().find_map(|entry| match &entry.item {
        LogItem::Record(record) => record.at(),
        LogItem::Events(_) => None,
    });
    let since = last.map_or(order.placed, |last| last.max(order.placed));
    Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or_default()
}

/// Whether so many deliveries of an order may have been lost with their workers. A lost one takes a whole lease; one that was given
/// back, because the order could not be begun yet, takes less.
fn may_be_lost(deliveries: u64, idle: Duration, lease: Duration) -> bool {
    let all = lease.saturating_mul(u32::try_from(deliveries).unwrap_or(u32::MAX));
    deliveries > MOST_DELIVERIES && idle >= all
}

/// Publishes why an order waits.
async fn show_wait(worker: &Worker, order: &Order, why: String) {
    let shown = async {
        let (known, sequence) = worker.broker.fact_now::<SessionFact>(&order.session).await?;
        let known = known.unwrap_or_else(|| SessionFact::queued(order));
        if known.state == FleetSessionState::Queued && known.why.as_ref() == Some(&why) {
            return Ok(());
        }
        let order = Some(order.id.clone());
        let fact = SessionFact { state: FleetSessionState::Queued, why: Some(why), order, ..known };
        worker.broker.replace_fact(&fact, sequence).await.map(drop)
    };
    let shown: Result<(), FleetError> = shown.await;
    if let Err(error) = shown {
        tracing::warn!(%error, "why an order waits could not be published");
    }
}

/// Claims the log of an order and carries the order out, or gives it up.
async fn claimed_attempt(
    worker: &Arc<Worker>,
    order: &Order,
    keeper: &LeaseKeeper,
    delivery: u64,
    entries: &[LogEntry],
    fold: SessionFold,
    give_up: Option<String>,
) -> Result<Carried> {
    let (broker, id) = (&worker.broker, order.session_id()?);
    let subject = log::session_subject(broker, &id);
    let claimed = FleetRecord::Claimed {
        worker: worker.name.clone(),
        order: order.id.clone(),
        delivery,
        at: Timestamp::now(),
    };
    if keeper.is_over() {
        return Ok(Carried::Lost);
    }
    let claim = match LogClaim::take(broker, subject, fold.last, &claimed).await {
        Ok(claim) => claim,
        Err(FleetError::Moved { .. }) => return Ok(Carried::Over(Settled::GiveBack(Duration::from_secs(1)))),
        Err(error) => return Err(error.into()),
    };
    claim.bind(keeper.end().clone());
    let fact = fact(worker, order, &fold).await;
    let fact = Mutex::new(fact);
    let mut carrying = Carrying { worker, order, id: id.clone(), claim, keeper, fact };
    if let Some(why) = give_up {
        let end = OrderEnd::Parked { why: why.clone() };
        carrying.release(end).await?;
        carrying.publish(FleetSessionState::Parked, Some(why)).await;
        return Ok(Carried::Over(Settled::Never));
    }
    if fold.attempts.get(&order.id).is_some_and(|attempts| *attempts > 0) {
        worker.takeovers.fetch_add(1, Ordering::Relaxed);
    }
    worker.claims.insert(id.clone(), carrying.claim.clone());
    let fenced = tokio::spawn(fence(keeper.over().clone(), carrying.claim.clone()));
    let (lease, over) = (keeper.over().clone(), carrying.claim.over().clone());
    let mut opened = None;
    let mut carried = tokio::select! {
        biased;
        carried = carrying.run(entries, fold, &mut opened) => carried,
        // Whatever it waits for, such as a push to a remote that does not answer: the agents end with it.
        () = lost_for(&lease, &over, broker.settings().lease / STOPPING) => Ok(Carried::Lost),
    };
    OpenedSession::kill(&mut opened).await;
    fenced.abort();
    worker.claims.remove(&id, &carrying.claim);
    // A slot that was not finished parks its item, and the session goes on elsewhere.
    worker.scheduler.withdraw(|item| item.id.0 == id.as_str());
    if carried.is_err() && carrying.claim.over().is_cancelled() {
        carried = Ok(Carried::Lost);
    }
    // Nothing of this session is written from here on.
    carrying.claim.give_up("the worker has released it");
    carried
}

/// Ends the claim with the lease, so that nothing waits for servers that cannot be reached.
async fn fence(lease: CancellationToken, claim: LogClaim) {
    tokio::select! {
        () = lease.cancelled() => claim.give_up("the lease has ended"),
        () = claim.over().cancelled() => {}
    }
}

/// Resolves so long after the lease or the claim was lost.
async fn lost_for(lease: &CancellationToken, claim: &CancellationToken, time: Duration) {
    tokio::select! {
        () = lease.cancelled() => {}
        () = claim.cancelled() => {}
    }
    tokio::time::sleep(time).await;
}

/// What lists show of the session, before it runs here.
async fn fact(worker: &Worker, order: &Order, fold: &SessionFold) -> SessionFact {
    let redactor = crate::redact::of_machine(&worker.settings);
    let queued = SessionFact::queued(order);
    // A session that goes on keeps its name and its age.
    let known = match fold.last {
        0 => None,
        _ => worker.broker.fact::<SessionFact>(&order.session).await.ok().flatten(),
    };
    match known {
        Some(known) => {
            let (title, created, kept) = (known.title, known.created, known.kept);
            SessionFact { title, created, kept, model: known.model, order: None, ..queued }
        }
        None => SessionFact { title: redactor.text(queued.title), order: None, ..queued },
    }
}

/// The order as an item of a queue.
pub(super) fn item(worker: &Worker, order: &Order, id: &SessionId) -> WorkItem {
    let settings = &order.settings;
    let runtime = settings.runtime.clone().unwrap_or_else(|| crate::runtimes::choice::NATIVE.to_owned());
    let run = settings.run.as_ref();
    let of_run = |member: &str| run.and_then(|run| run[member].as_str()).map(str::to_owned);
    WorkItem {
        id: ItemId(id.to_string()),
        kind: WorkKind::Turn,
        project: match &order.workspace {
            OrderWorkspace::Git { remote, .. } => remote.clone(),
            OrderWorkspace::Path { path } => path.display().to_string(),
        },
        account: worker
            .machine
            .account(settings.agent.as_ref().unwrap_or(&runtime), settings.model.as_deref()),
        runtime,
        agent: settings.agent.clone(),
        host: "local".to_owned(),
        job: of_run("job"),
        run: of_run("run"),
        labels: order.labels.iter().map(str::to_owned).collect(),
        priority: 0,
        enqueued: order.placed,
        attempt: 1,
    }
}

#[cfg(test)]
mod tests {
    use hangar_fleet::VERSION;
    use hangar_fleet::order::{Labels, OrderId, SessionSettings};

    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    #[test]
    fn an_order_that_only_waits_is_not_given_up() {
        // Each was given back after ten seconds.
        assert!(!may_be_lost(101, Duration::from_secs(1010), LEASE));
        // Each was given back after a third of the lease.
        assert!(!may_be_lost(10_000, LEASE / 3 * 10_000, LEASE));
        assert!(!may_be_lost(u64::MAX, Duration::from_secs(1 << 30), LEASE));
    }

    #[test]
    fn an_order_whose_deliveries_are_lost_is_given_up() {
        assert!(!may_be_lost(100, LEASE * 100, LEASE), "it has some more");
        assert!(may_be_lost(101, LEASE * 101, LEASE));
        assert!(may_be_lost(101, LEASE * 200, LEASE));
    }

    #[test]
    fn an_order_waits_from_the_last_record_of_its_session_on() {
        let hour = |hours: i64| Timestamp::now() - jiff::SignedDuration::from_hours(hours);
        let order = Order {
            v: VERSION,
            id: OrderId("o".to_owned()),
            session: uuid::Uuid::new_v4().to_string(),
            labels: Labels::default(),
            prompt: String::new(),
            settings: SessionSettings::default(),
            workspace: OrderWorkspace::Path { path: "/".into() },
            from: String::new(),
            placed: hour(5),
        };
        let released = |hours| {
            let order = OrderId("other".to_owned());
            let record = FleetRecord::Released { order, end: OrderEnd::Done, at: hour(hours) };
            LogEntry { seq: 1, epoch: 1, item: LogItem::Record(record) }
        };
        let events = LogEntry { seq: 2, epoch: 1, item: LogItem::Events(Default::default()) };
        let hours = |entries: &[LogEntry]| idle(&order, entries).as_secs() / 3600;
        assert_eq!(hours(&[]), 5);
        assert_eq!(hours(&[released(9)]), 5);
        assert_eq!(hours(&[released(9), released(2), events]), 2);
    }
}
