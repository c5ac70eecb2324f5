//! Kill ring: text that was deleted by a command and can be inserted again.

use std::collections::VecDeque;

use super::text::is_part;

/// Kills that are kept.
const RING_LIMIT: usize = 16;

/// Direction of a kill, which decides to which end of the kill before it it is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

#[derive(Debug, Clone, Default)]
pub(super) struct KillRing {
    /// Newest first.
    kills: VecDeque<String>,
}

impl KillRing {
    /// Adds a kill; one that follows another directly is joined with it.
    pub(super) fn push(&mut self, text: String, side: Side, follows: bool) {
        if text.is_empty() {
            return;
        }
        match (self.kills.front_mut(), side) {
            (Some(newest), Side::After) if follows => newest.push_str(&text),
            (Some(newest), Side::Before) if follows => newest.insert_str(0, &text),
            _ => {
                self.kills.push_front(text);
                self.kills.truncate(RING_LIMIT);
            }
        }
    }

    pub(super) fn newest(&self) -> Option<&str> {
        self.kills.front().map(String::as_str)
    }

    /// Moves the newest kill to the end, so that the one before it comes next.
    pub(super) fn rotate(&mut self) -> Option<&str> {
        let newest = self.kills.pop_front()?;
        self.kills.push_back(newest);
        self.newest()
    }

    /// Drops the kills that hold placeholders: their parts belong to a draft that is gone.
    pub(super) fn forget_parts(&mut self) {
        self.kills.retain(|kill| !kill.contains(is_part));
    }
}
