//! Access to the server over TCP: for clients with the token, not for web pages, nor for clients that only hold
//! connections.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use hangar_protocol::rpc::{FrameDecoder, encode};
use hangar_test_support::{ModelServer, Running, Scratch, Signal};
use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::ID;

/// Far above what anything needs on a loaded machine; reaching it is a failure, never a measurement.
const PATIENCE: Duration = Duration::from_secs(60);
/// More connections than the server holds of those that it does not know.
const IDLE: usize = 300;
const PORT_LINE: &str = "CLI server listening on port ";
const TOKEN_LINE: &str = "Connection token: ";

/// A server on TCP.
pub(crate) struct TcpServer {
    pub(crate) running: Running,
    pub(crate) port: u16,
    pub(crate) scratch: Scratch,
    pub(crate) model: ModelServer,
}

impl TcpServer {
    /// A server that takes the token `secret`, as an SDK starts it.
    fn start() -> Self {
        Self::start_with(&[], Some("secret"))
    }

    pub(crate) fn start_with(args: &[&str], token: Option<&str>) -> Self {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        let invocation = hangar(&scratch, &model).args(["--server", "--port", "0", "--no-auto-update"]);
        let invocation = match token {
            Some(token) => invocation.env("COPILOT_CONNECTION_TOKEN", token),
            None => invocation.without_env("COPILOT_CONNECTION_TOKEN"),
        };
        let mut running = invocation.args(args).within(Duration::from_secs(300)).start();
        let port =
            running.next_line().and_then(|line| line.strip_prefix(PORT_LINE)).unwrap().parse().unwrap();
        Self { running, port, scratch, model }
    }

    fn connect(&self) -> Connection {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Connection { stream, decoder: FrameDecoder::default() }
    }

    /// A connection that has shown the token.
    fn admitted(&self, token: &str) -> Connection {
        let mut connection = self.connect();
        assert_eq!(connection.ask("connect", json!({ "token": token }))["result"]["ok"], true);
        connection
    }

    /// All that a connection is sent before the server ends it.
    fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().stream;
        // The server may have closed before all was written.
        let _ = stream.write_all(bytes);
        let mut told = Vec::new();
        match stream.read_to_end(&mut told) {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            end => assert!(end.is_ok(), "the connection stays open: {end:?}"),
        }
        told
    }

    /// Ends the server, and gives what it has printed.
    fn finish(self) -> String {
        self.running.signal(Signal::TERM);
        self.running.finish().expect_exit(0).stdout
    }
}

struct Connection {
    stream: TcpStream,
    decoder: FrameDecoder,
}

impl Connection {
    /// Makes a request and takes the next message, which is the answer unless the server has something to tell.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.stream.write_all(&request(method, params)).unwrap();
        self.receive().unwrap_or_else(|| panic!("{method} ended the connection"))
    }

    /// The next message; `None` at the end of the connection.
    fn receive(&mut self) -> Option<Value> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(body) = self.decoder.next_frame().unwrap() {
                return Some(serde_json::from_slice(&body).unwrap());
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.decoder.feed(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("the server neither answers nor closes: {error}"),
            }
        }
    }
}

fn request(method: &str, params: Value) -> Vec<u8> {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    encode(message.to_string().as_bytes())
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}"))
}

#[track_caller]
fn check_token(server: &TcpServer, token: &str) {
    assert_eq!(code(&server.connect().ask("ping", json!({}))), -32001);
    for wrong in [json!({}), json!({ "token": "wrong" }), json!({ "token": null }), json!({ "token": 7 })] {
        let answer = server.connect().ask("connect", wrong);
        assert_eq!(code(&answer), -32002);
        assert!(
            answer["error"]["message"].as_str().unwrap().starts_with("AUTHENTICATION_FAILED"),
            "{answer}"
        );
    }
    assert_eq!(server.admitted(token).ask("ping", json!({}))["result"]["message"], "pong");
}

#[test]
fn the_token_of_the_environment_comes_first_and_is_not_printed() {
    let server = TcpServer::start();
    check_token(&server, "secret");
    assert_eq!(server.finish().lines().count(), 1);
}

#[test]
fn a_token_that_nobody_gave_is_made_and_printed_behind_the_port() {
    for given in [None, Some("")] {
        let mut server = TcpServer::start_with(&[], given);
        let line = server.running.next_line().unwrap();
        let token = line.strip_prefix(TOKEN_LINE).unwrap_or_else(|| panic!("{line}")).to_owned();
        assert!(token.len() >= 32, "{token}");
        check_token(&server, &token);
        let printed = server.finish();
        assert_eq!(printed.lines().count(), 2, "{printed}");
    }
}

#[test]
fn whoever_wants_no_token_says_so() {
    let server = TcpServer::start_with(&["--no-token"], None);
    let mut connection = server.connect();
    assert_eq!(connection.ask("connect", json!({}))["result"]["ok"], true);
    assert_eq!(connection.ask("ping", json!({}))["result"]["message"], "pong");
    assert_eq!(server.connect().ask("ping", json!({}))["result"]["message"], "pong");
    assert_eq!(code(&server.connect().ask("connect", json!({ "token": "x" }))), -32003);
    server.finish();
}

#[test]
fn without_a_token_nothing_is_served_to_other_machines() {
    let check = |args: &[&str], token: &str, says: &str| {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        let args = ["--server", "--port", "0", "--no-token"].iter().chain(args);
        let run = hangar(&scratch, &model).env("COPILOT_CONNECTION_TOKEN", token).args(args).finish();
        assert!(run.expect_exit(1).stderr.contains(says));
    };
    check(&["--host", "0.0.0.0"], "", "leave out --no-token");
    check(&[], "secret", "contradict each other");
}

#[test]
fn on_a_server_without_a_token_nobody_plants_programs() {
    let server = TcpServer::start_with(&["--no-token"], None);
    let mut connection = server.connect();
    let config = json!({ "type": "local", "command": "touch", "args": ["planted"], "tools": ["*"] });
    for method in [
        "mcp.config.add",
        "mcp.config.update",
        "mcp.config.enable",
        "mcp.config.disable",
        "mcp.config.remove",
        "session.permissions.folderTrust.addTrusted",
        "session.permissions.locations.addToolApproval",
        "skills.config.setSkillDisabled",
        "skills.config.setDisabledSkills",
        "user.settings.set",
        "account.login",
        "account.logout",
    ] {
        let answer = connection.ask(method, json!({ "name": "x", "config": config, "names": ["x"] }));
        assert_eq!(code(&answer), -32001, "{method}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(method) && message.contains("--no-token"), "{message}");
    }
    assert_eq!(connection.ask("mcp.config.list", json!({}))["result"], json!({ "servers": {} }));
    server.finish();
    let server = TcpServer::start();
    let answer = server.admitted("secret").ask("mcp.config.add", json!({ "name": "x", "config": config }));
    assert_eq!(answer["result"], Value::Null, "{answer}");
    assert!(answer.get("error").is_none(), "{answer}");
    server.finish();
}

#[test]
fn on_a_server_without_a_token_nobody_schedules_prompts_of_later_processes() {
    let server = TcpServer::start_with(&["--no-token"], None);
    let mut connection = server.connect();
    let mut call = |method, params| {
        connection.stream.write_all(&request(method, params)).unwrap();
        loop {
            let message = connection.receive().unwrap();
            if message["id"] == 1 {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    };
    call("session.create", json!({ "sessionId": ID }));
    let planted = json!({ "sessionId": ID, "interval": "1d", "prompt": "SAY:planted" });
    let added = call("session.schedule.add", planted);
    assert_eq!(added["entry"]["id"], 1, "{added}");
    // It is there as long as this process is.
    assert_eq!(call("session.schedule.list", json!({ "sessionId": ID }))["entries"][0]["id"], 1);
    let logged = call("session.getMessages", json!({ "sessionId": ID }))["events"].to_string();
    assert!(logged.contains("session.start") && !logged.contains("SAY:planted"), "{logged}");
    server.finish();
}

/// Requests that browsers send to a port for a foreign page, and other input that is no frame.
fn foreign_requests(port: u16) -> Vec<(&'static str, Vec<u8>)> {
    let config = json!({ "type": "local", "command": "touch", "args": ["planted"], "tools": ["*"] });
    let frame = request("mcp.config.add", json!({ "name": "planted", "config": config }));
    let browser = format!(
        "Host: 127.0.0.1:{port}\r\nConnection: keep-alive\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\nOrigin: \
         https://evil.example\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: empty\r\n"
    );
    let post = |more: &str| [format!("POST / HTTP/1.1\r\n{browser}{more}\r\n").as_bytes(), &frame].concat();
    let length = format!("Content-Length: {}\r\n", frame.len());
    vec![
        ("post", post(&format!("{length}Content-Type: text/plain;charset=UTF-8\r\n"))),
        ("post without a length", post("Content-Type: text/plain\r\n")),
        ("chunked", post("Transfer-Encoding: chunked\r\n")),
        ("post, the length first", [format!("POST / HTTP/1.1\r\n{length}\r\n").as_bytes(), &frame].concat()),
        ("get", format!("GET /?{} HTTP/1.1\r\n{browser}\r\n", "x".repeat(100)).into_bytes()),
        (
            "preflight",
            format!("OPTIONS / HTTP/1.1\r\n{browser}Access-Control-Request-Method: POST\r\n\r\n").into(),
        ),
        ("head", format!("HEAD / HTTP/1.1\r\n{browser}\r\n").into()),
        ("connect", b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n".to_vec()),
        ("websocket", format!("GET / HTTP/1.1\r\n{browser}Upgrade: websocket\r\n\r\n").into()),
        ("half a line", b"POST / HT".to_vec()),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec()),
        ("TLS", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".repeat(20)),
        (
            "a header of a frame first",
            [b"Content-Length: 2\r\nHost: x\r\n\r\n{}".as_slice(), &frame].concat(),
        ),
        ("SMTP", b"EHLO x\r\n".to_vec()),
        ("a message without a frame", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".to_vec()),
    ]
}

#[test]
fn a_web_page_is_not_heard_and_gets_no_answer() {
    for (args, token) in [(&["--no-token"][..], None), (&[][..], Some("secret"))] {
        let server = TcpServer::start_with(args, token);
        for (name, bytes) in foreign_requests(server.port) {
            let told = server.exchange(&bytes);
            assert!(told.is_empty(), "{name}: {}", String::from_utf8_lossy(&told));
        }
        assert!(!server.scratch.state().join("mcp-config.json").exists());
        server.finish();
    }
}

#[test]
fn before_the_token_frames_are_small_and_attempts_are_few() {
    let server = TcpServer::start();
    assert!(server.exchange(b"Content-Length: 268435456\r\n\r\n").is_empty());
    assert!(server.exchange(&request("connect", json!({ "token": "x".repeat(64 << 10) }))).is_empty());
    let mut guessing = server.connect();
    for at in 0..100 {
        // The connection may be closed already.
        let _ = guessing.stream.write_all(&request("connect", json!({ "token": at.to_string() })));
    }
    let mut answers = 0;
    while let Some(answer) = guessing.receive() {
        assert_eq!(code(&answer), -32002);
        answers += 1;
    }
    assert!(answers <= 5, "{answers}");
    let large = json!({ "message": "x".repeat(1 << 20) });
    let mut connection = server.admitted("secret");
    assert!(connection.ask("ping", large)["result"]["message"].as_str().unwrap().len() > 1 << 20);
    server.finish();
}

#[test]
fn connections_that_show_no_token_shut_nobody_out() {
    let server = TcpServer::start();
    let mut known = server.admitted("secret");
    let mut idle: Vec<Connection> = (0..IDLE).map(|_| server.connect()).collect();
    for connection in idle.iter_mut().step_by(2) {
        // Those that had to make room are closed.
        let _ = connection.stream.write_all(b"Content-Length: ");
    }
    assert_eq!(server.admitted("secret").ask("ping", json!({}))["result"]["message"], "pong");
    assert_eq!(known.ask("ping", json!({}))["result"]["message"], "pong");
    assert!(idle[0].receive().is_none(), "the oldest makes room");
    server.finish();
}

#[test]
fn before_the_token_nobody_hears_of_sessions() {
    let server = TcpServer::start();
    let mut stranger = server.connect();
    assert_eq!(code(&stranger.ask("ping", json!({}))), -32001);
    let mut known = server.admitted("secret");
    known.stream.write_all(&request("session.create", json!({ "sessionId": ID }))).unwrap();
    while known.receive().unwrap()["method"] != "session.lifecycle" {}
    assert_eq!(code(&stranger.ask("ping", json!({}))), -32001);
    server.finish();
}
