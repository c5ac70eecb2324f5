//! Runs of jobs over HTTP.

use hangar_test_support::{ModelServer, Scratch, Signal};
use serde_json::{Value, json};

use super::{Portal, expect, refused};

const ENTRY: &str = r#"
models: { driving: mock-model }
tasks:
  say: { model: { category: driving }, prompt: "SAY:hello $user-input", requireUserInput: true }
  judged:
    model: { category: driving }
    prompt: "SAY:working"
    requireUserInput: false
    criteria:
      condition: |-
        job_boolean_true
        TOOL:jobs-job_boolean_true:{"argument":"fine"}
      runConditionInSameSession: false
      failureAction: { retryTimes: 0 }
  waits:
    model: { category: driving }
    prompt: 'TOOL:bash:{"command":"until [ -e go ]; do sleep 0.05; done"}'
    requireUserInput: false
jobs:
  demo: { work: { kind: Seq, works: [{ kind: Ref, taskId: say }, { kind: Ref, taskId: judged }] } }
  waits: { work: { kind: Ref, taskId: waits } }
grid: [{ keyword: demos, jobs: [{ name: Demo, jobName: demo }, null] }]
"#;

pub(super) fn portal_with_jobs() -> Portal {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let file = scratch.file("jobs.yaml", ENTRY);
    Portal::on(scratch, model, &["--entry", file.to_str().unwrap()])
}

#[track_caller]
fn start(portal: &Portal, job: &str) -> String {
    let body = json!({ "job": job, "input": "you", "workspace": portal.scratch.work() });
    portal.post("/api/v1/runs", &body, 201)["id"].as_str().unwrap().to_owned()
}

/// Records of a run until it is in a state.
#[track_caller]
pub(super) fn hear(portal: &Portal, run: &str, state: &str) -> Vec<super::client::Message> {
    let mut stream = portal.ask("GET", &format!("/api/v1/runs/{run}/stream")).stream();
    stream.until(|message| message.event.as_deref() == Some("run") && message.data["state"] == state)
}

#[test]
fn a_job_is_run_and_its_sessions_are_sessions() {
    let portal = portal_with_jobs();
    let jobs = portal.get("/api/v1/jobs");
    assert_eq!(jobs["jobs"]["demo"]["requireUserInput"], true);
    assert_eq!(jobs["grid"][0]["jobs"], json!([{ "name": "Demo", "jobName": "demo" }, null]));
    assert_eq!(jobs["chart"]["demo"]["nodes"][0]["hint"], json!(["TaskNode", 0]));
    let run = start(&portal, "demo");
    let heard = hear(&portal, &run, "succeeded");
    let numbers: Vec<u64> = heard.iter().filter_map(|message| message.id).collect();
    assert_eq!(numbers, (0..=*numbers.last().unwrap()).collect::<Vec<_>>());
    let details = portal.get(&format!("/api/v1/runs/{run}"));
    assert_eq!(details["state"], "succeeded");
    assert_eq!(details["turns"], 3);
    assert!(details["decisions"].as_array().unwrap().iter().any(|decision| decision["task"] == "judged"));
    let judged = &details["works"][1];
    assert_eq!((judged["state"].as_str(), judged["starts"].as_u64()), (Some("succeeded"), Some(1)));
    let sessions: Vec<&Value> = judged["sessions"].as_array().unwrap().iter().collect();
    assert_eq!(sessions.len(), 2);
    let id = sessions[0]["id"].as_str().unwrap();
    let session = portal.session(id);
    let link = json!({ "id": run, "job": "demo", "workId": 1, "task": "judged", "driving": false });
    assert_eq!(session["run"], link);
    assert!(portal.scratch.log(id).contains("SAY:working"));
    let kept = portal.scratch.state().join("runs").join(&run).join("sessions");
    assert!(!kept.exists(), "what agents said is on record once");
    let after = numbers.len() as u64 - 2;
    let mut stream = portal.ask("GET", &format!("/api/v1/runs/{run}/stream?after={after}")).stream();
    assert_eq!(stream.next().unwrap().id, Some(after + 1));
    let portal = portal.again();
    assert_eq!(portal.session(id)["run"], link);
    assert_eq!(portal.get("/api/v1/runs")["runs"][0]["id"], run.as_str());
}

#[test]
fn a_run_is_stopped_once() {
    let portal = portal_with_jobs();
    let run = start(&portal, "waits");
    let mut stream = portal.ask("GET", &format!("/api/v1/runs/{run}/stream")).stream();
    stream.until(|message| message.kind() == "prompted");
    portal.poke(&format!("/api/v1/runs/{run}/stop"), 202);
    stream.until(|message| message.data["state"] == "canceled");
    let details = portal.get(&format!("/api/v1/runs/{run}"));
    assert_eq!(details["works"][0]["state"], "stopped");
    let again = portal.ask("POST", &format!("/api/v1/runs/{run}/stop")).send();
    refused(&again, 409, "run_ended", "retry");
    refused(&portal.ask("POST", &format!("/api/v1/runs/{run}/resume")).send(), 409, "run_ended", "ended");
}

#[test]
fn a_run_of_a_portal_that_was_killed_is_gone_on_with() {
    let portal = portal_with_jobs();
    let run = start(&portal, "waits");
    let mut stream = portal.ask("GET", &format!("/api/v1/runs/{run}/stream")).stream();
    stream.until(|message| message.kind() == "prompted");
    let busy = portal.ask("POST", &format!("/api/v1/runs/{run}/resume")).send();
    refused(&busy, 409, "run_under_way", "still running");
    portal.running.signal(Signal::KILL);
    let portal = portal.again();
    let listed = portal.get("/api/v1/runs?limit=1");
    assert_eq!(listed["runs"][0]["state"], "interrupted");
    assert_eq!(listed["runs"][0]["resumable"], true);
    portal.scratch.file("go", "");
    assert_eq!(portal.poke(&format!("/api/v1/runs/{run}/resume"), 200)["state"], "running");
    hear(&portal, &run, "succeeded");
    let again = portal.poke(&format!("/api/v1/runs/{run}/retry"), 201)["id"].as_str().unwrap().to_owned();
    assert_ne!(again, run);
    hear(&portal, &again, "succeeded");
}

#[test]
fn a_run_that_a_portal_leaves_when_it_stops_can_be_gone_on_with() {
    let portal = portal_with_jobs();
    let run = start(&portal, "waits");
    portal
        .ask("GET", &format!("/api/v1/runs/{run}/stream"))
        .stream()
        .until(|message| message.kind() == "prompted");
    portal.running.signal(Signal::TERM);
    let Portal { scratch, model, running, .. } = portal;
    running.finish().expect_exit(0);
    let portal = Portal::on(scratch, model, &[]);
    assert_eq!(portal.get(&format!("/api/v1/runs/{run}"))["resumable"], true);
}

#[test]
fn bad_orders_are_refused_with_a_sentence() {
    let portal = portal_with_jobs();
    let work = portal.scratch.work();
    let start = |body: Value| portal.ask("POST", "/api/v1/runs").json(&body).send();
    refused(&start(json!({ "job": "nope", "workspace": work })), 404, "job_not_found", "nope");
    refused(&start(json!({ "job": "demo", "workspace": work })), 422, "unprocessable", "`input`");
    refused(&start(json!({ "job": "waits", "workspace": "here" })), 422, "unprocessable", "absolute");
    refused(&start(json!({ "job": "waits", "workspac": work })), 400, "invalid_request", "workspac");
    for path in ["", "/stream"] {
        let answer = portal.ask("GET", &format!("/api/v1/runs/nope{path}")).send();
        refused(&answer, 404, "run_not_found", "nope");
    }
    for path in ["stop", "resume", "retry"] {
        let answer = portal.ask("POST", &format!("/api/v1/runs/nope/{path}")).send();
        refused(&answer, 404, "run_not_found", "nope");
    }
    refused(&portal.ask("GET", "/api/v1/runs/..%2f..").send(), 404, "run_not_found", "..");
}

#[test]
fn jobs_are_installed_from_a_file_that_is_sound() {
    let portal = Portal::start();
    assert_eq!(portal.get("/api/v1/jobs")["jobs"], json!({}));
    let none = portal.ask("POST", "/api/v1/runs").json(&json!({ "job": "demo", "workspace": "/tmp" }));
    refused(&none.send(), 409, "no_entry", "--entry");
    let install = |path: &str| portal.ask("PUT", "/api/v1/jobs/entry").json(&json!({ "path": path })).send();
    refused(&install("jobs.yaml"), 422, "unprocessable", "absolute");
    refused(&install("/nowhere/jobs.yaml"), 422, "unprocessable", "/nowhere/jobs.yaml");
    let wrong = portal.scratch.file("wrong.yaml", "models: {}\ntasks: {}\n");
    refused(&install(wrong.to_str().unwrap()), 422, "unprocessable", "entry.models.driving: Should exist.");
    let right = portal.scratch.file("jobs.yaml", ENTRY);
    let jobs = expect(install(right.to_str().unwrap()), 200);
    assert_eq!(jobs["entry"], json!({ "path": right, "problems": [] }));
    assert_eq!(portal.get("/api/v1/meta")["entry"]["path"], right.to_str().unwrap());
    std::fs::write(&right, "models: {}").unwrap();
    let problems = &portal.get("/api/v1/jobs")["entry"]["problems"];
    assert!(problems[0].as_str().unwrap().contains("driving"), "{problems}");
}
