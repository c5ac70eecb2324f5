//! Which item goes first.

use hangar_scheduler::limits::{Limits, ScopeKind};
use hangar_scheduler::record::QueueFact;
use hangar_scheduler::retry::AttemptFailureKind;

use crate::stage::{Stage, owner};

/// Runs items one after the other, as slots become free, and gives their order.
fn sequence(limits: Limits, items: &[&str]) -> String {
    let mut stage = Stage::new(limits);
    items.iter().for_each(|item| stage.enqueue(item));
    let mut all = Vec::new();
    loop {
        let granted = stage.next();
        if granted.is_empty() {
            return all.join(" ");
        }
        for id in granted.split(' ') {
            stage.finish(id);
        }
        all.push(granted);
    }
}

#[test]
fn priority_goes_before_age() {
    assert_eq!(sequence(Limits::global(1), &["a", "b", "c priority=1", "d priority=-1"]), "c a b d");
}

#[test]
fn a_project_with_much_work_does_not_hold_up_another() {
    let items = ["a1", "a2", "a3", "a4", "b1 project=q", "b2 project=q"];
    assert_eq!(sequence(Limits::global(1), &items), "a1 b1 a2 b2 a3 a4");
}

#[test]
fn projects_share_by_their_weights() {
    let mut limits = Limits::global(1);
    limits.weights.insert("p".to_owned(), 3);
    let items = ["a1", "a2", "a3", "a4", "b1 project=q", "b2 project=q", "b3 project=q"];
    assert_eq!(sequence(limits, &items), "a1 b1 a2 a3 a4 b2 b3");
}

#[test]
fn the_first_item_of_a_project_waits_for_at_most_one_slot() {
    let mut stage = Stage::new(Limits::global(8));
    (0..1000).for_each(|n| stage.enqueue(&format!("a{n}")));
    assert_eq!(stage.next().split(' ').count(), 8);
    stage.enqueue("b project=q");
    assert_eq!(stage.next(), "");
    stage.finish("a3");
    assert_eq!(stage.next(), "b");
}

#[test]
fn a_full_scope_does_not_hold_up_others() {
    let limits = Limits::global(9).with(ScopeKind::Runtime, "codex", 1);
    let mut stage = Stage::new(limits);
    for item in ["a runtime=codex", "b runtime=codex", "c", "d runtime=codex", "e"] {
        stage.enqueue(item);
    }
    assert_eq!(stage.next(), "a c e");
    stage.finish("a");
    assert_eq!(stage.next(), "b");
}

#[test]
fn a_default_limit_is_for_each_scope_of_its_kind() {
    let mut stage = Stage::new(Limits::global(9).with(ScopeKind::Job, "*", 1).with(ScopeKind::Job, "x", 2));
    for item in ["a job=x", "b job=x", "c job=x", "d job=y", "e job=y", "f"] {
        stage.enqueue(item);
    }
    assert_eq!(stage.next(), "a b d f");
}

#[test]
fn a_retry_keeps_its_place() {
    let mut stage = Stage::new(Limits::global(1));
    ["a", "b", "c"].iter().for_each(|item| stage.enqueue(item));
    assert_eq!(stage.next(), "a");
    stage.fail("a", AttemptFailureKind::Transient);
    // Its owner wants it again at once, in vain until the delay has passed.
    stage.enqueue("a");
    assert_eq!(stage.next(), "b");
    stage.pass(5);
    assert_eq!(stage.next(), "");
    stage.finish("b");
    assert_eq!(stage.next(), "a");
    assert_eq!(stage.queue.entry(&crate::stage::item("a").id).unwrap().item.attempt, 2);
}

#[test]
fn a_breaker_opens_for_all_tries_one_and_closes() {
    let mut stage = Stage::new(Limits::global(2));
    ["a", "b", "c", "d", "x account=other"].iter().for_each(|item| stage.enqueue(item));
    assert_eq!(stage.next(), "a b");
    stage.fail("a", AttemptFailureKind::Overloaded);
    stage.fail("b", AttemptFailureKind::Overloaded);
    let opened =
        stage.log.iter().filter(|record| matches!(record.fact, QueueFact::BreakerOpened { .. })).count();
    assert_eq!(opened, 1);
    assert_eq!(stage.next(), "x");
    stage.pass(5);
    assert_eq!(stage.next(), "c (tries claude)");
    stage.finish("x");
    assert_eq!(stage.next(), "");
    // It failed again: the next try is later.
    stage.fail("c", AttemptFailureKind::Overloaded);
    stage.pass(5);
    assert_eq!(stage.next(), "");
    stage.pass(5);
    assert_eq!(stage.next(), "d (tries claude)");
    stage.finish("d");
    ["a", "b", "c"].iter().for_each(|item| stage.enqueue(item));
    stage.pass(60);
    assert_eq!(stage.next(), "a b");
}

#[test]
fn a_login_that_failed_is_tried_once() {
    let mut stage = Stage::new(Limits::global(1));
    (0..5).for_each(|n| stage.enqueue(&format!("a{n}")));
    assert_eq!(stage.next(), "a0");
    stage.fail("a0", AttemptFailureKind::Login);
    assert_eq!(stage.next(), "");
    for fact in stage.queue.resumed() {
        stage.note(fact);
    }
    assert_eq!(stage.next(), "a1");
}

#[test]
fn a_paused_queue_grants_nothing() {
    let mut stage = Stage::new(Limits::global(1));
    stage.enqueue("a");
    for closed in [QueueFact::Paused, QueueFact::Drained] {
        stage.note(closed);
        assert_eq!(stage.next(), "");
    }
    stage.note(QueueFact::Resumed);
    assert_eq!(stage.next(), "a");
}

#[test]
fn work_of_a_process_that_has_ended_is_parked_in_its_place() {
    let mut stage = Stage::new(Limits::global(1));
    ["a", "b"].iter().for_each(|item| stage.enqueue(item));
    assert_eq!(stage.next(), "a");
    stage.note(QueueFact::OwnerGone { owner: owner() });
    assert_eq!(stage.next(), "");
    ["b", "a"].iter().for_each(|item| stage.enqueue(item));
    assert_eq!(stage.next(), "a");
}

#[test]
fn sessions_of_people_are_not_queued_and_count() {
    let mut stage = Stage::new(Limits::global(1));
    stage.note(QueueFact::Counted { item: crate::stage::item("mine"), owner: owner() });
    stage.note(QueueFact::Counted { item: crate::stage::item("other"), owner: owner() });
    stage.enqueue("a");
    assert_eq!(stage.next(), "");
    stage.finish("mine");
    stage.note(QueueFact::OwnerGone { owner: owner() });
    stage.enqueue("a");
    assert_eq!(stage.next(), "a");
}
