use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect};

use super::*;
use crate::CustomPaths;

/// Hooks of one user, configured by one file.
struct Fixture {
    dir: tempfile::TempDir,
    hooks: ConfiguredHooks,
    news: mpsc::Receiver<Box<SessionInput>>,
}

impl Fixture {
    fn new(hooks: Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hooks/h.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, json!({ "version": 1, "hooks": hooks }).to_string()).unwrap();
        let files = HookFiles::find(None, &places(dir.path()), &[], false);
        assert_eq!(files.warnings, [""; 0]);
        let (sender, news) = mpsc::channel(16);
        let hooks = ConfiguredHooks::new(files, environment(), sender).unwrap();
        Self { dir, hooks, news }
    }

    async fn ask(&self, kind: HookKind, fields: Value) -> HookAnswer {
        let mut input = json!({
            "sessionId": "s",
            "timestamp": 1_800_000_000_123_i64,
            "cwd": self.dir.path(),
        });
        for (name, value) in fields.as_object().unwrap() {
            input[name] = value.clone();
        }
        // Processes are told apart by the id of what they were asked.
        let id = self.dir.path().display().to_string();
        self.hooks.ask(&HookRequest { id, kind, input }).await
    }
}

fn places(home: &Path) -> CustomPaths {
    CustomPaths { home: home.to_owned(), cwd: home.to_owned(), ..CustomPaths::default() }
}

fn environment() -> HookEnvironment {
    let env = std::env::vars().filter(|(name, _)| name == "PATH").collect();
    HookEnvironment { shell: "/bin/bash".into(), env, allow_localhost: false }
}

fn call() -> Value {
    json!({ "toolName": "bash", "toolArgs": { "command": "ls" }, "toolCallId": "c" })
}

/// Answer of a `preToolUse` hook with this script.
async fn before(script: &str) -> (HookAnswer, Fixture) {
    let fixture = Fixture::new(json!({ "preToolUse": [{ "bash": script, "timeoutSec": 5 }] }));
    (fixture.ask(HookKind::PreToolUse, call()).await, fixture)
}

#[tokio::test]
async fn a_document_on_the_output_is_the_answer() {
    let (answer, _) = before(r#"echo '{"permissionDecision":"deny","permissionDecisionReason":"no"}'"#).await;
    assert_eq!(answer.unwrap().unwrap()["permissionDecisionReason"], "no");
    assert_eq!(before("echo words").await.0, Ok(None));
    assert_eq!(before("true").await.0, Ok(None));
}

#[tokio::test]
async fn exit_2_before_a_tool_refuses() {
    let (answer, _) = before("echo why >&2; exit 2").await;
    let expected =
        json!({ "permissionDecision": "deny", "permissionDecisionReason": "hook exited with code 2" });
    assert_eq!(answer, Ok(Some(expected)));
}

#[tokio::test]
async fn exit_2_refuses_with_the_reason_that_is_given() {
    let said = r#"echo '{"permissionDecision":"deny","permissionDecisionReason":"mine"}'; exit 2"#;
    assert_eq!(before(said).await.0.unwrap().unwrap()["permissionDecisionReason"], "mine");
    let allowed = r#"echo '{"permissionDecision":"allow"}'; exit 2"#;
    assert_eq!(before(allowed).await.0.unwrap().unwrap()["permissionDecision"], "deny");
    let said = r#"echo '{"behavior":"deny","message":"mine"}'; exit 2"#;
    let fixture = Fixture::new(json!({ "permissionRequest": [{ "bash": said }] }));
    assert_eq!(fixture.ask(HookKind::PermissionRequest, call()).await.unwrap().unwrap()["message"], "mine");
}

#[tokio::test]
async fn a_hook_about_a_permission_that_cannot_be_understood_has_failed() {
    for (script, understood) in
        [("echo words", false), ("exit 1", false), ("true", true), ("echo '[]'", true), ("exit 2", true)]
    {
        let fixture = Fixture::new(json!({ "permissionRequest": [{ "bash": script }] }));
        let answer = fixture.ask(HookKind::PermissionRequest, call()).await;
        assert_eq!(answer.is_ok(), understood, "{script}");
    }
}

#[tokio::test]
async fn a_service_that_fails_is_a_failure_and_one_that_may_not_be_asked_has_no_say() {
    let asked = |url: &str| json!({ "preToolUse": [{ "type": "http", "url": url, "timeoutSec": 5 }] });
    // Nobody listens there.
    let fixture = Fixture::new(asked("https://127.0.0.1:9/hook"));
    let answer = fixture.ask(HookKind::PreToolUse, call()).await;
    assert_eq!(answer.unwrap_err().file.as_deref(), Some("hooks/h.json"));
    let fixture = Fixture::new(asked("http://127.0.0.1:9/hook"));
    assert_eq!(fixture.ask(HookKind::PreToolUse, call()).await, Ok(None));
}

#[tokio::test]
async fn a_hook_is_told_what_the_one_before_it_changed() {
    let change = r#"cat > /dev/null; echo '{"modifiedArgs":{"command":"pwd"}}'"#;
    let hooks = json!({ "preToolUse": [{ "bash": change }, { "bash": "cat > told" }] });
    let fixture = Fixture::new(hooks);
    fixture.ask(HookKind::PreToolUse, call()).await.unwrap();
    let told = std::fs::read_to_string(fixture.dir.path().join("told")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap()["toolArgs"]["command"], "pwd");
}

/// The hooks of the beginning in a project with these files, by what they are called.
fn found(files: &[&str], cwd: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let path = dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, r#"{"hooks": {"sessionStart": [{"bash": "true"}]}}"#).unwrap();
    }
    let root = dir.path().to_owned();
    let places = CustomPaths {
        home: root.join("home"),
        cwd: root.join(cwd),
        git_root: Some(root),
        trusted: true,
        ..CustomPaths::default()
    };
    HookFiles::find(None, &places, &[], false).entries.into_iter().map(|entry| entry.file).collect()
}

#[test]
fn hooks_of_a_project_are_found_below_their_folder_and_from_any_directory() {
    let files = [
        "sub/.github/hooks/c.json",
        ".github/copilot/settings.json",
        ".claude/settings.json",
        ".github/hooks/team/b.json",
        ".github/hooks/a.json",
    ];
    let whole = [
        ".github/hooks/a.json",
        ".github/hooks/team/b.json",
        ".claude/settings.json",
        ".github/copilot/settings.json",
    ];
    assert_eq!(found(&files, ""), whole);
    assert_eq!(found(&files, "sub"), [&whole[..], &["sub/.github/hooks/c.json"]].concat());
}

#[tokio::test]
async fn a_matcher_is_about_tools_agents_and_news_and_about_nothing_else() {
    let touch = |name: &str| json!([{ "bash": format!("touch {name}"), "matcher": "startup" }]);
    let fixture = Fixture::new(json!({ "SessionStart": touch("began"), "preToolUse": touch("used") }));
    fixture.ask(HookKind::SessionStart, json!({ "source": "new" })).await.unwrap();
    fixture.ask(HookKind::PreToolUse, call()).await.unwrap();
    let there = |name: &str| fixture.dir.path().join(name).exists();
    assert!(there("began") && !there("used"));
}

#[test]
fn agents_are_told_of_by_the_names_that_either_program_uses() {
    let input = json!({ "sessionId": "s", "timestamp": 0, "agentName": "a", "response": "r" });
    let told = |kind| {
        payload::of(
            &HookRequest { id: "h".into(), kind, input: input.clone() },
            payload::PayloadStyle::Pascal,
        )
    };
    let stop = told(HookKind::SubagentStop);
    assert_eq!((&stop["last_assistant_message"], &stop["response"]), (&json!("r"), &Value::Null));
    let start = told(HookKind::SubagentStart);
    assert_eq!((&start["agent_name"], &start["agentName"]), (&json!("a"), &json!("a")));
}

#[tokio::test]
async fn any_other_failure_before_a_tool_is_a_failure_of_its_file() {
    for script in ["exit 3", "kill -9 $$", "exec /nowhere/at/all"] {
        let (answer, _) = before(script).await;
        assert_eq!(answer.unwrap_err().file.as_deref(), Some("hooks/h.json"), "{script}");
    }
}

#[tokio::test]
async fn a_timeout_lets_the_call_run_and_is_reported_and_leaves_nothing() {
    let script = "echo $$ > pid; sleep 100 & echo $! > child; wait";
    let fixture = Fixture::new(json!({ "preToolUse": [{ "bash": script, "timeoutSec": 0.3 }] }));
    assert_eq!(fixture.ask(HookKind::PreToolUse, call()).await, Ok(None));
    let mut news = fixture.news;
    assert!(matches!(news.try_recv().map(|input| *input), Ok(SessionInput::Command(Command::Record(_)))));
    for name in ["pid", "child"] {
        let pid = std::fs::read_to_string(fixture.dir.path().join(name)).unwrap();
        let gone = async {
            // Killed at once, but a process is listed until its parent has waited for it.
            while is_running(pid.trim()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
    }
}

fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[tokio::test]
async fn elsewhere_failures_change_nothing_and_exit_2_after_a_failure_is_guidance() {
    let hooks = json!({
        "agentStop": [{ "bash": "exit 2" }, { "bash": "echo '{\"decision\":\"block\",\"reason\":\"r\"}'" }],
        "postToolUseFailure": [{ "bash": "echo try again >&2; exit 2" }],
        "permissionRequest": [{ "bash": "exit 2" }],
    });
    let fixture = Fixture::new(hooks);
    let stop = fixture.ask(HookKind::AgentStop, json!({})).await.unwrap().unwrap();
    assert_eq!(stop["decision"], "block");
    let after = fixture.ask(HookKind::PostToolUseFailure, call()).await.unwrap().unwrap();
    assert_eq!(after["additionalContext"], "try again");
    let permission = fixture.ask(HookKind::PermissionRequest, call()).await.unwrap().unwrap();
    assert_eq!(permission["behavior"], "deny");
}

#[tokio::test]
async fn progress_is_told_and_is_no_part_of_the_answer() {
    let script = r#"echo '{"type":"progress","message":"half"}'; echo '{"additionalContext":"x"}'; printf '{"type":"progress","message":"end"}'"#;
    let fixture = Fixture::new(json!({ "sessionStart": [{ "command": script }] }));
    let answer = fixture.ask(HookKind::SessionStart, json!({ "source": "new" })).await;
    assert_eq!(answer, Ok(Some(json!({ "additionalContext": "x" }))));
    let mut news = fixture.news;
    let mut told = Vec::new();
    while let Ok(SessionInput::Command(Command::Record(body))) = news.try_recv().map(|input| *input) {
        told.push(body.data().unwrap()["message"].as_str().unwrap().to_owned());
    }
    assert_eq!(told, ["half", "end"]);
}

#[tokio::test]
async fn a_command_that_floods_is_stopped() {
    let (answer, mut fixture) = before("head -c 11000000 /dev/zero").await;
    assert_eq!(answer, Ok(None));
    assert!(fixture.news.try_recv().is_ok());
}

#[tokio::test]
async fn a_hook_has_its_directory_and_variables() {
    let script = r#"printf '{"additionalContext":"%s %s %s"}' "$(basename $PWD)" "$A" "${SECRET-none}""#;
    let hooks = json!({ "sessionStart": [{ "bash": script, "cwd": "hooks", "env": { "A": "b" } }] });
    let answer = Fixture::new(hooks).ask(HookKind::SessionStart, json!({})).await;
    assert_eq!(answer.unwrap().unwrap()["additionalContext"], "hooks b none");
}

#[tokio::test]
async fn a_matcher_is_anchored_and_knows_both_names_of_a_tool() {
    let says = |text: &str| format!("echo '{{\"additionalContext\":\"{text}\"}}'");
    let fixture = Fixture::new(json!({
        "preToolUse": [
            { "matcher": "bas", "bash": says("part") },
            { "matcher": "bash|edit", "bash": says("ours") },
            { "matcher": "Bash", "bash": says("theirs, but in our dialect") },
        ],
        "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": says("theirs") }] }],
    }));
    let answer = fixture.ask(HookKind::PreToolUse, call()).await;
    assert_eq!(answer.unwrap().unwrap()["additionalContext"], "ours\n\ntheirs");
}

#[tokio::test]
async fn answers_of_claude_hooks_are_understood() {
    let said = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"a":1}}}"#;
    let fixture = Fixture::new(json!({ "PreToolUse": [{ "command": format!("echo '{said}'") }] }));
    let answer = fixture.ask(HookKind::PreToolUse, call()).await.unwrap().unwrap();
    assert_eq!(
        (&answer["permissionDecision"], &answer["modifiedArgs"]),
        (&json!("allow"), &json!({ "a": 1 }))
    );
}

#[tokio::test]
async fn http_without_tls_is_refused_and_lets_the_call_run() {
    let hooks = json!({ "preToolUse": [{ "type": "http", "url": "http://127.0.0.1:1/x" }] });
    let mut fixture = Fixture::new(hooks);
    assert_eq!(fixture.ask(HookKind::PreToolUse, call()).await, Ok(None));
    assert!(fixture.news.try_recv().is_ok());
}

fn check_payload(kind: HookKind, fields: Value, expect: Expect) {
    let mut input = json!({ "sessionId": "s", "timestamp": 1_800_000_000_123_i64, "cwd": "/w" });
    for (name, value) in fields.as_object().unwrap() {
        input[name] = value.clone();
    }
    let request = HookRequest { id: "h".to_owned(), kind, input };
    let camel = payload::of(&request, payload::PayloadStyle::Camel);
    let pascal = payload::of(&request, payload::PayloadStyle::Pascal);
    expect.assert_eq(&format!("{camel}\n{pascal}"));
}

#[test]
fn payloads_before_and_after_a_tool() {
    check_payload(
        HookKind::PreToolUse,
        json!({ "toolName": "create", "toolArgs": { "filePath": "x" }, "toolCallId": "c" }),
        expect![[r#"
            {"sessionId":"s","timestamp":1800000000123,"cwd":"/w","toolName":"create","toolArgs":{"filePath":"x"}}
            {"hook_event_name":"PreToolUse","session_id":"s","timestamp":"2027-01-15T08:00:00.123Z","cwd":"/w","tool_name":"Write","tool_input":{"filePath":"x"}}"#]],
    );
    check_payload(
        HookKind::PostToolUse,
        json!({ "toolName": "skill", "toolArgs": {}, "toolResult": { "resultType": "success", "textResultForLlm": "ok" } }),
        expect![[r#"
            {"sessionId":"s","timestamp":1800000000123,"cwd":"/w","toolName":"skill","toolArgs":{},"toolResult":{"resultType":"success","textResultForLlm":"ok"}}
            {"hook_event_name":"PostToolUse","session_id":"s","timestamp":"2027-01-15T08:00:00.123Z","cwd":"/w","tool_name":"skill","tool_input":{},"tool_result":{"result_type":"success","text_result_for_llm":"ok"}}"#]],
    );
    check_payload(
        HookKind::PostToolUseFailure,
        json!({ "toolName": "view", "toolArgs": {}, "error": "gone" }),
        expect![[r#"
            {"sessionId":"s","timestamp":1800000000123,"cwd":"/w","toolName":"view","toolArgs":{},"error":"gone"}
            {"hook_event_name":"PostToolUseFailure","session_id":"s","timestamp":"2027-01-15T08:00:00.123Z","cwd":"/w","tool_name":"Read","tool_input":{},"error":"gone"}"#]],
    );
}

#[test]
fn payloads_of_the_session() {
    check_payload(
        HookKind::SessionStart,
        json!({ "source": "new", "initialPrompt": "hi" }),
        expect![[r#"
            {"sessionId":"s","timestamp":1800000000123,"cwd":"/w","source":"new","initialPrompt":"hi"}
            {"hook_event_name":"SessionStart","session_id":"s","timestamp":"2027-01-15T08:00:00.123Z","cwd":"/w","source":"new","initial_prompt":"hi"}"#]],
    );
    check_payload(
        HookKind::UserPromptSubmitted,
        json!({ "prompt": "hi" }),
        expect![[r#"
            {"sessionId":"s","timestamp":1800000000123,"cwd":"/w","prompt":"hi"}
            {"hook_event_name":"UserPromptSubmit","session_id":"s","timestamp":"2027-01-15T08:00:00.123Z","cwd":"/w","prompt":"hi"}"#]],
    );
    check_payload(
        HookKind::AgentStop,
        json!({ "transcriptPath": "/t", "stopReason": "end_turn", "stop_hook_active": false, "stopHookActive": false }),
        expect![[r#"
            {"sessionId":"s","timestamp":1800000000123,"cwd":"/w","transcriptPath":"/t","stopReason":"end_turn","stop_hook_active":false}
            {"hook_event_name":"Stop","session_id":"s","timestamp":"2027-01-15T08:00:00.123Z","cwd":"/w","transcript_path":"/t","stop_reason":"end_turn","stop_hook_active":false}"#]],
    );
    check_payload(
        HookKind::ErrorOccurred,
        json!({ "error": { "message": "m", "name": "Error" }, "errorContext": "model_call", "recoverable": true }),
        expect![[r#"
            {"sessionId":"s","timestamp":1800000000123,"cwd":"/w","error":{"message":"m","name":"Error"},"errorContext":"model_call","recoverable":true}
            {"hook_event_name":"ErrorOccurred","session_id":"s","timestamp":"2027-01-15T08:00:00.123Z","cwd":"/w","error":{"message":"m","name":"Error"},"error_context":"model_call","recoverable":true}"#]],
    );
    check_payload(
        HookKind::SessionEnd,
        json!({ "reason": "complete" }),
        expect![[r#"
            {"sessionId":"s","timestamp":1800000000123,"cwd":"/w","reason":"complete"}
            {"hook_event_name":"SessionEnd","session_id":"s","timestamp":"2027-01-15T08:00:00.123Z","cwd":"/w","reason":"complete"}"#]],
    );
}

#[test]
fn questions_about_permissions_look_the_same_to_everybody() {
    check_payload(
        HookKind::PermissionRequest,
        json!({ "hookName": "permissionRequest", "toolName": "bash", "toolInput": { "command": "ls" }, "permissionSuggestions": [] }),
        expect![[r#"
            {"sessionId":"s","timestamp":1800000000123,"cwd":"/w","hookName":"permissionRequest","toolName":"bash","toolInput":{"command":"ls"},"permissionSuggestions":[]}
            {"sessionId":"s","timestamp":1800000000123,"cwd":"/w","hookName":"permissionRequest","toolName":"bash","toolInput":{"command":"ls"},"permissionSuggestions":[]}"#]],
    );
}

/// Files and what becomes of them: how many hooks, how many warnings.
fn check_files(files: &[(&str, &str)], trusted: bool, disabled: bool, expected: (usize, usize)) {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let places = CustomPaths {
        home: dir.path().join("home"),
        cwd: dir.path().join("repo/sub"),
        git_root: Some(dir.path().join("repo")),
        trusted,
        ..CustomPaths::default()
    };
    let (plugins, _) = crate::plugins::load(&[dir.path().join("plugin")]);
    let policy = dir.path().join("policy");
    let found = HookFiles::find(Some(&policy), &places, &plugins, disabled);
    assert_eq!((found.entries.len(), found.warnings.len()), expected, "{found:?}");
}

const ONE: &str = r#"{"version": 1, "hooks": {"agentStop": [{"bash": "true"}]}}"#;

#[test]
fn all_places_are_read_and_those_of_the_project_only_if_it_is_trusted() {
    let files = [
        ("policy/a.json", ONE),
        ("home/hooks/b.json", ONE),
        ("home/settings.json", ONE),
        ("repo/.github/hooks/c.json", ONE),
        ("repo/.github/copilot/settings.json", ONE),
        ("repo/.claude/settings.local.json", r#"{"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}}"#),
        ("plugin/hooks.json", ONE),
        ("plugin/skills/x", ""),
    ];
    check_files(&files, true, false, (7, 0));
    check_files(&files, false, false, (4, 0));
    check_files(&files, true, true, (1, 0));
}

#[test]
fn what_is_broken_is_left_out_and_named() {
    check_files(&[("home/hooks/a.json", "{nope"), ("home/hooks/b.json", ONE)], false, false, (1, 1));
    check_files(&[("home/hooks/a.json", r#"{"version": 2, "hooks": {}}"#)], false, false, (0, 1));
    let unversioned = r#"{"hooks": {"agentStop": [{"bash": "true"}]}}"#;
    check_files(&[("home/hooks/a.json", unversioned)], false, false, (1, 0));
    let entries = r#"{"version": 1, "hooks": {"agentStop": [{"type": "command"}, {"bash": "x", "matcher": "("}, {"bash": "x"}], "nosuch": []}}"#;
    check_files(&[("home/hooks/a.json", entries)], false, false, (1, 3));
    check_files(
        &[(
            "home/hooks/a.json",
            r#"{"version": 1, "disableAllHooks": true, "hooks": {"agentStop": [{"bash": "x"}]}}"#,
        )],
        false,
        false,
        (0, 0),
    );
}
