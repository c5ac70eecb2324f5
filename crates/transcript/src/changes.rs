//! Changes of a transcript by one event.

/// Address of a lane within its transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub(crate) u32);

impl LaneId {
    /// Lane of the session's main agent.
    pub const MAIN: Self = Self(0);
}

/// A block that was added or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Change {
    pub lane: LaneId,
    pub index: usize,
}

/// Blocks that an event added or changed, each once and in order, and whether it changed the session's status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    pub blocks: Vec<Change>,
    /// Whether the model, effort, context, mode, title or work state changed.
    pub status: bool,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && !self.status
    }

    pub(crate) fn add(&mut self, lane: LaneId, indexes: impl Iterator<Item = usize>) {
        self.blocks.extend(indexes.map(|index| Change { lane, index }));
    }

    /// Returns the changes in order, each once.
    pub(crate) fn ordered(mut self) -> Self {
        self.blocks.sort_unstable();
        self.blocks.dedup();
        self
    }
}
