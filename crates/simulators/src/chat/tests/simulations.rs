//! Whole conversations with every host, by a client that does everything right, and streams with every fault.

use std::collections::BTreeMap;

use serde_json::json;

use super::requests::posted;
use super::*;
use crate::chat::PROFILES;
use crate::{
    AnswerPiece, Caching, Fault, Profile, Request, Scenario, ScenarioEnd, ScenarioTurn, Simulator,
    StreamFrame, VendorResponse,
};

/// Tokens of the system message: enough to be cached anywhere, and little enough for a small window.
const SYSTEM: usize = 4000;

/// A client that knows the rules of each host.
struct Client {
    simulator: Simulator,
    path: String,
    body: Value,
    /// The fields of a message that the host accepts back.
    kept: Vec<String>,
}

impl Client {
    fn new(profile: &Profile, model: &str, scenario: Scenario) -> Self {
        let book = Rulebook::named(profile.name).unwrap();
        let body = json!({
            "model": model,
            "messages": [{"role": "system", "content": "word ".repeat(SYSTEM)}],
            "tools": [tool("view", view_schema())],
        });
        Self {
            simulator: profile.simulator().unwrap().with_scenario(scenario),
            path: format!("{}/chat/completions", profile.base_path),
            body,
            kept: book.messages.fields["assistant"].clone(),
        }
    }

    fn request(&self) -> Request {
        let last = self.body["messages"].as_array().unwrap().last().unwrap();
        let initiator = if last["role"] == "tool" { "x-initiator: agent" } else { "x-initiator: user" };
        let headers =
            ["authorization: Bearer k", "copilot-integration-id: c", "editor-version: e", initiator];
        posted(&self.path, &headers, self.body.clone())
    }

    fn say(&mut self, message: Value) {
        self.body["messages"].as_array_mut().unwrap().push(message);
    }

    /// Turns all contents into lists of parts, with marks only at these messages. Any number that is too large names
    /// the last message.
    fn mark(&mut self, marked: &[usize]) {
        let messages = self.body["messages"].as_array_mut().unwrap();
        let last = messages.len() - 1;
        for (index, message) in messages.iter_mut().enumerate() {
            let text = crate::chat::text(&message["content"]);
            let mut part = json!({"type": "text", "text": text});
            if marked.iter().any(|at| *at.min(&last) == index) {
                part["cache_control"] = json!({"type": "ephemeral"});
            }
            message["content"] = json!([part]);
        }
    }

    /// Sends the conversation, keeps the answer, and answers its calls.
    fn turn(&mut self) {
        let VendorResponse::Whole { status, body, .. } = self.simulator.answer(&self.request()) else {
            panic!()
        };
        assert_eq!(status, 200, "{}: {body}", self.path);
        let mut message = body["choices"][0]["message"].clone();
        message.as_object_mut().unwrap().retain(|name, _| self.kept.contains(name));
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        self.say(message);
        for call in calls {
            self.say(json!({"role": "tool", "tool_call_id": call["id"], "content": "seen"}));
        }
    }
}

fn look(thought: &str) -> ScenarioTurn {
    ScenarioTurn::say([
        AnswerPiece::thinking(thought),
        AnswerPiece::text("I look."),
        AnswerPiece::call("view", &json!({"path": "a"})),
        AnswerPiece::call("view", &json!({"path": "b"})),
    ])
}

#[test]
fn a_client_that_sends_back_what_came_is_never_refused_and_reads_from_the_cache() {
    for profile in PROFILES {
        for model in profile.models {
            let book = Rulebook::named(profile.name).unwrap();
            let found = book.model(model).unwrap();
            let caching = found.rules.caching.unwrap_or(book.caching).of_model(found.cache_minimum);
            let cached = matches!(caching, Caching::Automatic { .. }).then_some(0.8);
            let turns = [
                look("first"),
                look("second"),
                look("third"),
                ScenarioTurn::say([AnswerPiece::text("done")]),
            ];
            let scenario = Scenario { calls: Some(4), cached, ..Scenario::of(turns) };
            let mut client = Client::new(profile, model, scenario);
            client.say(json!({"role": "user", "content": "look around"}));
            (0..4).for_each(|_| client.turn());
            let finished = client.simulator.finish();
            assert!(finished.is_ok(), "{} {model}: {finished:?}", profile.name);
            let usage = finished.unwrap().usage;
            assert_eq!(
                usage.reasoning > 0,
                found.rules.reasons && thinks(profile.name),
                "{} {model}",
                profile.name
            );
        }
    }
}

/// Whether the host thinks by default.
fn thinks(host: &str) -> bool {
    !matches!(host, "mistral" | "qwen")
}

#[test]
fn claude_behind_chat_is_cached_up_to_marks_only() {
    for (host, mark) in [("openrouter", true), ("openrouter", false), ("litellm", true), ("copilot", true)] {
        let profile = PROFILES.iter().find(|profile| profile.name == host).unwrap();
        let book = Rulebook::named(host).unwrap();
        let claude = book.model.iter().find(|model| model.id.contains("claude")).unwrap();
        let turns = (0..4).map(|_| ScenarioTurn::say([AnswerPiece::text("so")]));
        let cached = mark.then_some(0.8);
        let mut client = Client::new(profile, &claude.id, Scenario { cached, ..Scenario::of(turns) });
        for _ in 0..4 {
            client.say(json!({"role": "user", "content": "go on"}));
            client.mark(if mark { &[0, usize::MAX] } else { &[] });
            client.turn();
        }
        let totals = client.simulator.finish().unwrap_or_else(|failures| panic!("{host}: {failures}"));
        assert_eq!(totals.usage.cache_read > 0, mark, "{host}");
        assert_eq!(totals.usage.cache_write > 0, mark, "{host}");
    }
}

#[test]
fn a_window_that_the_host_cuts_silently_fails_the_test() {
    let ollama = PROFILES.iter().find(|profile| profile.name == "ollama").unwrap();
    let mut client = Client::new(
        ollama,
        "qwen3-coder:30b",
        Scenario::of([ScenarioTurn::say([AnswerPiece::text("done")])]),
    );
    client.say(json!({"role": "user", "content": "word ".repeat(40_000)}));
    client.say(json!({"role": "user", "content": "and now?"}));
    client.turn();
    let problems = client.simulator.finish().unwrap_err().0;
    assert!(problems[0].contains("the host dropped the 1 oldest messages"), "{problems:?}");
    let usage = client.simulator.totals().usage;
    assert!(usage.input < 5000, "{usage:?}");
}

/// The bytes of a stream as a client reads them.
fn bytes(answer: VendorResponse) -> Vec<u8> {
    let VendorResponse::Stream { frames, .. } = answer else { panic!("{answer:?}") };
    frames.into_iter().fold(Vec::new(), |mut bytes, frame| {
        if let StreamFrame::Data(more) = frame {
            bytes.extend(more);
        }
        bytes
    })
}

/// The data of the events, whatever line endings they have.
fn data(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    text.split("\n\n").filter_map(|event| serde_json::from_str(event.strip_prefix("data: ")?).ok()).collect()
}

#[test]
fn every_fault_can_be_put_on_every_host_and_loses_nothing_that_was_said() {
    use Fault::*;
    let faults = [
        Crlf,
        NoFinalBlankLine,
        Crumbs,
        Gzip,
        Fragments,
        IndexZero,
        NoCallId,
        SameCallId,
        NameTwice,
        ArgumentsAsObject,
        DoubleArguments,
        NoDone,
        NoUsage,
        UsageInChoice,
    ];
    for profile in PROFILES {
        let turns = faults.map(|fault| {
            let mut turn = ScenarioTurn::ending(
                [AnswerPiece::text("é, I look."), AnswerPiece::call("view", &json!({"path": "ü"}))],
                ScenarioEnd::Natural,
            );
            if let crate::Act::Say { faults, .. } = &mut turn.act {
                faults.push(fault);
            }
            turn
        });
        let mut client = Client::new(profile, profile.models[0], Scenario::of(turns));
        client.body["stream"] = json!(true);
        client.say(json!({"role": "user", "content": "look"}));
        for fault in faults {
            let answer = bytes(client.simulator.answer(&client.request()));
            if fault == Gzip {
                assert_eq!(answer[..2], [0x1f, 0x8b], "{}", profile.name);
                continue;
            }
            let mut arguments: BTreeMap<String, String> = BTreeMap::new();
            let mut text = String::new();
            for chunk in data(&answer) {
                let delta = &chunk["choices"][0]["delta"];
                text.push_str(delta["content"].as_str().unwrap_or_default());
                for call in delta["tool_calls"].as_array().into_iter().flatten() {
                    let piece = match &call["function"]["arguments"] {
                        Value::String(piece) => piece.clone(),
                        object => object.to_string(),
                    };
                    arguments.entry(call["index"].to_string()).or_default().push_str(&piece);
                }
            }
            let expected = if fault == DoubleArguments { r#"{}{"path":"ü"}"# } else { r#"{"path":"ü"}"# };
            assert_eq!(text, "é, I look.", "{} {fault:?}", profile.name);
            assert_eq!(arguments.values().collect::<Vec<_>>(), [expected], "{} {fault:?}", profile.name);
        }
        assert_eq!(client.simulator.finish().err(), None, "{}", profile.name);
    }
}
