//! Metrics, health and costs over HTTP.

use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use super::{Portal, refused};

fn text(portal: &Portal, path: &str) -> String {
    let answer = portal.ask("GET", path).send();
    assert_eq!(answer.status, 200, "{path}");
    String::from_utf8(answer.body).unwrap()
}

#[test]
fn metrics_have_the_queue_and_the_calls_of_models() {
    let portal = Portal::start();
    portal.done("SAY:hello");
    let cost = |costs: &Value| costs["total"]["calls"] == 1;
    while !cost(&portal.get("/api/v1/costs?by=model")) {}
    let metrics = text(&portal, "/metrics");
    for line in [
        "# TYPE hangar_queue_waiting gauge",
        "hangar_queue_waiting 0",
        "hangar_queue_mode{mode=\"open\"} 1",
        "hangar_model_calls_total{agent=\"native\",model=\"mock-model\"} 1",
        "hangar_model_unpriced_calls_total{agent=\"native\",model=\"mock-model\"} 1",
        "hangar_sessions_open{state=\"idle\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
}

#[test]
fn health_needs_no_token_and_metrics_do() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let file = scratch.file("token", "a-long-enough-token");
    let portal = Portal::on(scratch, model, &["--token-file", file.to_str().unwrap()]);
    assert_eq!(text(&portal, "/livez"), "ok\n");
    assert_eq!(text(&portal, "/readyz"), "ok\n");
    refused(&portal.ask("GET", "/metrics").send(), 401, "token_required", "Authorization: Bearer");
    let bearer = portal.ask("GET", "/metrics").header("authorization", "Bearer a-long-enough-token").send();
    assert_eq!(bearer.status, 200);
    let foreign = portal.ask("GET", "/metrics").header("origin", "http://elsewhere.test").send();
    refused(&foreign, 403, "cross_origin", "other pages");
}

#[test]
fn costs_are_summed_up_and_budgets_raised() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    std::fs::create_dir_all(scratch.state()).unwrap();
    std::fs::write(scratch.state().join("config.toml"), "[budgets]\nper_day = 3\n").unwrap();
    let portal = Portal::on(scratch, model, &[]);
    portal.done("SAY:hello");
    while portal.get("/api/v1/costs")["rows"].as_array().unwrap().is_empty() {}
    let raised = portal.post("/api/v1/budgets/raise", &json!({ "kind": "day", "usd": 2 }), 200);
    assert_eq!(raised["budgets"][0]["limitUsd"], 5.0, "{raised}");
    let ask = |body: Value| portal.ask("POST", "/api/v1/budgets/raise").json(&body).send();
    refused(&ask(json!({ "kind": "run", "name": "r", "usd": 1 })), 404, "budget_not_found", "[budgets]");
    refused(&ask(json!({ "kind": "day", "usd": 0 })), 400, "invalid_request", "above 0");
    refused(&portal.ask("GET", "/api/v1/costs?since=x").send(), 400, "invalid_request", "`x` is not a day");
}

#[test]
fn changes_are_shown_by_turn_and_taken_back() {
    let portal = Portal::start();
    let write = |text: &str| {
        format!(
            r#"TOOL:create:{}"#,
            json!({ "path": portal.scratch.work().join("a.txt"), "file_text": text })
        )
    };
    let id = portal.done(&write("one\ntwo\n"));
    let path = format!("/api/v1/sessions/{id}/changes");
    let changes = portal.get(&path);
    let file = changes["files"][0]["path"].as_str().unwrap().to_owned();
    assert!(changes["files"][0]["diff"].as_str().unwrap().contains("+two"), "{changes}");
    assert_eq!(changes["turns"][0]["turn"], 1);
    let found = portal.get("/api/v1/search?query=A.TXT");
    assert_eq!(found["hits"][0]["session"], id.as_str(), "{found}");
    let refuse = |body: Value| portal.ask("POST", &format!("{path}/revert")).json(&body).send();
    refused(&refuse(json!({ "path": "/etc/passwd" })), 422, "unprocessable", "did not change");
    refused(&refuse(json!({ "path": file, "hunk": 7 })), 422, "unprocessable", "no hunk 7");
    let left = portal.post(&format!("{path}/revert"), &json!({ "path": file, "hunk": 0 }), 200);
    assert_eq!(left["files"], json!([]), "{left}");
}
