//! Questions that the documentation of the SDKs leaves open, each with the answer that `docs/sdk.md` gives.

use std::collections::BTreeSet;

use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::{Client, ID};

fn stage() -> (Scratch, ModelServer) {
    (Scratch::new(), ModelServer::start())
}

/// Has a tool called and says which fields the request for permission has.
#[track_caller]
fn check_request(call: &str, kind: &str, fields: &[&str]) {
    let (scratch, model) = stage();
    scratch.file("there.txt", "text");
    let mut client = Client::of(hangar(&scratch, &model).without_env("COPILOT_OFFLINE"));
    let tool = json!({ "name": "lookup", "description": "d", "parameters": { "type": "object" } });
    client.create(json!({ "requestPermission": true, "tools": [tool] }));
    client.send(&format!("TOOL:{}\nSAY:done", call.replace("{work}", &scratch.work().to_string_lossy())));
    let asked = client.event("permission.requested");
    let request = asked["permissionRequest"].as_object().expect("a request").clone();
    assert_eq!(request["kind"], kind);
    let has: BTreeSet<&str> = request.keys().map(String::as_str).collect();
    let wanted: BTreeSet<&str> = fields.iter().copied().chain(["kind", "toolCallId"]).collect();
    assert!(has.is_superset(&wanted), "{kind}: {has:?} lacks some of {wanted:?}");
    client.kill();
}

#[test]
fn a_permission_request_has_the_fields_of_its_kind() {
    let shell = [
        "fullCommandText",
        "intention",
        "commands",
        "possiblePaths",
        "possibleUrls",
        "hasWriteFileRedirection",
        "canOfferSessionApproval",
    ];
    check_request(r#"bash:{"command":"echo x > y","description":"d"}"#, "shell", &shell);
    let write = ["fileName", "diff", "newFileContents", "intention", "canOfferSessionApproval"];
    check_request(r#"create:{"path":"{work}/new.txt","file_text":"x"}"#, "write", &write);
    check_request(r#"view:{"path":"{work}/there.txt"}"#, "read", &["path", "intention"]);
    check_request(r#"web_fetch:{"url":"https://example.com/"}"#, "url", &["url", "intention"]);
    check_request(r#"lookup:{"key":"a"}"#, "custom-tool", &["toolName", "toolDescription", "args"]);
}

#[test]
fn a_permission_that_is_never_answered_waits_until_the_run_is_aborted() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "requestPermission": true }));
    let path = scratch.work().join("new.txt");
    client.send(&format!("TOOL:create:{}\nSAY:done", json!({ "path": path, "file_text": "x" })));
    let asked = client.event("permission.requested");
    let pending = client.call("session.permissions.pendingRequests", json!({ "sessionId": ID }));
    assert_eq!(pending["items"][0]["requestId"], asked["requestId"]);
    client.call("session.abort", json!({ "sessionId": ID }));
    client.event("session.idle");
    let pending = client.call("session.permissions.pendingRequests", json!({ "sessionId": ID }));
    assert_eq!(pending["items"], json!([]));
    let late =
        json!({ "sessionId": ID, "requestId": asked["requestId"], "result": { "kind": "approve-once" } });
    assert_eq!(client.call("session.permissions.handlePendingPermissionRequest", late)["success"], false);
    assert!(!path.exists());
    client.send("SAY:still here");
    assert_eq!(client.event("assistant.message")["content"], "still here");
    client.event("session.idle");
    client.finish();
}

#[test]
fn a_question_that_is_never_answered_waits_until_the_run_is_aborted() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "requestUserInput": true }));
    client.send("TOOL:ask_user:{\"question\":\"which?\"}\nSAY:done");
    let asked = client.until("userInput.request", |message| message["method"] == "userInput.request");
    client.call("session.abort", json!({ "sessionId": ID }));
    client.event("session.idle");
    // A late answer changes nothing.
    client.write(
        &json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "answer": "b", "wasFreeform": true } }),
    );
    client.send("SAY:still here");
    assert_eq!(client.event("assistant.message")["content"], "still here");
    client.event("session.idle");
    client.finish();
}

#[test]
fn two_servers_share_a_home_but_not_a_session_at_work() {
    let (scratch, model) = stage();
    let mut first = Client::start(&scratch, &model);
    let mut second = Client::start(&scratch, &model);
    let tool = json!({ "name": "lookup", "parameters": { "type": "object" }, "skipPermission": true });
    first.create(json!({ "tools": [tool] }));
    first.send("TOOL:lookup:{}\nSAY:done");
    let asked = first.event("external_tool.requested");
    // At work it belongs to its server.
    assert_eq!(second.call("session.list", json!({}))["sessions"][0]["sessionId"], ID);
    let refused = second.answer("session.resume", json!({ "sessionId": ID }));
    assert!(refused["error"]["message"].to_string().contains("in use"), "{refused}");
    let answer = json!({ "sessionId": ID, "requestId": asked["requestId"], "result": "r" });
    first.call("session.tools.handlePendingToolCall", answer);
    first.event("session.idle");
    // Idle it may be taken over, and the server that had it notices.
    second.call("session.resume", json!({ "sessionId": ID }));
    second.send("SAY:moved");
    assert_eq!(second.event("assistant.message")["content"], "moved");
    second.event("session.idle");
    first.answer("session.send", json!({ "sessionId": ID, "prompt": "SAY:lost" }));
    assert!(first.event("session.error")["message"].is_string());
    // Others are not touched by any of this.
    let other = first.call("session.create", json!({}));
    assert!(other["sessionId"].is_string());
    second.finish();
    first.finish();
}

#[test]
fn the_home_holds_sessions_and_logs_and_nothing_else_of_a_server() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    client.send("SAY:x");
    client.event("session.idle");
    client.call("session.plan.update", json!({ "sessionId": ID, "content": "# Plan" }));
    client.call(
        "session.workspaces.createFile",
        json!({ "sessionId": ID, "path": "notes.md", "content": "n" }),
    );
    client.finish();
    let names = |path: &std::path::Path| -> Vec<String> {
        let entries = std::fs::read_dir(path).expect("a directory").filter_map(Result::ok);
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&scratch.state()), ["logs", "session-state"]);
    let session = scratch.state().join("session-state").join(ID);
    assert_eq!(
        names(&session),
        [".lock", "checkpoints", "events.jsonl", "files", "plan.md", "workspace.yaml"]
    );
    assert_eq!(names(&session.join("files")), ["notes.md"]);
}

#[test]
fn a_provider_of_the_session_goes_before_the_login_of_the_server() {
    let (scratch, model) = stage();
    let server = scratch
        .run(crate::HANGAR)
        .env("TOKEN_OF_THE_SERVER", "gho_of_the_server")
        .args(["--auth-token-env", "TOKEN_OF_THE_SERVER"])
        // Nobody is there: a request to GitHub would fail.
        .env("COPILOT_DEBUG_GITHUB_API_URL", "http://127.0.0.1:1")
        .env("HANGAR_RETRY_SCALE", "0.01");
    let mut client = Client::of(server);
    let provider = json!({ "type": "openai", "baseUrl": format!("{}/v1", model.url()), "apiKey": "key" });
    client.create(json!({ "provider": provider, "model": "mine" }));
    client.send("SAY:by the provider");
    assert_eq!(client.event("assistant.message")["content"], "by the provider");
    client.event("session.idle");
    assert_eq!(model.last_request()["model"], "mine");
    // A token that cannot be checked does not keep a session from being created.
    let other = json!({ "sessionId": "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad002", "gitHubToken": "gho_x" });
    let created = client.answer("session.create", other);
    assert!(created.get("error").is_none(), "{created}");
    client.finish();
}

/// The server's report on its login when the environment has one, with these flags.
fn login(flags: &[&str]) -> Value {
    let (scratch, _model) = stage();
    let server = scratch
        .run(crate::HANGAR)
        .env("GH_TOKEN", "gho_of_the_user")
        .env("TOKEN_OF_THE_SERVER", "gho_of_the_server")
        // Nobody is there, so nobody has a name.
        .env("COPILOT_DEBUG_GITHUB_API_URL", "http://127.0.0.1:1")
        .args(["--headless", "--stdio"])
        .args(flags);
    let mut client = Client::with(server);
    client.create(json!({}));
    let status = client.call("session.gitHubAuth.getStatus", json!({ "sessionId": ID }));
    client.finish();
    status
}

#[test]
fn the_login_of_the_environment_is_not_used_when_it_is_not_wanted() {
    let own = ["--auth-token-env", "TOKEN_OF_THE_SERVER"];
    assert_eq!(login(&[])["authType"], "env");
    assert_eq!(login(&["--no-auto-login"])["isAuthenticated"], false);
    assert_eq!(login(&own)["authType"], "token");
    assert_eq!(login(&[&own[..], &["--no-auto-login"]].concat())["authType"], "token");
}

#[test]
fn a_login_that_was_kept_is_told_of_as_it_is_used() {
    let (scratch, _model) = stage();
    std::fs::create_dir_all(scratch.state()).expect("a home");
    let account = json!({ "host": "https://github.com", "login": "somebody", "token": "gho_kept" });
    let accounts = json!({ "accounts": [account] }).to_string();
    std::fs::write(scratch.state().join("accounts.json"), accounts).expect("a login");
    let mut client =
        Client::of(scratch.run(crate::HANGAR).env("COPILOT_DEBUG_GITHUB_API_URL", "http://127.0.0.1:1"));
    client.create(json!({}));
    for method in ["session.gitHubAuth.getStatus", "auth.getStatus"] {
        let status = client.call(method, json!({ "sessionId": ID }));
        assert_eq!((&status["isAuthenticated"], &status["authType"]), (&json!(true), &json!("user")));
    }
    client.finish();
}

#[test]
fn a_session_without_any_provider_says_so_with_its_first_message() {
    let (scratch, _model) = stage();
    let mut client = Client::of(scratch.run(crate::HANGAR).env("COPILOT_OFFLINE", "true"));
    client.create(json!({}));
    client.send("SAY:x");
    assert!(client.event("session.error")["message"].is_string());
    client.event("session.idle");
    client.finish();
}

#[test]
fn reasoning_that_only_the_provider_reads_survives_a_killed_server() {
    let (scratch, model) = stage();
    let provider = json!({ "type": "anthropic", "baseUrl": model.url(), "apiKey": "key" });
    let config = json!({ "provider": provider, "model": "claude-sonnet-4.5" });
    let mut first = Client::start(&scratch, &model);
    first.create(config.clone());
    first.send("THINK:deep thoughts\nSAY:thought");
    assert_eq!(first.event("assistant.message")["content"], "thought");
    first.event("session.idle");
    first.kill();
    let mut second = Client::start(&scratch, &model);
    let mut resume = config;
    resume["sessionId"] = json!(ID);
    second.call("session.resume", resume);
    second.send("SAY:again");
    second.event("session.idle");
    let request = model.last_request();
    let blocks: Vec<&Value> = request["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .filter(|block| block["type"] == "thinking")
        .collect();
    assert_eq!(blocks.len(), 1, "{request}");
    assert_eq!(blocks[0]["thinking"], "deep thoughts");
    assert!(blocks[0]["signature"].is_string(), "{request}");
    second.finish();
}

#[test]
fn after_a_killed_server_a_tool_call_is_answered_by_its_old_request_id() {
    let (scratch, model) = stage();
    let tool = json!({ "name": "lookup", "parameters": { "type": "object" }, "skipPermission": true });
    let mut first = Client::start(&scratch, &model);
    first.create(json!({ "tools": [tool] }));
    first.send("TOOL:lookup:{}\nSAY:done");
    let asked = first.event("external_tool.requested");
    first.kill();
    let mut second = Client::start(&scratch, &model);
    second.call("session.resume", json!({ "sessionId": ID, "tools": [tool], "continuePendingWork": true }));
    assert_eq!(second.event("session.resume")["continuePendingWork"], true);
    let answer = json!({ "sessionId": ID, "requestId": asked["requestId"], "result": "found it" });
    assert_eq!(second.call("session.tools.handlePendingToolCall", answer)["success"], true);
    assert_eq!(second.event("tool.execution_complete")["result"]["content"], "found it");
    second.event("session.idle");
    second.finish();
}

#[test]
fn models_are_those_of_the_server_and_not_those_of_a_session() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let provider = json!({ "type": "openai", "baseUrl": format!("{}/v1", model.url()), "apiKey": "key" });
    client.create(json!({ "provider": provider, "model": "of-the-session" }));
    let listed = client.call("models.list", json!({}));
    let ids: Vec<&str> = listed["models"]
        .as_array()
        .expect("models")
        .iter()
        .filter_map(|model| model["id"].as_str())
        .collect();
    assert!(ids.contains(&"mock-model") && !ids.contains(&"of-the-session"), "{ids:?}");
    client.finish();
    let mut nobody = Client::of(scratch.run(crate::HANGAR).env("COPILOT_OFFLINE", "true"));
    let refused = nobody.answer("models.list", json!({}));
    assert!(refused["error"]["message"].is_string(), "{refused}");
    nobody.finish();
}
