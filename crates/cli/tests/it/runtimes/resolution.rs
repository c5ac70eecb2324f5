//! Which program an agent is: what is found, what is asked of it, what is remembered, and with which login it works.

use std::path::Path;

use hangar_test_support::{Finished, Scratch};
use serde_json::{Value, json};

use super::{configure, stand_in};
use crate::HANGAR;

/// What Copilot says of a turn in which it says one thing, after it has written down how it was called.
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
    let text = std::fs::read_to_string(scratch.work().join("asked")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
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
    let effort = [&RUN[..], &["x", "--effort", "max"]].concat();
    let looks = |scratch: &Scratch| asked(scratch).iter().filter(|line| line.as_str() == "--help").count();
    run(&scratch, &[&RUN[..], &["x"]].concat(), &[]).expect_exit(0);
    assert_eq!(looks(&scratch), 0, "whoever asks for no effort need not wait for the help");
    run(&scratch, &effort, &[]).expect_exit(0);
    run(&scratch, &effort, &[]).expect_exit(0);
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
    run(&scratch, &effort, &[]).expect_exit(0);
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
