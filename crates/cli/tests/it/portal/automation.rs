//! Schedules, hooks and settings over HTTP.

use hangar_test_support::{ModelServer, Scratch, Signal};
use serde_json::{Value, json};

use super::{Portal, expect, refused};

/// A home with a configuration, and a log of automation in which the schedule `often` was last dealt with ten minutes ago.
fn machine(config: &str) -> (Scratch, ModelServer) {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    std::fs::create_dir_all(scratch.state().join("automation")).unwrap();
    let work = scratch.work().display().to_string();
    std::fs::write(scratch.state().join("config.toml"), config.replace("WORK", &work)).unwrap();
    (scratch, model)
}

fn seen_before(scratch: &Scratch, minutes: i64) {
    let last = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(minutes);
    let seen =
        json!({ "type": "seen", "schedule": "often", "times": "* * * * * UTC", "last": last.to_string() });
    std::fs::write(scratch.state().join("automation/log.jsonl"), format!("{seen}\n")).unwrap();
}

const OFTEN: &str = "[[schedules]]\nname = \"often\"\ncron = \"* * * * *\"\nprompt = \"SAY:scheduled\"\nworkspace = \"WORK\"\n";
const HOOK: &str =
    "[hooks.push]\nsecret_env = \"HOOK_SECRET\"\nprompt = \"SAY:hooked\"\nworkspace = \"WORK\"\n";

/// The schedule, once it has started a run that has ended.
fn ran(portal: &Portal) -> (Value, String) {
    loop {
        let schedule = portal.get("/api/v1/schedules")["schedules"][0].clone();
        assert_eq!(schedule["error"], Value::Null, "{schedule}");
        if let Some(run) = schedule["run"].as_str() {
            let state = portal.get(&format!("/api/v1/runs/{run}"))["state"].clone();
            if state == "succeeded" {
                return (schedule.clone(), run.to_owned());
            }
            assert!(state == "running" || state == "queued", "{state}");
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_schedule_starts_a_run_and_missed_times_are_told_once() {
    let (scratch, model) = machine(OFTEN);
    seen_before(&scratch, 10);
    let portal = Portal::on(scratch, model, &[]);
    let (schedule, run) = ran(&portal);
    let missed = schedule["missed"].as_u64().unwrap();
    assert!((8..=10).contains(&missed), "{schedule}");
    assert!(schedule["missedReason"].as_str().unwrap().contains("no portal was running"));
    let runs = portal.get("/api/v1/runs")["runs"].as_array().unwrap().len();
    assert!(runs <= 2, "missed times are not made up for");
    let log = std::fs::read_to_string(portal.scratch.state().join("automation/log.jsonl")).unwrap();
    let told = log.lines().filter(|line| line.contains("\"missed\"")).count();
    assert_eq!(told, 1);
    let claimed = log.lines().position(|line| line.contains("\"slot\"") && line.contains(&run)).unwrap();
    let started = log.lines().position(|line| line.contains("\"started\"") && line.contains(&run)).unwrap();
    assert!(claimed < started, "the claim is on record before the run starts");
}

#[test]
fn a_claim_whose_process_was_killed_is_started_once() {
    let (scratch, model) = machine(OFTEN);
    seen_before(&scratch, 0);
    let run = "20260101-000000-abcdef01";
    let work = json!({ "job": null, "jobs_file": null, "input": "SAY:claimed", "agent": null, "model": null,
        "workspace": scratch.work() });
    let claim = json!({ "type": "slot", "schedule": "often", "slot": jiff::Timestamp::now().to_string(), "run": run, "work": work });
    let path = scratch.state().join("automation/log.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}{claim}\n")).unwrap();
    let portal = Portal::on(scratch, model, &[]);
    let done = |portal: &Portal| loop {
        let answer = portal.ask("GET", &format!("/api/v1/runs/{run}")).send();
        if answer.status == 200 && expect(answer, 200)["state"] == "succeeded" {
            break;
        }
        std::thread::yield_now();
    };
    done(&portal);
    portal.running.signal(Signal::KILL);
    let portal = portal.again();
    done(&portal);
    let log = std::fs::read_to_string(portal.scratch.state().join("automation/log.jsonl")).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains("\"started\"") && line.contains(run)).count(), 1);
}

/// The signature of a body in GitHub's form.
fn signed(body: &str, secret: &str) -> String {
    let script = "import hashlib, hmac, sys; print(hmac.new(sys.argv[1].encode(), sys.argv[2].encode(), hashlib.sha256).hexdigest())";
    let output = std::process::Command::new("python3").args(["-c", script, secret, body]).output().unwrap();
    format!("sha256={}", String::from_utf8(output.stdout).unwrap().trim())
}

#[test]
fn a_hook_starts_work_once_for_each_delivery() {
    let (scratch, model) = machine(HOOK);
    let mut running = super::up(&scratch, &model, &["--token-env", "PORTAL_TOKEN"])
        .env("PORTAL_TOKEN", "portal-secret")
        .env("HOOK_SECRET", "hook-secret")
        .start();
    let port = super::port(&mut running);
    let portal = Portal { scratch, model, running, port };
    let body = r#"{"ref":"refs/heads/main"}"#;
    let call = |name: &str, signature: &str, delivery: &str| {
        let ask = portal.ask("POST", &format!("/api/v1/hooks/{name}"));
        let ask = ask.header("x-hub-signature-256", signature).header("x-github-delivery", delivery);
        ask.header("x-github-event", "push").header("content-type", "application/json").text(body).send()
    };
    let signature = signed(body, "hook-secret");
    refused(&call("push", &signed(body, "wrong"), "d1"), 401, "wrong_signature", "");
    refused(&call("other", &signature, "d1"), 401, "wrong_signature", "");
    let first = expect(call("push", &signature, "d1"), 202);
    assert_eq!(first["duplicate"], false);
    let again = expect(call("push", &signature, "d1"), 200);
    assert_eq!((&again["duplicate"], &again["run"]), (&json!(true), &first["run"]));
    let second = expect(call("push", &signature, "d2"), 202);
    assert_ne!(second["run"], first["run"]);
}

#[test]
fn a_delivery_whose_work_cannot_be_started_is_refused_and_may_come_again() {
    let (scratch, model) = machine(&HOOK.replace("WORK", "WORK/later"));
    let mut running = super::up(&scratch, &model, &[]).env("HOOK_SECRET", "hook-secret").start();
    let port = super::port(&mut running);
    let portal = Portal { scratch, model, running, port };
    let signature = signed("{}", "hook-secret");
    let call = || {
        let ask = portal.ask("POST", "/api/v1/hooks/push").header("x-hub-signature-256", &signature);
        ask.header("x-github-delivery", "d1").header("content-type", "application/json").text("{}").send()
    };
    refused(&call(), 422, "not_started", "later is not a directory");
    std::fs::create_dir(portal.scratch.work().join("later")).unwrap();
    let started = expect(call(), 202);
    assert_eq!(started["duplicate"], false);
    let run = started["run"].as_str().unwrap();
    expect(portal.ask("GET", &format!("/api/v1/runs/{run}")).send(), 200);
}

#[test]
fn settings_are_changed_over_http_and_apply_to_what_is_opened_next() {
    let (scratch, model) = machine(
        "# mine\n[providers.x]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = \"sk-very-secret\"\n",
    );
    let portal = Portal::on(scratch, model, &[]);
    let shown = portal.ask("GET", "/api/v1/settings").send();
    assert!(!String::from_utf8_lossy(&shown.body).contains("sk-very-secret"));
    let change =
        |changes: Value| portal.ask("PATCH", "/api/v1/settings").json(&json!({ "changes": changes })).send();
    let set = json!([
        { "path": ["agents", "fast"], "value": { "runtime": "native", "model": "small-one" } },
        { "path": ["limits", "global"], "value": 7 },
    ]);
    let view = expect(change(set), 200);
    assert_eq!(
        portal.get("/api/v1/meta")["appearance"],
        json!({ "theme": "system", "density": "comfortable" })
    );
    let look = json!([
        { "path": ["appearance", "theme"], "value": "dark" },
        { "path": ["appearance", "density"], "value": "compact" },
    ]);
    expect(change(look), 200);
    assert_eq!(portal.get("/api/v1/meta")["appearance"], json!({ "theme": "dark", "density": "compact" }));
    assert_eq!(view["values"]["agents"]["fast"]["model"], "small-one");
    assert!(
        std::fs::read_to_string(portal.scratch.state().join("config.toml")).unwrap().starts_with("# mine\n")
    );
    let body = json!({ "workspace": portal.scratch.work(), "agent": "fast", "policy": "allow-all", "prompt": "SAY:hi" });
    let id = portal.post("/api/v1/sessions", &body, 201)["id"].as_str().unwrap().to_owned();
    portal.hear(&id, 0).until_state("idle");
    let session = portal.session(&id);
    assert_eq!(
        (&session["agent"], &session["runtime"], &session["model"]),
        (&json!("fast"), &json!("native"), &json!("small-one"))
    );
    while portal.get("/api/v1/queue")["slots"]["limit"] != 7 {
        std::thread::yield_now();
    }
    refused(&change(json!([{ "path": ["limits", "global"], "value": 0 }])), 422, "invalid_settings", "");
    refused(
        &change(json!([{ "path": ["providers", "x", "api_key"], "value": "sk" }])),
        422,
        "invalid_settings",
        "plain text",
    );
    let test = portal.poke("/api/v1/settings/providers/x/test", 200);
    assert_eq!(test["ok"], false);
    assert!(!test.to_string().contains("sk-very-secret"));
}
