//! Shell lines of the user: they run beside the agent, are shown while they run, and a key stops them.

use std::collections::BTreeMap;

use hangar_protocol::{Body, Event, EventKind};
use hangar_transcript::Transcript;
use serde_json::json;

use crate::blocks::{self, Detail, Rendering};
use crate::calls::Purpose;
use crate::row::Row;
use crate::state::State;

/// Commands whose output is awaited at the same time; the output of older ones is in the transcript only.
const MAX_RUNNING: usize = 64;

/// Shell lines that run.
#[derive(Debug, Default)]
pub(crate) struct ShellLines {
    /// Events that told of their start, by call.
    running: BTreeMap<String, Event>,
    /// When the first of them began.
    since: Option<u64>,
    /// Rows of those that ended after later blocks were printed.
    late: Vec<Row>,
}

impl ShellLines {
    pub(crate) fn is_running(&self, call: &str) -> bool {
        self.running.contains_key(call)
    }

    pub(crate) fn since(&self) -> Option<u64> {
        self.since
    }

    pub(crate) fn take_late(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.late)
    }
}

impl State {
    pub(crate) fn shell(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if self.is_opening() {
            return self.defer(format!("!{line}"));
        }
        self.shells_sent += 1;
        let id = format!("shell-{}-{}", self.now, self.shells_sent);
        let params = json!({ "requestId": id, "command": line });
        self.call("session.shell.executeUserRequested", params, Purpose::Shell(id));
    }

    /// Whether a shell line runs.
    pub(crate) fn runs_shell(&self) -> bool {
        self.lost.is_none() && self.shells.since.is_some()
    }

    /// Stops the shell lines of this view. False if none runs.
    pub(crate) fn stop_shell(&mut self) -> bool {
        let ids: Vec<String> = self
            .calls
            .values()
            .filter_map(|purpose| match purpose {
                Purpose::Shell(id) => Some(id.clone()),
                _ => None,
            })
            .collect();
        for id in &ids {
            self.call("session.shell.cancelUserRequested", json!({ "requestId": id }), Purpose::Nothing);
        }
        !ids.is_empty()
    }

    /// Follows the start and the end of shell lines, of this view and of others.
    pub(crate) fn follow_shell(&mut self, event: &Event) {
        // Commands do not outlive the process that ran them, whether their end was logged or not.
        if matches!(event.event_kind(), Some(EventKind::SessionShutdown | EventKind::SessionResume)) {
            self.shells.running.clear();
            self.shells.since = None;
        }
        match event.body() {
            Body::ToolUserRequested(asked) => {
                if self.shells.running.len() == MAX_RUNNING {
                    self.shells.running.pop_first();
                }
                self.shells.running.insert(asked.tool_call_id.clone(), event.clone());
                self.shells.since.get_or_insert(self.now);
            }
            Body::ToolComplete(complete) => {
                let Some(asked) = self.shells.running.remove(&complete.tool_call_id) else { return };
                if self.shells.running.is_empty() {
                    self.shells.since = None;
                }
                if self.printed.printer.has_passed(&complete.tool_call_id) {
                    let rows = self.ended_shell(&asked, event);
                    self.shells.late.extend(rows);
                }
            }
            _ => {}
        }
    }

    /// Rows of a command whose block was printed while it ran.
    fn ended_shell(&self, asked: &Event, ended: &Event) -> Vec<Row> {
        let mut alone = Transcript::new();
        alone.apply(asked);
        alone.apply(ended);
        let look = Rendering {
            columns: self.columns,
            detail: Detail::Brief,
            reasoning: self.options.reasoning,
            theme: &self.theme,
        };
        alone.main().get(0).map(|block| blocks::rows(block, look)).unwrap_or_default()
    }
}
