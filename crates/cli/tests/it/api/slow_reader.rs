//! A client that stops reading is cut off; memory does not grow behind it, and nobody else notices.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use hangar_protocol::rpc::encode;
use hangar_test_support::{ModelServer, Running, Scratch};
use serde_json::json;

use crate::hangar;

/// Far above what anything needs on a loaded machine; reaching it is a failure, never a measurement.
const PATIENCE: Duration = Duration::from_secs(60);
/// Total size of the requested answers. Without a bound the server would hold all of it.
const ASKED: usize = 1 << 30;
const TOKEN: &str = "secret";
const PIECE: usize = 1 << 20;
/// Far below that, and above what may wait by the server's own bound.
const MOST_MEMORY: u64 = 256 << 20;

fn port(server: &mut Running) -> u16 {
    let line = server.next_line().expect("the server says where it listens");
    let port = line.strip_prefix("CLI server listening on port ").expect("a port");
    port.parse().expect("a port is a number")
}

fn connect(port: u16) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "connect", "params": { "token": TOKEN } });
    stream.write_all(&encode(hello.to_string().as_bytes())).expect("the server reads");
    let mut answer = [0; 512];
    let count = stream.read(&mut answer).expect("an answer");
    assert!(String::from_utf8_lossy(&answer[..count]).contains("\"ok\":true"));
    stream
}

fn ping(message: &str) -> Vec<u8> {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "message": message } });
    encode(request.to_string().as_bytes())
}

fn peak_memory(server: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid().as_raw_nonzero()))
        .expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

#[test]
fn a_client_that_stops_reading_is_cut_off_and_the_others_are_served() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let mut server = hangar(&scratch, &model)
        .env("COPILOT_CONNECTION_TOKEN", TOKEN)
        .args(["--headless", "--port", "0"])
        .start();
    let port = port(&mut server);
    let mut other = connect(port);
    let mut deaf = connect(port);
    let request = ping(&"x".repeat(PIECE));
    // The server closes the connection, and what is written after that is refused.
    let cut_off = (0..ASKED / PIECE).any(|_| deaf.write_all(&request).is_err());
    assert!(cut_off, "{} MB were taken", ASKED >> 20);
    other.write_all(&ping("still there")).expect("the server reads");
    let mut answer = [0; 512];
    let count = other.read(&mut answer).expect("an answer");
    assert!(String::from_utf8_lossy(&answer[..count]).contains("pong: still there"));
    let peak = peak_memory(&server);
    assert!(peak < MOST_MEMORY, "{} MB", peak >> 20);
    // A disconnected client may come back.
    let mut back = connect(port);
    back.write_all(&ping("back")).expect("the server reads");
    assert!(back.read(&mut answer).expect("an answer") > 0);
    let _ = deaf.shutdown(Shutdown::Both);
    server.signal(hangar_test_support::Signal::TERM);
    server.finish().expect_exit(0);
}

#[test]
fn a_server_whose_only_client_stops_reading_ends() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let mut server = hangar(&scratch, &model).args(["--headless", "--stdio"]).open();
    let mut stdin = server.stdin.take().expect("a pipe");
    let request = ping(&"x".repeat(PIECE));
    let cut_off = (0..ASKED / PIECE).any(|_| stdin.write_all(&request).is_err());
    assert!(cut_off, "{} MB were taken", ASKED >> 20);
    // Its output is full and nobody reads it: it ends all the same.
    let status = server.wait().expect("the server was started here");
    assert!(status.success(), "{status}");
}
