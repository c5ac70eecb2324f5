//! The sentence that says why an item waits.

use hangar_scheduler::item::ItemId;
use hangar_scheduler::limits::{Limits, ScopeKind};
use hangar_scheduler::queue::Queue;
use hangar_scheduler::record::QueueFact;
use hangar_scheduler::retry::AttemptFailureKind;
use hangar_scheduler::state::ItemStatus;
use jiff::tz::TimeZone;

use crate::stage::{Stage, owner};

/// A queue in which `a` runs and `b` and `c` wait.
fn stage(limits: Limits) -> Stage {
    let mut stage = Stage::new(limits);
    for item in ["a runtime=codex", "b runtime=codex", "c runtime=codex"] {
        stage.enqueue(item);
    }
    assert_eq!(stage.next(), "a");
    stage
}

#[test]
fn a_full_limit_is_named() {
    let codex = stage(Limits::global(9).with(ScopeKind::Runtime, "codex", 1));
    assert_eq!(codex.reason("b"), "1 of 1 codex slots are taken; first in line");
    assert_eq!(codex.reason("c"), "1 of 1 codex slots are taken; next after run b");
    assert_eq!(codex.reason("a"), "");
    let account = stage(Limits::global(9).with(ScopeKind::Provider, "*", 1));
    assert_eq!(account.reason("b"), "1 of 1 slots of account claude are taken; first in line");
    assert_eq!(stage(Limits::global(1)).reason("c"), "1 of 1 slots are taken; next after run b");
}

#[test]
fn every_process_says_the_same_whatever_it_has_decided_before() {
    let limits = || Limits::global(2).with(ScopeKind::Agent, "reviewer", 1);
    let mut stage = Stage::new(limits());
    for item in ["a agent=reviewer", "b agent=reviewer", "c"] {
        stage.enqueue(item);
    }
    assert_eq!(stage.next(), "a c", "the limit of the agent holds `b`");
    stage.enqueue("d");
    assert_eq!(stage.reason("d"), "2 of 2 slots are taken; first in line");
    let another = Queue::fold(limits(), &stage.log);
    for id in ["b", "d"] {
        let told = another.reason(&ItemId(id.to_owned()), stage.now, &TimeZone::UTC);
        assert_eq!(told, Some(stage.reason(id)), "{id}");
    }
}

#[test]
fn a_remark_is_about_work_that_runs_and_ends_with_it() {
    let mut stage = stage(Limits::global(1));
    let remark = |item: &str, remark: Option<&str>| QueueFact::Remarked {
        item: ItemId(item.to_owned()),
        remark: remark.map(str::to_owned),
    };
    let told = |stage: &Stage, id: &str| match &stage.queue.entry(&ItemId(id.to_owned())).unwrap().status {
        ItemStatus::Running { remark, .. } => remark.clone(),
        ItemStatus::Waiting { .. } | ItemStatus::Parked { .. } => None,
    };
    stage.note(remark("a", Some("no progress")));
    stage.note(remark("b", Some("it waits")));
    assert_eq!(told(&stage, "a").as_deref(), Some("no progress"));
    assert_eq!(Queue::fold(Limits::global(1), &stage.log).state(), stage.queue.state());
    stage.note(remark("a", None));
    assert_eq!(told(&stage, "a"), None);
    stage.note(remark("a", Some("no progress")));
    stage.note(QueueFact::Parked { item: ItemId("a".to_owned()) });
    stage.enqueue("a");
    assert_eq!(stage.next(), "a");
    assert_eq!(told(&stage, "a"), None, "a later attempt begins without it");
}

#[test]
fn a_closed_queue_is_named() {
    let mut stage = stage(Limits::global(1));
    stage.note(QueueFact::Paused);
    assert_eq!(stage.reason("b"), "the queue is paused; `hangar resume` continues it");
    stage.note(QueueFact::Drained);
    assert!(stage.reason("b").starts_with("the queue is drained"));
    stage.note(QueueFact::OwnerGone { owner: owner() });
    assert_eq!(stage.reason("b"), "waits for run b to be resumed");
}

#[test]
fn a_delay_and_an_account_that_is_held_are_named() {
    let mut one = stage(Limits::global(1));
    one.fail("a", AttemptFailureKind::Transient);
    one.enqueue("a");
    assert_eq!(one.reason("a"), "waits until 08:00:08 UTC for attempt 2: it broke");
    let mut one = stage(Limits::global(1));
    one.fail("a", AttemptFailureKind::Overloaded);
    assert_eq!(one.reason("b"), "waits for account claude until 08:00:08 UTC: overloaded");
    one.pass(5);
    assert_eq!(one.next(), "b (tries claude)");
    assert_eq!(one.reason("c"), "waits for account claude, which run b tries: overloaded");
    let mut one = stage(Limits::global(1));
    one.fail("a", AttemptFailureKind::Login);
    let login = "waits for account claude until 08:05:03 UTC: its login failed; log in, then `hangar resume`";
    assert_eq!(one.reason("b"), login);
}
