//! Sessions: turns, their ends, and what follows.

use std::time::Duration;

use hangar_orchestrator::record::{PersonRequest, WorkTurnEnd};

use crate::world::{World, id};

const HANDOFF: &str = "  handoff_state: Review\n  in_progress_state: In Progress\n";

#[test]
fn an_issue_gets_turns_until_they_are_used_and_is_handed_over() {
    let mut world = World::new(&format!("{HANDOFF}agent: {{ max_turns: 2 }}\n"), &["a"]);
    world.poll();
    assert_eq!(world.turn_of("a"), Some(1));
    world.completes("a");
    assert_eq!(world.turn_of("a"), Some(2));
    world.completes("a");
    world.poll();
    world.logged(&[
        "a: claimed",
        "a: -> In Progress",
        "a: opened",
        "a: ended max turns",
        "a: -> Review",
        "a: released",
    ]);
    assert_eq!(world.state.totals.tokens.total(), 22);
    assert_eq!(world.state.history[&id("a")].turns, 2);
}

#[test]
fn comments_are_written_where_the_workflow_wants_them() {
    let yaml = "  handoff_state: Review\n  comments: { on_dispatch: true, on_completion: true }\nagent: { max_turns: 1 }\n";
    let mut world = World::new(yaml, &["a"]);
    world.poll();
    world.completes("a");
    world.logged(&[
        "a: claimed",
        "a: comment dispatch-0",
        "a: opened",
        "a: ended max turns",
        "a: comment completion-0-1",
        "a: -> Review",
        "a: released",
    ]);
}

#[test]
fn an_issue_that_its_agent_finishes_is_released() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.issue("a").state = "Done".to_owned();
    world.completes("a");
    world.poll();
    world.logged(&["a: claimed", "a: opened", "a: ended inactive", "a: released", "a: workspace removed"]);
}

#[test]
fn without_a_state_for_it_the_work_is_continued_after_a_second() {
    let mut world = World::new("agent: { max_turns: 1 }\n", &["a"]);
    world.poll();
    world.completes("a");
    world.logged(&["a: claimed", "a: opened", "a: ended max turns", "a: retry in 1000 ms"]);
    world.poll();
    assert!(world.effects.is_empty(), "not before its time");
    world.wait(Duration::from_secs(1));
    world.settle();
    assert_eq!(world.turn_of("a"), Some(1));
    assert_eq!(world.state.claims[&id("a")].turns, 2);
}

#[test]
fn failures_are_retried_with_growing_delays_that_have_a_limit() {
    let mut world = World::new("agent: { max_retry_backoff_ms: 45000 }\n", &["a"]);
    world.poll();
    for delay in [10_000, 20_000, 40_000, 45_000] {
        world.fails("a", "port_exit", true);
        assert_eq!(world.log.last().unwrap(), &format!("a: retry in {delay} ms"));
        world.wait(Duration::from_millis(delay));
        world.settle();
    }
    world.completes("a");
    world.fails("a", "port_exit", true);
    assert_eq!(
        world.log.last().unwrap(),
        "a: retry in 10000 ms",
        "a turn that completes forgets the failures"
    );
}

#[test]
fn a_failure_that_would_happen_again_parks_the_issue() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.fails("a", "agent_not_found", false);
    world.poll();
    world.poll();
    world.logged(&[
        "a: claimed",
        "a: opened",
        "a: label needs-human",
        "a: parked, agent_not_found! (agent_not_found)",
    ]);
}

#[test]
fn a_parked_issue_goes_on_when_a_person_removes_the_label_or_moves_it() {
    for act in [
        |world: &mut World| world.issue("a").labels.clear(),
        |world: &mut World| world.issue("a").state = "In Progress".to_owned(),
    ] {
        let mut world = World::new("", &["a"]);
        world.poll();
        world.turn("a", WorkTurnEnd::Completed, Some("blocked"));
        world.poll();
        assert_eq!(world.log.last().unwrap(), "a: parked, the agent reports that it is blocked");
        act(&mut world);
        world.poll();
        world.poll();
        assert_eq!(world.turn_of("a"), Some(1), "{:#?}", world.log);
    }
}

#[test]
fn a_soft_stop_hands_over_or_parks() {
    let mut world = World::new(HANDOFF, &["a"]);
    world.poll();
    world.turn("a", WorkTurnEnd::Completed, Some("needs-human-review"));
    world.poll();
    assert_eq!(world.log[3..], ["a: -> Review", "a: released"]);
    let mut world = World::new("", &["a"]);
    world.poll();
    world.turn("a", WorkTurnEnd::Completed, Some("needs-human-review"));
    assert_eq!(
        world.log[2..],
        ["a: label needs-human", "a: parked, the agent asks for a person: `needs-human-review`"]
    );
}

#[test]
fn all_sessions_of_an_issue_are_counted() {
    let mut world = World::new("agent: { max_turns: 1, max_sessions: 2 }\n", &["a"]);
    world.poll();
    world.completes("a");
    world.wait(Duration::from_secs(1));
    world.settle();
    world.completes("a");
    assert_eq!(world.log.last().unwrap(), "a: parked, all 2 sessions of the issue are used");
}

#[test]
fn an_issue_that_is_closed_elsewhere_stops_its_agent_and_loses_its_workspace() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.issue("a").state = "Done".to_owned();
    world.poll();
    world.logged(&["a: claimed", "a: opened", "a: ended inactive", "a: released", "a: workspace removed"]);
    assert!(world.effects.is_empty());
}

#[test]
fn an_issue_that_becomes_inactive_stops_its_agent_and_keeps_its_workspace() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.issue("a").state = "Backlog".to_owned();
    world.poll();
    world.logged(&["a: claimed", "a: opened", "a: ended inactive", "a: released"]);
    assert!(world.state.workspaces.contains_key(&id("a")));
}

#[test]
fn an_issue_that_is_deleted_stops_its_agent() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.issues.clear();
    world.poll();
    world.logged(&["a: claimed", "a: opened", "a: ended gone", "a: released"]);
}

#[test]
fn a_retry_of_an_issue_that_was_closed_is_dropped() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.fails("a", "port_exit", true);
    world.issue("a").state = "Done".to_owned();
    world.poll();
    assert!(world.state.claims.is_empty());
}

#[test]
fn a_retry_waits_for_a_slot_without_growing_and_before_new_issues() {
    let mut world = World::new("agent: { max_concurrent_agents: 1 }\n", &["a", "b", "c"]);
    world.poll();
    world.fails("a", "port_exit", true);
    world.poll();
    assert_eq!(world.running(), ["b"].into());
    world.wait(Duration::from_secs(3600));
    world.poll();
    assert_eq!(world.running(), ["b"].into());
    world.issue("b").state = "Done".to_owned();
    world.completes("b");
    assert_eq!(world.running(), ["a"].into(), "before `c`");
    assert_eq!(world.state.claims[&id("a")].failures, 1);
}

#[test]
fn a_person_stops_and_retries() {
    let mut world = World::new("", &["a"]);
    world.poll();
    world.request("a", PersonRequest::Stop);
    assert_eq!(world.log.last().unwrap(), "a: parked, it was stopped");
    world.poll();
    assert!(world.effects.is_empty());
    world.request("a", PersonRequest::Retry);
    assert_eq!(world.turn_of("a"), Some(1));
}

#[test]
fn a_killed_process_goes_on_where_it_was() {
    let mut world = World::new(&format!("{HANDOFF}agent: {{ max_turns: 2, max_sessions: 1 }}\n"), &["a"]);
    world.poll();
    world.completes("a");
    assert_eq!(world.turn_of("a"), Some(2));
    world.killed();
    assert_eq!(world.turn_of("a"), Some(1), "in a new session, which does not count");
    world.completes("a");
    world.completes("a");
    world.poll();
    let transitions: Vec<&String> = world.log.iter().filter(|line| line.contains("-> Review")).collect();
    assert_eq!(transitions.len(), 1);
    assert!(world.state.claims.is_empty());
}

#[test]
fn a_hand_over_does_not_start_the_issue_again_from_an_old_snapshot() {
    let mut world = World::new(&format!("{HANDOFF}agent: {{ max_turns: 1 }}\n"), &["a"]);
    world.poll();
    let old = world.snapshot.clone();
    world.completes("a");
    world.snapshot = old;
    world.settle();
    assert!(world.state.claims.is_empty(), "{:#?}", world.log);
}
