//! Results of the methods in the shape that the published SDKs read. A typed client drops an answer of another shape.

use std::collections::BTreeMap;

use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use super::shapes::Api;
use crate::sdk::{Client, ID};

/// Fewer answers than that and the examples are no good.
const FEWEST: usize = 70;

/// Answers when nothing is under way any more, and what is under way here waits for the test.
const WAITS: &str = "session.tasks.waitForPending";

/// State of a session during a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Doing {
    /// It has answered a message and waits for the next.
    Nothing,
    /// It waits for a permission, and a message waits for it.
    Waiting,
}

/// Brings the session to where the method is to meet it, whatever the one before has made of it.
fn prepare(client: &mut Client, scratch: &Scratch, doing: Doing) {
    let processing = client.answer("session.metadata.isProcessing", json!({ "sessionId": ID }));
    let processing = processing["result"]["processing"].as_bool();
    if processing == Some(doing == Doing::Waiting) {
        return;
    }
    client.answer("session.delete", json!({ "sessionId": ID }));
    let tool = json!({ "name": "lookup", "description": "d", "parameters": { "type": "object" } });
    let agent = json!({ "name": "reviewer", "displayName": "Reviewer", "description": "d", "prompt": "p" });
    client.create(json!({ "requestPermission": true, "tools": [tool], "customAgents": [agent] }));
    client.forget();
    client.send("SAY:hello");
    client.event("session.idle");
    if doing == Doing::Waiting {
        let path = scratch.work().join("new.txt");
        // The method before may have permitted it.
        let _ = std::fs::remove_file(&path);
        let arguments = json!({ "path": path, "file_text": "x" });
        client.send(&format!("TOOL:create:{arguments}\nSAY:done"));
        client.event("permission.requested");
        client.send("SAY:next");
    }
}

/// Parameters that make sense, from the schema and from what is there.
fn sensible(api: &Api, client: &mut Client, scratch: &Scratch, method: &str) -> Value {
    let mut params = api.parameters(method);
    let required = api.required(method);
    params.retain(|name, _| required.contains(name));
    params.insert("sessionId".to_owned(), json!(ID));
    let mut known = BTreeMap::from([
        ("path", json!("notes.md")),
        ("workingDirectory", json!(scratch.work())),
        ("modelId", json!("mock-model")),
        ("eventType", json!("session.idle")),
        ("promptTokenLimit", json!(100_000)),
    ]);
    if params.contains_key("requestId") {
        let pending = client.answer("session.permissions.pendingRequests", json!({ "sessionId": ID }));
        let request = pending["result"]["items"][0]["requestId"].clone();
        known.insert("requestId", if request.is_null() { json!("x") } else { request });
    }
    if params.contains_key("eventId") {
        let events = client.answer("session.getMessages", json!({ "sessionId": ID }));
        known.insert("eventId", events["result"]["events"][1]["id"].clone());
    }
    for (name, value) in &mut params {
        if let Some(known) = known.get(name.as_str()) {
            *value = known.clone();
        }
    }
    json!(params)
}

#[test]
fn every_result_is_one_that_the_published_sdks_can_read() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    scratch.file("AGENTS.md", "Be kind.");
    let api = Api::load();
    let mut client = Client::start(&scratch, &model);
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut refused: BTreeMap<&str, Value> = BTreeMap::new();
    let mut answered = std::collections::BTreeSet::new();
    // A client that makes the model's calls has to make them from then on, and after the end of the server there is
    // nothing.
    let mut methods: Vec<&str> = hangar_server::methods::names().collect();
    methods.sort_by_key(|method| (*method == "runtime.shutdown", method.starts_with("llmInference.")));
    for method in methods {
        for doing in [Doing::Nothing, Doing::Waiting] {
            if doing == Doing::Waiting && method == WAITS {
                continue;
            }
            if !method.starts_with("llmInference.") && method != "runtime.shutdown" {
                prepare(&mut client, &scratch, doing);
            }
            let params = sensible(&api, &mut client, &scratch, method);
            let answer = client.answer(method, params.clone());
            match answer.get("result") {
                None => drop(refused.insert(method, answer["error"]["message"].clone())),
                Some(result) => {
                    answered.insert(method);
                    let problems = api.problems(method, result).into_iter();
                    let told = problems.map(|problem| format!("{problem}; {params}: {result}"));
                    wrong.entry(format!("{method} ({doing:?})")).or_default().extend(told);
                }
            }
            if method == "runtime.shutdown" {
                break;
            }
        }
    }
    wrong.retain(|_, problems| !problems.is_empty());
    assert!(wrong.is_empty(), "{wrong:#?}\nrefused: {refused:#?}");
    assert!(answered.len() >= FEWEST, "only {} methods were answered; refused: {refused:#?}", answered.len());
}
