//! A session whose log is as large as months of work make it.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Turns between two cuts of what the model is shown, as a session near the limit of its model makes them.
const TURNS_PER_CUT: u64 = 10;
/// What the model is shown as a message.
const MESSAGES: [&str; 3] = ["user.message", "assistant.message", "tool.execution_complete"];

/// Repeats the one turn that `log` holds until the file has `size` bytes.
pub(crate) fn grow(log: &Path, size: u64) -> Result<()> {
    let text = std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
    let events: Vec<Value> =
        text.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("the log is not JSON")?;
    let first =
        events.iter().position(|event| event["type"] == "user.message").context("the log has no turn")?;
    let last = events
        .iter()
        .rposition(|event| event["type"] == "assistant.turn_end")
        .context("no turn has ended")?;
    let call =
        events.iter().find_map(|event| event["data"]["toolCallId"].as_str()).context("no tool was called")?;
    let call = call.to_owned();

    let is_message = |event: &&Value| MESSAGES.iter().any(|kind| event["type"] == *kind);
    let messages = events[first..=last].iter().filter(is_message).count() as u64;
    let mut file = BufWriter::new(std::fs::File::create(log).context("rewriting the log")?);
    let mut writer = Writer { out: &mut file, bytes: 0, events: 0, parent: Value::Null };
    for event in &events[..first] {
        writer.write(event.clone(), "")?;
    }
    let mut turn = 0;
    while writer.bytes < size {
        for event in events[first..=last].iter().filter(|event| event["type"] != "system.message") {
            writer.write(event.clone(), &format!("{call}=>call_{turn}"))?;
        }
        turn += 1;
        if turn % TURNS_PER_CUT == 0 {
            writer.write(cut(&events[last], messages), "")?;
        }
    }
    for event in &events[last + 1..] {
        writer.write(event.clone(), "")?;
    }
    file.flush().context("writing the log")
}

/// As many messages go as came since the last cut, in turns with so many each: what stays does not grow.
fn cut(like: &Value, messages: u64) -> Value {
    let removed = TURNS_PER_CUT * messages;
    json!({
        "type": "session.truncation",
        "data": {
            "tokenLimit": 128_000, "preTruncationTokensInMessages": 120_000, "preTruncationMessagesLength": removed + 2,
            "postTruncationTokensInMessages": 4000, "postTruncationMessagesLength": 2,
            "tokensRemovedDuringTruncation": 116_000, "messagesRemovedDuringTruncation": removed, "performedBy": "bench",
        },
        "id": "", "timestamp": like["timestamp"], "parentId": null,
    })
}

struct Writer<'a, W: Write> {
    out: &'a mut W,
    bytes: u64,
    events: u64,
    parent: Value,
}

impl<W: Write> Writer<'_, W> {
    /// Writes an event behind the last one; `rename` is `old=>new` for an id inside its data.
    fn write(&mut self, mut event: Value, rename: &str) -> Result<()> {
        self.events += 1;
        event["id"] = json!(format!("{:08x}-0000-4000-8000-{:012x}", self.events >> 32, self.events));
        event["parentId"] = std::mem::replace(&mut self.parent, event["id"].clone());
        let mut line = event.to_string();
        if let Some((old, new)) = rename.split_once("=>") {
            line = line.replace(old, new);
        }
        line.push('\n');
        self.bytes += line.len() as u64;
        self.out.write_all(line.as_bytes()).context("writing the log")
    }
}
