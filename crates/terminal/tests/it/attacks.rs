//! Hostile text everywhere: none of it reaches the terminal as anything but text.

// The corpus needs it.
use hangar_terminal::gate::mark;
use hangar_terminal::input::Input;
use serde_json::json;

use crate::session::{Session, is_obeyed};

#[path = "../../src/gate/attacks.rs"]
mod corpus;

pub(crate) use corpus::ATTACKS;

/// Escape sequences that the writer makes, without their parameters: the first characters and the last.
const OWN: &[(&str, char)] = &[
    ("[?2026", 'h'),
    ("[?2026", 'l'),
    ("[?25", 'h'),
    ("[?25", 'l'),
    ("[?1049", 'h'),
    ("[?1049", 'l'),
    ("[?7", 'h'),
    ("[?7", 'l'),
    ("[", 'A'),
    ("[", 'B'),
    ("[", 'C'),
    ("[", 'D'),
    ("[", 'G'),
    ("[", 'H'),
    ("[", 'J'),
    ("[", 'K'),
    ("[", 'm'),
];

/// First piece of the bytes that is neither text that a terminal shows nor a sequence of the writer.
pub(crate) fn foreign(bytes: &[u8]) -> Option<String> {
    let Ok(mut rest) = std::str::from_utf8(bytes) else { return Some("not UTF-8".to_owned()) };
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '\x1b' {
            if !matches!(c, '\r' | '\n' | '\u{8}') && is_obeyed(c) {
                return Some(format!("{c:?}"));
            }
            continue;
        }
        if let Some(title) = rest.strip_prefix("]2;") {
            let (title, after) = title.split_once("\x1b\\").unwrap_or((title, ""));
            if let Some(c) = title.chars().find(|c| is_obeyed(*c)) {
                return Some(format!("{c:?} in the title"));
            }
            rest = after;
            continue;
        }
        let end = rest[1..].find(|c: char| ('@'..='~').contains(&c)).map_or(rest.len(), |at| at + 2);
        let sequence = &rest[..end];
        let is_own = OWN.iter().any(|(first, last)| {
            sequence.strip_prefix(first).and_then(|after| after.strip_suffix(*last)).is_some_and(|numbers| {
                numbers.is_empty()
                    || (!first.contains('?') && numbers.chars().all(|c| c.is_ascii_digit() || c == ';'))
            })
        });
        if !is_own {
            return Some(format!("ESC {sequence:?}"));
        }
        rest = &rest[end..];
    }
    None
}

#[test]
fn sequences_of_others_are_told_from_ours() {
    assert_eq!(foreign("a\x1b[?25l\x1b[1;31mb\x1b[2A\r\n漢\x1b]2;title\x1b\\\x1b[m".as_bytes()), None);
    // Moves are ours too; that those of others become marks is checked on the rows.
    let moves = ["clear", "cursor", "return", "backspaces", "joiners", "selectors", "fillers"];
    for (_, attack) in ATTACKS.iter().filter(|(name, _)| !moves.contains(name)) {
        assert!(foreign(attack.as_bytes()).is_some(), "{attack:?}");
        assert!(corpus::obeyed(attack).is_some(), "{attack:?}");
    }
    assert!(foreign(b"\x1b[?1003h").is_some());
    assert!(foreign(b"\x1b[6n").is_some());
}

/// Shows an attack wherever text of others is shown, and checks each write.
fn attack(text: &str) {
    let mut session = Session::new(50, 20);
    let check = |session: &Session, place: &str| {
        assert_eq!(
            foreign(&session.last),
            None,
            "{text:?} as {place}: {:?}",
            String::from_utf8_lossy(&session.last)
        );
    };
    session.ready();
    let events = [
        (
            "user.message",
            json!({ "content": text, "attachments": [{ "type": "file", "path": text, "displayName": text }] }),
        ),
        ("assistant.turn_start", json!({ "turnId": "0" })),
        ("session.title_changed", json!({ "title": text })),
        ("assistant.reasoning_delta", json!({ "reasoningId": "r", "deltaContent": text })),
        ("assistant.message_delta", json!({ "messageId": "m", "deltaContent": text })),
        (
            "assistant.message_delta",
            json!({ "messageId": "m", "deltaContent": format!("\n\n```{text}\n{text}\n```\n| {text} | b |\n|---|---|\n| {text} | 2 |\n\n[{text}](https://e.example/{text})\n\n") }),
        ),
        ("assistant.tool_call_delta", json!({ "toolCallId": "c0", "toolName": text, "inputDelta": text })),
        (
            "tool.execution_start",
            json!({ "toolCallId": "c0", "toolName": text, "arguments": { "path": text } }),
        ),
        (
            "tool.execution_start",
            json!({ "toolCallId": "c1", "toolName": "bash", "arguments": { "command": text } }),
        ),
        ("tool.execution_partial_result", json!({ "toolCallId": "c1", "partialOutput": text })),
        ("tool.execution_progress", json!({ "toolCallId": "c1", "progressMessage": text })),
        (
            "tool.execution_complete",
            json!({ "toolCallId": "c1", "success": true, "result": { "content": text } }),
        ),
        (
            "tool.execution_complete",
            json!({ "toolCallId": "c0", "success": false, "error": { "message": text } }),
        ),
        (
            "tool.execution_start",
            json!({ "toolCallId": "c2", "toolName": "edit", "arguments": { "path": text } }),
        ),
        (
            "tool.execution_complete",
            json!({ "toolCallId": "c2", "success": true, "result": { "content": "x", "detailedContent": format!("--- a/{text}\n+++ b/{text}\n@@ -1,1 +1,1 @@ {text}\n-{text}\n+{text}\n") } }),
        ),
        ("session.warning", json!({ "message": text })),
        ("session.error", json!({ "errorType": "query", "message": text })),
        ("session.task_complete", json!({ "summary": text })),
        ("session.model_change", json!({ "newModel": text, "reasoningEffort": text })),
        ("session.mode_changed", json!({ "previousMode": "plan", "newMode": text })),
        (
            "permission.requested",
            json!({ "requestId": "p1", "permissionRequest": { "kind": "shell", "fullCommandText": text, "intention": text, "warning": text, "commands": [{ "identifier": text, "readOnly": false }] } }),
        ),
        (
            "permission.requested",
            json!({ "requestId": "p2", "permissionRequest": { "kind": "write", "fileName": text, "diff": format!("--- a\n+++ b\n@@ -1 +1 @@\n-{text}\n+{text}\n"), "intention": text } }),
        ),
        (
            "permission.requested",
            json!({ "requestId": "p3", "permissionRequest": { "kind": "mcp", "serverName": text, "toolName": text, "toolTitle": text, "args": { text: text }, "readOnly": true } }),
        ),
        (
            "permission.requested",
            json!({ "requestId": "p4", "permissionRequest": { "kind": text, "toolName": text, "toolDescription": text } }),
        ),
        ("user_input.requested", json!({ "requestId": "q1", "question": text, "choices": [text, text] })),
        (
            "elicitation.requested",
            json!({ "requestId": "f1", "message": text, "elicitationSource": text, "requestedSchema": { "type": "object", "properties": { text: { "type": "string", "title": text, "default": text }, "o": { "enum": [text] , "default": text} } } }),
        ),
        (
            "exit_plan_mode.requested",
            json!({ "requestId": "x1", "summary": text, "planContent": text, "actions": [text], "recommendedAction": text }),
        ),
    ];
    for (kind, data) in events {
        session.event(kind, None, data.clone());
        check(&session, kind);
        session.wait(1_000);
        check(&session, kind);
    }
    // Every dialog comes to the screen in its turn.
    for _ in 0..9 {
        session.wait(400);
        check(&session, "dialog");
        crate::script::step(&mut session, "esc");
        check(&session, "dialog");
    }
    session.event("session.idle", None, json!({}));
    check(&session, "idle");
    let answer = answer(text);
    for command in [
        "/model",
        "/agent",
        "/resume",
        "/rewind",
        "/tasks",
        "/diff",
        "/instructions",
        "/usage",
        "/ask x",
        "/mcp",
    ] {
        crate::script::step(&mut session, &format!("type:{command}"));
        crate::script::step(&mut session, "enter");
        for method in session.waiting() {
            session.reply(&method, Ok(answer.clone()));
            check(&session, command);
        }
        for key in ["down", "right", "enter", "esc", "esc", "q", "ctrl+c"] {
            crate::script::step(&mut session, key);
            check(&session, command);
        }
    }
    for input in [
        Input::Told(text.to_owned()),
        Input::Paste(text.to_owned()),
        Input::Edited(Ok(text.to_owned())),
        Input::Files(vec![text.to_owned()]),
        Input::Lost(text.to_owned()),
    ] {
        let place = format!("{input:?}");
        session.give(input);
        check(&session, &place);
    }
    for line in ["enter", "up", "ctrl+r", "down", "enter", "type:@", "ctrl+l"] {
        crate::script::step(&mut session, line);
        check(&session, line);
    }
}

/// An answer to any request, with a text wherever there may be one.
pub(crate) fn answer(text: &str) -> serde_json::Value {
    json!({
        "models": [{ "id": text, "name": text, "supportedReasoningEfforts": [text] }],
        "agents": [{ "id": text, "name": text, "displayName": text, "description": text, "model": text }],
        "sessions": [{ "id": text, "name": text, "age": 3, "directory": text, "agent": text, "state": text }],
        "points": [{ "eventId": text, "userMessage": text, "fileCount": 1 }],
        "available": true,
        "files": [{ "path": text, "changeType": text }],
        "outcome": text,
        "error": text,
        "tasks": [{ "id": text, "displayName": text, "status": text, "description": text, "error": text }],
        "changes": [{ "diff": format!("--- a/{text}\n+++ b/{text}\n@@ -1 +1 @@\n-{text}\n+{text}\n") }],
        "modelMetrics": { text: { "requests": { "count": 1 }, "usage": {} } },
        "response": text,
        "kind": "text",
        "text": text,
        "items": [{ "id": "1", "displayText": text }],
        "steeringMessages": [text],
    })
}

#[test]
fn no_byte_of_an_attack_is_obeyed() {
    for (_, text) in ATTACKS {
        attack(text);
    }
}
