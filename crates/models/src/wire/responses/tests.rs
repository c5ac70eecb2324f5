use std::collections::BTreeSet;
use std::sync::Arc;

use expect_test::{Expect, expect};
use hangar_agent::model::{AssistantTurn, LateTools, Message, ModelRequest, NativeTurn};
use hangar_agent::tool::ToolSpec;
use hangar_protocol::data::ModelOrigin;
use serde_json::{Value, json};

use crate::wire::testing::*;
use crate::wire::{Wire, WireVariant};

fn check(events: &str, expected: Expect) {
    let mut request = request("gpt-5.4", vec![user("hi")]);
    request.tools = tools();
    check_stream(Wire::Responses, &request, events, expected);
}

const ENCRYPTED: &str = r#"[{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAA"},{"id":"msg_1","type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Looking."}]},{"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"gBBBB"},{"id":"fc_1","type":"function_call","call_id":"call:1","name":"view","arguments":"{\"path\": \"/a\"}"},{"id":"ct_1","type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":"*** Begin Patch\n"}]"#;

#[test]
fn a_conversation_is_written() {
    check_body(
        Wire::Responses,
        &conversation("gpt-5.4", native(ENCRYPTED)),
        expect![[r#"
            model: "gpt-5.4"
            instructions: "Be brief."
            reasoning: {"summary":"auto"}
            prompt_cache_key: "d19032ae7f4a3151dd2ffa2c1c83e684"
            store: false
            stream: true
            include:
              "reasoning.encrypted_content"
            parallel_tool_calls: true
            input:
              {"role":"user","content":[{"type":"input_text","text":"What is this?"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw=="}],"type":"message"}
              {"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAA"}
              {"id":"msg_1","type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Looking."}]}
              {"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"gBBBB"}
              {"id":"fc_1","type":"function_call","call_id":"call:1","name":"view","arguments":"{\"path\": \"/a\"}"}
              {"id":"ct_1","type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":"*** Begin Patch\n"}
              {"type":"function_call_output","call_id":"call:1","output":[{"type":"input_text","text":"Viewed."},{"type":"input_image","image_url":"data:image/png;base64,iVBORw=="}]}
              {"type":"custom_tool_call_output","call_id":"call_2","output":"Done."}
            tools:
              {"type":"function","name":"view","description":"The tool view.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"strict":false}
              {"type":"custom","name":"apply_patch","description":"The tool apply_patch.","format":{"type":"grammar","syntax":"lark","definition":"start: LINE+"}}
        "#]],
    );
}

#[test]
fn parameters_fit_the_model() {
    let parameters = |model: &str, effort: Option<&str>, expected| {
        let mut request = request(model, vec![user("hi")]);
        request.effort = effort.map(str::to_owned);
        request.stream = effort.is_none();
        check_parameters(Wire::Responses, &request, expected);
    };
    parameters(
        "mock-model",
        None,
        expect![[
            r#"{"model":"mock-model","reasoning":{"summary":"auto"},"prompt_cache_key":"6d639675c66b5973a78954afa7e3802a","store":false,"stream":true,"include":["reasoning.encrypted_content"],"parallel_tool_calls":true}"#
        ]],
    );
    parameters(
        "gpt-5.4",
        Some("high"),
        expect![[
            r#"{"model":"gpt-5.4","reasoning":{"effort":"high","summary":"auto"},"prompt_cache_key":"77b57e5d916b0877123de3175d8f0d84","store":false,"include":["reasoning.encrypted_content"],"parallel_tool_calls":true}"#
        ]],
    );
    parameters(
        "gpt-4.1",
        None,
        expect![[
            r#"{"model":"gpt-4.1","prompt_cache_key":"e4f7bb6116c6e0824ba3508e6af59b5c","store":false,"stream":true,"parallel_tool_calls":true}"#
        ]],
    );
}

#[test]
fn github_is_given_no_cache_key() {
    let body = body(Wire::Responses, WireVariant::Copilot, &request("gpt-5.4", vec![user("hi")]));
    assert_eq!(body.get("prompt_cache_key"), None);
}

#[test]
fn items_go_back_in_their_order_and_only_where_they_came_from() {
    let sent = |native| {
        let body = body(Wire::Responses, WireVariant::Vendor, &conversation("gpt-5.4", native));
        body["input"].as_array().unwrap()[1..]
            .iter()
            .map(|item| item["type"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let results = ["function_call_output", "custom_tool_call_output"];
    let own = ["reasoning", "message", "reasoning", "function_call", "custom_tool_call"];
    assert_eq!(sent(native(ENCRYPTED)), [&own[..], &results].concat());
    let plain = ["message", "function_call", "custom_tool_call"];
    assert_eq!(sent(foreign(ENCRYPTED)), [&plain[..], &results].concat());
    assert_eq!(sent(None), [&plain[..], &results].concat());
}

#[test]
fn text_reasoning_calls_and_usage() {
    check(
        r#"
        {"type":"response.created","response":{"id":"resp_1","status":"in_progress","usage":null}}
        {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}
        {"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}
        {"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"one"}
        {"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}
        {"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"two"}
        {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAA","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}]}}
        {"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}
        {"type":"response.content_part.added","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}
        {"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"po"}
        {"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"ng"}
        {"type":"response.output_text.done","output_index":1,"text":"pong"}
        {"type":"response.output_item.done","output_index":1,"item":{"id":"other","type":"message","content":[{"type":"output_text","text":"pong"}]}}
        {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"view","arguments":""}}
        {"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"path\":"}
        {"type":"response.function_call_arguments.delta","output_index":2,"delta":"\"/a\"}"}
        {"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"path\":\"/a\"}"}
        {"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"view","arguments":"{\"path\":\"/a\"}"}}
        {"type":"response.output_item.added","output_index":3,"item":{"id":"ctc_1","type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":""}}
        {"type":"response.custom_tool_call_input.delta","output_index":3,"delta":"*** Begin"}
        {"type":"response.output_item.done","output_index":3,"item":{"id":"ctc_1","type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":"*** Begin"}}
        {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":20,"input_tokens_details":{"cached_tokens":16},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4}}}}
        "#,
        expect![[r#"
            reasoning "one"
            reasoning "\n\n"
            reasoning "two"
            text "po"
            text "ng"
            Function view call_1 "{\"path\":"
            Function view call_1 "\"/a\"}"
            Custom apply_patch call_2 "*** Begin"
            -- ToolCalls resp_1
            text "pong"
            reasoning "one\n\ntwo" opaque Some("rs_1") encrypted Some("gAAAA")
            Function view call_1 "{\"path\":\"/a\"}"
            Custom apply_patch call_2 "*** Begin"
            items [{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAA","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}]},{"id":"other","type":"message","content":[{"type":"output_text","text":"pong"}]},{"id":"fc_1","type":"function_call","call_id":"call_1","name":"view","arguments":"{\"path\":\"/a\"}"},{"id":"ctc_1","type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":"*** Begin"}]
            input 20 output 9 read 16 written ? reasoning 4
        "#]],
    );
}

#[test]
fn a_server_that_tells_only_at_the_end_of_an_item_is_understood() {
    check(
        r#"
        {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hmm"}]}}
        {"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"b"}]}}
        {"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"c","name":"view","arguments":"{}"}}
        {"type":"response.completed","response":{"status":"completed"}}
        "#,
        expect![[r#"
            reasoning "hmm"
            text "ab"
            Function view c "{}"
            -- ToolCalls without id
            text "ab"
            reasoning "hmm" opaque Some("rs_1") encrypted None
            Function view c "{}"
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn items_that_no_event_told_of_are_taken_from_the_response() {
    check(
        r#"
        {"type":"response.output_text.delta","output_index":0,"delta":"a"}
        {"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"message","content":[{"type":"output_text","text":"b"}]},{"type":"web_search_call"}]}}
        "#,
        expect![[r#"
            text "a"
            text "\n\n"
            text "b"
            reasoning "Searched the web."
            -- Stop r
            text "a\n\nb"
            reasoning "Searched the web." opaque None encrypted None
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn several_reasoning_items_are_kept_as_they_came() {
    check(
        r#"
        {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","encrypted_content":"A","summary":[{"type":"summary_text","text":"one"}]}}
        {"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","id":"rs_2","encrypted_content":"B","summary":[{"type":"summary_text","text":"two"}]}}
        {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}
        "#,
        expect![[r#"
            reasoning "one"
            reasoning "\n\n"
            reasoning "two"
            -- Length without id
            reasoning "one\n\ntwo" opaque None encrypted Some("[{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"A\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"one\"}]},{\"type\":\"reasoning\",\"id\":\"rs_2\",\"encrypted_content\":\"B\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"two\"}]}]")
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn reasoning_that_was_not_encrypted_is_left_out_and_the_phase_of_the_answer_stays() {
    check(
        r#"
        {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}
        {"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"pong"}]}}
        {"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}
        "#,
        expect![[r#"
            text "pong"
            -- Stop r
            phase final_answer
            text "pong"
            reasoning "" opaque Some("rs_1") encrypted None
            items [{"type":"message","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"pong"}]}]
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn failures_inside_the_stream_are_errors() {
    check(
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Slow down"}}}"#,
        expect![[r#"
            error: RateLimit: Slow down
        "#]],
    );
    check(
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}"#,
        expect![[r#"
            error: ContextLength: Your input exceeds the context window of this model.
        "#]],
    );
    check(
        r#"{"type":"error","code":"server_error","message":"oops"}"#,
        expect![[r#"
        error: Server: oops
    "#]],
    );
    check(
        r#"{"error":{"message":"gateway"}}"#,
        expect![[r#"
        error: Server: gateway
    "#]],
    );
}

#[test]
fn an_answer_that_is_not_completed_is_cut() {
    check(
        r#"
        {"type":"response.output_text.delta","output_index":0,"delta":"a"}
        {"type":"response.output_text.done","output_index":0,"text":"a"}
        [DONE]
        "#,
        expect![[r#"
            text "a"
            cut
        "#]],
    );
}

#[test]
fn events_for_calls_that_never_began_are_passed_over() {
    check(
        r#"
        {"type":"response.function_call_arguments.delta","output_index":18446744073709551615,"delta":"x"}
        {"type":"response.output_item.added","output_index":0}
        {"type":"response.output_item.done","output_index":0,"item":null}
        {"type":"response.completed"}
        "#,
        expect![[r#"
            -- Stop without id
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn what_is_not_an_event_is_a_protocol_error() {
    check(
        "not json",
        expect![[r#"
        error: Protocol: the model provider sent what is not a response event: expected ident at line 1 column 2
    "#]],
    );
}

#[test]
fn an_answer_in_one_piece_is_read() {
    check_whole(
        Wire::Responses,
        &request("gpt-5.4", vec![user("hi")]),
        r#"{"id":"resp_1","status":"completed","error":null,"output":[
            {"type":"reasoning","id":"rs_1","encrypted_content":"gAAAA","summary":[]},
            {"type":"message","content":[{"type":"output_text","text":"pong"}]},
            {"type":"function_call","call_id":"c","name":"view","arguments":"{}"}],
            "usage":{"input_tokens":1,"output_tokens":2}}"#,
        expect![[r#"
            -- ToolCalls resp_1
            text "pong"
            reasoning "" opaque Some("rs_1") encrypted Some("gAAAA")
            Function view c "{}"
            items [{"type":"reasoning","id":"rs_1","encrypted_content":"gAAAA","summary":[]},{"type":"message","content":[{"type":"output_text","text":"pong"}]},{"type":"function_call","call_id":"c","name":"view","arguments":"{}"}]
            input 1 output 2 read ? written ? reasoning ?
        "#]],
    );
    check_whole(
        Wire::Responses,
        &request("gpt-5.4", vec![user("hi")]),
        r#"{"ok":true}"#,
        expect![[r#"
        error: Protocol: the model provider's answer has no output
    "#]],
    );
}

#[test]
fn an_answer_of_a_wanted_form_is_asked_for() {
    check_parameters(
        Wire::Responses,
        &formed("gpt-4.1"),
        expect![[
            r#"{"model":"gpt-4.1","text":{"format":{"name":"verdict","schema":{"type":"object","properties":{"ok":{"type":"boolean"}}},"description":"Whether it is right.","strict":true,"type":"json_schema"}},"prompt_cache_key":"e4f7bb6116c6e0824ba3508e6af59b5c","store":false,"stream":true,"parallel_tool_calls":true}"#
        ]],
    );
}

#[test]
fn calls_that_share_an_id_get_one_each_in_the_items_that_go_back_too() {
    let item = |at: u8, path: &str| {
        let call = json!({ "id": format!("fc_{at}"), "type": "function_call", "call_id": "c", "name": "view", "arguments": format!("{{\"path\":\"{path}\"}}") });
        json!({ "type": "response.output_item.done", "output_index": at, "item": call }).to_string()
    };
    let thought = json!({ "type": "response.output_item.done", "output_index": 0, "item": { "id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gA" } });
    let done = json!({ "type": "response.completed", "response": { "id": "r", "status": "completed" } });
    let mut decoder = Wire::Responses.decoder(&request("gpt-5.4", vec![user("hi")]), origin());
    for event in [thought.to_string(), item(1, "/a"), item(2, "/b"), done.to_string()] {
        decoder.event(&event, &mut Vec::new()).unwrap();
    }
    let turn = decoder.finish(&mut Vec::new()).unwrap().turn;
    let ids: Vec<&str> = turn.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["c", "c_2"]);
    let items: Value = serde_json::from_str(&turn.native.unwrap().items).unwrap();
    assert_eq!((&items[1]["call_id"], &items[2]["call_id"]), (&json!("c"), &json!("c_2")));
}

/// A conversation whose second request has a further tool.
fn with_a_late_tool(model: &str) -> ModelRequest {
    let mut request = conversation(model, native(ENCRYPTED));
    let late = ToolSpec { name: "late".into(), ..(*request.tools[0]).clone() };
    request.late_tools.push(LateTools { first: request.tools.len(), behind: request.messages.len() });
    request.tools = request.tools.iter().cloned().chain([Arc::new(late)]).collect();
    request
}

/// The types of the items, and the names of the tools in the list.
fn shape(body: &Value) -> (Vec<&str>, Vec<&str>) {
    let texts = |list: &'static str, field: &'static str| {
        body[list].as_array().unwrap().iter().filter_map(move |entry| entry[field].as_str()).collect()
    };
    (texts("input", "type"), texts("tools", "name"))
}

#[test]
fn late_tools_are_added_behind_the_messages_that_were_sent_before_them() {
    let openai = host_named("openai");
    let mut request = with_a_late_tool("gpt-5.6-sol");
    let first = body_for(Wire::Responses, WireVariant::Vendor, &openai, &request);
    let (items, tools) = shape(&first);
    assert_eq!((items.last(), tools), (Some(&"additional_tools"), vec!["view", "apply_patch"]));
    let added = &first["input"].as_array().unwrap()[items.len() - 1];
    assert_eq!((&added["role"], &added["tools"][0]["name"]), (&json!("developer"), &json!("late")));
    // They stay where they are, so that the next request begins as this one.
    let answer = AssistantTurn { text: "Done.".into(), ..AssistantTurn::default() };
    request.messages.extend([Message::Assistant(answer), user("next")].map(Arc::new));
    let second = body_for(Wire::Responses, WireVariant::Vendor, &openai, &request);
    assert_eq!(first["input"], json!(second["input"].as_array().unwrap()[..items.len()]));
    assert_eq!(
        (&first["tools"], &first["prompt_cache_key"]),
        (&second["tools"], &second["prompt_cache_key"])
    );
}

#[test]
fn late_tools_are_listed_where_no_item_may_add_them() {
    for (host, model) in [("xai", "grok-4.6"), ("openai", "gpt-5.2"), ("azure", "gpt-5.6-sol")] {
        let body =
            body_for(Wire::Responses, WireVariant::Vendor, &host_named(host), &with_a_late_tool(model));
        let (items, tools) = shape(&body);
        assert!(!items.contains(&"additional_tools"), "{host}");
        assert_eq!(tools, ["view", "apply_patch", "late"], "{host}");
    }
}

#[test]
fn a_call_of_another_model_has_the_id_of_its_result() {
    const LONG: &str = "call|0123456789012345678901234567890123456789|fc";
    let items = format!(
        r#"[{{"type":"function_call","id":"fc_1","call_id":"{LONG}","name":"view","arguments":"{{}}"}}]"#
    );
    let kin = native(&items).map(|native| NativeTurn {
        origin: ModelOrigin { model: "another".to_owned(), ..origin() },
        ..native
    });
    let mut request = conversation("gpt-5.6-sol", kin);
    request.messages.pop();
    for message in &mut request.messages {
        match Arc::make_mut(message) {
            Message::Assistant(turn) => {
                turn.tool_calls.truncate(1);
                turn.tool_calls[0].id = LONG.to_owned();
            }
            Message::Tool { call_id, .. } => *call_id = LONG.to_owned(),
            Message::User(_) => {}
        }
    }
    let body = body_for(Wire::Responses, WireVariant::Vendor, &host_named("openai"), &request);
    let ids: BTreeSet<&str> =
        body["input"].as_array().unwrap().iter().filter_map(|item| item["call_id"].as_str()).collect();
    assert_eq!(ids.len(), 1, "{body}");
    assert!(!ids.contains(LONG), "{body}");
}

#[test]
fn a_result_is_of_the_kind_of_its_call() {
    // A model without custom tools, whose call of one came as a function.
    const DISGUISED: &str = r#"[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"g"},{"type":"function_call","id":"fc_1","call_id":"call:1","name":"view","arguments":"{}"},{"type":"function_call","id":"fc_2","call_id":"call_2","name":"apply_patch","arguments":"{\"input\":\"*** Begin Patch\\n\"}"}]"#;
    let kin = |items: &str| {
        let origin = ModelOrigin { model: "another".to_owned(), ..origin() };
        native(items).map(|native| NativeTurn { origin, ..native })
    };
    let rewritten = |items: &str| native(items).map(|native| NativeTurn { rewritten: true, ..native });
    let turns = [
        native(DISGUISED),
        rewritten(DISGUISED),
        kin(DISGUISED),
        native(ENCRYPTED),
        rewritten(ENCRYPTED),
        kin(ENCRYPTED),
        foreign(ENCRYPTED),
        None,
    ];
    for (host, model) in [("xai", "grok-4.6"), ("openai", "o3"), ("openai", "gpt-5.6-sol")] {
        for turn in &turns {
            // Items of a model with custom tools never came from one without.
            let has_custom =
                turn.as_ref().is_some_and(|turn| turn.origin == origin() && turn.items.contains("custom"));
            if has_custom && model != "gpt-5.6-sol" {
                continue;
            }
            let request = conversation(model, turn.clone());
            let body = body_for(Wire::Responses, WireVariant::Vendor, &host_named(host), &request);
            let items = body["input"].as_array().unwrap();
            let of =
                |id: &str| -> Vec<&Value> { items.iter().filter(|item| item["call_id"] == id).collect() };
            let [call, output] = of("call_2")[..] else { panic!("{body}") };
            assert_eq!(
                format!("{}_output", call["type"].as_str().unwrap()),
                output["type"].as_str().unwrap()
            );
            let is_custom = call["type"] == "custom_tool_call";
            assert_eq!(
                (call.get("input").is_some(), call.get("arguments").is_some()),
                (is_custom, !is_custom)
            );
            assert!(!is_custom || model == "gpt-5.6-sol", "{model}: {call}");
            let text = call["input"].as_str().or(call["arguments"].as_str()).unwrap();
            assert!(text.contains("Begin Patch"), "{text}");
        }
    }
}
