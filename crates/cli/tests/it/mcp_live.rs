//! MCP servers of a session that a client drives: switched off while they start, and asking the model.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::time::Duration;

use hangar_test_support::process::Witness;
use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::{Client, ID, stage};

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/odd.mjs");
const SECRET: &str = "tok-4m-secret-value";

fn server(how: &str, scratch: &Scratch) -> Value {
    let starts = scratch.root().join("starts");
    json!({ "mcpServers": { "s": { "command": "node", "args": [ODD, how, starts], "tools": ["*"] } } })
}

fn status(client: &mut Client, wanted: &str) {
    client.until(wanted, |message| {
        let event = &message["params"]["event"];
        event["type"] == "session.mcp_server_status_changed" && event["data"]["status"] == wanted
    });
}

fn of_server(more: Value) -> Value {
    let mut params = json!({ "sessionId": ID, "serverName": "s" });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

#[test]
fn a_server_that_is_switched_off_while_it_starts_stays_off() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(server("slow", &scratch));
    client.send("SAY:hi");
    let starts = scratch.root().join("starts");
    while std::fs::read_to_string(&starts).unwrap_or_default().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let process = Witness::of(std::fs::read_to_string(&starts).unwrap().trim().parse().unwrap());
    client.call("session.mcp.disable", of_server(json!({})));
    status(&mut client, "disabled");
    // Now it comes up, to find that nobody wants it.
    std::fs::write(scratch.root().join("starts.go"), "").unwrap();
    assert!(process.is_gone_within(Duration::from_secs(30)), "the server runs on");
    client.event("session.idle");
    let listed = client.call("session.mcp.list", json!({ "sessionId": ID }));
    assert_eq!(listed["servers"][0]["status"], "disabled", "{listed}");
    client.finish();
}

fn sampling(id: &str, prompt: &str) -> Value {
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": prompt } }]);
    let request = json!({ "messages": messages, "maxTokens": 10 });
    of_server(json!({ "requestId": id, "mcpRequestId": 1, "request": request }))
}

fn client(model: &ModelServer, scratch: &Scratch) -> Client {
    let server = hangar(scratch, model).args(["--allow-all-tools", "--secret-env-vars", "NAMED"]);
    let mut client = Client::of(server.env("NAMED", SECRET));
    client.create(server_and_model(scratch));
    client
}

fn server_and_model(scratch: &Scratch) -> Value {
    let mut config = server("fine", scratch);
    config["model"] = json!("first-model");
    config
}

#[test]
fn a_request_to_the_model_can_be_cancelled_by_its_id() {
    let (scratch, model) = stage();
    let mut client = client(&model, &scratch);
    let asked = client.call("session.mcp.executeSampling", sampling("a", "SAY:words"));
    assert_eq!((&asked["action"], &asked["result"]["content"]["text"]), (&json!("success"), &json!("words")));

    let id = client.begin("session.mcp.executeSampling", sampling("b", "DELAY:60000\nSAY:late"));
    let cancel = |client: &mut Client, id: &str| {
        let params = json!({ "sessionId": ID, "requestId": id });
        client.call("session.mcp.cancelSamplingExecution", params)["cancelled"] == true
    };
    // The request may be on its way still.
    while !cancel(&mut client, "b") {}
    assert_eq!(client.answer_to(id)["result"]["action"], "cancelled");
    assert!(!cancel(&mut client, "b") && !cancel(&mut client, "a"), "what is over is not cancelled");
    client.finish();
}

#[test]
fn after_a_change_of_the_model_servers_ask_the_new_one_and_nobody_tells_it_secrets() {
    let (scratch, model) = stage();
    let mut client = client(&model, &scratch);
    client.send("SAY:hi");
    client.event("session.idle");
    assert_eq!(model.last_request()["model"], "first-model");
    client.call("session.model.switchTo", json!({ "sessionId": ID, "modelId": "second-model" }));
    client.send(&format!("remember {SECRET}\nTOOL:s-sample:{{}}\nSAY:done"));
    client.event("session.idle");
    client.finish();
    // Two of the agent and one of the server; the last is on record a moment after it is answered.
    while model.requests().len() < 4 {
        std::thread::sleep(Duration::from_millis(5));
    }
    for request in &model.requests()[1..] {
        assert_eq!(request.body["model"], "second-model");
        assert!(!request.body.to_string().contains(SECRET), "{}", request.body);
    }
}

/// A session with a person who is asked, and whose only rule is what they approve.
fn asking(scratch: &Scratch, model: &ModelServer) -> Client {
    let mut client = Client::start(scratch, model);
    let mut config = server("fine", scratch);
    config["requestPermission"] = json!(true);
    client.create(config);
    client
}

/// Calls the tool with which the server asks the model, and answers the question about the call.
fn sample(client: &mut Client, model: &ModelServer, answer: Value) -> String {
    client.call("session.send", json!({ "sessionId": ID, "prompt": "TOOL:s-sample:{}\nSAY:done" }));
    let asked = client.event("permission.requested");
    let params = json!({ "sessionId": ID, "requestId": asked["requestId"], "result": answer });
    client.call("session.permissions.handlePendingPermissionRequest", params);
    client.event("session.idle");
    model.last_request()["messages"].to_string()
}

#[test]
fn an_approval_of_sampling_holds_from_the_moment_it_is_given() {
    let (scratch, model) = stage();
    let mut client = asking(&scratch, &model);
    let once = json!({ "kind": "approve-once" });
    let told = sample(&mut client, &model, once.clone());
    assert!(told.contains("a permission that nobody is there to give"), "{told}");
    let approval = json!({ "kind": "mcp-sampling", "serverName": "s" });
    let told = sample(&mut client, &model, json!({ "kind": "approve-for-session", "approval": approval }));
    assert!(told.contains("sampled words"), "{told}");
    client.call("session.permissions.resetSessionApprovals", json!({ "sessionId": ID }));
    let told = sample(&mut client, &model, once);
    assert_eq!(told.matches("sampled words").count(), 1, "{told}");
    client.finish();
}

#[test]
fn an_approval_of_sampling_is_kept_for_a_place() {
    let (scratch, model) = stage();
    let mut client = asking(&scratch, &model);
    let place = json!({ "sessionId": ID, "workingDirectory": scratch.work() });
    let key = client.call("session.permissions.locations.resolve", place.clone())["locationKey"].clone();
    let approval = json!({ "kind": "mcp-sampling", "serverName": "s" });
    let kept = json!({ "sessionId": ID, "locationKey": key, "approval": approval });
    client.call("session.permissions.locations.addToolApproval", kept);
    let applied = client.call("session.permissions.locations.apply", place);
    assert_eq!(applied["appliedRules"], json!([{ "kind": "mcp-sampling", "argument": "s" }]));
    let told = sample(&mut client, &model, json!({ "kind": "approve-once" }));
    assert!(told.contains("sampled words"), "{told}");
    client.finish();
}

#[test]
fn a_client_that_looks_after_sampling_is_asked_whatever_is_allowed() {
    let (scratch, model) = stage();
    let mut client = client(&model, &scratch);
    let interest = json!({ "sessionId": ID, "eventType": "sampling.requested" });
    client.call("session.eventLog.registerInterest", interest);
    client.send("TOOL:s-sample:{}\nSAY:done");
    let asked = client.event("sampling.requested");
    assert_eq!(asked["serverName"], "s");
    let answer =
        json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "by hand" } });
    let params = json!({ "sessionId": ID, "requestId": asked["requestId"], "response": answer });
    client.call("session.ui.handlePendingSampling", params);
    client.event("session.idle");
    let told = model.last_request()["messages"].to_string();
    assert!(told.contains("by hand") && !told.contains("sampled words"), "{told}");
    client.finish();
}

#[test]
fn a_question_that_a_server_takes_back_is_settled_for_the_person_too() {
    let (scratch, model) = stage();
    let mut client = Client::start_with(&scratch, &model, &["--allow-all-tools"]);
    let mut config = server("fine", &scratch);
    config["requestElicitation"] = json!(true);
    client.create(config);
    client.send("TOOL:s-waver:{}\nSAY:done");
    let asked = client.event("elicitation.requested");
    std::fs::write(scratch.root().join("starts.go"), "").unwrap();
    let settled = client.event("elicitation.completed");
    assert_eq!((&settled["requestId"], &settled["action"]), (&asked["requestId"], &json!("cancel")));
    client.event("session.idle");
    client.finish();
}
