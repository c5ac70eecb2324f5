//! One line of work: a session, and what is under way for it. The main agent has one, and every agent that it started.

use std::sync::Arc;

use hangar_protocol::{AgentId, Body};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Discovery;
use crate::agents::outfit::Outfit;
use crate::model::ModelProvider;
use crate::session::{Input, Session};

/// Events of running tools that may wait for the loop before the tools have to.
const PROGRESS_BUFFER: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneId(pub(super) u64);

/// The lane of the session's main agent.
pub(super) const MAIN: LaneId = LaneId(0);

pub(super) struct Lane {
    pub(super) session: Session,
    pub(super) provider: Arc<dyn ModelProvider>,
    pub(super) agent: Option<AgentLane>,
    /// What an agent looks instructions up with, once it has touched a file.
    pub(super) discovery: Option<Box<dyn Discovery>>,
    /// What running tools report through.
    pub(super) progress: mpsc::Sender<Box<Body>>,
    /// Each ends one kind of work of the lane; dropping the work is what ends it.
    pub(super) call: CancellationToken,
    pub(super) summary: CancellationToken,
    pub(super) tools: CancellationToken,
    /// Lets tools know that someone has something to say.
    pub(super) hurry: CancellationToken,
    pub(super) hooks: CancellationToken,
}

/// What only a lane of an agent has.
pub(super) struct AgentLane {
    pub(super) id: AgentId,
    pub(super) parent: LaneId,
    pub(super) depth: u32,
    /// The call of the parent that waits for the answer.
    pub(super) awaited_by: Option<String>,
    /// What it waits to be given until its outfit is ready. Empty once it has begun.
    pub(super) held: Vec<Input>,
    /// Tools that no other has.
    pub(super) outfit: Option<Outfit>,
}

impl Lane {
    pub(super) fn new(
        session: Session,
        provider: Arc<dyn ModelProvider>,
        agent: Option<AgentLane>,
    ) -> (Self, mpsc::Receiver<Box<Body>>) {
        let (progress, reports) = mpsc::channel(PROGRESS_BUFFER);
        let lane = Self {
            session,
            provider,
            agent,
            discovery: None,
            progress,
            call: CancellationToken::new(),
            summary: CancellationToken::new(),
            tools: CancellationToken::new(),
            hurry: CancellationToken::new(),
            hooks: CancellationToken::new(),
        };
        (lane, reports)
    }
}

/// Ends what a token stands for, and gives a token for what comes next.
pub(super) fn renew(token: &mut CancellationToken) -> CancellationToken {
    token.cancel();
    *token = CancellationToken::new();
    token.clone()
}
