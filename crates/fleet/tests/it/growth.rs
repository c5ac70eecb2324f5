//! Growth: many workers and sessions with simulated agents, on real servers, by the code that workers use. It prints a table and
//! checks that time per order does not grow. `cargo xtask bench fleet` runs it; the sizes are variables.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hangar_fleet::claim::LogClaim;
use hangar_fleet::facts::{FleetSessionState, SessionFact};
use hangar_fleet::fold::{Claimable, SessionFold};
use hangar_fleet::order::Order;
use hangar_fleet::queue::{OrderQueue, Settled};
use hangar_fleet::record::{FleetRecord, FleetTurnEnd, OrderEnd};
use hangar_fleet::slots::SlotAnswer;
use hangar_fleet::work_queue::WorkQueue;
use hangar_fleet::{Broker, FleetSettings, Prefix, check, log};
use hangar_scheduler::item::{ItemId, WorkItem, WorkKind};
use hangar_scheduler::limits::{Limits, ScopeKind};
use hangar_test_support::NatsServers;
use jiff::Timestamp;

use crate::order;

const EVENT: &[u8] = br#"{"id":"ID","timestamp":"2026-01-01T00:00:00.000Z","parentId":null,"type":"user.message","data":{"content":"go"}}
"#;
/// Slots of a simulated worker.
const SLOTS: usize = 4;
/// Sessions that are checked afterwards, of each size.
const CHECKED: usize = 50;
/// Of so many sessions, one belongs to a project with a limit, whose slots the scheduler counts over all machines.
const LIMITED: usize = 50;

fn number(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn rss(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|kb| kb.parse().ok()).unwrap_or(0)
}

/// Carries an order out as a worker does, with an agent that says one thing.
async fn carry_out(broker: &Broker, worker: &str, order: &Order, delivery: u64) -> Settled {
    let id = order.session_id().unwrap();
    let subject = log::session_subject(broker, &id);
    let fold = SessionFold::of(&log::read(broker, &subject).await.unwrap());
    if fold.decide(&order.id, delivery, 5) != Claimable::Free {
        return Settled::Done;
    }
    let limits = Limits::global(100_000).with(ScopeKind::Project, "limited", 8);
    let is_limited = order.prompt == "limited";
    if is_limited {
        let item = WorkItem {
            id: ItemId(order.session.clone()),
            kind: WorkKind::Turn,
            project: "limited".to_owned(),
            runtime: "native".to_owned(),
            agent: None,
            account: "none".to_owned(),
            host: worker.to_owned(),
            job: None,
            run: None,
            labels: std::collections::BTreeSet::new(),
            priority: 0,
            enqueued: Timestamp::now(),
            attempt: 1,
        };
        if let SlotAnswer::Waits(_) = broker.take_slot(&limits, &item, worker).await.unwrap() {
            return Settled::GiveBack(Duration::from_millis(200));
        }
    }
    let at = Timestamp::now();
    let claimed = FleetRecord::Claimed { worker: worker.to_owned(), order: order.id.clone(), delivery, at };
    let claim = LogClaim::take(broker, subject, fold.last, &claimed).await.unwrap();
    let fact = |state| SessionFact {
        state,
        worker: Some(worker.to_owned()),
        at: Timestamp::now(),
        order: None,
        ..SessionFact::queued(order)
    };
    broker.put_fact(&fact(FleetSessionState::Running)).await.unwrap();
    let message = order.id.0.clone();
    claim.append(&FleetRecord::Message { id: message.clone(), text: "go".to_owned(), at }).await.unwrap();
    claim.append(&FleetRecord::TurnBegan { message: message.clone() }).await.unwrap();
    let line = String::from_utf8_lossy(EVENT).replace("ID", &message);
    claim.append_lines(line.as_bytes()).unwrap();
    claim.append(&FleetRecord::TurnEnded { message, outcome: FleetTurnEnd::Completed, at }).await.unwrap();
    claim.append(&FleetRecord::Released { order: order.id.clone(), end: OrderEnd::Done, at }).await.unwrap();
    claim.give_up("done");
    broker.put_fact(&fact(FleetSessionState::Idle)).await.unwrap();
    if is_limited {
        broker.free_slot(&order.session, worker).await.unwrap();
    }
    Settled::Done
}

struct Grown {
    sessions: usize,
    placing: Duration,
    draining: Duration,
}

/// Places so many orders, then lets the workers drain them.
async fn grow(url: &str, prefix: &str, workers: usize, sessions: usize) -> Grown {
    let settings = || {
        let settings = FleetSettings::of_url(url).unwrap();
        FleetSettings { prefix: Prefix::parse(prefix).unwrap(), ..settings }
    };
    let broker = Broker::connect(settings(), "client").await.unwrap();
    let queue = Arc::new(WorkQueue::new(&broker));
    let began = Instant::now();
    let (mut placed, mut batch) = (Vec::with_capacity(sessions), tokio::task::JoinSet::new());
    for n in 0..sessions {
        let mut order = order(&format!("{prefix}-{n}"), &[]);
        order.prompt = if n % LIMITED == 0 { "limited" } else { "free" }.to_owned();
        placed.push(order.session.clone());
        let queue = Arc::clone(&queue);
        batch.spawn(async move { queue.put(&order).await.unwrap() });
        if batch.len() >= 256 {
            batch.join_next().await;
        }
    }
    while batch.join_next().await.is_some() {}
    let placing = began.elapsed();
    let began = Instant::now();
    let done = Arc::new(AtomicU64::new(0));
    let mut all = tokio::task::JoinSet::new();
    for n in 0..workers {
        // Each has a connection of its own, as a machine has.
        let broker = Broker::connect(settings(), &format!("w{n}")).await.unwrap();
        for slot in 0..SLOTS {
            let (broker, done, name) = (broker.clone(), Arc::clone(&done), format!("w{n}"));
            all.spawn(async move {
                let queue = WorkQueue::new(&broker);
                while done.load(Ordering::Relaxed) < sessions as u64 {
                    let Ok(Some(ticket)) = queue.pull("any", Duration::from_secs(1)).await else { continue };
                    let order = Order::parse(ticket.payload()).unwrap();
                    let settled = carry_out(&broker, &name, &order, ticket.deliveries()).await;
                    ticket.settle(settled).await.unwrap();
                    if settled == Settled::Done {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
                slot
            });
        }
    }
    while let Some(ended) = all.join_next().await {
        ended.unwrap();
    }
    let draining = began.elapsed();
    assert_eq!(queue.count().await.unwrap(), 0, "nothing is left");
    let step = (sessions / CHECKED).max(1);
    for session in placed.iter().step_by(step) {
        let entries =
            log::read(&broker, &log::session_subject(&broker, &session.parse().unwrap())).await.unwrap();
        let problems: Vec<String> =
            check::problems(&entries).into_iter().chain(check::unfinished(&entries)).collect();
        assert_eq!(problems, Vec::<String>::new());
    }
    let facts = broker.facts::<SessionFact>().await.unwrap();
    assert_eq!(
        facts.iter().filter(|fact| fact.state == FleetSessionState::Idle).count(),
        sessions,
        "none is lost"
    );
    Grown { sessions, placing, draining }
}

/// Appends per second of many sessions at once.
async fn appends(url: &str, sessions: usize, time: Duration) -> f64 {
    let settings =
        FleetSettings { prefix: Prefix::parse("appends").unwrap(), ..FleetSettings::of_url(url).unwrap() };
    let broker = Broker::connect(settings, "appends").await.unwrap();
    let mut all = tokio::task::JoinSet::new();
    for n in 0..sessions {
        let broker = broker.clone();
        all.spawn(async move {
            let id = uuid::Uuid::new_v4().to_string();
            let subject = log::session_subject(&broker, &id.parse().unwrap());
            let order = hangar_fleet::order::OrderId(format!("o{n}"));
            let claimed =
                FleetRecord::Claimed { worker: "w".to_owned(), order, delivery: 0, at: Timestamp::now() };
            let claim = LogClaim::take(&broker, subject, 0, &claimed).await.unwrap();
            let (began, mut count) = (Instant::now(), 0_u64);
            while began.elapsed() < time {
                claim.append(&FleetRecord::TurnBegan { message: "x".repeat(300) }).await.unwrap();
                count += 1;
            }
            count
        });
    }
    let mut total = 0;
    while let Some(count) = all.join_next().await {
        total += count.unwrap();
    }
    total as f64 / time.as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_of_many_sessions_are_placed_and_drained() {
    let (workers, most) = (number("HANGAR_GROWTH_WORKERS", 3), number("HANGAR_GROWTH_SESSIONS", 100));
    let servers = NatsServers::three();
    let url = std::env::var("HANGAR_GROWTH_URL").unwrap_or_else(|_| servers.url());
    for at_once in [1, 64] {
        let rate =
            appends(&url, at_once, Duration::from_millis(number("HANGAR_GROWTH_MILLIS", 200) as u64)).await;
        println!("{at_once} sessions append to three replicas: {rate:.0} appends/s");
    }
    let mut sizes = vec![100];
    while sizes.last().is_some_and(|last| last * 10 <= most) {
        sizes.push(sizes.last().unwrap() * 10);
    }
    println!("workers {workers}, {SLOTS} slots each");
    for sessions in sizes {
        let grown = grow(&url, &format!("g{sessions}"), workers, sessions).await;
        let millis = grown.draining.as_secs_f64() * 1000.0 / grown.sessions as f64;
        let rate = grown.sessions as f64 / grown.draining.as_secs_f64();
        let placed = grown.sessions as f64 / grown.placing.as_secs_f64();
        println!(
            "{sessions} sessions: placed at {placed:.0}/s, drained at {rate:.0}/s, {millis:.2} ms per order, client {} KB",
            rss(std::process::id())
        );
    }
}
