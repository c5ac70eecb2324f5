//! The configuration as SDK clients meet it: it changes under a server that runs, and its named agents run on other runtimes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use crate::HANGAR;
use crate::sdk::{Client, ID, of_session, stage};

fn configure(scratch: &Scratch, text: &str) {
    std::fs::create_dir_all(scratch.state()).unwrap();
    std::fs::write(scratch.state().join("config.toml"), text).unwrap();
}

/// The newest request of a model as text.
fn asked(model: &ModelServer) -> String {
    model.last_request().to_string()
}

#[test]
fn a_server_picks_up_changes_of_the_configuration_and_sessions_under_way_keep_theirs() {
    let (scratch, model) = stage();
    for (file, text) in [("one.md", "Be brief."), ("two.md", "Be thorough.")] {
        std::fs::create_dir_all(scratch.state()).unwrap();
        std::fs::write(scratch.state().join(file), text).unwrap();
    }
    let agent =
        |file: &str| format!("[agents.fast]\nruntime = \"native\"\nsystem_prompt_file = \"{file}\"\n");
    configure(&scratch, &agent("one.md"));
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "agent": "fast", "requestPermission": true }));
    client.send("SAY:hi");
    client.event("session.idle");
    assert!(asked(&model).contains("Be brief."));

    configure(&scratch, &agent("two.md"));
    let told = client.event("session.info");
    assert_eq!(told["infoType"], "configuration");
    let expected =
        "config.toml has changed: new sessions use it, this session keeps the settings that it began with";
    assert_eq!(told["message"], expected);
    client.send("SAY:again");
    client.event("session.idle");
    assert!(asked(&model).contains("Be brief."), "the session keeps its settings");
    let other = client.call("session.create", json!({ "agent": "fast", "requestPermission": true }));
    let other = other["sessionId"].clone();
    client.call("session.send", json!({ "sessionId": other, "prompt": "SAY:new" }));
    client.until("the turn of the new session", |message| {
        message["params"]["sessionId"] == other && message["params"]["event"]["type"] == "session.idle"
    });
    assert!(asked(&model).contains("Be thorough."), "a new session has the new ones");

    configure(&scratch, "[limits]\nglobal = 0\n");
    let told = client.event("session.warning");
    let told = told["message"].as_str().unwrap();
    assert!(
        told.contains("cannot be used, so all settings stay: config.toml:2: `limits.global` is 0"),
        "{told}"
    );
    client.call("session.create", json!({ "agent": "fast", "requestPermission": true }));
    client.finish();
}

/// A server whose agent `reviewer` runs on another runtime: Hangar itself, over the Agent Client Protocol.
fn reviewed() -> (Scratch, ModelServer, Client) {
    let (scratch, model) = stage();
    let home = scratch.root().join("other-home");
    let config = format!(
        "[runtimes.other]\nacp = {}\nenv = {{ HANGAR_HOME = {} }}\n[agents.reviewer]\nruntime = \"other\"\n",
        json!([HANGAR, "--acp", "--model", "scripted"]),
        json!(home)
    );
    configure(&scratch, &config);
    let client = Client::start(&scratch, &model);
    (scratch, model, client)
}

#[test]
fn an_agent_on_another_runtime_is_a_session_of_an_sdk_client() {
    let (scratch, _model, mut client) = reviewed();
    let created = client.create(json!({ "agent": "reviewer", "requestPermission": true }));
    assert_eq!(created["sessionId"], ID);
    client.send(r#"TOOL:bash:{"command":"touch made"}"#);
    let asked = client.event("permission.requested");
    let answer = json!({ "requestId": asked["requestId"], "result": { "kind": "approve-once" } });
    client.call("session.permissions.handlePendingPermissionRequest", of_session(answer));
    client.event("session.idle");
    assert!(scratch.work().join("made").exists());
    client.send("SAY:reviewed");
    let said = client.until("the answer", |message| {
        message["params"]["event"]["data"]["content"].as_str().is_some_and(|text| text.contains("reviewed"))
            && message["params"]["event"]["type"] == "assistant.message"
    });
    assert_eq!(said["params"]["sessionId"], ID);
    client.event("session.idle");
    let all = client.call("session.getMessages", of_session(json!({})));
    let kinds: Vec<&str> =
        all["events"].as_array().unwrap().iter().filter_map(|event| event["type"].as_str()).collect();
    assert!(kinds.contains(&"user.message") && kinds.contains(&"assistant.message"), "{kinds:?}");
    client.call("session.destroy", of_session(json!({})));
    // Its log says whose it is, so it is resumed with its agent.
    client.call("session.resume", of_session(json!({ "requestPermission": true })));
    client.send("SAY:more");
    client.event("session.idle");
    client.finish();
    let log = scratch.log(&scratch.sessions()[0]);
    assert!(log.contains(r#""agent":"reviewer""#), "{log}");
}

#[track_caller]
fn check_refused(options: Value, says: &str) {
    let (scratch, _model, mut client) = reviewed();
    let mut all = json!({ "agent": "reviewer", "requestPermission": true });
    all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let answer = client.answer("session.create", all);
    assert_eq!(answer["error"]["message"], says);
    assert!(scratch.sessions().is_empty());
    client.finish();
}

#[test]
fn options_that_another_agent_cannot_have_are_refused_with_a_sentence() {
    check_refused(
        json!({ "tools": [{ "name": "lookup", "description": "d", "parameters": { "type": "object" } }] }),
        "agent `reviewer` runs on other, which cannot use `tools` of a client; leave it out, or choose an agent whose \
         runtime is native",
    );
    check_refused(
        json!({ "requestPermission": false }),
        "agent `reviewer` runs on other, which asks for permissions; set a permission handler (`requestPermission`)",
    );
}
