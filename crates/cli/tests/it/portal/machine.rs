//! Agents as this machine has them: without a provider, on other machines, and slow.

use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use super::{Portal, expect, port, refused};
use crate::HANGAR;

fn configured(config: &str, args: &[&str]) -> Portal {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    std::fs::create_dir_all(scratch.state()).unwrap();
    std::fs::write(scratch.state().join("config.toml"), config).unwrap();
    Portal::on(scratch, model, args)
}

/// An agent that works on another machine, which cannot be reached.
const ELSEWHERE: &str = "[runtimes.codex]\nprogram = \"codex\"\nssh = \"127.0.0.1\"\nssh_port = 1\nssh_options = [\"ConnectTimeout=1\"]\n";
const ONLY_THERE: &str = "/only/over/there";

#[test]
fn the_scripted_model_is_enough_for_our_own_agent() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let invocation = scratch.run(HANGAR).env("COPILOT_MODEL", "scripted").env("COPILOT_OFFLINE", "true");
    let mut running = invocation.args(["up", "--port", "0"]).start();
    let port = port(&mut running);
    let portal = Portal { scratch, model, running, port };
    let listed = portal.get("/api/v1/runtimes?check=true");
    let native = &listed["runtimes"][0];
    assert_eq!(native["name"], "native");
    assert_eq!(native["preflight"]["ready"], true, "{native}");
    let id = portal.done("SAY:hello");
    assert!(portal.scratch.log(&id).contains("hello"));
}

#[test]
fn a_folder_of_another_machine_is_found_out_about_over_there() {
    let portal = configured(ELSEWHERE, &[]);
    let open = |runtime: &str| {
        let body = json!({ "workspace": ONLY_THERE, "runtime": runtime, "prompt": "hi" });
        portal.ask("POST", "/api/v1/sessions").json(&body).send()
    };
    let opened = expect(open("codex"), 201);
    let id = opened["id"].as_str().unwrap();
    portal.hear(id, 0).until_state("failed");
    let error = portal.session(id)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("the connection to the remote host failed"), "{error}");
    refused(&open("native"), 422, "unprocessable", ONLY_THERE);
}

/// Two jobs: one whose agent is elsewhere, and one that needs an agent here as well.
fn entry() -> Value {
    let task = |more: Value| {
        let mut task =
            json!({ "model": { "category": "driving" }, "prompt": ["SAY:hi"], "requireUserInput": false });
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        task
    };
    let run = |name: &str| json!({ "kind": "Ref", "taskId": name });
    json!({
        "models": { "driving": "mock-model" },
        "tasks": { "there": task(json!({ "runtime": "codex" })), "here": task(json!({})) },
        "jobs": {
            "there": { "work": run("there") },
            "both": { "work": { "kind": "Seq", "works": [run("there"), run("here")] } },
        },
    })
}

#[test]
fn a_job_of_agents_elsewhere_works_in_a_folder_elsewhere() {
    let entry_file = Scratch::new();
    let file = entry_file.file("jobs.json", &entry().to_string());
    let file = file.to_str().unwrap();
    let portal = configured(ELSEWHERE, &["--entry", file]);
    let start = |job: &str| {
        let body = json!({ "job": job, "workspace": ONLY_THERE });
        portal.ask("POST", "/api/v1/runs").json(&body).send()
    };
    expect(start("there"), 201);
    refused(&start("both"), 422, "unprocessable", ONLY_THERE);
    let polled = |job: &str| {
        portal.ask("POST", &format!("/api/copilot/job/start/{job}")).text(ONLY_THERE).send().json()
    };
    assert!(polled("there")["jobId"].is_string());
    assert_eq!(polled("both"), json!({ "error": "JobNotFound" }));
    // The command line knows the same.
    let run = |job: &str| {
        let args = ["job", "run", file, job, "--directory", ONLY_THERE];
        crate::hangar(&portal.scratch, &portal.model).args(args).finish().expect_exit(1).stderr
    };
    assert!(run("there").contains("the connection to the remote host failed"), "{}", run("there"));
    assert!(run("both").contains("the working directory /only/over/there"), "{}", run("both"));
}

#[test]
fn neither_a_silent_command_nor_a_person_who_thinks_is_a_stall() {
    let portal = configured("[runtimes]\nstall_timeout = 1\n", &[]);
    let asked = portal.open(r#"TOOL:bash:{"command":"touch done"}"#, "ask");
    portal.hear(&asked, 0).until_state("waiting");
    let silent = portal.open(r#"TOOL:bash:{"command":"sleep 3; echo over"}"#, "allow-all");
    portal.hear(&silent, 0).until(|message| {
        let state = &message.data["state"];
        message.event.as_deref() == Some("session") && (state == "idle" || state == "failed")
    });
    assert_eq!(portal.session(&silent)["state"], "idle", "{}", portal.session(&silent));
    // The other one has waited for as long.
    assert_eq!(portal.session(&asked)["state"], "waiting");
    let approval = portal.get("/api/v1/approvals")["approvals"][0]["id"].as_str().unwrap().to_owned();
    portal.post(&format!("/api/v1/approvals/{approval}"), &json!({ "decision": "approve" }), 200);
    portal.hear(&asked, 0).until_state("idle");
}
