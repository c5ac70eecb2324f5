//! Tasks in sessions of clients: criteria, retries, and what is told on the way.

use serde_json::{Value, json};

use super::{Portal, entry, names, run};

/// Runs a task in a session and compares what both tell. The session stays open.
#[track_caller]
fn check(task: &str, input: &str, expected: &[&str], prompts: &[&str]) {
    let portal = Portal::with_entry(&entry(&json!({ "demo": { "work": run("ok") } })));
    let session = portal.start_session();
    let answer = portal.post(&format!("copilot/task/start/{task}/session/{session}"), input);
    assert_eq!(answer, json!({ "taskId": "task-1" }));
    assert_eq!(names(&portal.drain("task/task-1")), expected);
    let gone = json!({ "error": "TaskNotFound" });
    assert_eq!(portal.get("copilot/task/task-1/live"), gone);
    assert_eq!(portal.get("copilot/task/task-1/stop"), gone, "the id is unavailable when it has ended");
    // The session has heard all of it, and goes on.
    assert_eq!(portal.post(&format!("copilot/session/{session}/query"), "SAY:still here"), json!({}));
    let heard = portal.poll_until(&format!("session/{session}"), |it| it["completeContent"] == "still here");
    let told = heard.iter().filter(|it| it["callback"] == "onGeneratedUserPrompt");
    let told: Vec<&str> = told.map(|it| it["prompt"].as_str().unwrap()).collect();
    assert_eq!(told, prompts);
    assert_eq!(portal.get(&format!("copilot/session/{session}/stop")), json!({ "result": "Closed" }));
}

const SUCCEEDED: &str = "[TASK SUCCEEDED] Decision: task succeeded";
const FAILED: &str = "[TASK FAILED] Decision: task failed (criteria not satisfied)";
const MISSING: &str = "[CRITERIA] toolExecuted check failed: missing tools: job_prepare_document";

#[test]
fn a_task_without_criteria_succeeds() {
    check("ok", "", &[SUCCEEDED, "taskSucceeded"], &["SAY:fine"]);
}

#[test]
fn the_input_gets_into_the_prompt() {
    check("input", "two\nlines", &[SUCCEEDED, "taskSucceeded"], &["SAY:two\nlines"]);
}

#[test]
fn a_tool_that_was_called_is_enough() {
    let prompt = r#"TOOL:jobs-job_prepare_document:{"argument":"a.md"}"#;
    check("reports", "", &[SUCCEEDED, "taskSucceeded"], &[prompt]);
}

#[test]
fn without_retries_a_missing_tool_is_a_failure_at_once() {
    let drained = "[DECISION] Retry budget drained after 0 retries";
    check("silent", "", &[MISSING, drained, FAILED, "taskFailed"], &["SAY:nothing"]);
}

#[test]
fn retries_have_a_budget() {
    let again = "SAY:nothing\n## Required Tool Not Called: job_prepare_document";
    check(
        "persistent",
        "",
        &[
            MISSING,
            "[OPERATION] Starting retry #1",
            MISSING,
            "[CRITERIA] Criteria failed on retry #1",
            "[OPERATION] Starting retry #2",
            MISSING,
            "[CRITERIA] Criteria failed on retry #2",
            "[DECISION] Retry budget drained after 2 retries",
            FAILED,
            "taskFailed",
        ],
        &["SAY:nothing", again, again],
    );
}

#[test]
fn a_retry_that_succeeds_is_the_last() {
    let document = r#"TOOL:jobs-job_prepare_document:{"argument":"a.md"}"#;
    let again = format!(
        "SAY:nothing\n## Required Tool Not Called: job_prepare_document\n## You accidentally Stopped\n{document}"
    );
    check(
        "reminded",
        "",
        &[
            MISSING,
            "[OPERATION] Starting retry #1",
            "[CRITERIA] Criteria passed on retry #1",
            SUCCEEDED,
            "taskSucceeded",
        ],
        &["SAY:nothing", &again],
    );
}

fn condition(tool: &str) -> String {
    format!("Call job_boolean_true or job_boolean_false.\nTOOL:jobs-{tool}:{{\"argument\":\"because\"}}")
}

#[test]
fn a_condition_is_put_to_the_same_session() {
    let decisions = ["[CRITERIA] Criteria condition passed", SUCCEEDED, "taskSucceeded"];
    check("agreed", "", &decisions, &["SAY:working", &condition("job_boolean_true")]);
    let decisions = [
        "[CRITERIA] Criteria condition failed",
        "[DECISION] Retry budget drained after 0 retries",
        FAILED,
        "taskFailed",
    ];
    check("disputed", "", &decisions, &["SAY:working", &condition("job_boolean_false")]);
}

#[test]
fn who_lends_a_session_is_not_asked_whether_the_task_may_begin() {
    check("unavailable", "", &[SUCCEEDED, "taskSucceeded"], &["SAY:working"]);
}

#[test]
fn a_crash_fails_the_task_and_says_why() {
    let portal = Portal::with_entry(&entry(&json!({ "demo": { "work": run("ok") } })));
    let session = portal.start_session();
    portal.post(&format!("copilot/task/start/crashes/session/{session}"), "");
    let heard = portal.drain("task/task-1");
    let told = names(&heard);
    assert!(told[0].starts_with("[SESSION CRASHED] Task crashed in borrowing session mode: {"), "{told:?}");
    assert!(told[1].starts_with("[TASK FAILED] Task error: {"), "{told:?}");
    assert_eq!(told[2..], ["taskFailed", "taskError"]);
    let error: Value = serde_json::from_str(heard[3]["taskError"].as_str().unwrap()).unwrap();
    assert!(error["message"].is_string(), "{error}");
    assert_eq!(portal.post(&format!("copilot/session/{session}/query"), "SAY:still here"), json!({}));
}

#[test]
fn a_task_that_is_not_there_is_an_error_of_the_task() {
    let portal = Portal::with_entry(&entry(&json!({ "demo": { "work": run("ok") } })));
    let session = portal.start_session();
    let answer = portal.post(&format!("copilot/task/start/nope/session/{session}"), "");
    assert!(answer["taskError"].as_str().is_some_and(|error| error.contains("nope")), "{answer}");
}

#[test]
fn a_task_in_a_lent_session_ends_by_itself_and_has_the_session_for_itself() {
    let portal = Portal::with_entry(&entry(&json!({ "demo": { "work": run("ok") } })));
    let session = portal.start_session();
    portal.post(&format!("copilot/task/start/waits/session/{session}"), "");
    portal.poll_until(&format!("session/{session}"), |it| it["callback"] == "onStartToolExecution");
    assert_eq!(portal.get("copilot/task/task-1/stop"), json!({ "error": "TaskCannotClose" }));
    let second = portal.post(&format!("copilot/task/start/ok/session/{session}"), "");
    assert!(second["taskError"].is_string(), "{second}");
    // Stopping the session stops the work in it.
    portal.get(&format!("copilot/session/{session}/stop"));
    assert_eq!(names(&portal.drain("task/task-1")).last().map(String::as_str), Some("taskError"));
}

#[test]
fn what_a_client_asks_meanwhile_is_no_answer_to_the_task() {
    let portal = Portal::with_entry(&entry(&json!({ "demo": { "work": run("ok") } })));
    let session = portal.start_session();
    portal.post(&format!("copilot/task/start/patient/session/{session}"), "");
    portal.poll_until(&format!("session/{session}"), |it| it["callback"] == "onStartToolExecution");
    // It is worked on before the condition of the task, and says neither yes nor no.
    assert_eq!(portal.post(&format!("copilot/session/{session}/query"), "SAY:in between"), json!({}));
    portal.scratch.file("go", "");
    let passed = ["[CRITERIA] Criteria condition passed", SUCCEEDED, "taskSucceeded"];
    assert_eq!(names(&portal.drain("task/task-1")), passed);
    let heard = portal.poll_until(&format!("session/{session}"), |it| {
        it["callback"] == "onStartToolExecution" && it["toolName"] == "job_boolean_true"
    });
    assert!(heard.iter().any(|it| it["completeContent"] == "in between"), "{heard:#?}");
}

/// Starts so many tasks one after the other in one session, each as soon as the one before says that it is over.
#[track_caller]
fn in_a_row(tasks: usize, until_over: impl Fn(&Portal, &str)) {
    let portal = Portal::with_entry(&entry(&json!({ "demo": { "work": run("ok") } })));
    let session = portal.start_session();
    let refused = (0..tasks).filter(|_| {
        let answer = portal.post(&format!("copilot/task/start/ok/session/{session}"), "");
        match answer["taskId"].as_str() {
            Some(task) => until_over(&portal, task),
            None => assert!(answer["taskError"].as_str().unwrap().contains("not_lent"), "{answer}"),
        }
        answer["taskId"].is_null()
    });
    assert_eq!(refused.count(), 0, "of {tasks} tasks were refused");
}

#[test]
fn whoever_hears_that_a_task_succeeded_can_start_the_next_one() {
    in_a_row(200, |portal, task| {
        portal.poll_until(&format!("task/{task}"), |it| it["callback"] == "taskSucceeded");
    });
}

#[test]
fn whoever_hears_that_a_task_is_closed_can_start_the_next_one() {
    in_a_row(200, |portal, task| {
        portal.drain(&format!("task/{task}"));
    });
}

#[test]
fn a_task_is_read_with_tokens_too() {
    let portal = Portal::with_entry(&entry(&json!({ "demo": { "work": run("ok") } })));
    let session = portal.start_session();
    portal.post(&format!("copilot/task/start/ok/session/{session}"), "");
    let plain = portal.drain("task/task-1");
    assert_eq!(portal.get("copilot/task/task-1/live/a"), json!({ "responses": plain }));
    assert_eq!(portal.get("copilot/task/task-1/live/a"), json!({ "error": "TaskClosed" }));
    assert_eq!(portal.get("copilot/task/task-1/live/a"), json!({ "error": "TaskNotFound" }));
}
