//! Decoders with arbitrary streams: it makes no difference where the bytes are split, and no input makes a decoder
//! panic.

use hangar_agent::model::Reply;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::testing::{origin, request, tools, user};
use super::{Decode, Wire};
use crate::sse::{SseError, SseParser};

const MESSAGES: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Äh, 思考 🦀"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Grüße\n"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"redacted_thinking","data":"eA=="}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"view","input":{}}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"/ä\"}"}}"#,
    r#"{"type":"content_block_stop","index":3}"#,
    r#"{"type":"content_block_start","index":4,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}"#,
    r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"größe\"}"}}"#,
    r#"{"type":"content_block_stop","index":4}"#,
    r#"{"type":"content_block_start","index":5,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a.example","title":"Ä","encrypted_content":"eA=="}]}}"#,
    r#"{"type":"content_block_stop","index":5}"#,
    r#"{"type":"content_block_start","index":6,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":6,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://a.example","title":"Ä"}}}"#,
    r#"{"type":"content_block_delta","index":6,"delta":{"type":"text_delta","text":"Größe"}}"#,
    r#"{"type":"content_block_stop","index":6}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}"#,
    r#"{"type":"message_stop"}"#,
];

const RESPONSES: &[&str] = &[
    r#"{"type":"response.created","response":{"id":"resp_1","status":"in_progress"}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"思考"}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"思考"}],"encrypted_content":"gAAA"}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","content":[]}}"#,
    r#"{"type":"response.output_text.delta","output_index":1,"delta":"Grüße 🦀"}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Grüße 🦀"}]}}"#,
    r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"view","arguments":""}}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"path\":\"/a\"}"}"#,
    r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"view","arguments":"{\"path\":\"/a\"}"}}"#,
    r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"größe"}}}"#,
    r#"{"type":"response.output_item.added","output_index":4,"item":{"type":"custom_tool_call","id":"ctc_1","call_id":"call_2","name":"apply_patch","input":""}}"#,
    r#"{"type":"response.custom_tool_call_input.delta","output_index":4,"delta":"*** Begin ä\n"}"#,
    r#"{"type":"response.output_item.done","output_index":4,"item":{"type":"custom_tool_call","id":"ctc_1","call_id":"call_2","name":"apply_patch","input":"*** Begin ä\n"}}"#,
    r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","usage":{"input_tokens":9,"output_tokens":3}}}"#,
];

const CHAT: &[&str] = &[
    r#"{"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"reasoning_content":"思考","reasoning_details":[{"type":"reasoning.text","index":0,"text":"思"}]}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"考","signature":"s"}]}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"Grüße 🦀"}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"view","arguments":"{\"pa"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"th\":\"/a\"}"}}]}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","function":{"name":"view","arguments":"{}"}}]}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":2,"id":"call_3","type":"custom","custom":{"name":"apply_patch","input":"*** Be"}}]}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":2,"custom":{"input":"gin ä\n"}}]}}]}"#,
    r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
    "[DONE]",
];

fn wires() -> impl Strategy<Value = (Wire, &'static [&'static str])> {
    prop_oneof![
        Just((Wire::Messages, MESSAGES)),
        Just((Wire::Responses, RESPONSES)),
        Just((Wire::Chat, CHAT))
    ]
}

fn decoder(wire: Wire) -> Box<dyn Decode> {
    let mut request = request("some-model", vec![user("hi")]);
    request.tools = tools();
    wire.decoder(&request, origin())
}

/// Reads pieces of bytes as a stream. `None` where the stream is refused or breaks off.
fn read<'a>(wire: Wire, pieces: impl Iterator<Item = &'a [u8]>) -> Option<Reply> {
    let mut decoder = decoder(wire);
    let mut sse = SseParser::default();
    let mut out = Vec::new();
    let mut refused = false;
    for piece in pieces {
        let pushed: Result<(), SseError> = sse.push(piece, |data| {
            refused |= decoder.event(data, &mut out).is_err();
            Ok(())
        });
        refused |= pushed.is_err();
    }
    let ended: Result<(), SseError> = sse.end(|data| {
        refused |= decoder.event(data, &mut out).is_err();
        Ok(())
    });
    refused |= ended.is_err();
    let reply = decoder.finish(&mut out);
    if refused { None } else { reply }
}

/// How events are written.
#[derive(Debug, Clone, Copy)]
struct Framing {
    line_end: &'static str,
    /// Whether comments stand between events.
    comments: bool,
    /// Whether each event has its name and an id in front.
    names: bool,
    /// Whether a blank line follows the last event.
    ends: bool,
}

const PLAIN: Framing = Framing { line_end: "\n", comments: false, names: false, ends: true };

fn framings() -> impl Strategy<Value = Framing> {
    let line_end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    (line_end, any::<[bool; 3]>()).prop_map(|(line_end, [comments, names, ends])| Framing {
        line_end,
        comments,
        names,
        ends,
    })
}

fn framed(events: &[String], framing: Framing) -> Vec<u8> {
    let end = framing.line_end;
    let mut text = String::new();
    for (number, event) in events.iter().enumerate() {
        if framing.comments {
            text.push_str(&format!(": keep-alive ä{end}{end}"));
        }
        if framing.names {
            text.push_str(&format!("event: größe_{number}{end}id: {number}{end}"));
        }
        text.push_str(&format!("data: {event}{end}{end}"));
    }
    if !framing.ends {
        text.truncate(text.trim_end().len());
    }
    text.into_bytes()
}

fn lines(events: &[&str]) -> Vec<String> {
    events.iter().map(|&event| event.to_owned()).collect()
}

/// Any value that a field of an event may have instead of a valid one.
fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{}, null, 7, "x"])),
        Just(json!({ "type": "tool_use", "index": -1, "text": 5 })),
    ]
}

/// Replaces the value at some place of a document.
fn replace(value: &mut Value, at: &Index, with: Value) {
    fn places<'a>(value: &'a mut Value, out: &mut Vec<&'a mut Value>) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| places(item, out)),
            Value::Object(fields) => fields.values_mut().for_each(|field| places(field, out)),
            leaf => out.push(leaf),
        }
    }
    let mut found = Vec::new();
    places(value, &mut found);
    if !found.is_empty() {
        *found.swap_remove(at.index(found.len())) = with;
    }
}

proptest! {
    #[test]
    fn where_a_stream_is_cut_makes_no_difference(
        (wire, events) in wires(),
        mut cuts in prop::collection::vec(any::<Index>(), 0..40),
        framing in framings(),
    ) {
        let bytes = framed(&lines(events), framing);
        let expected = read(wire, std::iter::once(bytes.as_slice()));
        prop_assert!(expected.as_ref().is_some_and(|reply| reply.turn.native.is_some() && !reply.turn.tool_calls.is_empty()));
        cuts.sort_by_key(|cut| cut.index(bytes.len()));
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        ends.push(bytes.len());
        let mut start = 0;
        let pieces = ends.into_iter().map(|end| &bytes[std::mem::replace(&mut start, end)..end]).collect::<Vec<_>>();
        prop_assert_eq!(read(wire, pieces.into_iter()), expected);
    }

    #[test]
    fn no_event_makes_a_decoder_panic(
        (wire, events) in wires(),
        broken in prop::collection::vec((any::<Index>(), any::<Index>(), anything()), 1..4),
        dropped in prop::collection::vec(any::<Index>(), 0..3),
    ) {
        let mut events = lines(events);
        for (event, place, with) in broken {
            let at = event.index(events.len());
            if let Ok(mut value) = serde_json::from_str::<Value>(&events[at]) {
                replace(&mut value, &place, with);
                events[at] = value.to_string();
            }
        }
        for event in dropped {
            events.remove(event.index(events.len()));
        }
        if let Some(reply) = read(wire, std::iter::once(framed(&events, PLAIN).as_slice())) {
            let items = reply.turn.native.map(|native| native.items);
            prop_assert!(items.is_none_or(|items| serde_json::from_str::<Value>(&items).is_ok() && !items.contains('\n')));
        }
    }

    #[test]
    fn no_answer_in_one_piece_makes_a_decoder_panic((wire, _) in wires(), at in any::<Index>(), with in anything()) {
        let mut whole = match wire {
            Wire::Messages => json!({ "id": "m", "content": [{ "type": "text", "text": "hi" }, { "type": "tool_use", "id": "t", "name": "view", "input": {} }], "stop_reason": "tool_use", "usage": { "input_tokens": 1 } }),
            Wire::Responses => json!({ "id": "r", "status": "completed", "output": [{ "type": "message", "content": [{ "type": "output_text", "text": "hi" }] }], "usage": { "input_tokens": 1 } }),
            Wire::Chat => json!({ "id": "c", "choices": [{ "message": { "content": "hi", "tool_calls": [{ "id": "t", "function": { "name": "view", "arguments": "{}" } }] }, "finish_reason": "stop" }], "usage": { "prompt_tokens": 1 } }),
        };
        replace(&mut whole, &at, with);
        let mut decoder = decoder(wire);
        if decoder.whole(&whole.to_string()).is_ok() {
            decoder.finish(&mut Vec::new());
        }
    }
}
