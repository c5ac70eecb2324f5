//! Prompts that a session sends itself later, in its log.

use serde_json::{Value, json};

use crate::sdk::{Client, of_session, session};

/// Ids of the schedules of the session.
fn listed(client: &mut Client) -> Vec<Value> {
    let mut listed = client.call("session.schedule.list", of_session(json!({})));
    let entries = listed["entries"].as_array_mut().expect("a list");
    entries.iter_mut().map(|entry| entry["id"].take()).collect()
}

#[test]
fn a_prompt_that_a_hook_blocks_is_not_sent_by_the_next_process() {
    let (scratch, model, mut client) = session(json!({ "hooks": true }));
    let once = json!({ "interval": "5s", "recurring": false, "prompt": "SAY:later" });
    client.call("session.schedule.add", of_session(once));
    let is_end = |message: &Value| message["params"]["event"]["type"] == "session.schedule_cancelled";
    let ended = loop {
        let message = client.until("the hooks and the end of the schedule", |message| {
            message["method"] == "hooks.invoke" || is_end(message)
        });
        if is_end(&message) {
            break message;
        }
        let blocks = message["params"]["hookType"] == "userPromptSubmitted";
        let output = if blocks { json!({ "decision": "block", "reason": "not today" }) } else { Value::Null };
        client.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "output": output } }));
    };
    assert_eq!(ended["params"]["event"]["data"], json!({ "id": 1 }));
    client.finish();
    let mut next = Client::start(&scratch, &model);
    next.call("session.resume", of_session(json!({})));
    assert_eq!(listed(&mut next), [0; 0]);
    next.finish();
    assert!(model.requests().is_empty());
}
