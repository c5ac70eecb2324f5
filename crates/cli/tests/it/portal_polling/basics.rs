//! Requests without a session or a job: configuration, models, unknown paths, and shutdown.

use serde_json::json;

use super::{Portal, request};

#[test]
fn the_server_says_hello_and_where_it_is() {
    let portal = Portal::start();
    assert_eq!(portal.get("test"), json!({ "message": "Hello, world!" }));
    let root = portal.get("config")["repoRoot"].as_str().unwrap().to_owned();
    assert!(!root.is_empty() && std::path::Path::new(&root).is_absolute(), "{root}");
}

#[test]
fn tokens_differ() {
    let portal = Portal::start();
    let tokens = [portal.get("token"), portal.get("token")];
    assert!(tokens.iter().all(|token| token["token"].is_string()) && tokens[0] != tokens[1]);
}

#[test]
fn models_have_a_name_an_id_and_the_multiplier_that_is_told() {
    let portal = Portal::start();
    let models = portal.get("copilot/models");
    let models = models["models"].as_array().unwrap();
    assert!(models.iter().any(|model| model["id"] == super::MODEL), "{models:?}");
    assert!(models.iter().all(|model| model["name"].is_string()), "{models:?}");
    let untold = models.iter().find(|model| model["id"] == super::MODEL).unwrap();
    assert!(untold.get("multiplier").is_none(), "nobody told one: {untold}");
}

#[test]
fn any_method_will_do() {
    let portal = Portal::start();
    for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
        assert_eq!(portal.ask(method, "test", "a body"), json!({ "message": "Hello, world!" }));
    }
}

#[test]
fn paths_that_mean_nothing_are_not_found() {
    let portal = Portal::start();
    let nothing = [
        "",
        "nope",
        "test/",
        "config/more",
        "copilot",
        "copilot/session",
        "copilot/session/start",
        "live",
        "copilot/live",
        "copilot/session/live/x/y",
        "copilot/job/start",
        "copilot/task/start/a/session",
        "copilot/nothing/session-1/live",
        "%FF",
    ];
    for path in nothing {
        let answer = request(portal.port, "GET", path, "");
        assert_eq!(answer, (404, json!({ "error": "Unknown API endpoint" })), "{path}");
    }
}

#[test]
fn jobs_are_installed_by_tests_alone() {
    let portal = Portal::start_with(&[]);
    let answer = request(portal.port, "POST", "copilot/test/installJobsEntry", "/x/test/y.json");
    assert_eq!(answer, (404, json!({ "error": "Unknown API endpoint" })));
}

#[test]
fn a_body_that_cannot_be_read_is_refused() {
    let portal = Portal::start();
    let long = "x".repeat(5 << 20);
    let (status, answer) = request(portal.port, "POST", "copilot/session/start/mock-model", &long);
    assert_eq!(status, 413, "{answer}");
}

#[test]
fn before_jobs_are_installed_there_are_none() {
    let portal = Portal::start();
    assert_eq!(portal.get("copilot/task"), json!({ "tasks": [] }));
    assert_eq!(portal.get("copilot/job"), json!({ "grid": [], "jobs": {}, "chart": {} }));
    assert_eq!(portal.get("copilot/job/running"), json!({ "jobs": [] }));
    let answer = portal.post("copilot/job/start/demo", &portal.work());
    assert_eq!(answer, json!({ "error": "JobNotFound" }));
}

#[test]
fn what_was_never_there_is_not_found() {
    let portal = Portal::start();
    for (path, error) in [
        ("copilot/session/session-1/live", "SessionNotFound"),
        ("copilot/session/session-1/live/token", "SessionNotFound"),
        ("copilot/session/session-1/stop", "SessionNotFound"),
        ("copilot/session/session-1/query", "SessionNotFound"),
        ("copilot/task/start/ok/session/session-1", "SessionNotFound"),
        ("copilot/task/task-1/stop", "TaskNotFound"),
        ("copilot/task/task-1/live", "TaskNotFound"),
        ("copilot/task/task-1/live/token", "TaskNotFound"),
        ("copilot/job/job-1/stop", "JobNotFound"),
        ("copilot/job/job-1/live", "JobNotFound"),
        ("copilot/job/job-1/live/token", "JobNotFound"),
        ("copilot/job/job-1/status", "JobNotFound"),
    ] {
        assert_eq!(portal.post(path, "hi"), json!({ "error": error }), "{path}");
    }
}

#[test]
fn the_server_answers_and_stops() {
    let portal = Portal::start();
    let session = portal.start_session();
    let waiting = portal.wait_elsewhere(&format!("copilot/session/{session}/live"));
    assert_eq!(portal.get("stop"), json!({}));
    assert_eq!(waiting.join().unwrap(), json!({ "error": "HttpRequestTimeout" }));
    portal.running.finish().expect_exit(0);
}
