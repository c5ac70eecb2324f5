//! Editing commands of the composer.

use std::ops::Range;

use super::kill::Side;
use super::text;
use super::undo::Kind;
use super::{Composer, Last};

/// Command that moves the cursor or changes the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edit {
    Left,
    Right,
    /// Up by one row of the screen.
    Up,
    /// Down by one row of the screen.
    Down,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
    Backspace,
    Delete,
    /// Kill back to the blank before the cursor.
    KillBlankLeft,
    KillWordLeft,
    KillWordRight,
    KillLineStart,
    KillLineEnd,
    Yank,
    /// Replace the text that was just yanked by the kill before it.
    YankOlder,
    Undo,
    Redo,
    Newline,
}

/// Result of a command for a caller that has something above and below the text, such as a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    Done,
    /// The cursor was in the first row and was to go up.
    AtTop,
    /// The cursor was in the last row and was to go down.
    AtBottom,
}

impl Composer {
    /// Runs a command. `columns` is the width of the screen, by which the text is wrapped.
    pub fn edit(&mut self, edit: Edit, columns: usize) -> Applied {
        let (text, at) = (self.buffer.text(), self.buffer.cursor());
        match edit {
            Edit::Left => self.go(text::prev(text, at)),
            Edit::Right => self.go(text::next(text, at)),
            Edit::WordLeft => self.go(text::word_left(text, at)),
            Edit::WordRight => self.go(text::word_right(text, at)),
            Edit::LineStart => self.go(text::line_start(text, at)),
            Edit::LineEnd => self.go(text::line_end(text, at)),
            Edit::TextStart => self.go(0),
            Edit::TextEnd => self.go(text.len()),
            Edit::Up | Edit::Down => return self.vertical(edit == Edit::Up, columns),
            Edit::Backspace => self.delete(text::prev(text, at)..at),
            Edit::Delete => self.delete(at..text::next(text, at)),
            Edit::KillBlankLeft => self.kill(text::blank_left(text, at)..at, Side::Before),
            Edit::KillWordLeft => self.kill(text::word_left(text, at)..at, Side::Before),
            Edit::KillWordRight => self.kill(at..text::word_right(text, at), Side::After),
            Edit::KillLineStart => {
                // At the start of a line its break goes, so that the key repeated clears everything.
                let start = text::line_start(text, at);
                let start = if start == at { text::prev(text, at) } else { start };
                self.kill(start..at, Side::Before);
            }
            Edit::KillLineEnd => {
                let end = text::line_end(text, at);
                let end = if end == at { text::next(text, at) } else { end };
                self.kill(at..end, Side::After);
            }
            Edit::Yank => self.yank(),
            Edit::YankOlder => self.yank_older(),
            Edit::Undo => {
                self.buffer.undo();
                self.last = Last::Other;
            }
            Edit::Redo => {
                self.buffer.redo();
                self.last = Last::Other;
            }
            Edit::Newline => self.insert("\n"),
        }
        Applied::Done
    }

    fn go(&mut self, to: usize) {
        self.buffer.go(to);
        self.buffer.undo.close();
        self.last = Last::Other;
    }

    fn delete(&mut self, range: Range<usize>) {
        self.buffer.remove(range, Kind::Deleting);
        self.last = Last::Other;
    }

    fn kill(&mut self, range: Range<usize>, side: Side) {
        let follows = self.last == Last::Kill;
        let killed = self.buffer.remove(range, Kind::Whole);
        self.kills.push(killed, side, follows);
        self.last = Last::Kill;
    }

    fn yank(&mut self) {
        let start = self.buffer.cursor();
        self.last = Last::Other;
        if let Some(text) = self.kills.newest()
            && self.buffer.replace(start..start, text, Kind::Whole)
        {
            self.last = Last::Yank { start };
        }
    }

    fn yank_older(&mut self) {
        let Last::Yank { start } = self.last else { return };
        if let Some(text) = self.kills.rotate() {
            self.buffer.replace(start..self.buffer.cursor(), text, Kind::Whole);
        }
    }

    fn vertical(&mut self, up: bool, columns: usize) -> Applied {
        let goal = match self.last {
            Last::Vertical { column } => Some(column),
            _ => None,
        };
        let cursor = self.buffer.cursor();
        let layout = self.layout_around(columns, 1);
        let (_, column) = layout.position(cursor);
        let column = goal.unwrap_or(column);
        let mut to = layout.vertical(cursor, column, up);
        // A placeholder of many rows has a place in the first only, which may be far away.
        if to.is_none() && !layout.reaches_end(up) {
            to = self.layout(columns).vertical(cursor, column, up);
        }
        match to {
            Some(to) => {
                self.go(to);
                self.last = Last::Vertical { column };
                Applied::Done
            }
            None if up => Applied::AtTop,
            None => Applied::AtBottom,
        }
    }
}
