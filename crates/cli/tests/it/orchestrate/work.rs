//! Issues that are worked on.

use serde_json::{Value, json};

use super::{Place, git, issue, lines, of_type};

const HANDOFF: &str = "  handoff_state: Review\n  in_progress_state: In Progress\n";
const RUN: &[&str] = &["orchestrate", "--until-idle", "--output-format", "json"];

#[test]
fn issues_get_their_turns_and_are_handed_over() {
    let yaml = format!(
        "{HANDOFF}  comments: {{ on_dispatch: true, on_completion: true }}\nagent: {{ kind: mock, max_turns: 2 }}\n"
    );
    let place = Place::new(&yaml, "Do {{ .issue.title }}.", &[issue("A"), issue("B"), issue("C")]);
    let found = place.command(RUN).finish().expect_exit(0);
    let found = lines(&found.stdout);
    assert_eq!(of_type(&found, "turnStarted").len(), 6);
    let released = of_type(&found, "released");
    assert_eq!(released.len(), 3);
    for end in released {
        assert_eq!(end["release"], json!({ "why": "handedOff", "state": "Review" }));
    }
    for name in ["A", "B", "C"] {
        let issue = place.issue(name);
        assert_eq!(issue["state"], "Review");
        assert_eq!(issue["comments"].as_array().unwrap().len(), 2, "{issue}");
        assert!(place.workspace(name).join(".sortie/.gitignore").exists());
    }
    let again = place.command(RUN).finish().expect_exit(0);
    assert!(of_type(&lines(&again.stdout), "claimed").is_empty(), "nothing is done twice");
}

#[test]
fn a_real_agent_works_in_a_worktree_of_the_repository() {
    let script = r#"TOOL:bash:{"command":"echo mended > mended.txt; cat base.txt > copy.txt"}
SAY:done"#;
    let place = Place::new("", "x", &[]);
    let origin = place.scratch.work().join("origin");
    std::fs::create_dir(&origin).unwrap();
    git(&origin, "git init -q -b main . && echo base > base.txt && git add base.txt && git commit -qm one");
    place.scratch.file("issues.json", &json!([issue("A/1")]).to_string());
    let hooks = "hooks:\n  after_create: 'git status --short --branch > .sortie/created; echo $SORTIE_ISSUE_IDENTIFIER >> .sortie/created'\n  after_run: 'git add -A && git -c user.name=t -c user.email=t@x commit -qm work'\n";
    place.workflow(
        &format!(
            "{HANDOFF}agent: {{ kind: native, max_turns: 1 }}\nnative: {{ model: mock-model }}\n{hooks}"
        ),
        script,
    );
    let found = place.command(RUN).finish().expect_exit(0);
    assert_eq!(place.issue("A/1")["state"], "Review", "{}", found.stdout);
    let found = lines(&found.stdout);
    let opened = of_type(&found, "opened")[0];
    assert_eq!(opened["branch"], "hangar/A/1");
    let workspace = std::path::PathBuf::from(opened["workspace"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(workspace.join("copy.txt")).unwrap(), "base\n");
    let created = std::fs::read_to_string(workspace.join(".sortie/created")).unwrap();
    assert_eq!(created, "## hangar/A/1\nA/1\n");
    assert_eq!(git(&workspace, "git show --stat --format=%s HEAD | head -1; git status --short"), "work");
    // The issue is closed, with changes that nobody committed: they are kept.
    std::fs::write(workspace.join("dirty.txt"), "x").unwrap();
    place.edit("A/1", "state", &json!("Done"));
    let found = place.command(RUN).finish().expect_exit(0);
    let found = lines(&found.stdout);
    let kept = of_type(&found, "workspaceRemoved")[0]["kept"].as_str().unwrap().to_owned();
    assert!(!workspace.exists());
    let mirrors = place.scratch.state().join("orchestrator/mirrors");
    let mirror = std::fs::read_dir(mirrors).unwrap().next().unwrap().unwrap().path();
    assert_eq!(
        git(
            &mirror,
            &format!(
                "git --git-dir . show {kept}:dirty.txt; git --git-dir . rev-parse --verify -q hangar/A/1 >/dev/null"
            )
        ),
        "x"
    );
}

#[test]
fn an_agent_that_is_blocked_parks_its_issue_until_a_person_acts() {
    let script = r#"{{ if .run.is_continuation }}SAY:again{{ else }}TOOL:bash:{"command":"echo blocked > .sortie/status"}{{ end }}"#;
    let place = Place::new("agent: { kind: native, max_turns: 1, max_sessions: 1 }\n", script, &[issue("A")]);
    let found = place.command(RUN).finish().expect_exit(0);
    assert_eq!(of_type(&lines(&found.stdout), "parked")[0]["reason"]["why"], "blocked");
    assert_eq!(place.issue("A")["labels"], json!(["needs-human"]));
    let shown = place.command(&["issue", "show", "A"]).finish().expect_exit(0);
    assert!(
        shown.stdout.contains("parked until a person acts: the agent reports that it is blocked"),
        "{}",
        shown.stdout
    );
    let again = place.command(RUN).finish().expect_exit(0);
    assert!(of_type(&lines(&again.stdout), "turnStarted").is_empty());
    place.edit("A", "labels", &json!([]));
    let again = place.command(RUN).finish().expect_exit(0);
    assert_eq!(of_type(&lines(&again.stdout), "turnStarted").len(), 1);
}

#[test]
fn an_issue_that_is_closed_elsewhere_stops_its_agent() {
    let script = r#"TOOL:bash:{"command":"touch started; sleep 1000"}"#;
    let place = Place::new("agent: { kind: native }\n", script, &[issue("A")]);
    let mut running = place.command(RUN).start();
    running.wait_for_event("turnStarted");
    place.edit("A", "state", &json!("Done"));
    assert_eq!(running.wait_for_event("released")["release"]["why"], "inactive");
    running.wait_for_event("workspaceRemoved");
    running.finish().expect_exit(0);
    assert!(!place.workspace("A").exists());
}

#[test]
fn a_turn_that_takes_too_long_is_ended_and_tried_again() {
    let script = r#"{{ if .attempt }}SAY:better{{ else }}TOOL:bash:{"command":"sleep 1000"}{{ end }}"#;
    let place = Place::new(
        &format!("{HANDOFF}agent: {{ kind: native, max_turns: 1, turn_timeout_ms: 1500 }}\n"),
        script,
        &[issue("A")],
    );
    let found = place.command(RUN).finish().expect_exit(0);
    let found = lines(&found.stdout);
    assert_eq!(of_type(&found, "turnEnded")[0]["end"]["kind"], "turn_timeout");
    assert_eq!(place.issue("A")["state"], "Review");
}

#[test]
fn a_silent_command_is_no_stall() {
    let limits =
        "agent: { kind: native, max_turns: 1, stall_timeout_ms: 4000 }\nnative: { model: mock-model }\n";
    let script = "TOOL:bash:{\"command\":\"sleep 6\"}\nSAY:done";
    let place = Place::new(&format!("{HANDOFF}{limits}"), script, &[issue("A")]);
    let found = place.command(RUN).finish().expect_exit(0);
    assert_eq!(place.issue("A")["state"], "Review", "{}", found.stdout);
    assert!(of_type(&lines(&found.stdout), "retryAt").is_empty(), "{}", found.stdout);
}

#[test]
fn a_failure_that_would_happen_again_parks_the_issue() {
    let place = Place::new(
        "agent: { kind: mock }\nmock: { turn_outcomes: [turn_input_required] }\n",
        "x",
        &[issue("A")],
    );
    let found = place.command(RUN).finish().expect_exit(0);
    let found = lines(&found.stdout);
    assert_eq!(of_type(&found, "parked")[0]["reason"]["kind"], "turn_input_required");
    place.workflow("agent: { kind: mock }\n", "{{ .issue.nothing }}");
    place.command(&["issue", "retry", "A"]).finish().expect_exit(0);
    let found = place.command(RUN).finish().expect_exit(0);
    let reason = &of_type(&lines(&found.stdout), "parked")[0]["reason"].clone();
    assert_eq!(reason["kind"], "template_render_error");
    assert!(reason["message"].as_str().unwrap().contains("WORKFLOW.md:12: `.issue.nothing`"), "{reason}");
}

#[test]
fn a_failing_hook_fails_the_attempt_and_a_new_one_creates_the_workspace_again() {
    let hooks = "hooks:\n  after_create: 'echo x >> ../created; [ $(wc -l < ../created) -gt 1 ] || { touch half; exit 7; }'\n  before_run: '[ ! -e half ]'\n";
    let place =
        Place::new(&format!("{HANDOFF}agent: {{ kind: mock, max_turns: 1 }}\n{hooks}"), "x", &[issue("A")]);
    let found = place.command(RUN).finish().expect_exit(0);
    let found = lines(&found.stdout);
    let ends: Vec<&Value> =
        of_type(&found, "sessionEnded").into_iter().map(|line| &line["end"]["kind"]).collect();
    assert_eq!(ends[0], "hook_failed", "{ends:?}");
    assert_eq!(place.issue("A")["state"], "Review");
}

#[test]
fn the_workflow_is_loaded_again_while_it_runs_and_an_invalid_one_is_not() {
    let place = Place::new("agent: { kind: mock, max_turns: 1 }\nmock: { turn_delay_ms: 10 }\n", "x", &[]);
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    running.wait_for_event("resumed");
    place.workflow("agent: { kind: mock, max_turns: 0 }\n", "x");
    // The tracker is another one, too.
    place.scratch.file("other.json", &json!([issue("A")]).to_string());
    let text = std::fs::read_to_string(place.scratch.work().join("WORKFLOW.md")).unwrap();
    let text = text
        .replace("max_turns: 0", "max_turns: 1")
        .replace("issues.json", "other.json")
        .replace("  kind: file\n", "  kind: file\n  handoff_state: Review\n");
    let draft = place.scratch.file("WORKFLOW.draft", &text);
    std::fs::rename(draft, place.scratch.work().join("WORKFLOW.md")).unwrap();
    running.wait_for_event("reloaded");
    assert_eq!(running.wait_for_event("released")["release"]["state"], "Review");
    running.signal(hangar_test_support::Signal::TERM);
    running.finish().expect_exit(0);
}

#[test]
fn issues_are_stopped_and_retried_from_another_process() {
    let place = Place::new(
        "agent: { kind: mock }\nmock: { turn_delay_ms: 600000 }\n",
        "x",
        &[issue("A"), issue("B")],
    );
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    running.wait_for_event("turnStarted");
    running.wait_for_event("turnStarted");
    let listed = place.command(&["issues"]).finish().expect_exit(0);
    assert!(listed.stdout.contains("A  To Do  Mend it  running: it runs, in turn 1\n"), "{}", listed.stdout);
    let second = place.command(&["orchestrate"]).finish().expect_exit(1);
    assert!(second.stderr.contains("another process works on the issues"), "{}", second.stderr);
    place.command(&["issue", "stop", "A"]).finish().expect_exit(0);
    assert_eq!(running.wait_for_event("parked")["reason"]["why"], "stopped");
    place.command(&["issue", "retry", "A"]).finish().expect_exit(0);
    assert_eq!(running.wait_for_event("turnStarted")["issue"], "id-A");
    let queue = place.command(&["queue", "--json"]).finish().expect_exit(0);
    let queue: Value = serde_json::from_str(&queue.stdout).unwrap();
    assert_eq!(queue["running"].as_array().unwrap().len(), 2, "each session has a slot of the queue");
    running.signal(hangar_test_support::Signal::TERM);
    running.finish().expect_exit(0);
}

#[test]
fn the_limits_of_the_home_hold_for_issues() {
    let place = Place::new(
        "agent: { kind: mock, max_turns: 1 }\nmock: { turn_delay_ms: 600000 }\n",
        "x",
        &[issue("A"), issue("B")],
    );
    std::fs::create_dir_all(place.scratch.state()).unwrap();
    std::fs::write(place.scratch.state().join("config.toml"), "[limits]\nglobal = 1\n").unwrap();
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    running.wait_for_event("turnStarted");
    let queue = place.command(&["queue", "--json"]).finish().expect_exit(0);
    let queue: Value = serde_json::from_str(&queue.stdout).unwrap();
    assert_eq!(
        (queue["running"].as_array().unwrap().len(), queue["waiting"].as_array().unwrap().len()),
        (1, 1),
        "{queue}"
    );
    running.signal(hangar_test_support::Signal::TERM);
    running.finish().expect_exit(0);
}

#[test]
fn an_agent_reviews_its_own_work_until_the_commands_pass() {
    // The commands print what the model does next.
    let place = Place::new("", "x", &[issue("A")]);
    let origin = place.scratch.work().join("origin");
    std::fs::create_dir(&origin).unwrap();
    git(&origin, "git init -q -b main . && echo base > base.txt && git add base.txt && git commit -qm one");
    let round = |verdict: &str, then: &str| {
        let command = format!(
            "echo '{{\"verdict\":\"{verdict}\",\"summary\":\"s\"}}' > .sortie/review_verdict.json{then}"
        );
        format!("TOOL:bash:{}\n", json!({ "command": command }))
    };
    place.scratch.file("bad.txt", &round("pass", "; echo good > work.txt"));
    place.scratch.file("good.txt", &round("pass", ""));
    let work = place.scratch.work().display().to_string();
    let verify = format!(
        "echo checked; if grep -q good work.txt; then cat {work}/good.txt; else cat {work}/bad.txt; exit 1; fi"
    );
    place.workflow(
        &format!(
            "{HANDOFF}agent: {{ kind: native, max_turns: 1 }}\nnative: {{ model: mock-model }}\nself_review:\n  enabled: true\n  verification_commands:\n    - '{verify}'\nhooks:\n  after_run: 'echo $SORTIE_SELF_REVIEW_STATUS > .sortie/hook; cat $SORTIE_SELF_REVIEW_SUMMARY_PATH >> .sortie/hook'\n"
        ),
        r#"TOOL:bash:{"command":"echo bad > work.txt"}"#,
    );
    let found = place.command(RUN).finish().expect_exit(0);
    assert_eq!(place.issue("A")["state"], "Review", "{}", found.stdout);
    let hook = std::fs::read_to_string(place.workspace("A").join(".sortie/hook")).unwrap();
    assert!(hook.starts_with("passed\n## Round 1: pass\n") && hook.contains("## Round 2: pass"), "{hook}");
    let saw =
        |text: &str| place.model.requests().iter().any(|request| request.body.to_string().contains(text));
    assert!(saw("+bad") && saw("exited with 1"), "the diff and the failed command are in the prompt");
}

#[test]
fn the_least_recently_used_workspace_goes_and_its_work_is_kept() {
    let place = Place::new("", "x", &[issue("A"), issue("B")]);
    let origin = place.scratch.work().join("origin");
    std::fs::create_dir(&origin).unwrap();
    git(&origin, "git init -q -b main . && git commit -q --allow-empty -m one");
    place.workflow("agent: { kind: mock }\n", "x");
    let path = place.scratch.work().join("WORKFLOW.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("  kind: file\n", "  kind: file\n  handoff_state: Review\n");
    let text = text.replace("{ kind: mock }", "{ kind: mock, max_turns: 1, max_concurrent_agents: 1 }");
    let text = text.replace(
        "workspace:\n",
        "hooks: { after_run: 'echo precious > dirty.txt' }\nworkspace:\n  max_workspaces: 1\n",
    );
    std::fs::write(&path, text).unwrap();
    let found = lines(&place.command(RUN).finish().expect_exit(0).stdout);
    let removed = of_type(&found, "workspaceRemoved");
    assert_eq!((removed.len(), &removed[0]["issue"]), (1, &json!("id-A")), "the least recently used");
    assert!(!place.workspace("A").exists() && place.workspace("B").exists());
    let kept = removed[0]["kept"].as_str().unwrap();
    let mirrors = place.scratch.state().join("orchestrator/mirrors");
    let mirror = std::fs::read_dir(mirrors).unwrap().next().unwrap().unwrap().path();
    assert_eq!(git(&mirror, &format!("git --git-dir . show {kept}:dirty.txt")), "precious");
}

#[test]
fn a_workspace_that_is_being_removed_goes_whatever_happens_to_its_issue() {
    let place = Place::new("", "x", &[issue("A")]);
    let work = place.scratch.work();
    std::fs::create_dir(work.join("origin")).unwrap();
    git(&work.join("origin"), "git init -q -b main . && git commit -q --allow-empty -m one");
    let agent = format!("{HANDOFF}agent: {{ kind: mock, max_turns: 1, max_concurrent_agents: 1 }}\n");
    place.workflow(&agent, "x");
    place.command(RUN).finish().expect_exit(0);
    // B takes the only slot, and its workspace is one too many.
    let hook = "hooks: { before_remove: 'echo > ../../begun; read go < ../../go' }\n";
    place.workflow(&format!("{agent}mock: {{ turn_delay_ms: 600000 }}\n{hook}"), "x");
    let text = std::fs::read_to_string(work.join("WORKFLOW.md")).unwrap();
    let text = text.replace("workspace:\n", "workspace:\n  max_workspaces: 1\n");
    std::fs::write(work.join("WORKFLOW.md"), text).unwrap();
    let mut urgent = issue("B");
    urgent["priority"] = json!(1);
    place.scratch.file("issues.json", &json!([issue("A"), urgent]).to_string());
    git(&work, "mkfifo begun go");
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    std::fs::read(work.join("begun")).unwrap();
    place.command(&["issue", "park", "A"]).finish().expect_exit(0);
    running.wait_for_event("requested");
    let mut go = std::fs::File::options().read(true).write(true).open(work.join("go")).unwrap();
    std::io::Write::write_all(&mut go, b"go\n").unwrap();
    assert_eq!(running.wait_for_event("workspaceRemoved")["issue"], "id-A");
    assert!(!place.workspace("A").exists());
    running.signal(hangar_test_support::Signal::TERM);
    running.finish().expect_exit(0);
}

#[test]
fn a_checkout_that_was_killed_in_its_first_moments_is_made_anew() {
    let place = Place::new("", "x", &[issue("A")]);
    let origin = place.scratch.work().join("origin");
    std::fs::create_dir(&origin).unwrap();
    git(&origin, "git init -q -b main . && git commit -q --allow-empty -m one");
    place.workflow(&format!("{HANDOFF}agent: {{ kind: mock, max_turns: 1 }}\n"), "x");
    place.command(RUN).finish().expect_exit(0);
    // What git leaves behind then: a worktree that is locked, and has no files.
    let mirrors = place.scratch.state().join("orchestrator/mirrors");
    let mirror = std::fs::read_dir(mirrors).unwrap().next().unwrap().unwrap().path();
    let killed = place.workspace("B").display().to_string();
    git(
        &mirror,
        &format!(
            "git --git-dir . worktree add -q --no-checkout --lock -b hangar/B {killed} hangar/A; rm -rf {killed}"
        ),
    );
    std::fs::write(place.scratch.work().join("ws/.B.creating"), "").unwrap();
    place.scratch.file("issues.json", &json!([issue("B")]).to_string());
    let found = place.command(RUN).finish().expect_exit(0);
    assert!(of_type(&lines(&found.stdout), "retryAt").is_empty(), "{}", found.stdout);
    assert_eq!(place.issue("B")["state"], "Review");
}
