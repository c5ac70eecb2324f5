//! Jobs: their tasks and sessions, their state, and stopping them.

use serde_json::{Value, json};

use super::{Portal, entry, names, one_job, run};

/// Runs a job of one task and compares what the task tells.
#[track_caller]
fn check_task(task: &str, expected: &[&str]) {
    let portal = Portal::with_entry(&one_job(&run(task)));
    let job = portal.start_job("demo", "");
    portal.drain(&format!("job/{job}"));
    assert_eq!(names(&portal.drain("task/task-1")), expected);
}

const SUCCEEDED: &str = "[TASK SUCCEEDED] Decision: task succeeded";
const FAILED: &str = "[TASK FAILED] Decision: task failed (criteria not satisfied)";

#[test]
fn a_task_with_one_session_uses_it_for_everything() {
    let (opened, closed) = ("taskSessionStarted true", "taskSessionStopped true");
    check_task("ok", &[opened, SUCCEEDED, closed, "taskSucceeded"]);
    let passed = "[CRITERIA] Criteria condition passed";
    check_task("agreed", &[opened, passed, SUCCEEDED, closed, "taskSucceeded"]);
}

#[test]
fn a_task_that_fails_says_so_after_its_session_has_stopped() {
    check_task(
        "disputed",
        &[
            "taskSessionStarted true",
            "[CRITERIA] Criteria condition failed",
            "[DECISION] Retry budget drained after 0 retries",
            FAILED,
            "taskSessionStopped false",
            "taskFailed",
        ],
    );
}

#[test]
fn a_condition_of_its_own_session_is_judged_by_a_driving_one() {
    check_task(
        "multi",
        &[
            "taskSessionStarted true",
            "taskSessionStopped true",
            "[AVAILABILITY] Availability check passed",
            "taskSessionStarted false",
            "taskSessionStopped true",
            "taskSessionStarted true",
            "taskSessionStopped true",
            "[CRITERIA] Criteria condition passed",
            SUCCEEDED,
            "taskSucceeded",
        ],
    );
}

#[test]
fn a_task_that_may_not_begin_has_failed() {
    check_task(
        "unavailable",
        &[
            "taskSessionStarted true",
            "[AVAILABILITY] Availability check failed: condition not satisfied",
            "taskSessionStopped false",
            "taskFailed",
        ],
    );
}

#[test]
fn a_session_of_a_job_is_polled_like_any_other_but_is_the_jobs() {
    let portal = Portal::with_entry(&one_job(&run("input")));
    let job = portal.start_job("demo", "the words\nof two lines");
    let heard = portal.drain(&format!("job/{job}"));
    assert_eq!(heard[0], json!({ "callback": "workStarted", "workId": 0, "taskId": "task-1" }));
    let started = &portal.drain("task/task-1")[0];
    assert_eq!(
        started,
        &json!({ "callback": "taskSessionStarted", "sessionId": "session-1", "isDriving": true })
    );
    let told = portal.drain("session/session-1");
    assert_eq!(
        told[0],
        json!({ "callback": "onGeneratedUserPrompt", "prompt": "SAY:the words\nof two lines" })
    );
    assert!(told.iter().any(|it| it["callback"] == "onEndMessage"), "{told:?}");
    assert_eq!(portal.get("copilot/session/session-1/stop"), json!({ "error": "SessionNotFound" }));
}

#[test]
fn a_job_needs_a_name_and_a_directory_that_are_there() {
    let portal = Portal::with_entry(&one_job(&run("ok")));
    for (name, body) in [
        ("nope", portal.work()),
        ("demo", String::new()),
        ("demo", "relative".to_owned()),
        ("demo", "/no/such".to_owned()),
    ] {
        let answer = portal.post(&format!("copilot/job/start/{name}"), &body);
        assert_eq!(answer, json!({ "error": "JobNotFound" }), "{name} {body}");
    }
}

#[test]
fn a_crash_is_a_failure_first_and_an_error_then() {
    let portal =
        Portal::with_entry(&one_job(&json!({ "kind": "Seq", "works": [run("crashes"), run("ok")] })));
    let job = portal.start_job("demo", "");
    let heard = portal.drain(&format!("job/{job}"));
    assert_eq!(names(&heard), ["workStarted 0", "workStopped 0 false", "jobFailed", "jobError"]);
    let told = names(&portal.drain("task/task-1"));
    let sessions = told.iter().filter(|name| name.starts_with("taskSessionStarted")).count();
    assert_eq!(sessions, 1, "a bad request is not tried again: {told:?}");
    assert_eq!(told[told.len() - 2..], ["taskFailed", "taskError"]);
    assert_eq!(portal.get(&format!("copilot/job/{job}/status"))["status"], "Failed");
}

fn status(portal: &Portal, job: &str) -> Value {
    portal.get(&format!("copilot/job/{job}/status"))
}

#[test]
fn jobs_are_listed_while_they_run_and_after() {
    let portal = Portal::with_entry(&entry(&json!({
        "demo": { "work": { "kind": "Seq", "works": [run("ok"), run("waits")] } },
        "quick": { "work": run("bad") },
    })));
    let (demo, quick) = (portal.start_job("demo", ""), portal.start_job("quick", ""));
    portal.poll_until(&format!("job/{demo}"), |it| it["workId"] == 1);
    let now = status(&portal, &demo);
    assert_eq!(
        (&now["jobId"], &now["jobName"], &now["status"]),
        (&json!(demo), &json!("demo"), &json!("Running"))
    );
    assert!(now["startTime"].as_str().is_some_and(|time| time.ends_with('Z')), "{now}");
    assert_eq!(now["tasks"][0], json!({ "workIdInJob": 0, "status": "Succeeded" }));
    assert_eq!(now["tasks"][1]["status"], "Running");
    assert!(now["tasks"][1]["taskId"].as_str().is_some_and(|id| id.starts_with("task-")), "{now}");
    portal.drain(&format!("job/{quick}"));
    let listed = portal.get("copilot/job/running");
    let listed: Vec<(&Value, &Value)> =
        listed["jobs"].as_array().unwrap().iter().map(|job| (&job["jobId"], &job["status"])).collect();
    assert_eq!(listed, [(&json!(demo), &json!("Running")), (&json!(quick), &json!("Failed"))]);
    assert_eq!(status(&portal, &quick)["tasks"], json!([{ "workIdInJob": 0, "status": "Failed" }]));
}

#[test]
fn a_job_that_is_stopped_says_so_once_and_everything_in_it_ends() {
    let portal = Portal::with_entry(&one_job(&run("waits")));
    let job = portal.start_job("demo", "");
    portal.until_at_work(&job);
    let stop = format!("copilot/job/{job}/stop");
    assert_eq!(portal.get(&stop), json!({ "result": "Closed" }));
    assert_eq!(status(&portal, &job)["status"], "Canceled");
    assert_eq!(portal.get(&stop), json!({ "result": "Closed" }), "once more changes nothing");
    assert_eq!(names(&portal.drain(&format!("job/{job}"))), ["workStarted 0", "jobCanceled"]);
    assert_eq!(names(&portal.drain("task/task-1")), ["taskSessionStarted true"]);
    portal.drain("session/session-1");
    assert_eq!(portal.get(&format!("copilot/job/{job}/live")), json!({ "error": "JobNotFound" }));
    portal.install(&one_job(&run("ok")));
}

#[test]
fn stopping_a_job_that_has_ended_changes_nothing() {
    let portal = Portal::with_entry(&one_job(&run("ok")));
    let job = portal.start_job("demo", "");
    let heard = portal.drain(&format!("job/{job}"));
    assert_eq!(heard.last(), Some(&json!({ "callback": "jobSucceeded" })));
    assert_eq!(portal.get(&format!("copilot/job/{job}/stop")), json!({ "result": "Closed" }));
    assert_eq!(status(&portal, &job)["status"], "Succeeded");
}

#[test]
fn stopping_a_task_ends_it_without_a_word_and_its_job_fails() {
    let portal = Portal::with_entry(&one_job(&json!({ "kind": "Seq", "works": [run("waits"), run("ok")] })));
    let job = portal.start_job("demo", "");
    portal.until_at_work(&job);
    assert_eq!(portal.get("copilot/task/task-1/stop"), json!({ "result": "Closed" }));
    assert_eq!(names(&portal.drain("task/task-1")), ["taskSessionStarted true"]);
    let heard = names(&portal.drain(&format!("job/{job}")));
    assert_eq!(heard, ["workStarted 0", "workStopped 0 false", "jobFailed", "jobError"]);
    assert_eq!(portal.get("copilot/task/task-1/stop"), json!({ "error": "TaskNotFound" }));
}

#[test]
fn a_job_is_read_with_tokens_from_the_start() {
    let portal = Portal::with_entry(&one_job(&run("ok")));
    let job = portal.start_job("demo", "");
    let plain = portal.drain(&format!("job/{job}"));
    let live = format!("copilot/job/{job}/live/a");
    assert_eq!(portal.get(&live), json!({ "responses": plain }));
    assert_eq!(portal.get(&live), json!({ "error": "JobsClosed" }));
    assert_eq!(portal.get(&live), json!({ "error": "JobNotFound" }));
}
