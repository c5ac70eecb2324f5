//! The queue over HTTP.

use hangar_test_support::{ModelServer, Scratch, Signal};
use serde_json::{Value, json};

use super::Portal;

const ENTRY: &str = r#"
models: { driving: mock-model }
tasks:
  say: { model: { category: driving }, prompt: "SAY:hello", requireUserInput: false }
  waits:
    model: { category: driving }
    prompt: 'TOOL:bash:{"command":"until [ -e go ]; do sleep 0.05; done"}'
    requireUserInput: false
jobs:
  say: { work: { kind: Ref, taskId: say } }
  waits: { work: { kind: Ref, taskId: waits } }
"#;

/// A portal with one slot.
fn portal() -> Portal {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let file = scratch.file("jobs.yaml", ENTRY);
    std::fs::create_dir_all(scratch.state()).unwrap();
    std::fs::write(scratch.state().join("config.toml"), "[limits]\nglobal = 1\n").unwrap();
    Portal::on(scratch, model, &["--entry", file.to_str().unwrap()])
}

#[track_caller]
fn start(portal: &Portal, job: &str) -> String {
    let body = json!({ "job": job, "workspace": portal.scratch.work() });
    portal.post("/api/v1/runs", &body, 201)["id"].as_str().unwrap().to_owned()
}

fn when(portal: &Portal, path: &str, expected: impl Fn(&Value) -> bool) -> Value {
    loop {
        let found = portal.get(path);
        if expected(&found) {
            return found;
        }
    }
}

#[test]
fn a_run_that_waits_says_why_and_goes_on_when_a_slot_is_free() {
    let portal = portal();
    let first = start(&portal, "waits");
    when(&portal, "/api/v1/queue", |queue| queue["running"][0]["run"] == first.as_str());
    let second = start(&portal, "say");
    let reason = "1 of 1 slots are taken; first in line";
    when(&portal, "/api/v1/queue", |queue| queue["waiting"][0]["reason"] == reason);
    let path = format!("/api/v1/runs/{second}");
    // The queue knows of the work a moment before the run shows it.
    when(&portal, &path, |run| run["works"][0]["waits"] == reason);
    let is_second = |run: &&Value| run["id"] == second.as_str();
    when(&portal, "/api/v1/runs", |runs| {
        let shown = runs["runs"].as_array().into_iter().flatten().find(is_second);
        shown.is_some_and(|run| run["works"][0]["waits"] == reason)
    });
    let paused = portal.post("/api/v1/queue/pause", &json!({}), 200);
    assert_eq!(paused["mode"], "paused");
    assert_eq!(portal.post("/api/v1/queue/drain", &json!({}), 202)["mode"], "draining");
    portal.scratch.file("go", "");
    when(&portal, "/api/v1/queue", |queue| queue["slots"]["used"] == 0);
    let waits = |run: &Value| run["works"][0]["waits"].as_str().unwrap_or_default().to_owned();
    when(&portal, &path, |run| waits(run).starts_with("the queue is drained"));
    portal.post("/api/v1/queue/resume", &json!({}), 200);
    let ended = when(&portal, &path, |run| run["state"] == "succeeded");
    assert!(ended["works"][0].get("waits").is_none());
}

#[test]
fn a_queued_prompt_is_continued_by_the_next_portal() {
    let portal = portal();
    portal.post("/api/v1/queue/pause", &json!({}), 200);
    let workspace = portal.scratch.work().display().to_string();
    let wanted = json!({ "prompt": "SAY:later", "workspace": workspace });
    let run = portal.post("/api/v1/runs", &wanted, 201)["id"].as_str().unwrap().to_owned();
    when(&portal, "/api/v1/queue", |queue| queue["waiting"][0]["run"] == run.as_str());
    portal.running.signal(Signal::KILL);
    let portal = portal.again();
    let paused = "the queue is paused; `hangar resume` continues it";
    when(&portal, "/api/v1/queue", |queue| queue["waiting"][0]["reason"] == paused);
    portal.post("/api/v1/queue/resume", &json!({}), 200);
    when(&portal, &format!("/api/v1/runs/{run}"), |run| run["state"] == "succeeded");
}

#[test]
fn a_prompt_waits_in_the_queue_like_a_job() {
    let portal = portal();
    let first = start(&portal, "waits");
    when(&portal, "/api/v1/queue", |queue| queue["running"][0]["run"] == first.as_str());
    let body = json!({ "prompt": "SAY:queued", "workspace": portal.scratch.work() });
    let run = portal.post("/api/v1/runs", &body, 201)["id"].as_str().unwrap().to_owned();
    let reason = "1 of 1 slots are taken; first in line";
    when(&portal, "/api/v1/queue", |queue| queue["waiting"][0]["reason"] == reason);
    portal.scratch.file("go", "");
    let ended = when(&portal, &format!("/api/v1/runs/{run}"), |run| run["state"] == "succeeded");
    let session = ended["works"][0]["sessions"][0]["id"].as_str().unwrap().to_owned();
    assert!(portal.scratch.log(&session).contains("queued"));
    let both = json!({ "job": "say", "prompt": "SAY:x", "workspace": portal.scratch.work() });
    let refused = portal.ask("POST", "/api/v1/runs").json(&both).send();
    super::refused(&refused, 422, "unprocessable", "either a `job`");
    // What is said about a run is in its log. The slot is given back after the end of the run was told.
    let path = portal.scratch.state().join(format!("logs/runs/{run}.jsonl"));
    loop {
        let log = std::fs::read_to_string(&path).unwrap();
        let lines =
            log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>();
        let said = |words: &str| lines.iter().any(|line| line["message"].as_str().unwrap().contains(words));
        if said(&format!("work waits: {reason}")) && said("work has a slot") && said("work has ended") {
            break;
        }
        portal.get("/api/v1/queue");
    }
}

#[test]
fn budgets_and_limits_change_together_while_the_portal_runs() {
    let portal = portal();
    // Budgets are shown for work that runs.
    start(&portal, "waits");
    let write = |text: &str| std::fs::write(portal.scratch.state().join("config.toml"), text).unwrap();
    write("[limits]\nglobal = 1\n[budgets]\nper_day = 5\n");
    let budget = |queue: &Value| queue["budgets"][0]["limitUsd"].as_f64();
    when(&portal, "/api/v1/queue", |queue| budget(queue) == Some(5.0));
    write("[limits]\nglobal = 3\n[budgets]\nper_day = 5\n");
    let queue = when(&portal, "/api/v1/queue", |queue| queue["slots"]["limit"] == 3);
    assert_eq!(budget(&queue), Some(5.0), "{queue}");
}

#[test]
fn everything_is_stopped_at_once() {
    let portal = portal();
    let first = start(&portal, "waits");
    when(&portal, "/api/v1/queue", |queue| queue["running"][0]["run"] == first.as_str());
    let second = start(&portal, "say");
    portal.post("/api/v1/queue/stop", &json!({}), 202);
    for run in [first, second] {
        when(&portal, &format!("/api/v1/runs/{run}"), |run| run["state"] == "canceled");
    }
    let empty = |queue: &Value| queue["running"] == json!([]) && queue["waiting"] == json!([]);
    when(&portal, "/api/v1/queue", empty);
}

#[test]
fn turns_that_people_typed_do_not_wait_and_count() {
    let portal = portal();
    let prompt = r#"TOOL:bash:{"command":"until [ -e go ]; do sleep 0.05; done"}"#;
    let body = json!({ "workspace": portal.scratch.work(), "policy": "allow-all", "prompt": prompt });
    let typed: Vec<Value> = (0..2).map(|_| portal.post("/api/v1/sessions", &body, 201)).collect();
    when(&portal, "/api/v1/queue", |queue| queue["slots"]["used"] == 2);
    let run = start(&portal, "say");
    let reason = "2 of 1 slots are taken; first in line";
    when(&portal, "/api/v1/queue", |queue| queue["waiting"][0]["reason"] == reason);
    portal.scratch.file("go", "");
    when(&portal, &format!("/api/v1/runs/{run}"), |run| run["state"] == "succeeded");
    when(&portal, "/api/v1/queue", |queue| queue["slots"]["used"] == 0);
    assert_eq!(typed.len(), 2);
}
