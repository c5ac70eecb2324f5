//! Hooks at the edges of a session, on the real binary: how it ends, in plans, in agents, and what they are given.

use std::path::Path;

use hangar_test_support::{Finished, Invocation, ModelServer, Scratch, Signal};
use serde_json::{Value, json};

use crate::hangar;

struct Place {
    scratch: Scratch,
    model: ModelServer,
}

impl Place {
    /// A project with these hooks.
    fn new(hooks: Value) -> Self {
        let place = Self { scratch: Scratch::new(), model: ModelServer::start() };
        place.scratch.file(".git/HEAD", "ref: refs/heads/main\n");
        place.scratch.file(".github/hooks/h.json", &json!({ "hooks": hooks }).to_string());
        place
    }

    /// One in which hooks of these events write down what they are told.
    fn watched(events: &[&str]) -> Self {
        let note = |event: &str| json!([{ "bash": format!("echo \"{event} $(cat)\" >> notes") }]);
        let hooks = events.iter().map(|event| ((*event).to_owned(), note(event))).collect();
        Self::new(Value::Object(hooks))
    }

    fn invocation(&self, prompt: &str, args: &[&str]) -> Invocation {
        hangar(&self.scratch, &self.model)
            .args(["--trust-folder", "-p", prompt, "--output-format", "json"])
            .args(args)
    }

    fn run(&self, prompt: &str, args: &[&str]) -> Finished {
        self.invocation(prompt, args).finish()
    }

    fn notes(&self) -> Vec<(String, Value)> {
        let text = std::fs::read_to_string(self.scratch.work().join("notes")).expect("notes");
        let note = |line: &str| {
            let (event, payload) = line.split_once(' ').expect("a note");
            (event.to_owned(), serde_json::from_str(payload).expect("JSON"))
        };
        text.lines().map(note).collect()
    }

    fn has(&self, file: &str) -> bool {
        self.scratch.work().join(file).exists()
    }

    /// The last tool result that the model was given.
    fn answered(&self) -> String {
        let request = self.model.last_request();
        let messages = request["messages"].as_array().expect("messages").clone();
        let last = messages.iter().rfind(|message| message["role"] == "tool").expect("an answer of a tool");
        last["content"].as_str().expect("text").to_owned()
    }
}

/// Runs a prompt and looks at the order of what was told, and why it ended.
fn check_end(prompt: &str, args: &[&str], told: &[&str], reason: &str) {
    let place = Place::watched(&["agentStop", "errorOccurred", "sessionEnd"]);
    place.run(prompt, args);
    let notes = place.notes();
    let events: Vec<&str> = notes.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!(events, told, "{prompt} {args:?}");
    let end = &notes.last().expect("a note").1;
    assert_eq!(end["reason"], reason, "{prompt} {args:?}");
    // A reason that is an error is told with it.
    assert_eq!(end["error"].is_string(), reason == "error", "{end}");
}

#[test]
fn the_end_of_a_session_is_told_once_and_last_however_it_ends() {
    check_end("SAY:ok", &[], &["agentStop", "sessionEnd"], "complete");
    check_end("SAY:ok", &["--plan"], &["agentStop", "sessionEnd"], "complete");
    check_end("FAIL:400", &[], &["errorOccurred", "sessionEnd"], "error");
    let autopilot = ["--autopilot", "--allow-all-tools", "--max-autopilot-continues", "1"];
    check_end("SAY:ok", &autopilot, &["agentStop", "agentStop", "sessionEnd"], "complete");
    let done = "TOOL:task_complete:{\"summary\": \"all\"}";
    check_end(done, &autopilot, &["agentStop", "sessionEnd"], "complete");
}

#[test]
fn the_end_of_a_session_that_a_signal_stopped_is_told_once() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::watched(&["agentStop", "sessionEnd"]);
        let sleep = json!({ "command": "sleep 300", "description": "d" });
        let mut run = place.invocation(&format!("TOOL:bash:{sleep}"), &["--allow-all-tools"]).start();
        run.wait_for_event("tool.execution_start");
        run.signal(signal);
        let _ = run.finish();
        let notes = place.notes();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert_eq!((notes[0].0.as_str(), &notes[0].1["reason"]), ("sessionEnd", &json!("abort")));
    }
}

fn create(place: &Place, file: &str) -> String {
    let path = place.scratch.work().join(file);
    format!("TOOL:create:{}", json!({ "path": path, "file_text": "x" }))
}

fn task(prompt: &str) -> String {
    let call = json!({ "description": "d", "prompt": prompt, "agent_type": "general-purpose", "name": "n", "mode": "sync" });
    format!("TOOL:task:{call}\nSAY:ok")
}

#[test]
fn an_agent_of_a_session_that_plans_changes_nothing() {
    let place = Place::new(json!({}));
    let prompt = task(&create(&place, "a.txt"));
    place.run(&prompt, &["--plan", "--allow-all-tools"]);
    assert!(!place.has("a.txt"));
    assert!(place.answered().contains("Plan mode changes nothing"), "{}", place.answered());
    place.run(&prompt, &["--allow-all-tools"]);
    assert!(place.has("a.txt"), "without a plan it does");
}

#[test]
fn a_hook_that_allows_a_call_spares_the_question_but_not_the_rules() {
    let allow = "echo '{\"permissionDecision\":\"allow\"}'";
    let check = |args: &[&str], runs: bool| {
        let place = Place::new(json!({ "preToolUse": [{ "bash": allow }] }));
        place.run(&create(&place, "a.txt"), args);
        assert_eq!(place.has("a.txt"), runs, "{args:?}");
    };
    check(&[], true);
    check(&["--deny-tool", "write"], false);
    check(&["--plan"], false);
}

#[test]
fn hooks_know_which_agent_they_are_asked_about() {
    let place = Place::watched(&["preToolUse", "subagentStart", "subagentStop", "agentStop"]);
    place.run(&task(&create(&place, "a.txt")), &["--allow-all-tools"]);
    let notes = place.notes();
    let about = |agent: bool| -> Vec<&str> {
        let ours = notes.iter().filter(|(_, told)| told["agentId"].is_string() == agent);
        ours.map(|(event, _)| event.as_str()).collect()
    };
    assert_eq!(about(true), ["subagentStart", "preToolUse", "agentStop", "subagentStop"]);
    assert_eq!(about(false), ["preToolUse", "agentStop"]);
    let first = &notes.iter().find(|(_, told)| told["agentId"].is_string()).expect("an agent").1;
    assert_eq!(first["agentType"], "general-purpose");
    assert!(first["parentAgentId"].is_string() && first["parentAgentId"] != first["agentId"], "{first}");
}

#[test]
fn hooks_are_given_where_they_are_and_no_credentials() {
    let names =
        "CLAUDE_PROJECT_DIR COPILOT_PROJECT_DIR COPILOT_HOOK_DIR COPILOT_PROVIDER_BASE_URL GITHUB_TOKEN MINE";
    let script = format!("for name in {names}; do echo \"$name=${{!name-none}}\" >> given; done");
    let place = Place::new(json!({ "sessionStart": [{ "bash": script }] }));
    let run = place.invocation("SAY:ok", &["--secret-env-vars", "MINE"]);
    run.env("GITHUB_TOKEN", "gh-token-value").env("MINE", "my-secret-value").finish();
    let given = std::fs::read_to_string(place.scratch.work().join("given")).expect("what was given");
    let of = |name: &str| {
        let value = given.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        Path::new(value.expect("a variable")).to_owned()
    };
    let root = place.scratch.work().canonicalize().expect("the project");
    assert_eq!([of("CLAUDE_PROJECT_DIR"), of("COPILOT_PROJECT_DIR")], [root.clone(), root.clone()]);
    assert_eq!(of("COPILOT_HOOK_DIR"), root.join(".github/hooks"));
    for hidden in ["COPILOT_PROVIDER_BASE_URL", "GITHUB_TOKEN", "MINE"] {
        assert_eq!(of(hidden), Path::new("none"), "{hidden}");
    }
}

#[test]
fn a_hook_of_a_project_is_named_by_its_place_there() {
    let place = Place::new(json!({ "preToolUse": [{ "bash": "exit 1" }] }));
    place.run(&create(&place, "a.txt"), &["--allow-all-tools"]);
    assert_eq!(place.answered(), "Denied by preToolUse hook from \".github/hooks/h.json\" (hook errored)");
}

#[test]
fn changed_arguments_may_come_as_text() {
    let place = Place::new(json!({}));
    let other = json!({ "path": place.scratch.work().join("b.txt"), "file_text": "y" }).to_string();
    let answer = json!({ "modifiedArgs": other }).to_string();
    let hooks = json!({ "hooks": { "preToolUse": [{ "bash": format!("printf %s '{answer}'") }] } });
    place.scratch.file(".github/hooks/h.json", &hooks.to_string());
    place.run(&create(&place, "a.txt"), &["--allow-all-tools"]);
    assert!(place.has("b.txt") && !place.has("a.txt"));
}

#[test]
fn hooks_apply_to_the_tools_of_agents() {
    let check = |hooks: Value, agent_is_told: &str| {
        let place = Place::new(hooks);
        place.run(&task(&create(&place, "a.txt")), &["--allow-all-tools"]);
        let told = place.model.requests()[2].body["messages"].to_string();
        assert!(told.contains(agent_is_told), "{told}");
        place
    };
    let deny = r#"echo '{"permissionDecision":"deny","permissionDecisionReason":"not you"}'"#;
    let denied = check(
        json!({ "preToolUse": [{ "matcher": "create", "bash": deny }] }),
        "Denied by preToolUse hook: not you",
    );
    assert!(!denied.has("a.txt"));
    // The payload says where the project is; the file that is asked for there becomes another one.
    let other = r#"sed 's/.*"cwd":"\([^"]*\)".*/{"modifiedArgs":{"path":"\1\/b.txt","file_text":"y"}}/'"#;
    let changed = check(json!({ "preToolUse": [{ "matcher": "create", "bash": other }] }), "b.txt");
    assert!(changed.has("b.txt") && !changed.has("a.txt"));
    let reword =
        r#"echo '{"modifiedResult":{"textResultForLlm":"as you wish"},"additionalContext":"and hurry"}'"#;
    check(
        json!({ "postToolUse": [{ "matcher": "create", "bash": reword }] }),
        "as you wish\\n\\nTool \\\"create\\\" succeeded",
    );
    let refuse = r#"echo '{"behavior":"deny","message":"nobody may"}'"#;
    let refused =
        check(json!({ "permissionRequest": [{ "matcher": "edit", "bash": refuse }] }), "nobody may");
    assert!(!refused.has("a.txt"));
}

#[test]
fn a_refusal_that_interrupts_ends_the_run_and_nobody_is_asked_whether_it_may() {
    let refuse = r#"echo '{"behavior":"deny","message":"stop","interrupt":true}'"#;
    let note = |event: &str| json!([{ "bash": format!("echo \"{event} $(cat)\" >> notes") }]);
    let place = Place::new(json!({
        "permissionRequest": [{ "bash": refuse }],
        "agentStop": note("agentStop"),
        "sessionEnd": note("sessionEnd"),
    }));
    place.run(&create(&place, "a.txt"), &[]);
    assert_eq!(place.model.requests().len(), 1);
    let told: Vec<String> = place.notes().into_iter().map(|(event, _)| event).collect();
    assert_eq!(told, ["sessionEnd"]);
}

#[test]
fn hooks_hear_of_what_ends_in_the_background() {
    let place = Place::watched(&["notification"]);
    let agent = json!({ "description": "d", "prompt": "SAY:found", "agent_type": "explore", "name": "n", "mode": "background" });
    let shell = json!({ "command": "echo out", "description": "prints", "mode": "async", "shellId": "s" });
    place.run(&format!("TOOL:task:{agent}\nTOOL:bash:{shell}\nSAY:ok"), &["--allow-all-tools"]);
    let mut told: Vec<(String, String)> = place
        .notes()
        .into_iter()
        .map(|(_, told)| {
            let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
            (text("notification_type"), text("message"))
        })
        .collect();
    told.sort();
    let agent = "Agent \"n\" (explore) has finished processing and is now idle.";
    let shell = "Shell command \"prints\" (shellId: s) has completed successfully.";
    let expected = [("agent_idle", agent), ("shell_completed", shell)];
    assert_eq!(told, expected.map(|(kind, text)| (kind.to_owned(), text.to_owned())));
}

/// A project with one hook, which says this.
fn saying(event: &str, answer: Value) -> Place {
    let say = format!("cat > /dev/null; echo '{answer}'");
    Place::new(Value::Object([(event.to_owned(), json!([{ "bash": say }]))].into_iter().collect()))
}

#[test]
fn a_prompt_that_a_hook_blocks_reaches_nobody_and_the_run_has_failed() {
    let place = saying("userPromptSubmitted", json!({ "decision": "block", "reason": "not today" }));
    let run = place.run("SAY:ok", &[]).expect_exit(1);
    let events = run.events();
    assert_eq!(Finished::of_type(&events, "user.message").len(), 0);
    let warning = &Finished::of_type(&events, "session.warning")[0]["data"];
    assert_eq!(
        (&warning["warningType"], &warning["message"]),
        (&json!("policy_blocked"), &json!("not today"))
    );
    assert!(place.model.requests().is_empty());
    // Nobody blocks without saying why.
    saying("userPromptSubmitted", json!({ "decision": "block" })).run("SAY:ok", &[]).expect_exit(0);
}

#[test]
fn a_prompt_that_a_hook_answers_is_answered_without_the_model() {
    let place = saying("userPromptSubmitted", json!({ "handled": true, "responseContent": "by the hook" }));
    let run = place.run("SAY:ok", &[]).expect_exit(0);
    let events = run.events();
    let said = Finished::of_type(&events, "assistant.message");
    assert_eq!((said.len(), &said[0]["data"]["content"]), (1, &json!("by the hook")));
    assert_eq!(Finished::of_type(&events, "user.message").len(), 1);
    assert!(place.model.requests().is_empty());
}

#[test]
fn hooks_that_say_nothing_add_nothing() {
    let place = saying("userPromptSubmitted", json!({ "additionalContext": "" }));
    place.run("SAY:ok", &[]).expect_exit(0);
    // The session itself has one.
    let reminders = place.model.last_request().to_string().matches("<system_reminder>").count();
    assert_eq!(reminders, 1);
}

#[test]
fn a_result_that_a_hook_withholds_is_not_shown_to_the_model() {
    let place = saying("postToolUse", json!({ "decision": "block", "reason": "too private" }));
    let prompt = format!("{}\nSAY:ok", create(&place, "a.txt"));
    let run = place.run(&prompt, &["--allow-all-tools"]);
    assert_eq!(place.answered(), "Tool result blocked: too private");
    let events = run.events();
    let complete = &Finished::of_type(&events, "tool.execution_complete")[0]["data"];
    assert_eq!((&complete["success"], &complete["error"]["code"]), (&json!(false), &json!("denied")));
    assert!(place.has("a.txt"), "what was done stays done");
}

#[test]
fn a_hook_about_permissions_that_fails_refuses_even_what_is_allowed() {
    for script in ["exit 1", "echo nonsense"] {
        let place = Place::new(json!({ "permissionRequest": [{ "bash": script }] }));
        place.run(&format!("{}\nSAY:ok", create(&place, "a.txt")), &["--allow-all-tools"]);
        assert_eq!(
            place.answered(),
            "Permission denied by a PermissionRequest hook: Permission request hook failed"
        );
        assert!(!place.has("a.txt"), "{script}");
    }
}

#[test]
fn what_a_hook_complains_of_at_the_end_is_on_record_before_it() {
    let place = Place::new(json!({ "agentStop": [{ "bash": "echo careful >&2; exit 2" }] }));
    let run = place.run("SAY:ok", &[]).expect_exit(0);
    let events = run.events();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let at =
        |kind: &str| kinds.iter().position(|known| *known == kind).unwrap_or_else(|| panic!("no {kind}"));
    assert!(at("session.warning") < at("assistant.idle"), "{kinds:?}");
}

#[test]
fn hooks_are_not_asked_about_arguments_that_nobody_can_read() {
    let place = Place::watched(&["preToolUse", "postToolUseFailure"]);
    place.run("TOOL:bash:{\"command\": broken\nSAY:ok", &["--allow-all-tools"]);
    let notes = place.notes();
    assert_eq!(notes.iter().map(|(event, _)| event.as_str()).collect::<Vec<_>>(), ["postToolUseFailure"]);
    assert!(place.answered().contains("are not a JSON object ("), "{}", place.answered());
}
