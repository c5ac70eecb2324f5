//! Prompts that a session sends itself later, in its log.

use serde_json::{Value, json};

use crate::sdk::{Client, ID, of_session, session};
use crate::{HANGAR, hangar};

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

#[test]
fn a_rewind_by_the_command_takes_back_nothing_that_was_scheduled_or_stopped() {
    let (scratch, model, mut client) = session(json!({}));
    let schedule = |client: &mut Client| {
        let again = json!({ "interval": "1d", "prompt": "SAY:later" });
        client.call("session.schedule.add", of_session(again));
    };
    schedule(&mut client);
    schedule(&mut client);
    client.send("SAY:one");
    client.event("session.idle");
    schedule(&mut client);
    client.call("session.schedule.stop", of_session(json!({ "id": 1 })));
    client.finish();
    let run = |args: &[&str]| {
        let run = scratch.run(HANGAR).env("COPILOT_OFFLINE", "true").args(["sessions", "rewind", ID]);
        run.args(args).finish().expect_exit(0)
    };
    let prompts = run(&[]).stdout;
    let (first, _) = prompts.split_once(' ').expect("a prompt");
    run(&["--to", first]);
    let mut next = Client::start(&scratch, &model);
    next.call("session.resume", of_session(json!({})));
    assert_eq!(listed(&mut next), [2, 3]);
    assert!(!next.kinds().iter().any(|kind| kind == "user.message"));
    next.finish();
}

#[test]
fn a_session_that_has_only_a_scheduled_prompt_can_be_continued() {
    let (scratch, model, mut client) = session(json!({}));
    let again = json!({ "interval": "1d", "prompt": "SAY:later" });
    client.call("session.schedule.add", of_session(again));
    client.finish();
    let args = ["-p", "SAY:now", "--continue", "--output-format", "json"];
    let run = hangar(&scratch, &model).args(args).finish().expect_exit(0);
    assert_eq!(run.session_id(), ID);
}
