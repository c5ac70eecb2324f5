//! Memory of a view: printed blocks are dropped.

use hangar_protocol::Event;
use serde_json::json;

use super::*;

/// Blocks that may be known at once in a session that goes on as below.
const FEW_BLOCKS: usize = 16;

fn event(kind: &str, id: usize, data: &Value) -> Input {
    let line = json!({ "type": kind, "data": data, "id": format!("e{id}"), "timestamp": "2026-11-17T12:00:00Z", "parentId": null });
    Input::Event(Box::new(Event::parse(&line.to_string()).unwrap()))
}

#[test]
fn fifty_thousand_events_keep_few_blocks() {
    let mut state = State::new(80, 24, 0);
    let mut printed = 0;
    for id in 0..50_000 {
        let turn = id / 10;
        let (kind, data) = match id % 10 {
            0 => ("user.message", json!({ "content": format!("prompt {turn}") })),
            1 => ("assistant.turn_start", json!({ "turnId": "0" })),
            2 => (
                "assistant.message_delta",
                json!({ "messageId": format!("m{turn}"), "deltaContent": "an answer" }),
            ),
            3 => (
                "assistant.message",
                json!({ "messageId": format!("m{turn}"), "content": "an answer", "toolRequests": [{ "toolCallId": format!("c{turn}"), "name": "bash", "arguments": {} }] }),
            ),
            4 => (
                "tool.execution_start",
                json!({ "toolCallId": format!("c{turn}"), "toolName": "bash", "arguments": { "command": "ls" } }),
            ),
            5 => (
                "tool.execution_partial_result",
                json!({ "toolCallId": format!("c{turn}"), "partialOutput": "a\n" }),
            ),
            6 => (
                "tool.execution_complete",
                json!({ "toolCallId": format!("c{turn}"), "success": true, "result": { "content": "a\nb" } }),
            ),
            7 => ("session.info", json!({ "message": "told" })),
            8 => ("assistant.turn_end", json!({ "turnId": "0" })),
            _ => ("session.idle", json!({})),
        };
        state.update(event(kind, id, &data), u64::try_from(id).unwrap());
        printed += state.frame().commit.len();
        let known = state.transcript.main().blocks().count();
        assert!(known <= FEW_BLOCKS, "{known} blocks after {id} events");
    }
    assert!(printed > 5_000 * 5, "{printed} rows");
    assert!(state.printed.pending.is_empty() && state.questions.dialogs.is_empty() && state.calls.len() <= 1);
}
