//! Events for clients beside the answers: withdrawn questions, changes of the queue, names of sessions, and events that
//! are not for them.

use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::{Client, ID, stage};

fn lookup() -> Value {
    json!({ "name": "lookup", "description": "d", "parameters": { "type": "object" }, "skipPermission": true })
}

/// The types of all events up to the next one of a type.
fn kinds_until(client: &mut Client, last: &str) -> Vec<String> {
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != last) {
        let message = client.until(last, |message| message["method"] == "session.event");
        kinds.push(message["params"]["event"]["type"].as_str().unwrap_or_default().to_owned());
    }
    kinds
}

fn abort(client: &mut Client) {
    client.call("session.abort", json!({ "sessionId": ID }));
}

#[test]
fn an_abort_takes_back_a_permission_that_was_asked_for() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "requestPermission": true }));
    client.send("TOOL:bash:{\"command\":\"touch made\",\"description\":\"d\"}\nSAY:never");
    let asked = client.event("permission.requested");
    let shown = &asked["promptRequest"];
    assert_eq!((&shown["kind"], &shown["commandIdentifiers"]), (&json!("commands"), &json!(["touch"])));
    assert_eq!(asked["agentMode"], "interactive");
    let pending = client.call("session.permissions.pendingRequests", json!({ "sessionId": ID }));
    assert_eq!(pending["items"], json!([{ "requestId": asked["requestId"], "request": shown }]));
    abort(&mut client);
    let ended = client.event("permission.completed");
    assert_eq!(ended["requestId"], asked["requestId"]);
    assert_eq!(ended["result"], json!({ "kind": "cancelled", "reason": "Session aborted" }));
    client.event("session.idle");
    client.finish();
}

#[test]
fn an_abort_takes_back_the_call_of_a_client_s_tool() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "tools": [lookup()] }));
    client.send("TOOL:lookup:{}\nSAY:never");
    let asked = client.event("external_tool.requested");
    assert_eq!(asked["workingDirectory"], json!(scratch.work()));
    abort(&mut client);
    assert_eq!(client.event("external_tool.completed")["requestId"], asked["requestId"]);
    let idle = client.event("session.idle");
    assert_eq!((&idle["aborted"], &idle["mode"]), (&json!(true), &json!("interactive")));
    client.finish();
}

#[test]
fn an_autopilot_that_is_done_does_not_look_as_if_it_went_on() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "requestPermission": true }));
    client.call("session.mode.set", json!({ "sessionId": ID, "mode": "autopilot" }));
    client.send("TOOL:task_complete:{\"summary\":\"s\"}");
    // Clients that wait for an answer pass over a `session.idle` in the mode `autopilot`.
    assert_eq!(client.event("session.idle")["mode"], Value::Null);
    client.finish();
}

#[test]
fn what_model_calls_used_is_on_record_and_not_for_clients() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    client.send("SAY:hello");
    let kinds = kinds_until(&mut client, "session.idle");
    assert!(kinds.iter().any(|kind| kind == "assistant.usage"), "{kinds:?}");
    let read = client.call("session.eventLog.read", json!({ "sessionId": ID, "types": "*" }));
    assert!(read["events"].as_array().is_some_and(|events| events.len() >= kinds.len()), "{read}");
    for told in [kinds.join(" "), client.kinds().join(" "), read.to_string()] {
        assert!(!told.contains("session.usage_record"), "{told}");
    }
    client.finish();
    assert!(scratch.log(ID).contains("\"session.usage_record\""));
}

#[test]
fn the_first_message_names_a_session_that_nobody_named() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    client.send("SAY:one");
    assert_eq!(client.event("session.title_changed")["title"], "SAY:one");
    client.event("session.idle");
    client.send("SAY:two");
    let kinds = kinds_until(&mut client, "session.idle");
    assert!(!kinds.iter().any(|kind| kind == "session.title_changed"), "{kinds:?}");
    client.finish();
}

#[test]
fn a_message_that_leaves_the_queue_is_told() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "tools": [lookup()] }));
    client.send("TOOL:lookup:{}\nSAY:first");
    let asked = client.event("external_tool.requested");
    client.send("SAY:second");
    client.forget();
    let answer = json!({ "sessionId": ID, "requestId": asked["requestId"], "result": "found" });
    client.call("session.tools.handlePendingToolCall", answer);
    let kinds = kinds_until(&mut client, "session.idle");
    let at = |wanted: &str| kinds.iter().position(|kind| kind == wanted);
    let moved = at("pending_messages.modified");
    assert!(moved.is_some() && moved < at("user.message"), "{kinds:?}");
    client.finish();
}

#[test]
fn clients_are_asked_no_hooks_that_the_sdks_do_not_know() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "hooks": true, "requestPermission": true }));
    client.send("TOOL:bash:{\"command\":\"echo a\",\"description\":\"d\"}\nSAY:done");
    let mut hooks = Vec::new();
    while hooks.last().is_none_or(|kind| kind != "sessionEnd") {
        let message = client.until("hooks and permissions", |message| {
            message["method"] == "hooks.invoke"
                || message["params"]["event"]["type"] == "permission.requested"
                || message["params"]["event"]["type"] == "session.idle"
        });
        let event = &message["params"]["event"];
        if message["method"] == "hooks.invoke" {
            let params = &message["params"];
            hooks.push(params["hookType"].as_str().unwrap_or_default().to_owned());
            if params["hookType"] == "sessionEnd" {
                assert_eq!(params["input"]["reason"], "user_exit");
            }
            client.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} }));
        } else if event["type"] == "permission.requested" {
            let answer = json!({ "kind": "approve-once" });
            let params =
                json!({ "sessionId": ID, "requestId": event["data"]["requestId"], "result": answer });
            client.begin("session.permissions.handlePendingPermissionRequest", params);
        } else {
            client.begin("session.destroy", json!({ "sessionId": ID }));
        }
    }
    let expected = [
        "sessionStart",
        "userPromptSubmitted",
        "userPromptTransformed",
        "preToolUse",
        "postToolUse",
        "agentStop",
        "sessionEnd",
    ];
    assert_eq!(hooks, expected);
    client.finish();
}

#[test]
fn what_a_tool_says_of_its_image_stays_with_it() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "tools": [lookup()] }));
    client.send("TOOL:lookup:{}\nSAY:seen");
    let asked = client.event("external_tool.requested");
    let image =
        json!({ "type": "image", "mimeType": "image/png", "data": "aGVsbG8=", "description": "a dot" });
    let result = json!({ "textResultForLlm": "t", "resultType": "success", "binaryResultsForLlm": [image] });
    let answer = json!({ "sessionId": ID, "requestId": asked["requestId"], "result": result });
    client.call("session.tools.handlePendingToolCall", answer);
    let ended = client.event("tool.execution_complete");
    assert_eq!(ended["result"]["binaryResultsForLlm"], json!([image]));
    client.event("session.idle");
    client.finish();
}

/// Calls a command by the method for commands of all kinds, as a client that brought it and ends it like this.
#[track_caller]
fn check_command(error: Value, expected: Value) {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "commands": [{ "name": "greet", "description": "d" }] }));
    let params = json!({ "sessionId": ID, "name": "greet", "input": "Bob" });
    let invoked = client.begin("session.commands.invoke", params);
    let execute = client.event("command.execute");
    assert_eq!((&execute["commandName"], &execute["args"]), (&json!("greet"), &json!("Bob")));
    let mut handled = json!({ "sessionId": ID, "requestId": execute["requestId"] });
    if error.is_string() {
        handled["error"] = error;
    }
    client.call("session.commands.handlePendingCommand", handled);
    let answer = client.answer_to(invoked);
    let told = if answer["error"].is_null() { &answer["result"] } else { &answer["error"]["message"] };
    assert_eq!(*told, expected);
    assert_eq!(client.event("command.completed")["requestId"], execute["requestId"]);
    client.finish();
}

#[test]
fn a_command_that_a_client_brought_is_invoked_like_any_other() {
    check_command(Value::Null, json!({ "kind": "completed" }));
    let failed = "Request session.commands.invoke failed with message: Command /greet failed: it broke";
    check_command(json!("it broke"), json!(failed));
}

#[test]
fn lifecycles_tell_when_a_session_began() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    let began = client.event("session.start")["startTime"].clone();
    client.send("SAY:a");
    let next = |client: &mut Client, kind: &str| {
        let mut message = client.until(kind, |message| {
            message["method"] == "session.lifecycle" && message["params"]["type"] == kind
        });
        message["params"]["metadata"].take()
    };
    client.event("assistant.message");
    assert_eq!(next(&mut client, "session.updated")["startTime"], began);
    client.event("session.idle");
    client.call("session.delete", json!({ "sessionId": ID }));
    assert_eq!(next(&mut client, "session.deleted"), Value::Null);
    client.finish();
}

#[test]
fn a_command_says_what_fills_the_context() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    let listed = client.call("session.commands.list", json!({ "sessionId": ID }));
    assert!(listed["commands"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "context")));
    let told = client.call("session.commands.invoke", json!({ "sessionId": ID, "name": "context" }));
    assert_eq!(told["kind"], "text");
    assert!(told["text"].as_str().is_some_and(|text| text.contains("tokens")), "{told}");
    client.finish();
}

#[test]
fn clients_hear_that_the_tools_are_others_when_somebody_brings_some_and_leaves() {
    let (scratch, model) = stage();
    let server = hangar(&scratch, &model).env("COPILOT_CONNECTION_TOKEN", "secret");
    let mut server = server.args(["--headless", "--port", "0"]).start();
    let line = server.next_line().expect("the server says where it listens").to_owned();
    let port = line.strip_prefix("CLI server listening on port ").and_then(|port| port.parse().ok());
    let port = port.expect("a port");
    let mut client = Client::join(port, "secret");
    client.create(json!({}));
    client.send("SAY:x");
    client.event("session.idle");
    client.forget();
    let mut guest = Client::join(port, "secret");
    guest.call("session.resume", json!({ "sessionId": ID, "tools": [lookup()], "disableResume": true }));
    assert_eq!(client.event("session.tools_updated")["model"], "mock-model");
    let mut silent = Client::join(port, "secret");
    silent.call("session.resume", json!({ "sessionId": ID, "disableResume": true }));
    silent.call("session.detach", json!({ "sessionId": ID }));
    client.call("session.mode.set", json!({ "sessionId": ID, "mode": "plan" }));
    let kinds = kinds_until(&mut client, "session.mode_changed");
    assert!(!kinds.iter().any(|kind| kind == "session.tools_updated"), "{kinds:?}");
    drop(guest);
    client.event("session.tools_updated");
    server.signal(hangar_test_support::Signal::TERM);
    server.finish().expect_exit(0);
}
