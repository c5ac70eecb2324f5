//! Choosing an agent, and the commands that tell about them.

use hangar_test_support::{Finished, ModelServer, Scratch};
use serde_json::{Value, json};

use super::{CODEX_PONG, configure, stand_in};
use crate::schema::Schema;
use crate::{HANGAR, hangar};

fn run(scratch: &Scratch, args: &[&str]) -> Finished {
    scratch.run(HANGAR).args(args).env("COPILOT_OFFLINE", "true").finish()
}

/// A machine on which codex is a script.
pub(super) fn with_codex(script: &str, more: &str) -> Scratch {
    let scratch = Scratch::new();
    let version = "case \"$*\" in --version) echo codex-cli 9.8.7; exit;; *--help) echo \"flags: ${EXTRA_FLAG:-none}\"; exit;; esac";
    let program = stand_in(&scratch, "codex-program", &format!("{version}\ncat > prompt\n{script}"));
    configure(&scratch, &format!("[runtimes.codex]\nprogram = {}\n{more}\n", json!(program)));
    scratch
}

#[track_caller]
fn check_explained(config: &str, args: &[&str], expected: &[(&str, Value, &str)]) {
    let scratch = Scratch::new();
    configure(&scratch, config);
    let all: Vec<&str> =
        ["run", "--explain", "--output-format", "json"].into_iter().chain(args.iter().copied()).collect();
    let explained = run(&scratch, &all).expect_exit(0);
    let explained: Value = serde_json::from_str(&explained.stdout).expect("JSON");
    for (name, value, source) in expected {
        assert_eq!(explained["choice"][name]["value"], *value, "{explained}");
        assert_eq!(explained["choice"][name]["source"], *source, "{explained}");
    }
}

#[test]
fn every_value_knows_who_said_so() {
    check_explained(
        "[runtimes]\ndefault = \"claude\"\nstall_timeout = 7\n[runtimes.claude]\nmodel = \"opus\"\neffort = \"low\"\n",
        &["--effort", "high", "--turn-timeout", "0"],
        &[
            ("runtime", json!("claude"), "[runtimes] of config.toml"),
            ("model", json!("opus"), "[runtimes.claude] of config.toml"),
            ("effort", json!("high"), "--effort"),
            ("turnTimeout", json!(null), "--turn-timeout"),
            ("stallTimeout", json!(7.0), "[runtimes] of config.toml"),
            ("ssh", json!(null), "default"),
        ],
    );
}

#[test]
fn what_is_said_for_all_agents_holds_until_one_says_otherwise() {
    let config = "[runtimes]\nmodel = \"one\"\neffort = \"low\"\n[runtimes.codex]\nmodel = \"\"\n[runtimes.claude]\nmodel = \"two\"\n";
    let all = "[runtimes] of config.toml";
    check_explained(
        config,
        &["--runtime", "codex"],
        &[("model", json!("one"), all), ("effort", json!("low"), all)],
    );
    check_explained(
        config,
        &["--runtime", "claude"],
        &[("model", json!("two"), "[runtimes.claude] of config.toml")],
    );
    check_explained(
        config,
        &["--runtime", "claude", "--model", "three"],
        &[("model", json!("three"), "--model")],
    );
}

#[test]
fn without_a_word_our_own_agent_works() {
    check_explained("", &[], &[("runtime", json!("native"), "default")]);
    check_explained(
        "[runtimes]\ndefault = \"codex\"\n",
        &["--runtime", "claude"],
        &[("runtime", json!("claude"), "--runtime")],
    );
}

#[test]
fn an_agent_that_does_not_exist_is_named_with_those_that_do() {
    let run = run(&Scratch::new(), &["run", "--runtime", "hal", "-p", "x", "--output-format", "json"])
        .expect_exit(1);
    assert!(run.stderr.contains("`hal`") && run.stderr.contains("opencode"), "{}", run.stderr);
    assert_eq!(run.result()["exitCode"], 1);
}

/// The kinds of the errors that are told in place of a run.
#[track_caller]
fn check_refused(scratch: &Scratch, args: &[&str], kind: &str) {
    let json = ["run", "-p", "x", "--output-format", "json"];
    let refused = scratch.run(HANGAR).args(json).args(args).env("PATH", "/nowhere").finish().expect_exit(1);
    let events = refused.events();
    let kinds: Vec<_> = events.iter().map(|event| (&event["type"], &event["data"]["errorType"])).collect();
    assert_eq!(kinds, [(&json!("session.error"), &json!(kind)), (&json!("result"), &Value::Null)]);
    assert_eq!(Schema::load().problems(&events[0]), Vec::<String>::new(), "{}", events[0]);
    assert!(scratch.sessions().is_empty());
}

#[test]
fn a_run_that_does_not_begin_tells_the_kind_of_error() {
    let scratch = Scratch::new();
    check_refused(&scratch, &["--runtime", "hal"], "agent_not_found");
    check_refused(&scratch, &["--runtime", "codex"], "agent_not_found");
    check_refused(&scratch, &["--runtime", "codex", "-C", "/no/such/place"], "invalid_workspace_cwd");
    check_refused(&scratch, &["--resume", "0b5a2a57"], "invalid_request");
    check_refused(&scratch, &["--runtime", "codex", "--mcp-config", "{oops"], "invalid_request");
    configure(&scratch, "[runtimes.mine]\nacp = [\"no-such-program\"]\n");
    check_refused(&scratch, &["--runtime", "mine"], "agent_not_found");
}

#[test]
fn the_session_is_named_first_when_it_begins_and_when_it_goes_on() {
    let scratch = with_codex(CODEX_PONG, "");
    for runtime in ["codex", "native"] {
        let begin = ["run", "--runtime", runtime, "--rehearse", "-p", "SAY:x", "--output-format", "json"];
        let first = run(&scratch, &begin).expect_exit(0);
        let again = run(&scratch, &[&begin[..], &["--resume", &first.session_id()]].concat()).expect_exit(0);
        let events = (first.events(), again.events());
        assert_eq!(events.0[0]["type"], "session.start");
        assert_eq!(events.0[0]["data"]["sessionId"], first.session_id().as_str());
        assert_eq!(events.1[0], events.0[0]);
        assert_eq!(events.1[1]["type"], "session.resume", "{again:#?}");
    }
}

#[test]
fn an_agent_that_somebody_else_stops_has_failed() {
    let stopped = |script: &str| {
        let scratch = with_codex(script, "");
        let ran = run(&scratch, &["run", "--runtime", "codex", "-p", "x", "--output-format", "json"]);
        let ran = ran.expect_exit(1);
        assert_eq!(ran.result()["exitCode"], 1);
        let events = ran.events();
        assert!(Finished::of_type(&events, "abort").is_empty(), "{ran:#?}");
        let error = Finished::of_type(&events, "session.error")[0]["data"].clone();
        (error["errorType"].clone(), error["message"].clone())
    };
    let killed = |name: &str| (json!("port_exit"), json!(format!("the agent was killed by {name}")));
    assert_eq!(stopped("kill -KILL $$"), killed("SIGKILL"));
    assert_eq!(stopped("kill -TERM $$"), killed("SIGTERM"));
}

#[test]
fn an_agent_that_is_not_installed_says_how_to_get_it_and_leaves_no_session() {
    let scratch = Scratch::new();
    let run = scratch
        .run(HANGAR)
        .args(["run", "--runtime", "codex", "-p", "x"])
        .env("PATH", "/nowhere")
        .finish()
        .expect_exit(1);
    assert!(run.stderr.contains("npm install -g @openai/codex"), "{}", run.stderr);
    assert!(scratch.sessions().is_empty());
}

#[test]
fn text_mode_prints_the_answer_and_reads_the_prompt_from_stdin() {
    let scratch = with_codex(CODEX_PONG, "");
    let run = scratch
        .run(HANGAR)
        .args(["run", "--runtime", "codex", "-s"])
        .stdin("it's \"$(me)\"\n")
        .finish()
        .expect_exit(0);
    assert_eq!(run.stdout.trim(), "pong");
    assert_eq!(
        std::fs::read_to_string(scratch.work().join("prompt")).expect("the prompt"),
        "it's \"$(me)\"\n"
    );
}

#[test]
fn a_session_is_not_resumed_by_another_agent() {
    let scratch = with_codex(CODEX_PONG, "");
    let id = run(&scratch, &["run", "--runtime", "codex", "-p", "x", "--output-format", "json"]).session_id();
    let refused = run(&scratch, &["run", "--runtime", "claude", "-p", "y", "--resume", &id]).expect_exit(1);
    assert!(refused.stderr.contains("started with codex"), "{}", refused.stderr);
    run(&scratch, &["run", "-p", "y", "--resume", &id]).expect_exit(0);
    let listed: Value =
        serde_json::from_str(&run(&scratch, &["sessions", "list", "--json"]).stdout).expect("JSON");
    assert_eq!(listed.as_array().expect("a list").len(), 1);
}

#[test]
fn the_table_says_what_is_installed_and_what_has_drifted() {
    let scratch = with_codex(&format!("{CODEX_PONG}\necho '{{\"type\":\"moon.phase\"}}'"), "");
    let shown = run(&scratch, &["runtimes"]).expect_exit(0);
    let codex =
        shown.stdout.lines().find(|line| line.trim_start().starts_with("codex")).expect("codex").to_owned();
    assert!(codex.contains("yes") && codex.contains("9.8.7") && codex.contains("resume"), "{codex}");
    assert!(!shown.stdout.contains("drift"), "{}", shown.stdout);
    run(&scratch, &["run", "--runtime", "codex", "-p", "x"]).expect_exit(0);
    let shown = run(&scratch, &["runtimes", "--json"]).expect_exit(0);
    let rows: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let codex =
        rows.as_array().expect("rows").iter().find(|row| row["name"] == "codex").expect("codex").clone();
    assert_eq!(codex["drift"], json!(["it says things that are not known: moon.phase"]));
    let doctor = run(&scratch, &["doctor"]);
    assert!(doctor.stdout.contains("-   agent codex: 9.8.7; it says things"), "{}", doctor.stdout);
}

/// The doctor's report on one subject, and whether it is fine.
fn diagnosis(run: &Finished, check: &str) -> (bool, String) {
    let rows: Vec<Value> = serde_json::from_str(&run.stdout).expect("JSON");
    let row = rows.iter().find(|row| row["check"] == check).unwrap_or_else(|| panic!("{run:#?}"));
    (row["ok"].as_bool().expect("a word"), row["says"].as_str().expect("words").to_owned())
}

#[test]
fn the_doctor_knows_the_default_agent_and_models_of_agents() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let program = stand_in(
        &scratch,
        "opencode-program",
        "case $1 in --version) echo 1.2.3;; models) echo a/b; echo a/c;; esac",
    );
    let doctor = |default: &str| {
        configure(
            &scratch,
            &format!(
                "[runtimes]\ndefault = \"{default}\"\n[runtimes.opencode]\nprogram = {}\n",
                json!(program)
            ),
        );
        hangar(&scratch, &model).args(["doctor", "--json"]).finish()
    };
    let found = doctor("nope").expect_exit(2);
    let (ok, says) = diagnosis(&found, "default agent");
    assert!(!ok && says.contains("there is no agent `nope`"), "{says}");
    assert_eq!(diagnosis(&found, "agent opencode"), (true, "1.2.3; 2 models".to_owned()));
    assert_eq!(diagnosis(&doctor("opencode"), "default agent"), (true, "opencode".to_owned()));
}

#[test]
fn the_doctor_looks_at_the_port_and_the_token_of_the_portal() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("a port").port().to_string();
    let portal = |args: &[&str], token: &str| {
        let run = hangar(&scratch, &model).args(["doctor", "--json", "--port", &port]).args(args);
        diagnosis(&run.env("PORTAL_TOKEN", token).finish(), "portal")
    };
    let (ok, says) = portal(&[], "");
    assert!(ok && says.contains("is taken by another program"), "{says}");
    drop(taken);
    assert!(portal(&[], "").1.contains("is free; no token"));
    let (ok, says) = portal(&["--host", "0.0.0.0"], "");
    assert!(!ok && says.contains("needs a token"), "{says}");
    let by_variable = ["--host", "0.0.0.0", "--token-env", "PORTAL_TOKEN"];
    assert!(portal(&by_variable, "").1.contains("the variable is not set"));
    assert!(portal(&by_variable, "short").1.contains("8 to 4096 characters"));
    let (ok, says) = portal(&by_variable, "long-enough-token");
    assert!(ok && says.contains("is free; a token") && !says.contains("long-enough"), "{says}");
}

#[test]
fn models_of_an_agent_are_discovered_or_null() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let models = |args: &[&str]| {
        hangar(&scratch, &model).args(["models", "--runtime"]).args(args).finish().expect_exit(0)
    };
    assert!(models(&["copilot"]).stdout.contains("mock-model"));
    assert_eq!(models(&["claude", "--json"]).stdout.trim(), "null");
    let unreachable =
        scratch.run(HANGAR).provider("http://127.0.0.1:1").env("HANGAR_HOME", scratch.root().join("fresh"));
    assert_eq!(
        unreachable.args(["models", "--runtime", "copilot", "--json"]).finish().expect_exit(0).stdout.trim(),
        "null"
    );
}

#[test]
fn models_of_an_agent_are_asked_for_anew_when_somebody_says_so() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let asked = |args: &[&str]| {
        hangar(&scratch, &model).args(["models", "--runtime"]).args(args).finish().expect_exit(0);
        model.requests().iter().filter(|request| request.path.ends_with("/models")).count()
    };
    assert_eq!(asked(&["copilot"]), 1);
    assert_eq!(asked(&["copilot"]), 1);
    assert_eq!(asked(&["copilot", "--refresh"]), 2);
    assert_eq!(asked(&["native", "--refresh"]), 3);
}

#[test]
fn a_wish_that_an_agent_cannot_meet_is_told() {
    let scratch = with_codex(CODEX_PONG, "");
    let warnings = |runtime: &str| -> Vec<String> {
        let ran = run(
            &scratch,
            &[
                "run",
                "--runtime",
                runtime,
                "--rehearse",
                "-p",
                "SAY:x",
                "--output-format",
                "json",
                "--budget",
                "2",
            ],
        );
        let events = ran.expect_exit(0).events();
        let warnings = Finished::of_type(&events, "session.warning");
        warnings.iter().map(|event| event["data"]["message"].as_str().expect("words").to_owned()).collect()
    };
    assert_eq!(warnings("codex"), ["OpenAI Codex has no cap on cost; nothing ends it at 2 USD"]);
    assert!(warnings("native").is_empty());
}

#[test]
fn an_agent_that_takes_no_files_is_not_started_with_one() {
    let scratch = with_codex(&format!("echo \"$@\" >> asked\n{CODEX_PONG}"), "");
    scratch.file("note.txt", "x");
    let args = ["run", "--runtime", "codex", "-p", "x", "--attachment", "note.txt"];
    let refused = run(&scratch, &args).expect_exit(1);
    assert!(refused.stderr.contains("OpenAI Codex takes no --attachment"), "{}", refused.stderr);
    assert!(!scratch.work().join("asked").exists());
    assert!(!scratch.state().join("session-state").exists());
}

#[test]
fn switches_rules_and_servers_of_a_table_reach_the_agent() {
    let keys = "bare = true\nagents_md = false\ndeny_tools = [\"shell\"]\nmcp_config = \"servers.json\"\npersona = \"reviewer\"\n";
    let scratch = with_codex(&format!("echo \"$@\" >> asked\n{CODEX_PONG}"), keys);
    std::fs::write(
        scratch.state().join("servers.json"),
        r#"{"mcpServers":{"far":{"url":"http://127.0.0.1:1"}}}"#,
    )
    .expect("a file");
    let ran =
        run(&scratch, &["run", "--runtime", "codex", "-p", "x", "--output-format", "json"]).expect_exit(0);
    let asked = || std::fs::read_to_string(scratch.work().join("asked")).expect("the arguments");
    for word in
        ["--ignore-user-config", "project_doc_max_bytes=0", "--sandbox workspace-write", "mcp_servers.far="]
    {
        assert!(asked().contains(word), "{word}: {}", asked());
    }
    let events = ran.events();
    let warnings = Finished::of_type(&events, "session.warning");
    assert!(warnings.iter().any(|event| event.to_string().contains("no switch for `persona`")), "{ran:#?}");
    let explained =
        run(&scratch, &["run", "--runtime", "codex", "--explain", "--persona", "other"]).expect_exit(0);
    let lines: Vec<&str> = explained.stdout.lines().map(str::trim_end).collect();
    let row = |name: &str, value: &str, source: &str| format!("{name:<16} {value:<24} {source}");
    for line in [
        row("bare", "true", "[runtimes.codex] of config.toml"),
        row("persona", "other", "--persona"),
        row("deny tools", "shell", "[runtimes.codex] of config.toml"),
        row("mcp config", "given", "[runtimes.codex] of config.toml"),
    ] {
        assert!(lines.contains(&line.as_str()), "{line}\n{}", explained.stdout);
    }
}

#[test]
fn an_mcp_configuration_is_found_from_where_it_was_typed() {
    let scratch = with_codex(CODEX_PONG, "");
    scratch.file("servers.json", r#"{"mcpServers":{"far":{"url":"http://127.0.0.1:1"}}}"#);
    let other = scratch.root().join("other");
    std::fs::create_dir(&other).expect("a directory");
    let there = other.display().to_string();
    for config in ["@servers.json", "servers.json"] {
        run(&scratch, &["run", "--runtime", "codex", "-C", &there, "-p", "x", "--mcp-config", config])
            .expect_exit(0);
    }
    let refused =
        run(&scratch, &["run", "--runtime", "codex", "-p", "x", "--mcp-config", "{oops"]).expect_exit(1);
    assert!(refused.stderr.contains("the MCP configuration is not JSON"), "{}", refused.stderr);
}

#[test]
fn a_session_keeps_the_model_and_the_effort_that_it_was_begun_with() {
    let scratch = with_codex(&format!("echo \"$@\" >> asked\n{CODEX_PONG}"), "model = \"usual\"\n");
    let begin = ["run", "--runtime", "codex", "-p", "x", "--output-format", "json"];
    let id = run(&scratch, &[&begin[..], &["--model", "first", "--effort", "low"]].concat()).session_id();
    run(&scratch, &["run", "-p", "y", "--resume", &id]).expect_exit(0);
    run(&scratch, &["run", "-p", "y", "--resume", &id, "--model", "second"]).expect_exit(0);
    let explained =
        run(&scratch, &["run", "--resume", &id, "--explain", "--output-format", "json"]).expect_exit(0);
    let explained: Value = serde_json::from_str(&explained.stdout).expect("JSON");
    assert_eq!(explained["choice"]["model"], json!({ "value": "second", "source": "the session" }));
    run(&scratch, &begin).expect_exit(0);
    let asked = std::fs::read_to_string(scratch.work().join("asked")).expect("the arguments");
    // Its login is asked about beside the turns.
    let asked: String =
        asked.lines().filter(|line| line.starts_with("exec")).map(|line| format!("{line}\n")).collect();
    let models = ["--model first", "--model first", "--model second", "--model usual"];
    assert_eq!(asked.lines().count(), models.len(), "{asked}");
    assert!(asked.lines().zip(models).all(|(line, model)| line.contains(model)), "{asked}");
    let kept = asked.lines().filter(|line| line.contains("model_reasoning_effort=\"low\"")).count();
    assert_eq!(kept, 3, "{asked}");
}
