//! Logins at a remote MCP server: with a browser once, by the token on disk from then on, and renewed when it is refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use crate::sdk::{Client, ID, stage};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/oauth.mjs");

/// A server and its authority.
struct Authority {
    process: Child,
    said: BufReader<ChildStdout>,
    url: String,
}

impl Authority {
    fn start() -> Self {
        Self::that("gives tokens out")
    }

    fn that(how: &str) -> Self {
        let mut process = Command::new("node")
            .args([SERVER, how])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let port = line(&mut said)["port"].as_u64().unwrap();
        Self { process, said, url: format!("http://127.0.0.1:{port}/mcp") }
    }

    /// The next request to the authority.
    fn asked(&mut self) -> Value {
        line(&mut self.said)
    }

    /// All further requests to the authority.
    fn rest(&mut self) -> Vec<Value> {
        let _ = self.process.kill();
        let mut text = String::new();
        self.said.read_to_string(&mut text).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn line(said: &mut impl BufRead) -> Value {
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Goes to an address as a browser does, and where it is sent from there. Gives the last page.
fn browse(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    // Far above what anything needs on a loaded machine; reaching it is a failure, never a measurement.
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let location = page.lines().find_map(|line| line.strip_prefix("location: "));
    match location {
        Some(next) => browse(next.trim()),
        None => page,
    }
}

fn session(url: &str) -> Value {
    json!({ "mcpServers": { "far": { "type": "http", "url": url, "tools": ["*"] } } })
}

fn status(client: &mut Client, wanted: &str) {
    client.until(wanted, |message| {
        let event = &message["params"]["event"];
        event["type"] == "session.mcp_server_status_changed" && event["data"]["status"] == wanted
    });
}

/// A client whose session has logged in, as a person does.
fn logged_in(scratch: &Scratch, model: &ModelServer, authority: &mut Authority) -> Client {
    let mut client = Client::start_with(scratch, model, &["--allow-all-tools"]);
    client.create(session(&authority.url));
    client.send("SAY:hi");
    status(&mut client, "needs-auth");
    client.event("session.idle");

    let login = client.call("session.mcp.oauth.login", json!({ "sessionId": ID, "serverName": "far" }));
    assert_eq!(authority.asked()["register"].as_str().map(str::is_empty), Some(false));
    let page = browse(login["authorizationUrl"].as_str().unwrap());
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert_eq!(authority.asked()["authorize"], "S256");
    assert_eq!(authority.asked(), json!({ "token": "authorization_code", "verified": true }));
    status(&mut client, "connected");
    client
}

#[test]
fn a_person_logs_in_once_and_the_token_is_renewed_when_it_is_refused() {
    let mut authority = Authority::start();
    let (scratch, model) = stage();
    let mut client = logged_in(&scratch, &model, &mut authority);
    client.send("TOOL:far-whoami:{}\nTOOL:far-whoami:{}\nSAY:done");
    client.event("session.idle");
    let told = model.last_request()["messages"].to_string();
    assert!(told.contains("called with token-1") && told.contains("called with token-2"), "{told}");
    assert_eq!(authority.asked()["token"], "refresh_token");
    assert!(!told.contains("refresh-"), "{told}");
    client.finish();

    // The next run is logged in already.
    let mut client = Client::start_with(&scratch, &model, &["--allow-all-tools"]);
    let mut config = session(&authority.url);
    config["sessionId"] = json!(ID);
    client.call("session.resume", config);
    client.send("TOOL:far-whoami:{}\nSAY:done");
    client.event("session.idle");
    assert!(model.last_request()["messages"].to_string().matches("called with token-2").count() > 1);
    client.finish();
    let tokens = scratch.state().join("mcp-oauth");
    let file = std::fs::read_dir(tokens).unwrap().next().unwrap().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o077, 0, "others can read the token");
}

#[test]
fn sessions_that_share_a_login_renew_it_once() {
    const OTHER: &str = "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad002";
    let mut authority = Authority::start();
    let (scratch, model) = stage();
    let mut first = logged_in(&scratch, &model, &mut authority);
    let mut second = Client::start_with(&scratch, &model, &["--allow-all-tools"]);
    let mut config = session(&authority.url);
    config["sessionId"] = json!(OTHER);
    // A list that is remembered would keep the second one from asking for its token now.
    config["mcpServers"]["far"]["disableToolCache"] = json!(true);
    second.call("session.create", config);
    let send = |client: &mut Client, id: &str, prompt: &str| {
        client.call("session.send", json!({ "sessionId": id, "prompt": prompt }));
        client.event("session.idle");
        model.last_request()["messages"].to_string()
    };
    send(&mut second, OTHER, "SAY:connected with the first token");
    // The first token is good for one call.
    let told = send(&mut first, ID, "TOOL:far-whoami:{}\nTOOL:far-whoami:{}\nSAY:done");
    assert!(told.contains("called with token-2"), "{told}");
    assert_eq!(authority.asked()["token"], "refresh_token");
    let told = send(&mut second, OTHER, "TOOL:far-whoami:{}\nSAY:done");
    assert!(told.contains("called with token-2"), "{told}");
    first.finish();
    second.finish();
    assert_eq!(authority.rest(), [Value::Null; 0], "the token was renewed twice");
}

/// Whether a process waits for its turn to renew a login, or has it: the file that stands for it is open.
fn is_in_line(pid: u32) -> bool {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .any(|path| path.extension() == Some("lock".as_ref()) && path.to_string_lossy().contains("mcp-oauth"))
}

#[test]
fn two_processes_that_are_refused_at_once_renew_their_login_once() {
    const OTHER: &str = "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad002";
    let mut authority = Authority::that("race");
    let (scratch, model) = stage();
    let mut first = logged_in(&scratch, &model, &mut authority);
    let mut second = Client::start_with(&scratch, &model, &["--allow-all-tools"]);
    let mut config = session(&authority.url);
    config["sessionId"] = json!(OTHER);
    config["mcpServers"]["far"]["disableToolCache"] = json!(true);
    second.call("session.create", config);
    second
        .call("session.send", json!({ "sessionId": OTHER, "prompt": "SAY:connected with the first token" }));
    second.event("session.idle");

    for (client, id) in [(&mut first, ID), (&mut second, OTHER)] {
        client.call("session.send", json!({ "sessionId": id, "prompt": "TOOL:far-whoami:{}\nSAY:done" }));
    }
    // One of them renews it, and is not answered yet; the other is refused as well and has come for its turn.
    assert_eq!(authority.asked()["token"], "refresh_token");
    let begun = std::time::Instant::now();
    while !(is_in_line(first.pid()) && is_in_line(second.pid())) {
        assert!(begun.elapsed().as_secs() < 60, "one of them does not wait for the other");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    browse(&authority.url.replace("/mcp", "/go"));
    first.event("session.idle");
    second.event("session.idle");
    let told: String = model.requests().iter().map(|request| request.body["messages"].to_string()).collect();
    assert_eq!(told.matches("called with token-2").count(), 2, "{told}");
    first.finish();
    second.finish();
    assert_eq!(authority.rest(), [Value::Null; 0], "the token was renewed twice");
}

#[test]
fn a_browser_that_connects_and_says_nothing_does_not_hold_up_the_login() {
    let mut authority = Authority::start();
    let (scratch, model) = stage();
    let mut client = Client::start_with(&scratch, &model, &["--allow-all-tools"]);
    client.create(session(&authority.url));
    client.send("SAY:hi");
    status(&mut client, "needs-auth");
    client.event("session.idle");
    let begin = |client: &mut Client| {
        let login = client.call("session.mcp.oauth.login", json!({ "sessionId": ID, "serverName": "far" }));
        login["authorizationUrl"].as_str().unwrap().to_owned()
    };
    let callback = |url: &str| {
        let encoded = url.split("redirect_uri=").nth(1).unwrap().split('&').next().unwrap();
        let address = encoded.replace("%3A", ":").replace("%2F", "/");
        address.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned()
    };
    // A client that starts another login does not return to the first.
    let given_up = callback(&begin(&mut client));
    let url = begin(&mut client);
    let silent = TcpStream::connect(callback(&url)).unwrap();
    let page = browse(&url);
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    status(&mut client, "connected");
    assert!(TcpStream::connect(given_up).is_err(), "the first login is still waited for");
    drop(silent);
    client.finish();
    authority.rest();
}
