//! Hangar as an agent of the Agent Client Protocol: the real binary over a pipe, with a client of our own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod servers;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hangar_test_support::{Invocation, ModelServer, Scratch};
use serde_json::{Value, json};

use crate::hangar;

/// Far above what anything needs on a loaded machine; reaching it is a failure, never a measurement.
const PATIENCE: Duration = Duration::from_secs(60);
const MODES: &str = "https://agentclientprotocol.com/protocol/session-modes#";
/// A recorded exchange of a client with the reference.
const RECORDED: &str = include_str!("../captures/acp.txt");

pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Everything that was received, in order.
    seen: Vec<Value>,
    cwd: String,
    next_id: i64,
}

impl Client {
    fn start(scratch: &Scratch, model: &ModelServer) -> Self {
        Self::of(hangar(scratch, model), scratch)
    }

    /// A client of an agent with an environment and flags of its own.
    pub(crate) fn of(agent: Invocation, scratch: &Scratch) -> Self {
        let mut child = agent.arg("--acp").open();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).expect("stdout carries messages and nothing else");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let cwd = scratch.work().display().to_string();
        Self { child, stdin, messages, seen: Vec::new(), cwd, next_id: 0 }
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the connection is open");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("the agent reads");
    }

    fn send(&mut self, method: &str, params: &Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// The first message that is wanted, from here or from before.
    fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(found) = self.seen.iter().find(|message| wanted(message)) {
            return found.clone();
        }
        loop {
            let message = self
                .messages
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("no {what}: {:#?}", self.seen));
            self.seen.push(message.clone());
            if wanted(&message) {
                return message;
            }
        }
    }

    fn answer_to(&mut self, id: i64) -> Value {
        self.until(&format!("answer to {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    pub(crate) fn answer(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer_to(id)
    }

    #[track_caller]
    fn call(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    fn open(&mut self) -> String {
        let params = json!({ "cwd": self.cwd, "mcpServers": [] });
        self.call("session/new", &params)["sessionId"].as_str().unwrap().to_owned()
    }

    fn send_prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send("session/prompt", &json!({ "sessionId": session, "prompt": prompt }))
    }

    #[track_caller]
    fn prompt(&mut self, session: &str, text: &str) -> Value {
        let id = self.send_prompt(session, text);
        self.answer_to(id)["result"].clone()
    }

    /// Answers the next question about a permission and returns it.
    fn decide(&mut self, option: &str) -> Value {
        let asked =
            self.until("permission request", |message| message["method"] == "session/request_permission");
        self.seen.retain(|message| message["method"] != "session/request_permission");
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        self.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": outcome }).to_string());
        asked
    }

    /// The updates of a session so far, and forgets them.
    fn updates(&mut self, session: &str) -> Vec<Value> {
        let of_session = |message: &Value| {
            message["method"] == "session/update" && message["params"]["sessionId"] == session
        };
        let (updates, rest) = std::mem::take(&mut self.seen).into_iter().partition(of_session);
        self.seen = rest;
        updates.into_iter().map(|mut message| message["params"]["update"].take()).collect()
    }

    /// The agent's messages to a session so far.
    fn said(&mut self, session: &str) -> String {
        let updates = self.updates(session);
        let chunks = updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }

    /// Closes standard input, which ends the agent.
    pub(crate) fn finish(mut self) {
        self.stdin = None;
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Lets the session do what it wants.
    fn allow_all(&mut self, session: &str) {
        let params = json!({ "sessionId": session, "configId": "allow_all", "value": "on" });
        self.call("session/set_config_option", &params);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A test that failed must not leave its agent behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn stage() -> (Scratch, ModelServer) {
    (Scratch::new(), ModelServer::start())
}

fn kinds(updates: &[Value]) -> Vec<&str> {
    updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect()
}

/// The compared parts of an answer: its members, the stop reason, and the session's messages meanwhile.
fn condense(result: &Value, updates: &[Value]) -> String {
    let mut members: Vec<&str> = result.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    let mut text = format!("{{{}}}", members.join(" "));
    if let Some(reason) = result["stopReason"].as_str() {
        text.push_str(&format!(" {reason}"));
    }
    for update in updates {
        match (update["sessionUpdate"].as_str().unwrap(), update["status"].as_str()) {
            ("available_commands_update", _) => {}
            (kind, Some(status)) => text.push_str(&format!(" {kind}({status})")),
            (kind, None) => text.push_str(&format!(" {kind}")),
        }
    }
    text
}

#[test]
fn a_recorded_client_is_told_what_the_reference_told_it() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let mut sessions: HashMap<String, String> = HashMap::new();
    let mut asked: HashMap<&str, (i64, String)> = HashMap::new();
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.splitn(5, ' ');
        let (direction, id) = (words.next().unwrap(), words.next().unwrap());
        if direction == ">" {
            let (method, name) = (words.next().unwrap(), words.next().unwrap());
            let session = sessions.get(name).cloned().unwrap_or_default();
            let sent = match method {
                "initialize" => client.send(method, &json!({ "protocolVersion": 1 })),
                "session/new" => {
                    let params = json!({ "cwd": client.cwd, "mcpServers": [] });
                    client.send(method, &params)
                }
                _ => {
                    let text: String = serde_json::from_str(words.next().unwrap()).unwrap();
                    client.send_prompt(&session, &text)
                }
            };
            asked.insert(id, (sent, session));
            continue;
        }
        let (sent, session) = asked.remove(id).unwrap();
        let answer = client.answer_to(sent);
        let updates = client.updates(&session);
        let expected = line.splitn(3, ' ').nth(2).unwrap();
        assert_eq!(condense(&answer["result"], &updates), expected, "answer {id}: {answer}");
        if let Some(opened) = answer["result"]["sessionId"].as_str() {
            sessions.insert(format!("S{}", sessions.len() + 1), opened.to_owned());
        }
    }
    assert_eq!(sessions.len(), 8);
    client.finish();
}

#[test]
fn usage_counts_what_the_session_used_since_it_was_opened() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    let used = |answer: &Value| answer["usage"]["totalTokens"].as_u64().unwrap();
    let first = used(&client.prompt(&session, "SAY:one"));
    let second = used(&client.prompt(&session, "SAY:two"));
    assert!(0 < first && first < second, "{first} {second}");
    client.call("session/close", &json!({ "sessionId": session }));
    client.call("session/load", &json!({ "sessionId": session, "cwd": client.cwd, "mcpServers": [] }));
    let again = used(&client.prompt(&session, "SAY:three"));
    assert!(again < second, "{again}");
}

#[test]
fn permissions_are_the_clients_to_give() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    let touch = |file: &str| {
        format!("TOOL:bash:{{\"command\":\"touch {file}\",\"description\":\"Touch\"}}\nSAY:after")
    };

    let id = client.send_prompt(&session, &touch("once"));
    let asked = client.decide("allow_once");
    assert_eq!(asked["params"]["toolCall"]["rawInput"]["command"], "touch once");
    assert_eq!(client.answer_to(id)["result"]["stopReason"], "end_turn");
    assert!(scratch.work().join("once").exists());
    assert_eq!(client.said(&session), "after");

    let id = client.send_prompt(&session, &touch("never"));
    client.decide("reject_once");
    assert_eq!(client.answer_to(id)["result"]["stopReason"], "end_turn");
    let failed = client.updates(&session).into_iter().find(|update| update["status"] == "failed").unwrap();
    assert_eq!(failed["rawOutput"]["code"], "rejected");
    assert!(!scratch.work().join("never").exists());

    let id = client.send_prompt(&session, &touch("always"));
    client.decide("allow_always");
    client.answer_to(id);
    client.prompt(&session, &touch("unasked"));
    assert!(scratch.work().join("unasked").exists());
    client.finish();
}

#[test]
fn permissions_of_sub_agents_are_asked_for_too() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    let touch = json!({ "command": "touch below", "description": "Touch" });
    let task = json!({
        "description": "d", "agent_type": "general-purpose", "name": "helper", "mode": "sync",
        "prompt": format!("TOOL:bash:{touch}\nSAY:touched"),
    });
    let id = client.send_prompt(&session, &format!("TOOL:task:{task}\nSAY:after"));
    let asked = client.decide("allow_once");
    assert_eq!(asked["params"]["toolCall"]["rawInput"]["command"], "touch below");
    assert_eq!(client.answer_to(id)["result"]["stopReason"], "end_turn");
    assert!(scratch.work().join("below").exists());
    client.finish();
}

#[test]
fn skills_that_are_listed_as_commands_can_be_called() {
    let (scratch, model) = stage();
    scratch
        .file(".github/skills/paint/SKILL.md", "---\nname: paint\ndescription: d\n---\nUse three coats.\n");
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    client.prompt(&session, "/paint SAY:painted");
    let listed = client.updates(&session);
    let mut listed = listed.iter().filter(|update| update["sessionUpdate"] == "available_commands_update");
    assert!(
        listed
            .next_back()
            .is_some_and(|update| update["availableCommands"].to_string().contains("\"paint\""))
    );
    assert!(model.last_request().to_string().contains("Use three coats."));
    client.finish();
}

#[test]
fn a_cancelled_prompt_stops_even_while_it_asks_and_the_next_one_works() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });

    let id = client.send_prompt(&session, "STREAM:1000:20");
    client.until("piece", |message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    client.write(&cancel.to_string());
    assert_eq!(client.answer_to(id)["result"]["stopReason"], "cancelled");

    let id = client.send_prompt(&session, "TOOL:bash:{\"command\":\"touch x\"}");
    client.until("permission request", |message| message["method"] == "session/request_permission");
    client.write(&cancel.to_string());
    assert_eq!(client.answer_to(id)["result"]["stopReason"], "cancelled");
    client.updates(&session);
    assert_eq!(client.prompt(&session, "SAY:fine")["stopReason"], "end_turn");
    assert_eq!(client.said(&session), "fine");
    // The answer that comes too late changes nothing.
    client.decide("allow_once");
    client.prompt(&session, "SAY:still fine");
    assert!(!scratch.work().join("x").exists());
}

#[test]
fn a_prompt_takes_the_place_of_the_one_before() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    let first = client.send_prompt(&session, "STREAM:1000:20");
    client.until("piece", |message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    let second = client.send_prompt(&session, "SAY:second");
    assert_eq!(client.answer_to(first)["result"]["stopReason"], "cancelled");
    assert_eq!(client.answer_to(second)["result"]["stopReason"], "end_turn");
    assert!(client.said(&session).ends_with("second"));
}

#[test]
fn a_prompt_does_not_wait_for_a_command_that_it_left_running() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    client.allow_all(&session);
    let command = json!({ "command": "sleep 1000", "description": "Sleep", "mode": "async" });
    let answer = client.prompt(&session, &format!("TOOL:bash:{command}\nSAY:left it"));
    assert_eq!(answer["stopReason"], "end_turn");
    // The end of a command is news for the model, whose words reach the client outside of a prompt.
    let command = json!({ "command": "until [ -e gate ]; do sleep 0.05; done", "description": "Wait", "mode": "async" });
    client.prompt(&session, &format!("TOOL:bash:{command}\nSAY:left another"));
    scratch.file("gate", "");
    client.until("words", |message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    client.finish();
}

#[test]
fn a_prompt_that_waits_for_its_agents_makes_way_for_the_next_one() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    client.allow_all(&session);
    let agent = json!({
        "description": "d", "prompt": "STREAM:1000:100", "agent_type": "explore", "name": "n", "mode": "background",
    });
    let said = |client: &mut Client, words: &'static str| {
        client.until(words, |message| message["params"]["update"]["content"]["text"].as_str() == Some(words));
    };
    let first = client.send_prompt(&session, &format!("TOOL:task:{agent}\nSAY:left it"));
    said(&mut client, "left it");
    let second = client.send_prompt(&session, "SAY:second");
    assert_eq!(client.answer_to(first)["result"]["stopReason"], "end_turn");
    said(&mut client, "second");
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
    client.write(&cancel.to_string());
    assert_eq!(client.answer_to(second)["result"]["stopReason"], "cancelled");
    client.finish();
}

#[test]
fn a_loaded_session_tells_its_conversation_again_and_goes_on() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    client.prompt(&session, "TOOL:bash:{\"command\":\"echo hi\",\"description\":\"Greet\"}\nSAY:done");
    client.finish();

    let mut client = Client::start(&scratch, &model);
    let listed = client.call("session/list", &json!({ "cwd": client.cwd }));
    assert_eq!(listed["sessions"][0]["sessionId"], session);
    assert_eq!(client.call("session/list", &json!({ "cwd": "/elsewhere" })), json!({ "sessions": [] }));
    let params = json!({ "sessionId": session, "cwd": client.cwd, "mcpServers": [] });
    let loaded = client.call("session/load", &params);
    assert_eq!(loaded["modes"]["currentModeId"], format!("{MODES}agent"));
    let told = client.updates(&session);
    let told: Vec<&str> =
        kinds(&told).into_iter().filter(|kind| *kind != "available_commands_update").collect();
    assert_eq!(told, ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]);
    assert_eq!(client.answer("session/load", &params)["error"]["code"], -32602, "it is loaded already");
    client.prompt(&session, "SAY:again");
    assert_eq!(client.said(&session), "again");
}

#[test]
fn modes_and_options_are_chosen_and_told() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    let current = |options: &Value, at: usize| options[at]["currentValue"].as_str().unwrap().to_owned();

    client.call("session/set_mode", &json!({ "sessionId": session, "modeId": format!("{MODES}autopilot") }));
    let updates = client.updates(&session);
    assert_eq!(kinds(&updates[updates.len() - 2..]), ["current_mode_update", "config_option_update"]);
    let options = &updates.last().unwrap()["configOptions"];
    assert_eq!((current(options, 0), current(options, 1)), (format!("{MODES}autopilot"), "on".to_owned()));

    let set = |option: &str, value: &str| json!({ "sessionId": session, "configId": option, "value": value });
    let chosen = client.call("session/set_config_option", &set("mode", &format!("{MODES}agent")));
    assert_eq!(current(&chosen["configOptions"], 1), "off");
    for (option, value) in [("mode", "dream"), ("allow_all", "maybe"), ("colour", "red")] {
        assert_eq!(client.answer("session/set_config_option", &set(option, value))["error"]["code"], -32602);
    }

    client.call("session/set_config_option", &set("allow_all", "on"));
    client.prompt(&session, "TOOL:bash:{\"command\":\"touch free\"}\nSAY:ok");
    assert!(scratch.work().join("free").exists());
    client.call("session/set_model", &json!({ "sessionId": session, "modelId": "other-model" }));
    client.prompt(&session, "SAY:ok");
    assert_eq!(model.requests().last().unwrap().body["model"], "other-model");
}

#[test]
fn slash_commands_are_carried_out_and_others_are_for_the_model() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    client.prompt(&session, "SAY:one");
    let requests = model.requests().len();
    client.updates(&session);
    client.prompt(&session, "/rename A better name");
    assert_eq!(client.said(&session), "The session is called A better name now.");
    client.prompt(&session, "/plan");
    assert!(kinds(&client.updates(&session)).contains(&"current_mode_update"));
    assert_eq!(model.requests().len(), requests, "no model was asked");
    client.prompt(&session, "/nosuch SAY:not ours");
    assert!(model.requests().len() > requests);
    client.updates(&session);
    client.prompt(&session, "/compact");
    assert!(client.said(&session).starts_with("Compacted the conversation: "));
    let listed = client.call("session/list", &json!({}));
    assert_eq!(listed["sessions"][0]["title"], "A better name");
}

#[test]
fn images_and_embedded_texts_reach_the_model() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let prompt = json!([
        { "type": "text", "text": "SAY:seen" },
        { "type": "image", "mimeType": "image/png", "data": pixel },
        { "type": "resource", "resource": { "uri": "file:///notes.md", "text": "the embedded words" } },
    ]);
    client.call("session/prompt", &json!({ "sessionId": session, "prompt": prompt }));
    let asked = model.requests().last().unwrap().body.to_string();
    assert!(asked.contains("the embedded words"), "{asked}");
    assert!(asked.contains(&format!("data:image/png;base64,{pixel}")), "{asked}");
}

#[test]
fn requests_that_make_no_sense_are_refused_by_the_protocols_codes_and_harm_nothing() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    let nobody = json!({ "sessionId": "nobody" });
    for (method, params, code) in [
        ("session/nope", json!({}), -32601),
        ("session/new", json!({}), -32602),
        ("session/new", json!({ "cwd": 7 }), -32602),
        ("session/new", json!({ "cwd": "/no/such/place", "mcpServers": [] }), -32602),
        ("session/new", json!({ "cwd": "/dev/null", "mcpServers": [] }), -32602),
        ("session/prompt", nobody.clone(), -32602),
        ("session/prompt", json!({ "sessionId": session, "prompt": "text" }), -32602),
        ("session/close", nobody.clone(), -32002),
        ("session/load", json!({ "sessionId": "../x", "cwd": "/" }), -32002),
        ("session/set_mode", json!({ "sessionId": session, "modeId": "dream" }), -32602),
        ("session/list", json!({ "cursor": "x" }), -32602),
    ] {
        let answer = client.answer(method, &params);
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
    for garbage in [
        "{",
        "[]",
        "7",
        "\u{0}\u{1}",
        "{\"id\":1}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}",
        "nul",
    ] {
        client.write(garbage);
        client
            .until("refusal", |message| message["error"]["code"].as_i64().is_some_and(|code| code <= -32600));
    }
    client.write("{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\"}");
    client.write("{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":null}");
    assert_eq!(client.prompt(&session, "SAY:fine")["stopReason"], "end_turn");
    client.finish();
}

#[test]
fn a_client_that_vanishes_leaves_no_command_behind_and_a_closed_log() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    let allow = json!({ "sessionId": session, "configId": "allow_all", "value": "on" });
    client.call("session/set_config_option", &allow);
    client.send_prompt(
        &session,
        "TOOL:bash:{\"command\":\"echo $$ > pid; exec sleep 1000\",\"initial_wait\":120}",
    );
    let file = scratch.work().join("pid");
    let pid = wait_for(&file);
    client.finish();
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the command outlived its session");
    let last = scratch.log(&session).lines().last().unwrap().to_owned();
    assert!(last.contains("session.shutdown"), "{last}");
}

/// Output of a command, once it has written it.
fn wait_for(file: &Path) -> String {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        match std::fs::read_to_string(file) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => assert!(std::time::Instant::now() < deadline, "{} does not come", file.display()),
        }
        std::thread::yield_now();
    }
}

/// An agent on a port, with a connection to it.
fn on_a_port(scratch: &Scratch, model: &ModelServer) -> (Child, std::net::TcpStream, u16) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let child = hangar(scratch, model).args(["--acp", "--port", &port.to_string()]).open();
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        match std::net::TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break (child, stream, port),
            Err(error) => assert!(std::time::Instant::now() < deadline, "{error}"),
        }
        std::thread::yield_now();
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;

#[track_caller]
fn is_served(mut stream: std::net::TcpStream) {
    writeln!(stream, "{INITIALIZE}").unwrap();
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(answer["result"]["protocolVersion"], 1);
}

#[test]
fn clients_on_a_port_are_served_too() {
    let (scratch, model) = stage();
    let (mut child, stream, port) = on_a_port(&scratch, &model);
    let connect = || std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let idle: Vec<std::net::TcpStream> = (0..300).map(|_| connect()).collect();
    is_served(connect());
    drop((idle, stream));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_agent_without_free_files_serves_again_when_some_are_free() {
    let (scratch, model) = stage();
    let (mut child, stream, port) = on_a_port(&scratch, &model);
    let connect = || std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    is_served(stream);
    let files = format!("/proc/{}/fd", child.id());
    let open = || std::fs::read_dir(&files).unwrap().count() as u64;
    let pid = rustix::process::Pid::from_child(&child);
    let few = open() + 10;
    let limit = |current| rustix::process::Rlimit { current: Some(current), maximum: Some(current) };
    rustix::process::prlimit(Some(pid), rustix::process::Resource::Nofile, limit(few)).unwrap();
    // More than it can accept: the others wait in the queue of the kernel.
    let crowd: Vec<std::net::TcpStream> = (0..40).map(|_| connect()).collect();
    let deadline = std::time::Instant::now() + PATIENCE;
    while open() < few {
        assert!(std::time::Instant::now() < deadline, "{} of {few} files are open", open());
        std::thread::yield_now();
    }
    drop(crowd);
    is_served(connect());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_web_page_on_a_port_is_not_heard_and_gets_no_answer() {
    let (scratch, model) = stage();
    let (mut child, _first, port) = on_a_port(&scratch, &model);
    for head in ["POST / HTTP/1.1", "GET / HTTP/1.1", "OPTIONS / HTTP/1.1", "PRI * HTTP/2.0", "\x16\x03\x01"]
    {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = write!(stream, "{head}\r\nhost: localhost\r\n\r\n{INITIALIZE}\n");
        let mut told = Vec::new();
        match std::io::Read::read_to_end(&mut stream, &mut told) {
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
            Ok(_) => assert!(told.is_empty(), "{head}: {}", String::from_utf8_lossy(&told)),
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
