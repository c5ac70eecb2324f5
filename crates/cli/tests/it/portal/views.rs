//! One session, many views: terminals and the portal on the same home, each showing and steering what another one runs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hangar_protocol::rpc::FrameDecoder;
use hangar_test_support::pty::Pty;
use hangar_test_support::{Invocation, ModelServer, Scratch};
use serde_json::{Value, json};

use super::Portal;
use crate::hangar;

const TOUCH: &str = r#"TOOL:bash:{"command":"touch made.txt","description":"makes a file"}"#;
/// Far above what any step needs on a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);
/// Time between two keys to the same end.
const PACE: Duration = Duration::from_secs(1);

fn in_terminal(invocation: Invocation) -> Pty {
    let invocation = invocation.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    invocation.in_terminal(100, 30)
}

/// A terminal whose directory is trusted.
fn terminal(scratch: &Scratch, model: &ModelServer, args: &[&str]) -> Pty {
    in_terminal(hangar(scratch, model).arg("--trust-folder").args(args))
}

fn attach(scratch: &Scratch, model: &ModelServer, id: &str) -> Pty {
    in_terminal(hangar(scratch, model).args(["attach", id]))
}

/// Types a line into an empty prompt.
fn enter(pty: &Pty, text: &str) {
    pty.type_bytes(b"\x15");
    pty.type_bytes(text.as_bytes());
    pty.type_bytes(b"\r");
}

/// Types a line until an answer to it comes: the session may still be at work.
#[track_caller]
fn enter_until(pty: &mut Pty, text: &str, answer: &str) {
    let until = Instant::now() + LIMIT;
    loop {
        enter(pty, text);
        if pty.comes(answer, PACE) {
            return;
        }
        assert!(Instant::now() < until, "{answer:?} did not come");
    }
}

/// Waits for the question of `TOUCH` and approves it.
#[track_caller]
fn approve(pty: &mut Pty, scratch: &Scratch) {
    pty.wait_for("Run this command?");
    let until = Instant::now() + LIMIT;
    while !scratch.work().join("made.txt").exists() {
        assert!(Instant::now() < until, "the file was not made");
        // A dialog takes no key that comes too soon after it, or after another key.
        pty.comes("made.txt is there", PACE);
        pty.type_bytes(b"1");
    }
}

/// Leaves a terminal, which may ask back while its session is at work.
#[track_caller]
fn leave(mut pty: Pty) {
    let until = Instant::now() + LIMIT;
    enter(&pty, "/exit");
    while !pty.comes("status 0", PACE) {
        assert!(Instant::now() < until, "the terminal was not left");
        pty.type_bytes(b"1");
    }
    pty.finish();
}

/// Waits until something holds.
#[track_caller]
fn wait<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(STEP);
    }
}

fn endpoint_file(scratch: &Scratch, id: &str) -> PathBuf {
    scratch.state().join(format!("run/sessions/{id}.json"))
}

/// The session that a terminal has announced.
#[track_caller]
fn announced(scratch: &Scratch) -> String {
    wait("an announcement", || {
        let mut files = std::fs::read_dir(scratch.state().join("run/sessions")).ok()?.flatten();
        files.find_map(|file| Some(file.file_name().to_str()?.strip_suffix(".json")?.to_owned()))
    })
}

/// Waits until the log has an answer of the model.
#[track_caller]
fn said(scratch: &Scratch, id: &str, text: &str) {
    wait(text, || {
        let log = scratch.try_log(id)?;
        let mut events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events
            .find(|event| event["type"] == "assistant.message" && event["data"]["content"] == text)
            .map(drop)
    });
}

#[test]
fn a_session_of_a_terminal_is_seen_and_steered_from_another_one() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let mut first = terminal(&scratch, &model, &["-i", "SAY:before"]);
    first.wait_for("before");
    let id = announced(&scratch);
    said(&scratch, &id, "before");
    let mut second = attach(&scratch, &model, &id[..8]);
    second.wait_for("before");
    second.wait_for("attached to a session in");
    enter(&second, "SAY:from the second");
    said(&scratch, &id, "from the second");
    first.wait_for("from the second");
    enter(&first, TOUCH);
    first.wait_for("Run this command?");
    approve(&mut second, &scratch);
    // The view is left, and the session goes on.
    enter(&second, "/exit");
    second.wait_for("goes on; see it with hangar attach");
    second.wait_for("status 0");
    second.finish();
    enter(&first, "SAY:still here");
    said(&scratch, &id, "still here");
    leave(first);
    assert!(!endpoint_file(&scratch, &id).exists());
}

#[test]
fn a_question_that_is_open_is_asked_of_a_view_that_comes_later() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let mut first = terminal(&scratch, &model, &["-i", TOUCH]);
    first.wait_for("Run this command?");
    let id = announced(&scratch);
    // A session that is open elsewhere is attached to.
    let mut second = terminal(&scratch, &model, &["--resume", &id]);
    second.wait_for("attached to a session in");
    approve(&mut second, &scratch);
    second.hang_up();
    enter(&first, "SAY:still here");
    said(&scratch, &id, "still here");
    leave(first);
}

#[test]
fn a_session_that_nobody_has_open_is_not_attached_to() {
    let portal = Portal::start();
    let id = portal.done("SAY:hello");
    portal.poke(&format!("/api/v1/sessions/{id}/stop"), 202);
    portal.hear(&id, 0).until_state("closed");
    // Files that a killed terminal left behind are ignored.
    let file = endpoint_file(&portal.scratch, &id);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, json!({ "pid": 1, "address": "127.0.0.1:9", "token": "t" }).to_string()).unwrap();
    let tried = hangar(&portal.scratch, &portal.model).args(["attach", &id]).finish();
    assert_eq!(tried.exit, 1);
    let expected = format!(
        "error: session {id} is not open in any terminal or portal; `hangar --resume={id}` opens it\n"
    );
    assert_eq!(tried.stderr, expected);
    assert!(!file.exists());
}

#[test]
fn a_session_of_the_portal_is_seen_and_steered_from_a_terminal() {
    // The portal requires a token, which the terminal does not know; it finds another one.
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let token = scratch.file("token", "a-token-of-mine");
    let portal = Portal::on(scratch, model, &["--token-file", token.to_str().unwrap()]);
    let ask =
        |method: &str, path: &str| portal.ask(method, path).header("authorization", "Bearer a-token-of-mine");
    let body = json!({ "workspace": portal.scratch.work(), "policy": "ask", "prompt": "SAY:of the portal" });
    let opened = super::expect(ask("POST", "/api/v1/sessions").json(&body).send(), 201);
    let id = opened["id"].as_str().unwrap();
    let state = || super::expect(ask("GET", &format!("/api/v1/sessions/{id}")).send(), 200);
    said(&portal.scratch, id, "of the portal");
    let mut view = attach(&portal.scratch, &portal.model, id);
    view.wait_for("of the portal");
    view.wait_for("attached to a session in");
    enter(&view, "SAY:from the terminal");
    said(&portal.scratch, id, "from the terminal");
    enter(&view, TOUCH);
    approve(&mut view, &portal.scratch);
    wait("rest", || (state()["state"] == "idle").then_some(()));
    enter(&view, "/context");
    view.wait_for("does not offer");
    enter(&view, "/detach");
    view.wait_for("goes on; see it with hangar attach");
    view.wait_for("status 0");
    view.finish();
    assert_eq!(state()["open"], "portal");
}

#[test]
fn a_session_of_a_terminal_is_live_in_the_portal_and_steered_from_there() {
    let portal = Portal::start();
    let mut feed = portal.ask("GET", "/api/v1/stream").stream();
    let mut view = terminal(&portal.scratch, &portal.model, &["-i", "SAY:of the terminal"]);
    view.wait_for("of the terminal");
    let id = announced(&portal.scratch);
    // Subscribers of the list are notified.
    feed.until(|message| message.data["id"] == id.as_str() && message.data["open"] == "terminal");
    let mut stream = portal.hear(&id, 0);
    let mut heard = stream.until_state("idle");
    portal.send(&id, "SAY:from the portal");
    // Pieces of an answer are in no log: they come from the terminal.
    heard.extend(stream.until_kind("assistant.message_delta"));
    heard.extend(stream.until(|message| message.data["data"]["content"] == "from the portal"));
    heard.extend(stream.until_state("idle"));
    view.wait_for("from the portal");
    enter(&view, TOUCH);
    heard.extend(stream.until_state("waiting"));
    let approvals = portal.get("/api/v1/approvals");
    let asked = approvals["approvals"][0]["id"].as_str().unwrap();
    portal.post(&format!("/api/v1/approvals/{asked}"), &json!({ "decision": "approve" }), 200);
    heard.extend(stream.until_state("idle"));
    assert!(portal.scratch.work().join("made.txt").exists());
    let refused = portal.ask("POST", &format!("/api/v1/sessions/{id}/stop")).send();
    super::refused(&refused, 409, "session_open_elsewhere", "close it there");
    let refused = portal.ask("DELETE", &format!("/api/v1/sessions/{id}")).send();
    super::refused(&refused, 409, "session_open_elsewhere", "close it there");
    leave(view);
    heard.extend(stream.until_state("closed"));
    let numbers: Vec<u64> = heard.iter().filter_map(|message| message.id).collect();
    let lines = portal.scratch.log(&id).lines().count() as u64;
    assert_eq!(numbers, (1..=lines).collect::<Vec<_>>(), "all lines come once and in order");
}

#[test]
fn an_idle_session_is_handed_over_to_the_portal() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let mut view = terminal(&scratch, &model, &["-i", "SAY:first"]);
    view.wait_for("first");
    let id = announced(&scratch);
    said(&scratch, &id, "first");
    enter_until(&mut view, "/detach", "no portal is up");
    let portal = Portal::on(scratch, model, &[]);
    enter(&view, TOUCH);
    approve(&mut view, &portal.scratch);
    enter(&view, "SAY:second");
    said(&portal.scratch, &id, "second");
    enter_until(&mut view, "/detach", "goes on; see it with hangar attach");
    view.wait_for("status 0");
    view.finish();
    let session = portal.session(&id);
    assert_eq!((&session["state"], &session["open"]), (&json!("idle"), &json!("portal")));
    let mut view = attach(&portal.scratch, &portal.model, &id);
    view.wait_for("attached to a session in");
    enter(&view, "SAY:third");
    said(&portal.scratch, &id, "third");
    view.hang_up();
}

#[test]
fn a_session_of_another_agent_in_a_terminal_is_live_in_the_portal() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let acp = json!([crate::HANGAR, "--acp", "--model", "scripted"]);
    let home = json!(scratch.root().join("home-of-the-agent"));
    let config = format!("[runtimes.mine]\nacp = {acp}\nenv = {{ HANGAR_HOME = {home} }}\n");
    std::fs::create_dir_all(scratch.state()).unwrap();
    std::fs::write(scratch.state().join("config.toml"), config).unwrap();
    let portal = Portal::on(scratch, model, &[]);
    let mut feed = portal.ask("GET", "/api/v1/stream").stream();
    let run = hangar(&portal.scratch, &portal.model).args(["run", "--runtime", "mine"]);
    let mut view = in_terminal(run);
    view.wait_for("Do you trust this directory?");
    view.wait_for("a number or enter answers");
    view.type_bytes(b"1");
    view.wait_for("mine (Agent Client Protocol)");
    enter(&view, "SAY:of the agent");
    let id = announced(&portal.scratch);
    said(&portal.scratch, &id, "of the agent");
    feed.until(|message| message.data["id"] == id.as_str() && message.data["open"] == "terminal");
    let mut stream = portal.hear(&id, 0);
    stream.until_state("idle");
    portal.send(&id, "SAY:from the portal");
    said(&portal.scratch, &id, "from the portal");
    stream.until_state("working");
    stream.until_state("idle");
    view.wait_for("from the portal");
    leave(view);
    stream.until_state("closed");
}

#[test]
fn other_views_go_with_a_session_that_is_detached() {
    let portal = Portal::start();
    let mut feed = portal.ask("GET", "/api/v1/stream").stream();
    let mut first = terminal(&portal.scratch, &portal.model, &["-i", "SAY:begun here"]);
    first.wait_for("begun here");
    let id = announced(&portal.scratch);
    said(&portal.scratch, &id, "begun here");
    feed.until(|message| message.data["id"] == id.as_str() && message.data["open"] == "terminal");
    let mut second = attach(&portal.scratch, &portal.model, &id);
    second.wait_for("begun here");
    second.wait_for("attached to a session in");
    enter_until(&mut first, "/detach", "goes on; see it with hangar attach");
    first.wait_for("status 0");
    first.finish();
    second.wait_for("the session moved to a portal");
    enter(&second, "SAY:still in the second");
    said(&portal.scratch, &id, "still in the second");
    assert_eq!(portal.session(&id)["open"], "portal");
    // Whoever comes now sees all of it.
    let mut third = attach(&portal.scratch, &portal.model, &id);
    third.wait_for("begun here");
    third.wait_for("still in the second");
    third.hang_up();
    enter(&second, "/detach");
    second.wait_for("goes on; see it with hangar attach");
    second.wait_for("status 0");
    second.finish();
}

#[test]
fn a_view_of_a_session_that_is_closed_says_so() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let mut first = terminal(&scratch, &model, &["-i", "SAY:begun here"]);
    first.wait_for("begun here");
    let id = announced(&scratch);
    said(&scratch, &id, "begun here");
    let mut second = attach(&scratch, &model, &id);
    second.wait_for("attached to a session in");
    leave(first);
    second.wait_for("the session was closed in another terminal");
    leave(second);
}

/// A client of the server beside a terminal.
struct Client {
    stream: TcpStream,
    decoder: FrameDecoder,
    calls: u64,
    lifecycle: Vec<String>,
}

impl Client {
    fn connect(port: u16, token: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut client = Self { stream, decoder: FrameDecoder::default(), calls: 0, lifecycle: Vec::new() };
        assert!(client.call("connect", json!({ "token": token }))["ok"].as_bool().unwrap_or(true));
        client
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let call =
            json!({ "jsonrpc": "2.0", "id": self.calls, "method": method, "params": params }).to_string();
        write!(self.stream, "Content-Length: {}\r\n\r\n{call}", call.len()).unwrap();
        loop {
            let message = self.next();
            if message["id"] == self.calls && message["method"].is_null() {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].clone();
            }
        }
    }

    fn next(&mut self) -> Value {
        loop {
            if let Some(body) = self.decoder.next_frame().unwrap() {
                let message: Value = serde_json::from_slice(&body).unwrap();
                let kind = message["params"]["type"].as_str().unwrap_or_default();
                if ["session.foreground", "session.background"].contains(&kind) {
                    self.lifecycle
                        .push(format!("{kind} {}", message["params"]["sessionId"].as_str().unwrap()));
                }
                return message;
            }
            let mut buffer = [0; 4096];
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the server closed the connection");
            self.decoder.feed(&buffer[..count]);
        }
    }
}

#[test]
fn the_foreground_session_is_the_one_that_the_terminal_shows() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let args = ["--ui-server", "--port", "0", "--trust-folder", "-i", "SAY:shown first"];
    let invocation = hangar(&scratch, &model).env("COPILOT_CONNECTION_TOKEN", "of-the-client").args(args);
    let mut view = in_terminal(invocation);
    view.wait_for("CLI server listening on port ");
    let port = view.wait_for("\n");
    let port: u16 = port.trim().parse().unwrap();
    view.wait_for("shown first");
    let first = announced(&scratch);
    said(&scratch, &first, "shown first");
    let mut client = Client::connect(port, "of-the-client");
    let shown = client.call("session.getForeground", json!({}));
    assert_eq!(shown["sessionId"], first.as_str());
    let second = "6f1c2d3e-0000-4000-8000-000000000001";
    let work = scratch.work();
    client.call("session.create", json!({ "sessionId": second, "workingDirectory": work }));
    client.call("session.send", json!({ "sessionId": second, "prompt": "SAY:of the client" }));
    said(&scratch, second, "of the client");
    let unknown = client.call("session.setForeground", json!({ "sessionId": "nope" }));
    assert_eq!(unknown, json!({ "success": false, "error": "Session not found: nope" }));
    let set = client.call("session.setForeground", json!({ "sessionId": second }));
    assert_eq!(set, json!({ "success": true }));
    view.wait_for("of the client");
    assert_eq!(client.call("session.getForeground", json!({}))["sessionId"], second);
    let expected = [format!("session.background {first}"), format!("session.foreground {second}")];
    assert_eq!(client.lifecycle, expected);
    enter(&view, "SAY:typed here");
    said(&scratch, second, "typed here");
    leave(view);
}

#[test]
fn a_session_of_a_terminal_is_listed_as_open_before_anybody_follows_it() {
    let portal = Portal::start();
    let mut view = terminal(&portal.scratch, &portal.model, &["-i", "SAY:of the terminal"]);
    view.wait_for("of the terminal");
    let id = announced(&portal.scratch);
    said(&portal.scratch, &id, "of the terminal");
    let listed = portal.get("/api/v1/sessions");
    let session = listed["sessions"].as_array().unwrap().iter().find(|session| session["id"] == id.as_str());
    assert_eq!(session.unwrap()["open"], "terminal", "{listed}");
    leave(view);
}
