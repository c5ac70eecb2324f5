//! The hosts as their clients see them: refusals with their wording, and the format of answers.

mod answers;
mod documents;
mod gateways;
mod local_hosts;
mod openai_hosts;
mod reasoning_hosts;
mod requests;
mod simulations;

use serde_json::{Value, json};

use super::check::{self, Passed};
use super::rulebook::Rulebook;
use crate::{AnswerHistory, Refusal, Strictness};

/// A request with one prompt and these fields. A field that is null is omitted.
fn request(model: &str, fields: &Value) -> Value {
    let mut body = json!({"model": model, "messages": [{"role": "user", "content": "hello"}]});
    merge(&mut body, fields);
    body
}

/// A request in which a call of `view` was answered. `assistant` is added to the message with the call, `id` is the call's.
fn answered(model: &str, id: &str, assistant: &Value, fields: &Value) -> Value {
    let mut message = json!({
        "role": "assistant", "content": null,
        "tool_calls": [{"id": id, "type": "function", "function": {"name": "view", "arguments": "{}"}}],
    });
    merge(&mut message, assistant);
    let messages = json!([
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "look"},
        message,
        {"role": "tool", "tool_call_id": id, "content": "seen"},
    ]);
    let mut body = json!({"model": model, "messages": messages, "tools": [tool("view", view_schema())]});
    merge(&mut body, fields);
    body
}

fn merge(body: &mut Value, fields: &Value) {
    for (name, value) in fields.as_object().unwrap() {
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        } else {
            body[name] = value.clone();
        }
    }
}

fn tool(name: &str, parameters: Value) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}})
}

fn view_schema() -> Value {
    json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
}

fn image(url: &str) -> Value {
    json!([{"role": "user", "content": [
        {"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}},
    ]}])
}

const PNG: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";

/// The status and message of the refusal, or the rules of the simulator that were broken.
fn outcome(host: &str, body: &Value) -> Result<Vec<String>, (u16, String)> {
    outcome_after(host, body, &AnswerHistory::default())
}

fn outcome_after(host: &str, body: &Value, history: &AnswerHistory) -> Result<Vec<String>, (u16, String)> {
    let book = Rulebook::named(host).unwrap();
    match check::check(&book, body, history, Strictness::Strict) {
        Ok(Passed { violations, .. }) => Ok(violations),
        Err(Refusal { status, message, .. }) => Err((status, message)),
    }
}

fn passes(host: &str, bodies: impl IntoIterator<Item = Value>) {
    for body in bodies {
        assert_eq!(outcome(host, &body), Ok(Vec::new()), "{host}: {body}");
    }
}

/// Each request is refused with exactly this message.
fn refuses<'a>(host: &str, cases: impl IntoIterator<Item = (Value, u16, &'a str)>) {
    for (body, status, words) in cases {
        assert_eq!(outcome(host, &body), Err((status, words.to_owned())), "{host}: {body}");
    }
}

/// The body of a refusal, for hosts whose errors have a form of their own.
fn refusal_body(host: &str, body: &Value) -> Value {
    let book = Rulebook::named(host).unwrap();
    match check::check(&book, body, &AnswerHistory::default(), Strictness::Strict) {
        Ok(_) => panic!("{host} accepts {body}"),
        Err(refusal) => refusal.body,
    }
}

#[test]
fn every_host_takes_a_prompt_a_tool_and_its_result() {
    for profile in super::PROFILES {
        let book = Rulebook::named(profile.name).unwrap();
        for model in profile.models {
            let found = book.model(model).unwrap_or_else(|| panic!("{} has no {model}", profile.name));
            assert!(found.rules.tools, "{}: {model}", profile.name);
            passes(profile.name, [request(model, &json!({"stream": true}))]);
        }
    }
}

#[test]
fn unknown_fields_are_listed_when_the_simulator_is_lenient() {
    let book = Rulebook::named("groq").unwrap();
    let body =
        answered("llama-3.3-70b-versatile", "c", &json!({"reasoning": "r"}), &json!({"verbosity": "low"}));
    let passed = check::check(&book, &body, &AnswerHistory::default(), Strictness::Lenient).unwrap();
    assert_eq!(passed.foreign, ["verbosity", "messages[2].reasoning"]);
}

#[test]
fn a_request_without_its_parts_or_for_an_unknown_model_is_refused() {
    for (host, body, status, words) in [
        ("openai", json!({}), 400, "Missing required parameter: 'model'."),
        (
            "openai",
            json!({"model": "gpt-4.1", "messages": []}),
            400,
            "Missing required parameter: 'messages'.",
        ),
        (
            "openai",
            request("gpt-9", &json!({})),
            404,
            "The model `gpt-9` does not exist or you do not have access to it.",
        ),
        ("mistral", request("x", &json!({})), 400, "Invalid model: x"),
        ("deepseek", request("x", &json!({})), 400, "Model Not Exist"),
        ("copilot", request("x", &json!({})), 400, "The requested model is not supported."),
        ("ollama", request("x", &json!({})), 404, "model \"x\" not found, try pulling it first"),
        ("vllm", request("x", &json!({})), 404, "The model `x` does not exist."),
    ] {
        refuses(host, [(body, status, words)]);
    }
}
