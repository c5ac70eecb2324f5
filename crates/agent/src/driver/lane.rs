//! A lane: the session of one agent, and its running work. The main agent has one, and so has every agent that it
//! started.

use std::sync::Arc;

use hangar_protocol::{AgentId, Body};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::InstructionFinder;
use crate::agents::toolset::AgentToolset;
use crate::model::ModelProvider;
use crate::session::{Session, SessionInput};

/// Capacity of the channel from running tools to the driver. A tool that fills it waits.
const PROGRESS_BUFFER: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneId(pub(super) u64);

/// The lane of the session's main agent.
pub(super) const MAIN: LaneId = LaneId(0);

pub(super) struct Lane {
    pub(super) session: Session,
    pub(super) provider: Arc<dyn ModelProvider>,
    pub(super) agent: Option<AgentLane>,
    /// Finder of instructions, once the agent has touched a file.
    pub(super) discovery: Option<Box<dyn InstructionFinder>>,
    /// Channel of running tools.
    pub(super) progress: mpsc::Sender<Box<Body>>,
    /// Cancellation tokens, one for each kind of work of the lane.
    pub(super) call: CancellationToken,
    pub(super) summary: CancellationToken,
    pub(super) tools: CancellationToken,
    /// Tells waiting tools to return early, because there is a new message.
    pub(super) hurry: CancellationToken,
    pub(super) hooks: CancellationToken,
}

/// State of a lane that belongs to an agent.
pub(super) struct AgentLane {
    pub(super) id: AgentId,
    pub(super) parent: LaneId,
    pub(super) depth: u32,
    /// Call of the parent that waits for the answer.
    pub(super) awaited_by: Option<String>,
    /// Inputs that are held until its tools are ready. Empty once it has begun.
    pub(super) held: Vec<SessionInput>,
    /// Its own tools.
    pub(super) toolset: Option<AgentToolset>,
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

/// Cancels a token and puts a new one in its place.
pub(super) fn renew(token: &mut CancellationToken) -> CancellationToken {
    token.cancel();
    *token = CancellationToken::new();
    token.clone()
}
