//! Texts of the shell tools. Recorded conversations replay against the markers, so their form is fixed.

use std::sync::Arc;
use std::time::Duration;

use super::tracked::{CommandMode, CommandPhase, Tracked};

/// Output, then where its command stands.
pub(super) fn with_marker(output: &str, marker: &str) -> String {
    format!("{}\n{marker}", output.trim_end())
}

pub(super) fn exited(code: i32) -> String {
    format!("<exited with exit code {code}>")
}

pub(super) fn kept_from(what: &str) -> String {
    format!("<the command was kept from {what}, since nobody said yes to it>")
}

pub(super) fn started(id: &str, mode: CommandMode) -> String {
    match mode {
        CommandMode::Sync | CommandMode::Async => {
            format!("<command started in background with shellId: {id}>")
        }
        CommandMode::Detached => format!("<command started in detached background with shellId: {id}>"),
    }
}

pub(super) fn still_running(id: &str, waited: Duration, has_output: bool) -> String {
    let seconds = waited.as_secs();
    let output = if has_output { "" } else { " and has printed nothing yet" };
    format!(
        "<command with shellId: {id} is still running after {seconds} seconds{output}. You will be notified when it \
         ends; until then read_bash shows its output and stop_bash stops it.>"
    )
}

/// Someone has something to say, and the call does not keep them waiting.
pub(super) fn moved(id: &str) -> String {
    format!(
        "<command with shellId: {id} moved to background by the user, who has something to say. It goes on, and you will \
         be notified with its output when it ends.>"
    )
}

pub(super) fn in_use(id: &str) -> String {
    format!(
        "<command with shellId: {id} is already running, wait for output with read_bash, stop it with stop_bash tool>"
    )
}

pub(super) fn stopped(id: &str) -> String {
    format!("<command with id: {id} stopped>")
}

pub(super) fn was_stopped(id: &str, shells: &[Arc<Tracked>]) -> String {
    format!("shellId: {id} was already stopped via stop_bash.\n\n{}", list(shells))
}

pub(super) fn not_found(id: &str, shells: &[Arc<Tracked>]) -> String {
    format!(
        "shellId: {id} not found or was never created. Please supply a valid shell ID.\n\n{}",
        list(shells)
    )
}

pub(super) fn list(shells: &[Arc<Tracked>]) -> String {
    if shells.is_empty() {
        return "<no active shell sessions>".to_owned();
    }
    let mut text = "Active shell sessions:".to_owned();
    for shell in shells {
        let status = match shell.phase() {
            CommandPhase::Running => "running".to_owned(),
            CommandPhase::Ended { code, .. } => format!("completed (exit code: {code})"),
            CommandPhase::Stopped { .. } => "cancelled".to_owned(),
        };
        let mode = match shell.mode {
            CommandMode::Sync => "sync",
            CommandMode::Async | CommandMode::Detached => "async",
        };
        let Tracked { id, pid, commands, command, .. } = &**shell;
        let elapsed = shell.elapsed().as_secs();
        let unread = if shell.has_unread_output() { "yes" } else { "no" };
        text.push_str(&format!(
            "\n  shellId: {id}, pid: {pid}, mode: {mode}, status: {status}, elapsed: {elapsed}s, commands: {commands}, \
             unread output: {unread}\n    current command: {command}"
        ));
    }
    text
}
