use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::config::Comments;
use crate::template::Language;

const TRACKER: &str = "tracker:\n  kind: file\n  active_states: [To Do]\n  terminal_states: [Done]\n";

fn environment(variables: &[(&str, &str)]) -> WorkflowEnvironment {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    WorkflowEnvironment {
        variables: variables.iter().map(owned).collect(),
        home: "/home/me".into(),
        temp: "/tmp".into(),
        from_file: BTreeMap::new(),
    }
}

fn loaded(yaml: &str, variables: &[(&str, &str)]) -> Result<Workflow, Report> {
    load(&format!("---\n{yaml}---\nDo {{{{ .issue.title }}}}.\n"), Path::new("/w"), &environment(variables))
}

/// A file with the tracker that is needed, and more.
#[track_caller]
fn config(yaml: &str, variables: &[(&str, &str)]) -> Config {
    loaded(&format!("{TRACKER}{yaml}"), variables).unwrap().config
}

/// The lines of all problems of a text.
fn problems(text: &str) -> Vec<String> {
    match load(text, Path::new("/w"), &environment(&[])) {
        Ok(workflow) => workflow.warnings.iter().map(ToString::to_string).collect(),
        Err(report) => report.all().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn refused(yaml: &str, line: &str) {
    let found = problems(&format!("---\n{yaml}---\nx\n"));
    assert!(found.iter().any(|found| found == line), "{found:#?}");
}

#[test]
fn defaults_are_those_of_the_table() {
    let config = config("", &[]);
    assert_eq!(config.poll_interval, Duration::from_millis(30_000));
    assert_eq!(config.workspace.root, PathBuf::from("/tmp/sortie_workspaces"));
    assert_eq!(config.hooks.timeout, Duration::from_millis(60_000));
    let agent = &config.agent;
    assert_eq!((agent.kind.as_str(), agent.runtime(), &agent.command), ("claude-code", "claude", &None));
    assert_eq!((agent.max_concurrent, agent.max_turns, agent.max_sessions), (10, 20, None));
    assert_eq!(agent.turn_timeout, Duration::from_millis(3_600_000));
    assert_eq!(agent.read_timeout, Duration::from_millis(5000));
    assert_eq!(agent.stall_timeout, Some(Duration::from_millis(300_000)));
    assert_eq!(agent.max_retry_backoff, Duration::from_millis(300_000));
    assert_eq!((config.server.port, config.server.host.to_string().as_str()), (None, "127.0.0.1"));
    assert_eq!((config.pulls.ci.max_retries, config.pulls.ci.max_log_lines), (2, 50));
    assert_eq!(config.pulls.ci.escalation_label, "needs-human");
    assert_eq!(config.pulls.poll_interval, Duration::from_millis(120_000));
    assert_eq!(
        (config.pulls.reviews.debounce, config.pulls.reviews.max_rounds),
        (Duration::from_secs(60), 3)
    );
    assert_eq!((config.self_review.max_iterations, config.self_review.max_diff_bytes), (3, 102_400));
    assert_eq!(config.worker.host_key_checking, "accept-new");
    assert_eq!(config.tracker.comments, Comments::default());
}

#[test]
fn variables_of_the_process_win_over_the_env_file_and_the_file() {
    let mut environment =
        environment(&[("SORTIE_AGENT_MAX_TURNS", "7"), ("PROJECT", "p"), ("SORTIE_TRACKER_API_KEY", "t$5")]);
    environment.from_file = [("SORTIE_AGENT_MAX_TURNS", "8"), ("SORTIE_POLLING_INTERVAL_MS", "500")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let text = "---\ntracker:\n  kind: file\n  active_states: [a]\n  project: $PROJECT\n  endpoint: x$PROJECT\n  api_key: pre-$PROJECT\nagent: { max_turns: 9 }\npolling: { interval_ms: 1 }\n---\n";
    let config = load(text, Path::new("/w"), &environment).unwrap().config;
    assert_eq!(config.agent.max_turns, 7);
    assert_eq!(config.poll_interval, Duration::from_millis(500));
    assert_eq!((config.tracker.project.as_str(), config.tracker.endpoint.as_str()), ("p", "x$PROJECT"));
    assert_eq!(config.tracker.api_key.0, "t$5", "a value of a variable is not expanded again");
}

#[test]
fn lists_and_booleans_come_from_variables_too() {
    let variables = [
        ("SORTIE_TRACKER_ACTIVE_STATES", "To Do, In Progress"),
        ("SORTIE_TRACKER_COMMENTS_ON_DISPATCH", "1"),
    ];
    let config = config("", &variables);
    assert_eq!(config.tracker.active_states, ["To Do", "In Progress"]);
    assert!(config.tracker.comments.on_dispatch);
}

#[test]
fn paths_are_relative_to_the_workflow() {
    for (root, path) in
        [("ws", "/w/ws"), ("~/ws", "/home/me/ws"), ("$R/ws", "/r/ws"), ("$NONE", "/tmp/sortie_workspaces")]
    {
        let config = config(&format!("workspace: {{ root: '{root}' }}\n"), &[("R", "/r")]);
        assert_eq!(config.workspace.root, PathBuf::from(path), "{root}");
    }
}

#[test]
fn limits_of_states_are_lower_case_and_invalid_ones_are_ignored() {
    let config =
        config("agent:\n  max_concurrent_agents_by_state: { In Progress: 3, todo: 0, x: many }\n", &[]);
    assert_eq!(config.agent.max_concurrent_by_state, [("in progress".to_owned(), 3)].into());
}

#[test]
fn blocks_of_adapters_are_kept_with_their_variables() {
    let config = config(
        "file: { path: $F }\ncodex:\n  command: codex app-server --x='$Y'\n  deep: { a: [1] }\n",
        &[("F", "i.json")],
    );
    assert_eq!(config.tracker.settings["path"], "i.json");
    assert_eq!(config.agent.kind, "codex");
    assert_eq!(config.agent.command.as_deref(), Some("codex app-server --x='$Y'"));
    assert_eq!(config.extensions["codex"]["deep"]["a"][0], 1);
}

#[test]
fn a_silence_limit_of_zero_is_none() {
    assert_eq!(config("agent: { stall_timeout_ms: 0 }\n", &[]).agent.stall_timeout, None);
}

#[test]
fn broken_files_are_refused_with_a_code_and_a_line() {
    assert_eq!(
        problems("---\n- a\n---\n"),
        [
            "WORKFLOW.md:2: error: the front matter must be a map, not a list [workflow_front_matter_not_a_map]"
        ]
    );
    let broken = problems("---\na: [\n---\n");
    assert!(broken[0].ends_with("[workflow_parse_error]"), "{broken:?}");
    refused(
        "tracker: { active_states: [a] }\n",
        "WORKFLOW.md:2: error: `tracker.kind` is missing; it names the tracker, such as `file` or `github` [tracker.kind]",
    );
    refused(
        &format!("{TRACKER}polling:\n  interval_ms: soon\n"),
        "WORKFLOW.md:7: error: `polling.interval_ms` must be an integer, not a string [type_mismatch]",
    );
    refused(
        &format!("{TRACKER}agent:\n  max_turns: 0\n"),
        "WORKFLOW.md:7: error: `agent.max_turns` must be at least 1, not 0 [agent.max_turns]",
    );
    refused(
        &format!("{TRACKER}  handoff_state: done\n"),
        "WORKFLOW.md:6: error: `tracker.handoff_state` must be neither active nor terminal, and `done` is [tracker.handoff_state]",
    );
    refused(
        &format!("{TRACKER}  in_progress_state: Doing\n"),
        "WORKFLOW.md:6: error: `tracker.in_progress_state` must be one of the active states, and `Doing` is not [tracker.in_progress_state]",
    );
    refused(
        &format!("{TRACKER}server: {{ host: localhost }}\n"),
        "WORKFLOW.md:6: error: `server.host` must be an IP address, not `localhost` [server.host]",
    );
}

#[test]
fn unknown_names_are_warnings_that_suggest_the_right_one() {
    refused(
        &format!("{TRACKER}agnet: {{}}\n"),
        "WORKFLOW.md:6: warning: `agnet` is not a setting; did you mean `agent`? [unknown_key]",
    );
    refused(
        &format!("{TRACKER}agent:\n  max_turn: 3\n"),
        "WORKFLOW.md:7: warning: `agent.max_turn` is not a setting; did you mean `max_turns`? [unknown_sub_key]",
    );
}

#[test]
fn lines_of_templates_are_those_of_the_file() {
    let text = format!("---\n{TRACKER}---\n\nfine\n{{{{ .issue.titel }}}}\n");
    let found = problems(&text);
    assert_eq!(
        found,
        [
            "WORKFLOW.md:9: warning: `.issue.titel` does not exist, so the prompt cannot be rendered [unknown_field]"
        ]
    );
    let workflow = load(&text, Path::new("/w"), &environment(&[])).unwrap();
    let error = workflow.prompt.render(&serde_json::json!({"issue": {}})).unwrap_err();
    assert_eq!(error.line, 9);
    let found = problems(&format!("---\n{TRACKER}---\n{{{{ if }}}}\n"));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("WORKFLOW.md:7: error:") && found[0].ends_with("[template_parse_error]"),
        "{found:?}"
    );
}

#[test]
fn the_file_can_name_its_language() {
    let workflow = loaded(&format!("{TRACKER}template: liquid\n"), &[]);
    assert!(workflow.is_err(), "`.issue` is no Liquid");
    let workflow = loaded(TRACKER, &[]).unwrap();
    assert_eq!(workflow.prompt.language(), Language::Go);
}
