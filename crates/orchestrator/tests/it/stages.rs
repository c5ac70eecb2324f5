//! Stages: one agent after another works on an issue, as the rule said when the claim began.

use hangar_orchestrator::record::{PersonRequest, WorkTurnEnd};

use crate::world::{World, id, workflow};

const STAGES: &str = "  handoff_state: Review\nagent: { kind: mock, max_turns: 2 }\ndispatch:\n  stages:\n    - { name: plan, agent: claude-code, max_turns: 1, next: build }\n    - { name: build, agent: codex, next: check }\n    - { name: check, agent: native, max_turns: 1 }\n  rules:\n    - { labels: [quick], agent: mock }\n    - { stage: plan }\n";

#[test]
fn an_issue_goes_through_its_stages_and_is_handed_over_after_the_last() {
    let mut world = World::new(STAGES, &["a"]);
    world.poll();
    let claim = &world.state.claims[&id("a")];
    assert_eq!((claim.agent.as_str(), claim.stage.as_deref()), ("claude", Some("plan")));
    world.completes("a");
    assert_eq!(world.turn_of("a"), Some(1), "the turns of a stage are its own");
    world.completes("a");
    world.turn("a", WorkTurnEnd::Completed, Some("done"));
    world.completes("a");
    world.logged(&[
        "a: claimed",
        "a: opened",
        "a: ended max turns",
        "a: build with codex",
        "a: opened",
        "a: check with native",
        "a: opened",
        "a: ended max turns",
        "a: -> Review",
        "a: released",
    ]);
}

#[test]
fn only_the_last_stage_is_published() {
    let yaml =
        STAGES.replace("agent: {", "pull_requests: { provider: github, project: a/b, api_key: x }\nagent: {");
    let mut world = World::new(&yaml, &["a"]);
    world.poll();
    for _ in 0..4 {
        world.completes("a");
    }
    let pushed = world.log.iter().filter(|line| line.contains("pushed")).count();
    assert_eq!((pushed, world.log.last().unwrap().as_str()), (1, "a: waits"));
}

#[test]
fn a_stage_that_is_blocked_or_fails_does_not_advance() {
    for (end, word, last) in [
        (WorkTurnEnd::Completed, Some("blocked"), "a: label needs-human"),
        (WorkTurnEnd::Failed(crate::world::failure("x", false)), None, "a: label needs-human"),
        (WorkTurnEnd::Failed(crate::world::failure("x", true)), None, "a: retry in 10000 ms"),
    ] {
        let mut world = World::new(STAGES, &["a"]);
        world.poll();
        world.turn("a", end, word);
        assert_eq!(world.state.claims[&id("a")].stage.as_deref(), Some("plan"));
        assert!(world.log.iter().any(|line| line == last), "{:#?}", world.log);
    }
}

#[test]
fn stages_are_frozen_for_the_claim_and_survive_a_kill() {
    let mut world = World::new(STAGES, &["a"]);
    world.poll();
    world.completes("a");
    world.workflow = workflow("  handoff_state: Review\nagent: { kind: mock, max_turns: 1 }\n");
    world.killed();
    world.poll();
    assert_eq!(world.state.claims[&id("a")].agent, "codex");
    world.turn("a", WorkTurnEnd::Completed, Some("done"));
    assert_eq!(world.state.claims[&id("a")].agent, "native");
    world.completes("a");
    assert!(world.state.claims.is_empty(), "{:#?}", world.log);
}

#[test]
fn a_person_retries_the_stage_that_is_parked() {
    let mut world = World::new(STAGES, &["a"]);
    world.poll();
    world.completes("a");
    world.turn("a", WorkTurnEnd::Completed, Some("blocked"));
    world.request("a", PersonRequest::Retry);
    let claim = &world.state.claims[&id("a")];
    assert_eq!((claim.stage.as_deref(), world.turn_of("a")), (Some("build"), Some(1)));
}

#[test]
fn stages_without_an_end_or_a_beginning_are_refused() {
    for (yaml, message) in [
        (
            "  stages: [{ name: a, agent: mock, next: a }]\n  rules: [{ stage: a }]\n",
            "the stage `a` follows itself",
        ),
        ("  stages: [{ name: a, agent: mock, next: b }]\n  rules: [{ stage: a }]\n", "there is no stage `b`"),
        ("  stages: [{ name: a }]\n", "a stage needs a `name` and an `agent`"),
        ("  rules: [{ labels: [x] }]\n", "a rule needs an `agent` or a `stage`"),
        ("  rules: [{ stage: a, agent: mock }]\n", "not both"),
    ] {
        let text = format!("---\ntracker: {{ kind: file, active_states: [a] }}\ndispatch:\n{yaml}---\nx\n");
        let report = hangar_workflow::load(&text, "/".as_ref(), &Default::default()).unwrap_err();
        let found = format!("{report:?}");
        assert!(found.contains(message), "{found}");
    }
}
