use std::sync::Arc;

use expect_test::{Expect, expect};
use hangar_agent::model::{AssistantTurn, Message, ModelRequest, NativeTurn, Part, ToolChoice};
use hangar_protocol::data::ToolType;
use serde_json::{Value, json};

use super::request::UNSIGNED;
use crate::facts::{HostFacts, ReasoningBack};
use crate::wire::testing::*;
use crate::wire::{Wire, WireVariant};

fn check(events: &str, expected: Expect) {
    let mut request = request("mock-model", vec![user("hi")]);
    request.tools = tools();
    check_stream(Wire::Chat, &request, events, expected);
}

const THOUGHT: &str = r#"{"reasoning_content":"hmm"}"#;

#[test]
fn a_conversation_is_written_for_any_server() {
    check_body(
        Wire::Chat,
        &conversation("mock-model", native(THOUGHT)),
        expect![[r#"
            model: "mock-model"
            stream: true
            stream_options: {"include_usage":true}
            messages:
              {"role":"system","content":"Be brief."}
              {"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
              {"role":"assistant","content":"Looking.","tool_calls":[{"id":"call:1","type":"function","function":{"name":"view","arguments":"{\"path\": \"/a\"}"}},{"id":"call_2","type":"function","function":{"name":"apply_patch","arguments":"{\"input\":\"*** Begin Patch\\n\"}"}}],"reasoning_content":"hmm"}
              {"role":"tool","tool_call_id":"call:1","content":"Viewed."}
              {"role":"tool","tool_call_id":"call_2","content":"Done."}
              {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
            tools:
              {"type":"function","function":{"name":"view","description":"The tool view.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}
              {"type":"function","function":{"name":"apply_patch","description":"The tool apply_patch.","parameters":{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text."}},"required":["input"]}}}
        "#]],
    );
}

#[test]
fn a_model_with_custom_tools_gets_them() {
    check_body(
        Wire::Chat,
        &conversation("gpt-5.4", native(THOUGHT)),
        expect![[r#"
            model: "gpt-5.4"
            stream: true
            stream_options: {"include_usage":true}
            messages:
              {"role":"system","content":"Be brief."}
              {"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
              {"role":"assistant","content":"Looking.","tool_calls":[{"id":"call:1","type":"function","function":{"name":"view","arguments":"{\"path\": \"/a\"}"}},{"id":"call_2","type":"custom","custom":{"name":"apply_patch","input":"*** Begin Patch\n"}}]}
              {"role":"tool","tool_call_id":"call:1","content":"Viewed."}
              {"role":"tool","tool_call_id":"call_2","content":"Done."}
              {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
            tools:
              {"type":"function","function":{"name":"view","description":"The tool view.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}
              {"type":"custom","custom":{"name":"apply_patch","description":"The tool apply_patch.","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: LINE+"}}}}
        "#]],
    );
}

#[test]
fn parameters_fit_the_model() {
    let parameters = |model: &str, effort: Option<&str>, expected| {
        let mut request = request(model, vec![user("hi")]);
        request.effort = effort.map(str::to_owned);
        check_parameters(Wire::Chat, &request, expected);
    };
    parameters(
        "mock-model",
        None,
        expect![[r#"{"model":"mock-model","stream":true,"stream_options":{"include_usage":true}}"#]],
    );
    parameters(
        "mock-model",
        Some("high"),
        expect![[
            r#"{"model":"mock-model","reasoning_effort":"high","stream":true,"stream_options":{"include_usage":true}}"#
        ]],
    );
    parameters(
        "gpt-5.4",
        None,
        expect![[r#"{"model":"gpt-5.4","stream":true,"stream_options":{"include_usage":true}}"#]],
    );
    parameters(
        "o3",
        Some("low"),
        expect![[
            r#"{"model":"o3","reasoning_effort":"low","stream":true,"stream_options":{"include_usage":true}}"#
        ]],
    );
    parameters(
        "claude-sonnet-4.5",
        None,
        expect![[r#"{"model":"claude-sonnet-4.5","stream":true,"stream_options":{"include_usage":true}}"#]],
    );
}

#[test]
fn an_answer_in_one_piece_is_asked_for_without_a_stream() {
    let mut request = request("mock-model", vec![user("hi")]);
    request.stream = false;
    request.tools = tools();
    request.tool_choice = ToolChoice::None;
    check_parameters(Wire::Chat, &request, expect![[r#"{"model":"mock-model","tool_choice":"none"}"#]]);
}

#[test]
fn arguments_that_no_server_would_read_are_wrapped() {
    let turn = |input: &str| AssistantTurn {
        tool_calls: vec![call("c1", "view", ToolType::Function, input)],
        ..AssistantTurn::default()
    };
    let arguments = |input: &str| {
        let body =
            body(Wire::Chat, WireVariant::Vendor, &request("m", vec![Message::Assistant(turn(input))]));
        body["messages"][1]["tool_calls"][0]["function"]["arguments"].as_str().unwrap().to_owned()
    };
    assert_eq!(arguments(r#"{ "path": "/a" }"#), r#"{ "path": "/a" }"#);
    assert_eq!(arguments(""), "{}");
    assert_eq!(arguments("{\"path\": "), r#"{"invalid_arguments":"{\"path\": "}"#);
    assert_eq!(arguments("[1]"), r#"{"invalid_arguments":"[1]"}"#);
}

#[test]
fn github_caches_a_claude_prompt_up_to_its_marks() {
    let request = conversation("claude-sonnet-4.5", native(THOUGHT));
    let body = body(Wire::Chat, WireVariant::Copilot, &request);
    let messages = body["messages"].as_array().unwrap();
    let marked: Vec<bool> =
        messages.iter().map(|message| message.get("copilot_cache_control").is_some()).collect();
    assert_eq!(marked, [true, false, false, false, false, true]);
    assert_eq!(messages[2].get("reasoning_content"), None);
}

#[test]
fn github_takes_reasoning_back_with_its_mark() {
    let items = native(r#"{"reasoning_text":"hmm","reasoning_opaque":"b3BhcXVl"}"#);
    let body = body(Wire::Chat, WireVariant::Copilot, &conversation("gemini-3-pro", items));
    assert_eq!(body["messages"][2]["reasoning_text"], "hmm");
    assert_eq!(body["messages"][2]["reasoning_opaque"], "b3BhcXVl");
}

/// The first answer of a conversation, as it is sent back to a host.
fn answer_for(host: HostFacts, model: &str, items: Option<NativeTurn>) -> Value {
    let host = HostFacts { name: Some("somebody".to_owned()), ..host };
    body_for(Wire::Chat, WireVariant::Vendor, &host, &conversation(model, items))["messages"][2].take()
}

#[test]
fn reasoning_goes_back_as_the_host_takes_it_and_to_nobody_else() {
    let details =
        r#"{"reasoning":"hmm","reasoning_details":[{"type":"reasoning.text","text":"hmm","signature":"s"}]}"#;
    let check = |back, model: &str, items, field: &str, expected: Value| {
        let host = HostFacts { reasoning_back: back, wants_reasoning: true, ..HostFacts::default() };
        assert_eq!(answer_for(host, model, items)[field], expected, "{back:?} {field}");
    };
    check(ReasoningBack::None, "m", native(THOUGHT), "reasoning_content", Value::Null);
    check(ReasoningBack::ReasoningContent, "m", native(THOUGHT), "reasoning_content", json!("hmm"));
    check(ReasoningBack::ReasoningContent, "m", foreign(THOUGHT), "reasoning_content", Value::Null);
    check(
        ReasoningBack::ReasoningContent,
        "deepseek-v4-pro",
        foreign(THOUGHT),
        "reasoning_content",
        json!(""),
    );
    let kept: Value = serde_json::from_str(details).unwrap();
    check(
        ReasoningBack::ReasoningDetails,
        "m",
        native(details),
        "reasoning_details",
        kept["reasoning_details"].clone(),
    );
}

#[test]
fn signatures_of_calls_go_back_and_calls_of_others_say_that_they_have_none() {
    let host = HostFacts { reasoning_back: ReasoningBack::ThoughtSignatures, ..HostFacts::default() };
    let signature = |items, call: usize| {
        let calls = answer_for(host.clone(), "gemini-3.1-pro-preview", items)["tool_calls"].take();
        calls[call]["extra_content"]["google"]["thought_signature"].clone()
    };
    let signed =
        r#"{"tool_calls":[{"id":"call:1","extra_content":{"google":{"thought_signature":"c2ln"}}}]}"#;
    assert_eq!((signature(native(signed), 0), signature(native(signed), 1)), (json!("c2ln"), Value::Null));
    assert_eq!(signature(foreign(signed), 0), UNSIGNED);
    assert_eq!(signature(None, 1), Value::Null);
}

#[test]
fn a_host_that_lets_no_user_follow_a_tool_gets_a_word_in_between() {
    let host = HostFacts { filler: true, ..HostFacts::default() };
    let request = conversation("m", None);
    let body = body_for(Wire::Chat, WireVariant::Vendor, &host, &request);
    let roles: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "assistant", "user"]);
}

#[test]
fn claude_behind_a_gateway_is_cached_up_to_three_marks() {
    let body = body(Wire::Chat, WireVariant::Vendor, &conversation("claude-sonnet-4.5", None));
    let marked: Vec<bool> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            message["content"]
                .as_array()
                .is_some_and(|parts| parts.iter().any(|part| part.get("cache_control").is_some()))
        })
        .collect();
    assert_eq!(marked, [true, true, false, false, false, true]);
}

#[test]
fn functions_go_without_effort_where_the_host_refuses_both() {
    let host = HostFacts { reasons_without_tools: true, ..HostFacts::default() };
    let mut request = conversation("gpt-5.4", None);
    request.effort = Some("high".to_owned());
    assert_eq!(body_for(Wire::Chat, WireVariant::Vendor, &host, &request)["reasoning_effort"], "none");
    // A model that always reasons has no such effort. The host then names the endpoint for its tools.
    request.model = "gpt-6.1-sol".into();
    assert_eq!(body_for(Wire::Chat, WireVariant::Vendor, &host, &request)["reasoning_effort"], "high");
    request.model = "gpt-5.4".into();
    request.tools = [].into();
    assert_eq!(body_for(Wire::Chat, WireVariant::Vendor, &host, &request)["reasoning_effort"], "high");
}

#[test]
fn a_longer_conversation_begins_with_the_same_bytes() {
    let shorter = conversation("mock-model", native(THOUGHT));
    let mut longer = shorter.clone();
    let answer = AssistantTurn { text: "Done.".into(), ..AssistantTurn::default() };
    longer.messages.extend([Message::Assistant(answer), user("next")].map(Arc::new));
    let text = |request| body(Wire::Chat, WireVariant::Vendor, request)["messages"].to_string();
    let shorter = text(&shorter);
    assert!(text(&longer).starts_with(&shorter[..shorter.len() - 1]));
}

#[test]
fn text_reasoning_and_usage() {
    check(
        r#"
        {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
        {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}
        {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"reasoning_content":"m","reasoning":"m"},"finish_reason":null}]}
        {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"po"},"finish_reason":null}]}
        {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"ng"},"finish_reason":null}]}
        {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
        {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":7,"total_tokens":27,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":5}}}
        [DONE]
        "#,
        expect![[r#"
            reasoning "hm"
            reasoning "m"
            text "po"
            text "ng"
            -- Stop chatcmpl-1
            text "pong"
            reasoning "hmm" opaque None encrypted None
            items {"reasoning_content":"hmm"}
            input 20 output 7 read 16 written ? reasoning 5
        "#]],
    );
}

#[test]
fn what_a_server_does_not_count_is_unknown() {
    check(
        r#"
        {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":null}
        {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":null}}
        [DONE]
        "#,
        expect![[r#"
            text "x"
            -- Stop without id
            text "x"
            input 3 output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn parallel_calls_are_told_apart_by_index() {
    check(
        r#"
        {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"view","arguments":""}}]}}]}
        {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}}]}
        {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"bash","arguments":"{}"}}]}}]}
        {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"/a\"}"}}]}}]}
        {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
        [DONE]
        "#,
        expect![[r#"
            Function view a "{\"path\":"
            Function bash b "{}"
            Function view a "\"/a\"}"
            -- ToolCalls c
            Function view a "{\"path\":\"/a\"}"
            Function bash b "{}"
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn calls_without_an_index_are_told_apart_by_id_or_name() {
    check(
        r#"
        # An id each.
        {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"bash","arguments":"{\"n\":"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"arguments":"1}"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"bash","arguments":"{\"n\":2}"}}]}}]}
        # Neither index nor id: a name begins a call.
        {"choices":[{"delta":{"tool_calls":[{"function":{"name":"view","arguments":"{\"n\":"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"3}"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"function":{"name":"view","arguments":{"n":4}}}]},"finish_reason":"stop"}]}
        [DONE]
        "#,
        expect![[r#"
            Function bash a "{\"n\":"
            Function bash a "1}"
            Function bash b "{\"n\":2}"
            Function view call_2 "{\"n\":"
            Function view call_2 "3}"
            Function view call_3 "{\"n\":4}"
            -- ToolCalls without id
            Function bash a "{\"n\":1}"
            Function bash b "{\"n\":2}"
            Function view call_2 "{\"n\":3}"
            Function view call_3 "{\"n\":4}"
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn calls_that_share_an_index_are_told_apart_by_id() {
    check(
        r#"
        {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{}"}}]}}]}
        {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"bash","arguments":"{\"n\":1}"}}]}}]}
        {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
        [DONE]
        "#,
        expect![[r#"
            Function bash a "{}"
            Function bash b "{\"n\":1}"
            -- ToolCalls without id
            Function bash a "{}"
            Function bash b "{\"n\":1}"
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn calls_that_share_an_id_get_one_each() {
    // By their index, and by a complete input before the next name where the index is the same, too.
    for index in [r#""index":1,"#, r#""index":0,"#, ""] {
        let first = if index.is_empty() { "" } else { r#""index":0,"# };
        check(
            &format!(
                r#"
                {{"choices":[{{"delta":{{"tool_calls":[{{{first}"id":"c","function":{{"name":"view","arguments":"{{\"path\":"}}}}]}}}}]}}
                {{"choices":[{{"delta":{{"tool_calls":[{{{first}"id":"c","function":{{"name":"view","arguments":"\"/a\"}}"}}}}]}}}}]}}
                {{"choices":[{{"delta":{{"tool_calls":[{{{index}"id":"c","function":{{"name":"view","arguments":"{{\"path\":\"/b\"}}"}}}}]}}}}]}}
                {{"choices":[{{"delta":{{}},"finish_reason":"tool_calls"}}]}}
                [DONE]
                "#
            ),
            expect![[r#"
                Function view c "{\"path\":"
                Function view c "\"/a\"}"
                Function view c_2 "{\"path\":\"/b\"}"
                -- ToolCalls without id
                Function view c "{\"path\":\"/a\"}"
                Function view c_2 "{\"path\":\"/b\"}"
                input ? output ? read ? written ? reasoning ?
            "#]],
        );
    }
}

#[test]
fn an_id_of_an_earlier_answer_is_not_used_again() {
    let past = AssistantTurn {
        tool_calls: vec![call("call_0", "view", ToolType::Function, "{}")],
        ..AssistantTurn::default()
    };
    let request = request("m", vec![user("hi"), Message::Assistant(past)]);
    check_stream(
        Wire::Chat,
        &request,
        r#"
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_0","function":{"name":"view","arguments":"{"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_0","function":{"name":"view","arguments":"}"}}]},"finish_reason":"tool_calls"}]}
        [DONE]
        "#,
        expect![[r#"
            Function view call_0_2 "{"
            Function view call_0_2 "}"
            -- ToolCalls without id
            Function view call_0_2 "{}"
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn a_made_up_id_is_new_to_the_conversation() {
    let past = AssistantTurn {
        tool_calls: vec![call("call_1", "view", ToolType::Function, "{}")],
        ..AssistantTurn::default()
    };
    let request = request("m", vec![user("hi"), Message::Assistant(past)]);
    check_stream(
        Wire::Chat,
        &request,
        r#"
        {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"view","arguments":""}}]},"finish_reason":"tool_calls"}]}
        [DONE]
        "#,
        expect![[r#"
            -- ToolCalls without id
            Function view call_2 "{}"
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn a_custom_tool_is_called_with_text() {
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"apply_patch","input":""}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"custom":{"input":"*** Begin"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"custom":{"input":" Patch"}}]},"finish_reason":"tool_calls"}]}
        [DONE]
        "#,
        expect![[r#"
            Custom apply_patch a "*** Begin"
            Custom apply_patch a " Patch"
            -- ToolCalls without id
            Custom apply_patch a "*** Begin Patch"
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn a_disguised_custom_tool_is_called_with_the_text_in_its_arguments() {
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"apply_patch","arguments":"{\"input\": \"*** Be"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"gin\\n\"}"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"apply_patch","arguments":"*** Begin"}}]},"finish_reason":"tool_calls"}]}
        [DONE]
        "#,
        expect![[r#"
            Custom apply_patch a "*** Begin\n"
            Custom apply_patch b "*** Begin"
            -- ToolCalls without id
            Custom apply_patch a "*** Begin\n"
            Custom apply_patch b "*** Begin"
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn content_in_parts_and_refusals_are_text() {
    check(
        r#"
        {"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}
        {"choices":[{"delta":{"content":null,"refusal":"no"},"finish_reason":"content_filter"}]}
        [DONE]
        "#,
        expect![[r#"
            text "ab"
            text "no"
            -- ContentFilter without id
            text "abno"
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn reasoning_comes_under_other_names_too() {
    check(
        r#"
        {"choices":[{"delta":{"reasoning_text":"a","content":null}}]}
        {"choices":[{"delta":{"reasoning":"b","reasoning_opaque":"b3BhcXVl"}}]}
        {"choices":[{"delta":{"content":"c"},"finish_reason":"length"}]}
        [DONE]
        "#,
        expect![[r#"
            reasoning "a"
            reasoning "b"
            text "c"
            -- Length without id
            text "c"
            reasoning "ab" opaque None encrypted Some("b3BhcXVl")
            items {"reasoning":"ab","reasoning_opaque":"b3BhcXVl"}
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn a_finish_reason_ends_an_answer_even_without_the_mark() {
    check(
        r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#,
        expect![[r#"
        text "x"
        -- Stop without id
        text "x"
        input ? output ? read ? written ? reasoning ?
    "#]],
    );
}

#[test]
fn an_answer_without_any_end_is_cut() {
    check(
        r#"{"choices":[{"delta":{"content":"x"},"finish_reason":""}]}"#,
        expect![[r#"
        text "x"
        cut
    "#]],
    );
    check(
        "",
        expect![[r#"
        cut
    "#]],
    );
}

#[test]
fn an_error_inside_the_stream_is_an_error() {
    check(
        r#"
        {"choices":[{"delta":{"content":"x"}}]}
        {"error":{"message":"The server had an error","type":"server_error","code":null}}
        "#,
        expect![[r#"
            text "x"
            error: Server: The server had an error
        "#]],
    );
}

#[test]
fn what_is_not_a_chunk_is_a_protocol_error() {
    check(
        "{\"choices\": [",
        expect![[r#"
        error: Protocol: the model provider sent what is not a chat completion: EOF while parsing a list at line 1 column 13
    "#]],
    );
    check(
        "[1, 2]",
        expect![[r#"
            error: Protocol: the model provider sent what is not a chat completion: invalid type: integer `2`, expected a sequence at line 1 column 5
        "#]],
    );
    check(
        r#"{"choices": "none"}"#,
        expect![[r#"
        error: Protocol: the model provider sent what is not a chat completion: invalid type: string "none", expected a sequence at line 1 column 18
    "#]],
    );
}

#[test]
fn several_choices_of_one_answer_become_one_turn() {
    check_whole(
        Wire::Chat,
        &request("m", vec![user("hi")]),
        r#"{"id":"cached","choices":[
            {"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"t0","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"tool_calls"},
            {"index":1,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"t1","function":{"name":"y","arguments":"{\"a\":1}"}},{"id":"t2","function":{"name":"y","arguments":""}}]},"finish_reason":"tool_calls"}
        ],"usage":{"prompt_tokens":0,"completion_tokens":0}}"#,
        expect![[r#"
            -- ToolCalls cached
            text "a"
            Function x t0 "{}"
            Function y t1 "{\"a\":1}"
            Function y t2 "{}"
            input 0 output 0 read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn an_answer_without_choices_is_none() {
    check_whole(
        Wire::Chat,
        &request("m", vec![user("hi")]),
        r#"{"object":"list"}"#,
        expect![[r#"
        error: Protocol: the model provider's answer has no choices
    "#]],
    );
    check_whole(
        Wire::Chat,
        &request("m", vec![user("hi")]),
        r#"{"error":"model is loading"}"#,
        expect![[r#"
            error: Server: model is loading
        "#]],
    );
}

#[test]
fn an_answer_of_a_wanted_form_is_asked_for() {
    check_parameters(
        Wire::Chat,
        &formed("mock-model"),
        expect![[
            r#"{"model":"mock-model","response_format":{"type":"json_schema","json_schema":{"name":"verdict","schema":{"type":"object","properties":{"ok":{"type":"boolean"}}},"description":"Whether it is right.","strict":true}},"stream":true,"stream_options":{"include_usage":true}}"#
        ]],
    );
}

/// A request with tools at a host.
fn at(
    host: &str,
    model: &str,
    effort: Option<&str>,
) -> (crate::facts::HostFacts, hangar_agent::model::ModelRequest) {
    let mut request = request(model, vec![user("hi")]);
    request.tools = tools();
    request.effort = effort.map(str::to_owned);
    (host_named(host), request)
}

#[test]
fn an_effort_that_tools_rule_out_is_told() {
    let told = |host: &str, model: &str, effort: Option<&str>| {
        let (host, request) = at(host, model, effort);
        asked(WireVariant::Vendor, &host, &request, None, |ask| ask.unreasoned())
    };
    let high = told("openai", "gpt-5.4", Some("high")).unwrap();
    assert!(high.contains("although the effort is high") && high.contains("wire_api"), "{high}");
    assert!(told("openai", "gpt-5.4", None).is_some(), "it would reason by itself");
    assert_eq!(told("openai", "gpt-5.4", Some("none")), None);
    assert_eq!(told("openai", "gpt-4.1", None), None);
    assert_eq!(told("mistral", "mistral-medium-3-5", Some("high")), None);
}

#[test]
fn sessions_with_the_same_beginning_have_the_same_cache_key_where_the_vendor_advises_that() {
    let key = |host: &str, change: &dyn Fn(&mut hangar_agent::model::ModelRequest)| {
        let (host, mut request) = at(host, "some-model", None);
        change(&mut request);
        let body = body_for(Wire::Chat, WireVariant::Vendor, &host, &request);
        body["prompt_cache_key"].as_str().unwrap().to_owned()
    };
    let same = |_: &mut hangar_agent::model::ModelRequest| {};
    let session = |request: &mut hangar_agent::model::ModelRequest| request.session_id = "another".to_owned();
    let system = |request: &mut hangar_agent::model::ModelRequest| request.system = "Be long.".into();
    let fewer = |request: &mut hangar_agent::model::ModelRequest| request.tools = request.tools[..1].into();
    for host in ["openai", "azure", "mistral"] {
        assert_eq!(key(host, &same), key(host, &session), "{host}");
        assert_ne!(key(host, &same), key(host, &system), "{host}");
        assert_ne!(key(host, &same), key(host, &fewer), "{host}");
        assert!(key(host, &same).len() <= 64, "{host}");
    }
    assert_eq!((key("xai", &same).as_str(), key("xai", &session).as_str()), ("session-1", "another"));
    let long = |request: &mut hangar_agent::model::ModelRequest| request.session_id = "x".repeat(99);
    assert_eq!(key("xai", &long).len(), 32);
}

fn ids(body: &Value) -> [&str; 2] {
    let messages = body["messages"].as_array().unwrap();
    let call = messages.iter().find_map(|message| message["tool_calls"][0]["id"].as_str());
    let result = messages.iter().find_map(|message| message["tool_call_id"].as_str());
    [call.unwrap(), result.unwrap()]
}

/// A turn with one call of this id, and its result.
fn called(model: &str, id: &str, native: Option<NativeTurn>) -> ModelRequest {
    let turn = AssistantTurn {
        tool_calls: vec![call(id, "view", ToolType::Function, "{}")],
        native,
        ..AssistantTurn::default()
    };
    let result = Message::Tool {
        call_id: id.into(),
        kind: ToolType::Function,
        parts: vec![Part::Text("Viewed.".into())],
        is_error: false,
    };
    let mut request = request(model, vec![user("look"), Message::Assistant(turn), result]);
    request.tools = tools();
    request
}

#[test]
fn an_id_goes_back_as_it_came_where_it_came_from() {
    const DETAILS: &str = r#"{"reasoning_details":[{"type":"reasoning.encrypted","index":0,"data":"c2ln"}]}"#;
    let id = format!("tool:0:{}", "x".repeat(60));
    let openrouter = host_named("openrouter");
    let sent = |model: &str, host: &HostFacts, native| {
        let body = body_for(Wire::Chat, WireVariant::Vendor, host, &called(model, &id, native));
        let [call, result] = ids(&body);
        assert_eq!(call, result);
        call.to_owned()
    };
    assert_eq!(sent("gemini-3.1-pro-preview", &openrouter, native(DETAILS)), id);
    assert!(openrouter.ids.accepts(&sent("gemini-3.1-pro-preview", &openrouter, foreign(DETAILS))));
    // A gateway may keep the signature of a call in its id.
    assert_eq!(sent("gemini-3.1-pro-preview", &HostFacts::default(), None), id);
    assert!(sent("gpt-4.1", &HostFacts::default(), None).len() <= 40);
}

#[test]
fn a_model_of_mistral_gets_its_form_of_a_conversation_from_whoever_serves_it() {
    for host in [HostFacts::default(), host_named("openrouter"), host_named("vllm"), host_named("mistral")] {
        let mut request = called("mistralai/devstral-2512", "call_1", None);
        request.messages.push(user("faster").into());
        let body = body_for(Wire::Chat, WireVariant::Vendor, &host, &request);
        let [call, result] = ids(&body);
        assert_eq!((call.len(), call), (9, result), "{:?}", host.name);
        let roles: Vec<_> =
            body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"], "{:?}", host.name);
    }
}

#[test]
fn a_model_of_mistral_is_never_told_two_messages_in_a_row() {
    let sent = |model: &str| {
        let mut request = conversation(model, None);
        request.messages.extend([user("faster"), user("and better")].map(Arc::new));
        let body = body(Wire::Chat, WireVariant::Vendor, &request);
        body["messages"].as_array().unwrap().clone()
    };
    let roles = |messages: &[Value]| -> Vec<String> {
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    let strict = sent("mistral-medium-3-5");
    assert_eq!(roles(&strict), ["system", "user", "assistant", "tool", "tool", "assistant", "user"]);
    let told: Vec<&Value> =
        strict[6]["content"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    assert_eq!(told, ["image_url", "text", "text"]);
    assert_eq!(roles(&sent("mock-model"))[5..], ["user", "user", "user"]);
    let request = request("devstral-2512", vec![user("one"), user("two")]);
    let body = body(Wire::Chat, WireVariant::Vendor, &request);
    assert_eq!(body["messages"][1]["content"], "one\n\ntwo");
}

#[test]
fn a_conversation_ends_with_an_answer_only_where_that_is_taken() {
    for (model, last) in
        [("mistral-medium-3-5", "user"), ("claude-opus-4-6", "user"), ("gpt-4.1", "assistant")]
    {
        let turn = AssistantTurn { text: "So far.".into(), ..AssistantTurn::default() };
        let request = request(model, vec![user("hi"), Message::Assistant(turn)]);
        let body = body(Wire::Chat, WireVariant::Vendor, &request);
        assert_eq!(body["messages"].as_array().unwrap().last().unwrap()["role"], last, "{model}");
    }
}

#[test]
fn claude_gets_neither_white_space_as_an_answer_nor_a_mark_on_an_empty_text() {
    let mut request = called("claude-opus-4-6", "call_1", None);
    let blank = AssistantTurn { text: "\n\n".into(), ..AssistantTurn::default() };
    let calling = match &*request.messages[1] {
        Message::Assistant(turn) => AssistantTurn { text: " ".into(), ..turn.clone() },
        _ => unreachable!(),
    };
    request.messages[1] = Message::Assistant(calling).into();
    request.messages.insert(1, Message::Assistant(blank).into());
    let silent =
        Message::Tool { call_id: "call_1".into(), kind: ToolType::Function, parts: vec![], is_error: false };
    *request.messages.last_mut().unwrap() = silent.into();
    let body = body(Wire::Chat, WireVariant::Vendor, &request);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4, "{body}");
    assert_eq!((&messages[2]["content"], &messages[3]["content"]), (&Value::Null, &json!("")));
}
