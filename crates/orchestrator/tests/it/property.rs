//! Whatever happens, in whichever order: no limit is passed, no issue is worked on or handed over twice, none is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_orchestrator::plan::IssueEffect;
use hangar_orchestrator::record::WorkTurnEnd;
use proptest::prelude::*;

use crate::world::{World, failure};

const YAML: &str = "  handoff_state: Review\n  in_progress_state: In Progress\nagent:\n  max_turns: 2\n  max_concurrent_agents: 3\n  max_concurrent_agents_by_state: { in progress: 2 }\n  max_retry_backoff_ms: 20000\n";
const ISSUES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

#[derive(Debug, Clone)]
enum Happening {
    Poll,
    Wait(u64),
    Completes(usize),
    Fails(usize),
    Kill,
    /// Somebody closes an issue.
    Close(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => Just(Happening::Poll),
        2 => (0..30_000u64).prop_map(Happening::Wait),
        6 => (0..ISSUES.len()).prop_map(Happening::Completes),
        2 => (0..ISSUES.len()).prop_map(Happening::Fails),
        1 => Just(Happening::Kill),
        1 => (0..ISSUES.len()).prop_map(Happening::Close),
    ]
}

fn happens(world: &mut World, happening: &Happening) {
    let turns: Vec<String> = world
        .effects
        .values()
        .filter(|effect| matches!(effect, IssueEffect::Turn { .. }))
        .map(|effect| effect.issue().0.clone())
        .collect();
    let pick = |at: usize| turns.get(at % turns.len().max(1)).cloned();
    match happening {
        Happening::Poll => world.poll(),
        Happening::Wait(time) => {
            world.wait(Duration::from_millis(*time));
            world.settle();
        }
        Happening::Completes(at) => {
            if let Some(name) = pick(*at) {
                world.completes(&name);
            }
        }
        Happening::Fails(at) => {
            if let Some(name) = pick(*at) {
                world.turn(&name, WorkTurnEnd::Failed(failure("port_exit", true)), None);
            }
        }
        Happening::Kill => world.killed(),
        Happening::Close(at) => world.issue(ISSUES[*at]).state = "Done".to_owned(),
    }
}

fn check(world: &World) {
    let running: Vec<_> = world.state.running().collect();
    assert!(running.len() <= 3, "{:#?}", world.log);
    let mut handed: BTreeMap<&str, u32> = BTreeMap::new();
    for line in world.log.iter().filter(|line| line.ends_with("-> Review")) {
        *handed.entry(line.split(':').next().unwrap()).or_default() += 1;
    }
    assert!(handed.values().all(|times| *times == 1), "{handed:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_limit_is_passed_and_no_issue_is_done_twice_or_lost(happenings in proptest::collection::vec(happening(), 0..80)) {
        let mut world = World::new(YAML, &ISSUES);
        for happening in &happenings {
            happens(&mut world, happening);
            check(&world);
        }
        // From here on all goes well.
        for _ in 0..200 {
            happens(&mut world, &Happening::Wait(30_000));
            happens(&mut world, &Happening::Poll);
            happens(&mut world, &Happening::Completes(0));
            check(&world);
        }
        prop_assert!(world.state.claims.is_empty(), "{:#?}", world.state.claims);
        for issue in world.issues.values() {
            prop_assert!(issue.state == "Review" || issue.state == "Done", "{} is {}", issue.identifier, issue.state);
        }
        let folded = hangar_orchestrator::state::OrchestratorState::fold(&world.records);
        prop_assert_eq!(folded, world.state);
    }
}
