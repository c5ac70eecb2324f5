//! Tests of how answers end on each wire, and of the cost that they report.

use hangar_agent::model::{Finish, Reply};

use super::Wire;
use super::testing::{origin, request, user};

/// Reads an answer in one piece.
fn whole(wire: Wire, answer: &str) -> Reply {
    let mut decoder = wire.decoder(&request("m", vec![user("hi")]), origin());
    decoder.whole(answer).unwrap();
    decoder.finish(&mut Vec::new()).unwrap()
}

#[test]
fn each_stop_reason_of_anthropic_has_its_meaning() {
    for (reason, finish) in [
        (r#""end_turn""#, Finish::Stop),
        (r#""tool_use""#, Finish::ToolCalls),
        (r#""max_tokens""#, Finish::Length),
        (r#""model_context_window_exceeded""#, Finish::ContextFull),
        (r#""pause_turn""#, Finish::Paused),
        (r#""refusal""#, Finish::Refusal(None)),
        (
            r#""refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"Not this."}"#,
            Finish::Refusal(Some("cyber: Not this.".to_owned())),
        ),
        (
            r#""refusal","stop_details":{"type":"refusal","category":"bio"}"#,
            Finish::Refusal(Some("bio".to_owned())),
        ),
        (r#""new_one""#, Finish::Other("new_one".to_owned())),
    ] {
        let answer = format!(r#"{{"content":[{{"type":"text","text":"a"}}],"stop_reason":{reason}}}"#);
        assert_eq!(whole(Wire::Messages, &answer).finish, finish, "{reason}");
    }
}

#[test]
fn the_details_of_a_refusal_are_read_from_a_stream_too() {
    let mut decoder = Wire::Messages.decoder(&request("m", vec![user("hi")]), origin());
    for data in [
        r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"No."}}}"#,
        r#"{"type":"message_stop"}"#,
    ] {
        decoder.event(data, &mut Vec::new()).unwrap();
    }
    assert_eq!(decoder.finish(&mut Vec::new()).unwrap().finish, Finish::Refusal(Some("No.".to_owned())));
}

#[test]
fn each_finish_reason_of_chat_completions_has_its_meaning() {
    for (reason, finish) in [
        ("stop", Finish::Stop),
        ("length", Finish::Length),
        ("content_filter", Finish::ContentFilter),
        ("refusal", Finish::Refusal(None)),
        ("pause_turn", Finish::Paused),
        ("model_context_window_exceeded", Finish::ContextFull),
        ("error", Finish::Broken("error".to_owned())),
        ("MALFORMED_FUNCTION_CALL", Finish::Broken("MALFORMED_FUNCTION_CALL".to_owned())),
        (
            "function_call_filter: MALFORMED_FUNCTION_CALL",
            Finish::Broken("function_call_filter: MALFORMED_FUNCTION_CALL".to_owned()),
        ),
        ("eos", Finish::Other("eos".to_owned())),
        // An end without a reason is valid if there is an answer.
        ("", Finish::Stop),
    ] {
        let answer = format!(r#"{{"choices":[{{"message":{{"content":"a"}},"finish_reason":"{reason}"}}]}}"#);
        assert_eq!(whole(Wire::Chat, &answer).finish, finish, "{reason}");
    }
    let nothing = r#"{"choices":[{"message":{"content":""},"finish_reason":""}]}"#;
    assert_eq!(whole(Wire::Chat, nothing).finish, Finish::Other(String::new()));
}

#[test]
fn each_status_of_a_response_has_its_meaning() {
    for (status, reason, finish) in [
        ("completed", "null", Finish::Stop),
        ("incomplete", r#"{"reason":"max_output_tokens"}"#, Finish::Length),
        ("incomplete", r#"{"reason":"content_filter"}"#, Finish::ContentFilter),
        ("incomplete", "null", Finish::Broken("incomplete".to_owned())),
        ("cancelled", "null", Finish::Broken("cancelled".to_owned())),
    ] {
        let answer = format!(r#"{{"output":[],"status":"{status}","incomplete_details":{reason}}}"#);
        assert_eq!(whole(Wire::Responses, &answer).finish, finish, "{status} {reason}");
    }
}

#[test]
fn a_call_that_was_cut_before_its_arguments_has_none() {
    let answer = |reason: &str| {
        format!(
            r#"{{"choices":[{{"message":{{"tool_calls":[{{"id":"c","function":{{"name":"view","arguments":""}}}}]}},"finish_reason":"{reason}"}}]}}"#
        )
    };
    let input = |reason: &str| whole(Wire::Chat, &answer(reason)).turn.tool_calls[0].input.clone();
    assert_eq!((input("tool_calls"), input("length")), ("{}".to_owned(), String::new()));
}

#[test]
fn the_cost_that_a_gateway_reports_is_read() {
    for (wire, answer) in [
        (
            Wire::Chat,
            r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"cost":0.0125}}"#,
        ),
        (Wire::Responses, r#"{"output":[],"status":"completed","usage":{"input_tokens":1,"cost":0.0125}}"#),
        (
            Wire::Messages,
            r#"{"content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"cost":0.0125}}"#,
        ),
    ] {
        assert_eq!(whole(wire, answer).usage.cost, Some(0.0125), "{answer}");
        assert_eq!(whole(wire, &answer.replace("0.0125", "-1")).usage.cost, None);
        assert_eq!(whole(wire, &answer.replace("0.0125", "null")).usage.cost, None);
    }
}
