//! Status of the session, from its events.

use expect_test::{Expect, expect};
use hangar_protocol::Event;
use hangar_transcript::Transcript;
use serde_json::{Value, json};

fn check(events: &[(&str, Value)], expected: &Expect) {
    let mut transcript = Transcript::new();
    let mut told = String::new();
    for (kind, data) in events {
        let line = json!({ "type": kind, "data": data, "id": "e", "timestamp": "t", "parentId": null });
        let changes = transcript.apply(&Event::parse(&line.to_string()).unwrap());
        let news = if changes.status { " (new)" } else { "" };
        let work = if transcript.is_working() { "works" } else { "rests" };
        let facts = [transcript.model(), transcript.effort(), transcript.mode(), transcript.title()];
        let facts = facts.map(|fact| fact.unwrap_or("-")).join(" ");
        told += &format!("{kind}: {work} {facts} {:?}{news}\n", transcript.context().map(|used| used.tokens));
    }
    expected.assert_eq(&told);
}

#[test]
fn a_session_works_from_the_first_turn_to_the_last() {
    let calls =
        json!({ "messageId": "m", "content": "", "toolRequests": [{ "toolCallId": "c", "name": "bash" }] });
    let answers = json!({ "messageId": "n", "content": "done", "toolRequests": [] });
    check(
        &[
            ("user.message", json!({ "content": "hi" })),
            ("assistant.turn_start", json!({ "turnId": "0" })),
            ("assistant.message", calls.clone()),
            ("assistant.turn_end", json!({ "turnId": "0" })),
            ("assistant.turn_start", json!({ "turnId": "1" })),
            ("assistant.message", answers),
            ("assistant.turn_end", json!({ "turnId": "1" })),
            ("session.idle", json!({})),
            ("assistant.turn_start", json!({})),
            ("assistant.message", calls),
            ("abort", json!({ "reason": "user_initiated" })),
            ("assistant.turn_end", json!({ "turnId": "0" })),
        ],
        &expect![[r#"
            user.message: rests - - - - None
            assistant.turn_start: works - - - - None (new)
            assistant.message: works - - - - None
            assistant.turn_end: works - - - - None
            assistant.turn_start: works - - - - None
            assistant.message: works - - - - None
            assistant.turn_end: rests - - - - None (new)
            session.idle: rests - - - - None
            assistant.turn_start: works - - - - None (new)
            assistant.message: works - - - - None
            abort: rests - - - - None (new)
            assistant.turn_end: rests - - - - None
        "#]],
    );
}

#[test]
fn the_status_follows_the_events_of_the_session() {
    check(
        &[
            ("session.start", json!({ "selectedModel": "m1", "reasoningEffort": "low" })),
            ("session.model_change", json!({ "newModel": "m2" })),
            ("session.mode_changed", json!({ "newMode": "plan" })),
            ("session.mode_changed", json!({ "newMode": "plan" })),
            ("session.title_changed", json!({ "title": "A title" })),
            ("session.usage_info", json!({ "currentTokens": 5, "tokenLimit": 10 })),
            ("session.usage_info", json!({ "currentTokens": 6, "tokenLimit": "?" })),
        ],
        &expect![[r#"
            session.start: rests m1 low - - None (new)
            session.model_change: rests m2 - - - None (new)
            session.mode_changed: rests m2 - plan - None (new)
            session.mode_changed: rests m2 - plan - None
            session.title_changed: rests m2 - plan A title None (new)
            session.usage_info: rests m2 - plan A title Some(5) (new)
            session.usage_info: rests m2 - plan A title Some(5)
        "#]],
    );
}
