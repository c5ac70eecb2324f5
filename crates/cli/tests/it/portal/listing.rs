//! Finding sessions and reading their past, also those of other processes.

use serde_json::{Value, json};

use super::{Portal, refused};
use crate::hangar;

fn ids(found: &Value) -> Vec<String> {
    found["sessions"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lists_come_in_pages_newest_first() {
    let portal = Portal::start();
    let mut opened: Vec<String> =
        ["SAY:a", "SAY:b", "SAY:c"].iter().map(|prompt| portal.done(prompt)).collect();
    opened.reverse();
    let first = portal.get("/api/v1/sessions?limit=2");
    assert_eq!(ids(&first), opened[..2]);
    let next = first["next"].as_str().unwrap();
    let second = portal.get(&format!("/api/v1/sessions?limit=2&cursor={next}"));
    assert_eq!(ids(&second), opened[2..]);
    assert_eq!(second["next"], Value::Null);
    assert_eq!(ids(&portal.get("/api/v1/sessions?query=say:B")), [opened[1].clone()]);
    assert_eq!(ids(&portal.get("/api/v1/sessions?state=idle")).len(), 3);
    assert_eq!(ids(&portal.get("/api/v1/sessions?state=closed")).len(), 0);
    assert_eq!(ids(&portal.get("/api/v1/sessions?runtime=codex")).len(), 0);
    let wrong = portal.ask("GET", "/api/v1/sessions?cursor=x").send();
    refused(&wrong, 400, "invalid_request", "cursor");
    for list in ["sessions", "runs"] {
        let nothing = portal.ask("GET", &format!("/api/v1/{list}?limit=0")).send();
        refused(&nothing, 400, "invalid_request", "limit");
    }
}

#[test]
fn a_page_of_events_is_read_from_any_side() {
    let portal = Portal::start();
    let id = portal.done("SAY:hi");
    let page = |query: &str| portal.get(&format!("/api/v1/sessions/{id}/events?{query}"));
    let seqs = |page: &Value| -> Vec<u64> {
        page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect()
    };
    let all = page("");
    let last = all["last"].as_u64().unwrap();
    assert_eq!(seqs(&all), (1..=last).collect::<Vec<_>>());
    assert_eq!(seqs(&page("limit=2")), [last - 1, last]);
    assert_eq!(seqs(&page("after=1&limit=2")), [2, 3]);
    assert_eq!(seqs(&page("before=4&limit=2")), [2, 3]);
    assert_eq!(seqs(&page("before=1")), [0_u64; 0]);
    assert_eq!(seqs(&page("after=1&before=4")), [2, 3]);
    assert_eq!(seqs(&page("after=1&before=4&limit=1")), [2]);
    assert_eq!(seqs(&page("after=3&before=2")), [0_u64; 0]);
    assert_eq!(seqs(&page("after=0&before=0")), [0_u64; 0]);
    assert_eq!(seqs(&page(&format!("after={last}"))), [0_u64; 0]);
    assert_eq!(seqs(&page(&format!("after={}", u64::MAX))), [0_u64; 0]);
    let log = portal.scratch.log(&id);
    let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(all["events"][0]["event"], first);
}

#[test]
fn a_session_of_another_process_is_followed_while_that_writes() {
    let portal = Portal::start();
    let script =
        "TOOL:bash:{\"command\":\"until [ -e go ]; do sleep 0.05; done\",\"description\":\"waits\"}\nSAY:end";
    let mut other = hangar(&portal.scratch, &portal.model)
        .args(["--output-format", "json", "--allow-all", "--all-events", "-p", script])
        .start();
    let id = other.wait_for_event("session.start")["data"]["sessionId"].as_str().unwrap().to_owned();
    other.wait_for_event("tool.execution_start");
    assert_eq!(portal.session(&id)["state"], "closed");
    let mut stream = portal.hear(&id, 0);
    stream.until_kind("tool.execution_start");
    let message =
        portal.ask("POST", &format!("/api/v1/sessions/{id}/messages")).json(&json!({ "text": "hi" }));
    refused(&message.send(), 409, "session_busy_elsewhere", "another process");
    let delete = portal.ask("DELETE", &format!("/api/v1/sessions/{id}"));
    refused(&delete.send(), 409, "session_busy_elsewhere", "another process");
    portal.scratch.file("go", "");
    let heard = stream.until_kind("session.shutdown");
    other.finish().expect_exit(0);
    let numbers: Vec<u64> = heard.iter().filter_map(|message| message.id).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    portal.send(&id, "SAY:mine now");
    stream.until(|message| message.data["data"]["content"] == "mine now");
}

#[test]
fn agents_and_models_are_told() {
    let portal = Portal::start();
    let meta = portal.get("/api/v1/meta");
    assert_eq!((meta["tokenRequired"].as_bool(), meta["authenticated"].as_bool()), (Some(false), Some(true)));
    assert_eq!(meta["home"].as_str().unwrap(), portal.scratch.state().to_str().unwrap());
    let runtimes = portal.get("/api/v1/runtimes");
    let runtimes = runtimes["runtimes"].as_array().unwrap();
    assert_eq!(runtimes[0]["name"], "native");
    assert_eq!(runtimes.iter().filter(|runtime| runtime["default"] == true).count(), 1);
    let models = portal.get("/api/v1/models");
    assert!(models["models"].as_array().unwrap().iter().any(|model| model["id"] == "mock-model"));
    assert_eq!(portal.get("/api/v1/runtimes/native/models"), models);
}

#[test]
fn every_route_of_the_description_is_there() {
    let portal = Portal::start();
    let document = portal.get("/api/v1/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 24, "{}", paths.len());
    for (path, methods) in paths {
        for method in methods.as_object().unwrap().keys() {
            if path.ends_with("/stream") {
                continue;
            }
            let path = path.replace("{id}", "nope").replace("{name}", "nope");
            let answer = portal.ask(&method.to_uppercase(), &path).send();
            let text = String::from_utf8_lossy(&answer.body);
            assert!(!text.contains("route_not_found") && answer.status != 405, "{method} {path}: {text}");
            assert!(answer.status < 500, "{method} {path}: {text}");
        }
    }
    let text = document.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(document["components"]["schemas"].get(name).is_some(), "{name} is described nowhere");
    }
}
