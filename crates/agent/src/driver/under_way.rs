//! What is under way for all lanes, by kind, and what of it happens next. Each kind is polled only when something in it
//! is ready.

use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, SelectAll};
use hangar_protocol::Body;

use super::lane::LaneId;
use crate::agents::outfit::Outfit;
use crate::session::Input;

#[derive(Default)]
pub(super) struct UnderWay {
    /// Answers of models on their way, and waits before they are asked again.
    pub(super) calls: SelectAll<BoxStream<'static, (LaneId, Input)>>,
    /// Tools, and questions about the place. `None` is one that was told to stop.
    pub(super) work: FuturesUnordered<BoxFuture<'static, (LaneId, Option<Input>)>>,
    /// Hooks that were asked something.
    pub(super) asked: FuturesUnordered<BoxFuture<'static, (LaneId, Option<Input>)>>,
    /// What running tools say. A lane's stays open for as long as the lane does.
    pub(super) reports: SelectAll<BoxStream<'static, (LaneId, Box<Body>)>>,
    /// How long calls wait for agents, by the call.
    pub(super) patience: FuturesUnordered<BoxFuture<'static, (LaneId, String)>>,
    /// What agents have of their own, on its way to them.
    pub(super) outfits: FuturesUnordered<BoxFuture<'static, (LaneId, Outfit)>>,
}

/// What the driver takes next.
pub(super) enum Next {
    Command(Box<Input>),
    Input(LaneId, Box<Input>),
    Report(LaneId, Box<Body>),
    /// A call has waited for an agent as long as it wanted to.
    Waited(LaneId, String),
    /// An agent has what is its own.
    Outfit(LaneId, Outfit),
    /// Something that was told to stop has.
    Stopped,
}

impl UnderWay {
    /// Whether nothing can happen by itself any more. Reports come from tools, which are work.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
            && self.work.is_empty()
            && self.asked.is_empty()
            && self.patience.is_empty()
            && self.outfits.is_empty()
    }

    /// The next piece of an answer, end of a wait, or word from a tool. Pending for ever when nothing is under way.
    pub(super) async fn next(&mut self) -> Next {
        let Self { calls, work, asked, reports, patience, outfits } = self;
        tokio::select! {
            // All of a kind may have been told to stop just now.
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
            Some((lane, outfit)) = outfits.next(), if !outfits.is_empty() => Next::Outfit(lane, outfit),
            Some((lane, body)) = reports.next() => Next::Report(lane, body),
        }
    }

    /// A report that is there already.
    pub(super) fn reported(&mut self) -> Option<(LaneId, Box<Body>)> {
        tokio::task::unconstrained(self.reports.next()).now_or_never().flatten()
    }

    /// Forgets everything that need not end by itself.
    pub(super) fn drop_what_waits(&mut self) {
        self.calls = SelectAll::new();
        self.patience = FuturesUnordered::new();
        self.outfits = FuturesUnordered::new();
    }

    /// Waits until no work is left, and takes what it still says.
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

fn done(next: Option<(LaneId, Option<Input>)>) -> Next {
    match next {
        Some((lane, Some(input))) => Next::Input(lane, Box::new(input)),
        Some((_, None)) | None => Next::Stopped,
    }
}
