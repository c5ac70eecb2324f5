use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;
use crate::profile::Profile;
use crate::scenario::Scenario;

fn simulator(name: &str, scenario: &str) -> Simulator {
    let simulator = Profile::find(name).unwrap().simulator().unwrap();
    simulator.with_scenario(Scenario::parse(scenario).unwrap())
}

/// The whole answer as bytes, head included, until the server closes the connection.
fn exchange(server: &Server, method: &str, path: &str, body: &Value) -> String {
    let body = if method == "POST" { body.to_string() } else { String::new() };
    let mut stream = TcpStream::connect(server.address).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: k\r\nanthropic-version: 1\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn ask(stream: bool) -> Value {
    json!({
        "model": "claude-haiku-4-5", "max_tokens": 100, "stream": stream,
        "messages": [{"role": "user", "content": "SAY:hi"}],
    })
}

#[test]
fn one_vendor_is_served_at_the_root_and_below_its_name() {
    let server = Server::of(simulator("anthropic", "")).unwrap();
    for path in ["/v1/messages", "/anthropic/v1/messages"] {
        let answer = exchange(&server, "POST", path, &ask(false));
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"text\":\"hi\""), "{answer}");
    }
    assert!(exchange(&server, "GET", "/anthropic", &Value::Null).contains("\"ok\":true"));
    assert_eq!(server.finish().unwrap()[0].1.answers, 2);
}

#[test]
fn several_vendors_are_served_below_their_names_and_counted_apart() {
    let server = Server::start(vec![simulator("anthropic", ""), simulator("openai-responses", "")]).unwrap();
    assert!(exchange(&server, "POST", "/anthropic/v1/messages", &ask(false)).starts_with("HTTP/1.1 200"));
    assert!(
        exchange(&server, "POST", "/openai-responses/v1/responses", &ask(false)).starts_with("HTTP/1.1 401")
    );
    let lost = exchange(&server, "POST", "/v1/messages", &ask(false));
    assert!(lost.contains("no simulator is served at /v1/messages; there are anthropic, openai-responses"));
    let stats = exchange(&server, "GET", "/__stats", &Value::Null);
    assert!(stats.contains("\"vendor\":\"anthropic\"") && stats.contains("\"answers\":1"), "{stats}");
    let failures = server.finish().unwrap_err().to_string();
    assert!(
        failures.starts_with("openai-responses: request 1 to /v1/responses was refused: 401"),
        "{failures}"
    );
    assert_eq!(server.refusals().len(), 1);
}

#[test]
fn a_stream_has_its_type_and_headers_and_breaks_where_the_scenario_says() {
    let cut = "[[turn]]\nsay = [{ text = 'one' }]\n[[turn]]\nsay = [{ text = 'two' }, { wait = 0.001 }]\nend = 'cut'";
    let server = Server::of(simulator("anthropic", cut)).unwrap();
    let whole = exchange(&server, "POST", "/v1/messages", &ask(true));
    assert!(
        whole.contains("content-type: text/event-stream") && whole.contains("request-id: req_"),
        "{whole}"
    );
    assert!(whole.contains("event: message_stop") && whole.ends_with("0\r\n\r\n"), "{whole}");
    let broken = exchange(&server, "POST", "/v1/messages", &ask(true));
    assert!(broken.contains("two") && !broken.ends_with("0\r\n\r\n"), "{broken}");
}
