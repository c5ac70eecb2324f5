use hangar_agent::model::{
    AssistantTurn, Finish, ModelError, ModelErrorKind, ModelEvent, NativeTurn, Reply, TokenUsage,
};
use hangar_protocol::EventId;
use hangar_protocol::data::{ModelOrigin, ToolType};
use proptest::prelude::*;
use serde_json::json;

use super::guards::GuardedAnswer;
use super::stream::Held;
use super::*;

fn redactor(secrets: &[&str]) -> Redactor {
    Redactor::new(secrets.iter().map(|secret| (*secret).to_owned()))
}

#[track_caller]
fn check(secrets: &[&str], text: &str, expected: &str) {
    assert_eq!(redactor(secrets).text(text.to_owned()), expected);
}

#[test]
fn secrets_are_masked_wherever_they_stand() {
    check(
        &["hunter2-hunter2", "hunter2-hunter2-long"],
        "a=hunter2-hunter2 b=hunter2-hunter2-long 1",
        "a=[redacted] b=[redacted] 1",
    );
}

#[test]
fn values_that_are_empty_or_short_or_blank_are_ordinary_text() {
    check(&["", "1", "true", "      \n  "], "it is true: 1       \n  ", "it is true: 1       \n  ");
}

#[test]
fn nothing_is_left_of_secrets_that_overlap() {
    check(&["abcabc"], "-abcabcabcabc-", "-[redacted]-");
    check(&["secret-one", "one-secret"], "secret-one-secret!", "[redacted]!");
}

#[test]
fn a_secret_is_found_as_json_writes_it() {
    check(&["pa\"ss\\word"], r#"{"key":"pa\"ss\\word"}"#, r#"{"key":"[redacted]"}"#);
    check(
        &["pa\"ssword"],
        r#"{"body":"{\"key\":\"pa\\\"ssword\"}"}"#,
        r#"{"body":"{\"key\":\"[redacted]\"}"}"#,
    );
    check(&["line one\nline two"], r#"{"key":"line one\nline two"}"#, r#"{"key":"[redacted]"}"#);
    check(&["pässwörd"], r#"{"key":"p\u00e4ssw\u00f6rd"}"#, r#"{"key":"[redacted]"}"#);
}

#[test]
fn what_is_json_stays_json() {
    check(&["12345678"], r#"{"pin":12345678,"n":1}"#, r#"{"pin":"[redacted]","n":1}"#);
    check(&["12345678"], "{\"pin\":12345678}\n{\"n\":1}\n", "{\"pin\":\"[redacted]\"}\n{\"n\":1}\n");
    check(&["12345678"], "pin 12345678", "pin [redacted]");
    check(&[r#"":{"a""#], r#"{"x":{"a":1}}"#, r#""[redacted]""#);
    check(&[r#"{"type":"account"}"#], "{\"type\":\"account\"}\n", "\"[redacted]\"\n");
}

#[test]
fn a_secret_of_many_lines_is_found_line_by_line_too() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END KEY-----\n";
    check(&[key], "2. MIIEvQIBADANBgkqhkiG9w0B", "2. [redacted]");
}

#[test]
fn the_mask_is_not_masked() {
    check(&["redacted"], "a redacted [redacted]", "a redacted [redacted]");
}

fn event(kind: &str, data: serde_json::Value) -> Event {
    let event = json!({"type": kind, "data": data, "id": "i-assistant", "timestamp": "t", "parentId": null});
    Event::parse(&event.to_string()).unwrap()
}

#[track_caller]
fn check_event(secrets: &[&str], kind: &str, data: serde_json::Value, expected: serde_json::Value) {
    let event = event(kind, data);
    let redacted = redactor(secrets).event(&event).unwrap_or(event);
    let written: Value = serde_json::to_value(&redacted).unwrap();
    assert_eq!(written["data"], expected);
    assert_eq!((&written["type"], &written["id"]), (&json!(kind), &json!("i-assistant")));
}

#[test]
fn an_event_keeps_its_shape_when_a_secret_is_a_word_of_the_protocol() {
    let data = json!({"messageId": "m", "deltaContent": "deltaContent of the assistant"});
    let expected = json!({"messageId": "m", "deltaContent": "[redacted] of the [redacted]"});
    check_event(&["deltaContent", "assistant", "message"], "assistant.message_delta", data, expected);
}

#[test]
fn an_event_with_a_fixed_word_that_is_a_secret_loses_the_others() {
    let data = json!({"newMode": "autopilot", "previousMode": "interactive"});
    check_event(&["autopilot"], "session.mode_changed", data.clone(), data);
}

#[test]
fn arguments_and_failures_of_a_call_are_redacted() {
    check_event(
        &["tok-3n-secret"],
        "tool.execution_complete",
        json!({"toolCallId": "c", "success": false, "error": {"message": "no tok-3n-secret", "code": "failure"}}),
        json!({"toolCallId": "c", "success": false, "error": {"message": "no [redacted]", "code": "failure"}}),
    );
}

/// Texts over few letters, so that secrets and their prefixes occur often.
fn word() -> impl Strategy<Value = String> {
    "[ab\"\\\\\n{é]{6,9}"
}

fn pieces() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop_oneof!["[ab\"\\\\\n{é]{0,6}", word()], 0..12)
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (100_000..1_000_000_u32).prop_map(Value::from),
        "[ab\"\\\\\n{é]{0,14}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[ab\"]{0,8}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_secret_is_left_in_a_text(secrets in prop::collection::vec(word(), 1..4), pieces in pieces()) {
        let redactor = Redactor::new(secrets.clone());
        let text = redactor.text(pieces.concat());
        for secret in secrets.iter().filter(|secret| secret.trim().len() >= MIN_SECRET) {
            prop_assert!(!text.contains(secret.as_str()), "{secret:?} in {text:?}");
        }
    }

    #[test]
    fn json_in_json_out(
        secrets in prop::collection::vec(prop_oneof![word(), "[1-9]{6}", "\"[ab]{2,4}\":[{\"]"], 1..4),
        document in prop::collection::vec(json_value(), 0..4),
    ) {
        let redactor = Redactor::new(secrets.clone());
        let text = redactor.text(Value::from(document).to_string());
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
        for secret in secrets.iter().filter(|secret| secret.trim().len() >= MIN_SECRET) {
            prop_assert!(!text.contains(secret.as_str()), "{secret:?} in {text:?}");
        }
    }

    #[test]
    fn pieces_say_what_the_whole_says(secrets in prop::collection::vec(word(), 1..4), pieces in pieces()) {
        let redactor = Redactor::new(secrets);
        let mut held = Held::default();
        let mut said: String = pieces.iter().map(|piece| held.push(&redactor, piece)).collect();
        said.push_str(&held.finish(&redactor));
        let whole = pieces.concat();
        let found = redactor.0.as_ref().map(|secrets| secrets.find(&whole)).unwrap_or_default();
        prop_assert_eq!(said, mask(&whole, &found));
    }

    #[test]
    fn an_event_stays_one_and_keeps_no_secret(secret in word(), arguments in json_value()) {
        let said = format!("x{secret}x");
        let data = json!({"toolCallId": "c", "toolName": said, "arguments": {"a": arguments, "b": said}});
        let event = event("tool.execution_start", data);
        let redactor = Redactor::new([secret.clone()]);
        let redacted = redactor.event(&event).unwrap_or(event);
        let written: Value = serde_json::from_str(&serde_json::to_string(&redacted).unwrap()).unwrap();
        prop_assert_eq!(&written["data"]["toolCallId"], "c");
        if secret.trim().len() >= MIN_SECRET {
            prop_assert!(!written["data"]["arguments"]["b"].as_str().unwrap().contains(&secret));
        }
    }
}

fn answer(pieces: Vec<Result<ModelEvent, ModelError>>) -> Vec<String> {
    let redactor = redactor(&["tok-3n-secret"]);
    let mut answer = GuardedAnswer::default();
    let told = pieces.into_iter().flat_map(|piece| answer.redact(&redactor, piece));
    told.map(|piece| match piece {
        Ok(ModelEvent::Notice(text)) => text,
        Ok(ModelEvent::Text(text)) => format!("text {text}"),
        Ok(ModelEvent::Reasoning(text)) => format!("reasoning {text}"),
        Ok(ModelEvent::ToolInput { call_id, delta, .. }) => format!("{call_id} {delta}"),
        Ok(ModelEvent::Finished(reply)) => format!("finished {}", reply.turn.text),
        Err(error) => format!("failed {} {}", error.message, error.body.unwrap_or_default()),
    })
    .collect()
}

fn said(text: &str) -> Result<ModelEvent, ModelError> {
    Ok(ModelEvent::Text(text.to_owned()))
}

fn input(call_id: &str, delta: &str) -> Result<ModelEvent, ModelError> {
    let (call_id, name) = (call_id.to_owned(), "bash".to_owned());
    Ok(ModelEvent::ToolInput { call_id, name, kind: ToolType::Function, delta: delta.to_owned() })
}

#[test]
fn a_secret_that_comes_in_pieces_is_masked_and_what_only_began_like_one_is_shown() {
    let turn = AssistantTurn { text: "it is tok-3n-secret. tok-3n".to_owned(), ..AssistantTurn::default() };
    let reply = Reply::new(turn, Finish::Stop, TokenUsage::default());
    let finished = Ok(ModelEvent::Finished(Box::new(reply)));
    assert_eq!(
        answer(vec![said("it is tok"), said("-3n-sec"), said("ret. tok"), said("-3n"), finished]),
        ["text it is ", "text [redacted]. ", "text tok-3n", "finished it is [redacted]. tok-3n"]
    );
}

#[test]
fn texts_of_one_answer_are_not_taken_together() {
    assert_eq!(
        answer(vec![said("tok-3n"), input("1", ""), input("1", "-secret! tok"), input("2", "-3n-secret!")]),
        ["text tok-3n", "1 ", "1 -secret! ", "2 -3n-secret!"]
    );
}

#[test]
fn a_secret_is_found_in_the_inputs_of_calls_that_come_in_turns() {
    assert_eq!(
        answer(vec![input("1", "a tok-3n"), input("2", "b"), input("1", "-secret."), input("2", "c")]),
        ["1 a ", "2 b", "1 [redacted].", "2 c"]
    );
}

#[test]
fn an_error_of_a_provider_is_redacted_and_its_body_stays_json() {
    let error = ModelError {
        status: Some(400),
        body: Some(r#"{"error":{"message":"tok-3n-secret"}}"#.to_owned()),
        ..ModelError::new(ModelErrorKind::Refused, "tok-3n-secret is wrong")
    };
    assert_eq!(
        answer(vec![said("tok"), Err(error)]),
        ["text tok", r#"failed [redacted] is wrong {"error":{"message":"[redacted]"}}"#]
    );
}

#[test]
fn what_a_vendor_signed_goes_back_to_it_and_nowhere_else() {
    let redactor = redactor(&["tok-3n-secret"]);
    let items = r#"[{"type":"thinking","thinking":"tok-3n-secret","signature":"s"}]"#;
    let native = NativeTurn {
        origin: ModelOrigin::default(),
        items: items.into(),
        rewritten: false,
        paused: false,
        prefix: None,
    };
    let turn = AssistantTurn {
        text: "tok-3n-secret".to_owned(),
        native: Some(native.clone()),
        ..Default::default()
    };
    let kept = redactor.turn(turn);
    assert_eq!((kept.text.as_str(), kept.native), ("[redacted]", Some(native)));
    let body = ModelItems {
        message_id: "m".to_owned(),
        origin: ModelOrigin::default(),
        items: RawValue::from_string(items.to_owned()).unwrap(),
        paused: false,
        prefix: None,
    };
    let event = Event::new(EventId("e".to_owned()), String::new(), None, None, body.into());
    let redacted = redactor.event(&event).map(|event| serde_json::to_string(&event).unwrap()).unwrap();
    assert!(redacted.contains(r#""items":null"#) && !redacted.contains("tok-3n"), "{redacted}");
}
