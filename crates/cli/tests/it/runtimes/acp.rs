//! Agents of the Agent Client Protocol: what only they can do.

use hangar_test_support::{Finished, ModelServer, Scratch};
use serde_json::json;

use super::configure;
use crate::HANGAR;

#[test]
fn with_rules_permissions_are_asked_for_and_denied_where_nobody_is() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let home = scratch.root().join("other-home");
    configure(
        &scratch,
        &format!(
            "[runtimes.mine]\nacp = [{}, \"--acp\"]\nenv = {{ HANGAR_HOME = {} }}\n",
            json!(HANGAR),
            json!(home)
        ),
    );
    let prompt = format!("TOOL:bash:{}", json!({ "command": "touch made", "description": "d" }));
    let run = |more: &[&str]| {
        let run =
            scratch.run(HANGAR).args(["run", "--runtime", "mine", "--output-format", "json", "--all-events"]);
        let run = run.arg(format!("--rehearse={}", model.url())).args(["-p", &prompt]).args(more);
        run.finish().expect_exit(0)
    };
    let denied = run(&["--allow-tool", "read"]);
    let events = denied.events();
    let asked = Finished::of_type(&events, "permission.requested");
    assert_eq!(asked.len(), 1, "{denied:#?}");
    assert_eq!(asked[0]["data"]["permissionRequest"]["fullCommandText"], "touch made");
    assert_eq!(Finished::of_type(&events, "permission.completed").len(), 1);
    assert!(!scratch.work().join("made").exists());
    let allowed = run(&[]);
    assert!(Finished::of_type(&allowed.events(), "permission.requested").is_empty());
    assert!(scratch.work().join("made").exists());
}

/// A machine on which `mine` is our own agent, spoken to by the protocol.
fn machine() -> (Scratch, ModelServer) {
    let scratch = Scratch::new();
    let home = scratch.root().join("other-home");
    let setting = format!(
        "[runtimes.mine]\nacp = [{}, \"--acp\"]\nenv = {{ HANGAR_HOME = {} }}\n",
        json!(HANGAR),
        json!(home)
    );
    configure(&scratch, &setting);
    (scratch, ModelServer::start())
}

#[test]
fn the_servers_of_a_run_are_given_to_the_agent_also_when_it_goes_on() {
    let (scratch, model) = machine();
    let odd = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/odd.mjs");
    let server = json!({ "command": "node", "args": [odd, "fine"], "env": { "GIVEN": "by the order" } });
    scratch.file("mcp.json", &json!({ "mcpServers": { "s": server } }).to_string());
    let run = |more: &[&str]| {
        let run =
            scratch.run(HANGAR).args(["run", "--runtime", "mine", "--output-format", "json", "--all-events"]);
        let run = run.arg(format!("--rehearse={}", model.url())).args(["--mcp-config", "mcp.json"]);
        run.args(["-p", "TOOL:s-env:{\"name\": \"GIVEN\"}\nSAY:done"]).args(more).finish().expect_exit(0)
    };
    let told = || model.last_request()["messages"].to_string();
    let first = run(&[]);
    assert!(told().contains("by the order"), "{}", told());
    let warnings = Finished::of_type(&first.events(), "session.warning").len();
    assert_eq!(warnings, 0, "{first:#?}");
    run(&[&format!("--resume={}", first.session_id())]);
    assert_eq!(told().matches("by the order").count(), 2, "{}", told());
}

#[test]
fn an_agent_of_the_protocol_can_what_it_claims_of_servers() {
    let (scratch, _) = machine();
    let run = scratch.run(HANGAR).args(["runtimes", "probe", "mine", "--json"]).finish();
    let probed: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(probed[0]["probe"]["proofs"]["mcp_config"], "proved", "{probed}");
}
