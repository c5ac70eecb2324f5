//! A vendor's own web search on each wire: when it is offered, its results, and how they are sent back.

use std::sync::Arc;

use expect_test::{Expect, expect};
use hangar_agent::model::{AssistantTurn, Message, ModelRequest};
use hangar_agent::tool::Tool;
use serde_json::Value;

use super::testing::*;
use super::{Wire, WireVariant};
use crate::base_url::BaseUrl;
use crate::config::{ProviderConfig, ProviderKind, WireApi};
use crate::facts::{self, HostFacts};
use crate::hosted::WebSearchTool;

fn host(kind: ProviderKind, url: &str) -> HostFacts {
    facts::host(&ProviderConfig::new("p", kind, BaseUrl::parse(url).unwrap()))
}

fn anthropic() -> HostFacts {
    host(ProviderKind::Anthropic, "https://api.anthropic.com")
}

fn openai() -> HostFacts {
    host(ProviderKind::OpenAi { wire: WireApi::PerModel }, "https://api.openai.com/v1")
}

/// A request that offers a function and the search.
fn searching(model: &str) -> ModelRequest {
    let mut request = request(model, vec![user("hi")]);
    request.tools = [Arc::clone(&tools()[0]), Arc::clone(WebSearchTool::default().spec())].into();
    request
}

#[track_caller]
fn check(wire: Wire, host: &HostFacts, request: &ModelRequest, expected: Expect) {
    let body = body_for(wire, WireVariant::Vendor, host, request);
    let kinds = body["tools"].as_array().into_iter().flatten().skip(1);
    let shown: Vec<String> = kinds.map(Value::to_string).collect();
    expected.assert_eq(&format!("{} {}", shown.join(" "), body["max_tool_calls"]));
}

#[test]
fn a_search_is_offered_in_the_words_of_the_vendor_and_only_where_it_has_one() {
    check(
        Wire::Messages,
        &anthropic(),
        &searching("claude-opus-5-5"),
        expect![[
            r#"{"type":"web_search_20250305","name":"web_search","max_uses":8,"cache_control":{"type":"ephemeral"}} null"#
        ]],
    );
    check(Wire::Responses, &openai(), &searching("gpt-5.6-sol"), expect![[r#"{"type":"web_search"} 8"#]]);
    let xai = host(ProviderKind::OpenAi { wire: WireApi::PerModel }, "https://api.x.ai/v1");
    check(Wire::Responses, &xai, &searching("grok-4.5"), expect![[r#"{"type":"web_search"} null"#]]);
    // Another API of the vendor, and an unknown server.
    check(Wire::Chat, &openai(), &searching("gpt-4.1"), expect![" null"]);
    check(Wire::Messages, &HostFacts::default(), &searching("claude-opus-5-5"), expect![" null"]);
    check(Wire::Responses, &HostFacts::default(), &searching("m"), expect![" null"]);
}

#[test]
fn a_search_is_not_offered_to_what_cannot_have_it() {
    let formed = ModelRequest { answer: formed("claude-opus-5-5").answer, ..searching("claude-opus-5-5") };
    check(Wire::Messages, &anthropic(), &formed, expect![" null"]);
    let hasty = ModelRequest { effort: Some("minimal".to_owned()), ..searching("gpt-5") };
    check(Wire::Responses, &openai(), &hasty, expect![" null"]);
    let without = ModelRequest { tools: tools(), ..searching("claude-opus-5-5") };
    let body = body_for(Wire::Messages, WireVariant::Vendor, &anthropic(), &without);
    assert!(!body["tools"].to_string().contains("web_search"), "{}", body["tools"]);
}

const SEARCHED: &str = r#"
    {"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}
    {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"I look."}}
    {"type":"content_block_stop","index":0}
    {"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}
    {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\": \"rust"}}
    {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":" 1.99\"}"}}
    {"type":"content_block_stop","index":1}
    {"type":"content_block_start","index":2,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a.example","title":"A","encrypted_content":"Zm9v","page_age":null}]}}
    {"type":"content_block_stop","index":2}
    {"type":"content_block_start","index":3,"content_block":{"type":"text","text":"","citations":[]}}
    {"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"It is out."}}
    {"type":"content_block_delta","index":3,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://a.example","title":"[A]","encrypted_index":"aQ==","cited_text":"out"}}}
    {"type":"content_block_delta","index":3,"delta":{"type":"citations_delta","citation":{"type":"char_location","document_title":"no page"}}}
    {"type":"content_block_stop","index":3}
    {"type":"message_delta","delta":{"stop_reason":"REASON"},"usage":{"output_tokens":9,"server_tool_use":{"web_search_requests":1}}}
    {"type":"message_stop"}
"#;

#[test]
fn a_search_of_claude_is_told_with_its_sources_and_goes_back_as_it_came() {
    check_stream(
        Wire::Messages,
        &searching("claude-opus-5-5"),
        &SEARCHED.replace("REASON", "end_turn"),
        expect![[r#"
            text "I look."
            reasoning "Searched the web for “rust 1.99”."
            text "\n\n"
            text "It is out."
            text "\n\nSources:\n- [A](https://a.example)"
            -- Stop m
            text "I look.\n\nIt is out.\n\nSources:\n- [A](https://a.example)"
            reasoning "Searched the web for “rust 1.99”." opaque None encrypted None
            items [{"type":"text","text":"I look."},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "rust 1.99"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a.example","title":"A","encrypted_content":"Zm9v","page_age":null}]},{"type":"text","text":"It is out.","citations":[{"type":"web_search_result_location","url":"https://a.example","title":"[A]","encrypted_index":"aQ==","cited_text":"out"},{"type":"char_location","document_title":"no page"}]}]
            input 1 output 9 read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn a_search_of_openai_is_told_with_its_sources_and_goes_back_as_it_came() {
    check_stream(
        Wire::Responses,
        &searching("gpt-5.6-sol"),
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress"}}
        {"type":"response.web_search_call.searching","output_index":0,"item_id":"ws_1"}
        {"type":"response.output_item.done","output_index":0,"item":{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"rust 1.99"}}}
        {"type":"response.output_item.done","output_index":1,"item":{"id":"ws_2","type":"web_search_call","status":"completed","action":{"type":"open_page","url":"https://a.example"}}}
        {"type":"response.output_text.delta","output_index":2,"delta":"It is out (https://a.example)."}
        {"type":"response.output_item.done","output_index":2,"item":{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"It is out (https://a.example).","annotations":[{"type":"url_citation","url":"https://a.example","title":"A","start_index":0,"end_index":9},{"type":"url_citation","url":"https://b.example","title":"","start_index":0,"end_index":9}]}]}}
        {"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":5,"output_tokens":6,"cost_in_usd_ticks":37756000}}}
        "#,
        expect![[r#"
            reasoning "Searched the web for “rust 1.99”."
            reasoning "\n\nOpened https://a.example."
            text "It is out (https://a.example)."
            text "\n\nSources:\n- <https://b.example>"
            -- Stop r
            text "It is out (https://a.example).\n\nSources:\n- <https://b.example>"
            reasoning "Searched the web for “rust 1.99”.\n\nOpened https://a.example." opaque None encrypted None
            items [{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"rust 1.99"}},{"id":"ws_2","type":"web_search_call","status":"completed","action":{"type":"open_page","url":"https://a.example"}},{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"It is out (https://a.example).","annotations":[{"type":"url_citation","url":"https://a.example","title":"A","start_index":0,"end_index":9},{"type":"url_citation","url":"https://b.example","title":"","start_index":0,"end_index":9}]}]}]
            input 5 output 6 read ? written ? reasoning ?
        "#]],
    );
}

fn reply(wire: Wire, events: &str) -> hangar_agent::model::Reply {
    let mut decoder = wire.decoder(&searching("m"), origin());
    let mut out = Vec::new();
    for data in events.lines().map(str::trim).filter(|line| !line.is_empty()) {
        decoder.event(data, &mut out).unwrap();
    }
    decoder.finish(&mut out).unwrap()
}

#[test]
fn searches_and_costs_are_counted() {
    let claude = reply(Wire::Messages, &SEARCHED.replace("REASON", "end_turn"));
    assert_eq!(claude.usage.web_searches, Some(1));
    let grok = r#"
        {"type":"response.output_item.done","output_index":0,"item":{"id":"ws_1","type":"web_search_call","action":{"type":"search","query":"q"}}}
        {"type":"response.output_item.done","output_index":1,"item":{"id":"ws_2","type":"web_search_call","action":{"type":"open_page","url":"u"}}}
        {"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":5,"output_tokens":6,"cost_in_usd_ticks":37756000}}}"#;
    let usage = reply(Wire::Responses, grok).usage;
    assert_eq!((usage.web_searches, usage.cost), (Some(1), Some(0.003_775_6)));
}

#[test]
fn a_paused_answer_goes_back_as_it_came_and_nothing_is_said_to_it() {
    let paused = reply(Wire::Messages, &SEARCHED.replace("REASON", "pause_turn"));
    let ended = reply(Wire::Messages, &SEARCHED.replace("REASON", "end_turn"));
    let last = |turn: AssistantTurn| {
        let mut request = searching("claude-opus-5-5");
        request.messages.push(Arc::new(Message::Assistant(turn)));
        let body = body_for(Wire::Messages, WireVariant::Vendor, &anthropic(), &request);
        let messages = body["messages"].as_array().unwrap().clone();
        (messages.len(), messages.last().unwrap().clone())
    };
    let items = paused.turn.native.clone().unwrap().items;
    let (messages, message) = last(paused.turn);
    assert_eq!((messages, &message["role"]), (2, &Value::from("assistant")));
    assert_eq!(message["content"], serde_json::from_str::<Value>(&items).unwrap());
    // A search alone is no pause.
    assert_eq!(last(ended.turn).1["role"], "user");
}

#[test]
fn a_paused_answer_of_words_alone_goes_back_as_it_came_too() {
    let paused = r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Searching."}}
        {"type":"message_delta","delta":{"stop_reason":"pause_turn"}}
        {"type":"message_stop"}"#;
    let native = reply(Wire::Messages, paused).turn.native.unwrap();
    assert_eq!((&*native.items, native.paused), (r#"[{"type":"text","text":"Searching."}]"#, true));
    assert_eq!(reply(Wire::Messages, &paused.replace("pause_turn", "end_turn")).turn.native, None);
}
