//! Section 17.4 of the specification of Symphony, one test for each of its sentences.

use std::time::Duration;

use hangar_orchestrator::hold;
use hangar_orchestrator::plan::candidates;
use hangar_orchestrator::record::{PersonRequest, RetryCause};
use hangar_orchestrator::state::Phase;

use crate::world::{World, id};

fn codes(world: &World) -> Vec<(String, Option<&'static str>)> {
    let judged = candidates(&world.workflow.config, world.snapshot.as_ref().unwrap(), &world.state);
    judged
        .iter()
        .map(|found| (found.issue.identifier.clone(), found.hold.as_ref().map(hold::Hold::code)))
        .collect()
}

#[test]
fn dispatch_sort_order_is_priority_then_oldest_creation_time() {
    let mut world = World::new("agent: { max_concurrent_agents: 1 }\n", &["a", "b", "c"]);
    world.issue("a").created_at = Some("2026-01-03T00:00:00Z".to_owned());
    world.issue("b").created_at = Some("2026-01-02T00:00:00Z".to_owned());
    world.issue("c").created_at = Some("2026-01-04T00:00:00Z".to_owned());
    world.issue("c").priority = Some(1);
    world.poll();
    let order: Vec<String> = codes(&world).into_iter().map(|(name, _)| name).collect();
    assert_eq!(order, ["c", "b", "a"]);
}

#[test]
fn issues_that_are_not_dispatchable_are_not_eligible() {
    let mut world = World::new("", &["a"]);
    world.issue("a").dispatchable = false;
    world.poll();
    assert_eq!(codes(&world), [("a".to_owned(), Some("not_dispatchable"))]);
}

#[test]
fn required_label_filtering_is_case_insensitive_after_normalization() {
    let mut world = World::new("  required_labels: [Agent]\n", &["a", "b"]);
    world.issue("a").labels = vec!["agent".to_owned()];
    world.poll();
    assert_eq!(world.running(), ["a"].into());
    assert_eq!(codes(&world)[1], ("b".to_owned(), Some("missing_label")));
}

#[test]
fn active_state_refresh_updates_the_running_entry() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.issue("a").state = "In Progress".to_owned();
    world.completes("a");
    assert_eq!(world.state.claims[&id("a")].state, "In Progress");
}

#[test]
fn a_non_active_state_stops_the_agent_without_workspace_cleanup() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.issue("a").state = "Backlog".to_owned();
    world.poll();
    assert!(world.state.claims.is_empty() && world.state.workspaces.contains_key(&id("a")));
}

#[test]
fn a_terminal_state_stops_the_agent_and_cleans_the_workspace() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.issue("a").state = "Done".to_owned();
    world.poll();
    assert!(world.state.claims.is_empty() && world.state.workspaces.is_empty());
}

#[test]
fn reconciliation_with_no_running_issues_is_a_no_op() {
    let mut world = World::new("", &[]);
    world.poll();
    assert!(world.records.is_empty());
}

#[test]
fn a_normal_exit_schedules_a_short_continuation() {
    let mut world = World::new("agent: { max_turns: 1 }\n", &["a"]);
    world.poll();
    world.completes("a");
    let Phase::Retrying { due, cause } = &world.state.claims[&id("a")].phase else {
        panic!("{:#?}", world.log)
    };
    assert_eq!((due.duration_since(world.now).as_secs(), *cause), (1, RetryCause::Continuation));
}

#[test]
fn an_abnormal_exit_backs_off_from_ten_seconds_up_to_the_cap() {
    let mut world = World::new("agent: { max_retry_backoff_ms: 15000 }\n", &["a"]);
    for _ in 0..3 {
        world.wait(Duration::from_secs(60));
        world.poll();
        world.fails("a", "port_exit", true);
    }
    let delays: Vec<&String> = world.log.iter().filter(|line| line.contains("retry in")).collect();
    assert_eq!(delays, ["a: retry in 10000 ms", "a: retry in 15000 ms", "a: retry in 15000 ms"]);
}

#[test]
fn retry_entries_have_attempt_due_time_identifier_and_error() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.fails("a", "port_exit", true);
    let claim = &world.state.claims[&id("a")];
    assert_eq!(
        (claim.failures, claim.identifier.as_str(), claim.error.as_deref()),
        (1, "a", Some("port_exit!"))
    );
    assert!(matches!(claim.phase, Phase::Retrying { .. }));
}

#[test]
fn a_stalled_session_is_ended_and_tried_again() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.fails("a", "turn_stalled", true);
    assert_eq!(world.log.last().unwrap(), "a: retry in 10000 ms");
}

#[test]
fn slot_exhaustion_keeps_the_retry_with_its_reason() {
    let mut world = World::new("agent: { max_concurrent_agents: 1 }\n", &["a", "b"]);
    world.poll();
    world.fails("a", "port_exit", true);
    world.poll();
    world.wait(Duration::from_secs(60));
    world.poll();
    assert_eq!(world.running(), ["b"].into());
    let codes = codes(&world);
    assert_eq!(codes[0], ("a".to_owned(), Some("retrying")));
    world.request("b", PersonRequest::Stop);
    assert_eq!(world.running(), ["a"].into(), "its turn comes when the slot is free");
}
