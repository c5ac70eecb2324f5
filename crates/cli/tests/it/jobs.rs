//! `hangar job`: jobs on real agents. The agent is Hangar itself, behind the command line of Copilot CLI.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::{Invocation, ModelServer, Scratch, Signal};
use serde_json::Value;

use crate::{HANGAR, hangar};

const ENTRY: &str = r#"
models: { driving: mock-model }
tasks:
  say: { model: { category: driving }, prompt: "SAY:hello $user-input", requireUserInput: true }
  check:
    model: { category: driving }
    prompt: "SAY:working"
    requireUserInput: false
    criteria:
      condition: |-
        job_boolean_true
        TOOL:jobs-job_boolean_true:{"argument":"fine"}
      failureAction: { retryTimes: 0 }
  waits:
    model: { category: driving }
    prompt: 'TOOL:bash:{"command":"[ -e go ] || sleep 1000"}'
    requireUserInput: false
  watched:
    model: { category: driving }
    prompt: |-
      TOOL:bash:{"command":"until [ -e go ]; do sleep 0.05; done"}
      SAY:of the job
    requireUserInput: false
  writes:
    model: { category: driving }
    prompt: 'TOOL:bash:{"command":"touch inside; touch ../outside"}'
    requireUserInput: false
  fails:
    model: { category: driving }
    prompt: "SAY:done"
    requireUserInput: false
    criteria: { files: [gone.txt], failureAction: { retryTimes: 0 } }
jobs:
  demo: { work: { kind: Seq, works: [{ kind: Ref, taskId: say }, { kind: Ref, taskId: check }] } }
  waits: { work: { kind: Ref, taskId: waits } }
  watched: { work: { kind: Ref, taskId: watched } }
  writes: { work: { kind: Ref, taskId: writes } }
  fails: { work: { kind: Ref, taskId: fails } }
"#;

/// `hangar` on a machine where the program `copilot` is Hangar too.
fn job(scratch: &Scratch, model: &ModelServer, args: &[&str]) -> Invocation {
    scratch.file("jobs.yaml", ENTRY);
    let bin = scratch.root().join("bin");
    if std::fs::create_dir(&bin).is_ok() {
        std::os::unix::fs::symlink(HANGAR, bin.join("copilot")).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let args = ["job"].iter().chain(args);
    hangar(scratch, model).env("PATH", path).args(args)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_job_is_carried_out_with_its_records_and_events_as_json_lines() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let args = ["run", "jobs.yaml", "demo", "--input", "you", "--output-format", "json"];
    let finished = job(&scratch, &model, &args).finish().expect_exit(0);
    let all = lines(&finished.stdout);
    let of = |kind: &str| -> Vec<&Value> { all.iter().filter(|line| line["type"] == kind).collect() };
    assert_eq!(of("runStarted")[0]["order"]["subject"]["name"], "demo");
    let prompts: Vec<&Value> = of("prompted").into_iter().map(|line| &line["prompt"]).collect();
    assert_eq!(prompts.len(), 3);
    assert_eq!(prompts[0], "SAY:hello you");
    let tools = of("sessionEvent").into_iter().filter(|line| line["event"]["type"] == "tool.execution_start");
    assert_eq!(tools.count(), 1, "the condition was answered by a job tool");
    assert_eq!(of("runEnded")[0]["end"]["outcome"], "succeeded");
    let listed = job(&scratch, &model, &["runs", "--json"]).finish().expect_exit(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed[0]["status"], "succeeded");
}

#[test]
fn commands_of_a_job_write_in_its_directory_alone() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let outside = scratch.root().join("outside");
    let args = ["run", "jobs.yaml", "writes", "--runtime", "native"];
    job(&scratch, &model, &args).finish().expect_exit(0);
    assert!(scratch.work().join("inside").exists() && !outside.exists());
    let config = "[runtimes.native]\nargs = [\"--no-sandbox\"]\n";
    std::fs::write(scratch.state().join("config.toml"), config).unwrap();
    job(&scratch, &model, &args).finish().expect_exit(0);
    assert!(outside.exists(), "the setting lifts it");
}

#[test]
fn a_session_of_a_job_is_attached_to() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let args = ["run", "jobs.yaml", "watched", "--runtime", "native", "--output-format", "json"];
    let mut running = job(&scratch, &model, &args).start();
    while running.wait_for_event("sessionEvent")["event"]["type"] != "tool.execution_start" {}
    let id = scratch.sessions()[0].clone();
    let jobs = scratch.state().join("run/jobs");
    let endpoint = || {
        let file = std::fs::read_dir(&jobs).unwrap().next().unwrap().unwrap().path();
        serde_json::from_str::<Value>(&std::fs::read_to_string(file).unwrap()).unwrap()["views"].clone()
    };
    assert_eq!(endpoint(), Value::Null, "nothing listens before it is asked for");
    let attach = hangar(&scratch, &model).env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let mut view = attach.args(["attach", &id]).in_terminal(100, 30);
    view.wait_for("attached to a session in a job");
    assert!(endpoint()["address"].is_string());
    scratch.file("go", "");
    view.wait_for("of the job");
    running.finish().expect_exit(0);
    view.wait_for("the session was closed in a job");
    view.type_bytes(b"\x04");
    view.wait_for("status 0");
    view.finish();
    assert_eq!(std::fs::read_dir(jobs).unwrap().count(), 0);
}

#[test]
fn a_run_that_was_killed_is_reported_and_gone_on_with() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let args = ["run", "jobs.yaml", "waits", "--output-format", "json"];
    let mut running = job(&scratch, &model, &args).start();
    let run = running.wait_for_event("runStarted")["run"].as_str().unwrap().to_owned();
    running.wait_for_event("prompted");
    let busy = job(&scratch, &model, &["resume", &run]).finish().expect_exit(1);
    assert!(busy.stderr.contains("is in use by another process"), "{}", busy.stderr);
    running.signal(Signal::KILL);
    running.finish();
    let listed = job(&scratch, &model, &["runs"]).finish().expect_exit(0);
    assert!(listed.stdout.contains("interrupted"), "{}", listed.stdout);
    scratch.file("go", "");
    let resumed = job(&scratch, &model, &["resume", &run]).finish().expect_exit(0);
    assert!(resumed.stdout.contains("[SESSION CRASHED]"), "{}", resumed.stdout);
    assert!(resumed.stdout.trim_end().ends_with("run succeeded"), "{}", resumed.stdout);
    let again = job(&scratch, &model, &["resume", &run]).finish().expect_exit(1);
    assert!(again.stderr.contains("has ended"), "{}", again.stderr);
}

#[test]
fn a_job_that_fails_says_why_and_ends_with_1() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let failed = job(&scratch, &model, &["run", "jobs.yaml", "fails"]).finish().expect_exit(1);
    assert!(failed.stdout.contains("[CRITERIA] Check failed: gone.txt does not exist"), "{}", failed.stdout);
    assert!(failed.stderr.contains("error: the run failed"), "{}", failed.stderr);
}

#[test]
fn what_cannot_be_run_is_said_before_anything_is_done() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let check = |args: &[&str], expected: &str| {
        let finished = job(&scratch, &model, args).finish().expect_exit(1);
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    };
    check(
        &["run", "jobs.yaml", "nope"],
        "jobs.yaml has no job `nope`; it has demo, waits, watched, writes, fails",
    );
    check(&["run", "jobs.yaml", "demo"], "the job `demo` needs input: --input");
    check(&["run", "gone.yaml", "demo"], "reading gone.yaml");
    check(&["run", "jobs.yaml", "fails", "--runtime", "martian"], "there is no agent \"martian\"");
    check(&["show", "nope"], "there is no run nope");
    scratch.file("bad.yaml", "models: {}");
    check(&["list", "bad.yaml"], "bad.yaml:entry.models.driving: Should exist.");
}
