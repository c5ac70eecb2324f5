//! Sections 17.1, 17.2, 17.5, 17.6 and 17.7 of the specification of Symphony with the real program, one test for each of their sentences that no
//! test elsewhere has the name of.

use hangar_test_support::Signal;
use serde_json::{Value, json};

use super::{Place, issue, lines, of_type};

const RUN: &[&str] = &["orchestrate", "--until-idle", "--output-format", "json"];
const MOCK: &str = "  handoff_state: Review\nagent: { kind: mock, max_turns: 1 }\n";

fn worked(place: &Place) -> Vec<Value> {
    lines(&place.command(RUN).finish().expect_exit(0).stdout)
}

fn ends(found: &[Value]) -> Vec<&Value> {
    of_type(found, "sessionEnded").into_iter().map(|line| &line["end"]["kind"]).collect()
}

// ---- 17.1 ----

#[test]
fn an_explicit_path_is_used_and_workflow_md_is_the_default() {
    let place = Place::new(MOCK, "x", &[]);
    let text = std::fs::read_to_string(place.scratch.work().join("WORKFLOW.md")).unwrap();
    place.scratch.file("other.md", &text.replace("kind: mock", "kind: nobody"));
    place.command(&["orchestrate", "validate"]).finish().expect_exit(0);
    let other = place.command(&["orchestrate", "validate", "other.md"]).finish().expect_exit(1);
    assert!(other.stdout.starts_with("other.md:"), "{}", other.stdout);
}

#[test]
fn a_missing_workflow_returns_a_typed_error() {
    let place = Place::new(MOCK, "x", &[]);
    std::fs::remove_file(place.scratch.work().join("WORKFLOW.md")).unwrap();
    let found = place.command(&["orchestrate", "validate", "--format", "json"]).finish().expect_exit(1);
    let report: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(report["errors"][0]["check"], "missing_workflow_file");
}

#[test]
fn an_invalid_reload_keeps_the_last_good_configuration_and_tells_an_operator() {
    let place = Place::new(MOCK, "x", &[]);
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    running.wait_for_event("resumed");
    place.workflow("agent: { kind: nobody }\n", "x");
    let refused = running.wait_for_event("reloadRefused");
    assert!(refused["problems"][0].as_str().unwrap().contains("there is no agent `nobody`"), "{refused}");
    place.scratch.file("issues.json", &json!([issue("A")]).to_string());
    assert_eq!(running.wait_for_event("released")["release"]["state"], "Review", "the old one works on");
    running.signal(Signal::TERM);
    let ended = running.finish().expect_exit(0);
    assert!(ended.stderr.contains("the last valid one stays in use"), "{}", ended.stderr);
}

#[test]
fn the_kind_of_a_tracker_must_be_one_that_there_is() {
    let place = Place::new(MOCK, "x", &[]);
    let found = place.command(&["orchestrate", "validate", "--format", "json"]);
    let found = found.env("SORTIE_TRACKER_KIND", "paper").finish().expect_exit(1);
    let report: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(report["errors"][0]["check"], "tracker.kind");
}

// ---- 17.2 ----

#[test]
fn the_path_of_a_workspace_follows_from_the_identifier() {
    let place = Place::new(MOCK, "x", &[issue("A-1")]);
    let path = |found: &[Value]| of_type(found, "opened")[0]["workspace"].as_str().unwrap().to_owned();
    let first = path(&worked(&place));
    assert_eq!(std::path::Path::new(&first), place.workspace("A-1").canonicalize().unwrap());
    place.edit("A-1", "state", &json!("To Do"));
    assert_eq!(path(&worked(&place)), first);
}

#[test]
fn a_missing_workspace_is_created_once_with_its_hook_and_then_reused() {
    let hooks = "hooks: { after_create: 'echo created >> ../log', before_run: 'echo run >> ../log' }\n";
    let place = Place::new(&format!("{MOCK}{hooks}"), "x", &[issue("A")]);
    worked(&place);
    place.edit("A", "state", &json!("To Do"));
    worked(&place);
    let log = std::fs::read_to_string(place.scratch.work().join("ws/log")).unwrap();
    assert_eq!(log, "created\nrun\nrun\n");
}

#[test]
fn a_file_in_the_place_of_a_workspace_fails_the_attempt_and_stays() {
    let place = Place::new(
        &MOCK.replace("max_turns: 1", "max_turns: 1, max_sessions: 1, max_retry_backoff_ms: 1"),
        "x",
        &[issue("A")],
    );
    std::fs::create_dir_all(place.scratch.work().join("ws")).unwrap();
    std::fs::write(place.workspace("A"), "mine").unwrap();
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    let end = running.wait_for_event("sessionEnded");
    assert_eq!(end["end"]["kind"], "workspace_failed");
    assert!(end["end"]["message"].as_str().unwrap().contains("is no directory"), "{end}");
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
    assert_eq!(std::fs::read_to_string(place.workspace("A")).unwrap(), "mine");
}

#[test]
fn a_repository_that_cannot_be_checked_out_is_an_error_of_the_attempt() {
    let place = Place::new("", "x", &[issue("A")]);
    std::fs::create_dir(place.scratch.work().join("origin")).unwrap();
    place.workflow(MOCK, "x");
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    assert_eq!(running.wait_for_event("sessionEnded")["end"]["kind"], "workspace_failed");
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
}

#[test]
fn before_run_runs_before_each_attempt_and_its_failure_or_timeout_aborts_it() {
    for (script, kind) in [("exit 7", "exited with 7"), ("sleep 1000", "was not done after")] {
        let hooks = format!(
            "hooks: {{ timeout_ms: 700, before_run: 'echo x >> ../runs; [ $(wc -l < ../runs) -gt 1 ] || {{ {script}; }}' }}\n"
        );
        let place = Place::new(&format!("{MOCK}{hooks}"), "x", &[issue("A")]);
        let found = worked(&place);
        assert_eq!(ends(&found)[0], "hook_failed");
        assert!(of_type(&found, "sessionEnded")[0]["end"]["message"].as_str().unwrap().contains(kind));
        assert_eq!(of_type(&found, "opened").len(), 1, "no agent was started for the first attempt");
        assert_eq!(place.issue("A")["state"], "Review");
    }
}

#[test]
fn after_run_runs_after_each_attempt_and_its_failure_or_timeout_is_ignored() {
    for script in ["exit 7", "sleep 1000"] {
        let hooks = format!("hooks: {{ timeout_ms: 700, after_run: 'echo x >> ../runs; {script}' }}\n");
        let place = Place::new(&format!("{MOCK}{hooks}"), "x", &[issue("A")]);
        worked(&place);
        assert_eq!(place.issue("A")["state"], "Review");
        assert_eq!(std::fs::read_to_string(place.scratch.work().join("ws/runs")).unwrap(), "x\n");
    }
}

#[test]
fn before_remove_runs_on_cleanup_and_its_failure_or_timeout_is_ignored() {
    for script in ["exit 7", "sleep 1000"] {
        let hooks =
            format!("hooks: {{ timeout_ms: 700, before_remove: 'echo x >> ../removed; {script}' }}\n");
        let place = Place::new(&format!("{MOCK}{hooks}"), "x", &[issue("A")]);
        worked(&place);
        place.edit("A", "state", &json!("Done"));
        worked(&place);
        assert!(!place.workspace("A").exists());
        assert_eq!(std::fs::read_to_string(place.scratch.work().join("ws/removed")).unwrap(), "x\n");
    }
}

#[test]
fn identifiers_that_would_have_the_same_name_have_workspaces_of_their_own_below_the_root() {
    let place = Place::new(MOCK, "x", &[issue("a/b"), issue("a b"), issue("a_b"), issue("../up")]);
    let found = worked(&place);
    let root = place.scratch.work().join("ws").canonicalize().unwrap();
    let mut names = Vec::new();
    for opened in of_type(&found, "opened") {
        let path = std::path::PathBuf::from(opened["workspace"].as_str().unwrap());
        assert_eq!(path.parent(), Some(root.as_path()));
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(
        names.contains(&"a_b".to_owned()),
        "an identifier that was not changed keeps its name: {names:?}"
    );
}

#[test]
fn the_agent_works_in_the_workspace_of_its_issue_and_a_link_to_elsewhere_is_refused() {
    let script = r#"TOOL:bash:{"command":"pwd > where"}"#;
    let native = MOCK.replace("kind: mock", "kind: native") + "native: { model: mock-model }\n";
    let place = Place::new(&native, script, &[issue("A")]);
    worked(&place);
    let at = std::fs::read_to_string(place.workspace("A").join("where")).unwrap();
    assert_eq!(std::path::Path::new(at.trim()), place.workspace("A").canonicalize().unwrap());
    let place = Place::new(MOCK, "x", &[issue("A")]);
    let elsewhere = place.scratch.work().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::create_dir_all(place.scratch.work().join("ws")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, place.workspace("A")).unwrap();
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    assert_eq!(running.wait_for_event("sessionEnded")["end"]["kind"], "workspace_failed");
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
    assert_eq!(std::fs::read_dir(elsewhere).unwrap().count(), 0);
}

// ---- 17.5 ----

#[test]
fn the_turn_timeout_is_enforced() {
    let place = Place::new(
        "agent: { kind: mock, turn_timeout_ms: 50 }\nmock: { turn_delay_ms: 600000 }\n",
        "x",
        &[issue("A")],
    );
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    assert_eq!(running.wait_for_event("turnEnded")["end"]["kind"], "turn_timeout");
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
}

#[test]
fn the_silence_limit_is_enforced() {
    let place = Place::new(
        "agent: { kind: mock, stall_timeout_ms: 50 }\nmock: { turn_delay_ms: 600000 }\n",
        "x",
        &[issue("A")],
    );
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    assert_eq!(running.wait_for_event("turnEnded")["end"]["kind"], "turn_stalled");
    assert_eq!(running.wait_for_event("retryAt")["cause"], "failure");
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
}

#[test]
fn an_agent_that_needs_an_answer_nobody_gives_does_not_stall() {
    let place = Place::new(
        "agent: { kind: mock }\nmock: { turn_outcomes: [turn_input_required] }\n",
        "x",
        &[issue("A")],
    );
    let found = worked(&place);
    assert_eq!(of_type(&found, "parked")[0]["reason"]["kind"], "turn_input_required");
}

#[test]
fn tokens_of_an_agent_are_counted_over_all_of_its_turns() {
    let yaml = MOCK.replace("max_turns: 1", "max_turns: 3")
        + "mock: { input_tokens_per_turn: 7, output_tokens_per_turn: 2 }\n";
    let place = Place::new(&yaml, "x", &[issue("A")]);
    let found = worked(&place);
    let turns = of_type(&found, "turnEnded");
    let sum: u64 = turns.iter().map(|turn| turn["tokens"]["input"].as_u64().unwrap()).sum();
    assert_eq!((turns.len(), sum), (3, 21));
}

#[test]
fn secrets_of_the_tracker_are_not_inherited_by_the_agent() {
    let native = MOCK.replace("kind: mock", "kind: native") + "native: { model: mock-model }\n";
    let place = Place::new(&native, r#"TOOL:bash:{"command":"env > seen; true"}"#, &[issue("A")]);
    let path = place.scratch.work().join("WORKFLOW.md");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("  kind: file\n", "  kind: file\n  api_key: $MY_TRACKER\n")).unwrap();
    place.command(RUN).env("MY_TRACKER", "tracker-secret-1").env("MY_OTHER", "plain").finish().expect_exit(0);
    let seen = std::fs::read_to_string(place.workspace("A").join("seen")).unwrap();
    assert!(!seen.contains("tracker-secret-1"), "{seen}");
}

// ---- 17.6 ----

#[test]
fn lines_about_an_issue_have_its_identifier_and_its_session() {
    let place = Place::new(MOCK, "x", &[issue("A")]);
    let found = worked(&place);
    let opened = of_type(&found, "opened")[0];
    assert!(opened["issue"] == "id-A" && opened["session"].is_string());
    assert_eq!(of_type(&found, "claimed")[0]["identifier"], "A");
}

#[test]
fn output_that_nobody_reads_does_not_end_the_work() {
    let place = Place::new(MOCK, "x", &[issue("A")]);
    let mut command = place.command(RUN).into_command();
    // Every write to it fails.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = command.stdin(std::process::Stdio::null()).stdout(full).status().unwrap();
    assert!(ended.success(), "{ended:?}");
    assert_eq!(place.issue("A")["state"], "Review");
}

// ---- 17.7 ----

#[test]
fn the_program_ends_with_an_error_if_it_cannot_start_and_well_if_it_is_asked_to_end() {
    let place = Place::new(MOCK, "x", &[]);
    let missing = place.command(&["orchestrate", "nowhere.md"]).finish().expect_exit(1);
    assert!(missing.stderr.contains("nowhere.md is invalid; nothing was started"), "{}", missing.stderr);
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    running.wait_for_event("resumed");
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
    std::fs::remove_file(place.scratch.work().join("WORKFLOW.md")).unwrap();
    let missing = place.command(&["orchestrate"]).finish().expect_exit(1);
    assert!(missing.stderr.contains("missing_workflow_file"), "{}", missing.stderr);
}
