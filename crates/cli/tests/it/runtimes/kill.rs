//! Hangar is killed while an agent works for it.

use std::time::Duration;

use hangar_test_support::process::Witness;
use hangar_test_support::{Scratch, Signal};
use serde_json::json;

use super::{CODEX_PONG, configure, stand_in};
use crate::HANGAR;

#[test]
fn a_killed_hangar_leaves_no_agent_and_a_session_that_goes_on() {
    let scratch = Scratch::new();
    let script = format!(
        "echo \"$@\" >> args; cat >/dev/null; if [ -e again ]; then {CODEX_PONG}; exit; fi\n\
         sleep 1000 & echo $! > child.new; mv child.new child; echo $$ > agent\n\
         echo '{{\"type\":\"thread.started\",\"thread_id\":\"thread-1\"}}'; echo '{{\"type\":\"turn.started\"}}'; wait"
    );
    let program = stand_in(&scratch, "agent-program", &script);
    configure(&scratch, &format!("[runtimes.codex]\nprogram = {}\n", json!(program)));
    let run = |args: &[&str]| {
        scratch.run(HANGAR).args(["run", "--runtime", "codex", "--output-format", "json"]).args(args)
    };
    let mut running = run(&["-p", "work"]).start();
    running.wait_for_event("assistant.turn_start");
    let pid = |name: &str| -> i32 {
        let text = std::fs::read_to_string(scratch.work().join(name)).expect("the agent has begun");
        text.trim().parse().expect("a process id")
    };
    let (agent, child) = (Witness::of(pid("agent")), Witness::of(pid("child")));
    running.signal(Signal::KILL);
    let killed = running.finish();
    assert!(agent.is_gone_within(Duration::from_secs(20)), "the agent outlived Hangar");
    assert!(child.is_gone_within(Duration::from_secs(20)), "what the agent started outlived Hangar");
    assert_eq!(killed.exit, -Signal::KILL.as_raw());

    // The agent's id of the session was logged before it was killed.
    scratch.file("again", "");
    let id = scratch.sessions().pop().expect("a session");
    run(&["-p", "go on", "--resume", &id]).finish().expect_exit(0);
    let args = std::fs::read_to_string(scratch.work().join("args")).expect("the arguments");
    assert!(args.lines().last().is_some_and(|line| line.contains("resume thread-1")), "{args}");
}
