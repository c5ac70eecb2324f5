//! Text with a cursor: the one place where the composer's text changes.

use std::ops::Range;

use super::text;
use super::undo::{Kind, Undo, UndoChange};

/// Bytes of editable text: the rows of all of it are counted for each key. Longer text is kept as a part, which is shown as a placeholder.
pub(super) const TEXT_LIMIT: usize = 64 * 1024;

/// Text, its undo history and a cursor that is always at the boundary of a cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct Buffer {
    text: String,
    cursor: usize,
    pub(super) undo: Undo,
}

impl Buffer {
    /// A text without undo history.
    pub(super) fn new(text: String, cursor: usize) -> Self {
        let cursor = text::snap(&text, cursor);
        Self { text, cursor, undo: Undo::default() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Moves the cursor to the boundary at or after an offset.
    pub(super) fn go(&mut self, to: usize) {
        self.cursor = text::snap(&self.text, to);
    }

    /// Replaces a range and puts the cursor behind the new text. Returns false, and changes nothing, when the text would become too long.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &str, kind: Kind) -> bool {
        if self.text.len() - range.len() + with.len() > TEXT_LIMIT {
            return false;
        }
        if range.is_empty() && with.is_empty() {
            return true;
        }
        let before = self.cursor;
        let at = range.start;
        let removed = self.text[range.clone()].to_owned();
        self.text.replace_range(range, with);
        self.go(at + with.len());
        self.undo.record(UndoChange { at, removed, inserted: with.to_owned() }, kind, before, self.cursor);
        true
    }

    /// Removes a range and returns it.
    pub(super) fn remove(&mut self, range: Range<usize>, kind: Kind) -> String {
        let removed = self.text[range.clone()].to_owned();
        self.replace(range, "", kind);
        removed
    }

    pub(super) fn undo(&mut self) -> bool {
        let Some(group) = self.undo.undo() else { return false };
        for change in group.changes.iter().rev() {
            self.text.replace_range(change.at..change.at + change.inserted.len(), &change.removed);
        }
        self.cursor = group.before;
        true
    }

    pub(super) fn redo(&mut self) -> bool {
        let Some(group) = self.undo.redo() else { return false };
        for change in &group.changes {
            self.text.replace_range(change.at..change.at + change.removed.len(), &change.inserted);
        }
        self.cursor = group.after;
        true
    }
}
