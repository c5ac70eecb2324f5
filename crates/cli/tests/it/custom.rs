//! Custom configuration, on the real binary: hooks, skills, commands, settings.

use hangar_test_support::{Finished, ModelServer, Scratch};
use serde_json::{Value, json};

use crate::hangar;

struct Place {
    scratch: Scratch,
    model: ModelServer,
}

impl Place {
    fn new() -> Self {
        let place = Self { scratch: Scratch::new(), model: ModelServer::start() };
        place.scratch.file(".git/HEAD", "ref: refs/heads/main\n");
        place
    }

    /// The user's hooks.
    fn hooks(&self, hooks: &Value) {
        let dir = self.scratch.state().join("hooks");
        std::fs::create_dir_all(&dir).expect("a home");
        let file = json!({ "version": 1, "hooks": hooks });
        std::fs::write(dir.join("h.json"), file.to_string()).expect("hooks");
    }

    fn run(&self, prompt: &str, args: &[&str]) -> Finished {
        let run =
            hangar(&self.scratch, &self.model).args(["-p", prompt, "--output-format", "json"]).args(args);
        run.finish().expect_exit(0)
    }

    /// The conversation of the last request, without the system prompt.
    fn told(&self) -> Vec<(String, String)> {
        let requests = self.model.requests();
        let asked =
            requests.iter().rfind(|request| request.path.ends_with("/chat/completions")).expect("a request");
        let messages = asked.body["messages"].as_array().expect("messages");
        let text = |message: &Value| match &message["content"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        messages[1..]
            .iter()
            .map(|message| (message["role"].as_str().unwrap_or_default().to_owned(), text(message)))
            .collect()
    }

    fn last(&self, role: &str) -> String {
        self.told().into_iter().rfind(|(who, _)| who == role).expect("a message").1
    }

    fn work(&self, name: &str) -> String {
        self.scratch.work().join(name).display().to_string()
    }
}

fn create(path: &str) -> String {
    format!("TOOL:create:{}\nSAY:ok", json!({ "path": path, "file_text": "x" }))
}

#[test]
fn a_hook_before_a_tool_refuses_it_and_nothing_happens() {
    let place = Place::new();
    place.hooks(&json!({ "preToolUse": [{
        "bash": "echo '{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"not here\"}'",
    }] }));
    let path = place.work("a.txt");
    let run = place.run(&create(&path), &["--allow-all-tools"]);
    assert_eq!(place.last("tool"), "Denied by preToolUse hook: not here");
    assert!(!std::path::Path::new(&path).exists());
    assert!(run.stdout.contains(r#""code":"denied""#), "{}", run.stdout);
    assert!(!run.stdout.contains("hook.start"), "the log's alone: {}", run.stdout);
}

#[test]
fn a_hook_changes_arguments_and_the_record_keeps_the_original() {
    let place = Place::new();
    let (asked, done) = (place.work("a.txt"), place.work("b.txt"));
    let modified = json!({ "modifiedArgs": { "path": done, "file_text": "y" } });
    place.hooks(&json!({ "preToolUse": [{ "bash": format!("echo '{modified}'") }] }));
    let run = place.run(&create(&asked), &["--allow-all-tools"]);
    assert_eq!(std::fs::read_to_string(&done).expect("the file"), "y");
    let start = run.stdout.lines().find(|line| line.contains("tool.execution_start")).expect("a start");
    assert!(start.contains("a.txt") && !start.contains("b.txt"), "{start}");
}

#[test]
fn failing_hooks_refuse_and_late_ones_do_not() {
    let check = |script: &str, expected: &str| {
        let place = Place::new();
        place.hooks(&json!({ "preToolUse": [{ "bash": script, "timeoutSec": 1 }] }));
        place.run(&create(&place.work("a.txt")), &["--allow-all-tools"]);
        let told = place.last("tool");
        assert!(told.contains(expected), "{script}: {told}");
    };
    check("exit 2", "Denied by preToolUse hook: hook exited with code 2");
    check("exit 1", "hooks/h.json\" (hook errored)");
    check("sleep 30", "Created file");
}

#[test]
fn permission_hooks_decide_before_anybody_is_asked() {
    let allow = Place::new();
    allow.hooks(
        &json!({ "permissionRequest": [{ "matcher": "edit", "bash": "echo '{\"behavior\":\"allow\"}'" }] }),
    );
    allow.run(&create(&allow.work("a.txt")), &[]);
    assert!(std::path::Path::new(&allow.work("a.txt")).exists());
    let deny = Place::new();
    deny.hooks(
        &json!({ "permissionRequest": [{ "bash": "echo '{\"behavior\":\"deny\",\"message\":\"mine\"}'" }] }),
    );
    deny.run(&create(&deny.work("a.txt")), &["--allow-all-tools"]);
    assert_eq!(deny.last("tool"), "Permission denied by a PermissionRequest hook: mine");
    let rule = Place::new();
    rule.hooks(&json!({ "permissionRequest": [{ "bash": "echo '{\"behavior\":\"allow\"}'" }] }));
    rule.run(&create(&rule.work("a.txt")), &["--deny-tool", "write"]);
    assert!(!std::path::Path::new(&rule.work("a.txt")).exists(), "a rule stands");
}

#[test]
fn prompts_are_reworded_for_the_model_alone() {
    let place = Place::new();
    place.hooks(&json!({
        "sessionStart": [
            { "bash": "echo '{\"additionalContext\":\"one\"}'" },
            { "bash": "echo '{\"additionalContext\":\"two\"}'" },
        ],
        "userPromptSubmitted": [{ "bash": "echo '{\"modifiedPrompt\":\"SAY:other\",\"additionalContext\":\"more\"}'" }],
    }));
    let run = place.run("SAY:mine", &[]);
    let told = place.told();
    assert_eq!(told[0].1, "one\n\ntwo");
    assert!(told[1].1.contains("</current_datetime>\n\nSAY:other\n\n<system_reminder>\n"), "{told:?}");
    assert!(told[1].1.ends_with("\n\n<system_reminder>\nmore\n</system_reminder>"), "{told:?}");
    let events = run.events();
    let messages = Finished::of_type(&events, "user.message");
    let prompt =
        messages.iter().find(|event| event["data"]["content"] == "SAY:mine").expect("the prompt as it was");
    assert_eq!(prompt["data"]["transformedContent"], told[1].1.as_str());
}

#[test]
fn a_hook_sends_a_run_on_at_most_eight_times() {
    let place = Place::new();
    let log = place.work("stops");
    place.hooks(&json!({ "agentStop": [{
        "bash": format!("cat >> {log}; echo >> {log}; echo '{{\"decision\":\"block\",\"reason\":\"SAY:on\"}}'"),
    }] }));
    let run = place.run("SAY:done", &[]);
    let events = run.events();
    let said: Vec<&str> = Finished::of_type(&events, "user.message")
        .iter()
        .map(|event| event["data"]["content"].as_str().expect("what was said"))
        .collect();
    assert_eq!(said, [&["SAY:done"][..], &["SAY:on"; 8]].concat());
    assert_eq!(place.model.requests().len(), 9);
    let asked = std::fs::read_to_string(log).expect("the hook's notes");
    let active: Vec<bool> = asked
        .lines()
        .map(|line| {
            let payload: Value = serde_json::from_str(line).expect("a payload");
            assert!(payload["transcriptPath"].as_str().is_some_and(|path| path.ends_with("events.jsonl")));
            assert_eq!(payload["stopReason"], "end_turn");
            payload["stop_hook_active"] == true
        })
        .collect();
    assert_eq!(active, [false, true, true, true, true, true, true, true]);
}

#[test]
fn each_event_is_told_in_both_dialects() {
    let place = Place::new();
    let log = place.work("events");
    let note =
        |event: &str| json!([{ "bash": format!("printf '{event} ' >> {log}; cat >> {log}; echo >> {log}") }]);
    let events = [
        "sessionStart",
        "SessionStart",
        "userPromptSubmitted",
        "UserPromptSubmit",
        "userPromptTransformed",
        "preToolUse",
        "PreToolUse",
        "permissionRequest",
        "PermissionRequest",
        "postToolUse",
        "PostToolUse",
        "postToolUseFailure",
        "agentStop",
        "Stop",
        "sessionEnd",
        "SessionEnd",
    ];
    place.hooks(&Value::Object(events.iter().map(|event| ((*event).to_owned(), note(event))).collect()));
    let prompt = format!(
        "TOOL:bash:{}\nTOOL:view:{}\nSAY:ok",
        json!({ "command": "echo hi", "description": "d" }),
        json!({ "path": place.work("gone") })
    );
    place.run(&prompt, &["--allow-all-tools"]);
    let text = std::fs::read_to_string(log).expect("the hooks' notes");
    let payloads: Vec<(&str, Value)> = text
        .lines()
        .map(|line| {
            let (event, payload) = line.split_once(' ').expect("a note");
            (event, serde_json::from_str(payload).expect("JSON"))
        })
        .collect();
    for event in events {
        assert!(payloads.iter().any(|(told, _)| *told == event), "{event} was not asked:\n{text}");
    }
    for (event, payload) in &payloads {
        // Questions about permissions look the same to everybody.
        let snake = event.starts_with(char::is_uppercase) && *event != "PermissionRequest";
        let (session, time) = if snake {
            ("session_id", payload["timestamp"].is_string())
        } else {
            ("sessionId", payload["timestamp"].is_i64())
        };
        assert!(payload[session].is_string() && time && payload["cwd"].is_string(), "{event}: {payload}");
        assert_eq!(payload["hook_event_name"].is_string(), snake, "{event}: {payload}");
    }
    let of = |wanted: &str| &payloads.iter().find(|(event, _)| *event == wanted).expect("asked").1;
    assert_eq!(of("PreToolUse")["tool_name"], "Bash");
    assert_eq!(of("permissionRequest")["toolInput"], json!({ "command": "echo hi" }));
    assert_eq!(of("postToolUse")["toolResult"]["resultType"], "success");
    assert_eq!(of("sessionEnd")["reason"], "complete");
}

#[test]
fn broken_hook_files_are_warnings_and_hooks_of_a_project_need_trust() {
    let place = Place::new();
    place.hooks(&json!({}));
    std::fs::write(place.scratch.state().join("hooks/broken.json"), "{nope").expect("a broken file");
    let hooks = json!({ "version": 1, "hooks": { "sessionStart": [{ "bash": "touch started" }] } });
    place.scratch.file(".github/hooks/p.json", &hooks.to_string());
    let run = place.run("SAY:ok", &[]);
    let warnings: Vec<&str> = run.stdout.lines().filter(|line| line.contains("session.warning")).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("broken.json"), "{warnings:?}");
    assert!(!place.scratch.work().join("started").exists());
    place.run("SAY:ok", &["--trust-folder"]);
    assert!(place.scratch.work().join("started").exists());
    std::fs::remove_file(place.scratch.work().join("started")).expect("it was there");
    std::fs::write(place.scratch.state().join("settings.json"), "{ \"disableAllHooks\": true, }")
        .expect("settings");
    place.run("SAY:ok", &["--trust-folder"]);
    assert!(!place.scratch.work().join("started").exists(), "switched off");
}

const SKILL: &str =
    "---\nname: greet\ndescription: Greets people\nallowed-tools: create\n---\n\nSay hello to $ARGUMENTS.\n";

#[test]
fn a_skill_is_listed_told_once_and_its_tools_are_approved() {
    let place = Place::new();
    place.scratch.file(".github/skills/greet/SKILL.md", SKILL);
    let path = place.work("a.txt");
    let call = json!({ "skill": "greet" });
    let prompt = format!("TOOL:skill:{call}\nSAY:ok");
    let first =
        place.run(&prompt, &["--session-id", "5cc89b4c-8c67-482e-9a9c-ffdf79a002d8", "--trust-folder"]);
    assert!(first.stdout.contains("session.skills_loaded") && first.stdout.contains("Greets people"));
    let asked = place.model.requests()[0].body.to_string();
    assert!(asked.contains("Greets people") && !asked.contains("Say hello"), "listed by a line: {asked}");
    let told = place.told();
    let base = place.scratch.work().join(".github/skills/greet");
    let tool = "Skill \"greet\" loaded successfully. Follow the instructions in the skill context.";
    let context = format!(
        "<skill-context name=\"greet\">\nBase directory for this skill: {}\n\nSay hello to $ARGUMENTS.\n\n</skill-context>",
        base.display()
    );
    assert_eq!(told[told.len() - 2].1, tool);
    assert_eq!(told[told.len() - 1].1, context);
    let again =
        format!("TOOL:skill:{call}\nTOOL:create:{}\nSAY:ok", json!({ "path": path, "file_text": "x" }));
    place.run(&again, &["--resume", "5cc89b4c-8c67-482e-9a9c-ffdf79a002d8", "--trust-folder"]);
    let contexts = place.told().iter().filter(|(_, text)| text.starts_with("<skill-context")).count();
    assert_eq!(contexts, 1, "{:?}", place.told());
    assert!(std::path::Path::new(&path).exists(), "the skill's tools are approved: {:?}", place.told());
    // An agent has a conversation of its own, which the skill is no part of yet.
    let inner = format!("TOOL:skill:{call}");
    let task = json!({ "description": "d", "prompt": inner, "agent_type": "general-purpose", "name": "n", "mode": "sync" });
    let before = place.model.requests().len();
    place.run(
        &format!("TOOL:task:{task}\nSAY:ok"),
        &["--resume", "5cc89b4c-8c67-482e-9a9c-ffdf79a002d8", "--allow-tool", "skill"],
    );
    let requests = place.model.requests().split_off(before);
    let agents = requests.iter().filter(|request| !request.body.to_string().contains("TOOL:task"));
    assert!(agents.into_iter().any(|request| request.body.to_string().contains("<skill-context")));
}

#[test]
fn a_skill_of_an_agent_opens_its_tools_to_that_agent_alone() {
    let place = Place::new();
    place.scratch.file(".github/skills/greet/SKILL.md", SKILL);
    let (theirs, ours) = (place.work("theirs.txt"), place.work("ours.txt"));
    let file = |path: &str| format!("TOOL:create:{}", json!({ "path": path, "file_text": "x" }));
    let inner = format!("TOOL:skill:{}", json!({ "skill": "greet" }));
    let task = json!({ "description": "d", "prompt": inner, "agent_type": "general-purpose", "name": "n", "mode": "sync" });
    let more = json!({ "agent_id": "n", "message": file(&theirs) });
    let prompt = format!("TOOL:task:{task}\nTOOL:write_agent:{more}\n{}\nSAY:ok", file(&ours));
    place.run(&prompt, &["--trust-folder"]);
    assert!(std::path::Path::new(&theirs).exists(), "the agent may: {:?}", place.told());
    assert!(
        !std::path::Path::new(&ours).exists(),
        "the session did not invoke the skill: {:?}",
        place.told()
    );
}

#[test]
fn a_prompt_calls_a_skill_by_its_name() {
    let place = Place::new();
    place.scratch.file(".claude/commands/deploy.md", "---\ndescription: d\n---\nDeploy to $ARGUMENTS.\n");
    place.run("/deploy prod", &[]);
    let told = place.told();
    assert!(told[0].1.contains("Deploy to prod."), "{told:?}");
    assert!(told[1].1.contains("</current_datetime>\n\n/deploy prod\n\n"), "{told:?}");
}

#[test]
fn a_plugin_brings_skills_and_hooks() {
    let place = Place::new();
    place.scratch.file("plug/plugin.json", r#"{"name": "plug"}"#);
    place.scratch.file("plug/skills/greet/SKILL.md", SKILL);
    let hooks =
        json!({ "version": 1, "hooks": { "sessionStart": [{ "bash": "touch ${PLUGIN_ROOT}/started" }] } });
    place.scratch.file("plug/hooks.json", &hooks.to_string());
    let run = place.run("SAY:ok", &["--plugin-dir", "plug"]);
    assert!(run.stdout.contains(r#""source":"plugin""#), "{}", run.stdout);
    assert!(place.scratch.work().join("plug/started").exists());
}
