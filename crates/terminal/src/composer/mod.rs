//! Composer: the editor of the prompt. Multi-line text by clusters, with placeholders for pastes and attachments.

mod buffer;
mod draft;
mod editing;
mod field;
mod kill;
mod layout;
mod parts;
mod segments;
mod text;
mod undo;
mod view;
mod vim;
mod wrap;

use std::ops::Range;

use buffer::{Buffer, TEXT_LIMIT};
pub use draft::{AttachmentKind, AttachmentRef, Draft, DraftPiece, DraftSnapshot};
pub use editing::{Applied, Edit};
pub use field::{FieldView, TextField};
use kill::KillRing;
use parts::Parts;
pub(crate) use text::is_part;
use undo::Kind;
pub use view::{ComposerStyles, ComposerView};
use vim::Vim;
pub use vim::{VimMode, VimOutcome};

/// A paste with more lines or bytes than these is shown as a placeholder.
const INLINE_LINES: usize = 10;
const INLINE_BYTES: usize = 1000;
/// Bytes of one paste. Longer ones are refused: no model reads them.
pub const PASTE_LIMIT: usize = 16 * 1024 * 1024;

/// Last command, where the next one depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Other,
    Kill,
    Yank {
        start: usize,
    },
    Vertical {
        column: usize,
    },
}

/// Result of a paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pasted {
    Text,
    Placeholder,
    /// Nothing was inserted: the paste or the draft is at its limit.
    TooLong,
}

/// Result of putting the draft away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stashed {
    PutAway,
    BroughtBack,
    /// The draft and the stash were both in use and changed places.
    Swapped,
    Nothing,
}

#[derive(Debug, Clone, Default)]
pub struct Composer {
    buffer: Buffer,
    parts: Parts,
    kills: KillRing,
    last: Last,
    stash: Option<DraftSnapshot>,
    vim: Option<Vim>,
}

impl Composer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Text that the composer edits, in which a placeholder is one character. Offsets of completions refer to it.
    pub fn text(&self) -> &str {
        self.buffer.text()
    }

    /// Byte offset of the cursor in [`Composer::text`].
    pub fn cursor(&self) -> usize {
        self.buffer.cursor()
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    /// Whether the prompt is a command for the shell.
    pub fn is_shell(&self) -> bool {
        self.buffer.text().starts_with('!')
    }

    /// Inserts text that was typed.
    pub fn insert(&mut self, text: &str) {
        let room = TEXT_LIMIT.saturating_sub(self.buffer.text().len());
        let text = self.parts.encode(text, room);
        let at = self.buffer.cursor();
        let kind = if text.chars().count() == 1 { Kind::Typing } else { Kind::Whole };
        self.buffer.replace(at..at, &text, kind);
        self.last = Last::Other;
    }

    /// Inserts text that was pasted; a long one becomes a placeholder.
    pub fn paste(&mut self, text: &str) -> Pasted {
        if text.len() > PASTE_LIMIT {
            return Pasted::TooLong;
        }
        let text = parts::normalised(text);
        let lines = text.trim_end_matches('\n').split('\n').take(INLINE_LINES + 1).count();
        let inline = if lines > INLINE_LINES { 0 } else { INLINE_BYTES };
        let (text, kind) = match self.parts.encode(&text, inline) {
            part if part.chars().all(is_part) && !part.is_empty() => (part, Pasted::Placeholder),
            text => (text, Pasted::Text),
        };
        if self.put(&text) { kind } else { Pasted::TooLong }
    }

    /// Inserts the placeholder of an attachment. Returns false when the draft is at its limit.
    pub fn attach(&mut self, kind: AttachmentKind, path: impl Into<String>) -> bool {
        match self.parts.attachment(kind, path.into()) {
            Some(char) => self.put(char.encode_utf8(&mut [0; 4])),
            None => false,
        }
    }

    fn put(&mut self, text: &str) -> bool {
        let at = self.buffer.cursor();
        self.last = Last::Other;
        self.buffer.replace(at..at, text, Kind::Whole)
    }

    /// Replaces a range of [`Composer::text`], for a completion that was accepted. Offsets inside a cluster are moved to its end.
    pub fn replace(&mut self, range: Range<usize>, with: &str) {
        let text = self.buffer.text();
        let end = text::snap(text, range.end);
        let start = text::snap(text, range.start).min(end);
        let room = (TEXT_LIMIT + (end - start)).saturating_sub(text.len());
        let with = self.parts.encode(with, room);
        self.buffer.replace(start..end, &with, Kind::Whole);
        self.last = Last::Other;
    }

    /// Turns a backslash before the cursor into a line break, for terminals that cannot tell shift+enter from enter.
    pub fn newline_by_backslash(&mut self) -> bool {
        let at = self.buffer.cursor();
        if !self.buffer.text()[..at].ends_with('\\') {
            return false;
        }
        self.replace(at - 1..at, "\n");
        true
    }

    /// The prompt as it is sent.
    pub fn content(&self) -> Draft {
        self.snapshot().draft()
    }

    /// Takes the prompt and leaves the composer empty and without undo history.
    pub fn take(&mut self) -> Draft {
        let draft = self.content();
        self.restore(&DraftSnapshot::default());
        draft
    }

    /// Replaces the prompt by a text, as one change that can be undone.
    pub fn set(&mut self, text: &str) {
        self.set_pieces(&[DraftPiece::Text(text.to_owned())]);
    }

    /// Replaces the prompt by pieces, such as an entry of the history, as one change that can be undone.
    pub fn set_pieces(&mut self, pieces: &[DraftPiece]) {
        let text = self.parts.encode_pieces(pieces, TEXT_LIMIT);
        let all = 0..self.buffer.text().len();
        self.buffer.replace(all, &text, Kind::Whole);
        self.last = Last::Other;
    }

    /// Copy of the draft, from which [`Composer::restore`] brings it back.
    pub fn snapshot(&self) -> DraftSnapshot {
        DraftSnapshot { pieces: self.parts.pieces(self.buffer.text()), cursor: self.buffer.cursor() }
    }

    /// Replaces the draft and forgets what came before it. Kills that hold placeholders of the old draft go with it.
    pub fn restore(&mut self, snapshot: &DraftSnapshot) {
        self.parts = Parts::default();
        let text = self.parts.encode_pieces(&snapshot.pieces, TEXT_LIMIT);
        self.buffer = Buffer::new(text, snapshot.cursor);
        self.kills.forget_parts();
        self.last = Last::Other;
        if let Some(vim) = &mut self.vim {
            vim.start_draft(&mut self.buffer);
        }
    }

    /// Puts the draft away, or brings back the one that was.
    pub fn stash(&mut self) -> Stashed {
        let draft = (!self.is_empty()).then(|| self.snapshot());
        let stashed = match (&draft, &self.stash) {
            (Some(_), None) => Stashed::PutAway,
            (None, Some(_)) => Stashed::BroughtBack,
            (Some(_), Some(_)) => Stashed::Swapped,
            (None, None) => return Stashed::Nothing,
        };
        let back = std::mem::replace(&mut self.stash, draft).unwrap_or_default();
        self.restore(&back);
        stashed
    }

    pub fn has_stash(&self) -> bool {
        self.stash.is_some()
    }
}

#[cfg(test)]
mod tests;
