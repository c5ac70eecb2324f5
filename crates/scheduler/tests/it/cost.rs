//! The cost of a decision, in steps rather than in time.

use hangar_scheduler::limits::{Limits, ScopeKind};

use crate::stage::Stage;

const QUEUED: u64 = 10_000;
/// Steps that a decision may take on the average, however many items wait.
const STEPS: u64 = 24;

/// Queues items, then finishes what runs one by one and counts the steps of the decisions.
#[track_caller]
fn check(limits: Limits, describe: impl Fn(u64) -> String) {
    let mut stage = Stage::new(limits);
    (0..QUEUED).for_each(|n| stage.enqueue(&format!("a{n} {}", describe(n))));
    let mut running: std::collections::VecDeque<String> =
        stage.next().split(' ').map(str::to_owned).collect();
    let before = stage.queue.steps();
    let mut decisions = 0;
    while let Some(id) = running.pop_front() {
        stage.finish(&id);
        running.extend(stage.next().split_whitespace().map(str::to_owned));
        decisions += 1;
    }
    assert_eq!(decisions, QUEUED);
    let steps = stage.queue.steps() - before;
    assert!(steps <= decisions * STEPS, "{} steps per decision", steps / decisions);
}

#[test]
fn one_project() {
    check(Limits::global(8), |_| String::new());
}

#[test]
fn a_project_for_each_item() {
    check(Limits::global(8), |n| format!("project=p{n}"));
}

#[test]
fn a_project_for_each_item_behind_one_limit() {
    let limits = Limits::global(64).with(ScopeKind::Runtime, "codex", 8);
    check(limits, |n| format!("project=p{n} runtime=codex"));
}

#[test]
fn a_job_for_each_item_with_limits_of_all_kinds() {
    let kinds = ScopeKind::ALL.iter().filter(|kind| **kind != ScopeKind::Project);
    let limits = kinds.fold(Limits::global(8), |limits, kind| limits.with(*kind, "*", 4));
    check(limits, |n| {
        let (runtime, account, label) = (n % 3, n % 5, n % 7);
        format!("project=p{} job=j{n} runtime=r{runtime} account=a{account} label=l{label}", n % 100)
    });
}
