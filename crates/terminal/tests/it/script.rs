//! Scripts of tests: what is typed and what happens, one step in a line.
//!
//! - Keys as people write them: `ctrl+q`, `esc esc`, `1`.
//! - `type:TEXT`, `paste:TEXT`, with `\n`, `\t`, `\r`, `\e` and `\u{…}` for what cannot be seen.
//! - `event:KIND DATA`, `event@AGENT:KIND DATA`, and short forms of the frequent ones: `user:TEXT`, `turn`, `say:TEXT`, `idle`,
//!   `message:ID TEXT`, `call:ID NAME ARGUMENTS`, `output:ID TEXT`, `result:ID TEXT`, `fail:ID TEXT`, `ask:ID REQUEST`.
//! - `reply:METHOD:JSON`, `refuse:METHOD:REASON`, `expect-call:METHOD`.
//! - `past:KIND DATA; KIND DATA` for the events before, `past-live:` for those of a session that another process runs; `line:TEXT`.
//! - `status:TEXT` for what the command of the status line prints.
//! - `host:JSON` for a question of the program itself.
//! - `moved:DIRECTORY` when the session works elsewhere, on the branch `side`.
//! - `wait:MS`, `resize:COLUMNSxROWS`, `size:COLUMNSxROWS` for the first line.
//! - `screen` for a picture in between; there is one at the end.

use expect_test::Expect;
use hangar_terminal::dialog::{BodyPart, HostAsk, HostItem, HostQuestion};
use hangar_terminal::input::{AttachedFile, Input};
use hangar_terminal::key::Key;
use hangar_terminal::theme::Theme;
use serde_json::{Value, json};

use crate::session::Session;

pub(crate) const SIZE: (usize, usize) = (60, 24);

/// Runs a script and compares the pictures.
pub(crate) fn check(script: &str, expected: Expect) {
    expected.assert_eq(&run(script));
}

pub(crate) fn run(script: &str) -> String {
    let mut steps = script.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    let size = steps.next_if(|line| line.starts_with("size:"));
    let (columns, rows) = size.map_or(SIZE, |line| dimensions(&line["size:".len()..]));
    let mut session = Session::new(columns, rows);
    let mut pictures = String::new();
    for line in steps {
        if line == "screen" {
            pictures.push_str(&session.picture());
            pictures.push_str("===\n");
            session.log.clear();
        } else {
            step(&mut session, line);
        }
    }
    pictures + &session.picture()
}

fn dimensions(text: &str) -> (usize, usize) {
    let (columns, rows) = text.split_once('x').expect("COLUMNSxROWS");
    (columns.parse().unwrap(), rows.parse().unwrap())
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Runs one step.
pub(crate) fn step(session: &mut Session, line: &str) {
    let (word, rest) = match line.split_once(':') {
        Some((word, rest)) if is_word(word) => (word, rest),
        _ => (line, ""),
    };
    let text = || unescaped(rest);
    let (id, after) = rest.split_once(' ').unwrap_or((rest, ""));
    match word {
        "ready" => session.ready(),
        "type" => text().chars().for_each(|char| session.give(Input::Key(Key::char(char)))),
        "paste" => session.give(Input::Paste(text())),
        "wait" => session.wait(rest.parse().unwrap()),
        "resize" => {
            let (columns, rows) = dimensions(rest);
            session.resize(columns, rows);
        }
        "focus" => session.give(Input::Focus(rest == "in")),
        "prompt" => session.give(Input::Prompt(text())),
        "told" => session.give(Input::Told(text())),
        "lost" => session.give(Input::Lost(text())),
        "closed" => session.give(Input::Closed),
        "moved" => session.give(Input::Moved { directory: text(), branch: Some("side".to_owned()) }),
        "edited" => session.give(Input::Edited(Ok(text()))),
        "files" => session.give(Input::Files(rest.split(',').map(str::to_owned).collect())),
        "image" => {
            let path = rest.to_owned();
            session.give(Input::Attached(Ok(AttachedFile { path, is_image: true })));
        }
        "theme" => {
            let state = std::mem::replace(&mut session.state, hangar_terminal::state::State::new(1, 1, 0));
            session.state = state.with_theme(Theme::named(rest).expect("a theme"), false);
        }
        "trust" => {
            session.state.ask_trust(rest);
            session.draw();
        }
        "host" => session.give(Input::Ask(Some(Box::new(host_question(&json_of(rest)))))),
        "pick" => {
            session.state.ask_session();
            session.give(Input::Tick);
        }
        "reply" => {
            let (method, answer) = rest.split_once(':').expect("reply:METHOD:JSON");
            session.reply(method, Ok(json_of(answer)));
        }
        "refuse" => {
            let (method, reason) = rest.split_once(':').expect("refuse:METHOD:REASON");
            session.reply(method, Err(reason.to_owned()));
        }
        "expect-call" => assert!(session.awaits(rest), "{rest} was not called: {:?}", session.log),
        "status" => session.give(Input::StatusText(Some(text()))),
        "line" => session.give(Input::Line(text())),
        "past" | "past-live" => {
            let event = |text: &str| {
                let (kind, data) = text.trim().split_once(' ').unwrap_or((text.trim(), "{}"));
                (kind.to_owned(), json_of(data))
            };
            let parts: Vec<(String, Value)> = rest.split(';').map(event).collect();
            let events =
                parts.into_iter().map(|(kind, data)| session.make_event(&kind, None, data)).collect();
            session.give(Input::History { events, older: 0, is_live: word == "past-live" });
        }
        "transcript" => {
            let events = vec![
                session.make_event("user.message", None, json!({ "content": "the first prompt" })),
                session.make_event("assistant.message", None, json!({ "messageId": "m", "content": text() })),
            ];
            session.give(Input::Transcript { events, older: 0 });
        }
        "user" => session.event("user.message", None, json!({ "content": text() })),
        "turn" => session.event("assistant.turn_start", None, json!({ "turnId": "0" })),
        "end" => session.event("assistant.turn_end", None, json!({ "turnId": "0" })),
        "idle" => {
            session.event("assistant.turn_end", None, json!({ "turnId": "0" }));
            session.event("session.idle", None, json!({}));
        }
        "say" => {
            let data = json!({ "messageId": "m1", "deltaContent": text() });
            session.event("assistant.message_delta", None, data);
        }
        "message" => {
            let data = json!({ "messageId": id, "content": unescaped(after), "toolRequests": [] });
            session.event("assistant.message", None, data);
        }
        "think" => {
            let data = json!({ "reasoningId": "r1", "deltaContent": text() });
            session.event("assistant.reasoning_delta", None, data);
        }
        "call" => {
            let (name, arguments) = after.split_once(' ').unwrap_or((after, "{}"));
            let request = json!({ "toolCallId": id, "name": name, "arguments": json_of(arguments) });
            let data = json!({ "messageId": format!("m-{id}"), "content": "", "toolRequests": [request] });
            session.event("assistant.message", None, data);
            let data = json!({ "toolCallId": id, "toolName": name, "arguments": json_of(arguments) });
            session.event("tool.execution_start", None, data);
        }
        "output" => {
            let data = json!({ "toolCallId": id, "partialOutput": unescaped(after) });
            session.event("tool.execution_partial_result", None, data);
        }
        "result" => {
            let data =
                json!({ "toolCallId": id, "success": true, "result": { "content": unescaped(after) } });
            session.event("tool.execution_complete", None, data);
        }
        "fail" => {
            let data =
                json!({ "toolCallId": id, "success": false, "error": { "message": unescaped(after) } });
            session.event("tool.execution_complete", None, data);
        }
        "ask" => {
            let data = json!({ "requestId": id, "permissionRequest": json_of(after) });
            session.event("permission.requested", None, data);
        }
        "event" => session.event(id, None, if after.is_empty() { json!({}) } else { json_of(after) }),
        word if word.starts_with("event@") => {
            let agent = &word["event@".len()..];
            session.event(id, Some(agent), if after.is_empty() { json!({}) } else { json_of(after) });
        }
        _ => {
            for key in Key::parse_all(line).unwrap() {
                session.give(Input::Key(key));
            }
        }
    }
}

/// A question of the program: a title, a text, and `items` of id, label and detail, or `hidden` for a text.
fn host_question(value: &Value) -> HostQuestion {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let item = |item: &Value| HostItem { id: text(&item[0]), label: text(&item[1]), detail: text(&item[2]) };
    let asks = match (value["items"].as_array(), value["hidden"].as_bool()) {
        (Some(items), _) => HostAsk::Pick(items.iter().map(item).collect()),
        (None, Some(hidden)) => HostAsk::Text { hidden },
        (None, None) => HostAsk::Nothing,
    };
    let parts = value["text"].as_str().map(|text| BodyPart::Text(text.to_owned())).into_iter().collect();
    HostQuestion { title: text(&value["title"]), parts, asks, is_unasked: value["unasked"] == true }
}

/// Whether a word could name a step, so that keys such as `:` are still keys.
fn is_word(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '@')
}

fn unescaped(text: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        made.push_str(before);
        let mut chars = after.chars();
        match chars.next() {
            Some('n') => made.push('\n'),
            Some('t') => made.push('\t'),
            Some('r') => made.push('\r'),
            Some('e') => made.push('\x1b'),
            Some('u') => {
                let (digits, after) = chars.as_str().strip_prefix('{').unwrap().split_once('}').unwrap();
                made.push(char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap());
                chars = after.chars();
            }
            other => panic!("\\{other:?} is not an escape"),
        }
        rest = chars.as_str();
    }
    made + rest
}
