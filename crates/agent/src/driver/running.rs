//! Running work of all lanes, by kind. Each kind is polled only when something in it is ready.

use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, SelectAll};
use hangar_protocol::Body;

use super::lane::LaneId;
use crate::agents::toolset::AgentToolset;
use crate::session::SessionInput;

#[derive(Default)]
pub(super) struct RunningWork {
    /// Streamed model answers, and waits before retries.
    pub(super) calls: SelectAll<BoxStream<'static, (LaneId, SessionInput)>>,
    /// Tools, and queries about the working directory. `None` if cancelled.
    pub(super) work: FuturesUnordered<BoxFuture<'static, (LaneId, Option<SessionInput>)>>,
    /// Running hooks.
    pub(super) asked: FuturesUnordered<BoxFuture<'static, (LaneId, Option<SessionInput>)>>,
    /// Reports of running tools. A lane's channel stays open as long as the lane.
    pub(super) reports: SelectAll<BoxStream<'static, (LaneId, Box<Body>)>>,
    /// Time-outs of calls that wait for agents, by call.
    pub(super) patience: FuturesUnordered<BoxFuture<'static, (LaneId, String)>>,
    /// Agents' own tools that are being prepared.
    pub(super) toolsets: FuturesUnordered<BoxFuture<'static, (LaneId, AgentToolset)>>,
}

/// Next thing that the driver processes.
pub(super) enum Next {
    Command(Box<SessionInput>),
    Input(LaneId, Box<SessionInput>),
    Report(LaneId, Box<Body>),
    /// The wait of a call for an agent has timed out.
    Waited(LaneId, String),
    /// An agent's own tools are ready.
    AgentToolset(LaneId, AgentToolset),
    /// A call is reserved and waits until that is on record.
    Reserved,
    /// The answers that are arriving are to be stored.
    Unfinished,
    /// Cancelled work has stopped.
    Stopped,
}

impl RunningWork {
    /// Whether nothing is running. Reports come from tools, which are counted as work.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
            && self.work.is_empty()
            && self.asked.is_empty()
            && self.patience.is_empty()
            && self.toolsets.is_empty()
    }

    /// Waits for the next piece of an answer, end of a wait, or report of a tool. Pending for ever if nothing is
    /// running.
    pub(super) async fn next(&mut self) -> Next {
        let Self { calls, work, asked, reports, patience, toolsets } = self;
        tokio::select! {
            // All streams of a kind may have been cancelled just now.
            next = calls.next(), if !calls.is_empty() => match next {
                Some((lane, input)) => Next::Input(lane, Box::new(input)),
                None => Next::Stopped,
            },
            next = work.next(), if !work.is_empty() => done(next),
            next = asked.next(), if !asked.is_empty() => done(next),
            next = patience.next(), if !patience.is_empty() => match next {
                Some((lane, call_id)) => Next::Waited(lane, call_id),
                None => Next::Stopped,
            },
            Some((lane, toolset)) = toolsets.next(), if !toolsets.is_empty() => Next::AgentToolset(lane, toolset),
            Some((lane, body)) = reports.next() => Next::Report(lane, body),
        }
    }

    /// A report that is available without waiting.
    pub(super) fn reported(&mut self) -> Option<(LaneId, Box<Body>)> {
        tokio::task::unconstrained(self.reports.next()).now_or_never().flatten()
    }

    /// Drops everything but work.
    pub(super) fn drop_all_but_work(&mut self) {
        self.calls = SelectAll::new();
        self.patience = FuturesUnordered::new();
        self.toolsets = FuturesUnordered::new();
    }

    /// Waits until all work has ended, and drains its reports.
    pub(super) async fn work_ended(&mut self) {
        let Self { work, reports, .. } = self;
        while !work.is_empty() {
            tokio::select! {
                _ = work.next() => {}
                _ = reports.next() => {}
            }
        }
    }
}

fn done(next: Option<(LaneId, Option<SessionInput>)>) -> Next {
    match next {
        Some((lane, Some(input))) => Next::Input(lane, Box::new(input)),
        Some((_, None)) | None => Next::Stopped,
    }
}
