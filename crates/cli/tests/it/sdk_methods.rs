//! Methods of the server beside sending prompts: plans, forms, commands, logins, todos, kept sessions.

use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::{Client, ID, of_session, session, stage};

#[test]
fn a_plan_is_shown_to_the_client_and_approved() {
    let (_scratch, model, mut client) = session(json!({ "requestExitPlanMode": true }));
    client.call("session.plan.update", of_session(json!({ "content": "# The plan" })));
    let prompt = "TOOL:exit_plan_mode:{\"summary\":\"s\"}\nSAY:done";
    client.call("session.send", of_session(json!({ "prompt": prompt, "agentMode": "plan" })));
    let asked = client.until("exitPlanMode.request", |message| message["method"] == "exitPlanMode.request");
    assert_eq!(
        (&asked["params"]["planContent"], &asked["params"]["sessionId"]),
        (&json!("# The plan"), &json!(ID))
    );
    let decision = json!({ "approved": true, "selectedAction": "interactive", "feedback": "good" });
    client.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": decision }));
    assert_eq!(client.event("exit_plan_mode.completed")["feedback"], "good");
    client.event("session.idle");
    assert_eq!(client.call("session.mode.get", of_session(json!({}))), "interactive");
    assert!(model.last_request()["messages"].to_string().contains("Plan approved!"));
    client.finish();
}

#[test]
fn a_form_goes_to_whoever_can_show_it_and_back() {
    let (_scratch, _model, mut client) = session(json!({ "requestElicitation": true }));
    let schema = json!({ "type": "object", "properties": { "answer": { "type": "string" } } });
    let question = of_session(json!({ "message": "which?", "requestedSchema": schema }));
    client.write(
        &json!({ "jsonrpc": "2.0", "id": "form", "method": "session.ui.elicitation", "params": question }),
    );
    let asked = client.event("elicitation.requested");
    assert_eq!((&asked["message"], &asked["requestedSchema"]), (&json!("which?"), &schema));
    let result = json!({ "action": "accept", "content": { "answer": "this" } });
    let answer = of_session(json!({ "requestId": asked["requestId"], "result": result }));
    assert_eq!(client.call("session.ui.handlePendingElicitation", answer.clone())["success"], true);
    assert_eq!(
        client.call("session.ui.handlePendingElicitation", answer)["success"],
        false,
        "answered already"
    );
    let answered = client.until("the answer", |message| message["id"] == "form");
    assert_eq!(answered["result"], result);
    client.finish();
}

#[test]
fn what_nobody_asked_cannot_be_answered() {
    let (_scratch, _model, mut client) = session(json!({}));
    for (method, response) in [
        ("session.ui.handlePendingUserInput", json!({ "answer": "a", "wasFreeform": true })),
        ("session.ui.handlePendingExitPlanMode", json!({ "approved": true })),
        ("session.ui.handlePendingAutoModeSwitch", json!("yes")),
        ("session.ui.handlePendingSampling", json!({})),
        ("session.ui.handlePendingSessionLimitsExhausted", json!({ "action": "cancel" })),
    ] {
        let params = of_session(json!({ "requestId": "missing", "response": response }));
        assert_eq!(client.call(method, params)["success"], false, "{method}");
    }
    let form = client.answer("session.ui.elicitation", of_session(json!({ "message": "m" })));
    assert!(form["error"]["message"].as_str().unwrap().contains("forms"), "{form}");
    client.finish();
}

#[test]
fn a_question_on_the_side_leaves_no_trace_in_the_conversation() {
    let (_scratch, model, mut client) = session(json!({}));
    let answer = client.call("session.ui.ephemeralQuery", of_session(json!({ "question": "SAY:aside" })));
    assert_eq!(answer["answer"], "aside");
    client.send("SAY:main");
    client.event("session.idle");
    assert!(!model.last_request()["messages"].to_string().contains("aside"));
    client.finish();
}

#[test]
fn a_client_runs_commands_where_the_session_works() {
    let (_scratch, _model, mut client) = session(json!({}));
    let run = |client: &mut Client, command: &str| {
        let params = of_session(json!({ "requestId": "r", "command": command }));
        client.call("session.shell.executeUserRequested", params)
    };
    let done = run(&mut client, "echo hello && pwd");
    assert_eq!((&done["success"], &done["exitCode"]), (&json!(true), &json!(0)));
    let output = done["output"].as_str().unwrap();
    assert!(output.starts_with("hello\n") && !output.contains("shellId"), "{output}");
    let failed = run(&mut client, "exit 3");
    assert_eq!((&failed["success"], &failed["exitCode"]), (&json!(false), &json!(3)));
    let unknown = of_session(json!({ "requestId": "r" }));
    assert_eq!(client.call("session.shell.cancelUserRequested", unknown)["cancelled"], false);
    let started = client.call("session.shell.exec", of_session(json!({ "command": "sleep 60", "cwd": "/" })));
    let kill = of_session(json!({ "processId": started["processId"] }));
    assert_eq!(client.call("session.shell.kill", kill)["killed"], true);
    let exit = client.until("shell.exit", |message| message["method"] == "shell.exit");
    assert_eq!(exit["params"]["processId"], started["processId"]);
    client.finish();
}

#[test]
fn todos_are_listed_with_what_they_wait_for() {
    let (_scratch, _model, mut client) = session(json!({}));
    let empty = client.call("session.plan.readSqlTodosWithDependencies", of_session(json!({})));
    assert_eq!(empty, json!({ "rows": [], "dependencies": [] }));
    client.send(
        "TOOL:sql:{\"description\":\"d\",\"query\":\"INSERT INTO todos (id, title) VALUES ('a', 'A'), ('b', 'B'); \
         INSERT INTO todo_deps VALUES ('b', 'a')\"}\nSAY:done",
    );
    client.event("session.todos_changed");
    client.event("session.idle");
    let board = client.call("session.plan.readSqlTodosWithDependencies", of_session(json!({})));
    assert_eq!((&board["rows"][1]["id"], &board["rows"][1]["status"]), (&json!("b"), &json!("pending")));
    assert_eq!(board["dependencies"], json!([{ "todoId": "b", "dependsOn": "a" }]));
    let rows = client.call("session.plan.readSqlTodos", of_session(json!({})));
    assert_eq!(rows["rows"], board["rows"]);
    client.finish();
}

#[test]
fn providers_may_be_added_on_the_way() {
    let (_scratch, model, mut client) = session(json!({}));
    let provider = json!({ "name": "own", "type": "openai", "baseUrl": model.url() });
    let listed = json!({ "id": "tiny", "provider": "own", "name": "Tiny", "wireModel": "tiny-wire" });
    let add = of_session(json!({ "providers": [provider], "models": [listed] }));
    let added = client.call("session.provider.add", add.clone());
    assert_eq!(added["models"][0]["id"], "own/tiny");
    assert!(client.answer("session.provider.add", add)["error"].is_object(), "the name is taken");
    let list = client.call("session.model.list", of_session(json!({})));
    assert!(list["list"].to_string().contains("own/tiny"));
    client.call("session.model.switchTo", of_session(json!({ "modelId": "own/tiny" })));
    client.send("SAY:x");
    client.event("session.idle");
    assert_eq!(model.last_request()["model"], "tiny-wire");
    let refused = client.answer("session.provider.getEndpoint", of_session(json!({})));
    assert!(refused["error"]["message"].as_str().unwrap().contains("COPILOT_ALLOW_GET_PROVIDER_ENDPOINT"));
    client.finish();
}

#[test]
fn settings_are_kept_and_names_that_mean_nothing_refused() {
    let (scratch, _model, mut client) = session(json!({}));
    let get =
        |client: &mut Client| client.call("user.settings.get", json!({}))["settings"]["askUser"].clone();
    assert_eq!(get(&mut client), json!({ "value": true, "default": true, "isDefault": true }));
    client.call("user.settings.set", json!({ "settings": { "askUser": false } }));
    assert_eq!(get(&mut client)["value"], false);
    for wrong in [json!({ "moon": 1 }), json!({ "askUser": "maybe" })] {
        assert!(client.answer("user.settings.set", json!({ "settings": wrong }))["error"].is_object());
    }
    client.call("user.settings.set", json!({ "settings": { "askUser": null } }));
    assert_eq!(get(&mut client)["isDefault"], true);
    client.call("user.settings.reload", json!({}));
    client.finish();
    assert!(!scratch.home().join("settings.json.tmp").exists());
}

#[test]
fn kept_sessions_are_found_measured_and_cleared_away() {
    let (_scratch, _model, mut client) = session(json!({}));
    client.send("SAY:x");
    client.event("session.idle");
    client.call("sessions.save", of_session(json!({})));
    let ids = json!({ "sessionIds": [ID, "missing"] });
    assert_eq!(client.call("sessions.checkInUse", ids.clone())["inUse"], json!([ID]));
    client.call("sessions.close", of_session(json!({})));
    assert_eq!(client.call("sessions.checkInUse", ids)["inUse"], json!([]));
    assert_eq!(client.call("sessions.findByPrefix", json!({ "prefix": &ID[..8] }))["sessionId"], ID);
    assert_eq!(client.call("sessions.findByPrefix", json!({ "prefix": "" })), json!({}));
    assert_eq!(client.call("sessions.getLastForContext", json!({}))["sessionId"], ID);
    assert!(client.call("sessions.getSizes", json!({}))["sizes"][ID].as_u64().unwrap() > 0);
    let enriched = client.call("sessions.enrichMetadata", json!({ "sessions": [{ "sessionId": ID }] }));
    assert!(enriched["sessions"][0]["startTime"].is_string());
    let prune = json!({ "olderThanDays": 0, "dryRun": true, "includeNamed": true });
    assert_eq!(client.call("sessions.pruneOld", prune)["deleted"], json!([]));
    let opened = client.call("sessions.open", json!({ "kind": "resume", "sessionId": ID }));
    assert_eq!(opened, json!({ "status": "resumed", "sessionId": ID }));
    let lost = client.call("sessions.open", json!({ "kind": "resume", "sessionId": "missing" }));
    assert_eq!(lost["status"], "not_found");
    let freed = client.call("sessions.bulkDelete", json!({ "sessionIds": [ID, "missing"] }));
    assert!(freed["freedBytes"][ID].as_u64().unwrap() > 0 && freed["freedBytes"]["missing"] == 0);
    assert_eq!(client.call("sessions.list", json!({}))["sessions"], json!([]));
    client.finish();
}

#[test]
fn what_fills_the_context_is_told() {
    let (_scratch, _model, mut client) = session(json!({}));
    let idle = client.call("session.metadata.activity", of_session(json!({})));
    assert_eq!(idle, json!({ "hasActiveWork": false, "abortable": false }));
    client.send("SAY:x");
    client.event("session.idle");
    let filled = client.call("session.metadata.getContextAttribution", of_session(json!({})));
    let filled = &filled["contextAttribution"];
    let sum: u64 = (0..3).map(|at| filled["entries"][at]["tokens"].as_u64().unwrap()).sum();
    assert_eq!(filled["totalTokens"], sum);
    let heavy = client.call("session.metadata.getContextHeaviestMessages", of_session(json!({ "limit": 1 })));
    assert_eq!(
        (heavy["messages"].as_array().unwrap().len(), &heavy["messages"][0]["role"]),
        (1, &json!("user"))
    );
    client.finish();
}

#[test]
fn a_trace_goes_from_the_client_to_its_tools() {
    let tool = json!({ "name": "lookup", "parameters": { "type": "object" }, "skipPermission": true });
    let (_scratch, model, mut client) = session(json!({ "tools": [tool], "traceparent": "00-create-1-01" }));
    let ask = |client: &mut Client, trace: Value| {
        let mut params = of_session(json!({ "prompt": "TOOL:lookup:{}\nSAY:done" }));
        params.as_object_mut().unwrap().extend(trace.as_object().unwrap().clone());
        client.call("session.send", params);
        let asked = client.event("external_tool.requested");
        let answer = of_session(json!({ "requestId": asked["requestId"], "result": "r" }));
        client.call("session.tools.handlePendingToolCall", answer);
        client.event("session.idle");
        asked
    };
    let own = ask(&mut client, json!({ "traceparent": "00-send-2-01", "tracestate": "a=b" }));
    assert_eq!((&own["traceparent"], &own["tracestate"]), (&json!("00-send-2-01"), &json!("a=b")));
    assert!(!model.requests().is_empty());
    assert_eq!(ask(&mut client, json!({}))["traceparent"], "00-create-1-01");
    client.finish();
}

#[test]
fn features_are_told_by_one_method_and_one_command() {
    let (scratch, model, mut client) = session(json!({}));
    let listed = client.call("hangar.features.list", json!({}));
    let sql = listed["features"].as_array().unwrap().iter().find(|feature| feature["name"] == "sql").unwrap();
    assert_eq!((&sql["stage"], &sql["enabled"]), (&json!("on"), &json!(true)));
    let names = client.call("tools.list", json!({})).to_string();
    assert!(names.contains("\"sql\""), "{names}");
    client.finish();

    let run = hangar(&scratch, &model)
        .env("HANGAR_FEATURES", "-sql")
        .args(["features", "--json"])
        .finish()
        .expect_exit(0);
    let listed: Value = serde_json::from_str(&run.stdout).unwrap();
    let sql = listed.as_array().unwrap().iter().find(|feature| feature["name"] == "sql").unwrap();
    assert_eq!(sql["enabled"], false);
    hangar(&scratch, &model).env("HANGAR_FEATURES", "-sql").args(["-p", "SAY:x"]).finish().expect_exit(0);
    let tools = model.last_request()["tools"].to_string();
    assert!(!tools.contains("\"sql\"") && tools.contains("\"bash\""), "{tools}");
    let run =
        hangar(&scratch, &model).env("HANGAR_FEATURES", "-plan").args(["--plan", "-p", "SAY:x"]).finish();
    assert!(run.expect_exit(1).stderr.contains("`plan` is off"));
    let run = hangar(&scratch, &model).env("HANGAR_FEATURES", "warp").args(["features"]).finish();
    assert!(run.expect_exit(1).stderr.contains("`warp` is not a feature"));
}

#[test]
fn a_session_at_rest_is_closed_and_can_be_resumed() {
    let (scratch, model) = stage();
    let mut client = Client::start_with(&scratch, &model, &["--session-idle-timeout", "1"]);
    client.create(json!({}));
    client.send("SAY:first");
    client.event("session.shutdown");
    client.call("session.resume", of_session(json!({})));
    assert_eq!(client.event("session.resume")["sessionWasActive"], false);
    client.send("SAY:second");
    assert_eq!(client.event("assistant.message")["content"], "second");
    client.finish();
}

#[test]
fn a_server_that_ends_answers_nothing_more() {
    let (_scratch, _model, mut client) = session(json!({}));
    client.call("runtime.shutdown", json!({}));
    let late = client.answer("ping", json!({}));
    assert_eq!(
        (&late["error"]["code"], &late["error"]["message"]),
        (&json!(-32000), &json!("SERVER_SHUTTING_DOWN"))
    );
    client.finish();
}

/// Answers the server's next request of a method with an empty result, and returns its parameters.
fn take(client: &mut Client, method: &str) -> Value {
    let mut asked = client.until(method, |message| message["method"] == method);
    client.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {} }));
    asked["params"].take()
}

#[test]
fn a_model_is_spoken_to_on_a_socket_that_the_client_opens() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.call("llmInference.setProvider", json!({}));
    let provider = json!({
        "type": "openai", "wireApi": "responses", "transport": "websockets", "baseUrl": "https://model.invalid/v1",
    });
    client.create(json!({ "model": "gpt-5", "provider": provider, "traceparent": "00-t-1-01" }));
    client.send("hello");
    let start = take(&mut client, "llmInference.httpRequestStart");
    assert_eq!(
        (&start["transport"], &start["url"]),
        (&json!("websocket"), &json!("wss://model.invalid/v1/responses"))
    );
    assert_eq!(start["headers"]["traceparent"], json!(["00-t-1-01"]));
    let id = start["requestId"].clone();
    let head = json!({ "requestId": id, "status": 101, "headers": {} });
    assert_eq!(client.call("llmInference.httpResponseStart", head)["accepted"], true);
    let said = take(&mut client, "llmInference.httpRequestChunk");
    let message: Value = serde_json::from_str(said["data"].as_str().unwrap()).unwrap();
    assert_eq!((&message["type"], &said["end"]), (&json!("response.create"), &json!(false)));
    for event in [
        json!({ "type": "response.created", "response": { "id": "r" } }),
        json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "by socket" }),
        json!({ "type": "response.completed", "response": { "id": "r", "status": "completed", "output": [] } }),
    ] {
        let chunk = json!({ "requestId": id, "data": event.to_string(), "end": false });
        assert_eq!(client.call("llmInference.httpResponseChunk", chunk)["accepted"], true);
    }
    assert_eq!(client.event("assistant.message")["content"], "by socket");
    client.kill();
}

#[test]
fn a_document_is_sent_as_one_with_the_wish_for_citations() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let provider = json!({ "type": "anthropic", "baseUrl": model.url(), "apiKey": "k" });
    client.create(json!({ "model": "claude-sonnet-4.5", "provider": provider, "enableCitations": true }));
    let pdf =
        json!({ "type": "blob", "data": "JVBERg==", "mimeType": "application/pdf", "displayName": "a.pdf" });
    client.call("session.send", of_session(json!({ "prompt": "SAY:read", "attachments": [pdf] })));
    client.event("session.idle");
    let request = model.last_request();
    let parts = request["messages"][0]["content"].as_array().unwrap();
    let document = parts.iter().find(|part| part["type"] == "document").unwrap();
    assert_eq!((&document["title"], &document["citations"]), (&json!("a.pdf"), &json!({ "enabled": true })));
    client.finish();
}

#[test]
fn an_agent_is_given_other_words_until_the_session_is_opened_anew() {
    let agent = json!({ "name": "poet", "description": "d", "prompt": "You write prose." });
    let (_scratch, model, mut client) = session(json!({ "customAgents": [agent], "agent": "poet" }));
    client.send("SAY:one");
    client.event("session.idle");
    assert!(model.last_request()["messages"][0].to_string().contains("You write prose."));
    client.call("session.agent.setPrompt", of_session(json!({ "id": "poet", "prompt": "You write verse." })));
    client.send("SAY:two");
    client.event("session.idle");
    let system = model.last_request()["messages"][0].to_string();
    assert!(system.contains("You write verse.") && !system.contains("prose"), "{system}");
    let refused =
        client.answer("session.agent.setPrompt", of_session(json!({ "id": "nobody", "prompt": "" })));
    assert!(refused["error"]["message"].as_str().unwrap().contains("Agent not found: nobody"));
    client.finish();
}

#[test]
fn a_session_with_a_folder_of_its_own_is_configured_and_kept_there() {
    let (scratch, model) = stage();
    let own = scratch.root().join("own-home");
    let skill = own.join("skills/greeting");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: greeting\ndescription: g\n---\nhello").unwrap();
    let mut client = Client::start(&scratch, &model);
    let created = client.create(json!({ "configDir": own, "enableConfigDiscovery": true }));
    assert_eq!(created["workspacePath"], json!(own.join("session-state").join(ID)));
    client.send("SAY:hi");
    client.event("session.idle");
    assert!(model.last_request()["tools"].to_string().contains("greeting"), "its skills are not there");
    assert!(client.kinds().contains(&"user.message".to_owned()));
    client.call("session.destroy", of_session(json!({})));
    assert!(own.join("session-state").join(ID).join("events.jsonl").is_file());
    assert!(!scratch.state().join("session-state").join(ID).exists());
    client.call("session.resume", of_session(json!({ "configDir": own })));
    client.call("session.delete", of_session(json!({})));
    assert!(!own.join("session-state").join(ID).exists());
    client.finish();
}

#[test]
fn a_message_may_be_shown_waited_for_and_answered_in_a_form() {
    let (_scratch, model, mut client) = session(json!({}));
    let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } } });
    let message = json!({
        "prompt": "SAY:{}", "displayPrompt": "Is it right?", "wait": true, "agentMode": "shell",
        "responseFormat": { "type": "json_schema", "jsonSchema": { "name": "verdict", "schema": schema } },
    });
    client.call("session.send", of_session(message.clone()));
    // It has been waited for, so all is there to be read.
    let told = client.event("user.message");
    assert_eq!((&told["content"], &told["agentMode"]), (&json!("Is it right?"), &json!("shell")));
    client.event("session.idle");
    let request = model.last_request();
    assert_eq!(request["response_format"]["json_schema"], json!({ "name": "verdict", "schema": schema }));
    assert!(request["messages"].to_string().contains("SAY:{}"));
    assert_eq!(client.call("session.mode.get", of_session(json!({}))), "interactive");

    let mut steering = message;
    steering["mode"] = json!("immediate");
    let refused = client.answer("session.send", of_session(steering));
    let refused = refused["error"]["message"].as_str().unwrap();
    assert!(refused.contains("responseFormat cannot be specified with mode: immediate"), "{refused}");
    client.finish();
}

#[test]
fn people_are_shown_the_request_of_a_fleet_and_the_model_how_to_lead_it() {
    let (_scratch, model, mut client) = session(json!({}));
    client.call("session.fleet.start", of_session(json!({ "prompt": "SAY:led", "wait": true })));
    assert_eq!(client.event("user.message")["content"], "Fleet deployed: SAY:led");
    let messages = model.last_request()["messages"].to_string();
    assert!(messages.contains("Dispatch sub-agents (via the task tool) in parallel"), "{messages}");
    assert!(messages.contains("User request: SAY:led"), "{messages}");
    client.finish();
}

#[test]
fn clients_are_told_whose_a_call_is_and_providers_that_do_not_bill_by_it_are_not() {
    let (_scratch, model, mut client) = session(json!({ "requestPermission": true }));
    client.call("session.permissions.setApproveAll", of_session(json!({ "enabled": true })));
    client.send("TOOL:task:{\"agent_type\":\"explore\",\"name\":\"n\",\"description\":\"d\",\"prompt\":\"SAY:sub\",\"mode\":\"sync\"}\nSAY:x");
    for initiator in ["user", "sub-agent", "agent"] {
        assert_eq!(client.event("assistant.usage")["initiator"], initiator);
    }
    client.event("session.idle");
    client.call("session.history.compact", of_session(json!({})));
    client.call("session.ui.ephemeralQuery", of_session(json!({ "question": "what?" })));
    let requests = model.requests();
    assert_eq!(requests.len(), 5);
    for name in ["x-initiator", "x-interaction-type"] {
        assert!(requests.iter().all(|request| request.headers[name].is_null()), "{name}");
    }
    client.finish();
}

#[test]
fn a_command_without_a_limit_is_not_ended_at_once() {
    let (scratch, _model, mut client) = session(json!({}));
    let run = "while ! test -e go; do sleep 0.01; done; echo went";
    let params = json!({ "command": run, "cwd": scratch.work(), "timeout": 0 });
    client.call("session.shell.exec", of_session(params));
    std::fs::write(scratch.work().join("go"), "").expect("a file");
    let ended = client.until("shell.exit", |message| message["method"] == "shell.exit");
    assert_eq!(ended["params"]["output"], "went");
    client.finish();
}

#[test]
fn sub_agents_have_the_models_that_a_client_sets() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    let task = json!({ "name": "t", "agent_type": "explore", "description": "d", "prompt": "SAY:found", "mode": "sync" });
    let mut models_after = |subagents: Value| -> Vec<Value> {
        let params = json!({ "sessionId": ID, "subagents": subagents });
        client.call("session.tools.updateSubagentSettings", params);
        let before = model.requests().len();
        client.send(&format!("TOOL:task:{task}\nSAY:done"));
        client.event("session.idle");
        model.requests().into_iter().skip(before).map(|request| request.body["model"].clone()).collect()
    };
    let other = json!({ "agents": { "explore": { "model": "other" } } });
    assert_eq!(models_after(other), ["mock-model", "other", "mock-model"]);
    let settings =
        |client: &mut Client| client.call("session.tools.getSubagentSettings", of_session(json!({})));
    assert_eq!(models_after(Value::Null), ["mock-model", "mock-model", "mock-model"]);
    assert_eq!(settings(&mut client), json!({ "subagents": null }));
    let given = json!({ "agents": { "explore": { "model": "other" } }, "disabledSubagents": ["task"], "maxDepth": 2 });
    client.call("session.tools.updateSubagentSettings", of_session(json!({ "subagents": given })));
    assert_eq!(settings(&mut client), json!({ "subagents": given }));
    client.finish();
}
