//! Secrets that an agent says are neither in what the portal answers nor in its streams.

use hangar_test_support::{ModelServer, Scratch};
use serde_json::json;

use super::{Portal, expect, port, up};

const KEY: &str = "key-7h-secret-value";

/// A script in the place of an agent.
fn agent(scratch: &Scratch, script: &str) -> std::path::PathBuf {
    let text = scratch.file("agent.txt", &format!("#!/bin/sh\n{script}\n"));
    let program = scratch.root().join("agent");
    let installed =
        std::process::Command::new("install").args(["-m", "755"]).args([&text, &program]).status();
    assert!(installed.unwrap().success());
    std::fs::create_dir_all(scratch.state()).unwrap();
    program
}

#[test]
fn what_an_agent_says_is_redacted_in_answers_and_streams() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let (head, tail) = KEY.split_at(5);
    let script = format!(
        r#"cat >/dev/null
echo '{{"type":"thread.started","thread_id":"t"}}'; echo '{{"type":"turn.started"}}'
echo '{{"type":"item.completed","item":{{"id":"a","type":"agent_message","text":"it is {head}{tail}"}}}}'
echo '{{"type":"turn.failed","error":{{"message":"no {KEY}"}}}}'; echo '{KEY}' >&2; exit 1"#
    );
    let program = agent(&scratch, &script);
    let config = format!("[runtimes.codex]\nprogram = \"{}\"\n", program.display());
    std::fs::write(scratch.state().join("config.toml"), config).unwrap();
    let mut running = up(&scratch, &model, &[]).env("COPILOT_PROVIDER_API_KEY", KEY).start();
    let port = port(&mut running);
    let portal = Portal { scratch, model, running, port };
    let body =
        json!({ "workspace": portal.scratch.work(), "runtime": "codex", "prompt": format!("use {KEY}") });
    let id = portal.post("/api/v1/sessions", &body, 201)["id"].as_str().unwrap().to_owned();
    // `assistant.idle` is in no log: whoever listens too late does not hear of it.
    let heard = portal.hear(&id, 0).until_state("failed");
    let heard: String = heard.iter().map(|message| message.data.to_string()).collect();
    assert!(heard.contains("[redacted]") && !heard.contains(KEY), "{heard}");
    for path in ["/api/v1/sessions".to_owned(), format!("/api/v1/sessions/{id}")] {
        let answer = portal.get(&path).to_string();
        assert!(!answer.contains(KEY), "{path}: {answer}");
    }
    assert!(!portal.scratch.log(&id).contains(KEY));
}

#[test]
fn the_token_of_the_portal_is_for_the_portal() {
    const TOKEN: &str = "portal-4t-secret-value";
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let script = r#"cat >/dev/null; env > environment
echo '{"type":"thread.started","thread_id":"t"}'; echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"the token is portal-4t-secret-value"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":2}}'"#;
    let program = agent(&scratch, script);
    let config = format!("[runtimes.codex]\nprogram = \"{}\"\n", program.display());
    std::fs::write(scratch.state().join("config.toml"), config).unwrap();
    let mut running = up(&scratch, &model, &["--token-env", "MY_TOKEN"]).env("MY_TOKEN", TOKEN).start();
    let port = port(&mut running);
    let portal = Portal { scratch, model, running, port };
    let shown = format!("Bearer {TOKEN}");
    let body = json!({ "workspace": portal.scratch.work(), "runtime": "codex", "prompt": "go" });
    let asked = portal.ask("POST", "/api/v1/sessions").header("authorization", &shown).json(&body);
    let id = expect(asked.send(), 201)["id"].as_str().unwrap().to_owned();
    let stream = portal.ask("GET", &format!("/api/v1/sessions/{id}/stream?after=0"));
    let heard = stream.header("authorization", &shown).stream().until_state("idle");
    let heard: String = heard.iter().map(|message| message.data.to_string()).collect();
    assert!(heard.contains("the token is [redacted]"), "{heard}");
    let seen = std::fs::read_to_string(portal.scratch.work().join("environment")).unwrap();
    assert!(seen.contains("PATH=") && !seen.contains(TOKEN), "{seen}");
}
