//! Sessions over HTTP: their life, and what is refused.

use hangar_test_support::{ModelServer, Scratch};
use serde_json::json;

use super::client::Message;
use super::{Portal, expect, refused};

#[test]
fn a_session_is_opened_stopped_and_gone_on_with() {
    let portal = Portal::start();
    let id = portal.open("SAY:one", "allow-all");
    let mut stream = portal.hear(&id, 0);
    stream.until_state("idle");
    let session = portal.session(&id);
    assert_eq!(session["runtime"], "native");
    assert_eq!(session["model"], "mock-model");
    assert_eq!(session["name"], "SAY:one");
    assert_eq!(session["usage"]["turns"], 1);
    assert!(session["usage"]["inputTokens"].as_u64().unwrap() > 0);
    portal.poke(&format!("/api/v1/sessions/{id}/stop"), 202);
    stream.until_state("closed");
    portal.send(&id, "SAY:two");
    let heard = stream.until_state("idle");
    let said = |text: &str| heard.iter().any(|message| message.data["data"]["content"] == text);
    assert!(said("two") && !said("one"), "it is not idle before it has answered");
    assert_eq!(portal.session(&id)["usage"]["turns"], 2);
}

#[test]
fn a_session_keeps_its_policy_and_what_lists_show_over_a_restart() {
    let portal = Portal::start();
    let touch = |name: &str| format!(r#"TOOL:bash:{{"command":"touch {name}","description":"x"}}"#);
    let free = portal.done(&touch("one"));
    let asking = portal.open("SAY:hi", "ask");
    portal.hear(&asking, 0).until_state("idle");
    let before = [portal.session(&free), portal.session(&asking)];
    let portal = portal.again();
    for (before, policy) in before.iter().zip(["allow-all", "ask"]) {
        let after = portal.session(before["id"].as_str().unwrap());
        assert_eq!((&after["policy"], &after["state"]), (&json!(policy), &json!("closed")));
        for member in ["usage", "model", "name", "workspace", "createdAt"] {
            assert_eq!(after[member], before[member], "{member}");
        }
        let (was, is) = (&before["context"], &after["context"]);
        assert!(is["tokens"].as_u64() > Some(0) && is["limit"] == was["limit"], "{was} {is}");
    }
    portal.send(&free, &touch("two"));
    let after = before[0]["events"].as_u64().unwrap();
    let heard = portal.hear(&free, after).until_state("idle");
    assert!(portal.scratch.work().join("two").exists());
    assert!(!heard.iter().any(|message| message.kind() == "permission.requested"));
    portal.send(&asking, &touch("three"));
    portal.hear(&asking, 0).until_state("waiting");
}

#[test]
fn a_message_right_behind_the_end_is_not_lost() {
    let portal = Portal::start();
    let id = portal.done("SAY:one");
    for round in 0..5 {
        let text = format!("round {round}");
        portal.poke(&format!("/api/v1/sessions/{id}/stop"), 202);
        portal.send(&id, &format!("SAY:{text}"));
        portal.hear(&id, 0).until(|message| message.data["data"]["content"] == text.as_str());
    }
}

#[test]
fn a_session_of_another_agent_is_kept_like_our_own() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    // The other agent is Hangar too, and has to have a home of its own.
    let home = scratch.root().join("theirs");
    std::fs::create_dir_all(scratch.state()).unwrap();
    let config = format!("[runtimes.copilot.env]\nHANGAR_HOME = \"{}\"\n", home.display());
    std::fs::write(scratch.state().join("config.toml"), config).unwrap();
    let portal = Portal::on(scratch, model, &[]);
    let body = json!({ "workspace": portal.scratch.work(), "runtime": "copilot", "prompt": "SAY:hello", "name": "theirs" });
    let id = portal.post("/api/v1/sessions", &body, 201)["id"].as_str().unwrap().to_owned();
    let mut stream = portal.hear(&id, 0);
    let heard = stream.until_state("idle");
    let logged = heard.iter().filter(|message| message.id.is_some()).count();
    assert_eq!(portal.scratch.log(&id).lines().count(), logged);
    assert_eq!(portal.session(&id)["policy"], "allow-all");
    portal.poke(&format!("/api/v1/sessions/{id}/stop"), 202);
    stream.until_state("closed");
    let session = portal.session(&id);
    assert_eq!((session["runtime"].as_str(), session["name"].as_str()), (Some("copilot"), Some("theirs")));
    portal.send(&id, "SAY:again");
    let heard = stream.until_state("idle");
    assert!(heard.iter().any(|message| message.data["data"]["content"] == "again"));
    assert_eq!(
        heard.iter().filter_map(|message| message.id).next(),
        Some(session["events"].as_u64().unwrap() + 1)
    );
}

#[test]
fn what_does_not_exist_is_not_found_on_every_route() {
    let portal = Portal::start();
    for (method, path) in [
        ("GET", "/api/v1/sessions/nope"),
        ("DELETE", "/api/v1/sessions/nope"),
        ("POST", "/api/v1/sessions/nope/abort"),
        ("POST", "/api/v1/sessions/nope/stop"),
        ("GET", "/api/v1/sessions/nope/events"),
        ("GET", "/api/v1/sessions/nope/stream"),
        ("GET", "/api/v1/sessions/..%2f..%2fetc/events"),
        ("GET", "/api/v1/sessions/%2e%2e/events"),
    ] {
        refused(&portal.ask(method, path).send(), 404, "session_not_found", "there is no session");
    }
    let message = portal.ask("POST", "/api/v1/sessions/nope/messages").json(&json!({ "text": "hi" }));
    refused(&message.send(), 404, "session_not_found", "nope");
    let rename = portal.ask("PATCH", "/api/v1/sessions/nope").json(&json!({ "name": "x" }));
    refused(&rename.send(), 404, "session_not_found", "nope");
    refused(&portal.ask("GET", "/api/v1/runtimes/nope/models").send(), 404, "runtime_not_found", "nope");
    refused(&portal.ask("GET", "/api/v1/nope").send(), 404, "route_not_found", "openapi.json");
    refused(&portal.ask("DELETE", "/api/v1/sessions").send(), 405, "method_not_allowed", "method");
    let reply = portal.ask("POST", "/api/v1/approvals/nope").json(&json!({ "decision": "deny" }));
    refused(&reply.send(), 404, "approval_not_found", "nope");
}

#[test]
fn bad_input_is_refused_with_a_sentence() {
    let portal = Portal::start();
    let work = portal.scratch.work();
    let open = |body| portal.ask("POST", "/api/v1/sessions").json(&body).send();
    refused(&open(json!({ "workspace": work, "modle": "x" })), 400, "invalid_request", "`modle`");
    refused(&open(json!({})), 400, "invalid_request", "workspace");
    refused(&open(json!([work, null, null, null, null, null, null])), 400, "invalid_request", "JSON object");
    let effort = open(json!({ "workspace": work, "effort": "heroic" }));
    refused(&effort, 422, "unprocessable", "knows no effort `heroic`; it knows none, ");
    refused(&open(json!({ "workspace": "here" })), 422, "unprocessable", "`here` is not an absolute path");
    refused(&open(json!({ "workspace": "/nowhere" })), 422, "unprocessable", "/nowhere is not a directory");
    refused(&open(json!({ "workspace": work, "runtime": "nope" })), 404, "runtime_not_found", "nope");
    refused(&open(json!({ "workspace": work, "policy": "maybe" })), 400, "invalid_request", "maybe");
    refused(
        &open(json!({ "workspace": work, "runtime": "copilot", "policy": "ask" })),
        422,
        "cannot_ask",
        "allow-all",
    );
    refused(&open(json!({ "workspace": work, "name": " " })), 400, "invalid_request", "name");
    let id = portal.done("SAY:hi");
    let events = |query: &str| portal.ask("GET", &format!("/api/v1/sessions/{id}/events?{query}")).send();
    refused(&events("limit=0"), 400, "invalid_request", "limit");
    refused(&events("after=x"), 400, "invalid_request", "query");
    refused(&events("aftr=1"), 400, "invalid_request", "aftr");
    let message = format!("/api/v1/sessions/{id}/messages");
    refused(
        &portal.ask("POST", &message).json(&json!({ "text": " " })).send(),
        400,
        "invalid_request",
        "empty",
    );
    let broken = portal.ask("POST", &message).header("content-type", "application/json").text("{");
    refused(&broken.send(), 400, "invalid_request", "body");
    refused(&portal.ask("POST", &message).text("{}").send(), 415, "json_required", "application/json");
    let large = vec![b' '; 17 << 20];
    let large = portal.ask("POST", &message).header("content-type", "application/json").text(large);
    refused(&large.send(), 413, "too_large", "16 MB");
    for (last, names) in [("x", "Last-Event-ID"), ("-1", "Last-Event-ID"), ("999999", "999999")] {
        let stream =
            portal.ask("GET", &format!("/api/v1/sessions/{id}/stream")).header("last-event-id", last);
        refused(&stream.send(), 400, "invalid_request", names);
    }
    portal.poke(&format!("/api/v1/sessions/{id}/stop"), 202);
    portal.hear(&id, 0).until_kind("session.shutdown");
}

#[test]
fn a_turn_is_aborted_and_the_session_goes_on() {
    let portal = Portal::start();
    let id = portal.open(r#"TOOL:bash:{"command":"sleep 1000","description":"waits"}"#, "allow-all");
    let mut stream = portal.hear(&id, 0);
    stream.until_kind("tool.execution_start");
    assert_eq!(portal.session(&id)["state"], "working");
    assert_eq!(portal.poke(&format!("/api/v1/sessions/{id}/abort"), 202)["state"], "working");
    stream.until_kind("abort");
    stream.until_state("idle");
    portal.send(&id, "SAY:still here");
    stream.until(|message| message.data["data"]["content"] == "still here");
}

#[test]
fn words_for_the_turn_that_is_under_way_reach_it() {
    let portal = Portal::start();
    let script =
        "TOOL:bash:{\"command\":\"until [ -e go ]; do sleep 0.05; done\",\"description\":\"waits\"}\nSAY:end";
    let id = portal.open(script, "allow-all");
    let mut stream = portal.hear(&id, 0);
    stream.until_kind("tool.execution_start");
    let steer = json!({ "text": "look left", "mode": "immediate" });
    portal.post(&format!("/api/v1/sessions/{id}/messages"), &steer, 202);
    portal.scratch.file("go", "");
    let heard = stream.until_state("idle");
    let steered: Vec<&Message> =
        heard.iter().filter(|message| message.data["data"]["content"] == "look left").collect();
    let [steered] = steered[..] else { panic!("said {} times", steered.len()) };
    assert_eq!(steered.data["data"]["delivery"], "steering");
}

#[test]
fn a_session_gets_another_name_and_is_deleted() {
    let portal = Portal::start();
    let id = portal.done("SAY:hi");
    let path = format!("/api/v1/sessions/{id}");
    let rename = |name: &str| expect(portal.ask("PATCH", &path).json(&json!({ "name": name })).send(), 200);
    assert_eq!(rename("open")["name"], "open");
    portal.poke(&format!("{path}/stop"), 202);
    let mut stream = portal.hear(&id, 0);
    stream.until_kind("session.shutdown");
    assert_eq!(rename("closed")["name"], "closed");
    assert_eq!(expect(portal.ask("DELETE", &path).send(), 204), serde_json::Value::Null);
    stream.until(|message| message.event.as_deref() == Some("end"));
    refused(&portal.ask("GET", &path).send(), 404, "session_not_found", &id);
    assert!(portal.scratch.try_log(&id).is_none());
}

#[test]
fn a_session_that_fails_says_why() {
    let portal = Portal::start();
    let id = portal.open("FAIL:400", "allow-all");
    portal.hear(&id, 0).until_state("failed");
    let session = portal.session(&id);
    assert!(!session["error"].as_str().unwrap().is_empty());
    portal.poke(&format!("/api/v1/sessions/{id}/stop"), 202);
    portal.hear(&id, 0).until_kind("session.shutdown");
    let portal = portal.again();
    assert_eq!(portal.session(&id)["state"], "failed");
}
