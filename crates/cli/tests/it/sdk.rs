//! The server as the SDKs drive it: the real binary over stdio and TCP, with a client of our own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hangar_protocol::rpc::{FrameDecoder, encode};
use hangar_test_support::{Invocation, ModelServer, Scratch};
use serde_json::{Value, json};

use crate::api::Api;
use crate::hangar;
use crate::schema::Schema;

thread_local! {
    /// The published schema of the server's messages. Every message in these tests is checked against it.
    static PUBLISHED: (Api, Schema) = (Api::load(), Schema::load());
}

/// Far above what anything needs on a loaded machine; reaching it is a failure, never a measurement.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const ID: &str = "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001";

/// Where a client's server is.
enum Server {
    /// A process of its own, on its standard input and output.
    Own(Child),
    /// One that others may use as well.
    Shared(TcpStream),
}

/// A client of a server.
pub(crate) struct Client {
    server: Server,
    output: Option<Box<dyn Write>>,
    messages: Receiver<Value>,
    /// Notifications and requests of the server that nobody has looked at yet.
    seen: Vec<Value>,
    next_id: i64,
    /// The methods of requests that are not answered yet.
    asked: BTreeMap<i64, String>,
    keeper: Option<Keeper>,
}

/// Answers what the server asks of a client that keeps files; `None` is no answer.
pub(crate) type Keeper = Box<dyn FnMut(&str, &Value) -> Option<Value>>;

impl Client {
    pub(crate) fn start(scratch: &Scratch, model: &ModelServer) -> Self {
        Self::of(hangar(scratch, model))
    }

    pub(crate) fn start_with(scratch: &Scratch, model: &ModelServer, more: &[&str]) -> Self {
        Self::of(hangar(scratch, model).args(more))
    }

    /// A client of a server with an environment of its own.
    pub(crate) fn of(server: Invocation) -> Self {
        let args = ["--headless", "--no-auto-update", "--log-level", "error", "--stdio", "--no-auto-login"];
        Self::with(server.args(args))
    }

    /// A client of a server that is started with no other flags than it has.
    pub(crate) fn with(server: Invocation) -> Self {
        let mut child = server.open();
        let output = child.stdin.take().unwrap();
        let input = child.stdout.take().unwrap();
        let mut client = Self::over(Server::Own(child), input, output);
        client.greet(json!({}));
        client
    }

    /// One more client of a server on TCP.
    pub(crate) fn join(port: u16, token: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (input, output) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        let mut client = Self::over(Server::Shared(stream), input, output);
        client.greet(json!({ "token": token }));
        client
    }

    fn over(server: Server, mut input: impl Read + Send + 'static, output: impl Write + 'static) -> Self {
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut decoder = FrameDecoder::default();
            let mut buffer = [0; 64 << 10];
            while let Ok(count @ 1..) = input.read(&mut buffer) {
                decoder.feed(&buffer[..count]);
                while let Some(body) =
                    decoder.next_frame().expect("the server writes frames and nothing else")
                {
                    if sender.send(serde_json::from_slice(&body).expect("a frame is JSON")).is_err() {
                        return;
                    }
                }
            }
        });
        let (output, seen): (Option<Box<dyn Write>>, _) = (Some(Box::new(output)), Vec::new());
        Self { server, output, messages, seen, next_id: 0, asked: BTreeMap::new(), keeper: None }
    }

    fn greet(&mut self, params: Value) {
        let hello = self.call("connect", params);
        assert_eq!((&hello["ok"], &hello["protocolVersion"]), (&json!(true), &json!(3)));
    }

    pub(crate) fn write(&mut self, message: &Value) {
        let output = self.output.as_mut().expect("the connection is open");
        output
            .write_all(&encode(message.to_string().as_bytes()))
            .and_then(|()| output.flush())
            .expect("the server reads");
    }

    /// The answer to a request, with its `result` or `error`.
    pub(crate) fn answer(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer_to(id)
    }

    /// Makes a request and does not wait for its answer.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.asked.insert(id, method.to_owned());
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn answer_to(&mut self, id: i64) -> Value {
        let is_it = |message: &Value| message["id"] == id && message.get("method").is_none();
        loop {
            if let Some(at) = self.seen.iter().position(is_it) {
                return self.seen.remove(at);
            }
            let message = self.next(&format!("answer to request {id}"));
            self.seen.extend(message);
        }
    }

    /// Whether the answer to a request is among what came so far.
    pub(crate) fn has_answer(&self, id: i64) -> bool {
        self.seen.iter().any(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Answers what is asked of the keeper from here on.
    pub(crate) fn keep(&mut self, keeper: Keeper) {
        self.keeper = Some(keeper);
    }

    /// Makes sure that the published SDKs could read a message.
    fn check(&mut self, message: &Value) {
        let answered = message["id"].as_i64().filter(|_| message.get("method").is_none());
        let answered = answered.and_then(|id| self.asked.remove(&id));
        let kind = message["params"]["event"]["type"].as_str().unwrap_or_default();
        let problems = PUBLISHED.with(|(api, schema)| match (message["method"].as_str(), answered) {
            // Clients pass over events of ours that they do not know.
            (Some("session.event"), _) if kind.starts_with("hangar.") => Vec::new(),
            (Some("session.event"), _) => schema.problems(&message["params"]["event"]),
            (Some(question), _) => api.question_problems(question, &message["params"]),
            (None, Some(method)) => {
                let result = message.get("result");
                result.map(|result| api.problems(&method, result)).unwrap_or_default()
            }
            (None, None) => Vec::new(),
        });
        assert!(problems.is_empty(), "not as published: {problems:#?}\n{message}");
    }

    /// The next message that is not for the keeper; `None` for one that was.
    fn next(&mut self, what: &str) -> Option<Value> {
        let message =
            self.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {what}: {:?}", self.seen));
        self.check(&message);
        let method = message["method"].as_str().filter(|method| method.starts_with("sessionFs."));
        let (Some(method), Some(keeper)) = (method, &mut self.keeper) else { return Some(message) };
        if let Some(result) = keeper(method, &message["params"]) {
            self.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        }
        None
    }

    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    pub(crate) fn create(&mut self, mut config: Value) -> Value {
        config["sessionId"] = json!(ID);
        self.call("session.create", config)
    }

    pub(crate) fn send(&mut self, prompt: &str) {
        let sent = self.call("session.send", json!({ "sessionId": ID, "prompt": prompt }));
        assert!(sent["messageId"].is_string(), "{sent}");
    }

    /// The first message from here on that is wanted.
    pub(crate) fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(at) = self.seen.iter().position(&wanted) {
                return self.seen.drain(..=at).next_back().unwrap();
            }
            let message = self.next(what);
            self.seen.extend(message);
        }
    }

    /// The data of the next event of a type.
    pub(crate) fn event(&mut self, kind: &str) -> Value {
        let mut message = self.until(kind, |message| {
            message["method"] == "session.event" && message["params"]["event"]["type"] == kind
        });
        message["params"]["event"]["data"].take()
    }

    /// Leaves what nobody has looked at unseen.
    pub(crate) fn forget(&mut self) {
        self.seen.clear();
    }

    pub(crate) fn kinds(&mut self) -> Vec<String> {
        let events = self.call("session.getMessages", json!({ "sessionId": ID }));
        let events = events["events"].as_array().unwrap();
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// Closes standard input, which ends the server.
    pub(crate) fn finish(mut self) {
        self.output = None;
        let status = self.process().wait().unwrap();
        assert!(status.success(), "{status}");
    }

    pub(crate) fn pid(&self) -> u32 {
        match &self.server {
            Server::Own(child) => child.id(),
            Server::Shared(_) => panic!("the server is not this client's"),
        }
    }

    pub(crate) fn kill(mut self) {
        let process = self.process();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    fn process(&mut self) -> &mut Child {
        match &mut self.server {
            Server::Own(child) => child,
            Server::Shared(_) => panic!("the server is not this client's"),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The connection may be closed and the server gone already; a test that failed must not leave its server behind.
        match &mut self.server {
            Server::Own(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Server::Shared(stream) => {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

pub(crate) fn stage() -> (Scratch, ModelServer) {
    (Scratch::new(), ModelServer::start())
}

/// A client with a session.
pub(crate) fn session(config: Value) -> (Scratch, ModelServer, Client) {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(config);
    (scratch, model, client)
}

/// Parameters of a method of that session.
pub(crate) fn of_session(mut params: Value) -> Value {
    params["sessionId"] = json!(ID);
    params
}

#[test]
fn a_session_answers_and_its_end_is_on_record() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let created = client.create(json!({}));
    assert_eq!(created["sessionId"], ID);
    assert_eq!(client.event("session.start")["sessionId"], ID);
    client.send("SAY:hello there");
    assert_eq!(client.event("user.message")["content"], "SAY:hello there");
    assert_eq!(client.event("assistant.message")["content"], "hello there");
    client.event("session.idle");
    let kinds = client.kinds();
    assert_eq!(kinds.first().map(String::as_str), Some("session.start"));
    assert!(!kinds.iter().any(|kind| kind == "session.idle"), "{kinds:?}");
    let listed = client.call("session.list", json!({}));
    assert_eq!(listed["sessions"][0]["sessionId"], ID);
    client.finish();
    assert!(scratch.log(ID).contains("\"session.shutdown\""));
}

#[test]
fn pieces_come_only_when_they_are_wanted() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "streaming": true }));
    client.send("SAY:in pieces");
    assert!(client.event("assistant.message_delta")["deltaContent"].is_string());
    client.event("session.idle");
    client.finish();
}

#[test]
fn a_client_runs_its_own_tool() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let tool = json!({ "name": "lookup", "description": "d", "parameters": { "type": "object" }, "skipPermission": true });
    client.create(json!({ "tools": [tool] }));
    client.send("TOOL:lookup:{\"key\":\"a\"}\nSAY:done");
    let asked = client.event("external_tool.requested");
    assert_eq!((&asked["toolName"], &asked["arguments"]["key"]), (&json!("lookup"), &json!("a")));
    let answer = json!({ "sessionId": ID, "requestId": asked["requestId"], "result": "found it" });
    assert_eq!(client.call("session.tools.handlePendingToolCall", answer.clone())["success"], true);
    assert_eq!(
        client.call("session.tools.handlePendingToolCall", answer)["success"],
        false,
        "answered already"
    );
    assert_eq!(client.event("tool.execution_complete")["result"]["content"], "found it");
    client.event("session.idle");
    assert!(model.last_request()["messages"].to_string().contains("found it"));
    client.finish();
}

/// Asks to create a file, answers the permission, and says whether the file is there and how many requests were made.
#[track_caller]
fn check_permission(decision: Value, outcome: &str, written: bool) {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "requestPermission": true }));
    let path = scratch.work().join("new.txt");
    let arguments = json!({ "path": path, "file_text": "x" });
    client.send(&format!("TOOL:create:{arguments}\nSAY:done"));
    let asked = client.event("permission.requested");
    assert_eq!(asked["permissionRequest"]["kind"], "write");
    let answer = json!({ "sessionId": ID, "requestId": asked["requestId"], "result": decision });
    assert_eq!(client.call("session.permissions.handlePendingPermissionRequest", answer)["success"], true);
    assert_eq!(client.event("permission.completed")["result"]["kind"], outcome);
    client.event("session.idle");
    assert_eq!(path.exists(), written);
    client.finish();
}

#[test]
fn a_permission_is_granted_or_refused_by_the_client() {
    check_permission(json!({ "kind": "approve-once" }), "approved", true);
    check_permission(json!({ "kind": "approve-for-session" }), "approved-for-session", true);
    check_permission(json!({ "kind": "reject", "feedback": "no" }), "denied-interactively-by-user", false);
}

#[test]
fn without_a_client_that_answers_nothing_is_asked_and_nothing_permitted() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    let path = scratch.work().join("new.txt");
    client.send(&format!("TOOL:create:{}\nSAY:done", json!({ "path": path, "file_text": "x" })));
    assert_eq!(client.event("tool.execution_complete")["error"]["code"], "denied");
    client.event("session.idle");
    assert!(!path.exists());
    client.finish();
}

#[test]
fn an_abort_ends_the_run_and_leaves_the_session_usable() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    client.send("DELAY:3600000\nSAY:never");
    client.event("assistant.turn_start");
    assert_eq!(client.call("session.abort", json!({ "sessionId": ID }))["success"], true);
    assert_eq!(client.event("session.idle")["aborted"], true);
    client.send("SAY:still here");
    assert_eq!(client.event("assistant.message")["content"], "still here");
    client.event("session.idle");
    client.finish();
}

#[test]
fn a_session_outlives_a_killed_server() {
    let (scratch, model) = stage();
    let mut first = Client::start(&scratch, &model);
    let tool = json!({ "name": "lookup", "parameters": { "type": "object" }, "skipPermission": true });
    first.create(json!({ "tools": [tool] }));
    first.send("remember the word\nTOOL:lookup:{}\nSAY:never");
    first.event("external_tool.requested");
    first.kill();

    let mut second = Client::start(&scratch, &model);
    let resumed = second.call("session.resume", json!({ "sessionId": ID }));
    assert_eq!(resumed["sessionId"], ID);
    assert_eq!(second.event("session.resume")["sessionWasActive"], false);
    assert_eq!(second.event("tool.execution_complete")["error"]["code"], "interrupted");
    second.send("SAY:back again");
    assert_eq!(second.event("assistant.message")["content"], "back again");
    second.event("session.idle");
    let asked = model.last_request()["messages"].to_string();
    assert!(asked.contains("remember the word") && asked.contains("was interrupted"), "{asked}");
    second.finish();
}

#[test]
fn hooks_are_asked_and_obeyed() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "hooks": true }));
    client.send("TOOL:bash:{\"command\":\"touch made\",\"description\":\"d\"}\nSAY:done");
    loop {
        let asked = client.until("hooks.invoke", |message| message["method"] == "hooks.invoke");
        let kind = asked["params"]["hookType"].clone();
        let output = if kind == "preToolUse" {
            json!({ "permissionDecision": "deny", "permissionDecisionReason": "not today" })
        } else {
            Value::Null
        };
        client.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "output": output } }));
        if kind == "agentStop" {
            break;
        }
    }
    client.event("session.idle");
    assert!(!scratch.work().join("made").exists());
    assert!(model.last_request()["messages"].to_string().contains("Denied by preToolUse hook: not today"));
    client.call("session.abort", json!({ "sessionId": ID }));
    client.kill();
}

#[test]
fn a_question_reaches_the_client_and_its_answer_the_model() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "requestUserInput": true }));
    client.send("TOOL:ask_user:{\"question\":\"which?\",\"choices\":[\"a\",\"b\"]}\nSAY:done");
    let asked = client.until("userInput.request", |message| message["method"] == "userInput.request");
    assert_eq!(
        (&asked["params"]["question"], &asked["params"]["choices"][1]),
        (&json!("which?"), &json!("b"))
    );
    client.write(
        &json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "answer": "b", "wasFreeform": false } }),
    );
    client.event("session.idle");
    assert!(model.last_request()["messages"].to_string().contains("User selected: b"));
    client.finish();
}

#[test]
fn the_system_prompt_is_the_client_s() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "systemMessage": { "mode": "replace", "content": "You are a teapot." } }));
    client.send("SAY:x");
    client.event("session.idle");
    assert_eq!(model.last_request()["messages"][0]["content"], "You are a teapot.");
    client.finish();
}

#[test]
fn wrong_requests_get_the_right_errors() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let error = client.answer("session.fly", json!({}));
    assert_eq!(
        (&error["error"]["code"], &error["error"]["message"]),
        (&json!(-32601), &json!("Unhandled method session.fly"))
    );
    let error = client.answer("session.send", json!({ "sessionId": "nope", "prompt": "x" }));
    assert_eq!(error["error"]["code"], -32603);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("Request session.send failed with message: Session not found"), "{message}");
    let error = client.answer("session.send", json!({ "sessionId": ID }));
    assert_eq!(error["error"]["code"], -32602);
    assert_eq!(client.call("ping", json!({ "message": "x" }))["message"], "pong: x");
    client.finish();
}

#[test]
fn a_flag_that_is_not_there_is_named() {
    let (scratch, model) = stage();
    let run =
        hangar(&scratch, &model).args(["--no-such-flag", "--headless", "--stdio"]).finish().expect_exit(1);
    assert!(run.stderr.contains("--no-such-flag"), "{}", run.stderr);
}

#[test]
fn every_method_answers_whatever_it_is_given() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let odd = json!({
        "sessionId": ID, "requestId": "x", "path": "../../../etc/passwd", "name": " ", "eventId": "x", "mode": "x",
        "result": 7, "modelId": "", "cursor": "x", "max": 0, "context": [], "credentials": null, "command": "/x",
        "workingDirectory": "/nowhere/at/all", "content": "c", "prompt": "SAY:x", "enabled": true, "kind": {},
    });
    let kinds =
        [Value::Null, json!([]), json!({}), json!({ "sessionId": 7 }), json!({ "sessionId": ID }), odd];
    for method in hangar_server::methods::names().filter(|method| *method != "runtime.shutdown") {
        for params in &kinds {
            client.create(json!({}));
            // Refused or done, but answered.
            client.answer(method, params.clone());
        }
    }
    assert_eq!(client.call("ping", json!({}))["message"], "pong");
    client.finish();
}

#[test]
fn many_sessions_work_side_by_side_and_none_is_lost() {
    const SESSIONS: usize = 40;
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let tool = json!({ "name": "lookup", "parameters": { "type": "object" }, "skipPermission": true });
    let ids: Vec<String> = (0..SESSIONS).map(|n| format!("0b5a2a57-6f0a-4b5e-9f0c-{n:012}")).collect();
    for id in &ids {
        client.call("session.create", json!({ "sessionId": id, "tools": [tool] }));
        client.call("session.send", json!({ "sessionId": id, "prompt": "TOOL:lookup:{}\nSAY:done" }));
    }
    let mut idle = 0;
    while idle < SESSIONS {
        let message = client.until("an event", |message| message["method"] == "session.event");
        let (session, event) = (&message["params"]["sessionId"], &message["params"]["event"]);
        match event["type"].as_str().unwrap() {
            "external_tool.requested" => {
                let answer =
                    json!({ "sessionId": session, "requestId": event["data"]["requestId"], "result": "r" });
                assert_eq!(client.call("session.tools.handlePendingToolCall", answer)["success"], true);
            }
            "session.error" => panic!("{event}"),
            "session.idle" => idle += 1,
            _ => {}
        }
    }
    let listed = client.call("session.list", json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), SESSIONS);
    client.finish();
    for id in &ids {
        assert!(scratch.log(id).contains("\"session.shutdown\""), "{id}");
    }
}

/// Begins to wait for an event that does not come, does something about it, and says how the waiting ended.
fn check_waiting(end: impl FnOnce(&mut Client)) -> Value {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    let params = json!({ "sessionId": ID, "types": ["no.such.event"], "waitMs": 60_000 });
    client.write(
        &json!({ "jsonrpc": "2.0", "id": "wait", "method": "session.eventLog.read", "params": params }),
    );
    end(&mut client);
    let mut answer = client.until("the end of the wait", |message| message["id"] == "wait");
    client.finish();
    answer.as_object_mut().unwrap().remove("jsonrpc");
    answer
}

#[test]
fn a_request_that_only_waits_can_be_taken_back() {
    let answer = check_waiting(|client| {
        client.write(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": "wait" } }));
    });
    let message = "Request session.eventLog.read was cancelled";
    assert_eq!(answer, json!({ "id": "wait", "error": { "code": -32800, "message": message } }));
}

#[test]
fn the_end_of_a_session_ends_the_wait_for_its_events() {
    let answer = check_waiting(|client| {
        client.call("session.shutdown", json!({ "sessionId": ID }));
    });
    assert_eq!(answer["result"]["events"], json!([]));
}
