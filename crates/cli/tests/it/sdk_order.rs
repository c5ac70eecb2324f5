//! Scope and precedence of settings: modes of messages, queued model switches, rules for models, hooks around calls of
//! clients, and names.

use serde_json::{Value, json};

use crate::sdk::{Client, ID, session, stage};
use crate::sdk_protocol::{busy, call, error, let_go, said, texts, waiting};

#[test]
fn the_mode_of_a_message_is_not_the_session_s() {
    let (_scratch, _model, mut client) = session(json!({ "requestPermission": true }));
    let request = busy(&mut client);
    call(&mut client, "session.send", json!({ "prompt": "SAY:planned", "agentMode": "plan" }));
    let pending = call(&mut client, "session.queue.pendingItems", json!({}));
    assert_eq!(pending["items"][0]["agentMode"], "plan");
    assert_eq!(call(&mut client, "session.mode.get", json!({})), "interactive");
    let_go(&mut client, &request);
    assert_eq!(client.event("user.message")["agentMode"], "plan");
    assert_eq!(said(&mut client), ["planned"]);
    assert_eq!(call(&mut client, "session.mode.get", json!({})), "interactive");
    assert!(!client.kinds().contains(&"session.mode_changed".to_owned()));
    client.finish();
}

#[test]
fn a_model_that_is_chosen_during_a_turn_waits_for_its_place() {
    let (_scratch, model, mut client) = session(json!({ "requestPermission": true, "model": "mock-model" }));
    let request = busy(&mut client);
    client.send("SAY:before");
    let other = json!({ "modelId": "other", "contextTier": "long_context" });
    let switched = call(&mut client, "session.model.switchTo", other.clone());
    assert_eq!(
        (&switched["deferred"], &switched["modelId"], &switched["modelState"]),
        (&json!(true), &json!("mock-model"), &json!({ "modelId": "mock-model" }))
    );
    client.send("SAY:after");
    assert_eq!(texts(&mut client), ["SAY:before", "/model other", "SAY:after"]);
    let id = waiting(&mut client)[1].0.clone();
    let refused = error(&mut client, "session.queue.sendNow", json!({ "id": id }));
    assert_eq!(refused["data"]["code"], "invalid_target_kind");
    let_go(&mut client, &request);
    assert_eq!(said(&mut client), ["turn", "before", "after"]);
    let models: Vec<Value> = model.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["mock-model", "mock-model", "mock-model", "other"]);
    assert_eq!(call(&mut client, "session.model.getCurrent", json!({})), other);
    let tier = error(&mut client, "session.model.switchTo", json!({ "modelId": "x", "autoTier": "fast" }));
    assert_eq!(tier["code"], -32602);
    client.finish();
}

#[test]
fn a_model_that_was_taken_back_is_not_taken() {
    let (_scratch, _model, mut client) = session(json!({ "requestPermission": true, "model": "mock-model" }));
    let request = busy(&mut client);
    for other in ["one", "two"] {
        call(&mut client, "session.model.switchTo", json!({ "modelId": other }));
    }
    let id = waiting(&mut client)[1].0.clone();
    call(&mut client, "session.queue.removeAt", json!({ "id": id }));
    call(&mut client, "session.model.switchTo", json!({ "modelId": "three" }));
    let allowed = json!({ "allowedModels": ["mock-model", "one"] });
    call(&mut client, "session.model.setAllowedModels", allowed);
    assert_eq!(texts(&mut client), ["/model one"], "what is not allowed any more does not wait");
    let_go(&mut client, &request);
    said(&mut client);
    assert_eq!(call(&mut client, "session.model.getCurrent", json!({}))["modelId"], "one");
    client.finish();
}

#[test]
fn a_queue_is_paused_by_one_and_sends_what_it_is_told_to() {
    let (_scratch, _model, mut client) = session(json!({}));
    call(&mut client, "session.queue.setDrainPaused", json!({ "paused": true }));
    let again = error(&mut client, "session.queue.setDrainPaused", json!({ "paused": true }));
    assert_eq!(again["data"]["code"], "queue_already_paused");
    client.send("SAY:a");
    call(&mut client, "session.send", json!({ "prompt": "SAY:b", "mode": "immediate" }));
    assert_eq!(texts(&mut client), ["SAY:a", "SAY:b"]);
    let id = waiting(&mut client)[1].0.clone();
    assert_eq!(call(&mut client, "session.queue.sendNow", json!({ "id": id }))["steered"], true);
    assert_eq!(said(&mut client), ["b"]);
    call(&mut client, "session.queue.setDrainPaused", json!({ "paused": false }));
    assert_eq!(said(&mut client), ["a"]);
    client.finish();
}

#[test]
fn a_session_begins_with_a_model_that_is_allowed() {
    let (_scratch, model, mut client) =
        session(json!({ "model": "mock-model", "allowedModels": ["mock-b", "mock-c"] }));
    assert_eq!(call(&mut client, "session.model.getCurrent", json!({}))["modelId"], "mock-b");
    client.send("SAY:x");
    client.event("session.idle");
    assert_eq!(model.last_request()["model"], "mock-b");
    // A rule that cannot be kept changes nothing.
    error(&mut client, "session.model.setAllowedModels", json!({ "allowedModels": [] }));
    call(&mut client, "session.model.switchTo", json!({ "modelId": "mock-c" }));
    error(&mut client, "session.model.switchTo", json!({ "modelId": "mock-d" }));
    client.finish();
}

/// Answers the next hook, and says which it was and what it was told.
fn hook(client: &mut Client, output: Value) -> (String, Value) {
    let asked = client.until("hooks.invoke", |message| message["method"] == "hooks.invoke");
    client.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "output": output } }));
    (asked["params"]["hookType"].as_str().unwrap_or_default().to_owned(), asked["params"]["input"].clone())
}

#[test]
fn hooks_are_asked_about_the_calls_of_clients_too() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "hooks": true }));
    call(&mut client, "session.permissions.setApproveAll", json!({ "enabled": true }));
    let file = |name: &str| json!({ "path": scratch.work().join(name), "file_text": "text" });
    let execute = |client: &mut Client, name: &str| {
        let params = json!({ "sessionId": ID, "name": "create", "arguments": file(name) });
        client.begin("session.tools.execute", params)
    };

    let refused = execute(&mut client, "refused");
    let deny = json!({ "permissionDecision": "deny", "permissionDecisionReason": "not today" });
    let (kind, told) = hook(&mut client, deny);
    assert_eq!(
        (kind.as_str(), &told["toolName"], &told["toolArgs"]),
        ("preToolUse", &json!("create"), &file("refused"))
    );
    let result = client.answer_to(refused)["result"].clone();
    assert_eq!(
        (&result["resultType"], &result["textResultForLlm"]),
        (&json!("denied"), &json!("Denied by preToolUse hook: not today"))
    );
    assert!(!scratch.work().join("refused").exists());

    let changed = execute(&mut client, "meant");
    hook(&mut client, json!({ "modifiedArgs": file("made") }));
    let (kind, _) = hook(&mut client, json!({ "modifiedResult": { "textResultForLlm": "seen" } }));
    assert_eq!(kind, "postToolUse");
    assert_eq!(client.answer_to(changed)["result"]["textResultForLlm"], "seen");
    assert!(scratch.work().join("made").exists() && !scratch.work().join("meant").exists());

    let missing =
        client.begin("session.tools.execute", json!({ "sessionId": ID, "name": "nope", "arguments": {} }));
    assert_eq!(hook(&mut client, Value::Null).0, "preToolUse");
    assert_eq!(hook(&mut client, Value::Null).0, "postToolUseFailure");
    assert_eq!(client.answer_to(missing)["result"]["resultType"], "failure");
    client.kill();
}

#[test]
fn a_session_that_plans_changes_nothing_for_clients_either() {
    let (scratch, _model, mut client) = session(json!({}));
    call(&mut client, "session.permissions.setApproveAll", json!({ "enabled": true }));
    call(&mut client, "session.mode.set", json!({ "mode": "plan" }));
    let write = json!({ "path": scratch.work().join("made"), "file_text": "text" });
    let denied = call(&mut client, "session.tools.execute", json!({ "name": "create", "arguments": write }));
    assert_eq!(denied["resultType"], "denied");
    assert!(!scratch.work().join("made").exists());
    client.finish();
}

#[test]
fn a_name_that_was_given_with_the_folder_stays() {
    let (_scratch, _model, mut client) = session(json!({}));
    call(&mut client, "session.workspaces.updateMetadata", json!({ "name": "Given" }));
    client.send("SAY:x");
    client.event("session.idle");
    assert_eq!(call(&mut client, "session.name.get", json!({}))["name"], "Given");
    let read = call(&mut client, "session.eventLog.read", json!({ "types": ["session.title_changed"] }));
    assert_eq!(read["events"], json!([]), "nobody is told of another name");
    client.finish();
}

#[test]
fn a_remark_of_the_moment_is_known_by_its_own_id() {
    let (_scratch, _model, mut client) = session(json!({}));
    for ephemeral in [true, false] {
        let logged = call(&mut client, "session.log", json!({ "message": "m", "ephemeral": ephemeral }));
        let event =
            client.until("the remark", |message| message["params"]["event"]["type"] == "session.info");
        assert_eq!(logged["eventId"], event["params"]["event"]["id"]);
    }
    client.finish();
}

#[test]
fn a_summary_is_on_record_with_the_reason_that_was_given() {
    let (_scratch, _model, mut client) = session(json!({}));
    for (params, trigger) in
        [(json!({ "trigger": "model_switch" }), json!("model_switch")), (json!({}), Value::Null)]
    {
        client.send("SAY:x");
        client.event("session.idle");
        call(&mut client, "session.history.compact", params);
        assert_eq!(client.event("session.compaction_start")["trigger"], trigger);
    }
    client.finish();
}

#[test]
fn an_agent_is_told_whom_a_message_is_from() {
    let (_scratch, model, mut client) = session(json!({}));
    let work = json!({ "agentType": "general-purpose", "prompt": "SAY:one", "name": "n" });
    let id = call(&mut client, "session.tasks.startAgent", work)["agentId"].clone();
    client.event("session.idle");
    let message = json!({ "id": id, "message": "SAY:two", "fromAgentId": "other" });
    assert_eq!(call(&mut client, "session.tasks.sendMessage", message)["sent"], true);
    let heard =
        client.until("the message", |message| message["params"]["event"]["data"]["source"] == "agent-other");
    let event = &heard["params"]["event"];
    assert_eq!((&event["data"]["content"], &event["agentId"]), (&json!("SAY:two"), &id));
    client.event("session.idle");
    let told = |request: &hangar_test_support::SeenRequest| {
        request.body["messages"].to_string().contains("[Message from other]\\nSAY:two")
    };
    assert!(model.requests().iter().any(told));
    client.finish();
}

#[test]
fn what_waits_outlives_a_change_of_the_ground() {
    let (_scratch, _model, mut client) = session(json!({}));
    call(&mut client, "session.queue.setDrainPaused", json!({ "paused": true }));
    client.send("SAY:a");
    call(&mut client, "session.options.update", json!({ "enableSkills": false }));
    assert_eq!(texts(&mut client), ["SAY:a"]);
    call(&mut client, "session.queue.setDrainPaused", json!({ "paused": false }));
    assert_eq!(said(&mut client), ["a"]);
    client.finish();
}

#[test]
fn what_waits_changes_once_for_each_message() {
    let (_scratch, _model, mut client) = session(json!({}));
    let modified = |client: &mut Client| {
        let read = call(client, "session.eventLog.read", json!({ "types": ["pending_messages.modified"] }));
        read["events"].as_array().map_or(0, Vec::len)
    };
    call(&mut client, "session.queue.setDrainPaused", json!({ "paused": true }));
    for waiting in 1..=2 {
        client.send("SAY:a");
        texts(&mut client);
        assert_eq!(modified(&mut client), waiting);
    }
    client.finish();
}
