//! Properties of the fold that hold for any events in any order.

use std::collections::BTreeMap;

use hangar_protocol::Event;
use hangar_transcript::{Block, Change, Changes, LaneId, Transcript};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::fixtures::{fold, logs};
use crate::outline::outline;

const KINDS: &[&str] = &[
    "user.message",
    "assistant.turn_start",
    "assistant.turn_end",
    "assistant.message_delta",
    "assistant.message",
    "assistant.reasoning_delta",
    "assistant.reasoning",
    "assistant.tool_call_delta",
    "tool.execution_start",
    "tool.execution_partial_result",
    "tool.execution_complete",
    "permission.requested",
    "permission.completed",
    "elicitation.requested",
    "elicitation.completed",
    "subagent.started",
    "subagent.completed",
    "session.error",
    "session.info",
    "session.compaction_start",
    "session.compaction_complete",
    "hangar.history_truncated",
    "abort",
];

/// An event of any kind that matters, with few ids, so that events meet the same blocks again and again.
fn event() -> impl Strategy<Value = Value> {
    let id = || select(vec!["1", "2", "3"]);
    let text = || select(vec!["a", "b", "", " ", "Compacting the conversation to make room"]);
    let odd = prop_oneof![9 => Just(None), 1 => select(vec![json!(null), json!(7), json!([]), json!({})]).prop_map(Some)];
    let agent = prop_oneof![3 => Just(None), 1 => select(vec!["x", "y", "z"]).prop_map(Some)];
    let target = 0..60_usize;
    (select(KINDS), id(), id(), text(), agent, odd, any::<bool>(), target).prop_map(
        |(kind, id, other, text, agent, odd, flag, target)| {
            let args = odd.clone().unwrap_or(json!({ "path": text }));
            let mut data = json!({
                "content": text, "message": text, "deltaContent": text, "inputDelta": text, "partialOutput": text,
                "reasoningText": if flag { text } else { "" }, "messageId": id, "reasoningId": other,
                "toolCallId": id, "toolName": "bash", "arguments": args, "requestId": other, "turnId": "0",
                "permissionRequest": { "toolCallId": id }, "success": flag, "reason": text,
                "result": { "content": text, "kind": "approved" }, "parentToolCallId": other, "agentName": "n",
                "agentDisplayName": "n", "agentDescription": "", "upToEventId": format!("e{target}"),
                "toolRequests": [{ "toolCallId": other, "name": "edit", "arguments": args }],
            });
            if kind == "elicitation.requested" {
                data["toolCallId"] = Value::Null;
            }
            if let Some(odd) = odd {
                data["content"] = odd.clone();
                data["toolRequests"] = odd;
            }
            let mut event = json!({ "type": kind, "data": data, "timestamp": "t", "parentId": null });
            if let Some(agent) = agent {
                event["agentId"] = json!(agent);
            }
            event
        },
    )
}

fn parsed(events: Vec<Value>) -> Vec<Event> {
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["id"] = json!(format!("e{number}"));
        Event::parse(&event.to_string()).unwrap()
    });
    numbered.collect()
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(event(), 0..60).prop_map(parsed)
}

/// Events of all logs, in any order.
fn shuffled() -> impl Strategy<Value = Vec<Event>> {
    let all: Vec<Event> = logs().into_iter().flat_map(|(_, events)| events).collect();
    prop::collection::vec(select(all), 0..100)
}

fn any_events() -> impl Strategy<Value = Vec<Event>> {
    prop_oneof![events(), shuffled()]
}

fn lanes(transcript: &Transcript) -> Vec<LaneId> {
    let mut lanes = vec![LaneId::MAIN];
    lanes.extend(transcript.agents().filter_map(|(id, ..)| transcript.agent_lane(id)));
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

fn blocks(transcript: &Transcript) -> BTreeMap<Change, Block> {
    let of_lane = |lane| {
        let blocks = transcript.lane(lane).unwrap().blocks();
        blocks.map(move |(index, block)| (Change { lane, index }, block.clone()))
    };
    lanes(transcript).into_iter().flat_map(of_lane).collect()
}

/// The event in two, if it is a piece of a text.
fn in_pieces(event: &Event, at: Index) -> Vec<Event> {
    let name = match event.kind() {
        "assistant.message_delta" | "assistant.reasoning_delta" => "deltaContent",
        "assistant.tool_call_delta" => "inputDelta",
        _ => return vec![event.clone()],
    };
    let whole = serde_json::to_value(event).unwrap();
    let text = whole["data"][name].as_str().unwrap();
    let (head, tail) = text.split_at(text.floor_char_boundary(at.index(text.len() + 1)));
    let piece = |text: &str| {
        let mut event = whole.clone();
        event["data"][name] = json!(text);
        Event::parse(&event.to_string()).unwrap()
    };
    vec![piece(head), piece(tail)]
}

/// Folds events with a transcript that forgets at some of them, and one that forgets nothing.
fn check_forgetting(events: &[Event], forget: &[(Index, Index)]) -> Result<(), TestCaseError> {
    let (mut whole, mut forgetful) = (Transcript::new(), Transcript::new());
    for (event, (lane, index)) in events.iter().zip(forget.iter().cycle()) {
        let all = whole.apply(event);
        let kept = forgetful.apply(event);
        let is_kept =
            |change: &&Change| forgetful.lane(change.lane).is_some_and(|lane| lane.first() <= change.index);
        let expected =
            Changes { blocks: all.blocks.iter().filter(is_kept).copied().collect(), status: all.status };
        prop_assert_eq!(kept, expected);
        for id in lanes(&whole) {
            let (whole, forgetful) = (whole.lane(id).unwrap(), forgetful.lane(id).unwrap());
            prop_assert_eq!(whole.end(), forgetful.end());
            for (index, block) in forgetful.blocks() {
                prop_assert_eq!(whole.get(index), Some(block));
                prop_assert_eq!(whole.is_open(index), forgetful.is_open(index));
            }
        }
        prop_assert!(whole.agents().eq(forgetful.agents()));
        let lane = *lane.get(&lanes(&forgetful));
        let end = forgetful.lane(lane).unwrap().end();
        // Seldom, so that there is something to forget.
        if end % 3 == 0 {
            forgetful.forget_before(lane, index.index(end + 1));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_change_is_reported(events in any_events()) {
        let mut transcript = Transcript::new();
        let mut before = blocks(&transcript);
        for event in &events {
            let changes = transcript.apply(event);
            let after = blocks(&transcript);
            for (place, block) in &after {
                prop_assert!(before.get(place) == Some(block) || changes.blocks.contains(place), "{place:?} by {event:?}");
            }
            prop_assert!(changes.blocks.iter().all(|change| after.contains_key(change)));
            before = after;
        }
    }

    #[test]
    fn texts_in_smaller_pieces_are_the_same_texts(events in any_events(), at in any::<Index>()) {
        let pieces: Vec<_> = events.iter().flat_map(|event| in_pieces(event, at)).collect();
        prop_assert_eq!(outline(&fold(&events)), outline(&fold(&pieces)));
    }

    #[test]
    fn forgetting_changes_no_block_that_is_kept(
        events in any_events(),
        forget in prop::collection::vec(any::<(Index, Index)>(), 1..20),
    ) {
        check_forgetting(&events, &forget)?;
    }

    #[test]
    fn a_lost_connection_marks_open_texts_once(events in any_events()) {
        let mut transcript = fold(&events);
        transcript.break_off();
        prop_assert!(transcript.break_off().is_empty());
    }
}
