//! Memory of dropped blocks: enough to recognise a late event about one of them, so that it makes no new block.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::block::{Block, BlockBody};

/// Number of dropped blocks whose call, request or text is still recognised.
const NAMES: usize = 1_024;
/// Number of dropped blocks that a rewind can still go back to, at eight bytes each.
const EVENTS: usize = 32_768;

/// Names of the forgotten blocks of a lane.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    names: VecDeque<(usize, BlockName)>,
    events: VecDeque<u64>,
    /// The lane's last reasoning and last notice, which later events are compared with.
    last: [Option<(usize, Block)>; 2],
}

/// Name of a block in one of the lookup maps of its lane.
#[derive(Debug)]
pub(crate) enum BlockName {
    Call(String),
    Request(String),
    Text(String),
}

/// Kind of block of which the last one matters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Last {
    Reasoning,
    Notice,
}

impl Memory {
    /// Takes a block that is forgotten. Returns the name that is no longer recognised in its place, with its index.
    pub(crate) fn take(
        &mut self,
        index: usize,
        block: Block,
        last: Option<Last>,
    ) -> Option<(usize, BlockName)> {
        let name = match &block.body {
            BlockBody::Tool(tool) => Some(BlockName::Call(tool.call.clone())),
            BlockBody::Ask(ask) => Some(BlockName::Request(ask.request.clone())),
            BlockBody::Text(_) | BlockBody::Reasoning(_) => Some(BlockName::Text(block.key.clone())),
            BlockBody::User(_) | BlockBody::Notice(_) => None,
        };
        match last {
            Some(last) => self.last[last as usize] = Some((index, block)),
            None => self.note_event(&block.event_id),
        }
        self.names.push_back((index, name?));
        if self.names.len() > NAMES { self.names.pop_front() } else { None }
    }

    /// The forgotten block of that index, if it is the last of its kind.
    pub(crate) fn block(&self, index: usize) -> Option<&Block> {
        self.last.iter().flatten().find(|(at, _)| *at == index).map(|(_, block)| block)
    }

    pub(crate) fn block_mut(&mut self, index: usize) -> Option<&mut Block> {
        self.last.iter_mut().flatten().find(|(at, _)| *at == index).map(|(_, block)| block)
    }

    /// Notes that another block is now the last of its kind.
    pub(crate) fn supersede(&mut self, last: Last) {
        if let Some((_, block)) = self.last[last as usize].take() {
            self.note_event(&block.event_id);
        }
    }

    /// Whether a forgotten block was made by this event.
    pub(crate) fn knows_event(&self, id: &str) -> bool {
        self.last.iter().flatten().any(|(_, block)| block.event_id == id)
            || self.events.contains(&fingerprint(id))
    }

    fn note_event(&mut self, id: &str) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(fingerprint(id));
    }
}

fn fingerprint(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
