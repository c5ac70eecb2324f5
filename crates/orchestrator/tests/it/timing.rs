//! Limits of turns.

use std::time::Duration;

use hangar_orchestrator::timing::{Overdue, TurnClock, backoff};
use jiff::{SignedDuration, Timestamp};

use crate::world::workflow;

#[track_caller]
fn check(yaml: &str, started: i64, heard: i64, overdue: Option<Overdue>, left: u64) {
    let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(100);
    let at = |ago: i64| now - SignedDuration::from_secs(ago);
    let clock = TurnClock { started: at(started), heard: at(heard) };
    let agent = workflow(yaml).config.agent;
    assert_eq!(clock.overdue(&agent, now), overdue, "{yaml}");
    assert_eq!(clock.left(&agent, now), Duration::from_secs(left), "{yaml}");
}

#[test]
fn a_turn_has_a_limit_for_its_time_and_for_silence() {
    let limits = "agent: { turn_timeout_ms: 60000, stall_timeout_ms: 20000 }\n";
    check(limits, 30, 5, None, 15);
    check(limits, 55, 1, None, 5);
    check(limits, 60, 1, Some(Overdue::Turn(Duration::from_secs(60))), 0);
    check(limits, 30, 20, Some(Overdue::Stall(Duration::from_secs(20))), 0);
    check("agent: { turn_timeout_ms: 60000, stall_timeout_ms: 0 }\n", 30, 30, None, 30);
}

#[test]
fn delays_double_from_ten_seconds() {
    let longest = Duration::from_secs(300);
    for (failures, seconds) in [(1, 10), (2, 20), (5, 160), (6, 300), (u32::MAX, 300)] {
        assert_eq!(backoff(failures, longest), Duration::from_secs(seconds), "{failures}");
    }
}
