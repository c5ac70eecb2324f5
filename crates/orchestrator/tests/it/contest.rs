//! Several agents on one issue: each works by itself, a judge promotes one, and the issue goes on with its work.

use std::time::Duration;

use hangar_orchestrator::contest::{RivalResult, end_sentence};
use hangar_orchestrator::record::{PersonRequest, WorkTurnEnd};
use hangar_orchestrator::state::{OrchestratorState, Phase};
use proptest::prelude::*;

use crate::world::{World, failure, id, work};

const HEAD: &str = "  handoff_state: Review\n  in_progress_state: In Progress\nagent: { kind: mock, max_turns: 1 }\nworkspace: { repository: /r }\n";

/// A workflow with three candidates for each issue.
fn yaml(judge: &str, more: &str) -> String {
    format!(
        "{HEAD}dispatch:\n  rules:\n    - candidates: [claude-code, {{ agent: codex, max_turns: 2 }}, native]\n      judge: {judge}\n{more}"
    )
}

fn world(judge: &str, more: &str, measures: [RivalResult; 3]) -> World {
    let mut world = World::new(&yaml(judge, more), &["a"]);
    world.measures = (1..).zip(measures).collect();
    world.poll();
    world
}

fn all_done(world: &mut World) {
    for name in ["a#1", "a#2", "a#2", "a#3"] {
        world.completes(name);
    }
}

#[test]
fn the_smallest_work_that_meets_the_criteria_is_promoted_and_handed_over() {
    let works = [work(9, true, None), work(1, false, None), work(5, true, None)];
    let mut world = world("criteria", "", works);
    let agents: Vec<&str> =
        world.state.rivals_of(&id("a")).iter().map(|rival| rival.agent.as_str()).collect();
    assert_eq!(agents, ["claude", "codex", "native"]);
    assert_eq!((world.turn_of("a#1"), world.turn_of("a#3")), (Some(1), Some(1)), "they work side by side");
    world.completes("a#1");
    world.completes("a#3");
    assert!(world.log.iter().all(|line| !line.contains("chosen")), "the judge waits for all of them");
    world.completes("a#2");
    world.completes("a#2");
    world.poll();
    world.logged(&[
        "a: claimed",
        "a: -> In Progress",
        "a#1: opened",
        "a#2: opened",
        "a#3: opened",
        "a#1: ended max turns",
        "a#1: measured",
        "a#3: ended max turns",
        "a#3: measured",
        "a#2: ended max turns",
        "a#2: measured",
        "a: chosen 3",
        "a: promoted 3",
        "a: -> Review",
        "a#0-1: workspace removed",
        "a#0-2: workspace removed",
        "a#0-3: workspace removed",
        "a: released",
    ]);
    let history = &world.state.history[&id("a")];
    assert_eq!((history.sessions, history.turns, history.tokens.input), (3, 4, 40), "all of them count");
    assert_eq!(history.session_ids.len(), 3);
}

#[test]
fn a_score_goes_before_the_size_and_the_order_decides_between_equals() {
    for (more, works, chosen) in [
        ("", [work(1, true, Some(0.5)), work(9, true, Some(2.0)), work(1, true, None)], 2),
        ("", [work(3, true, None), work(3, true, None), work(4, true, None)], 1),
        ("  judge: { prefer: first }\n", [work(9, true, None), work(3, true, None), work(1, true, None)], 1),
        (
            "  judge: { prefer: fewest_tokens }\n",
            [work(9, true, None), work(1, true, None), work(1, true, None)],
            1,
        ),
    ] {
        let mut world = world("criteria", more, works);
        all_done(&mut world);
        let line = format!("a: chosen {chosen}");
        assert!(world.log.contains(&line), "{more} {:#?}", world.log);
    }
}

#[test]
fn without_a_good_candidate_the_issue_waits_for_a_person_who_may_promote_one_all_the_same() {
    let mut world =
        world("criteria", "", [work(9, false, None), work(1, false, None), RivalResult::default()]);
    all_done(&mut world);
    assert!(world.log.contains(&"a: parked, none of its 3 candidates meets the criteria".to_owned()));
    world.request("a", PersonRequest::Promote { candidate: 3 });
    assert!(matches!(world.state.claims[&id("a")].phase, Phase::Parked { .. }), "it changed nothing");
    world.request("a", PersonRequest::Promote { candidate: 2 });
    assert!(world.log.contains(&"a: promoted 2".to_owned()), "{:#?}", world.log);
    assert!(!world.issues[&id("a")].labels.contains(&"needs-human".to_owned()), "nobody is waited for");
    assert_eq!(world.log.last().unwrap(), "a: released");
}

#[test]
fn a_person_chooses_among_the_candidates() {
    let mut world = world("person", "", [work(9, true, None), work(1, true, None), work(2, true, None)]);
    all_done(&mut world);
    let parked = "a: parked, a candidate is to be chosen; of 3, these can be promoted: 1, 2, 3";
    assert!(world.log.contains(&parked.to_owned()), "{:#?}", world.log);
    world.killed();
    world.poll();
    world.request("a", PersonRequest::Promote { candidate: 1 });
    assert_eq!(world.state.history[&id("a")].sessions, 3);
    assert_eq!(world.issues[&id("a")].state, "Review");
}

#[test]
fn the_work_that_is_promoted_is_published_and_its_agent_gets_the_reactions() {
    let more =
        "pull_requests: { provider: github, project: a/b, api_key: x }\nreactions: { ci_failure: {} }\n";
    let mut world = world("criteria", more, [work(9, true, None), work(1, true, None), work(2, true, None)]);
    all_done(&mut world);
    assert_eq!(world.log.last().unwrap(), "a: waits");
    let claim = &world.state.claims[&id("a")];
    assert_eq!((claim.agent.as_str(), claim.max_turns), ("codex", Some(2)));
    assert!(claim.rivals.is_empty() && world.state.rivals.is_empty());
    world.pull().checks = vec![hangar_trackers::forge::Check {
        name: "test".to_owned(),
        status: hangar_trackers::forge::CheckStatus::Failing,
        conclusion: "failure".to_owned(),
        details_url: String::new(),
    }];
    world.look();
    assert!(world.turn_of("a").is_some(), "{:#?}", world.log);
}

#[test]
fn candidates_take_slots_of_the_workflow_as_issues_do() {
    let yaml = yaml("criteria", "").replace("max_turns: 1 }", "max_turns: 1, max_concurrent_agents: 2 }");
    let mut world = World::new(&yaml, &["a", "b"]);
    world.poll();
    assert_eq!(world.state.running().count(), 2);
    let mut seen = 0;
    for _ in 0..20 {
        let turns: Vec<String> = ["a#1", "a#2", "a#3", "b#1", "b#2", "b#3"]
            .into_iter()
            .filter(|name| world.turn_of(name).is_some())
            .map(str::to_owned)
            .collect();
        let Some(name) = turns.first() else { break };
        assert!(turns.len() <= 2, "{turns:?}");
        seen += 1;
        world.completes(name);
        world.poll();
    }
    assert_eq!(seen, 8, "each of six candidates had its turns: {:#?}", world.log);
}

#[test]
fn an_issue_that_is_closed_ends_all_candidates_and_their_work_is_kept() {
    let mut world = world("criteria", "", [work(9, true, None), work(1, true, None), work(2, true, None)]);
    world.completes("a#1");
    world.issue("a").state = "Done".to_owned();
    world.poll();
    world.poll();
    let count = |what: &str| world.log.iter().filter(|line| line.ends_with(what)).count();
    assert_eq!((count(": measured"), count(": workspace removed")), (3, 3), "{:#?}", world.log);
    assert!(world.state.claims.is_empty() && world.state.rivals.is_empty() && world.effects.is_empty());
}

#[test]
fn an_issue_that_was_closed_is_not_handed_over_when_a_candidate_is_promoted() {
    for pulls in ["", "pull_requests: { provider: github, project: a/b, api_key: x }\n"] {
        for state in ["Done", "Review", ""] {
            let works = [work(9, true, None), work(1, true, None), work(2, true, None)];
            let mut world = world("person", pulls, works);
            all_done(&mut world);
            match state {
                "" => drop(world.issues.remove(&id("a"))),
                state => world.issue("a").state = state.to_owned(),
            }
            world.request("a", PersonRequest::Promote { candidate: 1 });
            let logged = |line: &str| world.log.contains(&line.to_owned());
            assert!(logged("a: released") && !logged("a: promoted 1"), "{state} {:#?}", world.log);
            assert!(world.state.workspaces.is_empty(), "{:#?}", world.state.workspaces);
            assert_eq!(world.issues.get(&id("a")).map_or("", |issue| &issue.state), state);
        }
    }
}

#[test]
fn a_person_stops_candidates_and_lets_them_go_on() {
    let mut world = world("criteria", "", [work(9, true, None), work(1, true, None), work(2, true, None)]);
    world.completes("a#1");
    world.request("a", PersonRequest::Stop);
    assert!(world.log.contains(&"a: parked, it was stopped".to_owned()), "{:#?}", world.log);
    assert!(world.effects.is_empty(), "nothing runs any more");
    world.request("a", PersonRequest::Retry);
    assert!(world.turn_of("a#1").is_none() && world.turn_of("a#2").is_some(), "one is done already");
    world.completes("a#2");
    world.completes("a#2");
    world.completes("a#3");
    assert!(world.log.contains(&"a: chosen 2".to_owned()), "{:#?}", world.log);
}

#[test]
fn a_candidate_that_fails_is_tried_again_three_times_and_then_out() {
    let mut world = world("criteria", "", [work(9, true, None), work(1, true, None), work(2, true, None)]);
    world.completes("a#1");
    world.fails("a#3", "turn_input_required", false);
    for _ in 0..4 {
        assert!(!world.log.contains(&"a: chosen 1".to_owned()));
        world.fails("a#2", "port_exit", true);
        world.wait(Duration::from_secs(60));
        world.settle();
    }
    assert!(world.log.contains(&"a: chosen 1".to_owned()), "{:#?}", world.log);
}

#[test]
fn every_parking_has_its_own_comment() {
    let yaml =
        yaml("criteria", "").replace("  handoff_state", "  comments: { on_failure: true }\n  handoff_state");
    let mut world = World::new(&yaml, &["a"]);
    world.measures = [(1, work(1, false, None))].into();
    world.poll();
    all_done(&mut world);
    world.request("a", PersonRequest::Retry);
    world.request("a", PersonRequest::Retry);
    let parked: Vec<&String> = world.log.iter().filter(|line| line.contains(": comment parked-")).collect();
    assert_eq!(parked, ["a: comment parked-0-0", "a: comment parked-0-0-1", "a: comment parked-0-0-2"]);
}

#[test]
fn a_promotion_that_fails_for_a_while_is_tried_again_with_the_same_candidates() {
    let mut world = world("criteria", "", [work(9, true, None), work(1, true, None), work(2, true, None)]);
    world.outages = 2;
    all_done(&mut world);
    for delay in ["a: retry in 10000 ms", "a: retry in 20000 ms"] {
        assert_eq!(world.log.last().unwrap(), delay, "{:#?}", world.log);
        world.wait(Duration::from_secs(20));
        world.poll();
    }
    let count = |what: &str| world.log.iter().filter(|line| line.ends_with(what)).count();
    assert_eq!((count(": opened"), count(": measured")), (3, 3), "{:#?}", world.log);
    assert_eq!((count(": chosen 2"), count(": promoted 2"), count(": released")), (3, 1, 1));
    assert_eq!(world.issues[&id("a")].state, "Review");
}

#[test]
fn a_candidate_that_fails_in_its_second_turn_each_time_is_out_as_well() {
    let mut world = world("criteria", "", [work(9, true, None), work(1, true, None), work(2, true, None)]);
    world.completes("a#1");
    world.completes("a#3");
    for _ in 0..4 {
        assert!(!world.log.contains(&"a: chosen 3".to_owned()));
        world.completes("a#2");
        world.fails("a#2", "port_exit", true);
        world.wait(Duration::from_secs(60));
        world.settle();
    }
    assert!(world.log.contains(&"a: chosen 3".to_owned()), "{:#?}", world.log);
}

#[test]
fn a_candidate_that_is_blocked_or_asks_is_not_chosen() {
    for word in ["blocked", "ask: which colour?"] {
        let mut world =
            world("criteria", "", [work(9, true, None), work(1, true, None), work(2, true, None)]);
        world.turn("a#2", WorkTurnEnd::Completed, Some(word));
        let Phase::Done { end } = &world.state.rivals[&world.key("a#2")].phase else { panic!("{word}") };
        assert!(!end_sentence(end).is_empty());
        world.completes("a#1");
        world.completes("a#3");
        assert!(world.log.contains(&"a: chosen 3".to_owned()), "{:#?}", world.log);
    }
}

#[test]
fn candidates_that_are_wrong_are_refused_with_a_code_and_a_line() {
    let fine = "workspace: { repository: /r }\n";
    for (head, rule, line, message) in [
        (fine, "candidates: [mock]", 6, "an issue has 2 to 8 candidates, and these are 1"),
        (fine, "candidates: [{ agent: mock, count: 9 }]", 6, "`count` of a candidate must be from 1 to 8"),
        (fine, "candidates: [{ agents: mock }, a, b]", 6, "a candidate is the name of an agent, or has"),
        (fine, "candidates: mock", 6, "`candidates` is a list of agents"),
        (fine, "candidates: [a, b], judge: dice", 6, "`judge` is `criteria` or `person`"),
        ("# none\n", "candidates: [a, b]", 6, "candidates need a repository"),
    ] {
        let text = format!(
            "---\ntracker: {{ kind: file, active_states: [a], handoff_state: b }}\n{head}dispatch:\n  rules:\n    - {{ {rule} }}\n---\nx\n"
        );
        let report = hangar_workflow::load(&text, "/".as_ref(), &Default::default()).unwrap_err();
        let found = report.errors.iter().find(|problem| problem.message.contains(message));
        let found = found.unwrap_or_else(|| panic!("{rule}: {report:?}"));
        assert_eq!((found.check.as_str(), found.at.line), ("dispatch.candidates", line), "{rule}");
    }
    let text = "---\ntracker: { kind: file, active_states: [a] }\nworkspace: { repository: /r }\ndispatch:\n  rules: [{ candidates: [a, b] }, { candidates: [a, b], agent: c }]\n---\nx\n";
    let report = hangar_workflow::load(text, "/".as_ref(), &Default::default()).unwrap_err();
    let found = format!("{report:?}");
    assert!(found.contains("set `tracker.handoff_state` or `pull_requests`"), "{found}");
    assert!(found.contains("a rule has an `agent`, a `stage` or `candidates`, not two"), "{found}");
}

#[derive(Debug, Clone)]
enum Happening {
    Poll,
    Kill,
    Completes(usize),
    Fails(usize),
    Wait(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        2 => Just(Happening::Poll),
        2 => Just(Happening::Kill),
        6 => (0..6usize).prop_map(Happening::Completes),
        1 => (0..6usize).prop_map(Happening::Fails),
        2 => (0..30_000u64).prop_map(Happening::Wait),
    ]
}

fn happens(world: &mut World, happening: &Happening) {
    let names = ["a#1", "a#2", "a#3", "b#1", "b#2", "b#3"];
    let turns: Vec<&str> = names.into_iter().filter(|name| world.turn_of(name).is_some()).collect();
    let pick = |at: usize| turns.get(at % turns.len().max(1)).copied();
    match happening {
        Happening::Poll => world.poll(),
        Happening::Kill => world.killed(),
        Happening::Wait(time) => {
            world.wait(Duration::from_millis(*time));
            world.settle();
        }
        Happening::Completes(at) => pick(*at).into_iter().for_each(|name| world.completes(name)),
        Happening::Fails(at) => {
            let end = WorkTurnEnd::Failed(failure("port_exit", true));
            pick(*at).into_iter().for_each(|name| world.turn(name, end.clone(), None));
        }
    }
    assert!(world.state.running().count() <= 3, "{:#?}", world.log);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_happens_one_candidate_of_each_issue_is_promoted_once(
        happenings in proptest::collection::vec(happening(), 0..60),
    ) {
        let yaml = yaml("criteria", "").replace("max_turns: 1 }", "max_turns: 1, max_concurrent_agents: 3 }");
        let mut world = World::new(&yaml, &["a", "b"]);
        world.measures = (1..).zip([work(3, true, None), work(2, true, None), work(1, true, None)]).collect();
        for happening in &happenings {
            happens(&mut world, happening);
        }
        for _ in 0..60 {
            happens(&mut world, &Happening::Wait(300_000));
            happens(&mut world, &Happening::Poll);
            happens(&mut world, &Happening::Completes(0));
        }
        for name in ["a", "b"] {
            let promoted = world.log.iter().filter(|line| line.starts_with(&format!("{name}: promoted"))).count();
            let parked = world.log.iter().filter(|line| line.starts_with(&format!("{name}: parked"))).count();
            prop_assert_eq!((promoted, parked), (1, 0), "{:#?}", world.log);
        }
        prop_assert!(world.state.claims.is_empty() && world.state.rivals.is_empty());
        prop_assert!(world.state.workspaces.values().all(|place| !place.is_rival));
        prop_assert_eq!(OrchestratorState::fold(&world.records), world.state);
    }
}
