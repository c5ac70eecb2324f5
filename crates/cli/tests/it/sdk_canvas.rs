//! Canvases of clients, remote control without a portal, and telemetry for clients that asked for it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use serde_json::{Value, json};

use crate::sdk::{Client, ID, of_session, session, stage};

const COUNTER: &str = r#"{"id": "counter", "displayName": "Counter", "description": "Counts.",
    "actions": [{"name": "add", "description": "Adds."}]}"#;

/// Sends a request that makes the server call the client, answers that call, and returns it with the answer to the request.
fn round_trip(
    client: &mut Client,
    method: &str,
    params: Value,
    callback: &str,
    answer: Value,
) -> (Value, Value) {
    let request = of_session(params);
    client.write(&json!({ "jsonrpc": "2.0", "id": "canvas", "method": method, "params": request }));
    let asked = client.until(callback, |message| message["method"] == callback);
    client.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    let answered = client.until("the answer", |message| message["id"] == "canvas");
    (asked["params"].clone(), answered)
}

fn open(client: &mut Client, instance: &str) -> Value {
    let params = json!({ "canvasId": "counter", "instanceId": instance, "input": { "from": 1 } });
    let shown = json!({ "url": "http://127.0.0.1:9/c", "title": "Count", "status": "ready" });
    let (asked, answered) = round_trip(client, "session.canvas.open", params, "canvas.open", shown);
    assert_eq!((&asked["canvasId"], &asked["sessionId"]), (&json!("counter"), &json!(ID)));
    assert_eq!(asked["input"], json!({ "from": 1 }));
    answered["result"].clone()
}

fn opened(client: &mut Client) -> Vec<String> {
    let open = client.call("session.canvas.listOpen", of_session(json!({})));
    let instances = open["openCanvases"].as_array().unwrap().iter();
    instances.map(|instance| instance["instanceId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_canvas_is_opened_used_and_closed_by_its_client() {
    let counter: Value = serde_json::from_str(COUNTER).unwrap();
    let (scratch, _model, mut client) = session(json!({ "canvases": [counter] }));
    let declared = client.call("session.canvas.list", of_session(json!({})));
    assert_eq!(declared["canvases"][0]["canvasId"], "counter");
    assert_eq!(declared["canvases"][0]["actions"][0]["name"], "add");
    let shown = open(&mut client, "one");
    assert_eq!((&shown["url"], &shown["title"]), (&json!("http://127.0.0.1:9/c"), &json!("Count")));
    assert_eq!(opened(&mut client), ["one"]);
    let params = json!({ "instanceId": "one", "actionName": "add", "input": 5 });
    let (asked, answered) = round_trip(
        &mut client,
        "session.canvas.action.invoke",
        params,
        "canvas.action.invoke",
        json!({ "sum": 6 }),
    );
    assert_eq!((&asked["actionName"], &asked["input"]), (&json!("add"), &json!(5)));
    assert_eq!(answered["result"], json!({ "result": { "sum": 6 } }));
    let params = json!({ "instanceId": "one" });
    round_trip(&mut client, "session.canvas.close", params, "canvas.close", Value::Null);
    assert_eq!(opened(&mut client), Vec::<String>::new());
    client.finish();
    let log = scratch.log(ID);
    assert!(log.contains("session.canvas.recorded") && log.contains("session.canvas.removed"), "{log}");
    assert!(!log.contains("session.canvas.opened"), "the address is not kept: {log}");
}

#[test]
fn an_open_canvas_is_there_again_after_a_resume_without_its_address() {
    let counter: Value = serde_json::from_str(COUNTER).unwrap();
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "canvases": [counter] }));
    open(&mut client, "one");
    client.call("session.destroy", of_session(json!({})));
    let resumed = client.call("session.resume", of_session(json!({})));
    assert_eq!(resumed["openCanvases"][0]["instanceId"], "one");
    assert_eq!(resumed["openCanvases"][0]["url"], Value::Null);
    let used = client.answer(
        "session.canvas.action.invoke",
        of_session(json!({ "instanceId": "one", "actionName": "x" })),
    );
    assert!(used["error"]["message"].as_str().unwrap().contains("not connected"), "{used}");
    client.finish();
}

#[test]
fn a_canvas_that_nobody_declared_is_a_sentence() {
    let (_scratch, _model, mut client) = session(json!({}));
    for (method, params) in [
        ("session.canvas.open", json!({ "canvasId": "none", "instanceId": "i" })),
        ("session.canvas.close", json!({ "instanceId": "i" })),
        ("session.canvas.action.invoke", json!({ "instanceId": "i", "actionName": "a" })),
    ] {
        let answer = client.answer(method, of_session(params));
        assert!(answer["error"]["message"].as_str().unwrap().contains("anvas"), "{answer}");
    }
    client.finish();
}

#[test]
fn remote_control_is_off_and_says_why_it_cannot_start() {
    let (_scratch, _model, mut client) = session(json!({}));
    let off = json!({ "state": "off" });
    assert_eq!(client.call("sessions.getRemoteControlStatus", json!({}))["status"], off);
    assert_eq!(client.call("sessions.setRemoteControlSteering", json!({ "enabled": true }))["status"], off);
    let stopped = client.call("sessions.stopRemoteControl", json!({}));
    assert_eq!(stopped, json!({ "stopped": false, "status": off }));
    let moved = client.call("sessions.transferRemoteControl", json!({ "toSessionId": ID }));
    assert_eq!(moved, json!({ "transferred": false, "status": off }));
    let config =
        |steerable: bool| json!({ "remote": true, "steerable": steerable, "explicit": true, "silent": true });
    let start = |client: &mut Client, id: &str, steerable: bool| {
        client.answer("sessions.startRemoteControl", json!({ "sessionId": id, "config": config(steerable) }))
    };
    let unknown = start(&mut client, "nope", true);
    assert!(unknown["error"]["message"].as_str().unwrap().contains("Session not found"), "{unknown}");
    for (steerable, expected) in [(true, "No portal is running"), (false, "can steer it")] {
        let started = start(&mut client, ID, steerable);
        let status = &started["result"]["status"];
        assert_eq!(status["state"], "error", "{started}");
        assert!(status["error"].as_str().unwrap().contains(expected), "{started}");
    }
    client.finish();
}

#[test]
fn whether_a_session_can_be_steered_is_an_event_that_is_kept() {
    let (_scratch, _model, mut client) = session(json!({}));
    let kept =
        |client: &mut Client| client.call("sessions.getPersistedRemoteSteerable", json!({ "sessionId": ID }));
    assert_eq!(kept(&mut client), json!({}));
    for steerable in [true, false] {
        let params = of_session(json!({ "remoteSteerable": steerable }));
        client.call("session.remote.notifySteerableChanged", params);
        assert_eq!(client.event("session.remote_steerable_changed")["remoteSteerable"], steerable);
        assert_eq!(kept(&mut client), json!({ "remoteSteerable": steerable }));
    }
    client.finish();
}

#[test]
fn telemetry_goes_to_clients_that_asked_and_has_no_text() {
    let (scratch, model) = stage();
    for wanted in [true, false] {
        let mut client = Client::start(&scratch, &model);
        client.call("connect", json!({ "enableGitHubTelemetryForwarding": wanted }));
        client.create(json!({ "sessionId": ID }));
        client.send("SAY:a secret answer");
        let mut kinds = Vec::new();
        loop {
            let message = client.until("a message", |message| message.get("method").is_some());
            assert!(
                message["method"] != "gitHubTelemetry.event"
                    || !message.to_string().contains("secret answer"),
                "{message}"
            );
            match message["method"].as_str().unwrap() {
                "gitHubTelemetry.event" => kinds.push(message["params"]["event"]["kind"].clone()),
                "session.event" if message["params"]["event"]["type"] == "session.idle" => break,
                _ => {}
            }
        }
        assert_eq!(kinds.contains(&json!("session_start")), wanted, "{kinds:?}");
        assert_eq!(kinds.contains(&json!("model_call")), wanted, "{kinds:?}");
        client.call("session.destroy", of_session(json!({})));
        client.call("session.delete", of_session(json!({})));
        client.finish();
    }
}
