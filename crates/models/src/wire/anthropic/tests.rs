use std::sync::Arc;

use expect_test::{Expect, expect};
use hangar_agent::model::{AssistantTurn, LateTools, Message, NativeTurn, Part};
use hangar_protocol::data::ToolType;
use serde_json::{Value, json};

use crate::facts::HostFacts;
use crate::wire::testing::*;
use crate::wire::{Wire, WireVariant};

fn check(events: &str, expected: Expect) {
    let mut request = request("claude-sonnet-4.5", vec![user("hi")]);
    request.tools = tools();
    check_stream(Wire::Messages, &request, events, expected);
}

const SIGNED: &str = r#"[{"type":"thinking","thinking":"hmm","signature":"c2ln"},{"type":"text","text":"Looking."},{"type":"thinking","thinking":"more","signature":"bW9yZQ=="},{"type":"tool_use","id":"call_1","name":"view","input":{"path": "/a"}},{"type":"tool_use","id":"call_2","name":"apply_patch","input":{"input":"*** Begin Patch\n"}}]"#;

#[test]
fn a_conversation_is_written() {
    check_body(
        Wire::Messages,
        &conversation("claude-sonnet-4.5", native(SIGNED)),
        expect![[r#"
            model: "claude-sonnet-4.5"
            max_tokens: 32000
            system:
              {"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}
            thinking: {"type":"enabled","budget_tokens":1024}
            stream: true
            messages:
              {"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="},"cache_control":{"type":"ephemeral"}}]}
              {"role":"assistant","content":[{"type":"thinking","thinking":"hmm","signature":"c2ln"},{"type":"text","text":"Looking."},{"type":"thinking","thinking":"more","signature":"bW9yZQ=="},{"type":"tool_use","id":"call_1","name":"view","input":{"path":"/a"}},{"type":"tool_use","id":"call_2","name":"apply_patch","input":{"input":"*** Begin Patch\n"}}]}
              {"role":"user","content":[{"type":"tool_result","tool_use_id":"call:1","content":[{"type":"text","text":"Viewed."},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}}]},{"type":"tool_result","tool_use_id":"call_2","content":"Done.","cache_control":{"type":"ephemeral"}}]}
            tools:
              {"name":"view","description":"The tool view.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}
              {"name":"apply_patch","description":"The tool apply_patch.","input_schema":{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text."}},"required":["input"]},"cache_control":{"type":"ephemeral"}}
        "#]],
    );
}

#[test]
fn thinking_fits_the_model_and_the_effort() {
    let parameters = |model: &str, effort: Option<&str>, expected| {
        let mut request = request(model, vec![user("hi")]);
        request.effort = effort.map(str::to_owned);
        check_parameters(Wire::Messages, &request, expected);
    };
    parameters("mock-model", None, expect![[r#"{"model":"mock-model","max_tokens":8192,"stream":true}"#]]);
    parameters(
        "mock-model",
        Some("high"),
        expect![[
            r#"{"model":"mock-model","max_tokens":8192,"output_config":{"effort":"high"},"stream":true}"#
        ]],
    );
    parameters(
        "claude-sonnet-4.5",
        None,
        expect![[
            r#"{"model":"claude-sonnet-4.5","max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":1024},"stream":true}"#
        ]],
    );
    parameters(
        "claude-opus-4.6",
        None,
        expect![[
            r#"{"model":"claude-opus-4.6","max_tokens":128000,"thinking":{"type":"adaptive"},"stream":true}"#
        ]],
    );
    parameters(
        "claude-opus-4.6",
        Some("max"),
        expect![[
            r#"{"model":"claude-opus-4.6","max_tokens":128000,"thinking":{"type":"adaptive"},"output_config":{"effort":"max"},"stream":true}"#
        ]],
    );
    parameters(
        "claude-3-5-haiku-20241022",
        None,
        expect![[r#"{"model":"claude-3-5-haiku-20241022","max_tokens":8192,"stream":true}"#]],
    );
}

#[test]
fn a_turn_that_another_model_thought_through_is_continued_without_thinking() {
    for items in [foreign(SIGNED), None] {
        let body = body(Wire::Messages, WireVariant::Vendor, &conversation("claude-sonnet-4.5", items));
        assert_eq!(body.get("thinking"), None);
        assert_eq!(body["messages"][1]["content"][0]["type"], "text");
    }
}

#[test]
fn a_prompt_behind_results_goes_on_with_thinking_only_behind_an_answer_that_begins_with_it() {
    const UNTHOUGHT: &str = r#"[{"type":"text","text":"I am thinking"},{"type":"tool_use","id":"call_1","name":"view","input":{"path":"\"thinking\""}}]"#;
    const REDACTED: &str = r#"[{"type":"redacted_thinking","data":"xyz"},{"type":"tool_use","id":"call_1","name":"view","input":{}}]"#;
    let check = |items: Option<NativeTurn>, thinks: bool| {
        for model in ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-5"] {
            for more in [vec![], vec![user("go on")], vec![user("go"), user("on")]] {
                let mut request = conversation(model, items.clone());
                request.effort = Some("high".to_owned());
                request.messages.extend(more.into_iter().map(Arc::new));
                let body = body(Wire::Messages, WireVariant::Vendor, &request);
                assert_eq!(body.get("thinking").is_some(), thinks, "{model} {items:?}");
            }
        }
    };
    check(native(SIGNED), true);
    check(native(SIGNED).map(|native| NativeTurn { rewritten: true, ..native }), true);
    check(native(REDACTED), true);
    check(foreign(SIGNED), false);
    check(native(UNTHOUGHT), false);
    check(native("not json"), false);
    check(None, false);
}

#[test]
fn a_prompt_behind_an_answer_without_calls_begins_with_thinking() {
    let turn = AssistantTurn { text: "Done.".into(), ..AssistantTurn::default() };
    let mut request = conversation("claude-sonnet-4-5", None);
    request.messages.extend([Message::Assistant(turn), user("next")].map(Arc::new));
    let body = body(Wire::Messages, WireVariant::Vendor, &request);
    assert_eq!(body["thinking"]["type"], "enabled");
}

#[test]
fn arguments_that_a_hook_changed_are_told_and_the_thinking_stays() {
    let changed = native(SIGNED).map(|native| NativeTurn { rewritten: true, ..native });
    let mut request = conversation("claude-sonnet-4.5", changed);
    let Message::Assistant(turn) = Arc::make_mut(&mut request.messages[1]) else { panic!() };
    turn.tool_calls[0] = call("call_1", "view", ToolType::Function, r#"{"path":"/b"}"#);
    let body = body(Wire::Messages, WireVariant::Vendor, &request);
    let content = &body["messages"][1]["content"];
    assert_eq!((&content[0]["signature"], &content[3]["input"]["path"]), (&"c2ln".into(), &"/b".into()));
}

#[test]
fn a_conversation_that_ends_with_the_model_is_handed_back_to_it_unless_it_was_paused() {
    let last = |native| {
        let turn = AssistantTurn { text: "So".into(), native, ..AssistantTurn::default() };
        let messages = vec![user("hi"), Message::Assistant(turn)];
        let body = body(Wire::Messages, WireVariant::Vendor, &request("claude-opus-4.6", messages));
        body["messages"].as_array().unwrap().last().unwrap()["role"].clone()
    };
    assert_eq!(last(None), "user");
    let paused = r#"[{"type":"text","text":"So"},{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}]"#;
    assert_eq!(last(native(paused)), "user");
    assert_eq!(last(native(paused).map(|native| NativeTurn { paused: true, ..native })), "assistant");
    assert_eq!(last(foreign(paused).map(|native| NativeTurn { paused: true, ..native })), "user");
}

#[test]
fn empty_text_is_left_out_and_neighbours_of_one_side_are_joined() {
    let turn = AssistantTurn {
        tool_calls: vec![call("t1", "view", ToolType::Function, "not json")],
        ..AssistantTurn::default()
    };
    let result =
        Message::Tool { call_id: "t1".into(), kind: ToolType::Function, parts: vec![], is_error: true };
    let messages = vec![user("a"), user(""), user("b"), Message::Assistant(turn), result, user("c")];
    let body = body(Wire::Messages, WireVariant::Vendor, &request("m", messages));
    expect![[r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"view","input":{"invalid_arguments":"not json"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"The call failed.","is_error":true},{"type":"text","text":"c"}]}]"#]].assert_eq(&body["messages"].to_string());
}

#[test]
fn the_mark_for_the_cache_is_never_on_a_thought() {
    let thought = AssistantTurn { native: native(SIGNED), ..AssistantTurn::default() };
    let messages = vec![Message::User(vec![Part::Text("hi".into())]), Message::Assistant(thought)];
    let body = body(Wire::Messages, WireVariant::Vendor, &request("claude-sonnet-4.5", messages));
    assert_eq!(body["messages"][1]["content"][0].get("cache_control"), None);
}

#[test]
fn text_thinking_calls_and_usage() {
    check(
        r#"
        {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}
        {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
        {"type":"ping"}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}
        {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"pong"}}
        {"type":"content_block_stop","index":1}
        {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"view","input":{}}}
        {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}
        {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}
        {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"/a\"}"}}
        {"type":"content_block_stop","index":2}
        {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"apply_patch","input":{}}}
        {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"input\":\"***"}}
        {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":" Begin\"}"}}
        {"type":"content_block_stop","index":3}
        {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":42}}
        {"type":"message_stop"}
        "#,
        expect![[r#"
            reasoning "hm"
            reasoning "m"
            text "pong"
            Function view toolu_1 "{\"path\":"
            Function view toolu_1 "\"/a\"}"
            Custom apply_patch toolu_2 "*** Begin"
            -- ToolCalls msg_1
            text "pong"
            reasoning "hmm" opaque Some("c2ln") encrypted None
            Function view toolu_1 "{\"path\":\"/a\"}"
            Custom apply_patch toolu_2 "*** Begin"
            items [{"type":"thinking","thinking":"hmm","signature":"c2ln"},{"type":"text","text":"pong"},{"type":"tool_use","id":"toolu_1","name":"view","input":{"path":"/a"}},{"type":"tool_use","id":"toolu_2","name":"apply_patch","input":{"input":"*** Begin"}}]
            input 115 output 42 read 100 written 5 reasoning ?
        "#]],
    );
}

#[test]
fn later_counts_win_and_missing_ones_are_unknown() {
    check(
        r#"
        {"type":"message_start","message":{"id":"m","usage":{"input_tokens":0,"output_tokens":0}}}
        {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":12,"output_tokens":3}}
        {"type":"message_stop"}
        "#,
        expect![[r#"
            -- Stop m
            input 12 output 3 read ? written ? reasoning ?
        "#]],
    );
    check(
        r#"
        {"type":"message_start","message":{"id":"m"}}
        {"type":"message_delta","delta":{"stop_reason":"max_tokens"}}
        {"type":"message_stop"}
        "#,
        expect![[r#"
            -- Length m
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn redacted_thoughts_are_kept_as_they_came() {
    check(
        r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"xyz"}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"a","signature":"s"}}
        {"type":"content_block_stop","index":1}
        {"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":"b","signature":"t"}}
        {"type":"content_block_stop","index":2}
        {"type":"message_delta","delta":{"stop_reason":"refusal"}}
        {"type":"message_stop"}
        "#,
        expect![[r#"
            reasoning "a"
            reasoning "\n\n"
            reasoning "b"
            -- Refusal(None) without id
            reasoning "a\n\nb" opaque None encrypted Some("[{\"type\":\"redacted_thinking\",\"data\":\"xyz\"},{\"type\":\"thinking\",\"thinking\":\"a\",\"signature\":\"s\"},{\"type\":\"thinking\",\"thinking\":\"b\",\"signature\":\"t\"}]")
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn an_input_that_comes_with_the_start_of_its_call_is_taken() {
    check(
        r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"view","input":{"path":"/a"}}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":"list","input":{}}}
        {"type":"content_block_stop","index":1}
        {"type":"message_delta","delta":{"stop_reason":"tool_use"}}
        {"type":"message_stop"}
        "#,
        expect![[r#"
            Function view t "{\"path\":\"/a\"}"
            -- ToolCalls without id
            Function view t "{\"path\":\"/a\"}"
            Function list call_1 "{}"
            input ? output ? read ? written ? reasoning ?
        "#]],
    );
}

#[test]
fn an_error_inside_the_stream_is_an_error() {
    check(
        r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}
        {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}
        "#,
        expect![[r#"
            text "a"
            error: Server: Overloaded
        "#]],
    );
}

#[test]
fn a_stop_reason_alone_does_not_end_an_answer() {
    check(
        r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}
        {"type":"message_delta","delta":{"stop_reason":"end_turn"}}
        "#,
        expect![[r#"
            text "a"
            cut
        "#]],
    );
}

#[test]
fn pieces_of_blocks_that_never_began_are_passed_over() {
    check(
        r#"
        {"type":"content_block_delta","index":99,"delta":{"type":"text_delta","text":"x"}}
        {"type":"content_block_stop","index":18446744073709551615}
        {"type":"content_block_start","index":0}
        {"type":"message_start"}
        {"type":"something_new","index":0}
        {"type":"message_stop"}
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
        r#"{"type":"content_block_delta","index":-1}"#,
        expect![[r#"
        error: Protocol: the model provider sent what is not a message event: invalid value: integer `-1`, expected u64 at line 1 column 40
    "#]],
    );
}

#[test]
fn an_answer_in_one_piece_is_read() {
    let mut request = request("claude-sonnet-4.5", vec![user("hi")]);
    request.tools = tools();
    check_whole(
        Wire::Messages,
        &request,
        r#"{"id":"msg_1","type":"message","content":[
            {"type":"thinking","thinking":"hmm","signature":"c2ln"},
            {"type":"text","text":"pong"},
            {"type":"tool_use","id":"t1","name":"view","input":{"path":"/a"}},
            {"type":"tool_use","id":"t2","name":"apply_patch","input":{"input":"*** Begin"}}],
            "stop_reason":"tool_use","usage":{"input_tokens":1,"cache_read_input_tokens":2,"output_tokens":3}}"#,
        expect![[r#"
            -- ToolCalls msg_1
            text "pong"
            reasoning "hmm" opaque Some("c2ln") encrypted None
            Function view t1 "{\"path\":\"/a\"}"
            Custom apply_patch t2 "*** Begin"
            items [{"type":"thinking","thinking":"hmm","signature":"c2ln"},{"type":"text","text":"pong"},{"type":"tool_use","id":"t1","name":"view","input":{"path":"/a"}},{"type":"tool_use","id":"t2","name":"apply_patch","input":{"input":"*** Begin"}}]
            input 3 output 3 read 2 written ? reasoning ?
        "#]],
    );
    check_whole(
        Wire::Messages,
        &request,
        r#"{"type":"error","error":{"type":"api_error","message":"no"}}"#,
        expect![[r#"
            error: Server: no
        "#]],
    );
    check_whole(
        Wire::Messages,
        &request,
        "[]",
        expect![[r#"
        error: Protocol: the model provider's answer has no content
    "#]],
    );
}

#[test]
fn an_answer_of_a_wanted_form_is_asked_for() {
    check_parameters(
        Wire::Messages,
        &formed("claude-sonnet-4.6"),
        expect![[
            r#"{"model":"claude-sonnet-4.6","max_tokens":128000,"thinking":{"type":"adaptive"},"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}},"stream":true}"#
        ]],
    );
}

#[test]
fn a_model_that_thinks_by_budget_gets_that_of_its_effort_and_room_for_an_answer() {
    let check = |model: &str, effort: &str, limit: Option<u64>, expected: (Option<u64>, u64)| {
        let mut request = request(model, vec![user("hi")]);
        request.effort = Some(effort.to_owned());
        request.max_output_tokens = limit;
        let body = limited_body(&request);
        let budget = body["thinking"]["budget_tokens"].as_u64();
        let limit = body["max_tokens"].as_u64().unwrap();
        assert_eq!((budget, limit), expected, "{model} {effort} {limit:?}");
        assert!(budget.is_none_or(|budget| (1024..limit).contains(&budget)), "{model} {effort}");
    };
    for model in ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-5"] {
        check(model, "low", None, (Some(4000), 32_000));
        check(model, "medium", None, (Some(10_000), 32_000));
        check(model, "high", None, (Some(16_000), 32_000));
        check(model, "high", Some(8000), (Some(4000), 8000));
        check(model, "high", Some(1500), (None, 1500));
    }
    for effort in ["xhigh", "max"] {
        check("claude-sonnet-4-5", effort, None, (Some(31_999), 40_191));
        check("claude-sonnet-4-5", effort, Some(32_000), (Some(23_808), 32_000));
    }
    check("claude-sonnet-4-5", "minimal", None, (Some(1024), 32_000));
    check("claude-sonnet-4-5", "none", None, (None, 32_000));
}

/// The body of a request that may say how long its answer is.
fn limited_body(request: &hangar_agent::model::ModelRequest) -> serde_json::Value {
    body_within(Wire::Messages, request, request.max_output_tokens)
}

/// A conversation of two prompts, the first of which was answered with signed thinking in a request with this digest.
fn bound(prefix: Option<std::num::NonZeroU64>) -> hangar_agent::model::ModelRequest {
    let native = native(SIGNED).map(|native| NativeTurn { prefix, ..native });
    let mut request = conversation("claude-opus-5-5", native);
    request.messages.push(Arc::new(user("And now?")));
    request.messages.push(Arc::new(Message::Assistant(AssistantTurn {
        text: "That.".to_owned(),
        ..AssistantTurn::default()
    })));
    request.messages.push(Arc::new(user("Go on.")));
    request
}

#[test]
fn thinking_goes_back_only_behind_what_it_was_bound_to() {
    let first = |request: &hangar_agent::model::ModelRequest| {
        let mut first = request.clone();
        first.messages.truncate(1);
        first
    };
    let prefix = binding_of(&first(&bound(None))).prefix.unwrap();
    let sends = |request: &hangar_agent::model::ModelRequest| {
        let body = body(Wire::Messages, WireVariant::Vendor, request);
        let told = binding_of(request).notice().is_some();
        (body["messages"][1].to_string().contains("signature"), told)
    };
    let (kept, dropped) = ((true, false), (false, true));
    assert_eq!(sends(&bound(Some(prefix))), kept);
    assert_eq!(sends(&bound(None)), kept, "an answer from before digests");
    let mut tools = bound(Some(prefix));
    tools.tools = tools.tools[..1].into();
    assert_eq!(sends(&tools), dropped, "other tools");
    let mut system = bound(Some(prefix));
    system.system = "Be long.".into();
    assert_eq!(sends(&system), dropped, "another system prompt");
    let mut message = bound(Some(prefix));
    message.messages[0] = Arc::new(user("[redacted]"));
    assert_eq!(sends(&message), dropped, "an earlier message");
    // An answer without thinking has none to lose.
    let mut cited = system.clone();
    if let Message::Assistant(turn) = Arc::make_mut(&mut cited.messages[1])
        && let Some(native) = &mut turn.native
    {
        native.items = r#"[{"type":"text","text":"a","citations":[]}]"#.into();
    }
    assert_eq!(sends(&cited), (false, false));
    // Calls under way keep theirs: without it they would be refused.
    let mut under_way = tools.clone();
    under_way.messages.truncate(4);
    assert_eq!(sends(&under_way), kept);
    // Models that do not bind it are sent it in any case.
    let older = hangar_agent::model::ModelRequest { model: "claude-opus-4-6".to_owned(), ..tools };
    assert_eq!(sends(&older), kept);
}

#[test]
fn tools_that_come_late_are_added_in_the_conversation_and_cost_no_thinking() {
    let host = host_named("anthropic");
    let bind = |request: &hangar_agent::model::ModelRequest| {
        asked(WireVariant::Vendor, &host, request, None, |ask| std::mem::take(&mut ask.binding))
    };
    let body = |request: &hangar_agent::model::ModelRequest| {
        body_for(Wire::Messages, WireVariant::Vendor, &host, request)
    };
    let mut first = bound(None);
    first.messages.truncate(1);
    first.tools = tools()[..1].into();
    let prefix = bind(&first).prefix;
    // The first prompt has one answer and its two results; the second prompt is the first to have two tools.
    let mut request = bound(prefix);
    request.tools = tools();
    request.late_tools = vec![LateTools { first: 1, behind: 5 }];
    let sent = body(&request);
    let names =
        |tools: &Value| tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&sent["tools"]), ["view"]);
    assert!(sent["messages"][1].to_string().contains("signature"));
    assert_eq!(bind(&request).notice(), None);
    let roles: Vec<_> =
        sent["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "system", "assistant", "user"]);
    let added = &sent["messages"][3]["content"][0];
    assert_eq!(
        (&added["type"], &added["tool"]["definition"]["name"]),
        (&json!("tool_addition"), &json!("apply_patch"))
    );
    // A model that takes tools only in their list has them there.
    let older = hangar_agent::model::ModelRequest { model: "claude-opus-4-6".to_owned(), ..request };
    let sent = body(&older);
    assert_eq!(names(&sent["tools"]), ["view", "apply_patch"]);
    assert!(!sent["messages"].to_string().contains("tool_addition"));
}

#[test]
fn thinking_that_the_vendor_left_out_is_told() {
    let told = |changes: &str| {
        let start = format!(
            r#"{{"type":"message_start","message":{{"id":"m","usage":{{}},"input_transformations":{changes}}}}}"#
        );
        notices(&[start.as_str(), r#"{"type":"message_stop"}"#])
    };
    assert_eq!(told("[]"), Vec::<String>::new());
    let dropped = told(r#"[{"type":"thinking_block_dropped","path":"messages.1.content.0"}]"#);
    assert!(dropped[0].contains("left 1 block(s) of earlier reasoning out"), "{dropped:?}");
}

fn notices(events: &[&str]) -> Vec<String> {
    let mut decoder = Wire::Messages.decoder(&request("m", vec![user("hi")]), origin());
    let mut out = Vec::new();
    events.iter().for_each(|event| decoder.event(event, &mut out).unwrap());
    decoder.finish(&mut out).unwrap();
    out.into_iter()
        .filter_map(|event| match event {
            hangar_agent::model::ModelEvent::Notice(text) => Some(text),
            _ => None,
        })
        .collect()
}

#[test]
fn an_answer_that_ended_inside_its_thinking_goes_back_without_that() {
    let answer = |last: &str| {
        let events = format!(
            r#"
            {{"type":"content_block_start","index":0,"content_block":{{"type":"thinking","thinking":"a","signature":"c2ln"}}}}
            {{"type":"content_block_start","index":1,"content_block":{{"type":"text","text":"Looking."}}}}
            {{"type":"content_block_start","index":2,"content_block":{last}}}
            {{"type":"message_delta","delta":{{"stop_reason":"max_tokens"}}}}
            {{"type":"message_stop"}}"#
        );
        let mut decoder = Wire::Messages.decoder(&request("claude-opus-4-6", vec![user("hi")]), origin());
        let lines = events.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.for_each(|data| decoder.event(data, &mut Vec::new()).unwrap());
        let items: Value =
            serde_json::from_str(&decoder.finish(&mut Vec::new()).unwrap().turn.native.unwrap().items)
                .unwrap();
        items
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["type"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    // Cut before its signature came, and behind it.
    assert_eq!(answer(r#"{"type":"thinking","thinking":"b","signature":""}"#), ["thinking", "text"]);
    assert_eq!(answer(r#"{"type":"thinking","thinking":"b","signature":"Yg=="}"#), ["thinking", "text"]);
    assert_eq!(answer(r#"{"type":"redacted_thinking","data":"Yg=="}"#), ["thinking", "text"]);
    assert_eq!(answer(r#"{"type":"text","text":"b"}"#), ["thinking", "text", "text"]);
}

#[test]
fn a_call_whose_input_is_no_json_goes_back_without_input() {
    let events = r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"a","signature":"c2ln"}}
        {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"view","input":{}}}
        {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\": nowhere"}}
        {"type":"message_delta","delta":{"stop_reason":"tool_use"}}
        {"type":"message_stop"}"#;
    let mut decoder = Wire::Messages.decoder(&request("claude-opus-4-6", vec![user("hi")]), origin());
    let lines = events.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.for_each(|data| decoder.event(data, &mut Vec::new()).unwrap());
    let turn = decoder.finish(&mut Vec::new()).unwrap().turn;
    let items: Value = serde_json::from_str(&turn.native.unwrap().items).unwrap();
    assert_eq!((&items[0]["type"], &items[1]["type"]), (&json!("thinking"), &json!("tool_use")), "{items}");
    assert_eq!((&items[1]["id"], &items[1]["input"]), (&json!("toolu_1"), &json!({})), "{items}");
    assert_eq!(turn.tool_calls.len(), 1);
}

#[test]
fn a_failed_call_with_an_image_is_a_result_and_no_error() {
    let failed = |parts: Vec<Part>| {
        let mut request = conversation("claude-opus-4-6", None);
        let result =
            Message::Tool { call_id: "call:1".into(), kind: ToolType::Function, parts, is_error: true };
        request.messages[2] = Arc::new(result);
        let body = body(Wire::Messages, WireVariant::Vendor, &request);
        let result = &body["messages"][2]["content"][0];
        (result["is_error"].clone(), result["content"].is_array())
    };
    assert_eq!(failed(vec![Part::Text("No such file.".into())]), (json!(true), false));
    assert_eq!(failed(vec![Part::Text("No such page.".into()), image()]), (Value::Null, true));
}

#[test]
fn a_request_whose_last_message_is_empty_does_not_end_with_an_answer() {
    let turn = AssistantTurn { text: "Done.".into(), ..AssistantTurn::default() };
    let request = request("claude-opus-4-6", vec![user("hi"), Message::Assistant(turn), user(" ")]);
    let body = body(Wire::Messages, WireVariant::Vendor, &request);
    assert_eq!(body["messages"].as_array().unwrap().last().unwrap()["role"], "user");
}

#[test]
fn a_model_that_thinks_by_budget_is_asked_to_think_between_calls_at_its_vendor() {
    let betas = |model: &str, host: &HostFacts| {
        asked(WireVariant::Vendor, host, &request(model, vec![user("hi")]), None, |ask| ask.betas())
    };
    let anthropic = host_named("anthropic");
    assert_eq!(betas("claude-sonnet-4-5", &anthropic), ["interleaved-thinking-2025-05-14"]);
    assert_eq!(betas("claude-opus-4-6", &anthropic), [""; 0]);
    assert_eq!(betas("claude-sonnet-4-5", &HostFacts::default()), [""; 0]);
}
