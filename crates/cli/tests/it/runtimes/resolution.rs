//! Which program an agent is: what is found, what is asked of it, what is remembered, and with which login it works.

use std::path::Path;

use hangar_test_support::{Finished, Scratch};
use serde_json::{Value, json};

use super::{configure, stand_in};
use crate::HANGAR;

/// Copilot's output of a turn with one message, after it has recorded its command line.
const COPILOT_PONG: &str = r#"echo "$@" >> asked
case "$*" in
*--version) echo "GitHub Copilot CLI 1.2.3."; exit;;
*--help) echo "--output-format --session-id --resume --autopilot --no-ask-user --allow-all --effort <level> (choices: \"low\", \"high\")"; exit;;
esac
cat >/dev/null
echo '{"type":"assistant.message","data":{"messageId":"m","content":"pong","toolRequests":[]},"id":"e1","timestamp":"2026-01-01T00:00:00.000Z","parentId":null}'
echo '{"type":"result","timestamp":"2026-01-01T00:00:00.000Z","sessionId":"0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001","exitCode":0,"usage":{}}'"#;

fn run(scratch: &Scratch, args: &[&str], env: &[(&str, &str)]) -> Finished {
    let path = format!("{}:/usr/bin:/bin", scratch.root().join("bin").display());
    let run = env
        .iter()
        .fold(scratch.run(HANGAR).args(args).env("PATH", path), |run, (name, value)| run.env(name, value));
    run.finish()
}

/// A program on the path of this machine.
fn install(scratch: &Scratch, name: &str, script: &str) {
    let program = stand_in(scratch, &format!("{name}-program"), script);
    let bin = scratch.root().join("bin");
    std::fs::create_dir_all(&bin).expect("a directory");
    std::os::unix::fs::symlink(program, bin.join(name)).expect("a link");
}

fn row(scratch: &Scratch, env: &[(&str, &str)]) -> Value {
    let shown = run(scratch, &["runtimes", "--json"], env).expect_exit(0);
    let rows: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    rows.as_array().expect("rows").iter().find(|row| row["name"] == "copilot").expect("copilot").clone()
}

fn asked(scratch: &Scratch) -> Vec<String> {
    // Capabilities are queried in the home directory; work runs in the working directory.
    let told = [scratch.home(), scratch.work()].map(|dir| std::fs::read_to_string(dir.join("asked")));
    told.iter().flatten().flat_map(|text| text.lines()).map(str::to_owned).collect()
}

const RUN: [&str; 6] = ["run", "--runtime", "copilot", "--output-format", "json", "-p"];

#[test]
fn gh_takes_the_place_of_a_copilot_that_is_not_there_and_is_marked() {
    let scratch = Scratch::new();
    let gh = format!(
        "if [ \"$1\" = extension ]; then echo 'gh copilot  github/gh-copilot  v1.0'; exit; fi\n\
         if [ \"$1\" = auth ]; then exit 1; fi\nshift\n{COPILOT_PONG}"
    );
    install(&scratch, "gh", &gh);
    let found = row(&scratch, &[]);
    assert_eq!((&found["installed"], &found["bestEffort"]), (&json!(true), &json!(true)), "{found}");
    assert_eq!(found["version"], "1.2.3");
    assert!(found["warnings"].to_string().contains("`gh copilot` is used"), "{found}");
    let ran = run(&scratch, &[&RUN[..], &["x"]].concat(), &[]).expect_exit(0);
    assert!(ran.stdout.contains("pong"), "{}", ran.stdout);
    let events = ran.events();
    let warnings = Finished::of_type(&events, "session.warning");
    assert!(warnings.iter().any(|event| event.to_string().contains("gh copilot")), "{ran:#?}");
}

#[test]
fn gh_without_the_extension_is_no_copilot() {
    let scratch = Scratch::new();
    install(&scratch, "gh", "exit 0");
    assert_eq!(row(&scratch, &[])["installed"], false);
}

#[test]
fn a_program_is_asked_once_for_what_it_can_and_again_when_it_is_another_file() {
    let scratch = Scratch::new();
    install(&scratch, "copilot", COPILOT_PONG);
    let login = [("GH_TOKEN", "gho_x")];
    let effort = [&RUN[..], &["x", "--effort", "max"]].concat();
    let looks = |scratch: &Scratch| asked(scratch).iter().filter(|line| line.as_str() == "--help").count();
    run(&scratch, &[&RUN[..], &["x"]].concat(), &login).expect_exit(0);
    assert_eq!(looks(&scratch), 0, "whoever asks for no effort need not wait for the help");
    run(&scratch, &effort, &login).expect_exit(0);
    run(&scratch, &effort, &login).expect_exit(0);
    assert_eq!(looks(&scratch), 1);
    assert!(asked(&scratch).iter().any(|line| line.contains("--effort=high")), "{:?}", asked(&scratch));
    let remembered =
        std::fs::read_to_string(scratch.state().join("cache/agent-copilot.json")).expect("a memory");
    let remembered: Value = serde_json::from_str(&remembered).expect("JSON");
    assert_eq!(remembered["version"], "1.2.3");
    // An update that knows one more level.
    std::fs::remove_file(scratch.root().join("bin/copilot")).expect("the link");
    std::fs::remove_file(scratch.root().join("copilot-program")).expect("the program");
    install(&scratch, "copilot", &COPILOT_PONG.replace(r#"\"high\""#, r#"\"high\", \"max\""#));
    run(&scratch, &effort, &login).expect_exit(0);
    assert_eq!(looks(&scratch), 2);
    assert!(
        asked(&scratch).last().is_some_and(|line| line.contains("--effort=max")),
        "{:?}",
        asked(&scratch)
    );
}

/// Where a login is found, by what is set and who is asked.
#[track_caller]
fn check_login(env: &[(&str, &str)], gh: Option<&str>, auth: &Value, note: &str) {
    let scratch = Scratch::new();
    install(&scratch, "copilot", COPILOT_PONG);
    if let Some(gh) = gh {
        install(&scratch, "gh", gh);
    }
    let found = row(&scratch, env);
    assert_eq!(found["auth"], *auth, "{found}");
    let notes = format!("{}{}", found["warnings"], found["problems"]);
    assert!(notes.contains(note), "{found}");
}

#[test]
fn a_login_is_looked_for_in_the_order_that_is_documented() {
    let found = |source: &str| json!({ "state": "found", "source": source });
    let (own, gh, github) =
        (("COPILOT_GITHUB_TOKEN", "github_pat_a"), ("GH_TOKEN", "gho_b"), ("GITHUB_TOKEN", "ghu_c"));
    check_login(&[own, gh, github], None, &found("COPILOT_GITHUB_TOKEN"), "");
    check_login(&[gh, github], None, &found("GH_TOKEN"), "");
    check_login(&[github], None, &found("GITHUB_TOKEN"), "");
    let knows = "[ \"$1 $2\" = 'auth status' ]";
    check_login(&[], Some(knows), &found("gh auth status"), "the login of `gh`");
    check_login(
        &[],
        Some("exit 1"),
        &json!({ "state": "missing" }),
        "COPILOT_GITHUB_TOKEN, GH_TOKEN or GITHUB_TOKEN",
    );
    check_login(
        &[("GH_TOKEN", "ghp_old")],
        None,
        &found("GH_TOKEN"),
        "GH_TOKEN holds a classic token (ghp_)",
    );
    // Copilot passes a classic token over and takes the next.
    check_login(
        &[("COPILOT_GITHUB_TOKEN", "ghp_old"), github],
        None,
        &found("GITHUB_TOKEN"),
        "classic token",
    );
}

#[test]
fn a_run_without_a_login_does_not_begin() {
    let refused = |name: &str, script: &str, env: &[(&str, &str)], word: &str| {
        let scratch = Scratch::new();
        install(&scratch, name, &format!("echo \"$@\" >> asked\n{script}"));
        let runtime = ["run", "--runtime", name, "--output-format", "json", "-p", "x"];
        let ran = run(&scratch, &runtime, env).expect_exit(1);
        let events = ran.events();
        assert_eq!(events[0]["data"]["errorType"], "auth_failed", "{ran:#?}");
        assert!(events[0]["data"]["message"].as_str().is_some_and(|says| says.contains(word)), "{ran:#?}");
        assert!(!asked(&scratch).iter().any(|line| line.contains("json")), "the agent was run");
        assert!(scratch.sessions().is_empty());
    };
    refused("copilot", COPILOT_PONG, &[], "COPILOT_GITHUB_TOKEN");
    let claude = "case \"$*\" in --version) echo 2.0.0;; --help) echo 'auth  Manage authentication';; 'auth status') exit 1;; esac";
    refused("claude", claude, &[], "claude auth login");
    refused("codex", "case \"$*\" in 'login status') exit 1;; esac", &[], "codex login");
}

#[test]
fn a_login_that_nobody_can_tell_of_is_left_to_the_agent() {
    let begins = |name: &str, script: &str, files: &[(&str, &str)]| {
        let scratch = Scratch::new();
        install(&scratch, name, &format!("echo \"$@\" >> asked\n{script}"));
        for (path, text) in files {
            let path = scratch.home().join(path);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        }
        run(&scratch, &["run", "--runtime", name, "--output-format", "json", "-p", "x"], &[]);
        assert!(asked(&scratch).iter().any(|line| line.contains("json")), "the agent was not run");
    };
    // A version that does not know the question would take it for a prompt.
    begins("claude", "case \"$*\" in *auth*) touch asked-a-model;; --version) echo 1.0.0;; esac", &[]);
    begins("codex", "[ \"$1\" = login ] && exit 0", &[]);
    begins("codex", "[ \"$1\" = login ] && exit 1", &[(".codex/config.toml", "model_provider = \"mine\"")]);
    begins("opencode", "", &[]);
    let scratch = Scratch::new();
    install(&scratch, "codex", "echo \"$@\" >> asked\n[ \"$1\" = login ] && exit 1");
    run(&scratch, &["run", "--runtime", "codex", "-p", "x", "--", "-c", "model_provider=\"mine\""], &[]);
    assert!(asked(&scratch).iter().any(|line| line.contains("json")), "the agent was not run");
}

/// Copilot as it was before it took the id of a session from outside.
const OLD_COPILOT: &str = r#"echo "$@" >> asked
case "$*" in
*--version) echo "GitHub Copilot CLI 1.0.34."; exit;;
*--help) echo "--output-format --resume --autopilot --no-ask-user --allow-all"; exit;;
*--session-id*|*--usage-output-file*) echo "error: unknown option '--session-id=x'" >&2; exit 1;;
esac
cat >/dev/null
echo '{"type":"assistant.message","data":{"messageId":"m","content":"pong","toolRequests":[]},"id":"e1","timestamp":"2026-01-01T00:00:00.000Z","parentId":null}'
echo '{"type":"result","timestamp":"2026-01-01T00:00:00.000Z","sessionId":"0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001","exitCode":0,"usage":{}}'"#;

#[test]
fn a_version_without_a_flag_is_driven_without_it_and_that_is_remembered() {
    let scratch = Scratch::new();
    install(&scratch, "copilot", OLD_COPILOT);
    let login = [("GH_TOKEN", "gho_x")];
    let first = run(&scratch, &[&RUN[..], &["x"]].concat(), &login).expect_exit(0);
    assert!(first.stdout.contains("pong"), "{first:#?}");
    // The agent's id of the session is in its last line.
    let log = scratch.log(&first.session_id());
    assert!(log.contains(r#""remoteSessionId":"0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001""#), "{log}");
    let refused =
        |scratch: &Scratch| asked(scratch).iter().filter(|line| line.contains("--session-id")).count();
    assert_eq!(refused(&scratch), 1);
    let id = first.session_id();
    let resume = [&RUN[..], &["y", "--resume", &id]].concat();
    run(&scratch, &resume, &login).expect_exit(0);
    assert!(
        asked(&scratch)
            .last()
            .is_some_and(|line| line.contains("--resume=0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001"))
    );
    run(&scratch, &[&RUN[..], &["z"]].concat(), &login).expect_exit(0);
    assert_eq!(refused(&scratch), 1, "{:?}", asked(&scratch));
    let found = row(&scratch, &login);
    let able = &found["capabilities"];
    assert_eq!((&able["sessionIdGiven"], &able["inputTokens"]), (&json!(false), &json!(false)), "{found}");
}

#[test]
fn a_login_with_copilot_itself_is_seen() {
    let scratch = Scratch::new();
    install(&scratch, "copilot", COPILOT_PONG);
    std::fs::create_dir_all(scratch.state()).expect("a home");
    let config =
        "// a remark\n{ \"loggedInUsers\": [{ \"host\": \"https://github.com\", \"login\": \"me\" }] }";
    std::fs::write(scratch.state().join("config.json"), config).expect("a configuration");
    assert_eq!(row(&scratch, &[])["auth"], json!({ "state": "found", "source": "copilot login" }));
}

#[test]
fn variables_that_are_configured_for_an_agent_are_its_login_too() {
    let scratch = Scratch::new();
    install(&scratch, "copilot", COPILOT_PONG);
    configure(&scratch, "[runtimes.copilot.env]\nGH_TOKEN = \"gho_configured\"\n");
    assert_eq!(row(&scratch, &[])["auth"], json!({ "state": "found", "source": "GH_TOKEN" }));
}

#[test]
fn a_session_says_what_is_wrong_with_its_token_and_its_model() {
    let scratch = Scratch::new();
    install(&scratch, "copilot", COPILOT_PONG);
    let ran = run(&scratch, &[&RUN[..], &["x", "--model", "opus"]].concat(), &[("GH_TOKEN", "ghp_old")])
        .expect_exit(0);
    let events = ran.events();
    let warnings =
        Value::from(Finished::of_type(&events, "session.warning").into_iter().cloned().collect::<Vec<_>>());
    for word in ["ghp_", "`opus`"] {
        assert!(warnings.to_string().contains(word), "{warnings}");
    }
    assert!(!warnings.to_string().contains("ghp_old"), "a token was shown");
}

#[test]
fn a_help_that_lacks_what_is_needed_is_a_warning() {
    let scratch = Scratch::new();
    install(&scratch, "copilot", &COPILOT_PONG.replace("--session-id ", ""));
    assert!(
        row(&scratch, &[("GH_TOKEN", "gho_x")])["warnings"]
            .to_string()
            .contains("does not name --session-id")
    );
}

#[test]
fn an_mcp_configuration_that_is_not_there_is_named() {
    let scratch = Scratch::new();
    let program = stand_in(&scratch, "codex-program", "exit 0");
    configure(&scratch, &format!("[runtimes.codex]\nprogram = {}\n", json!(program)));
    let missing = Path::new("/no/such/file.json");
    let config = format!("@{}", missing.display());
    let ran =
        run(&scratch, &["run", "--runtime", "codex", "--mcp-config", &config, "-p", "x"], &[]).expect_exit(1);
    assert!(ran.stderr.contains("/no/such/file.json"), "{}", ran.stderr);
}
