//! Position of a request in a conversation, by which a recording is looked up.

use std::io::{self, Write};

use hangar_agent::model::{Message, Part};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::names::RecordedNames;

/// Elements of a prompt that differ from run to run.
const VOLATILE: [&str; 3] = ["current_datetime", "reminder", "system_reminder"];

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct RequestPosition {
    /// Digest of everything up to the last answer; absent at the beginning.
    after: Option<String>,
    asked: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    User(String),
    Assistant { text: String, calls: Vec<Called> },
    Tool(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Called {
    name: String,
    input: String,
}

impl RequestPosition {
    pub(super) fn of<'a>(messages: impl IntoIterator<Item = &'a Message>, names: &RecordedNames) -> Self {
        let mut lines: Vec<_> = messages.into_iter().map(|message| Line::of(message, names)).collect();
        let Some(last) = lines.iter().rposition(|line| matches!(line, Line::Assistant { .. })) else {
            return Self { after: None, asked: lines };
        };
        let asked = lines.split_off(last + 1);
        Self { after: Some(digest(&lines)), asked }
    }

    /// Whether the request is the same, whatever conversation precedes it.
    pub(super) fn asks_as(&self, other: &Self) -> bool {
        self.asked == other.asked
    }

    /// The prompt, or the tool result that the request has instead.
    pub(super) fn prompt(&self) -> &str {
        let user = self.asked.iter().rfind(|line| matches!(line, Line::User(_)));
        match user.or(self.asked.last()) {
            Some(Line::User(text) | Line::Tool(text) | Line::Assistant { text, .. }) => text,
            None => "",
        }
    }
}

impl Line {
    fn of(message: &Message, names: &RecordedNames) -> Self {
        match message {
            Message::User(parts) => {
                let text = VOLATILE.iter().fold(content(parts), |text, element| without(&text, element));
                Self::User(names.hide(text.trim()))
            }
            Message::Tool { parts, .. } => Self::Tool(names.hide(&content(parts))),
            Message::Assistant(turn) => {
                let calls = turn
                    .tool_calls
                    .iter()
                    .map(|call| Called { name: call.name.clone(), input: names.hide(&compact(&call.input)) });
                Self::Assistant { text: names.hide(&turn.text), calls: calls.collect() }
            }
        }
    }
}

fn content(parts: &[Part]) -> String {
    let parts = parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Image { mime_type, data } | Part::Document { mime_type, data, .. } => {
            format!("[{mime_type} {}]", digest(data))
        }
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Arguments may come back with different whitespace than the model wrote.
fn compact(input: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(input) {
        Ok(value) => value.to_string(),
        Err(_) => input.to_owned(),
    }
}

fn without(text: &str, element: &str) -> String {
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(&open)
        && let Some((_, behind)) = inside.split_once(&close)
    {
        kept.push_str(before);
        rest = behind;
    }
    kept + rest
}

fn digest(value: &impl Serialize) -> String {
    let mut fnv = Fnv(0xcbf2_9ce4_8422_2325);
    // Neither can fail: the hash takes every byte, and lines are only text.
    let _ = serde_json::to_writer(&mut fnv, value);
    format!("{:016x}", fnv.0)
}

/// FNV-1a. A recording outlives the process, so its digests must not depend on a hasher that may change.
struct Fnv(u64);

impl Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
