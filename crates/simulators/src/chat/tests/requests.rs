//! Requests to the whole vendor: paths, credentials, headers, and turns that are sent back.

use hyper::{HeaderMap, header::HeaderName};
use serde_json::json;

use super::*;
use crate::chat::Chat;
use crate::{
    Accepted, AnswerPiece, FailureKind, Fault, PlannedAnswer, Request, ScenarioEnd, StreamFrame, Usage,
    Vendor, VendorFailure, VendorResponse,
};

/// A request with these headers, `name: value` each.
pub(super) fn posted(path: &str, headers: &[&str], body: Value) -> Request {
    let mut map = HeaderMap::new();
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        map.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    }
    Request {
        method: "POST".to_owned(),
        path: path.to_owned(),
        query: String::new(),
        headers: map,
        size: 0,
        body,
        strictness: Strictness::Strict,
    }
}

/// An answer of these pieces.
pub(super) fn reply(pieces: Vec<AnswerPiece>, end: ScenarioEnd, faults: Vec<Fault>) -> PlannedAnswer {
    let usage =
        Usage { input: 100, cache_read: 40, cache_write: 10, output: 30, reasoning: 20, ..Usage::default() };
    PlannedAnswer { id: "abc".to_owned(), created: 7, pieces, end, faults, usage, cost: 0.25 }
}

pub(super) fn accepted(chat: &Chat, request: &Request, history: &AnswerHistory) -> Accepted {
    chat.check(request, history).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// The data of a stream, as far as it is JSON.
pub(super) fn chunks(answer: &VendorResponse) -> Vec<Value> {
    lines(answer).iter().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
}

pub(super) fn lines(answer: &VendorResponse) -> Vec<String> {
    let VendorResponse::Stream { frames, .. } = answer else { panic!("{answer:?}") };
    let texts = frames.iter().map(|frame| match frame {
        StreamFrame::Data(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        StreamFrame::Wait(_) => "(wait)".to_owned(),
        StreamFrame::Cut => "(cut)".to_owned(),
    });
    texts.map(|text| text.trim_end().to_owned()).collect()
}

pub(super) const BEARER: &str = "authorization: Bearer k";

#[test]
fn a_path_or_credential_that_the_host_lacks_is_refused() {
    let refused = |host: &str, path: &str, headers: &[&str]| {
        let chat = Chat::named(host).unwrap();
        let model = chat.book.model[0].id.clone();
        let request = posted(path, headers, super::request(&model, &json!({})));
        chat.check(&request, &AnswerHistory::default()).err().map(|refusal| refusal.to_string())
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(refused("openai", "/v1/chat/completions", &[BEARER]), None);
    assert_eq!(
        refused("openai", "/chat/completions", &[BEARER]),
        text("404 Invalid URL (POST /chat/completions)")
    );
    assert_eq!(
        refused("groq", "/openai/v1/chat/completions", &["authorization: k"]),
        text("401 Invalid API Key")
    );
    assert_eq!(refused("azure", "/openai/v1/chat/completions", &["api-key: k"]), None);
    assert_eq!(refused("azure", "/openai/deployments/gpt-5/chat/completions", &["api-key: k"]), None);
    assert_eq!(refused("ollama", "/v1/chat/completions", &[]), None);
}

#[test]
fn a_body_that_is_no_object_is_refused() {
    let chat = Chat::named("azure").unwrap();
    for body in [Value::Null, json!([]), json!("text"), json!(1)] {
        let request = posted("/openai/deployments/gpt-5.2/chat/completions", &["api-key: k"], body);
        let refusal = chat.check(&request, &AnswerHistory::default()).unwrap_err();
        assert_eq!(refusal.status, 400, "{refusal}");
    }
}

#[test]
fn a_deployment_in_the_path_is_the_model() {
    let chat = Chat::named("azure").unwrap();
    let path = "/openai/deployments/gpt-5.2/chat/completions";
    let request = posted(path, &["api-key: k"], super::request("whatever", &json!({})));
    assert_eq!(accepted(&chat, &request, &AnswerHistory::default()).model, "gpt-5.2");
}

/// The host's reaction to a conversation whose first turn it gave and `change` modified.
fn second(host: &str, path: &str, model: &str, change: impl Fn(&mut Value)) -> Result<Vec<String>, String> {
    let chat = Chat::named(host).unwrap();
    let mut history = AnswerHistory::default();
    let mut body = super::request(model, &json!({"tools": [tool("view", view_schema())]}));
    let first = accepted(&chat, &posted(path, &[BEARER], body.clone()), &history);
    let pieces = vec![
        AnswerPiece::thinking("hm"),
        AnswerPiece::Redacted("secret".to_owned()),
        AnswerPiece::call("view", &json!({"path": "a"})),
    ];
    let answer = chat.encode(&first, &reply(pieces, ScenarioEnd::Natural, vec![]), &mut history);
    let VendorResponse::Whole { body: answer, .. } = answer else { panic!() };
    let mut message = answer["choices"][0]["message"].clone();
    let id = message["tool_calls"][0]["id"].clone();
    change(&mut message);
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(message);
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": "seen"}));
    let second = chat.check(&posted(path, &[BEARER], body), &history);
    second.map(|accepted| accepted.violations).map_err(|refusal| refusal.message)
}

#[test]
fn a_turn_that_comes_back_as_it_was_given_is_taken() {
    for (host, path, model) in [
        ("gemini", "/v1beta/openai/chat/completions", "gemini-3.8-flash"),
        ("deepseek", "/chat/completions", "deepseek-v4-pro"),
        ("kimi", "/v1/chat/completions", "kimi-k3"),
        ("glm", "/api/paas/v4/chat/completions", "glm-5.3"),
        ("openrouter", "/api/v1/chat/completions", "anthropic/claude-sonnet-4.6"),
        ("mistral", "/v1/chat/completions", "mistral-medium-3-5"),
    ] {
        assert_eq!(second(host, path, model, |_| {}), Ok(Vec::new()), "{host}");
    }
}

#[test]
fn reasoning_that_was_changed_or_lost_is_noticed() {
    let openrouter = |change: fn(&mut Value)| {
        second("openrouter", "/api/v1/chat/completions", "anthropic/claude-sonnet-4.6", change).unwrap_err()
    };
    let changed = "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.";
    assert_eq!(openrouter(|message| message["reasoning_details"][0]["text"] = json!("other")), changed);
    assert_eq!(openrouter(|message| message["reasoning_details"].as_array_mut().unwrap().reverse()), changed);
    let lost = openrouter(|message| drop(message.as_object_mut().unwrap().remove("reasoning_details")));
    assert!(
        lost.starts_with(
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
        ),
        "{lost}"
    );
    let deepseek = second("deepseek", "/chat/completions", "deepseek-v4-pro", |message| {
        message["reasoning_content"] = json!("other");
    });
    assert_eq!(deepseek, Ok(vec!["messages[1]: reasoning_content is not what the host gave".to_owned()]));
}

#[test]
fn each_host_words_failures_of_its_own() {
    for (host, kind, status, part) in [
        ("openai", FailureKind::Quota, 429, "\"code\":\"insufficient_quota\""),
        ("openai", FailureKind::TooLarge, 429, "Request too large for gpt-4.1"),
        ("azure", FailureKind::Policy, 400, "ResponsibleAIPolicyViolation"),
        ("gemini", FailureKind::RateLimited, 429, "\"retryDelay\":\"3s\""),
        ("mistral", FailureKind::Overloaded, 429, "\"code\":\"3505\""),
        ("groq", FailureKind::TooLarge, 413, "\"code\":\"rate_limit_exceeded\""),
        ("deepseek", FailureKind::Quota, 402, "Insufficient Balance"),
        ("kimi", FailureKind::Overloaded, 429, "engine_overloaded_error"),
        ("glm", FailureKind::Quota, 429, "\"code\":\"1113\""),
        ("openrouter", FailureKind::Quota, 402, "\"retryable\":false"),
        ("copilot", FailureKind::Quota, 402, "quota_exceeded"),
        ("copilot", FailureKind::Overloaded, 503, "model_overloaded"),
        ("copilot", FailureKind::Other, 466, "too old"),
    ] {
        let book = Rulebook::named(host).unwrap();
        let failure = VendorFailure { retry_after: Some(3.0), ..VendorFailure::new(kind) };
        let refusal = super::super::wording::failure(&book, &failure, &book.model[0].id);
        assert_eq!(refusal.status, status, "{host} {kind:?}");
        assert!(refusal.body.to_string().contains(part), "{host} {kind:?}: {}", refusal.body);
        assert_eq!(refusal.headers.iter().filter(|(name, _)| name == "retry-after").count(), 1, "{host}");
    }
}
