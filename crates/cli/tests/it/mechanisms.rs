//! Mechanisms of the agent that no other test of the binary is about. `docs/mechanisms.md` lists them all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::{Client, stage};

/// The last `session.usage_info` of a run in an environment of its own.
fn usage_info(prompt: &str, env: &[(&str, &str)]) -> Value {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let mut run = hangar(&scratch, &model).args(["-p", prompt, "--output-format", "json", "--all-events"]);
    for (name, value) in env {
        run = run.env(name, value);
    }
    let finished = run.finish().expect_exit(0);
    let mut infos = finished.events().into_iter().filter(|event| event["type"] == "session.usage_info");
    infos.next_back().unwrap()["data"].clone()
}

#[test]
fn the_limit_of_the_context_is_the_configured_one_or_the_usual() {
    assert_eq!(usage_info("SAY:hi", &[])["tokenLimit"], 128_000);
    assert_eq!(
        usage_info("SAY:hi", &[("COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "64000")])["tokenLimit"],
        64_000
    );
}

#[test]
fn the_context_is_the_sum_of_its_parts_and_grows_by_what_is_said() {
    let count = |info: &Value, name: &str| info[name].as_u64().unwrap();
    let short = usage_info("SAY:hi", &[]);
    let parts = ["systemTokens", "conversationTokens", "toolDefinitionsTokens"];
    let sum: u64 = parts.iter().map(|name| count(&short, name)).sum();
    assert_eq!(count(&short, "currentTokens"), sum, "{short}");
    // "word" and its blank are one token of the o200k vocabulary.
    let long = usage_info(&format!("SAY:hi {}", "word ".repeat(100)), &[]);
    let grown = count(&long, "conversationTokens") - count(&short, "conversationTokens");
    // The folders of the two sessions, which messages name, do not have the same number of tokens.
    assert!((80..=240).contains(&grown), "{grown}");
}

#[test]
fn a_section_of_the_prompt_is_changed_and_no_other() {
    let system = |message: Value| {
        let (scratch, model) = stage();
        let mut client = Client::start(&scratch, &model);
        client.create(message);
        client.send("SAY:x");
        client.event("session.idle");
        let system = model.last_request()["messages"][0]["content"].as_str().unwrap().to_owned();
        client.finish();
        let places = [scratch.work().display().to_string(), scratch.state().display().to_string()];
        places.iter().fold(system, |text, place| text.replace(place.as_str(), "HERE"))
    };
    let usual = system(json!({}));
    let sections = json!({ "tone": { "action": "replace", "content": "Speak in rhymes." } });
    let changed = system(json!({ "systemMessage": { "mode": "customize", "sections": sections } }));
    assert!(changed.contains("Speak in rhymes.") && !usual.contains("Speak in rhymes."), "{changed}");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    let added: Vec<String> = lines(&changed).difference(&lines(&usual)).cloned().collect();
    assert_eq!(added, ["Speak in rhymes."]);
}

#[test]
fn todos_that_change_are_news() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    let todo = json!({ "description": "d", "query": "INSERT INTO todos (id, title) VALUES ('a', 'b')" });
    client.send(&format!("TOOL:sql:{todo}\nSAY:done"));
    client.event("session.todos_changed");
    client.event("session.idle");
    client.finish();
}

#[test]
fn a_command_in_the_background_wakes_the_session_when_it_ends() {
    let (scratch, model) = stage();
    let mut client = Client::start_with(&scratch, &model, &["--allow-all-tools"]);
    client.create(json!({}));
    let command =
        json!({ "command": "sleep 1; echo woken", "description": "d", "mode": "async", "shellId": "s" });
    client.send(&format!("TOOL:bash:{command}\nSAY:waiting"));
    client.event("session.idle");
    let asked = model.requests().len();
    let notification = client.event("system.notification");
    assert_eq!(notification["kind"]["type"], "shell_completed", "{notification}");
    client.forget();
    client.event("session.idle");
    assert_eq!(model.requests().len(), asked + 1, "it is told, and answers");
    client.finish();
}

#[test]
fn a_prompt_waits_for_its_commands_and_the_model_sees_what_they_printed() {
    let check = |output: &str, shown: &str, flags: &[&str]| {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        let command = json!({ "command": format!("sleep 0.3; {output}"), "description": "d", "mode": "async", "shellId": "s" });
        let prompt = format!("TOOL:bash:{command}\nSAY:waiting");
        let run = hangar(&scratch, &model)
            .args(["-p", &prompt, "--allow-all-tools", "--output-format", "json", "--secret-env-vars=MINE"])
            .args(flags)
            .env("MINE", "my-secret-value");
        run.finish().expect_exit(0);
        let messages = model.last_request()["messages"].as_array().unwrap().clone();
        let last = messages.last().unwrap()["content"].as_str().unwrap().to_owned();
        assert!(last.starts_with(shown), "{messages:?}");
        messages
    };
    let messages = check("echo woken", "woken\n<exited with exit code 0>", &[]);
    let call = &messages[messages.len() - 2]["tool_calls"][0]["function"];
    assert_eq!(call["name"], "read_bash");
    let news = messages[messages.len() - 3]["content"].as_str().unwrap().to_owned();
    assert_eq!(
        news,
        "<system_notification>\nShell command \"d\" (shellId: s) has completed successfully.\n</system_notification>"
    );
    check("echo my-secret-value", "[redacted]\n", &[]);
    check("seq 1 20000", "Output too large to read at once", &[]);
    // It is for the model to know, whether or not it could have asked.
    check("echo woken", "woken\n", &["--excluded-tools", "read_bash"]);
}

#[test]
fn a_command_that_is_waited_for_does_not_keep_a_person_waiting() {
    let (scratch, model) = stage();
    let mut client = Client::start_with(&scratch, &model, &["--allow-all-tools"]);
    client.create(json!({}));
    let command = json!({ "command": "sleep 600", "description": "d", "initial_wait": 600 });
    client.send(&format!("TOOL:bash:{command}\nSAY:slept"));
    client.event("tool.execution_start");
    client.call(
        "session.send",
        json!({ "sessionId": crate::sdk::ID, "prompt": "SAY:rather this", "mode": "immediate" }),
    );
    let answered = client.until("the answer", |message| {
        message["params"]["event"]["data"]["content"] == "rather this"
            && message["params"]["event"]["type"] == "assistant.message"
    });
    assert!(answered.is_object());
    let told = model.last_request()["messages"].to_string();
    assert!(told.contains("moved to background by the user"), "{told}");
    client.finish();
}
