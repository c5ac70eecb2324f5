//! A session of 50,000 events that is opened at its end.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::PATIENCE;
use super::pty::Pty;
use super::views::View;
use crate::bench::middle;

const EVENTS: usize = 50_000;
const RUNS: usize = 5;

/// Makes the last session of a view long, and returns the median time from the start of the program to its last answer.
pub(super) fn open(view: &View) -> Result<Duration> {
    let home =
        view.job().env.iter().find(|(name, _)| name == "HANGAR_HOME").map(|(_, home)| PathBuf::from(home));
    let sessions = home.context("the view has no home")?.join("session-state");
    let newest = std::fs::read_dir(&sessions)?
        .flatten()
        .filter_map(|entry| {
            let log = entry.path().join("events.jsonl");
            Some((log.metadata().ok()?.modified().ok()?, log))
        })
        .max()
        .context("there is no session")?;
    lengthen(&newest.1)?;
    let view = view.with_argument("--continue");
    let last = format!("answer {}.", EVENTS / 2 - 1);
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let mut pty = Pty::spawn(&view)?;
        let began: Instant = pty.began();
        match pty.wait_for(&last, PATIENCE) {
            Some(seen) => times.push(seen.duration_since(began)),
            None => bail!("the end of the session was not shown:\n{}", pty.tail()),
        }
        pty.close();
    }
    Ok(middle(times))
}

/// Appends prompts and answers to a log until it has so many events.
fn lengthen(log: &std::path::Path) -> Result<()> {
    let mut text = std::fs::read_to_string(log)?;
    let last: Value = serde_json::from_str(text.lines().last().context("the log is empty")?)?;
    let mut parent = last["id"].clone();
    for at in 0..EVENTS / 2 {
        let prompt = json!({ "content": format!("prompt {at}") });
        let answer = json!({ "messageId": format!("m{at}"), "content": format!("answer {at}.") });
        for (kind, data) in [("user.message", prompt), ("assistant.message", answer)] {
            let number = at * 2 + usize::from(kind == "assistant.message");
            let id = json!(format!("00000000-0000-4000-8000-{number:012}"));
            let event = json!({ "type": kind, "data": data, "id": id, "parentId": parent, "timestamp": last["timestamp"] });
            text.push_str(&format!("{event}\n"));
            parent = id;
        }
    }
    std::fs::write(log, text).with_context(|| format!("writing {}", log.display()))
}
