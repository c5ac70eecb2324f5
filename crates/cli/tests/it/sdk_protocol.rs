//! The protocol beyond prompts and answers: what waits and is changed while it does, what clients keep with a session,
//! tasks and tools of clients, and settings that are made on the way.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::ModelServer;
use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::{Client, ID, of_session, session, stage};

pub(crate) fn call(client: &mut Client, method: &str, params: Value) -> Value {
    client.call(method, of_session(params))
}

pub(crate) fn error(client: &mut Client, method: &str, params: Value) -> Value {
    let answer = client.answer(method, of_session(params));
    assert!(answer["error"].is_object(), "{method}: {answer}");
    answer["error"].clone()
}

/// Has the session begin a turn that goes on until its permission is answered. The answer to it is `turn`.
pub(crate) fn busy(client: &mut Client) -> Value {
    client.send("TOOL:bash:{\"command\":\"touch new\",\"description\":\"d\"}\nSAY:turn");
    client.event("permission.requested")["requestId"].clone()
}

pub(crate) fn let_go(client: &mut Client, request: &Value) {
    let decision = json!({ "requestId": request, "result": { "kind": "approve-once" } });
    let done = call(client, "session.permissions.handlePendingPermissionRequest", decision);
    assert_eq!(done["success"], true);
}

pub(crate) fn waiting(client: &mut Client) -> Vec<(String, String)> {
    let pending = call(client, "session.queue.pendingItems", json!({}));
    let item = |item: &Value| {
        (item["id"].as_str().unwrap().to_owned(), item["displayText"].as_str().unwrap().to_owned())
    };
    pending["items"].as_array().unwrap().iter().map(item).collect()
}

pub(crate) fn texts(client: &mut Client) -> Vec<String> {
    waiting(client).into_iter().map(|(_, text)| text).collect()
}

fn with(value: &Value, key: &str, member: impl serde::Serialize) -> Value {
    let mut value = value.clone();
    value[key] = json!(member);
    value
}

/// The model's messages from here on until the session is idle.
pub(crate) fn said(client: &mut Client) -> Vec<String> {
    let mut said = Vec::new();
    loop {
        let message = client.until("the end", |message| {
            let kind = &message["params"]["event"]["type"];
            kind == "session.idle" || kind == "assistant.message"
        });
        let event = &message["params"]["event"];
        if event["type"] == "session.idle" {
            return said;
        }
        said.extend(event["data"]["content"].as_str().filter(|text| !text.is_empty()).map(str::to_owned));
    }
}

#[test]
fn opening_a_session_says_what_it_is() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let config = json!({ "model": "mock-model", "reasoningEffort": "low", "contextTier": "long_context" });
    let created = client.create(config);
    assert_eq!((&created["nativeSessionId"], &created["isRemote"]), (&json!(ID), &json!(false)));
    assert_eq!(created["mode"], "interactive");
    let state = json!({ "modelId": "mock-model", "reasoningEffort": "low", "contextTier": "long_context" });
    assert_eq!(created["modelState"], state);
    let nothing =
        json!({ "ui": { "elicitation": false, "mcpApps": false, "canvases": false }, "extensions": false });
    assert_eq!(created["capabilities"], nothing);
    client.send("SAY:x");
    assert_eq!(client.event("session.title_changed")["title"], "SAY:x");
    assert_eq!(client.event("session.idle")["mode"], "interactive");
    client.send("SAY:y");
    client.event("session.idle");
    call(&mut client, "session.detach", json!({}));
    let resumed = call(&mut client, "session.resume", json!({}));
    assert_eq!(resumed["startTime"], created["startTime"]);
    assert_eq!(resumed["modelState"]["modelId"], "mock-model");
    client.finish();
}

#[test]
fn what_waits_can_be_rearranged() {
    let (_scratch, _model, mut client) = session(json!({ "requestPermission": true }));
    let request = busy(&mut client);
    client.send("SAY:a");
    client.send("SAY:b");
    let message = json!({ "prompt": "SAY:c", "displayPrompt": "shown" });
    let inserted = call(&mut client, "session.queue.insertAt", json!({ "position": -1, "message": message }));
    let id = inserted["id"].clone();
    assert_eq!(texts(&mut client), ["shown", "SAY:a", "SAY:b"]);
    let moved = json!({ "id": id, "toPosition": 99 });
    assert_eq!(call(&mut client, "session.queue.moveItem", moved.clone())["changed"], true);
    assert_eq!(call(&mut client, "session.queue.moveItem", moved)["changed"], false);
    let copy = call(&mut client, "session.queue.duplicateAt", json!({ "id": id }))["id"].clone();
    let reworded = json!({ "id": copy, "prompt": "SAY:d" });
    assert_eq!(call(&mut client, "session.queue.updateText", reworded.clone())["updated"], true);
    assert_eq!(call(&mut client, "session.queue.updateText", reworded)["updated"], false);
    assert_eq!(texts(&mut client), ["SAY:a", "SAY:b", "shown", "SAY:d"]);
    let first = waiting(&mut client)[0].0.clone();
    assert_eq!(call(&mut client, "session.queue.removeAt", json!({ "id": first }))["removed"], true);
    let unknown = error(&mut client, "session.queue.removeAt", json!({ "id": first }));
    assert_eq!((&unknown["code"], &unknown["data"]["code"]), (&json!(-32602), &json!("unknown_id")));
    let hidden = json!({ "position": 0, "message": { "prompt": "x", "source": "system" } });
    assert_eq!(error(&mut client, "session.queue.insertAt", hidden)["code"], -32602);
    let_go(&mut client, &request);
    assert_eq!(said(&mut client), ["turn", "b", "c", "d"]);
    client.finish();
}

#[test]
fn a_message_that_waits_may_join_the_turn() {
    let (_scratch, model, mut client) = session(json!({ "requestPermission": true }));
    let request = busy(&mut client);
    client.send("also this");
    let id = waiting(&mut client)[0].0.clone();
    assert_eq!(call(&mut client, "session.queue.sendNow", json!({ "id": id }))["steered"], true);
    let pending = call(&mut client, "session.queue.pendingItems", json!({}));
    assert_eq!(pending["steeringMessages"], json!(["also this"]));
    let_go(&mut client, &request);
    client.event("session.idle");
    let turns = model.requests().len();
    assert_eq!(turns, 2, "it is part of the turn");
    client.finish();
}

#[test]
fn a_queue_that_is_paused_waits_until_it_is_not() {
    let (_scratch, _model, mut client) = session(json!({}));
    assert_eq!(call(&mut client, "session.queue.setDrainPaused", json!({ "paused": true })), Value::Null);
    call(&mut client, "session.send", json!({ "prompt": "SAY:one" }));
    let message = json!({ "position": 0, "message": { "prompt": "SAY:zero" } });
    call(&mut client, "session.queue.insertAt", message);
    assert_eq!(texts(&mut client), ["SAY:zero", "SAY:one"]);
    let processing = call(&mut client, "session.metadata.isProcessing", json!({}));
    assert_eq!(processing["processing"], false);
    call(&mut client, "session.queue.setDrainPaused", json!({ "paused": false }));
    assert_eq!(said(&mut client), ["zero", "one"]);
    client.finish();
}

#[test]
fn several_messages_are_answered_in_one_turn() {
    let (_scratch, model, mut client) = session(json!({}));
    let messages = json!([{ "prompt": "first", "displayPrompt": "shown" }, { "prompt": "SAY:both" }]);
    let sent = call(&mut client, "session.sendMessages", json!({ "messages": messages, "wait": true }));
    let ids = sent["messageIds"].as_array().unwrap().clone();
    for (id, content) in ids.iter().zip(["shown", "SAY:both"]) {
        let message = client.event("user.message");
        assert_eq!((&message["messageId"], &message["content"]), (id, &json!(content)));
    }
    assert_eq!(said(&mut client), ["both"]);
    let asked = model.last_request()["messages"].clone();
    let users = asked.as_array().unwrap().iter().filter(|message| message["role"] == "user").count();
    assert_eq!((model.requests().len(), users), (1, 2), "{asked}");
    let again = call(&mut client, "session.sendMessages", json!({ "messages": [], "wait": true }));
    assert_eq!(again["messageIds"], json!([]));
    assert_eq!(said(&mut client), ["both"]);
    let users = |request: &Value| request["messages"].to_string().matches("\"user\"").count();
    assert_eq!(users(&model.last_request()), 2, "nobody said anything");
    client.finish();
}

#[test]
fn messages_that_were_sent_together_wait_together() {
    let (_scratch, _model, mut client) = session(json!({ "requestPermission": true }));
    let request = busy(&mut client);
    client.send("SAY:last");
    let messages = json!([{ "prompt": "one" }, { "prompt": "SAY:two" }]);
    call(&mut client, "session.sendMessages", json!({ "messages": messages, "prepend": true }));
    let rows = waiting(&mut client);
    assert_eq!(
        rows.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(),
        ["one", "SAY:two", "SAY:last"]
    );
    assert_eq!(rows[0].0, rows[1].0, "they are one item");
    error(&mut client, "session.queue.updateText", json!({ "id": rows[0].0, "prompt": "x" }));
    let_go(&mut client, &request);
    assert_eq!(said(&mut client), ["turn", "two", "last"]);
    client.finish();
}

#[test]
fn a_turn_may_be_stopped_for_what_waits() {
    let (_scratch, _model, mut client) = session(json!({ "requestPermission": true }));
    assert_eq!(call(&mut client, "session.interruptMainTurn", json!({}))["interrupted"], false);
    busy(&mut client);
    client.send("SAY:next");
    let stopped = call(&mut client, "session.interruptMainTurn", json!({ "flushQueued": true }));
    assert_eq!(stopped["interrupted"], true);
    assert_eq!(client.event("assistant.message")["content"], "next");
    client.event("session.idle");
    busy(&mut client);
    client.send("SAY:gone");
    call(&mut client, "session.interruptMainTurn", json!({}));
    assert_eq!(client.event("session.idle")["aborted"], true);
    assert!(texts(&mut client).is_empty());
    client.finish();
}

#[test]
fn what_a_client_keeps_with_a_session_is_there_in_the_next_process() {
    let (scratch, model, mut client) = session(json!({}));
    let set = json!({ "set": { "app.color": "red", "app.size": "1" } });
    call(&mut client, "session.metadata.updateClientMetadata", set);
    let changed = json!({ "remove": ["app.size"], "set": { "app.shape": "round" } });
    let kept = json!({ "app.color": "red", "app.shape": "round" });
    assert_eq!(call(&mut client, "session.metadata.updateClientMetadata", changed), kept);
    let wrong = error(&mut client, "session.metadata.updateClientMetadata", json!({ "set": { "a": 1 } }));
    assert_eq!(wrong["code"], -32602);
    client.send("SAY:x");
    client.event("session.idle");
    client.finish();
    let mut client = Client::start(&scratch, &model);
    let asked = json!({ "sessionIds": ["nobody", ID], "keys": ["app.color"] });
    let answers = client.call("sessions.getClientMetadata", asked);
    assert_eq!(answers[0], json!({ "sessionId": "nobody", "status": "notFound" }));
    assert_eq!(answers[1], json!({ "sessionId": ID, "status": "ok", "metadata": { "app.color": "red" } }));
    assert!(!scratch.log(ID).contains("app.color"), "it is nobody else's");
    client.finish();
}

#[test]
fn a_log_is_read_page_by_page_as_it_was_at_first() {
    let (_scratch, _model, mut client) = session(json!({}));
    client.send("SAY:one");
    client.event("session.idle");
    let all = client.call("session.getMessages", of_session(json!({})))["events"].as_array().unwrap().clone();
    for direction in ["forward", "backward"] {
        let mut read: Vec<Value> = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let mut params = json!({ "max": 2, "direction": direction });
            if cursor.is_string() {
                params["cursor"] = cursor.clone();
            }
            let page = call(&mut client, "sessions.readPersistedEvents", params.clone());
            assert_eq!(page["cursorStatus"], "ok");
            let events = page["events"].as_array().unwrap().clone();
            assert!((1..=2).contains(&events.len()));
            match direction {
                "forward" => read.extend(events),
                _ => drop(read.splice(..0, events)),
            }
            if page["hasMore"] == false {
                break;
            }
            if cursor.is_string() {
                let again = call(&mut client, "sessions.readPersistedEvents", params);
                assert_eq!((&again["cursorStatus"], &again["hasMore"]), (&json!("expired"), &json!(false)));
            } else {
                // Events after the first page are not part of it.
                call(&mut client, "session.log", json!({ "message": "later" }));
            }
            cursor = page["cursor"].clone();
        }
        let expected = if direction == "forward" { all.clone() } else { read[..read.len()].to_vec() };
        assert_eq!(read.len(), expected.len());
        assert_eq!(read[..all.len()], all[..], "{direction}");
    }
    let missing = client.answer("sessions.readPersistedEvents", json!({ "sessionId": "nobody" }));
    assert!(missing["error"]["message"].as_str().unwrap().contains("unavailable for session nobody"));
    client.finish();
}

#[test]
fn readers_of_events_choose_which_and_from_which_end() {
    let (_scratch, _model, mut client) = session(json!({}));
    client.send("SAY:one");
    client.event("session.idle");
    let kinds = |page: &Value| -> Vec<String> {
        let events = page["events"].as_array().unwrap().iter();
        events.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    };
    let durable =
        call(&mut client, "session.eventLog.read", json!({ "includeEphemeral": false, "types": "*" }));
    assert!(!kinds(&durable).contains(&"session.idle".to_owned()), "{durable}");
    let newest = call(&mut client, "session.eventLog.read", json!({ "direction": "backward", "max": 2 }));
    assert_eq!(kinds(&newest).last().unwrap(), "assistant.turn_end");
    assert_eq!(newest["hasMore"], true);
    let older = json!({ "direction": "backward", "max": 1000, "cursor": newest["cursor"] });
    let older = call(&mut client, "session.eventLog.read", older);
    assert_eq!((kinds(&older)[0].as_str(), &older["hasMore"]), ("session.start", &json!(false)));
    let whole = kinds(&durable);
    assert_eq!([kinds(&older), kinds(&newest)].concat(), whole);
    let none = call(&mut client, "session.eventLog.read", json!({ "agentIds": ["nobody"] }));
    assert!(kinds(&none).is_empty());
    let asked = json!({ "types": ["user.message"], "agentScope": "primary" });
    assert_eq!(kinds(&call(&mut client, "session.eventLog.read", asked)), ["user.message"]);
    client.finish();
}

#[test]
fn the_files_of_a_session_are_made_moved_and_removed_and_nothing_else() {
    let (scratch, _model, mut client) = session(json!({}));
    let mut on = |method: &str, params: Value| -> Result<Value, String> {
        let answer = client.answer(&format!("session.workspaces.{method}"), of_session(params));
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(answer["error"]["message"].as_str().unwrap().to_owned()),
        }
    };
    assert!(on("createDirectory", json!({ "path": "a/b" })).unwrap_err().contains("ENOENT"));
    on("createDirectory", json!({ "path": "a/b", "recursive": true })).unwrap();
    assert!(on("createDirectory", json!({ "path": "a" })).unwrap_err().contains("EEXIST"));
    on("createFile", json!({ "path": "a/b/c.txt", "content": "text" })).unwrap();
    let stat = on("statFile", json!({ "path": "a/b/c.txt" })).unwrap();
    assert_eq!((&stat["isFile"], &stat["size"]), (&json!(true), &json!(4)));
    on("renamePath", json!({ "source": "a/b/c.txt", "destination": "d.txt" })).unwrap();
    assert!(on("removePath", json!({ "path": "a" })).unwrap_err().contains("directory"));
    on("removePath", json!({ "path": "a", "recursive": true })).unwrap();
    assert!(on("removePath", json!({ "path": "a" })).unwrap_err().contains("ENOENT"));
    on("removePath", json!({ "path": "a", "force": true })).unwrap();
    assert_eq!(on("listFiles", json!({})).unwrap()["files"], json!(["d.txt"]));
    let files = scratch.state().join("session-state").join(ID).join("files");
    std::os::unix::fs::symlink(scratch.work(), files.join("out")).unwrap();
    for path in ["..", "../events.jsonl", "/etc/passwd", ".", "", "out", "out/x"] {
        assert!(on("statFile", json!({ "path": path })).is_err(), "{path}");
        assert!(on("removePath", json!({ "path": path, "recursive": true })).is_err(), "{path}");
        assert!(on("createDirectory", json!({ "path": path })).is_err(), "{path}");
        assert!(on("renamePath", json!({ "source": "d.txt", "destination": path })).is_err(), "{path}");
    }
    assert_eq!(on("writeAutopilotObjective", json!({ "content": "x" })).unwrap()["operation"], "create");
    assert_eq!(on("readAutopilotObjective", json!({})).unwrap()["content"], "x");
    assert_eq!(on("deleteAutopilotObjective", json!({})).unwrap()["deleted"], true);
    assert_eq!(on("autopilotObjectiveExists", json!({})).unwrap()["exists"], false);
    let named = on("updateMetadata", json!({ "name": "mine" })).unwrap();
    assert_eq!(
        (&named["workspace"]["name"], &named["workspace"]["user_named"]),
        (&json!("mine"), &json!(true))
    );
    client.finish();
}

#[test]
fn models_are_chosen_with_how_they_speak_and_within_what_is_allowed() {
    let provider =
        |model: &ModelServer| json!({ "type": "openai", "wireApi": "responses", "baseUrl": model.url() });
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "model": "gpt-5", "provider": provider(&model), "reasoningSummary": "detailed" }));
    client.send("SAY:x");
    client.event("session.idle");
    assert_eq!(model.last_request()["reasoning"]["summary"], "detailed");
    let choice = json!({
        "modelId": "gpt-5.4", "reasoningEffort": "high", "reasoningSummary": "none", "verbosity": "low",
        "contextTier": "long_context",
    });
    let switched = call(&mut client, "session.model.switchTo", choice);
    assert_eq!((&switched["status"], &switched["deferred"]), (&json!("applied"), &json!(false)));
    let state = json!({ "modelId": "gpt-5.4", "reasoningEffort": "high", "contextTier": "long_context" });
    assert_eq!(switched["modelState"], state);
    assert_eq!(call(&mut client, "session.model.getCurrent", json!({})), state);
    let change = client.event("session.model_change");
    assert_eq!((&change["previousModel"], &change["verbosity"]), (&json!("gpt-5"), &json!("low")));
    client.send("SAY:y");
    client.event("session.idle");
    let request = model.last_request();
    assert_eq!(
        (&request["text"]["verbosity"], &request["reasoning"]),
        (&json!("low"), &json!({ "effort": "high" }))
    );
    let allowed = call(&mut client, "session.model.setAllowedModels", json!({ "allowedModels": ["gpt-5"] }));
    assert_eq!((&allowed["modelId"], &allowed["fallbackModel"]), (&json!("gpt-5"), &json!("gpt-5")));
    assert_eq!(client.event("session.model_change")["source"], "automatic");
    error(&mut client, "session.model.switchTo", json!({ "modelId": "gpt-5.4" }));
    error(&mut client, "session.model.setAllowedModels", json!({ "allowedModels": [] }));
    let all = call(&mut client, "session.model.setAllowedModels", json!({}));
    assert_eq!(all["effectiveAllowedModels"], json!(["*"]));
    assert_eq!(
        error(&mut client, "session.model.switchAutoTier", json!({ "autoTier": "fast" }))["code"],
        -32602
    );
    client.finish();
}

#[test]
fn a_session_plans_with_another_model_and_goes_back() {
    let (_scratch, _model, mut client) = session(json!({ "model": "mock-model" }));
    let plan = json!({ "mode": "plan", "planModelConfigured": true, "planModel": "planner", "expectedMode": "autopilot" });
    let unmet = call(&mut client, "session.mode.set", plan.clone());
    assert_eq!((&unmet["modeApplied"], &unmet["modelChanged"]), (&json!(false), &json!(false)));
    let plan = with(&plan, "expectedMode", "interactive");
    let planned = call(&mut client, "session.mode.set", with(&plan, "planReasoningEffort", "high"));
    assert_eq!((&planned["modeApplied"], &planned["modelChanged"]), (&json!(true), &json!(true)));
    let current = call(&mut client, "session.model.getCurrent", json!({}));
    let planner = json!({ "modelId": "planner", "reasoningEffort": "high" });
    assert_eq!(current, planner);
    call(&mut client, "session.mode.set", json!({ "mode": "interactive", "restorePlanModel": true }));
    let current = call(&mut client, "session.model.getCurrent", json!({}));
    assert_eq!(current, json!({ "modelId": "mock-model" }));
    client.finish();
}

/// The model's prompt and tools in a session with these settings.
fn told(config: &Value, options: &Value) -> Value {
    let (scratch, model) = stage();
    scratch.file("AGENTS.md", "Be kind to whales.");
    let mut client = Client::start(&scratch, &model);
    client.create(config.clone());
    if !options.is_null() {
        assert_eq!(call(&mut client, "session.options.update", options.clone())["success"], true);
    }
    client.send("SAY:x");
    client.event("session.idle");
    client.finish();
    model.last_request()
}

fn tools(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn instructions_of_files_can_be_left_out_and_others_added() {
    let whales = |request: &Value| request["messages"][0].to_string().contains("whales");
    assert!(whales(&told(&json!({}), &Value::Null)));
    assert!(!whales(&told(&json!({}), &json!({ "skipCustomInstructions": true }))), "as the SDKs send it");
    assert!(!whales(&told(&json!({ "skipCustomInstructions": true }), &Value::Null)));
    let organized = told(&json!({ "organizationCustomInstructions": "We are ACME." }), &Value::Null);
    assert!(whales(&organized) && organized["messages"][0].to_string().contains("We are ACME."));
}

#[test]
fn the_list_of_available_tools_is_the_last_word_unless_both_are_meant() {
    let lists = json!({ "availableTools": ["bash", "view"], "excludedTools": ["bash"] });
    assert_eq!(tools(&told(&lists, &Value::Null)), ["bash", "view"]);
    let both = with(&lists, "toolFilterPrecedence", "excluded");
    assert_eq!(tools(&told(&both, &Value::Null)), ["view"]);
    assert_eq!(tools(&told(&json!({}), &both)), ["view"], "on the way");
}

#[test]
fn a_session_can_do_without_skills_hooks_and_git() {
    let (scratch, model) = stage();
    let skill = "---\nname: whale\ndescription: about whales\n---\nbody";
    scratch.file("skills/whale/SKILL.md", skill);
    std::fs::create_dir_all(scratch.state().join("hooks")).unwrap();
    let hook = "{\"version\":1,\"hooks\":{\"preToolUse\":[{\"type\":\"command\",\"bash\":\"exit 1\"}]}}";
    std::fs::write(scratch.state().join("hooks/deny.json"), hook).unwrap();
    std::fs::create_dir_all(scratch.work().join(".git")).unwrap();
    std::fs::write(scratch.work().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let run = |config: Value| {
        let mut client = Client::start(&scratch, &model);
        client.create(with(&config, "skillDirectories", [scratch.work().join("skills")]));
        call(&mut client, "session.permissions.setApproveAll", json!({ "enabled": true }));
        client.send("TOOL:bash:{\"command\":\"echo ran\",\"description\":\"d\"}\nSAY:x");
        let skills = client.event("session.skills_loaded")["skills"].as_array().unwrap().len();
        let ran = client.event("tool.execution_complete")["success"].clone();
        client.event("session.idle");
        client.call("session.delete", of_session(json!({})));
        client.finish();
        let told = model.last_request()["messages"][0].to_string();
        (skills, ran, told.contains("Git repository root"))
    };
    let usual = run(json!({}));
    assert_eq!((usual.0, &usual.1), (1, &json!(false)), "the skill is there and the hook refuses");
    let bare = run(json!({
        "enableSkills": false, "enableFileHooks": false, "enableHostGitOperations": false,
    }));
    assert_eq!((bare.0, &bare.1, bare.2), (0, &json!(true), false));
}

#[test]
fn clients_change_their_tools_and_call_tools_themselves() {
    let (scratch, model, mut client) = session(json!({ "requestPermission": true }));
    let own = json!({ "name": "own", "description": "d", "parameters": { "type": "object" } });
    assert_eq!(call(&mut client, "session.tools.set", json!({ "tools": [own] })), json!({}));
    client.send("SAY:x");
    client.event("session.idle");
    assert!(tools(&model.last_request()).contains(&"own".to_owned()));
    call(&mut client, "session.tools.set", json!({ "tools": [] }));
    client.send("SAY:y");
    client.event("session.idle");
    assert!(!tools(&model.last_request()).contains(&"own".to_owned()));
    let defined = call(&mut client, "session.tools.getBuiltinDescriptors", json!({}));
    assert!(defined["tools"].to_string().contains("\"bash\""));
    let missing = call(&mut client, "session.tools.execute", json!({ "name": "nope", "arguments": {} }));
    assert_eq!(missing["resultType"], "failure");
    let write = json!({ "path": scratch.work().join("made.txt"), "file_text": "text" });
    for (decision, kind, made) in [("reject", "rejected", false), ("approve-once", "success", true)] {
        let params = of_session(json!({ "name": "create", "arguments": write }));
        let running = client.begin("session.tools.execute", params);
        let request = client.event("permission.requested")["requestId"].clone();
        let pending = call(&mut client, "session.permissions.pendingRequests", json!({}));
        assert_eq!(pending["items"][0]["requestId"], request);
        let answer = json!({ "requestId": request, "result": { "kind": decision } });
        call(&mut client, "session.permissions.handlePendingPermissionRequest", answer);
        assert_eq!(client.answer_to(running)["result"]["resultType"], kind);
        assert_eq!(scratch.work().join("made.txt").exists(), made);
    }
    call(&mut client, "session.permissions.setRequired", json!({ "required": false }));
    let unasked = json!({ "path": scratch.work().join("more.txt"), "file_text": "text" });
    let denied =
        call(&mut client, "session.tools.execute", json!({ "name": "create", "arguments": unasked }));
    assert_eq!(denied["resultType"], "denied", "nobody is asked any more");
    client.finish();
}

#[test]
fn work_of_clients_is_listed_and_stopped_by_them() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let task =
        json!({ "type": "client", "clientTaskId": "k", "description": "outside", "cancellable": true });
    client.create(json!({}));
    assert_eq!(error(&mut client, "session.tasks.register", task.clone())["message"], "TASK_UNSUPPORTED");
    let hello = client.call("connect", json!({ "supportedTaskKinds": ["agent", "shell", "client"] }));
    assert_eq!(hello["taskKinds"], json!(["agent", "shell", "client"]));
    let registered = call(&mut client, "session.tasks.register", task.clone());
    assert_eq!(registered["created"], true);
    client.event("session.background_tasks_changed");
    assert_eq!(call(&mut client, "session.tasks.register", task)["created"], false);
    let id = registered["task"]["id"].clone();
    let progress = json!({ "kind": "progress", "message": "half", "phase": "p", "percentage": 50 });
    let update = json!({ "id": id, "sequence": 1, "update": progress });
    assert_eq!(call(&mut client, "session.tasks.update", update)["applied"], true);
    let told = call(&mut client, "session.tasks.getProgress", json!({ "id": id }));
    assert_eq!((&told["progress"]["phase"], &told["progress"]["lastMessage"]), (&json!("p"), &json!("half")));
    let cancelling = client.begin("session.tasks.cancel", of_session(json!({ "id": id })));
    let asked = client.until("tasks.cancel", |message| message["method"] == "tasks.cancel");
    assert_eq!((&asked["params"]["id"], &asked["params"]["clientTaskId"]), (&id, &json!("k")));
    client.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "cancelled": true } }));
    assert_eq!(client.answer_to(cancelling)["result"]["cancelled"], true);
    let listed = call(&mut client, "session.tasks.list", json!({}));
    assert_eq!(listed["tasks"][0]["status"], "cancelled");
    let late = json!({ "id": id, "sequence": 2, "update": { "kind": "completed" } });
    let late = error(&mut client, "session.tasks.update", late);
    assert_eq!((&late["code"], &late["data"]["reason"]), (&json!(-32012), &json!("terminal")));
    assert_eq!(call(&mut client, "session.tasks.remove", json!({ "id": id }))["removed"], true);
    client.finish();
}

#[test]
fn permissions_change_for_all_to_see() {
    let (_scratch, _model, mut client) = session(json!({}));
    let all = call(&mut client, "session.permissions.setMode", json!({ "mode": "allow-all" }));
    assert_eq!(all, json!({ "success": true, "mode": "allow-all" }));
    let changed = client.event("session.permissions_changed");
    assert_eq!(changed, json!({ "previousMode": "manual", "mode": "allow-all" }));
    let assisted = call(&mut client, "session.permissions.setMode", json!({ "mode": "assisted" }));
    assert_eq!(assisted, json!({ "success": false, "mode": "allow-all" }));
    error(&mut client, "session.permissions.setMode", json!({ "mode": "bogus" }));
    client.finish();
}

#[test]
fn a_session_that_failed_where_it_is_used_says_so() {
    let (scratch, _model, mut client) = session(json!({}));
    client.send("SAY:x");
    client.event("session.idle");
    call(&mut client, "session.shutdown", json!({ "type": "error", "reason": "the window crashed" }));
    let log = scratch.log(ID);
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(last["type"], "session.shutdown");
    assert_eq!(
        (&last["data"]["shutdownType"], &last["data"]["errorReason"]),
        (&json!("error"), &json!("the window crashed"))
    );
    client.finish();
}

#[test]
fn lists_tell_as_much_as_they_are_asked_to() {
    let (scratch, model, mut client) = session(json!({ "clientName": "app" }));
    client.send("SAY:x");
    client.event("session.idle");
    let full = client.call("sessions.list", json!({}));
    assert_eq!(
        (&full["sessions"][0]["name"], &full["sessions"][0]["clientName"]),
        (&json!("SAY:x"), &json!("app"))
    );
    let brief = client.call("sessions.list", json!({ "metadataLimit": 0 }));
    assert!(brief["sessions"][0].get("name").is_none() && brief["sessions"][0]["sessionId"] == ID);
    assert_eq!(client.call("sessions.list", json!({ "source": "remote" }))["sessions"], json!([]));
    let note = json!({ "message": "m", "tip": "t", "url": "https://x" });
    call(&mut client, "session.log", note);
    assert_eq!(client.event("session.info")["tip"], "t");
    error(&mut client, "session.log", json!({ "message": "m", "level": "bogus" }));
    client.finish();
    let mut client = Client::of(hangar(&scratch, &model));
    let known = client.call("models.getBuiltInCatalog", json!({}));
    assert!(known["models"].to_string().contains("gpt-5"));
    assert!(client.call("commands.list", json!({}))["commands"].to_string().contains("compact"));
    assert_eq!(client.call("managedSettings.read", json!({})), json!({}));
    client.finish();
}

#[test]
fn a_tool_may_end_the_turn_and_have_the_conversation_begin_anew() {
    let tool = json!({ "name": "own", "description": "d", "skipPermission": true, "isTerminal": true });
    let (scratch, model, mut client) = session(json!({ "tools": [tool] }));
    error(&mut client, "session.history.clearContext", json!({ "prompt": "SAY:fresh" }));
    let answer = |client: &mut Client| {
        let request = client.event("external_tool.requested")["requestId"].clone();
        json!({ "requestId": request, "result": "done" })
    };
    client.send("TOOL:own:{}\nSAY:not said");
    let done = answer(&mut client);
    call(&mut client, "session.tools.handlePendingToolCall", done);
    assert!(said(&mut client).is_empty(), "the model is not asked again");
    client.send("TOOL:own:{}\nSAY:not said");
    let done = answer(&mut client);
    let cleared = call(&mut client, "session.history.clearContext", json!({ "prompt": "SAY:fresh" }));
    let messages = cleared["messagesCleared"].clone();
    assert!(messages.as_u64().unwrap() >= 4, "{messages}");
    assert_eq!(client.event("session.context_cleared")["messagesCleared"], messages);
    call(&mut client, "session.tools.handlePendingToolCall", done);
    assert_eq!(said(&mut client), ["fresh"]);
    let request = model.last_request()["messages"].clone();
    assert_eq!(request.as_array().unwrap().len(), 2, "the system and the prompt: {request}");
    client.finish();
    let mut client = Client::start(&scratch, &model);
    call(&mut client, "session.resume", json!({}));
    client.send("SAY:on");
    client.event("session.idle");
    let request = model.last_request()["messages"].to_string();
    assert!(request.contains("fresh") && !request.contains("not said"), "{request}");
    client.finish();
}
