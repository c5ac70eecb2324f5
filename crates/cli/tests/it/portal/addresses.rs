//! Addresses beside the API: pages, what is no page, and where pages were before.

use serde_json::json;

use super::client::Answer;
use super::{Portal, refused};
use hangar_test_support::{ModelServer, Scratch};

const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

fn get(portal: &Portal, path: &str, accept: &str) -> Answer {
    portal.ask("GET", path).header("accept", accept).send()
}

#[test]
fn what_is_no_page_is_not_found() {
    let portal = Portal::start();
    for path in ["/", "/sessions", "/sessions/a", "/runs/b", "/new", "/settings"] {
        assert_eq!(get(&portal, path, "*/*").status, 200, "{path}");
    }
    for path in ["/metricz", "/live", "/sessions/a/b", "/jobs/x", "/assets/gone.js"] {
        refused(&get(&portal, path, "*/*"), 404, "route_not_found", path);
        // People are shown a page that says so.
        let page = get(&portal, path, BROWSER);
        assert_eq!(page.status, 404, "{path}");
        assert!(page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")), "{path}");
    }
}

#[track_caller]
fn leads(portal: &Portal, from: &str, to: &str) {
    let answer = get(portal, from, BROWSER);
    assert_eq!((answer.status, answer.header("location")), (307, Some(to)), "{from}");
}

#[test]
fn old_addresses_lead_to_the_pages_of_today() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let task = json!({ "model": { "category": "driving" }, "prompt": ["SAY:hi"], "requireUserInput": false });
    let entry = json!({
        "models": { "driving": "mock-model" }, "tasks": { "ok": task },
        "jobs": { "demo": { "work": { "kind": "Ref", "taskId": "ok" } } },
    });
    let file = scratch.file("jobs.json", &entry.to_string());
    let portal = Portal::on(scratch, model, &["--entry", file.to_str().unwrap()]);
    leads(&portal, "/jobs.html", "/jobs");
    leads(&portal, "/jobs.html?wb=%2Fa%20b", "/jobs?workspace=%2Fa%20b");
    leads(&portal, "/?wb=%2Fa%20b", "/new?workspace=%2Fa%20b");
    leads(&portal, "/jobTracking.html?jobName=demo", "/jobs?job=demo");
    leads(&portal, "/jobTracking.html?jobName=demo&jobId=job-9", "/runs");
    let root = portal.get("/api/config")["repoRoot"].as_str().unwrap().to_owned();
    let beside = std::path::Path::new(&root).with_file_name("other");
    let encoded: String = beside
        .to_str()
        .unwrap()
        .bytes()
        .map(|byte| match byte.is_ascii_alphanumeric() {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect();
    leads(&portal, "/?project=other", &format!("/new?workspace={encoded}"));
    leads(&portal, "/index.html?project=other", &format!("/new?workspace={encoded}"));
    assert_eq!(get(&portal, "/?project=../other", BROWSER).status, 200);
    let started = portal.ask("POST", "/api/copilot/job/start/demo").text(root).send().json();
    let job = started["jobId"].as_str().unwrap_or_else(|| panic!("{started}"));
    let run = portal.get("/api/v1/runs")["runs"][0]["id"].as_str().unwrap().to_owned();
    leads(
        &portal,
        &format!("/jobTracking.html?jobName=demo&jobId={job}"),
        &format!("/runs/{}", run.replace('-', "%2D")),
    );
}

#[test]
fn an_old_address_tells_nothing_to_those_without_the_token() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let token = scratch.file("token", "a long enough token");
    let portal = Portal::on(scratch, model, &["--token-file", token.to_str().unwrap()]);
    leads(&portal, "/?project=other", "/new");
}
