//! Validation and the dry run.

use serde_json::{Value, json};

use super::{Place, issue, lines};

#[test]
fn a_valid_workflow_is_valid_in_both_formats() {
    let place = Place::new("agent: { kind: mock }\n", "Do {{ .issue.title }}.", &[]);
    let text = place.command(&["orchestrate", "validate"]).finish().expect_exit(0);
    assert_eq!(text.stdout, "WORKFLOW.md is valid\n");
    let json = place
        .command(&["orchestrate", "validate", "WORKFLOW.md", "--format", "json"])
        .finish()
        .expect_exit(0);
    let report: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(report, json!({ "valid": true, "errors": [], "warnings": [] }));
}

#[test]
fn problems_have_lines_and_codes() {
    let place =
        Place::new("agnet: {}\nagent:\n  kind: nobody\n  max_turns: many\n", "{{ .issue.titel }}", &[]);
    let found = place.command(&["orchestrate", "validate", "--format", "json"]).finish().expect_exit(1);
    let report: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(report["valid"], false);
    assert_eq!(report["errors"][0]["check"], "type_mismatch");
    assert_eq!(report["errors"][0]["line"], 9);
    let checks: Vec<&str> =
        report["warnings"].as_array().unwrap().iter().filter_map(|w| w["check"].as_str()).collect();
    assert_eq!(checks, ["unknown_key", "unknown_field"]);
    place.workflow("agent:\n  kind: nobody\n", "x");
    let found = place.command(&["orchestrate", "validate"]).finish().expect_exit(1);
    assert_eq!(
        found.stdout,
        "WORKFLOW.md:7: error: there is no agent `nobody`; `hangar runtimes` lists them [agent.kind]\n"
    );
    let refused = place.command(&["orchestrate"]).finish().expect_exit(1);
    assert!(refused.stderr.contains("WORKFLOW.md:7: error:"), "{}", refused.stderr);
    let missing = place.command(&["orchestrate", "validate", "none.md"]).finish().expect_exit(1);
    assert!(missing.stdout.contains("[missing_workflow_file]"), "{}", missing.stdout);
}

#[test]
fn variables_win_over_the_file() {
    let place = Place::new("agent: { kind: nobody }\n", "x", &[]);
    place.command(&["orchestrate", "validate"]).env("SORTIE_AGENT_KIND", "mock").finish().expect_exit(0);
    place.scratch.file("my.env", "SORTIE_AGENT_KIND=mock\n");
    place.command(&["orchestrate", "validate", "--env-file", "my.env"]).finish().expect_exit(0);
    place.command(&["orchestrate", "validate"]).env("SORTIE_ENV_FILE", "my.env").finish().expect_exit(0);
}

#[test]
fn a_dry_run_names_the_reason_for_every_candidate_and_starts_nothing() {
    let mut blocked = issue("B");
    blocked["blocked_by"] = json!([{ "id": "x", "identifier": "X", "state": "Open" }]);
    let mut urgent = issue("C");
    urgent["priority"] = json!(1);
    let place =
        Place::new("agent: { kind: mock, max_concurrent_agents: 1 }\n", "x", &[issue("A"), blocked, urgent]);
    let found =
        place.command(&["orchestrate", "--dry-run", "--output-format", "json"]).finish().expect_exit(0);
    let found = lines(&found.stdout);
    let fates: Vec<(&Value, &Value)> =
        found.iter().map(|line| (&line["identifier"], &line["code"])).collect();
    assert_eq!(
        fates[..3],
        [(&json!("C"), &Value::Null), (&json!("A"), &json!("slots")), (&json!("B"), &json!("blocked_by"))]
    );
    assert_eq!((&found[3]["would_dispatch"], &found[3]["candidates"]), (&json!(1), &json!(3)));
    let text = place.command(&["orchestrate", "--dry-run"]).finish().expect_exit(0);
    assert!(text.stdout.contains("B  To Do  Mend it: it is blocked by X\n"), "{}", text.stdout);
    assert_eq!(place.issue("A")["state"], "To Do");
}

#[test]
fn work_on_other_hosts_is_refused_and_never_done_here() {
    let place =
        Place::new("agent: { kind: mock, max_turns: 1 }\nworker:\n  ssh_hosts: [far]\n", "x", &[issue("A")]);
    let found = place.command(&["orchestrate", "--until-idle"]).finish().expect_exit(1);
    assert!(found.stderr.contains("error: agents do not work on other hosts yet"), "{}", found.stderr);
    place.workflow("agent: { kind: far }\n", "x");
    std::fs::create_dir_all(place.scratch.state()).unwrap();
    let config = "[agents.far]\nruntime = \"codex\"\nhost = \"far\"\n";
    std::fs::write(place.scratch.state().join("config.toml"), config).unwrap();
    place.command(&["orchestrate", "--until-idle"]).finish().expect_exit(0);
    let shown = place.command(&["issue", "show", "A"]).finish().expect_exit(0);
    assert!(shown.stdout.contains("the agent `far` is placed on another host"), "{}", shown.stdout);
    assert!(!place.workspace("A").exists());
}

#[test]
fn the_block_of_the_agent_is_no_unknown_setting() {
    let place = Place::new("agent: { kind: native }\nnative: { model: mock-model }\nnaive: {}\n", "x", &[]);
    let found = place.command(&["orchestrate", "validate"]).finish().expect_exit(0);
    assert!(
        found.stdout.contains("`naive`") && !found.stdout.contains("`native` is not"),
        "{}",
        found.stdout
    );
}
