//! How a portal ends, and what it leaves: nothing.

use std::time::Duration;

use hangar_test_support::Signal;
use hangar_test_support::process::Witness;
use serde_json::json;

use super::{Portal, up};

const WAITS: &str =
    r#"TOOL:bash:{"command":"echo $$ > pid.new; mv pid.new pid; exec sleep 1000","description":"waits"}"#;

/// A portal whose agent runs a command, and the process of that command.
fn at_work() -> (Portal, String, Witness) {
    let portal = Portal::start();
    let id = portal.open(WAITS, "allow-all");
    portal.hear(&id, 0).until_kind("tool.execution_start");
    let pid = portal.scratch.work().join("pid");
    let number = loop {
        if let Ok(text) = std::fs::read_to_string(&pid) {
            break text.trim().parse().unwrap();
        }
        std::thread::yield_now();
    };
    (portal, id, Witness::of(number))
}

#[test]
fn a_portal_that_is_told_to_stop_ends_its_agents() {
    let (portal, id, command) = at_work();
    let mut stream = portal.hear(&id, 0);
    portal.running.signal(Signal::TERM);
    // Streams end; who reads them may come back.
    while stream.next().is_some() {}
    let Portal { running, scratch, .. } = portal;
    running.finish().expect_exit(0);
    assert!(command.is_gone_within(Duration::from_secs(30)));
    assert!(scratch.log(&id).lines().last().unwrap().contains("session.shutdown"));
}

#[test]
fn a_portal_that_is_killed_leaves_no_child() {
    let (portal, id, command) = at_work();
    portal.running.signal(Signal::KILL);
    assert!(command.is_gone_within(Duration::from_secs(30)));
    let portal = portal.again();
    assert_eq!(portal.session(&id)["state"], "closed");
}

#[test]
fn two_portals_do_not_share_a_port() {
    let portal = Portal::start();
    let port = portal.port.to_string();
    let second = up(&portal.scratch, &portal.model, &[]);
    let finished = second.args(["--port", &port]).finish();
    assert_eq!(finished.exit, 1);
    assert!(!finished.stderr.is_empty());
}

#[test]
fn a_session_that_rests_is_taken_over_and_back() {
    let portal = Portal::start();
    let id = portal.done("SAY:mine");
    let mut other = up(&portal.scratch, &portal.model, &[]).start();
    let port = super::port(&mut other);
    let message = super::Ask::new(port, "POST", &format!("/api/v1/sessions/{id}/messages"));
    super::expect(message.json(&json!({ "text": "SAY:theirs" })).send(), 202);
    let theirs = super::Ask::new(port, "GET", &format!("/api/v1/sessions/{id}/stream"));
    theirs.stream().until_state("idle");
    portal.send(&id, "SAY:mine again");
    let heard = portal.hear(&id, 0).until(|message| message.data["data"]["content"] == "mine again");
    let numbers: Vec<u64> = heard.iter().filter_map(|message| message.id).collect();
    assert_eq!(numbers, (1..=*numbers.last().unwrap()).collect::<Vec<_>>());
    assert!(heard.iter().any(|message| message.data["data"]["content"] == "theirs"));
}
