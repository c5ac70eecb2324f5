//! Line that is being split into pieces.

use std::ops::Range;

use crate::theme::Syntax;

/// Piece of a line with its role, if it has one.
pub(super) type LinePiece = (Range<usize>, Option<Syntax>);

/// Line with the place up to which it is read. Pieces are added in order and without gaps.
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pieces: Vec<LinePiece>,
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, pieces: Vec::new() }
    }

    /// The pieces, with all that was not read as one without a role.
    pub(super) fn finish(mut self) -> Vec<LinePiece> {
        self.take_rest(None);
        self.pieces
    }

    pub(super) fn is_read(&self) -> bool {
        self.at >= self.text.len()
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn starts_with(&self, mark: &str) -> bool {
        self.rest().starts_with(mark)
    }

    pub(super) fn byte(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    pub(super) fn before(&self) -> Option<u8> {
        self.at.checked_sub(1).and_then(|at| self.text.as_bytes().get(at)).copied()
    }

    /// Reads so many bytes, extended to the end of a character.
    pub(super) fn take(&mut self, length: usize, role: Option<Syntax>) {
        let end = self.text.ceil_char_boundary(self.at.saturating_add(length));
        if end <= self.at {
            return;
        }
        match self.pieces.last_mut() {
            Some((range, last)) if *last == role => range.end = end,
            _ => self.pieces.push((self.at..end, role)),
        }
        self.at = end;
    }

    pub(super) fn take_rest(&mut self, role: Option<Syntax>) {
        self.take(self.text.len().saturating_sub(self.at), role);
    }

    /// Number of bytes from an offset on that satisfy a condition.
    pub(super) fn run(&self, offset: usize, wanted: impl Fn(u8) -> bool) -> usize {
        let bytes = self.text.as_bytes().get(self.at + offset..).unwrap_or_default();
        bytes.iter().take_while(|byte| wanted(**byte)).count()
    }

    /// The first byte at or after an offset that is not a blank.
    pub(super) fn after_blanks(&self, offset: usize) -> Option<u8> {
        self.byte(offset + self.run(offset, is_blank))
    }
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}
