//! Workspaces go when there are too many, when they are too large, and when nobody used them for long; never those at work.

use std::time::Duration;

use crate::world::{World, id, work};

fn world(limits: &str, names: &[&str]) -> World {
    let yaml = format!(
        "  handoff_state: Review\nagent: {{ max_turns: 1, max_concurrent_agents: 1 }}\nworkspace: {{ repository: /r, {limits} }}\n"
    );
    let mut world = World::new(&yaml, names);
    world.workspace_bytes = Some(100);
    world.poll();
    world
}

/// Issues whose workspaces were removed, in order.
fn removed(world: &World) -> Vec<&str> {
    world.log.iter().filter_map(|line| line.strip_suffix(": workspace removed")).collect()
}

/// Works on issues one after the other, which are handed over.
fn work_on(world: &mut World, names: &[&str]) {
    for name in names {
        world.wait(Duration::from_secs(1));
        world.completes(name);
        world.poll();
    }
}

#[test]
fn the_least_recently_used_workspace_goes_when_there_are_too_many() {
    let mut world = world("max_workspaces: 2", &["a", "b", "c"]);
    work_on(&mut world, &["a", "b"]);
    assert_eq!(removed(&world), ["a"], "c is at work");
    // It is worked on again: now b is the least recent one.
    world.issue("a").state = "In Progress".to_owned();
    work_on(&mut world, &["c", "a"]);
    assert_eq!(removed(&world), ["a", "b"], "{:#?}", world.log);
    assert_eq!(world.state.workspaces.len(), 2);
}

#[test]
fn the_sizes_of_workspaces_count_after_their_sessions() {
    let mut world = world("quota_bytes: 250", &["a", "b", "c", "d"]);
    work_on(&mut world, &["a", "b"]);
    assert!(removed(&world).is_empty(), "200 bytes are within the limit");
    work_on(&mut world, &["c", "d"]);
    assert_eq!(removed(&world), ["a", "b"]);
}

#[test]
fn workspaces_at_work_never_go() {
    let yaml = "  handoff_state: Review\nagent: { max_turns: 1 }\nworkspace: { repository: /r, max_workspaces: 1 }\n";
    let mut world = World::new(yaml, &["a", "b", "c"]);
    world.poll();
    world.fails("b", "port_exit", true);
    assert!(removed(&world).is_empty(), "two run and one is tried again");
    world.completes("a");
    assert_eq!(removed(&world), ["a"]);
}

#[test]
fn a_workspace_that_nobody_used_for_long_goes() {
    let mut world = world("retention_days: 30", &["a", "b"]);
    work_on(&mut world, &["a"]);
    world.wait(Duration::from_secs(20 * 86_400));
    work_on(&mut world, &["b"]);
    world.wait(Duration::from_secs(11 * 86_400));
    world.poll();
    assert_eq!(removed(&world), ["a"]);
}

#[test]
fn one_whose_pull_request_is_open_is_idle_and_a_parked_one_is_not() {
    let more = "pull_requests: { provider: github, project: a/b, api_key: x }\n";
    let yaml = format!(
        "  handoff_state: Review\nagent: {{ max_turns: 1 }}\nworkspace: {{ max_workspaces: 1 }}\n{more}"
    );
    let mut world = World::new(&yaml, &["a", "b", "c"]);
    world.poll();
    world.fails("b", "turn_input_required", false);
    world.completes("a");
    assert_eq!(removed(&world), ["a"]);
    assert!(world.state.claims.contains_key(&id("a")), "its claim goes on");
    assert_eq!(world.running(), ["c"].into());
}

#[test]
fn candidates_at_work_keep_their_workspaces() {
    let yaml = "  handoff_state: Review\nagent: { max_turns: 1 }\nworkspace: { repository: /r, max_workspaces: 1 }\ndispatch: { rules: [{ candidates: [mock, mock] }] }\n";
    let mut world = World::new(yaml, &["a"]);
    world.measures = [(1, work(1, true, None))].into();
    world.poll();
    world.completes("a#1");
    assert!(removed(&world).is_empty(), "the judge has not decided");
    world.completes("a#2");
    assert_eq!(removed(&world), ["a#0-1", "a#0-2"]);
}

#[test]
fn limits_need_a_repository_that_keeps_the_work() {
    for limit in ["max_workspaces: 2", "quota_bytes: 9", "quota_bytes: -1"] {
        let text =
            format!("---\ntracker: {{ kind: file, active_states: [a] }}\nworkspace:\n  {limit}\n---\nx\n");
        let report = hangar_workflow::load(&text, "/".as_ref(), &Default::default()).unwrap_err();
        let setting = format!("workspace.{}", limit.split(':').next().unwrap());
        assert_eq!(
            (report.errors[0].check.as_str(), report.errors[0].at.line),
            (setting.as_str(), 4),
            "{report:?}"
        );
    }
    let text =
        "---\ntracker: { kind: file, active_states: [a] }\nworkspace: { retention_days: 30 }\n---\nx\n";
    hangar_workflow::load(text, "/".as_ref(), &Default::default()).unwrap();
}
