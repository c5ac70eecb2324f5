//! Section 17.1 of the specification of Symphony, one test for each of its sentences about the file itself.

use std::path::Path;

use serde_json::json;

use super::*;

const TRACKER: &str = "tracker:\n  kind: file\n  active_states: [To Do]\n";

fn environment() -> WorkflowEnvironment {
    let variables =
        [("KEY", "secret"), ("ROOT", "/r")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    WorkflowEnvironment {
        variables: variables.into(),
        home: "/home/me".into(),
        temp: "/tmp".into(),
        ..WorkflowEnvironment::default()
    }
}

fn load_with(yaml: &str, prompt: &str) -> Result<Workflow, Report> {
    load(&format!("---\n{TRACKER}{yaml}---\n{prompt}\n"), Path::new("/w"), &environment())
}

#[track_caller]
fn refused_for(text: &str, check: &str) {
    let report = load(text, Path::new("/w"), &environment()).unwrap_err();
    assert_eq!(report.errors[0].check, check, "{report:?}");
}

#[test]
fn invalid_yaml_front_matter_returns_a_typed_error() {
    refused_for("---\ntracker: [\n---\nx\n", "workflow_parse_error");
    refused_for("---\ntracker: {}\nx\n", "workflow_parse_error");
}

#[test]
fn front_matter_that_is_no_map_returns_a_typed_error() {
    refused_for("---\n- tracker\n---\nx\n", "workflow_front_matter_not_a_map");
}

#[test]
fn defaults_apply_when_optional_values_are_missing() {
    let config = load_with("", "x").unwrap().config;
    assert_eq!((config.agent.max_concurrent, config.agent.max_turns), (10, 20));
    assert_eq!(config.poll_interval.as_millis(), 30_000);
}

#[test]
fn the_kind_of_the_tracker_is_required() {
    refused_for("---\ntracker: { active_states: [a] }\n---\nx\n", "tracker.kind");
}

#[test]
fn the_block_of_the_provider_keeps_keys_that_only_its_adapter_knows() {
    let config = load_with("  provider: { project_number: 7, odd: { deep: [1] } }\n", "x").unwrap().config;
    assert_eq!(
        (&config.tracker.settings["project_number"], &config.tracker.settings["odd"]["deep"][0]),
        (&json!(7), &json!(1))
    );
}

#[test]
fn variables_are_resolved_in_secrets_and_paths() {
    let config = load_with("  api_key: $KEY\nworkspace: { root: $ROOT/ws }\n", "x").unwrap().config;
    assert_eq!(
        (config.tracker.api_key.0.as_str(), config.workspace.root.to_str()),
        ("secret", Some("/r/ws"))
    );
}

#[test]
fn a_tilde_is_the_home_directory() {
    let config = load_with("workspace: { root: ~/ws }\n", "x").unwrap().config;
    assert_eq!(config.workspace.root.to_str(), Some("/home/me/ws"));
}

#[test]
fn the_command_of_codex_is_kept_as_a_shell_command() {
    let config =
        load_with("codex: { command: \"codex app-server --x='$KEY' | tee\" }\n", "x").unwrap().config;
    assert_eq!(config.agent.command.as_deref(), Some("codex app-server --x='$KEY' | tee"));
}

#[test]
fn limits_of_states_have_normal_names_and_invalid_ones_are_ignored() {
    let yaml = "agent:\n  max_concurrent_agents_by_state: { In Progress: 2, Rework: none, Merging: -1 }\n";
    let workflow = load_with(yaml, "x").unwrap();
    assert_eq!(workflow.config.agent.max_concurrent_by_state, [("in progress".to_owned(), 2)].into());
    assert_eq!(workflow.warnings.len(), 2, "and somebody is told");
}

#[test]
fn a_prompt_renders_the_issue_and_the_attempt() {
    for prompt in ["{{ issue.title }}, {{ attempt }}", "{{ .issue.title }}, {{ .attempt }}"] {
        let workflow = load_with("", prompt).unwrap();
        let text = workflow.prompt.render(&json!({ "issue": { "title": "Mend it" }, "attempt": 2 })).unwrap();
        assert_eq!(text, "Mend it, 2");
    }
}

#[test]
fn rendering_fails_on_unknown_variables() {
    for prompt in ["{{ issue.title }} {{ nothing }}", "{{ .issue.title }} {{ .nothing }}"] {
        let workflow = load_with("", prompt).unwrap();
        workflow.prompt.render(&json!({ "issue": { "title": "x" } })).unwrap_err();
    }
}
