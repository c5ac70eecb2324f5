//! Many issues and many agents: the limit holds in every step, and a step needs a fraction of the 50 ms that it may take.

use std::time::Instant;

use hangar_orchestrator::plan::{Busy, Seeing, plan};

use crate::world::World;

const ISSUES: usize = 10_000;
const AGENTS: usize = 500;

#[test]
fn ten_thousand_issues_and_five_hundred_agents() {
    let names: Vec<String> = (0..ISSUES).map(|number| format!("i{number:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let yaml =
        format!("  handoff_state: Review\nagent: {{ max_turns: 1, max_concurrent_agents: {AGENTS} }}\n");
    let mut world = World::new(&yaml, &names);
    world.poll();
    assert_eq!(world.running().len(), AGENTS);
    for name in &names[..25] {
        world.completes(name);
        assert_eq!(world.running().len(), AGENTS, "a free slot is taken at once, and no other");
    }
    let busy = Busy { issues: world.effects.keys().skip(1).cloned().collect(), draining: false };
    let seen = Seeing { snapshot: world.snapshot.as_ref(), pulls: &world.pulls };
    let started = Instant::now();
    let steps = plan(&world.workflow.config, seen, &world.state, &busy, world.now);
    // Shown with `--no-capture`; a busy machine says nothing about the code.
    println!("{} steps in {:?}", steps.len(), started.elapsed());
    assert_eq!(steps.len(), 1, "only the one turn that nobody performs");
}
