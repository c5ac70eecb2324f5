//! The arguments of the family, read and checked.

use std::time::Duration;

use hangar_agent::tool::{ToolInput, ToolOutcome};

use super::calls::parse_input;
use super::tracked::{CommandMode, ShellInput};
use crate::arguments::{self, Word};

/// The shortest and the longest that a call waits for its command. Shorter waits only turn into more calls.
const WAIT: std::ops::RangeInclusive<i64> = 30..=600;

/// The longest that reading waits.
const DELAY_LIMIT: i64 = 600;

pub(super) struct Bash {
    pub(super) command: String,
    pub(super) description: String,
    pub(super) shell_id: Option<String>,
    pub(super) mode: CommandMode,
    pub(super) wait: Option<Duration>,
}

pub(super) struct Read {
    pub(super) shell_id: String,
    pub(super) delay: Duration,
}

pub(super) struct Write {
    pub(super) shell_id: String,
    pub(super) inputs: Vec<ShellInput>,
    pub(super) delay: Duration,
}

enum ModeWord {
    Sync,
    Async,
}

impl Word for ModeWord {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "sync" => Some(ModeWord::Sync),
            "async" => Some(ModeWord::Async),
            _ => None,
        }
    }
}

pub(super) fn bash(call: &ToolInput) -> Result<Bash, ToolOutcome> {
    let call = with_whole_seconds(call, "initial_wait");
    let (command, description, shell_id, mode, detach, wait) = arguments::read(&call, |a| {
        (
            a.required_text("command"),
            a.optional_text("description"),
            a.optional_text("shellId"),
            a.word::<ModeWord>("mode"),
            a.flag("detach"),
            a.integer("initial_wait"),
        )
    })?;
    if command.trim().is_empty() {
        return Err(ToolOutcome::failure("No command provided. Please supply a valid command to execute."));
    }
    // The kernel would cut the text there.
    if command.contains('\0') {
        return Err(ToolOutcome::failure("The command contains a NUL character."));
    }
    let mode = match mode {
        Some(ModeWord::Async) if detach => CommandMode::Detached,
        Some(ModeWord::Async) => CommandMode::Async,
        Some(ModeWord::Sync) | None => CommandMode::Sync,
    };
    let wait = match wait {
        None => None,
        Some(seconds) => {
            seconds_of(seconds, "initial_wait", *WAIT.end())?;
            Some(Duration::from_secs(seconds.clamp(*WAIT.start(), *WAIT.end()).unsigned_abs()))
        }
    };
    let description = description.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| command.clone());
    Ok(Bash { command, description, shell_id: shell_id.filter(|id| !id.is_empty()), mode, wait })
}

pub(super) fn read(call: &ToolInput) -> Result<Read, ToolOutcome> {
    let call = with_whole_seconds(call, "delay");
    let (shell_id, delay) = arguments::read(&call, |a| (a.required_text("shellId"), a.integer("delay")))?;
    Ok(Read { shell_id, delay: seconds_of(delay.unwrap_or(0), "delay", DELAY_LIMIT)? })
}

pub(super) fn write(call: &ToolInput) -> Result<Write, ToolOutcome> {
    let call = with_whole_seconds(call, "delay");
    let (shell_id, input, delay) = arguments::read(&call, |a| {
        (a.required_text("shellId"), a.required_text("input"), a.integer("delay"))
    })?;
    let delay = seconds_of(delay.unwrap_or(0), "delay", DELAY_LIMIT)?;
    Ok(Write { shell_id, inputs: parse_input(&input), delay })
}

pub(super) fn stop(call: &ToolInput) -> Result<String, ToolOutcome> {
    arguments::read(call, |a| a.required_text("shellId"))
}

/// Waits below zero are mistakes; waits beyond the limit are as long as possible.
fn seconds_of(seconds: i64, name: &str, limit: i64) -> Result<Duration, ToolOutcome> {
    if seconds < 0 {
        return Err(ToolOutcome::failure(format!(
            "Invalid {name} value {seconds}. Please supply a valid {name} value in seconds between 0 and {limit}."
        )));
    }
    Ok(Duration::from_secs(seconds.min(limit).unsigned_abs()))
}

/// Half a second is as good as a whole one.
fn with_whole_seconds(call: &ToolInput, name: &str) -> ToolInput {
    let mut call = call.clone();
    if let Some(value) = call.arguments.get_mut(name)
        && let Some(seconds) = value.as_f64()
    {
        *value = serde_json::Value::from(seconds.ceil());
    }
    call
}
