//! How soon the end of a session of 50,000 events is on the screen of a browser.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::portal::{NAME, Portal};
use super::table::{Table, Unit};
use crate::{clients, root, shell};

const EVENTS: usize = 50_000;
const ID: &str = "3f0c9a52-0000-4000-8000-000000050000";
/// Visits with a new browser each, and visits of one browser again.
const RUNS: usize = 7;

pub(crate) fn measure(program: &Path, cache: &Path, table: &mut Table) -> Result<()> {
    clients::install_node()?;
    clients::install_chromium()?;
    let (log, last) = session();
    let portal = Portal::start_with(program, cache, |home| {
        let folder = home.join("session-state").join(ID);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("events.jsonl"), &log)?;
        std::fs::write(folder.join("workspace.yaml"), format!("id: {ID}\ncwd: /\nname: Fifty thousand\n"))
    })?;
    let script = root().join("e2e/portal/first-screen.mjs");
    let mut visits = shell::program("node");
    visits.arg(script).arg(format!("{}/sessions/{ID}", portal.url())).arg(last).arg(RUNS.to_string());
    let told = shell::read(&mut visits)?;
    let told: Value =
        serde_json::from_str(told.trim()).with_context(|| format!("the browser told `{told}`"))?;
    let median = |visits: &str| -> Result<f64> {
        let mut times: Vec<f64> =
            told[visits].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().with_context(|| format!("no {visits} visit was measured"))
    };
    let first = told["cold"][0].as_f64().context("no visit was measured")?;
    table.add("50,000 events: first visit since the start", Unit::Milliseconds, NAME, first);
    table.add("50,000 events: first screen, cold", Unit::Milliseconds, NAME, median("cold")?);
    table.add("50,000 events: first screen, warm", Unit::Milliseconds, NAME, median("warm")?);
    Ok(())
}

/// The log of a session, and the words that stand at its end.
fn session() -> (String, String) {
    let mut log = Log { text: String::new(), events: 0 };
    log.push(
        "session.start",
        &json!({
            "sessionId": ID, "version": 1, "producer": "hangar", "copilotVersion": "1.0.0",
            "startTime": "2026-01-01T00:00:00.000Z", "selectedModel": "scripted",
        }),
    );
    let mut last = String::new();
    for turn in 0.. {
        if log.events + 6 > EVENTS {
            break;
        }
        last = format!("Prompt number {turn}");
        let call = format!("c{turn}");
        let arguments = json!({ "command": format!("echo {turn}") });
        let answer = "Some words of an answer, of varying length. ".repeat(turn % 23);
        log.push("user.message", &json!({ "content": last }));
        log.push("assistant.turn_start", &json!({ "turnId": turn.to_string() }));
        log.push(
            "assistant.message",
            &json!({
                "messageId": format!("m{turn}"), "content": format!("Answer number {turn}\n\n{answer}"),
                "toolRequests": [{ "toolCallId": call, "name": "bash", "arguments": arguments }],
            }),
        );
        log.push(
            "tool.execution_start",
            &json!({ "toolCallId": call, "toolName": "bash", "arguments": arguments }),
        );
        log.push(
            "tool.execution_complete",
            &json!({ "toolCallId": call, "success": true, "result": { "content": format!("{turn}\n") } }),
        );
        log.push("assistant.turn_end", &json!({ "turnId": turn.to_string() }));
    }
    (log.text, last)
}

struct Log {
    text: String,
    events: usize,
}

impl Log {
    fn push(&mut self, kind: &str, data: &Value) {
        let id = |at: usize| format!("\"00000000-0000-4000-8000-{at:012}\"");
        let parent = self.events.checked_sub(1).map_or("null".to_owned(), id);
        let (hours, minutes, seconds) = (self.events / 3600, self.events / 60 % 60, self.events % 60);
        // Writing to a string does not fail.
        let _ = writeln!(
            self.text,
            "{{\"type\":\"{kind}\",\"data\":{data},\"id\":{},\"timestamp\":\"2026-01-01T{hours:02}:{minutes:02}:{seconds:02}.000Z\",\
             \"parentId\":{parent}}}",
            id(self.events)
        );
        self.events += 1;
    }
}
