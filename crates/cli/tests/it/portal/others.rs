//! Sessions of another agent in the portal: what they are asked for, and what they are said to have used. The agent is Hangar
//! in the place of Copilot, with a home of its own.

use hangar_test_support::{ModelServer, Scratch};
use serde_json::json;

use super::Portal;

fn portal(config: &str) -> Portal {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    std::fs::create_dir_all(scratch.state()).unwrap();
    let home = json!(scratch.root().join("theirs"));
    let config = format!("{config}\n[runtimes.copilot.env]\nHANGAR_HOME = {home}\n");
    std::fs::write(scratch.state().join("config.toml"), config).unwrap();
    Portal::on(scratch, model, &[])
}

/// Opens a session with a first answer, and waits for that.
fn begun(portal: &Portal, model: Option<&str>) -> String {
    let body = json!({
        "workspace": portal.scratch.work(), "runtime": "copilot", "prompt": "SAY:hello", "model": model,
    });
    let id = portal.post("/api/v1/sessions", &body, 201)["id"].as_str().unwrap().to_owned();
    portal.hear(&id, 0).until_state("idle");
    id
}

fn close(portal: &Portal, id: &str) {
    let mut stream = portal.hear(id, 0);
    portal.poke(&format!("/api/v1/sessions/{id}/stop"), 202);
    stream.until_state("closed");
}

/// The model that was asked last.
fn asked(portal: &Portal) -> String {
    portal.model.requests().last().unwrap().body["model"].as_str().unwrap().to_owned()
}

#[test]
fn changes_of_another_agent_are_shown_by_turn_and_taken_back() {
    let portal = portal("");
    let work = portal.scratch.work();
    std::fs::write(work.join("a.txt"), "one\n").unwrap();
    for args in [&["init", "-q"][..], &["add", "."]] {
        assert!(std::process::Command::new("git").args(args).current_dir(&work).status().unwrap().success());
    }
    let id = begun(&portal, None);
    let path = format!("/api/v1/sessions/{id}/changes");
    assert_eq!(portal.get(&path)["files"], json!([]));
    let mut stream = portal.hear(&id, 0);
    portal.send(&id, r#"TOOL:bash:{"command":"echo two >> a.txt"}"#);
    stream.until(|message| message.data["type"] == "tool.execution_complete");
    stream.until_state("idle");
    let changes = portal.get(&path);
    assert!(changes["files"][0]["diff"].as_str().unwrap().contains("+two"), "{changes}");
    assert_eq!((&changes["turns"][0]["turn"], &changes["files"][0]["linesAdded"]), (&json!(2), &json!(1)));
    let file = changes["files"][0]["path"].clone();
    let left = portal.post(&format!("{path}/revert"), &json!({ "path": file }), 200);
    assert_eq!(left["files"], json!([]), "{left}");
    assert_eq!(std::fs::read_to_string(work.join("a.txt")).unwrap(), "one\n");
}

#[test]
fn what_is_configured_for_all_agents_is_asked_for() {
    let portal = portal("[runtimes]\nmodel = \"of-all\"\n");
    begun(&portal, None);
    assert_eq!(asked(&portal), "of-all");
    begun(&portal, Some("its-own"));
    assert_eq!(asked(&portal), "its-own");
}

#[test]
fn a_session_that_is_opened_again_keeps_its_model_and_counts_on() {
    let portal = portal("[runtimes]\nmodel = \"of-all\"\n");
    let id = begun(&portal, Some("its-own"));
    let used = || portal.session(&id)["usage"]["inputTokens"].as_u64().unwrap();
    let first = used();
    close(&portal, &id);
    assert_eq!(used(), first);
    let mut stream = portal.hear(&id, 0);
    portal.send(&id, "SAY:again");
    stream.until(|message| message.data["data"]["content"] == "again");
    stream.until_state("idle");
    let both = used();
    assert_eq!(asked(&portal), "its-own");
    assert!(first < both && both < 4 * first, "{first}, then {both}");
    close(&portal, &id);
    assert_eq!(used(), both);
}
