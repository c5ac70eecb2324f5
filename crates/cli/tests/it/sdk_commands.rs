//! Slash commands that the session itself carries out, for clients that have no terminal to type them into.

use serde_json::{Value, json};

use crate::sdk::{Client, ID, of_session, session};

/// The answer to a command as somebody would type it, without its slash.
fn answer(client: &mut Client, line: &str) -> Value {
    let (name, input) = line.split_once(' ').unwrap_or((line, ""));
    client.answer("session.commands.invoke", of_session(json!({ "name": name, "input": input })))
}

/// Output of a command; for one that fails, the error.
fn said(client: &mut Client, line: &str) -> String {
    let answer = answer(client, line);
    let (result, error) = (&answer["result"], &answer["error"]["message"]);
    let told = [&result["text"], &result["message"], error].into_iter().find_map(Value::as_str);
    told.unwrap_or_default().replace("Request session.commands.invoke failed with message: ", "failed: ")
}

fn call(client: &mut Client, method: &str, params: Value) -> Value {
    client.call(method, of_session(params))
}

fn listed(client: &mut Client) -> Vec<(String, String)> {
    let commands = call(client, "session.commands.list", json!({}));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let commands = commands["commands"].as_array().cloned().unwrap_or_default();
    commands.iter().map(|command| (text(&command["name"]), text(&command["kind"]))).collect()
}

#[test]
fn every_command_that_is_listed_is_carried_out() {
    let (_scratch, _model, mut client) = session(json!({}));
    let commands = listed(&mut client);
    assert!(commands.len() >= 20, "{commands:?}");
    for (name, _) in commands {
        let answer = answer(&mut client, &format!("/{}", name.to_uppercase()));
        let failed = "Request session.commands.invoke failed with message: ";
        let error = answer["error"]["message"].as_str().and_then(|error| error.strip_prefix(failed));
        let usage = format!("Usage: /{name} <");
        // Nothing has been said yet, and the reference refuses to compact that in the same words.
        let expected =
            |error: &str| error.starts_with(&usage) || (name == "compact" && error == "Nothing to compact.");
        assert!(answer.get("error").is_none() || error.is_some_and(expected), "{name}: {answer}");
        if name == "fleet" {
            client.event("session.idle");
        }
    }
    client.finish();
}

#[test]
fn a_command_that_is_sent_as_a_prompt_goes_to_the_model() {
    let (_scratch, model, mut client) = session(json!({}));
    call(&mut client, "session.send", json!({ "prompt": "/compact\nSAY:pong" }));
    client.event("session.idle");
    assert!(model.last_request().to_string().contains("/compact"), "the reference sends it, too");
    client.finish();
}

#[test]
fn what_a_command_does_not_take_is_answered_with_what_it_takes() {
    let (_scratch, _model, mut client) = session(json!({}));
    for (line, expected) in [
        ("allow-all maybe", "failed: Usage: /allow-all [on|off|show]"),
        ("permissions x", "failed: Usage: /permissions [default|allow-all|reset|show]"),
        ("mcp enable", "failed: Usage: /mcp [list|show|enable|disable|reload]"),
        ("skills info", "failed: Usage: /skills [list|info|reload]"),
        ("skills info nope", "failed: there is no skill nope; /skills list says which there are"),
        ("session x", "failed: Usage: /session [info|checkpoints|files|plan|rename]"),
        ("session checkpoints 7", "failed: there is no checkpoint 7"),
        ("add-dir /no/such", "failed: there is no directory /no/such"),
        ("rename", "failed: Usage: /rename <name>"),
        ("nope", "failed: Unknown slash command: /nope"),
    ] {
        assert_eq!(said(&mut client, line), expected, "{line}");
    }
    client.finish();
}

#[test]
fn commands_change_what_the_session_asks_for() {
    let (_scratch, _model, mut client) = session(json!({ "requestPermission": true }));
    let mode = |client: &mut Client| call(client, "session.permissions.getMode", json!({}))["mode"].clone();
    for (line, expected) in [
        ("yolo", "allow-all"),
        ("permissions", "allow-all"),
        ("allow-all off", "manual"),
        ("permissions allow-all", "allow-all"),
        ("reset-allowed-tools", "manual"),
    ] {
        assert!(!said(&mut client, line).starts_with("failed"));
        assert_eq!(mode(&mut client), expected, "{line}");
    }
    assert_eq!(client.event("session.permissions_changed")["mode"], "allow-all");
    client.finish();
}

#[test]
fn what_was_approved_for_the_session_is_taken_back() {
    let (_scratch, _model, mut client) = session(json!({ "requestPermission": true }));
    let touch = "TOOL:bash:{\"command\":\"touch made\",\"description\":\"d\"}\nSAY:done";
    for decision in ["approve-for-session", "reject"] {
        client.send(touch);
        let request = client.event("permission.requested")["requestId"].clone();
        let decided = json!({ "requestId": request, "result": { "kind": decision } });
        call(&mut client, "session.permissions.handlePendingPermissionRequest", decided);
        client.event("session.idle");
        said(&mut client, "reset-allowed-tools");
    }
    client.finish();
}

#[test]
fn the_autopilot_is_switched_on_and_off() {
    let (_scratch, _model, mut client) = session(json!({}));
    for (line, told, mode) in [
        ("autopilot", "The autopilot is on.", "autopilot"),
        ("autopilot", "The autopilot is off.", "interactive"),
        ("autopilot on", "The autopilot is on.", "autopilot"),
        ("autopilot off", "The autopilot is off.", "interactive"),
    ] {
        assert_eq!(said(&mut client, line), told);
        assert_eq!(call(&mut client, "session.mode.get", json!({})), mode);
    }
    client.finish();
}

#[test]
fn directories_are_added_and_listed_and_the_session_moves_to_them() {
    let (scratch, _model, mut client) = session(json!({}));
    let below = scratch.work().join("below");
    std::fs::create_dir(&below).expect("a directory");
    let elsewhere = scratch.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let count = |told: String| told.rsplit(' ').nth(1).and_then(|count| count.parse::<usize>().ok());
    let before = count(said(&mut client, "list-dirs")).expect("how many there are");
    let added = said(&mut client, &format!("add-dir {}", elsewhere.display()));
    assert!(added.contains("elsewhere"), "{added}");
    let dirs = said(&mut client, "list-dirs");
    assert!(dirs.contains("elsewhere"), "{dirs}");
    assert_eq!(count(dirs), Some(before + 1));
    let path = json!({ "path": elsewhere.join("file") });
    let within = "session.permissions.paths.isPathWithinAllowedDirectories";
    assert_eq!(call(&mut client, within, path)["allowed"], true);
    assert!(said(&mut client, "cwd").contains("work"), "where it works is told");
    said(&mut client, "cd below");
    assert_eq!(said(&mut client, "cwd"), format!("The session works in {}.", below.display()));
    assert!(said(&mut client, "cd /no/such").starts_with("failed: "), "a directory that is not there");
    client.finish();
}

#[test]
fn commands_say_what_the_session_has_made_and_used() {
    let (scratch, _model, mut client) = session(json!({}));
    said(&mut client, "allow-all");
    let file = scratch.work().join("made.txt");
    client.send(&format!(
        "TOOL:create:{{\"path\":\"{}\",\"file_text\":\"one\\ntwo\\n\"}}\nSAY:done",
        file.display()
    ));
    client.event("session.idle");
    let usage = said(&mut client, "usage");
    assert!(usage.starts_with("Changes: +2 -0\nRequests: 2 (") && usage.contains("mock-model: "), "{usage}");
    let metrics = call(&mut client, "session.usage.getMetrics", json!({}));
    assert_eq!(metrics["totalUserRequests"], 1, "one of both went on by itself");
    assert!(said(&mut client, "session files").contains("made.txt"));
    assert_eq!(said(&mut client, "session plan"), "The session has no plan.");
    call(&mut client, "session.plan.update", json!({ "content": "# First this" }));
    assert_eq!(said(&mut client, "session plan"), "# First this");
    assert_eq!(said(&mut client, "rename  A new name "), "The session is called A new name now.");
    assert_eq!(call(&mut client, "session.name.get", json!({}))["name"], "A new name");
    let about = said(&mut client, "sessions");
    assert!(about.contains(ID) && about.contains("A new name"), "{about}");
    assert_eq!(
        said(&mut client, "sandbox"),
        "Commands that somebody allowed run without a sandbox; all others are confined."
    );
    assert_eq!(said(&mut client, "model gpt-5"), "Model changed from mock-model to gpt-5");
    assert_eq!(said(&mut client, "models"), "Model: gpt-5");
    assert!(said(&mut client, "compact").starts_with("Compacted the conversation: "));
    assert!(said(&mut client, "session checkpoints").starts_with("1. "), "a summary is a checkpoint");
    assert!(!said(&mut client, "session checkpoints 1").starts_with("failed"));
    client.finish();
}

#[test]
fn some_commands_are_prompts_for_the_client_to_send() {
    let (_scratch, _model, mut client) = session(json!({}));
    for (line, shown, mode) in [
        ("plan paint it", "paint it", json!("plan")),
        ("autopilot paint it", "paint it", json!("autopilot")),
        ("review only a.rs", "Review: only a.rs", Value::Null),
        ("security-review", "Security review: my changes", Value::Null),
        ("rubber-duck the parser", "Second opinion: the parser", Value::Null),
        ("research why it is slow", "Research: why it is slow", Value::Null),
        ("init", "/init", Value::Null),
    ] {
        let answer = answer(&mut client, line);
        let result = &answer["result"];
        assert_eq!((&result["kind"], &result["displayPrompt"]), (&json!("agent-prompt"), &json!(shown)));
        assert_eq!(result["mode"], mode, "{line}");
        assert!(result["prompt"].as_str().is_some_and(|prompt| !prompt.is_empty()), "{answer}");
    }
    assert_eq!(answer(&mut client, "plan")["result"], json!({ "kind": "completed", "mode": "plan" }));
    client.finish();
}

#[test]
fn a_name_is_the_session_s_then_a_client_s_then_a_skill_s() {
    let command = |name: &str| json!({ "name": name, "description": "d" });
    let commands = json!([command("Usage"), command("both"), command("help")]);
    let (scratch, model) = crate::sdk::stage();
    let skills = scratch.root().join("skills");
    for name in ["review", "both", "mine"] {
        let skill = skills.join(name);
        std::fs::create_dir_all(&skill).expect("a directory");
        let text = format!("---\nname: {name}\ndescription: d\n---\nDo it.\n");
        std::fs::write(skill.join("SKILL.md"), text).expect("a skill");
    }
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "commands": commands, "skillDirectories": [skills] }));
    let listed = listed(&mut client);
    let kinds = |name: &str| -> Vec<&str> {
        let called = listed.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        called.map(|(_, kind)| kind.as_str()).collect()
    };
    let expected = [("usage", "builtin"), ("review", "builtin"), ("both", "client"), ("help", "client")];
    for (name, kind) in expected.into_iter().chain([("mine", "skill")]) {
        assert_eq!(kinds(name), [kind], "{name}");
    }
    assert!(said(&mut client, "usage").starts_with("Changes: "));
    assert_eq!(answer(&mut client, "MINE now")["result"]["prompt"], "/mine now");
    let invoked = client.begin("session.commands.invoke", of_session(json!({ "name": "BOTH" })));
    let execute = client.event("command.execute");
    assert_eq!(execute["commandName"], "both");
    let handled = json!({ "requestId": execute["requestId"] });
    call(&mut client, "session.commands.handlePendingCommand", handled);
    assert_eq!(client.answer_to(invoked)["result"], json!({ "kind": "completed" }));
    client.finish();
}

#[test]
fn mcp_servers_and_skills_are_told_and_switched() {
    let servers = json!({ "mcpServers": { "none": { "command": "/no/such/program", "args": [] } } });
    let (_scratch, _model, mut client) = session(servers);
    assert!(said(&mut client, "mcp").starts_with("none: "));
    assert_eq!(said(&mut client, "mcp disable none"), "The MCP server none is off.");
    assert_eq!(said(&mut client, "mcp show none"), "none: disabled");
    assert!(said(&mut client, "mcp show other").starts_with("failed: there is no MCP server other"));
    let environment = said(&mut client, "env");
    assert!(environment.contains("- none (disabled)"), "{environment}");
    assert!(environment.contains("**Instructions**\n\nnone"), "{environment}");
    assert_eq!(said(&mut client, "skills reload"), said(&mut client, "skills"));
    client.finish();
}
