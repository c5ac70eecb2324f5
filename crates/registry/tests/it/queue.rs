//! The queue on disk: shared by processes, recovered after kills, compacted.

use std::collections::BTreeSet;
use std::path::Path;

use hangar_registry::queue::log::QueueLog;
use hangar_registry::queue::{QueueMode, Scheduler, SchedulerConfig, Slot};
use hangar_scheduler::item::{ItemId, WorkItem, WorkKind};
use hangar_scheduler::limits::Limits;
use hangar_scheduler::queue::Queue;
use hangar_scheduler::record::{QueueFact, QueueRecord};
use hangar_scheduler::retry::{AttemptFailure, AttemptFailureKind, RetryPolicy};
use hangar_scheduler::state::{ItemStatus, QueueState};
use jiff::Timestamp;
use jiff::tz::TimeZone;

fn open(dir: &Path, limit: u32) -> Scheduler {
    let config = SchedulerConfig {
        dir: dir.to_owned(),
        limits: Limits::global(limit),
        retries: RetryPolicy::default(),
        now: Timestamp::now,
        random: || 0.0,
        zone: TimeZone::UTC,
    };
    Scheduler::open(config).unwrap()
}

fn item(id: &str) -> WorkItem {
    WorkItem {
        id: ItemId(id.to_owned()),
        kind: WorkKind::Task,
        project: "p".to_owned(),
        runtime: "fake".to_owned(),
        agent: None,
        account: "fake".to_owned(),
        host: "local".to_owned(),
        job: None,
        run: Some(id.to_owned()),
        labels: BTreeSet::new(),
        priority: 0,
        enqueued: Timestamp::now(),
        attempt: 1,
    }
}

/// Ids of what waits, each with its reason.
fn waiting(scheduler: &Scheduler) -> Vec<(String, String)> {
    let waiting = scheduler.view().unwrap().waiting.into_iter();
    waiting.map(|item| (item.id, item.reason.unwrap_or_default())).collect()
}

/// Starts to wait for a slot, and returns once the queue knows it.
async fn enqueue(scheduler: &Scheduler, id: &'static str) -> tokio::task::JoinHandle<Slot> {
    let waits = tokio::spawn({
        let scheduler = scheduler.clone();
        async move { scheduler.acquire(item(id)).await.unwrap() }
    });
    while !scheduler.view().unwrap().waiting.iter().any(|item| item.id == id) {
        tokio::task::yield_now().await;
    }
    waits
}

/// The log as it is after a kill: the process is gone, and nothing was dropped in order.
fn killed(dir: &Path, log: &[u8]) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    std::fs::write(copy.path().join("queue.jsonl"), log).unwrap();
    assert!(dir.join("owners").is_dir());
    copy
}

#[tokio::test]
async fn processes_share_one_limit() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (open(home.path(), 1), open(home.path(), 1));
    let slot = one.acquire(item("a")).await.unwrap();
    let waits = enqueue(&other, "b").await;
    assert_eq!(waiting(&one), [("b".to_owned(), "1 of 1 slots are taken; first in line".to_owned())]);
    slot.finish();
    // The other one hears of it by the file alone.
    waits.await.unwrap().finish();
    assert!(one.view().unwrap().running.is_empty());
}

#[tokio::test]
async fn a_process_that_ends_leaves_its_work_in_its_place() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (open(home.path(), 1), open(home.path(), 1));
    let slot = one.acquire(item("a")).await.unwrap();
    let waits = enqueue(&other, "b").await;
    // As if it were killed: the slot is never given back, and the lock of the process ends.
    std::mem::forget(slot);
    let log = std::fs::read(home.path().join("queue.jsonl")).unwrap();
    let again = killed(home.path(), &log);
    let third = open(again.path(), 1);
    let parked = |id: &str| (id.to_owned(), format!("waits for run {id} to be resumed"));
    assert_eq!(waiting(&third), [parked("a"), parked("b")]);
    // Whoever resumes them finds them where they were.
    let first = third.acquire(item("b")).await.unwrap();
    let second = enqueue(&third, "a").await;
    first.finish();
    second.await.unwrap().finish();
    waits.abort();
}

#[tokio::test]
async fn a_log_that_was_cut_at_any_byte_is_the_queue_up_to_there() {
    let home = tempfile::tempdir().unwrap();
    let scheduler = open(home.path(), 2);
    let a = scheduler.acquire(item("a")).await.unwrap();
    let b = scheduler.acquire(item("b")).await.unwrap();
    let c = enqueue(&scheduler, "c").await;
    scheduler.pause().unwrap();
    a.fail(&AttemptFailure::new(AttemptFailureKind::Overloaded, "too busy"));
    scheduler.resume().unwrap();
    b.finish();
    c.await.unwrap().finish();
    let log = std::fs::read(home.path().join("queue.jsonl")).unwrap();
    let records = |bytes: &[u8]| -> Vec<QueueRecord> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = std::str::from_utf8(&bytes[..whole]).unwrap().lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert!(records(&log).len() > 10, "{}", String::from_utf8_lossy(&log));
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("queue.jsonl");
    for cut in 0..=log.len() {
        std::fs::write(&path, &log[..cut]).unwrap();
        let mut found = QueueLog::open(place.path().to_owned(), Limits::global(0)).unwrap();
        found.transact(Timestamp::now(), |_, _| Vec::new()).unwrap();
        let expected = Queue::fold(Limits::global(0), &records(&log[..cut]));
        assert_eq!(found.queue().state(), expected.state(), "cut at {cut}");
        // The next record is read again.
        found.transact(Timestamp::now(), |_, _| vec![QueueFact::Paused]).unwrap();
        let mut again = QueueLog::open(place.path().to_owned(), Limits::global(0)).unwrap();
        again.transact(Timestamp::now(), |_, _| Vec::new()).unwrap();
        assert_eq!(again.queue().state(), found.queue().state(), "cut at {cut}");
    }
}

#[tokio::test]
async fn a_line_in_the_middle_that_is_no_record_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("queue.jsonl"), "{\"at\":\"x\"}\n").unwrap();
    let error = open(home.path(), 1).pause().unwrap_err().to_string();
    assert!(error.contains("line 1 of ") && error.contains("move the file away"), "{error}");
}

#[tokio::test]
async fn a_record_of_a_later_version_is_passed_over() {
    let home = tempfile::tempdir().unwrap();
    let line = "{\"at\":\"2026-01-01T00:00:00.000Z\",\"type\":\"somethingNew\",\"x\":1}\n";
    std::fs::write(home.path().join("queue.jsonl"), line).unwrap();
    open(home.path(), 1).pause().unwrap();
    assert_eq!(open(home.path(), 1).view().unwrap().mode, QueueMode::Paused);
}

#[tokio::test]
async fn modes_delays_and_held_accounts_outlive_the_process() {
    let home = tempfile::tempdir().unwrap();
    let scheduler = open(home.path(), 1);
    let slot = scheduler.acquire(item("a")).await.unwrap();
    slot.fail(&AttemptFailure {
        retry_after: Some(200),
        ..AttemptFailure::new(AttemptFailureKind::RateLimited, "slow down")
    });
    scheduler.pause().unwrap();
    drop(scheduler);
    let again = open(home.path(), 1);
    let view = again.view().unwrap();
    assert_eq!(view.mode, QueueMode::Paused);
    assert_eq!(view.held[0].reason, "rate limited");
    let (id, reason) = waiting(&again).remove(0);
    assert!(id == "a" && reason.ends_with("for attempt 2: slow down"), "{reason}");
}

#[tokio::test]
async fn a_log_is_compacted_and_stays_the_same_queue() {
    let home = tempfile::tempdir().unwrap();
    let limits = Limits::global(1);
    let mut log = QueueLog::open(home.path().to_owned(), limits.clone()).unwrap();
    let mut other = QueueLog::open(home.path().to_owned(), limits).unwrap();
    log.compact_from(16 << 10);
    let now = Timestamp::now();
    log.transact(now, |_, owner| vec![QueueFact::Enqueued { item: item("stays"), owner: owner.clone() }])
        .unwrap();
    for number in 0..1000 {
        let id = format!("i{number}");
        log.transact(now, |_, owner| vec![QueueFact::Enqueued { item: item(&id), owner: owner.clone() }])
            .unwrap();
        log.transact(now, |_, _| vec![QueueFact::Withdrawn { item: ItemId(id.clone()) }]).unwrap();
        // Another process reads on in the new file.
        if number % 50 == 0 {
            other.transact(now, |_, _| Vec::new()).unwrap();
            assert_eq!(other.queue().compacted(), log.queue().compacted());
        }
    }
    let length = std::fs::metadata(home.path().join("queue.jsonl")).unwrap().len();
    assert!(length < 32 << 10, "{length}");
    let QueueState { items, .. } = log.queue().state();
    assert_eq!(items.len(), 1);
    assert!(matches!(items[&ItemId("stays".to_owned())].status, ItemStatus::Running { .. }));
}

#[tokio::test]
async fn whoever_stops_waiting_leaves_the_slot_to_others() {
    let home = tempfile::tempdir().unwrap();
    let scheduler = open(home.path(), 1);
    let slot = scheduler.acquire(item("a")).await.unwrap();
    let b = enqueue(&scheduler, "b").await;
    let c = enqueue(&scheduler, "c").await;
    b.abort();
    assert!(b.await.is_err());
    drop(slot);
    c.await.unwrap().finish();
    scheduler.withdraw_run("b");
    assert_eq!(waiting(&scheduler), [("a".to_owned(), "waits for run a to be resumed".to_owned())]);
}

#[tokio::test]
async fn a_drained_queue_does_not_wait_for_turns_of_people() {
    let dir = tempfile::tempdir().unwrap();
    let scheduler = open(dir.path(), 2);
    let turn = scheduler.count(item("typed")).unwrap();
    let slot = scheduler.acquire(item("queued")).await.unwrap();
    scheduler.drain().unwrap();
    assert_eq!(scheduler.running_kinds(), (1, 1));
    slot.finish();
    assert_eq!(scheduler.queue_idle().await.unwrap(), 1);
    drop(turn);
}

#[tokio::test]
async fn what_a_killed_process_left_of_a_run_that_has_ended_is_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let one = open(home.path(), 1);
    // Killed between the end of its run and the end of its slot.
    std::mem::forget(one.acquire(item("a")).await.unwrap());
    let log = std::fs::read(home.path().join("queue.jsonl")).unwrap();
    let again = killed(home.path(), &log);
    let next = open(again.path(), 1);
    next.forget(|_| true);
    assert_eq!(waiting(&next), []);
    assert_eq!(next.view().unwrap().running.len(), 0);
}

#[tokio::test]
async fn what_another_process_waits_for_is_not_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (open(home.path(), 1), open(home.path(), 1));
    let slot = one.acquire(item("a")).await.unwrap();
    let waits = enqueue(&other, "b").await;
    // A process that knows nothing of these runs, such as of those on a fleet, thinks that they have ended.
    open(home.path(), 1).forget(|_| true);
    slot.finish();
    waits.await.unwrap().finish();
}

#[tokio::test]
async fn a_process_whose_presence_cannot_be_read_is_not_taken_for_gone() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (open(home.path(), 1), open(home.path(), 1));
    let slot = one.acquire(item("a")).await.unwrap();
    let owners = home.path().join("owners");
    let owner = std::fs::read_dir(&owners).unwrap().next().unwrap().unwrap().path();
    std::fs::rename(&owner, owners.join("aside")).unwrap();
    std::os::unix::fs::symlink(&owner, &owner).unwrap();
    let waits = enqueue(&other, "b").await;
    assert_eq!(waiting(&other), [("b".to_owned(), "1 of 1 slots are taken; first in line".to_owned())]);
    slot.finish();
    waits.await.unwrap().finish();
}

#[test]
fn a_process_that_slept_through_compactions_reads_the_new_log() {
    let home = tempfile::tempdir().unwrap();
    let log = || QueueLog::open(home.path().to_owned(), Limits::global(1)).unwrap();
    let enqueued =
        |name: &str, log: &QueueLog| QueueFact::Enqueued { item: item(name), owner: log.owner().clone() };
    for round in 0..8 {
        let (mut sleeper, mut busy) = (log(), log());
        busy.compact_from(1);
        sleeper.transact(Timestamp::now(), |_, _| Vec::new()).unwrap();
        // Two compactions at least: the file of the second may get the inode of the one that the sleeper has read.
        for number in 0..40 {
            let fact = enqueued(&format!("{round}-{number}"), &busy);
            busy.transact(Timestamp::now(), |_, _| vec![fact]).unwrap();
        }
        sleeper.transact(Timestamp::now(), |_, _| Vec::new()).unwrap();
        assert_eq!(sleeper.queue().state(), busy.queue().state());
    }
}

#[tokio::test]
async fn one_task_behind_a_thousand_of_another_project_gets_the_next_slot() {
    const TASKS: usize = 1000;
    let home = tempfile::tempdir().unwrap();
    let (many, single) = (open(home.path(), 8), open(home.path(), 8));
    let mut work = tokio::task::JoinSet::new();
    let (ends, _) = tokio::sync::broadcast::channel::<()>(1);
    for number in 0..TASKS {
        let (scheduler, mut ended) = (many.clone(), ends.subscribe());
        work.spawn(async move {
            let slot = scheduler.acquire(item(&format!("p{number}"))).await.unwrap();
            // All work until the one of the other project waits too.
            let _ = ended.recv().await;
            slot.finish();
        });
    }
    while many.view().unwrap().waiting.len() < TASKS - 8 {
        tokio::task::yield_now().await;
    }
    let other = WorkItem { project: "q".to_owned(), ..item("q") };
    let one = tokio::spawn(async move { single.acquire(other).await.unwrap().finish() });
    while many.view().unwrap().waiting.len() < TASKS - 8 + 1 {
        tokio::task::yield_now().await;
    }
    drop(ends);
    one.await.unwrap();
    while work.join_next().await.is_some() {}
    let log = std::fs::read_to_string(home.path().join("queue.jsonl")).unwrap();
    let records = log.lines().map(|line| serde_json::from_str::<QueueRecord>(line).unwrap());
    let mut queue = Queue::new(Limits::global(8));
    let (mut granted, mut waits) = (Vec::new(), false);
    for record in records {
        queue.apply(&record);
        assert!(queue.running() <= 8);
        match record.fact {
            QueueFact::Enqueued { item, .. } if item.project == "q" => waits = true,
            QueueFact::Granted { item } if waits => granted.push(item.0),
            _ => {}
        }
    }
    assert_eq!(granted.first().map(String::as_str), Some("q"));
    assert_eq!(granted.len(), TASKS - 8 + 1);
}

#[tokio::test]
async fn the_end_of_work_that_could_not_be_written_is_written_as_soon_as_it_can_be() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (open(home.path(), 1), open(home.path(), 1));
    let slot = one.acquire(item("a")).await.unwrap();
    let waits = enqueue(&other, "b").await;
    let (log, aside) = (home.path().join("queue.jsonl"), home.path().join("aside"));
    std::fs::rename(&log, &aside).unwrap();
    std::fs::create_dir(&log).unwrap();
    slot.fail(&AttemptFailure::new(AttemptFailureKind::Transient, "a crash"));
    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(&aside, &log).unwrap();
    // Its process does nothing more, and the slot is free nevertheless.
    waits.await.unwrap().finish();
    let waiting = waiting(&other);
    assert_eq!(waiting.len(), 1, "the failed one keeps its place: {waiting:?}");
    assert!(waiting[0].1.ends_with("for attempt 2: a crash"), "{waiting:?}");
}
