//! Installing jobs, and listing what was installed.

use serde_json::{Value, json};

use super::{Portal, entry, run};

fn demo() -> Value {
    entry(&json!({
        "demo": { "work": { "kind": "Seq", "works": [run("ok"), { "kind": "Seq", "works": [run("input"), run("ok")] }] } },
        "two words/and a slash": { "work": run("ok") },
    }))
}

#[track_caller]
fn check(portal: &Portal, path: &str, result: &str, error: &str) {
    let answer = portal.post("copilot/test/installJobsEntry", path);
    assert_eq!(answer["result"], result, "{answer}");
    assert!(answer["error"].as_str().is_some_and(|text| text.contains(error)), "{answer}");
}

#[test]
fn a_file_has_to_be_in_a_test_folder_and_sound() {
    let portal = Portal::start();
    let file = |path: &str, text: &str| portal.scratch.file(path, text).to_str().unwrap().to_owned();
    check(&portal, &file("elsewhere/entry.json", &demo().to_string()), "InvalidatePath", "`test` folder");
    check(&portal, "test/entry.json", "InvalidatePath", "absolute");
    check(&portal, &format!("{}/test/gone.json", portal.work()), "InvalidatePath", "gone.json");
    check(&portal, &file("test/bad.json", "{"), "InvalidatePath", "JSON");
    check(
        &portal,
        &file("test/empty.json", "{}"),
        "InvalidateEntry",
        "testEntryentry.models.driving: Should exist.",
    );
    let mut unsound = demo();
    unsound["jobs"]["demo"]["work"]["works"][0]["taskId"] = json!("nope");
    let expected = r#"testEntryentry.jobs["demo"].work.works[0].taskId: "nope" is not a valid task name."#;
    check(&portal, &file("test/unsound.json", &unsound.to_string()), "InvalidateEntry", expected);
    assert_eq!(portal.get("copilot/task"), json!({ "tasks": [] }), "nothing was installed");
}

#[test]
fn models_have_to_be_there() {
    let portal = Portal::start();
    let install = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut entry = demo();
        change(&mut entry);
        let file = portal.scratch.file("test/entry.json", &entry.to_string());
        let offered = format!("\"{name}\"; there are: ");
        check(&portal, file.to_str().unwrap(), "Rejected", &offered);
    };
    install("gone", &|entry| entry["models"]["driving"] = json!("gone"));
    install("unused", &|entry| entry["models"]["later"] = json!("unused"));
    install("its-own", &|entry| entry["tasks"]["ok"]["model"] = json!({ "id": "its-own" }));
    install("spare", &|entry| {
        entry["drivingSessionRetries"] =
            json!([{ "modelId": super::MODEL, "retries": 1 }, { "modelId": "spare", "retries": 1 }]);
    });
    install("other", &|entry| {
        entry["jobs"]["demo"]["work"]["works"][0]["modelOverride"] = json!({ "id": "other" });
    });
    assert_eq!(portal.get("copilot/task"), json!({ "tasks": [] }), "nothing was installed");
}

#[test]
fn models_of_a_provider_that_tells_none_may_be_there() {
    let portal = Portal::start_elsewhere();
    portal.install(&demo());
}

#[test]
fn jobs_are_not_exchanged_under_a_session() {
    let portal = Portal::with_entry(&demo());
    let session = portal.start_session();
    let file = format!("{}/test/entry.json", portal.work());
    check(&portal, &file, "Rejected", "sessions are running");
    portal.post(&format!("copilot/session/{session}/stop"), "");
    portal.install(&demo());
}

#[test]
fn tasks_and_jobs_are_listed() {
    let portal = Portal::with_entry(&demo());
    let tasks = portal.get("copilot/task");
    let tasks = tasks["tasks"].as_array().unwrap();
    assert!(tasks.contains(&json!({ "name": "ok", "requireUserInput": false })), "{tasks:?}");
    assert!(tasks.contains(&json!({ "name": "input", "requireUserInput": true })), "{tasks:?}");
    let jobs = portal.get("copilot/job");
    let keys = |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(&jobs), ["grid", "jobs", "chart"]);
    assert_eq!(keys(&jobs["jobs"]), ["demo", "two words/and a slash"]);
    assert_eq!(keys(&jobs["chart"]), ["demo", "two words/and a slash"]);
    assert_eq!(
        jobs["grid"][0],
        json!({ "keyword": "row", "jobs": [{ "name": "go", "jobName": "demo" }, null] })
    );
    assert_eq!(jobs["jobs"]["demo"]["requireUserInput"], true);
    assert_eq!(jobs["jobs"]["demo"]["work"]["works"].as_array().unwrap().len(), 3, "flattened");
    assert_eq!(jobs["chart"]["demo"]["nodes"][1]["hint"], json!(["TaskNode", 1]));
}

#[test]
fn names_in_paths_are_decoded() {
    let portal = Portal::with_entry(&demo());
    let job = portal.start_job("two%20words%2Fand%20a%20slash", "");
    assert_eq!(portal.drain(&format!("job/{job}")).last(), Some(&json!({ "callback": "jobSucceeded" })));
}
