//! Bytes, messages and parameters of all kinds: the server answers or closes the connection that they came from, and
//! serves the others as before.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use hangar_protocol::rpc::{FrameDecoder, encode};
use hangar_test_support::{ModelServer, Running, Scratch, Signal};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};

use super::shapes::Api;
use crate::hangar;
use crate::sdk::ID;

/// Far above what anything needs on a loaded machine; reaching it is a failure, never a measurement.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an answer to parameters that make no sense is waited for, and how many of them may not come.
const HASTE: Duration = Duration::from_secs(5);
const MAX_WAITING: u32 = 20;
const TOKEN: &str = "secret";
const CASES_OF_BYTES: u32 = 150;
const CASES_OF_PARAMS: u32 = 1000;
/// Deeper than any message, and deep enough for a parser that recurses to run out of stack.
const DEEP: usize = 200_000;
const HUGE: usize = 256 << 10;

/// A connection to the server.
struct Line {
    stream: TcpStream,
    decoder: FrameDecoder,
    next_id: u64,
}

/// The server under test, with a client that does nothing wrong.
struct Stage {
    server: Running,
    port: u16,
    bystander: RefCell<Line>,
    _scratch: Scratch,
    _model: ModelServer,
}

impl Stage {
    fn new() -> Self {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        let mut server = hangar(&scratch, &model)
            .env("COPILOT_CONNECTION_TOKEN", TOKEN)
            .args(["--headless", "--log-level", "none", "--port", "0"])
            .within(Duration::from_secs(300))
            .start();
        let line = server.next_line().expect("the server says where it listens");
        let port = line.strip_prefix("CLI server listening on port ").expect("a port");
        let port = port.parse().expect("a port is a number");
        Self { server, port, bystander: RefCell::new(Line::new(port)), _scratch: scratch, _model: model }
    }

    fn bystander_is_served(&self) {
        let answer = self.bystander.borrow_mut().request("ping", &json!({ "message": "x" }), &Value::Null);
        assert_eq!(answer["result"]["message"], "pong: x");
    }

    /// Runs the cases, and looks at how the server ended after them.
    fn check<S: Strategy>(
        self,
        cases: u32,
        strategy: &S,
        case: impl Fn(&Stage, S::Value) -> Result<(), TestCaseError>,
    ) where
        S::Value: std::fmt::Debug,
    {
        let config = Config { cases, failure_persistence: None, max_shrink_iters: 4, ..Config::default() };
        TestRunner::new(config)
            .run(strategy, |input| {
                case(&self, input)?;
                self.bystander_is_served();
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{failure}"));
        self.server.signal(Signal::TERM);
        let ended = self.server.finish().expect_exit(0);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
}

impl Line {
    fn new(port: u16) -> Self {
        let mut line = Self::stranger(port);
        let answer = line.request("connect", &json!({ "token": TOKEN }), &Value::Null);
        assert_eq!(answer["result"]["ok"], true);
        line
    }

    /// One that has not shown the token.
    fn stranger(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, decoder: FrameDecoder::default(), next_id: 0 }
    }

    /// One that does not wait long.
    fn hasty(port: u16) -> Self {
        let line = Self::new(port);
        line.stream.set_read_timeout(Some(HASTE)).expect("a timeout");
        line
    }

    /// The next message; `None` at the end of the connection.
    fn receive(&mut self) -> Option<Value> {
        self.next_message().unwrap_or_else(|error| panic!("the server neither answers nor closes: {error}"))
    }

    /// An error is silence for too long.
    fn next_message(&mut self) -> std::io::Result<Option<Value>> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some(body) = self.decoder.next_frame().expect("the server writes frames") {
                return Ok(Some(serde_json::from_slice(&body).expect("the server writes JSON")));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(count) => self.decoder.feed(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn write(&mut self, message: &Value) {
        self.stream.write_all(&encode(message.to_string().as_bytes())).expect("the server reads");
    }

    /// The answer to a request. What the server asks meanwhile is answered with `reply`.
    fn request(&mut self, method: &str, params: &Value, reply: &Value) -> Value {
        self.try_request(method, params, reply).unwrap_or_else(|| panic!("{method} is not answered"))
    }

    /// The same, or nothing where the answer does not come.
    fn try_request(&mut self, method: &str, params: &Value, reply: &Value) -> Option<Value> {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message =
                self.next_message().ok()?.unwrap_or_else(|| panic!("{method} ended the connection"));
            match (message.get("method"), message.get("id")) {
                (None, Some(answered)) if *answered == id => return Some(message),
                (Some(_), Some(asked)) => {
                    self.write(&json!({ "jsonrpc": "2.0", "id": asked, "result": reply }));
                }
                _ => {}
            }
        }
    }
}

/// Content of a frame in place of a message.
fn any_body() -> impl Strategy<Value = Vec<u8>> {
    let text = |text: &str| Just(text.as_bytes().to_vec());
    let deep = |open: &str, close: &str| {
        let nested = format!("{}{}", open.repeat(DEEP), close.repeat(DEEP));
        Just(
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session.create","params":{nested}}}"#).into_bytes(),
        )
    };
    prop_oneof![
        text(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"message":"x"}}"#),
        text(r#"{"jsonrpc":"2.0","id":1,"method":"no.such.method"}"#),
        text(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#),
        text("[]"),
        text("null"),
        text("7"),
        text(""),
        text(r#"{"jsonrpc":"1.0","id":null,"method":"ping"}"#),
        text(r#"{"id":{"a":[]},"method":"ping"}"#),
        text(r#"{"id":1e400,"method":"ping"}"#),
        text(r#"{"id":-9223372036854775809,"method":"ping"}"#),
        text(r#"{"id":1,"method":7,"params":"x"}"#),
        text(r#"{"id":1,"method":"ping","params":{"message":"\ud800"}}"#),
        text(r#"{"id":1,"method":"session.create","params":{"sessionId":"\udfff\u0000"}}"#),
        text(r#"{"id":99,"result":{}}"#),
        text(r#"{"id":"x","error":{"code":"x"}}"#),
        text(r#"{"method":"exit"}"#),
        deep("[", "]"),
        deep("{\"a\":", "}"),
        Just("[".repeat(DEEP).into_bytes()),
        Just(vec![b' '; HUGE]),
        prop::collection::vec(any::<u8>(), 0..200),
        ".{0,80}".prop_map(String::into_bytes),
    ]
}

/// Bytes that are no frame, or not the frame that they say.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![
        Just("0"),
        Just("1"),
        Just("-1"),
        Just("+5"),
        Just(" 7 "),
        Just("0x10"),
        Just("1e3"),
        Just("268435457"),
        Just("99999999999999999999999"),
        Just("18446744073709551615"),
        Just("9223372036854775807"),
        Just(""),
    ];
    let ending = prop_oneof![Just("\r\n\r\n"), Just("\n\n"), Just("\r\n"), Just("\r"), Just("")];
    prop_oneof![
        3 => any_body().prop_map(|body| encode(&body)),
        2 => (length, ending, any_body()).prop_map(|(length, ending, body)| {
            let mut bytes = format!("Content-Length: {length}{ending}").into_bytes();
            bytes.extend(body);
            bytes
        }),
        1 => any_body(),
        1 => Just(b"X: ".repeat(HUGE / 3)),
        1 => Just(b"Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}".to_vec()),
        1 => Just(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
    ]
}

#[test]
fn frames_of_any_content_leave_their_connection_usable() {
    let strategy = prop::collection::vec(any_body(), 1..6);
    Stage::new().check(CASES_OF_BYTES, &strategy, |stage, bodies| {
        let mut line = Line::new(stage.port);
        let bytes: Vec<u8> = bodies.iter().flat_map(|body| encode(body)).collect();
        line.stream.write_all(&bytes).expect("the server reads");
        line.next_id = 1000;
        let answer = line.request("ping", &json!({}), &Value::Null);
        prop_assert_eq!(&answer["result"]["message"], "pong");
        Ok(())
    });
}

#[test]
fn bytes_of_any_kind_end_no_other_connection_than_their_own() {
    let pieces = prop::collection::vec(any_bytes(), 1..5);
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..6);
    let strategy = (pieces, cuts, any::<bool>());
    Stage::new().check(CASES_OF_BYTES, &strategy, |stage, (pieces, cuts, is_known)| {
        let mut line = if is_known { Line::new(stage.port) } else { Line::stranger(stage.port) };
        let bytes = pieces.concat();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        for cut in at.windows(2) {
            // A connection that was closed in the middle is one of the two good ends.
            if line.stream.write_all(&bytes[cut[0]..cut[1]]).is_err() {
                break;
            }
        }
        let _ = line.stream.shutdown(Shutdown::Write);
        while let Some(message) = line.receive() {
            prop_assert_eq!(&message["jsonrpc"], "2.0");
        }
        Ok(())
    });
}

/// Parameters that nobody should send. Strings are harmless even where they are taken for a path or a command.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(u64::MAX)),
        Just(json!(-1)),
        Just(json!("")),
        Just(json!("x")),
        Just(json!(ID)),
        Just(json!("../../nowhere/at/all")),
        Just(json!("/dev/null")),
        Just(json!("a\u{0}b\n\u{202e}\u{1f600}")),
        Just(json!("é".repeat(HUGE))),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,8}|kind|type|mode|name", inner, 0..4)
                .prop_map(|members| json!(members)),
        ]
    })
}

/// Undocumented settings of a new session.
const SETTINGS: [&str; 24] = [
    "model",
    "reasoningEffort",
    "modelCapabilities",
    "provider",
    "providers",
    "models",
    "tools",
    "availableTools",
    "excludedTools",
    "systemMessage",
    "workingDirectory",
    "additionalDirectories",
    "instructionDirectories",
    "largeOutput",
    "streaming",
    "infiniteSessions",
    "customAgents",
    "requestPermission",
    "hooks",
    "defaultAgent",
    "disableResume",
    "continuePendingWork",
    "clientName",
    "mcpServers",
];

/// Methods that end the server, or that answer when the session's work is done, whenever that is.
const UNANSWERED: [&str; 2] = ["runtime.shutdown", "session.tasks.waitForPending"];

/// The parameters of each method, with an example where one is published.
fn methods() -> Vec<(&'static str, BTreeMap<String, Value>)> {
    let api = Api::load();
    let names = hangar_server::methods::names().filter(|method| !UNANSWERED.contains(method));
    let method = |name| {
        let mut parameters = api.parameters(name);
        if parameters.is_empty() {
            parameters.extend(SETTINGS.map(|setting| (setting.to_owned(), Value::Null)));
        }
        // Tokens are asked about at GitHub, and some methods may be told to wait: neither is for here.
        parameters.retain(|name, _| !name.ends_with("oken") && name != "waitMs" && name != "wait");
        parameters.insert("sessionId".to_owned(), json!(ID));
        (name, parameters)
    };
    names.map(method).collect()
}

/// A method and parameters of which some are missing, some are as published, and some are anything.
fn any_request() -> impl Strategy<Value = (&'static str, Value)> {
    prop::sample::select(methods()).prop_flat_map(|(method, parameters)| {
        let some: Vec<_> = parameters
            .into_iter()
            .map(|(name, example)| {
                let usual = if name == "sessionId" { 12 } else { 2 };
                prop_oneof![
                    usual => Just(Some((name.clone(), example))),
                    1 => Just(None),
                    1 => any_value().prop_map(move |value| Some((name.clone(), value))),
                ]
            })
            .collect();
        let object = some.prop_map(|some| json!(some.into_iter().flatten().collect::<BTreeMap<_, _>>()));
        (Just(method), prop_oneof![12 => object, 1 => any_value()])
    })
}

#[test]
fn parameters_of_any_kind_are_answered() {
    let strategy = (any_request(), any_value());
    let stage = Stage::new();
    let line = RefCell::new(Line::hasty(stage.port));
    let waiting = Cell::new(0);
    stage.check(CASES_OF_PARAMS, &strategy, |stage, ((method, params), reply)| {
        let mut line = line.borrow_mut();
        // Whatever the last request did, a session for this request exists.
        let created = line.try_request("session.create", &json!({ "sessionId": ID }), &Value::Null);
        let answer = created.and_then(|_| line.try_request(method, &params, &reply));
        let Some(answer) = answer else {
            // It may be one that waits for what never comes. That is its client's loss and nobody else's.
            *line = Line::hasty(stage.port);
            waiting.set(waiting.get() + 1);
            prop_assert!(waiting.get() <= MAX_WAITING, "too many methods do not answer, {} the last", method);
            return Ok(());
        };
        prop_assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{}", answer);
        Ok(())
    });
}
