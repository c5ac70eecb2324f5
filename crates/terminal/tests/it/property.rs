//! Any events, keys, pastes and resizes: each committed row is on the terminal once and in order, nothing above it changes.

use hangar_terminal::input::Input;
use hangar_terminal::key::Key;
use hangar_terminal::row::Row;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::attacks::{ATTACKS, answer, foreign};
use crate::session::{Session, is_obeyed};

/// Lines of the shell above the program. Near the top of an empty screen the emulator moves rows that it wraps into its
/// scrollback, where no program can reach them.
const SHELL: usize = 40;
/// Effects of one input at most: prompts that waited for the session are sent together.
const MAX_EFFECTS: usize = 64;

#[derive(Debug, Clone)]
enum Step {
    Event { kind: &'static str, agent: bool, data: Value },
    Key(&'static str),
    Type(String),
    Paste(String),
    Resize(usize, usize),
    Wait(u64),
    Answer(String),
    Refuse(String),
    Give(u8, String),
}

const KEYS: &[&str] = &[
    "enter",
    "esc",
    "up",
    "down",
    "left",
    "right",
    "tab",
    "shift+tab",
    "1",
    "2",
    "3",
    "space",
    "backspace",
    "pagedown",
    "pageup",
    "ctrl+c",
    "ctrl+q",
    "ctrl+s",
    "ctrl+r",
    "ctrl+o",
    "ctrl+t",
    "ctrl+x",
    "ctrl+l",
    "f1",
    "q",
    "/",
    "?",
    "alt+enter",
    "ctrl+a",
    "ctrl+k",
    "ctrl+y",
    "ctrl+_",
];

fn text() -> impl Strategy<Value = String> {
    let any = prop_oneof![
        4 => "[a-z ]{0,80}",
        2 => "(\\PC|\\n|\\t){0,40}",
        2 => prop::sample::select(ATTACKS).prop_map(|(_, text)| text.to_owned()),
        1 => any::<String>(),
        1 => "(# [a-z]{1,9}\n\n|- [a-z ]{1,20}\n|```rust\n[a-z(){};]{0,20}\n```\n|\\| a \\| b \\|\n\\|---\\|---\\|\n\\| 1 \\| 2 \\|\n){1,4}",
        1 => "(/[a-z]{1,9}|![a-z]{1,4}|@[a-z]{0,3}) ?[a-z]{0,5}",
    ];
    any.prop_map(|text| text.chars().filter(|c| is_agreed(*c)).collect())
}

/// Whether the emulator and the view give a character the same columns. The emulator counts characters, not clusters.
fn is_agreed(c: char) -> bool {
    use unicode_width::UnicodeWidthChar as _;
    is_obeyed(c)
        || matches!(c, ' '..='~' | '\u{a1}'..='\u{24f}' | '\u{390}'..='\u{3ff}' | '\u{4e00}'..='\u{9fff}')
            && c.width() != Some(0)
}

fn event() -> impl Strategy<Value = Step> {
    let id = || prop::sample::select(&["1", "2", "3"][..]);
    let asks = (id(), text(), 0..8usize).prop_map(|(id, text, kind)| {
        let kind = ["shell", "write", "read", "url", "mcp", "memory", "hook", "custom-tool"][kind];
        let request = json!({
            "kind": kind, "fullCommandText": text, "fileName": text, "diff": text, "path": text, "url": text,
            "serverName": text, "toolName": text, "args": { "a": text }, "fact": text, "intention": text,
        });
        ("permission.requested", json!({ "requestId": id, "permissionRequest": request }))
    });
    let told = (id(), text(), 0..22usize).prop_map(|(id, text, kind)| match kind {
        0 => ("user.message", json!({ "content": text })),
        1 | 2 => ("assistant.turn_start", json!({ "turnId": "0" })),
        3 => ("assistant.turn_end", json!({ "turnId": "0" })),
        4 => ("session.idle", json!({})),
        5 | 6 => ("assistant.message_delta", json!({ "messageId": id, "deltaContent": text })),
        7 => ("assistant.message", json!({ "messageId": id, "content": text, "toolRequests": [] })),
        8 => ("assistant.reasoning_delta", json!({ "reasoningId": id, "deltaContent": text })),
        9 | 10 => ("tool.execution_start", json!({ "toolCallId": id, "toolName": "bash", "arguments": { "command": text } })),
        11 => ("tool.execution_partial_result", json!({ "toolCallId": id, "partialOutput": text })),
        12 => ("tool.execution_complete", json!({ "toolCallId": id, "success": true, "result": { "content": text } })),
        13 => ("tool.execution_complete", json!({ "toolCallId": id, "success": false, "error": { "message": text } })),
        14 => ("permission.completed", json!({ "requestId": id, "result": { "kind": "approved" } })),
        15 => ("user_input.requested", json!({ "requestId": id, "question": text, "choices": [text, "b"] })),
        16 => ("elicitation.requested", json!({ "requestId": id, "message": text, "requestedSchema": { "properties": { "a": { "type": "string", "default": text }, "b": { "type": "boolean" }, "c": { "enum": [text, "x"] } } } })),
        17 => ("exit_plan_mode.requested", json!({ "requestId": id, "planContent": text, "actions": ["interactive"], "recommendedAction": "interactive" })),
        18 => ("session.warning", json!({ "message": text })),
        19 => ("session.title_changed", json!({ "title": text })),
        20 => ("pending_messages.modified", json!({})),
        _ => ("session.snapshot_rewind", json!({ "upToEventId": "e3", "eventsRemoved": 2 })),
    });
    let agents = (id(), text()).prop_map(|(id, text)| {
        ("subagent.started", json!({ "toolCallId": id, "agentName": text, "agentDisplayName": text, "agentDescription": text }))
    });
    (prop_oneof![2 => asks, 10 => told, 1 => agents], prop::bool::weighted(0.15))
        .prop_map(|((kind, data), agent)| Step::Event { kind, agent, data })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => event(),
        5 => prop::sample::select(KEYS).prop_map(Step::Key),
        2 => text().prop_map(Step::Type),
        1 => text().prop_map(Step::Paste),
        2 => (20..90usize, 8..30usize).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        2 => (0..1_000u64).prop_map(Step::Wait),
        2 => text().prop_map(Step::Answer),
        1 => text().prop_map(Step::Refuse),
        1 => (0..7u8, text()).prop_map(|(kind, text)| Step::Give(kind, text)),
    ]
}

/// Rows that hold the tail after a terminal of another width has wrapped it anew. On a lower screen a part of it would be
/// moved into the scrollback, where no program can reach it. The emulator keeps the empty rows below the tail, too.
fn needed(session: &Session, columns: usize) -> usize {
    let wrapped = session.tail.iter().map(|row| Row::plain(row.as_str()).width().div_ceil(columns).max(1));
    let lines = session.terminal.primary_screen().text();
    let empty = lines.iter().rev().take_while(|line| line.is_empty()).count();
    wrapped.sum::<usize>() + empty + 2
}

fn apply(session: &mut Session, step: &Step) {
    match step {
        Step::Event { kind, agent, data } => session.event(kind, agent.then_some("a1"), data.clone()),
        Step::Key(key) => {
            Key::parse_all(key).unwrap().into_iter().for_each(|key| session.give(Input::Key(key)));
        }
        Step::Type(text) => {
            for char in text.chars().filter(|char| !char.is_control()).take(20) {
                session.give(Input::Key(Key::char(char)));
            }
        }
        Step::Paste(text) => session.give(Input::Paste(text.clone())),
        Step::Resize(columns, rows) => session.resize(*columns, (*rows).max(needed(session, *columns))),
        Step::Wait(time) => session.wait(*time),
        Step::Answer(text) => {
            if let Some(method) = session.waiting().first() {
                session.reply(method, Ok(answer(text)));
            }
        }
        Step::Refuse(text) => {
            if let Some(method) = session.waiting().first() {
                session.reply(method, Err(text.clone()));
            }
        }
        Step::Give(kind, text) => session.give(match kind {
            0 => Input::Told(text.clone()),
            1 => Input::Lost(text.clone()),
            2 => Input::Closed,
            3 => Input::Ready(crate::session::facts()),
            4 => Input::Edited(Ok(text.clone())),
            5 => Input::Files(vec![text.clone(), "a.rs".to_owned()]),
            _ => Input::Prompt(text.clone()),
        }),
    }
}

/// Whether the terminal holds the shell's lines, then each committed row once, then nothing else but the tail.
fn check(session: &Session, after: &Step) {
    assert_eq!(foreign(&session.last), None, "after {after:?}");
    assert!(session.effects <= MAX_EFFECTS, "{} effects of {after:?}", session.effects);
    if session.is_overlay() {
        return;
    }
    let lines = clean(session.terminal.primary_screen().text());
    let mut expected = clean(session.committed.clone());
    expected.extend(clean(session.tail.clone()));
    assert_eq!(lines, expected, "after {after:?}");
}

/// Lines without blanks and without empty ones: the emulator puts a blank before a wide character that does not fit, and an
/// overlay that was resized leaves empty lines.
fn clean(lines: Vec<String>) -> Vec<String> {
    let squeezed = lines.iter().map(|line| line.split_whitespace().collect::<String>());
    squeezed.filter(|line| !line.is_empty()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_committed_row_is_there_once_and_in_order(
        columns in 20..90usize, rows in 8..30usize, ready: bool, steps in prop::collection::vec(step(), 1..50),
    ) {
        let mut session = Session::below(columns, rows, SHELL);
        if ready {
            session.ready();
        }
        for step in &steps {
            apply(&mut session, step);
            check(&session, step);
        }
    }
}
