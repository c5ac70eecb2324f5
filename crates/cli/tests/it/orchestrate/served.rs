//! The state of the orchestrator over HTTP, signed webhooks, and the tools of agents.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use hangar_test_support::Signal;
use serde_json::{Value, json};

use super::{Place, issue, lines, of_type};

const RUN: &[&str] = &["orchestrate", "--until-idle", "--output-format", "json"];

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Status and body of a request.
fn http(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[test]
fn state_metrics_and_single_issues_are_served_with_the_names_of_sortie() {
    let port = free_port();
    let place = Place::new(
        &format!("agent: {{ kind: mock }}\nmock: {{ turn_delay_ms: 600000 }}\nserver: {{ port: {port} }}\n"),
        "x",
        &[issue("A")],
    );
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    running.wait_for_event("turnStarted");
    let get = |path: &str| http(port, "GET", path, &[], "");
    let (status, state) = get("/api/v1/state");
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!((status, &state["counts"]["running"]), (200, &json!(1)), "{state}");
    assert_eq!(state["running"][0]["issue_identifier"], "A");
    assert_eq!(state["running"][0]["turn_count"], 1);
    let (status, found) = get("/api/v1/A");
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!((status, &found["status"]), (200, &json!("running")));
    let (status, missing) = get("/api/v1/B");
    assert!(status == 404 && missing.contains("issue_not_found"), "{missing}");
    let (status, wrong) = http(port, "POST", "/api/v1/state", &[], "");
    assert!(status == 405 && wrong.contains("method_not_allowed"), "{wrong}");
    assert_eq!(get("/livez").0, 200);
    assert_eq!(get("/readyz").0, 200);
    let (_, metrics) = get("/metrics");
    assert!(metrics.contains("\nsortie_sessions_running 1\n"), "{metrics}");
    assert!(metrics.contains("\nsortie_dispatches_total{outcome=\"success\"} 1\n"), "{metrics}");
    let (status, queued) = http(port, "POST", "/api/v1/refresh", &[], "");
    assert!(status == 202 && queued.contains("\"queued\":true"), "{queued}");
    let refused = http(port, "POST", "/webhooks/github", &[("x-hub-signature-256", "sha256=00")], "{}");
    assert_eq!(refused.0, 404, "without a secret there are no webhooks");
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
}

#[test]
fn a_signed_webhook_makes_the_tracker_be_read_at_once() {
    let port = free_port();
    let place = Place::new(
        &format!(
            "agent: {{ kind: mock, max_turns: 1 }}\nserver: {{ port: {port}, webhook_secret: $HOOK_SECRET }}\n"
        ),
        "x",
        &[],
    );
    let path = place.scratch.work().join("WORKFLOW.md");
    let text =
        std::fs::read_to_string(&path).unwrap().replace("interval_ms: 100 }", "interval_ms: 3600000 }");
    std::fs::write(&path, text.replace("  kind: file\n", "  kind: file\n  handoff_state: Review\n")).unwrap();
    let mut running =
        place.command(&["orchestrate", "--output-format", "json"]).env("HOOK_SECRET", "secret").start();
    running.wait_for_event("resumed");
    // The server answers when the first read is over or under way; the issue appears afterwards.
    while !http(port, "GET", "/metrics", &[], "").1.contains("sortie_poll_cycles_total{result=\"success\"} 1")
    {
    }
    place.scratch.file("issues.json", &json!([issue("A")]).to_string());
    let deliver = |signature: &str, delivery: &str| {
        let headers = [("x-hub-signature-256", signature), ("x-github-delivery", delivery)];
        http(port, "POST", "/webhooks/github", &headers, "{}").0
    };
    let signed = hmac("secret", "{}");
    assert_eq!(deliver("sha256=00", "1"), 401);
    assert_eq!(deliver(&hmac("other", "{}"), "1"), 401);
    assert_eq!(deliver(&signed, "1"), 202);
    assert_eq!(running.wait_for_event("released")["release"]["state"], "Review");
    assert_eq!(deliver(&signed, "1"), 200, "a delivery counts once");
    let bare = signed.trim_start_matches("sha256=");
    for (forge, headers, status) in [
        ("gitlab", [("x-gitlab-token", "other"), ("idempotency-key", "1")], 401),
        ("gitlab", [("x-gitlab-token", ""), ("idempotency-key", "1")], 401),
        ("gitlab", [("x-gitlab-token", "secret"), ("idempotency-key", "1")], 202),
        ("gitlab", [("x-gitlab-token", "secret"), ("x-gitlab-event-uuid", "1")], 200),
        ("gitea", [("x-gitea-signature", "00"), ("x-gitea-delivery", "1")], 401),
        ("gitea", [("x-gitea-signature", ""), ("x-gitea-delivery", "1")], 401),
        ("gitea", [("x-gitea-signature", bare), ("x-gitea-delivery", "1")], 202),
        ("forgejo", [("x-gitea-signature", bare), ("x-gitea-delivery", "2")], 202),
        ("nowhere", [("x-gitea-signature", bare), ("x-gitea-delivery", "2")], 404),
    ] {
        let path = format!("/webhooks/{forge}");
        assert_eq!(http(port, "POST", &path, &headers, "{}").0, status, "{forge} {headers:?}");
    }
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
}

/// Signature of a body, by a program that is not ours.
fn hmac(key: &str, body: &str) -> String {
    let script = format!("printf %s '{body}' | openssl dgst -sha256 -hmac '{key}' | sed 's/.* //'");
    let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
    format!("sha256={}", String::from_utf8_lossy(&output.stdout).trim())
}

#[test]
fn an_agent_reads_comments_moves_and_follows_up_its_issue() {
    let script = r#"TOOL:issue-read:{}
TOOL:issue-comment:{"body":"I am on it."}
TOOL:issue-comment:{"body":"I am on it."}
TOOL:issue-create_follow_up:{"title":"The other thing"}
TOOL:issue-set_status:{"state":"nowhere"}
TOOL:issue-set_status:{"state":"done"}
SAY:done"#;
    let place = Place::new(
        "agent: { kind: native, max_turns: 3 }\nnative: { model: mock-model }\n",
        script,
        &[issue("A")],
    );
    let found = place.command(RUN).finish().expect_exit(0);
    let found = lines(&found.stdout);
    assert_eq!(of_type(&found, "released")[0]["release"]["why"], "inactive");
    assert_eq!(of_type(&found, "turnStarted").len(), 1);
    let done = place.issue("A");
    assert_eq!(done["state"], "Done");
    assert_eq!(done["comments"].as_array().unwrap().len(), 1, "the same comment is written once: {done}");
    let other = place.issue("follow-up-1");
    assert_eq!((&other["title"], &other["state"]), (&json!("The other thing"), &json!("Triage")));
    let answers = place.model.last_request().to_string();
    assert!(answers.contains("the states are: To Do, In Progress, Done"), "{answers}");
    assert!(answers.contains("Mend it"), "the issue was read");
}

#[test]
fn a_question_parks_the_issue_until_somebody_answers() {
    let script = r#"{{ if .run.is_continuation }}TOOL:bash:{"command":"echo review > .sortie/status"}{{ else }}TOOL:issue-ask_person:{"question":"Red or blue?"}
SAY:asked{{ end }}"#;
    let place = Place::new(
        "  handoff_state: Review\nagent: { kind: native, max_turns: 3 }\nnative: { model: mock-model }\n",
        script,
        &[issue("A")],
    );
    let found = place.command(RUN).finish().expect_exit(0);
    let found = lines(&found.stdout);
    assert_eq!(of_type(&found, "parked")[0]["reason"]["question"], "Red or blue?");
    let asked = place.issue("A");
    assert_eq!(asked["labels"], json!(["needs-human"]));
    let mut comments = asked["comments"].as_array().unwrap().clone();
    assert!(comments[0]["body"].as_str().unwrap().contains("Red or blue?"));
    let again = place.command(RUN).finish().expect_exit(0);
    assert!(of_type(&lines(&again.stdout), "turnStarted").is_empty(), "nobody has answered");
    comments.push(
        json!({ "id": "9", "author": "ada", "body": "Blue, please.", "created_at": "2999-01-01T00:00:00Z" }),
    );
    place.edit("A", "comments", &Value::Array(comments));
    place.command(RUN).finish().expect_exit(0);
    let done = place.issue("A");
    assert_eq!((&done["state"], &done["labels"]), (&json!("Review"), &json!([])));
    let prompts =
        place.model.requests().iter().any(|request| request.body.to_string().contains("ada: Blue, please."));
    assert!(prompts, "the answer is in the prompt");
}

#[test]
fn rules_choose_the_agent_and_its_turns() {
    let mut docs = issue("B");
    docs["labels"] = json!(["Docs-API"]);
    let rules = "dispatch:\n  rules:\n    - { labels: ['docs*'], agent: mock, max_turns: 2 }\n";
    let place = Place::new(
        &format!(
            "  handoff_state: Review\nagent: {{ kind: native, max_turns: 1 }}\nnative: {{ model: mock-model }}\n{rules}"
        ),
        "SAY:hi",
        &[issue("A"), docs],
    );
    let found = place.command(RUN).finish().expect_exit(0);
    let found = lines(&found.stdout);
    let agents: Vec<(&Value, &Value)> =
        of_type(&found, "claimed").iter().map(|line| (&line["identifier"], &line["agent"])).collect();
    assert_eq!(agents, [(&json!("A"), &json!("native")), (&json!("B"), &json!("mock"))]);
    let turns = of_type(&found, "turnStarted");
    assert_eq!(turns.iter().filter(|line| line["issue"] == "id-B").count(), 2);
    let stages = "dispatch:\n  stages:\n    - { name: build, agent: mock, max_turns: 1, next: check }\n    - { name: check, agent: native, max_turns: 1 }\n  rules:\n    - { stage: build }\n";
    let staged = Place::new(
        &format!(
            "  handoff_state: Review\nagent: {{ kind: mock }}\nnative: {{ model: mock-model }}\n{stages}"
        ),
        "SAY:the stage is {{ .run.stage }}",
        &[issue("A")],
    );
    let found = staged.command(RUN).finish().expect_exit(0);
    let found = lines(&found.stdout);
    assert_eq!(
        of_type(&found, "stageAdvanced")[0]["stage"],
        json!({ "name": "check", "agent": "native", "maxTurns": 1 })
    );
    assert_eq!(of_type(&found, "opened").len(), 2);
    assert_eq!((of_type(&found, "released").len(), &staged.issue("A")["state"]), (1, &json!("Review")));
    assert!(staged.model.last_request().to_string().contains("the stage is check"));
    place.workflow("agent: { kind: mock }\ndispatch:\n  rules:\n    - { labels: [x], agent: nobody }\n", "x");
    let wrong = place.command(&["orchestrate", "validate"]).finish().expect_exit(1);
    assert!(wrong.stdout.contains("rule 1: there is no agent `nobody`"), "{}", wrong.stdout);
}
