//! Which issues are taken, in which order, and why the others are not.

use hangar_orchestrator::plan::candidates;
use hangar_orchestrator::record::PersonRequest;
use hangar_trackers::issue::Blocker;

use crate::world::{World, id};

/// Code of the hold of each issue, in order.
fn holds(world: &World) -> Vec<(String, String)> {
    let snapshot = world.snapshot.as_ref().unwrap();
    let judged = candidates(&world.workflow.config, snapshot, &world.state);
    let code =
        |hold: Option<&hangar_orchestrator::hold::Hold>| hold.map_or("", |hold| hold.code()).to_owned();
    judged.iter().map(|judged| (judged.issue.identifier.clone(), code(judged.hold.as_ref()))).collect()
}

#[track_caller]
fn check(world: &World, expected: &[(&str, &str)]) {
    let found = holds(world);
    let found: Vec<(&str, &str)> = found.iter().map(|(name, code)| (name.as_str(), code.as_str())).collect();
    assert_eq!(found, expected);
}

fn blocker(state: &str) -> Blocker {
    Blocker { id: "x".to_owned(), identifier: "X".to_owned(), state: state.to_owned() }
}

#[test]
fn the_order_is_priority_then_age_then_name() {
    let mut world = World::new("agent: { max_concurrent_agents: 1 }\n", &["a", "b", "c", "d", "e"]);
    world.issue("b").priority = Some(2);
    world.issue("c").priority = Some(1);
    world.issue("d").created_at = Some("2026-01-01T00:00:00Z".to_owned());
    world.poll();
    check(&world, &[("c", "running"), ("b", "slots"), ("d", "slots"), ("a", "slots"), ("e", "slots")]);
}

#[test]
fn every_issue_that_is_not_taken_has_its_reason() {
    let yaml = "  required_labels: [Agent]\nagent:\n  max_concurrent_agents: 3\n  max_concurrent_agents_by_state: { in progress: 1 }\n";
    let mut world = World::new(yaml, &["1", "2", "3", "4", "5", "6", "7", "8"]);
    for name in ["1", "2", "3", "4", "6", "7", "8"] {
        world.issue(name).labels = vec!["agent".to_owned()];
    }
    world.issue("2").blocked_by = vec![blocker("To Do")];
    world.issue("3").blocked_by = vec![blocker("")];
    world.issue("4").blocked_by = vec![blocker("done")];
    world.issue("6").state = "In Progress".to_owned();
    world.issue("7").state = "in progress".to_owned();
    world.issue("8").dispatchable = false;
    world.poll();
    check(
        &world,
        &[
            ("1", "running"),
            ("2", "blocked_by"),
            ("3", "blockers_unresolved"),
            ("4", "running"),
            ("5", "missing_label"),
            ("6", "running"),
            ("7", "slots"),
            ("8", "not_dispatchable"),
        ],
    );
    world.workflow =
        crate::world::workflow(&yaml.replace("max_concurrent_agents: 3", "max_concurrent_agents: 9"));
    world.poll();
    assert_eq!(holds(&world)[6], ("7".to_owned(), "state_slots".to_owned()));
}

#[test]
fn an_issue_without_a_title_is_not_taken() {
    let mut world = World::new("", &["a"]);
    world.issue("a").title = String::new();
    world.poll();
    check(&world, &[("a", "incomplete")]);
}

#[test]
fn a_person_can_start_an_issue_that_is_held() {
    let mut world = World::new("agent: { max_concurrent_agents: 1 }\n", &["a", "b"]);
    world.issue("b").blocked_by = vec![blocker("To Do")];
    world.request("b", PersonRequest::Start);
    world.poll();
    assert_eq!(world.running(), ["b"].into(), "it goes first, and its blocker does not count");
}

#[test]
fn an_issue_that_a_person_parks_is_not_taken_until_it_is_retried() {
    let mut world = World::new("", &["a"]);
    world.request("a", PersonRequest::Park);
    world.poll();
    check(&world, &[("a", "parked")]);
    world.request("a", PersonRequest::Retry);
    assert_eq!(world.running(), ["a"].into());
}

#[test]
fn a_slot_that_becomes_free_is_taken_by_the_next() {
    let mut world = World::new("agent: { max_concurrent_agents: 1, max_turns: 1 }\n  # x\n", &["a", "b"]);
    world.poll();
    assert_eq!(world.running(), ["a"].into());
    world.issue("a").state = "Done".to_owned();
    world.completes("a");
    world.poll();
    assert_eq!(world.running(), ["b"].into());
    assert!(!world.state.claims.contains_key(&id("a")));
}
