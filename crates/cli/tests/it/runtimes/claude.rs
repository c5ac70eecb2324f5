//! Claude Code: what only it does.

use hangar_test_support::{Finished, ModelServer, Scratch};
use serde_json::json;

use super::configure;
use crate::HANGAR;

const CLAUDE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../e2e/agents/node_modules/@anthropic-ai/claude-code-linux-x64/claude"
);

/// A machine on which the user has configured an MCP server for Claude Code.
fn machine() -> (Scratch, ModelServer) {
    let scratch = Scratch::new();
    configure(&scratch, &format!("[runtimes.claude]\nprogram = {}\n", json!(CLAUDE)));
    let odd = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/odd.mjs");
    let server = json!({ "type": "stdio", "command": "node", "args": [odd, "fine"], "env": { "GIVEN": "by the user" } });
    // A rehearsal has a home of its own.
    let home = scratch.state().join("rehearsal");
    std::fs::create_dir_all(&home).expect("a home");
    let settings = json!({ "mcpServers": { "own": server } }).to_string();
    std::fs::write(home.join(".claude.json"), settings).expect("its settings");
    (scratch, ModelServer::start())
}

#[test]
fn tools_of_its_own_servers_may_run_unless_they_are_denied() {
    let (scratch, model) = machine();
    let run = |more: &[&str]| {
        let run = scratch.run(HANGAR).args(["run", "--runtime", "claude", "--output-format", "json"]);
        let run = run.arg(format!("--rehearse={}", model.url()));
        run.args(["-p", "TOOL:mcp__own__env:{\"name\": \"GIVEN\"}\nSAY:done"])
            .args(more)
            .finish()
            .expect_exit(0)
    };
    let told = |run: &Finished| {
        let events = run.events();
        let complete = Finished::of_type(&events, "tool.execution_complete");
        complete.iter().map(|event| event["data"].to_string()).collect::<String>()
    };
    let ran = run(&[]);
    assert!(told(&ran).contains("by the user"), "{ran:#?}");
    let denied = run(&["--deny-tool", "mcp__own"]);
    assert!(!told(&denied).contains("by the user"), "{denied:#?}");
    let restricted = run(&["--allow-tool", "Read"]);
    assert!(!told(&restricted).contains("by the user"), "{restricted:#?}");
}
