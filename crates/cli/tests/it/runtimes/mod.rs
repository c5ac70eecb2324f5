//! `hangar run` and `hangar runtimes`: other agents behind the contract of our own.
//!
//! `conformance` makes the same claims of all of them, with the real programs; the rest uses scripts in their place.

mod acp;
mod claude;
mod commands;
mod conformance;
mod guard;
mod interactive;
mod kill;
mod probe;
mod resolution;
mod ssh;

use std::path::PathBuf;

use hangar_test_support::Scratch;

/// Writes `config.toml`.
fn configure(scratch: &Scratch, text: &str) {
    std::fs::create_dir_all(scratch.state()).expect("a home");
    std::fs::write(scratch.state().join("config.toml"), text).expect("a configuration");
}

/// A script in the place of an agent. By another process: a file that this one wrote may still be open in a child that
/// another test is starting, and such a file cannot be run.
fn stand_in(scratch: &Scratch, name: &str, script: &str) -> PathBuf {
    let text = scratch.file(&format!("{name}.txt"), &format!("#!/bin/sh\n{script}\n"));
    let program = scratch.root().join(name);
    let installed =
        std::process::Command::new("install").args(["-m", "755"]).args([&text, &program]).status();
    assert!(installed.expect("install").success());
    program
}

/// Codex's output of a turn with one message.
const CODEX_PONG: &str = r#"echo '{"type":"thread.started","thread_id":"thread-1"}'; echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"pong"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":2}}'"#;
