//! The cost of the scheduler while many items wait. `cargo xtask bench queue` runs it; it prints one line of JSON, in microseconds.
//!
//! ```text
//! decisions QUEUED DECISIONS
//! ```
//!
//! One decision is the end of an item: it frees a slot, and the next item gets it. `decide` is the queue alone, `recorded` the same
//! with its records appended to the log on disk, and `reason` is the sentence that says why one item waits.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people who measure")]

use std::collections::{BTreeSet, VecDeque};
use std::hint::black_box;
use std::time::{Duration, Instant};

use hangar_registry::queue::log::{Grants, QueueLog};
use hangar_scheduler::item::{ItemId, OwnerId, WorkItem, WorkKind};
use hangar_scheduler::limits::{Limits, ScopeKind};
use hangar_scheduler::queue::Queue;
use hangar_scheduler::record::{Outcome, QueueFact, QueueRecord};
use hangar_scheduler::state::ItemStatus;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

const SLOTS: u32 = 8;

fn main() {
    let args: Vec<usize> = std::env::args().skip(1).map(|word| word.parse().unwrap()).collect();
    let [queued, decisions] = args[..] else { panic!("decisions QUEUED DECISIONS") };
    let figures = json!({
        "decide": figures(decide(queued, decisions)),
        "recorded": figures(recorded(queued, decisions)),
        "reason": figures(reason(queued, decisions)),
    });
    println!("{figures}");
}

/// Limits of several kinds, so that lanes have gates to look at.
fn limits() -> Limits {
    let limits = Limits::global(SLOTS).with(ScopeKind::Runtime, "*", 4).with(ScopeKind::Provider, "*", 4);
    limits.with(ScopeKind::Job, "*", 2)
}

fn item(number: usize, now: Timestamp) -> WorkItem {
    WorkItem {
        id: ItemId(format!("run-{number}/1")),
        kind: WorkKind::Task,
        project: format!("/projects/{}", number % 100),
        runtime: format!("runtime-{}", number % 3),
        agent: None,
        account: format!("account-{}", number % 5),
        host: "local".to_owned(),
        job: Some(format!("job-{}", number % 1000)),
        run: Some(format!("run-{number}")),
        labels: BTreeSet::new(),
        priority: 0,
        enqueued: now,
        attempt: 1,
    }
}

fn enqueued(queued: usize, now: Timestamp, owner: &OwnerId) -> Vec<QueueFact> {
    let items = (0..queued).map(|number| item(number, now));
    items.map(|item| QueueFact::Enqueued { item, owner: owner.clone() }).collect()
}

fn finished(item: ItemId) -> QueueFact {
    QueueFact::Finished { item, outcome: Outcome::Done }
}

/// A queue in memory.
fn filled(queued: usize, now: Timestamp) -> Queue {
    let mut queue = Queue::new(limits());
    for fact in enqueued(queued, now, &OwnerId("bench".to_owned())) {
        queue.apply(&QueueRecord { at: now, fact });
    }
    queue
}

fn decide(queued: usize, decisions: usize) -> Vec<Duration> {
    let now = Timestamp::now();
    let mut queue = filled(queued + decisions, now);
    let granted = |queue: &mut Queue| queue.next(now).into_iter().map(|decision| decision.item);
    let mut running: VecDeque<ItemId> = granted(&mut queue).collect();
    let mut times = Vec::new();
    while times.len() < decisions
        && let Some(item) = running.pop_front()
    {
        let begun = Instant::now();
        queue.apply(&QueueRecord { at: now, fact: finished(item) });
        let next: Vec<ItemId> = granted(&mut queue).collect();
        times.push(begun.elapsed());
        running.extend(next);
    }
    times
}

fn recorded(queued: usize, decisions: usize) -> Vec<Duration> {
    let place = tempfile::tempdir().unwrap();
    let mut log = QueueLog::open(place.path().to_owned(), limits()).unwrap();
    let now = Timestamp::now();
    log.transact(now, |_, owner| enqueued(queued + decisions, now, owner)).unwrap();
    let granted = |log: &mut QueueLog, known: &VecDeque<ItemId>| match log.take_grants() {
        Grants::Items(items) => items,
        // The log was compacted.
        Grants::Any => {
            let entries = log.queue().state().items.values();
            let running = entries.filter(|entry| matches!(entry.status, ItemStatus::Running { .. }));
            let ids = running.map(|entry| entry.item.id.clone());
            ids.filter(|id| !known.contains(id)).collect()
        }
    };
    let mut running: VecDeque<ItemId> = granted(&mut log, &VecDeque::new()).into();
    let mut times = Vec::new();
    while times.len() < decisions
        && let Some(item) = running.pop_front()
    {
        let begun = Instant::now();
        log.transact(Timestamp::now(), |_, _| vec![finished(item)]).unwrap();
        times.push(begun.elapsed());
        let next = granted(&mut log, &running);
        running.extend(next);
    }
    times
}

fn reason(queued: usize, decisions: usize) -> Vec<Duration> {
    let now = Timestamp::now();
    let mut queue = filled(queued, now);
    queue.next(now);
    let step = (queued / decisions.max(1)).max(1);
    let asked = (0..queued).step_by(step).map(|number| item(number, now).id);
    asked
        .map(|id| {
            let begun = Instant::now();
            black_box(queue.reason(&id, now, &TimeZone::UTC));
            begun.elapsed()
        })
        .collect()
}

fn figures(mut times: Vec<Duration>) -> Value {
    times.sort_unstable();
    let at = |share: f64| {
        let place = ((times.len() - 1) as f64 * share) as usize;
        times[place].as_secs_f64() * 1e6
    };
    json!({ "count": times.len(), "median": at(0.5), "p99": at(0.99), "longest": at(1.0) })
}
