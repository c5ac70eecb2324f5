//! Smaller parts of the SDK's protocol: events about an answer on its way, decisions of hooks about errors, summaries, collected
//! logs, notes about the repository, and tokens that GitHub refuses.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::ModelServer;
use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::{Client, ID, of_session, session, stage};

#[test]
fn clients_see_the_size_of_an_answer_and_what_the_model_intends() {
    let (scratch, _model, mut client) = session(json!({ "streaming": true }));
    client.send("TOOL:report_intent:{\"intent\":\"Looking around\"}\nSAY:done");
    assert_eq!(client.event("assistant.intent")["intent"], "Looking around");
    let size = client.event("assistant.streaming_delta")["totalResponseSizeBytes"].as_u64();
    assert!(size.is_some_and(|size| size > 0), "{size:?}");
    client.event("session.idle");
    client.finish();
    assert!(!scratch.log(ID).contains("assistant.streaming_delta"));
}

/// A provider that answers every request in the same way, with the ids that GitHub's servers send. Returns its address.
fn provider(status: &'static str, body: &'static str) -> String {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            stream.by_ref().take(length).read_to_end(&mut Vec::new()).unwrap();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-github-request-id: GH:1\r\n\
                 x-copilot-service-request-id: svc-1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            // The client may have gone.
            let _ = stream.get_mut().write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

/// Data of the first event of a type.
fn told(events: &[Value], kind: &str) -> Value {
    let found = events.iter().find(|event| event["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {events:?}"))["data"].clone()
}

#[test]
fn answers_and_errors_have_the_ids_of_the_providers_logs() {
    let scratch = hangar_test_support::Scratch::new();
    let run = |url: &str| {
        let run = scratch.run(crate::HANGAR).provider(url).env("HANGAR_RETRY_SCALE", "0.01");
        run.args(["-p", "hello", "--stream", "off", "--output-format", "json", "--all-events"]).finish()
    };
    let body = r#"{"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let events = run(&provider("200 OK", body)).expect_exit(0).events();
    let ids = |data: &Value, request: &str| {
        [data["apiCallId"].clone(), data[request].clone(), data["serviceRequestId"].clone()]
    };
    let expected = [json!("chatcmpl-1"), json!("GH:1"), json!("svc-1")];
    assert_eq!(ids(&told(&events, "assistant.message"), "requestId"), expected);
    assert_eq!(ids(&told(&events, "assistant.usage"), "providerCallId"), expected);
    let refusal = r#"{"error":{"message":"no such parameter"}}"#;
    let events = run(&provider("400 Bad Request", refusal)).expect_exit(1).events();
    let error = told(&events, "session.error");
    assert_eq!([&error["providerCallId"], &error["serviceRequestId"]], ["GH:1", "svc-1"]);
}

/// Sends a prompt whose call to the model fails, answers the hook about it, and returns the types of the events until the session
/// is idle.
fn after_error(prompt: &str, decision: &Value) -> Vec<String> {
    let (_scratch, _model, mut client) = session(json!({ "hooks": true }));
    client.write(&json!({ "jsonrpc": "2.0", "id": "send", "method": "session.send", "params": of_session(json!({ "prompt": prompt })) }));
    let mut seen = Vec::new();
    loop {
        let message = client.until("a message", |message| message.get("method").is_some());
        match message["method"].as_str().unwrap() {
            "hooks.invoke" => {
                let is_error = message["params"]["hookType"] == "errorOccurred";
                let output = if is_error { decision.clone() } else { Value::Null };
                client
                    .write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "output": output } }));
            }
            "session.event" => {
                let kind = message["params"]["event"]["type"].as_str().unwrap().to_owned();
                let is_end = kind == "session.idle";
                seen.push(kind);
                if is_end {
                    break;
                }
            }
            _ => {}
        }
    }
    client.finish();
    seen
}

#[test]
fn a_hook_decides_what_happens_after_an_error() {
    let count = |seen: &[String], kind: &str| seen.iter().filter(|known| *known == kind).count();
    // The policy retries a server's error and does not retry a refusal.
    let seen = after_error("FAIL:500\nSAY:x", &json!({ "errorHandling": "abort" }));
    assert_eq!((count(&seen, "model.call_failure"), count(&seen, "session.error")), (1, 1), "{seen:?}");
    let seen = after_error("FAIL:400\nSAY:x", &json!({ "errorHandling": "skip" }));
    assert_eq!((count(&seen, "model.call_failure"), count(&seen, "session.error")), (1, 0), "{seen:?}");
    let seen = after_error("FAIL:400\nSAY:x", &json!({ "errorHandling": "retry", "retryCount": 2 }));
    assert!(count(&seen, "assistant.turn_retry") >= 1, "{seen:?}");
    let seen = after_error("FAIL:400\nSAY:x", &Value::Null);
    assert_eq!((count(&seen, "assistant.turn_retry"), count(&seen, "session.error")), (0, 1), "{seen:?}");
}

#[test]
fn summaries_of_clients_are_checkpoints() {
    let (_scratch, _model, mut client) = session(json!({}));
    for (count, title) in [(1, "First | part"), (2, "Second"), (3, "Third")] {
        let content = format!("about {title}");
        let params = of_session(json!({ "title": title, "content": content }));
        let added = client.call("session.workspaces.addSummary", params);
        assert!(added["summary"]["checkpointNumber"].as_u64().is_some(), "{added}");
        assert_eq!(added["workspace"]["summary_count"], count, "{added}");
        let path = added["summary"]["checkpointPath"].as_str().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), content);
    }
    let titles = |client: &mut Client| -> Vec<String> {
        let listed = client.call("session.workspaces.listCheckpoints", of_session(json!({})));
        let entries = listed["checkpoints"].as_array().unwrap().iter();
        entries.map(|entry| entry["title"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(titles(&mut client), ["First   part", "Second", "Third"]);
    client.call("session.workspaces.truncateSummaries", of_session(json!({ "keepCount": 1 })));
    assert_eq!(titles(&mut client), ["Third"]);
    client.finish();
}

#[test]
fn logs_are_collected_without_credentials() {
    let (scratch, _model, mut client) = session(json!({}));
    client.send("SAY:hello");
    client.event("session.idle");
    let extra = scratch.file("mine.log", "token ghp_0123456789abcdef0123 end\n");
    let into = scratch.root().join("bundle");
    let params = of_session(json!({
        "destination": { "kind": "directory", "outputDirectory": into },
        "additionalEntries": [
            { "kind": "file", "path": extra, "bundlePath": "mine.log" },
            { "kind": "file", "path": "/no/such/file", "bundlePath": "none.log" },
        ],
    }));
    let done = client.call("session.debug.collectLogs", params);
    assert_eq!(done["skippedEntries"][0]["bundlePath"], "none.log", "{done}");
    assert!(std::fs::read_to_string(into.join("events.jsonl")).unwrap().contains("session.start"));
    assert_eq!(std::fs::read_to_string(into.join("mine.log")).unwrap(), "token ghp_[redacted] end\n");
    let outside = of_session(json!({
        "destination": { "kind": "directory", "outputDirectory": into },
        "additionalEntries": [{ "kind": "file", "path": extra, "bundlePath": "../x" }],
    }));
    assert!(client.answer("session.debug.collectLogs", outside)["error"].is_object());
    client.finish();
}

#[test]
fn logs_are_collected_in_an_archive_that_replaces_no_other_one() {
    let (scratch, _model, mut client) = session(json!({}));
    client.send("SAY:hello");
    client.event("session.idle");
    let extra = scratch.file("mine.log", &"token ghp_0123456789abcdef0123 end\n".repeat(40));
    let into = scratch.root().join("reports/logs.tgz");
    let mut collect = |name: &str| {
        client.answer(
            "session.debug.collectLogs",
            of_session(json!({
                "destination": { "kind": "archive", "outputPath": into, "noOverwrite": true },
                "additionalEntries": [{ "kind": "file", "path": extra, "bundlePath": name }],
            })),
        )
    };
    let first = collect("deep/mine.log")["result"].take();
    assert_eq!((&first["kind"], &first["path"]), (&json!("archive"), &json!(into)), "{first}");
    let second = into.with_file_name("logs (1).tgz");
    assert_eq!(collect("deep/mine.log")["result"]["path"], json!(second));
    let tar = |what: &str, member: &str| {
        let done = std::process::Command::new("tar").arg(what).arg(&second).arg(member).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    assert_eq!(tar("-xOzf", "deep/mine.log"), "token ghp_[redacted] end\n".repeat(40));
    assert!(tar("-xOzf", "events.jsonl").contains("session.start"));
    // What failed leaves nothing.
    assert!(collect(&"x".repeat(101))["error"].is_object());
    assert_eq!(std::fs::read_dir(into.parent().unwrap()).unwrap().count(), 2);
    client.finish();
}

#[test]
fn a_note_about_the_repository_needs_permission_and_is_there_in_the_next_session() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "memory": { "enabled": true }, "requestPermission": true }));
    client.send("TOOL:store_memory:{\"subject\":\"build\",\"fact\":\"make all builds it\"}\nSAY:done");
    let asked = client.event("permission.requested");
    assert_eq!(asked["permissionRequest"]["kind"], "memory", "{asked}");
    assert_eq!(asked["permissionRequest"]["fact"], "make all builds it");
    let answer = of_session(json!({ "requestId": asked["requestId"], "result": { "kind": "approve-once" } }));
    client.call("session.permissions.handlePendingPermissionRequest", answer);
    client.event("session.idle");
    client.call("session.destroy", of_session(json!({})));
    let other = "11111111-6f0a-4b5e-9f0c-000000000001";
    client.call("session.create", json!({ "sessionId": other, "memory": { "enabled": true } }));
    client.call("session.send", json!({ "sessionId": other, "prompt": "SAY:x" }));
    client.event("session.idle");
    assert!(model.last_request().to_string().contains("make all builds it"));
    client.finish();
    let say = |args: &[&str], exit: i32, expected: &str| {
        let run = hangar(&scratch, &model).arg("memory").args(args).finish().expect_exit(exit);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains(expected), "{args:?}: {said}");
    };
    say(&["list"], 0, "1  build: make all builds it");
    say(&["edit", "1", "just builds it"], 0, "Note 1 changed.");
    say(&["show", "1"], 0, "build: just builds it");
    say(&["delete", "1"], 0, "Note 1 deleted.");
    say(&["list"], 0, "There are no notes.");
    say(&["delete", "1"], 1, "there is no note 1");
}

#[test]
fn no_session_has_the_memory_unless_it_is_asked_for() {
    let (_scratch, model, mut client) = session(json!({}));
    client.send("SAY:x");
    client.event("session.idle");
    assert!(!model.last_request().to_string().contains("store_memory"));
    client.finish();
}

#[test]
fn a_session_token_that_is_not_needed_does_not_keep_a_session_from_being_created() {
    let (scratch, model): (_, ModelServer) = stage();
    // Nobody answers there.
    let unreachable = hangar(&scratch, &model).env("COPILOT_DEBUG_GITHUB_API_URL", "http://127.0.0.1:9");
    let mut client = Client::of(unreachable);
    client.create(json!({ "gitHubToken": "not-used" }));
    client.send("SAY:hello");
    assert_eq!(client.event("assistant.message")["content"], "hello");
    client.finish();
}

/// Names of the methods that a part of the published schema has.
fn methods(part: &Value, found: &mut Vec<String>) {
    match part {
        Value::Object(members) => {
            found.extend(members.get("rpcMethod").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| methods(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| methods(item, found)),
        _ => {}
    }
}

#[test]
fn every_published_method_is_in_the_documentation_with_its_state() {
    let schema = crate::published::document("api.schema.json");
    let mut published = Vec::new();
    methods(&schema["server"], &mut published);
    methods(&schema["session"], &mut published);
    assert!(published.len() > 300, "only {} methods were found", published.len());
    // The package of Python is newer than that of Node, which the schema comes with.
    let newer = crate::published::methods_of_python();
    assert!(newer.len() > 500, "only {} methods were found in the package of Python", newer.len());
    published.extend(newer);
    let table = include_str!("../../../../docs/sdk-methods.md");
    let state = |name: &str| {
        table.lines().find_map(|line| line.strip_prefix(&format!("| `{name}` | "))?.split(" |").next())
    };
    let answered: Vec<&str> = hangar_server::methods::names().collect();
    for name in &published {
        let expected: &[&str] =
            if answered.contains(&name.as_str()) { &["done", "no"] } else { &["not asked for", "missing"] };
        let state = state(name).unwrap_or_else(|| panic!("{name} is not in docs/sdk-methods.md"));
        assert!(expected.contains(&state), "{name} is said to be `{state}`");
    }
}

#[test]
fn a_token_that_github_refuses_is_no_login() {
    let scratch = hangar_test_support::Scratch::new();
    let github = provider("401 Unauthorized", r#"{"message":"Bad credentials"}"#);
    let server = scratch.run(crate::HANGAR).env("GH_TOKEN", "gho_bogus");
    let server = server.env("COPILOT_DEBUG_GITHUB_API_URL", github).args(["--headless", "--stdio"]);
    let mut client = Client::with(server);
    let status = client.call("auth.getStatus", json!({}));
    client.finish();
    assert_eq!(status["isAuthenticated"], false, "{status}");
    assert!(status["statusMessage"].as_str().unwrap().contains("GitHub refuses the token"), "{status}");
}

#[test]
fn work_that_was_pending_is_taken_up_by_the_next_client() {
    let (scratch, model) = stage();
    let mut first = Client::start(&scratch, &model);
    first.create(json!({ "requestPermission": true }));
    first.send("TOOL:bash:{\"command\":\"echo done > made.txt\",\"description\":\"d\"}\nSAY:done");
    first.event("permission.requested");
    first.kill();
    let mut second = Client::start(&scratch, &model);
    let resume = json!({ "sessionId": ID, "requestPermission": true, "continuePendingWork": true });
    second.call("session.resume", resume);
    let asked = second.event("permission.requested");
    assert_eq!(asked["permissionRequest"]["kind"], "shell", "it is asked again");
    let answer = json!({ "requestId": asked["requestId"], "result": { "kind": "approve-once" } });
    second.call("session.permissions.handlePendingPermissionRequest", of_session(answer));
    assert_eq!(second.event("tool.execution_complete")["success"], true);
    second.event("session.idle");
    second.finish();
    assert!(scratch.work().join("made.txt").exists());
}

#[test]
fn a_message_is_not_queued_while_names_of_tools_clash() {
    let tool = json!({ "name": "view", "parameters": { "type": "object" } });
    let (_scratch, model, mut client) = session(json!({ "tools": [tool] }));
    client.call(
        "session.queue.insertAt",
        of_session(json!({ "position": -1, "message": { "prompt": "SAY:x" } })),
    );
    let error = client.event("session.error");
    assert_eq!(error["errorType"], "tool_init");
    assert!(error["message"].as_str().unwrap().contains("view"), "{error}");
    client.finish();
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn settings_are_read_again_before_they_are_written() {
    let (scratch, _model, mut client) = session(json!({}));
    client.call("user.settings.set", json!({ "settings": { "askUser": false } }));
    let path = scratch.state().join("settings.json");
    let mut kept: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    kept["streamerMode"] = json!(true);
    std::fs::write(&path, kept.to_string()).unwrap();
    client.call("user.settings.set", json!({ "settings": { "askUser": true } }));
    client.finish();
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!((&kept["askUser"], &kept["streamerMode"]), (&json!(true), &json!(true)));
}
