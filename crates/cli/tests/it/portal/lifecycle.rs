//! How a portal ends, and what it leaves: nothing.

use std::time::Duration;

use hangar_test_support::process::Witness;
use hangar_test_support::{ModelServer, Running, Scratch, Signal};
use serde_json::json;

use super::{Ask, Portal, Stream, expect, up};
use crate::hangar;

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
fn a_port_that_is_in_use_is_told_with_the_command_that_works() {
    let portal = Portal::start();
    let port = portal.port.to_string();
    let second = hangar(&portal.scratch, &portal.model).args(["up", "--port", &port]).finish().expect_exit(1);
    assert!(second.stderr.contains(&format!("127.0.0.1:{port} is in use")), "{}", second.stderr);
    assert!(second.stderr.contains("`hangar up --port 0`"), "{}", second.stderr);
}

/// Does what a `curl` command line asks for.
fn carry_out(portal: &Portal, command: &str, env: Option<(&str, &str)>) {
    let script = format!("curl() {{ printf '%s\\n' \"$@\"; }}; {command}");
    let shell = std::process::Command::new("bash").args(["-c", &script]).envs(env).output().unwrap();
    let words = String::from_utf8(shell.stdout).unwrap();
    let mut words = words.lines();
    let (mut method, mut headers, mut url) = ("GET", Vec::new(), "");
    while let Some(word) = words.next() {
        match word {
            "-X" => method = words.next().unwrap(),
            "-H" => headers.push(words.next().unwrap().split_once(": ").unwrap()),
            other => url = other,
        }
    }
    let path = url.strip_prefix(&format!("http://localhost:{}", portal.port)).unwrap();
    let ask = portal.ask(method, path);
    expect(headers.iter().fold(ask, |ask, (name, value)| ask.header(name, value)).send(), 200);
}

#[test]
fn the_command_that_a_portal_prints_stops_it() {
    let token = ("PORTAL_TOKEN", "a-token-of-this-test");
    for (flags, env) in [(&[][..], None), (&["--token-env", token.0], Some(token))] {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        let up = up(&scratch, &model, flags);
        let mut running = env.iter().fold(up, |up, (name, value)| up.env(name, value)).start();
        let port = super::port(&mut running);
        let line = running.next_line().expect("it says how it is stopped").to_owned();
        let (_, command) = line.split_once("Ctrl+C, or ").expect("a command beside the keys");
        let portal = Portal { scratch, model, running, port };
        carry_out(&portal, command, env);
        portal.running.finish().expect_exit(0);
    }
}

#[test]
fn a_browser_that_visits_the_stop_address_stops_nothing() {
    let portal = Portal::start();
    let visits = [
        &[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")][..],
        &[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "navigate")],
    ];
    for headers in visits {
        let ask = portal.ask("GET", "/api/stop").header("user-agent", "Mozilla/5.0");
        let answer = headers.iter().fold(ask, |ask, (name, value)| ask.header(name, value)).send();
        assert_eq!(answer.status, 405, "{headers:?}");
        expect(portal.ask("GET", "/api/test").send(), 200);
    }
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

/// Another portal on the same home.
struct Other {
    _running: Running,
    port: u16,
}

impl Other {
    fn of(portal: &Portal) -> Self {
        let mut running = up(&portal.scratch, &portal.model, &[]).start();
        let port = super::port(&mut running);
        Self { _running: running, port }
    }

    #[track_caller]
    fn send(&self, id: &str, text: &str) {
        let message = Ask::new(self.port, "POST", &format!("/api/v1/sessions/{id}/messages"));
        expect(message.json(&json!({ "text": text })).send(), 202);
    }

    #[track_caller]
    fn hear(&self, id: &str) -> Stream {
        Ask::new(self.port, "GET", &format!("/api/v1/sessions/{id}/stream")).stream()
    }

    #[track_caller]
    fn delete(&self, id: &str) {
        expect(Ask::new(self.port, "DELETE", &format!("/api/v1/sessions/{id}")).send(), 204);
    }
}

#[test]
fn a_session_that_rests_is_taken_over_and_back() {
    let portal = Portal::start();
    let id = portal.done("SAY:mine");
    let other = Other::of(&portal);
    other.send(&id, "SAY:theirs");
    other.hear(&id).until_state("idle");
    portal.send(&id, "SAY:mine again");
    let heard = portal.hear(&id, 0).until(|message| message.data["data"]["content"] == "mine again");
    let numbers: Vec<u64> = heard.iter().filter_map(|message| message.id).collect();
    assert_eq!(numbers, (1..=*numbers.last().unwrap()).collect::<Vec<_>>());
    assert!(heard.iter().any(|message| message.data["data"]["content"] == "theirs"));
}

#[test]
fn whoever_reads_a_session_that_rests_hears_what_others_do_with_it() {
    let portal = Portal::start();
    let id = portal.done("SAY:mine");
    let mut stream = portal.hear(&id, 0);
    let mut heard = stream.until_state("idle");
    let other = Other::of(&portal);
    for text in ["theirs", "and theirs again"] {
        other.send(&id, &format!("SAY:{text}"));
        heard.extend(stream.until(|message| message.data["data"]["content"] == text));
    }
    assert_eq!(portal.session(&id)["state"], "closed", "the agent that has not heard it is gone");
    other.hear(&id).until_state("idle");
    portal.send(&id, "SAY:mine again");
    heard.extend(stream.until(|message| message.data["data"]["content"] == "mine again"));
    let numbers: Vec<u64> = heard.iter().filter_map(|message| message.id).collect();
    assert_eq!(numbers, (1..=*numbers.last().unwrap()).collect::<Vec<_>>(), "each once and in order");
}

#[test]
fn whoever_reads_a_session_that_rests_hears_that_others_deleted_it() {
    let portal = Portal::start();
    let (open, closed) = (portal.done("SAY:open"), portal.done("SAY:closed"));
    portal.poke(&format!("/api/v1/sessions/{closed}/stop"), 202);
    portal.hear(&closed, 0).until_kind("session.shutdown");
    let mut streams = [portal.hear(&open, 0), portal.hear(&closed, 0)];
    let other = Other::of(&portal);
    for (id, stream) in [open, closed].iter().zip(&mut streams) {
        other.delete(id);
        stream.until(|message| message.event.as_deref() == Some("end"));
        assert_eq!(portal.ask("GET", &format!("/api/v1/sessions/{id}")).send().status, 404);
    }
}

#[test]
fn lists_are_told_what_comes_and_goes_whoever_does_it() {
    let portal = Portal::start();
    let (mine, theirs) = (portal.done("SAY:a"), portal.done("SAY:b"));
    let mut feed = portal.ask("GET", "/api/v1/stream").stream();
    feed.next().unwrap();
    let other = Other::of(&portal);
    other.delete(&theirs);
    expect(portal.ask("DELETE", &format!("/api/v1/sessions/{mine}")).send(), 204);
    let mut gone = Vec::new();
    while gone.len() < 2 {
        let message = feed.next().unwrap();
        if message.event.as_deref() == Some("gone") {
            assert_eq!(message.data["kind"], "session");
            gone.push(message.data["id"].as_str().unwrap().to_owned());
        }
    }
    gone.sort();
    let mut expected = [mine, theirs];
    expected.sort();
    assert_eq!(gone, expected);
    let new = crate::hangar(&portal.scratch, &portal.model).args(["-p", "SAY:hi"]).finish().expect_exit(0);
    drop(new);
    let heard =
        feed.until(|message| message.event.as_deref() == Some("session") && message.data["name"] == "SAY:hi");
    assert!(!heard.iter().any(|message| message.event.as_deref() == Some("gone")), "each is told once");
}
