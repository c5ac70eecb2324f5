//! Long sessions: the time that folding them takes, and what is kept of them.

use std::time::Duration;

use hangar_protocol::Event;
use hangar_transcript::{LaneId, Transcript};
use serde_json::json;

use crate::fixtures::fold;

/// Bound of the processor time for 50,000 events in a release build. Unoptimised code is given more.
const BOUND: Duration = Duration::from_millis(if cfg!(debug_assertions) { 5_000 } else { 150 });

/// Processor time of this thread: what others do on the machine is not measured.
fn processor_time() -> Duration {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(spent.split(' ').next().unwrap().parse().unwrap())
}

fn check(events: &[Event], blocks: usize) {
    let start = processor_time();
    let transcript = fold(events);
    let took = processor_time() - start;
    assert_eq!(transcript.main().end(), blocks);
    assert!(took < BOUND, "{took:?}");
}

fn event(number: usize, kind: &str, data: &serde_json::Value) -> Event {
    let line = json!({
        "type": kind, "data": data, "id": format!("e{number}"), "timestamp": "2026-01-01T00:00:00.000Z", "parentId": null,
    });
    Event::parse(&line.to_string()).unwrap()
}

/// Turns of one prompt each, with a call and a text in pieces.
fn events(count: usize) -> Vec<Event> {
    let turn = |n: usize| {
        let (call, message) = (format!("c{n}"), format!("m{n}"));
        let text = "some words of an answer, as they come from a model; ".repeat(4);
        let args = json!({ "command": "cargo test", "description": "run the tests" });
        let request = json!({ "toolCallId": call, "name": "bash", "arguments": args });
        let piece = json!({ "messageId": message, "deltaContent": text });
        let output = text.repeat(5);
        [
            ("user.message", json!({ "content": format!("prompt {n}") })),
            ("assistant.turn_start", json!({ "turnId": "0" })),
            ("assistant.message_delta", piece.clone()),
            ("assistant.message_delta", piece),
            (
                "assistant.message",
                json!({ "messageId": message, "content": text, "reasoningText": "hm", "toolRequests": [request] }),
            ),
            ("tool.execution_start", json!({ "toolCallId": call, "toolName": "bash", "arguments": args })),
            ("tool.execution_partial_result", json!({ "toolCallId": call, "partialOutput": output })),
            (
                "tool.execution_complete",
                json!({ "toolCallId": call, "success": true, "result": { "content": output } }),
            ),
            ("session.usage_info", json!({ "currentTokens": n, "tokenLimit": 200_000, "messagesLength": n })),
            ("assistant.turn_end", json!({ "turnId": "0" })),
        ]
    };
    let all = (0..count / 10).flat_map(turn).enumerate();
    all.map(|(number, (kind, data))| event(number, kind, &data)).collect()
}

#[test]
fn fifty_thousand_events_are_folded_in_a_moment() {
    check(&events(50_000), 20_000);
}

#[test]
fn one_prompt_with_many_turns_costs_no_more_per_turn() {
    let mut events = events(50_000);
    events.retain(|event| event.kind() != "user.message");
    check(&events, 15_000);
}

#[test]
fn a_view_that_forgets_what_it_has_shown_keeps_little() {
    let mut transcript = Transcript::new();
    for event in events(50_000) {
        transcript.apply(&event);
        let settled = (transcript.main().first()..transcript.main().end())
            .find(|index| transcript.main().is_open(*index))
            .unwrap_or(transcript.main().end());
        transcript.forget_before(LaneId::MAIN, settled);
        assert!(transcript.main().kept() <= 4, "{} blocks", transcript.main().kept());
    }
    // The names of the last thousand blocks are left, and a number for each event that made a block.
    let left = format!("{transcript:?}").len();
    assert!(left < 600_000, "{left} bytes when written out");
}
