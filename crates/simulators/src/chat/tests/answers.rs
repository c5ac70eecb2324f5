//! Answers in the form of each host, whole and streamed.

use serde_json::json;

use super::requests::{BEARER, accepted, chunks, lines, posted, reply};
use super::*;
use crate::chat::Chat;
use crate::{AnswerPiece, FailureKind, Fault, ScenarioEnd, Vendor, VendorFailure, VendorResponse};

const HOSTS: &[(&str, &str)] = &[
    ("openai", "/v1/chat/completions"),
    ("azure", "/openai/v1/chat/completions"),
    ("gemini", "/v1beta/openai/chat/completions"),
    ("xai", "/v1/chat/completions"),
    ("mistral", "/v1/chat/completions"),
    ("groq", "/openai/v1/chat/completions"),
    ("deepseek", "/chat/completions"),
    ("kimi", "/v1/chat/completions"),
    ("qwen", "/compatible-mode/v1/chat/completions"),
    ("glm", "/api/paas/v4/chat/completions"),
    ("openrouter", "/api/v1/chat/completions"),
    ("litellm", "/chat/completions"),
    ("copilot", "/chat/completions"),
    ("ollama", "/v1/chat/completions"),
    ("llama-cpp", "/v1/chat/completions"),
    ("vllm", "/v1/chat/completions"),
    ("lm-studio", "/v1/chat/completions"),
];

/// The answer of a host to a request with these fields.
fn answer(
    host: &str,
    model: Option<&str>,
    fields: &Value,
    pieces: Vec<AnswerPiece>,
    end: ScenarioEnd,
    faults: Vec<Fault>,
) -> VendorResponse {
    let chat = Chat::named(host).unwrap();
    let (_, path) = HOSTS.iter().find(|(name, _)| *name == host).unwrap();
    let model = model.unwrap_or(&chat.book.model[0].id).to_owned();
    let headers = [BEARER, "copilot-integration-id: c", "editor-version: e"];
    let request = posted(path, &headers, super::request(&model, fields));
    let mut history = AnswerHistory::default();
    let accepted = accepted(&chat, &request, &history);
    chat.encode(&accepted, &reply(pieces, end, faults), &mut history)
}

fn streamed(host: &str, pieces: Vec<AnswerPiece>, end: ScenarioEnd, faults: Vec<Fault>) -> VendorResponse {
    let fields = match host {
        "mistral" => json!({"stream": true}),
        _ => json!({"stream": true, "stream_options": {"include_usage": true}}),
    };
    answer(host, None, &fields, pieces, end, faults)
}

fn calls() -> Vec<AnswerPiece> {
    vec![
        AnswerPiece::text("I look at both."),
        AnswerPiece::call("view", &json!({"path": "a.txt"})),
        AnswerPiece::call("view", &json!({"path": "b.txt"})),
    ]
}

fn text(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
}

#[test]
fn a_stream_says_what_the_whole_answer_says() {
    for (host, _) in HOSTS {
        let whole = answer(host, None, &json!({}), calls(), ScenarioEnd::Natural, vec![]);
        let VendorResponse::Whole { body, .. } = whole else { panic!() };
        let chunks = chunks(&streamed(host, calls(), ScenarioEnd::Natural, vec![]));
        assert_eq!(text(&chunks), "I look at both.", "{host}");
        let message = &body["choices"][0]["message"];
        for (index, call) in message["tool_calls"].as_array().unwrap().iter().enumerate() {
            let deltas = chunks.iter().flat_map(|chunk| {
                chunk["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten()
            });
            let own: Vec<&Value> = deltas.filter(|delta| delta["index"] == index).collect();
            let arguments: String =
                own.iter().filter_map(|delta| delta["function"]["arguments"].as_str()).collect();
            assert_eq!(call["function"]["arguments"], arguments, "{host}");
            assert_eq!(own[0]["id"], call["id"], "{host}");
            assert_eq!(own[0].get("extra_content"), call.get("extra_content"), "{host}");
        }
        let finish = chunks.iter().find_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
        assert_eq!(finish, body["choices"][0]["finish_reason"].as_str(), "{host}");
    }
}

#[test]
fn every_stream_ends_with_done_and_reports_usage_where_the_host_has_it() {
    for (host, _) in HOSTS {
        let at = match *host {
            "kimi" => "/choices/0/usage",
            _ => "/usage",
        };
        let answer = streamed(host, vec![AnswerPiece::text("hi")], ScenarioEnd::Natural, vec![]);
        assert_eq!(lines(&answer).last().unwrap(), "data: [DONE]", "{host}");
        let chunks = chunks(&answer);
        let reports: Vec<&Value> = chunks.iter().filter_map(|chunk| chunk.pointer(at)).collect();
        assert_eq!(reports.len(), 1, "{host}");
        assert_eq!(reports[0]["prompt_tokens"], 100, "{host}");
        let silent = match answer_without_usage(host) {
            VendorResponse::Stream { .. } => super::requests::chunks(&answer_without_usage(host)),
            VendorResponse::Whole { .. } => panic!(),
        };
        assert!(silent.iter().all(|chunk| chunk.pointer(at).is_none()), "{host}");
    }
}

fn answer_without_usage(host: &str) -> VendorResponse {
    streamed(host, vec![AnswerPiece::text("hi")], ScenarioEnd::Natural, vec![Fault::NoUsage])
}

#[test]
fn usage_has_the_fields_of_its_host() {
    for (host, pointer, expected) in [
        ("openai", "/usage/prompt_tokens_details/cached_tokens", json!(40)),
        ("openai", "/usage/completion_tokens_details/reasoning_tokens", json!(20)),
        ("gemini", "/usage/completion_tokens", json!(10)),
        ("xai", "/usage/completion_tokens", json!(10)),
        ("xai", "/usage/total_tokens", json!(130)),
        ("deepseek", "/usage/prompt_cache_hit_tokens", json!(40)),
        ("deepseek", "/usage/prompt_cache_miss_tokens", json!(60)),
        ("groq", "/x_groq/usage/prompt_tokens", json!(100)),
        ("kimi", "/choices/0/usage/cached_tokens", json!(40)),
        ("openrouter", "/usage/cost", json!(0.25)),
        ("openrouter", "/usage/prompt_tokens_details/cache_write_tokens", json!(10)),
    ] {
        let chunks = chunks(&streamed(host, vec![AnswerPiece::text("hi")], ScenarioEnd::Natural, vec![]));
        let found = chunks.iter().find_map(|chunk| chunk.pointer(pointer));
        assert_eq!(found, Some(&expected), "{host} {pointer}");
    }
    let VendorResponse::Stream { headers, .. } = streamed("litellm", vec![], ScenarioEnd::Natural, vec![])
    else {
        panic!()
    };
    assert!(headers.contains(&("x-litellm-response-cost".to_owned(), "0.25".to_owned())), "{headers:?}");
}

#[test]
fn reasoning_comes_in_the_form_of_its_host() {
    let check = |host: &str, model: Option<&str>, fields: Value, pointer: &str, expected: Value| {
        let mut asked = json!({"stream": true});
        merge(&mut asked, &fields);
        let answer = answer(
            host,
            model,
            &asked,
            vec![AnswerPiece::thinking("hm"), AnswerPiece::text("so")],
            ScenarioEnd::Natural,
            vec![],
        );
        let chunks = chunks(&answer);
        let found = chunks.iter().find_map(|chunk| chunk["choices"][0]["delta"].pointer(pointer));
        assert_eq!(found, Some(&expected), "{host} {pointer}");
    };
    check("deepseek", None, json!({}), "/reasoning_content", json!("hm"));
    check("kimi", None, json!({}), "/reasoning_content", json!("hm"));
    check("glm", None, json!({}), "/reasoning_content", json!("hm"));
    check("qwen", None, json!({"enable_thinking": true}), "/reasoning_content", json!("hm"));
    check("groq", None, json!({}), "/reasoning", json!("hm"));
    check("ollama", Some("gpt-oss:20b"), json!({}), "/reasoning", json!("hm"));
    check("openrouter", None, json!({}), "/reasoning_details/0/text", json!("hm"));
    check("openrouter", None, json!({}), "/reasoning_details/0/format", json!("anthropic-claude-v1"));
    check("copilot", Some("gemini-3.1-pro-preview"), json!({}), "/reasoning_text", json!("hm"));
    check(
        "mistral",
        None,
        json!({"reasoning_effort": "high"}),
        "/content/0",
        json!({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}),
    );
}

#[test]
fn a_host_that_was_told_not_to_think_does_not() {
    for (host, fields) in [
        ("deepseek", json!({"thinking": {"type": "disabled"}})),
        ("qwen", json!({})),
        ("mistral", json!({"reasoning_effort": "none"})),
        ("openai", json!({})),
    ] {
        let answer = answer(
            host,
            None,
            &fields,
            vec![AnswerPiece::thinking("hm"), AnswerPiece::text("so")],
            ScenarioEnd::Natural,
            vec![],
        );
        let VendorResponse::Whole { body, .. } = answer else { panic!() };
        assert_eq!(body["choices"][0]["message"], json!({"role": "assistant", "content": "so"}), "{host}");
    }
}

#[test]
fn gemini_signs_the_first_call_of_a_turn_only() {
    let VendorResponse::Whole { body, .. } =
        answer("gemini", None, &json!({}), calls(), ScenarioEnd::Natural, vec![])
    else {
        panic!()
    };
    let calls = &body["choices"][0]["message"]["tool_calls"];
    assert!(calls[0].pointer("/extra_content/google/thought_signature").is_some_and(Value::is_string));
    assert_eq!(calls[1].get("extra_content"), None);
}

#[test]
fn finish_reasons_are_the_words_of_the_host() {
    for (host, pieces, end, word) in [
        ("openai", calls(), ScenarioEnd::Natural, "tool_calls"),
        ("openai", vec![], ScenarioEnd::Natural, "stop"),
        ("openai", vec![], ScenarioEnd::Length, "length"),
        ("openai", vec![], ScenarioEnd::ContentFilter, "content_filter"),
        ("xai", calls(), ScenarioEnd::Natural, ""),
        ("mistral", vec![], ScenarioEnd::ContextWindow, "model_length"),
        ("glm", vec![], ScenarioEnd::ContextWindow, "model_context_window_exceeded"),
        ("glm", vec![], ScenarioEnd::ContentFilter, "sensitive"),
        ("vllm", vec![], ScenarioEnd::Other("abort".to_owned()), "abort"),
    ] {
        let VendorResponse::Whole { body, .. } = answer(host, None, &json!({}), pieces, end, vec![]) else {
            panic!()
        };
        assert_eq!(body["choices"][0]["finish_reason"], word, "{host}");
    }
}

#[test]
fn some_hosts_say_something_before_the_answer() {
    let first = |host: &str| {
        lines(&streamed(host, vec![AnswerPiece::text("hi")], ScenarioEnd::Natural, vec![]))[0].clone()
    };
    assert_eq!(first("deepseek"), ": keep-alive");
    assert_eq!(first("openrouter"), ": OPENROUTER PROCESSING");
    let azure: Value = serde_json::from_str(first("azure").strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(azure["choices"], json!([]));
    assert!(azure["prompt_filter_results"].is_array());
}

#[test]
fn an_error_inside_a_stream_has_the_form_of_its_host() {
    let failed = || ScenarioEnd::Failed(VendorFailure::new(FailureKind::Overloaded));
    for (host, pointer, expected) in [
        ("openai", "/error/code", json!("server_is_overloaded")),
        ("gemini", "/error/status", json!("UNAVAILABLE")),
        ("mistral", "/type", json!("service_tier_capacity_exceeded")),
        ("openrouter", "/choices/0/finish_reason", json!("error")),
        ("openrouter", "/error/metadata/availability/retryable", json!(true)),
        ("lm-studio", "/error", json!("The server is currently overloaded. Please try again later.")),
    ] {
        let answer = streamed(host, vec![AnswerPiece::text("hi")], failed(), vec![]);
        let last = chunks(&answer).pop().unwrap();
        assert_eq!(last.pointer(pointer), Some(&expected), "{host}: {last}");
        assert_ne!(lines(&answer).last().unwrap(), "data: [DONE]", "{host}");
    }
}

#[test]
fn a_stream_can_break_miss_its_end_or_have_its_usage_elsewhere() {
    let said =
        |end: ScenarioEnd, faults: Vec<Fault>| streamed("openai", vec![AnswerPiece::text("hi")], end, faults);
    assert_eq!(lines(&said(ScenarioEnd::Cut, vec![])).last().unwrap(), "(cut)");
    assert!(
        lines(&said(ScenarioEnd::Natural, vec![Fault::NoDone])).iter().all(|line| line != "data: [DONE]")
    );
    let chunks = chunks(&said(ScenarioEnd::Natural, vec![Fault::UsageInChoice]));
    assert!(chunks.iter().any(|chunk| chunk.pointer("/choices/0/usage").is_some()));
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
}

#[test]
fn custom_tools_are_called_with_text() {
    let fields =
        json!({"tools": [{"type": "custom", "custom": {"name": "apply_patch", "description": "d"}}]});
    let call = vec![AnswerPiece::Call { tool: "apply_patch".to_owned(), arguments: "*** Begin".to_owned() }];
    let VendorResponse::Whole { body, .. } =
        answer("openai", Some("gpt-5.4"), &fields, call, ScenarioEnd::Natural, vec![])
    else {
        panic!()
    };
    let call = &body["choices"][0]["message"]["tool_calls"][0];
    assert_eq!((&call["type"], &call["custom"]["input"]), (&json!("custom"), &json!("*** Begin")));
}
