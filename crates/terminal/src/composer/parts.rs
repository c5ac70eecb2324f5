//! Parts of the composer's text that are shown as placeholders: pastes and attachments.

use std::sync::Arc;

use super::draft::{AttachmentKind, AttachmentRef, DraftPiece};
use super::text::{PART_FIRST, PART_LAST, is_part};

/// Parts of one draft, including the ones that only its undo history holds.
const PART_LIMIT: usize = PART_LAST as usize - PART_FIRST as usize + 1;

#[derive(Debug)]
struct Part {
    piece: DraftPiece,
    label: String,
}

/// Table of the parts of a draft. In the text each is one private character, so that moves, kills and undo need no
/// special cases.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    all: Vec<Arc<Part>>,
    pastes: usize,
    images: usize,
}

impl Parts {
    /// Adds a paste and returns its character, or nothing when the table is full.
    pub(super) fn paste(&mut self, text: String) -> Option<char> {
        let number = self.pastes.saturating_add(1);
        self.piece(DraftPiece::Paste { number, text })
    }

    pub(super) fn attachment(&mut self, kind: AttachmentKind, path: String) -> Option<char> {
        let number = match kind {
            AttachmentKind::Image => self.images.saturating_add(1),
            AttachmentKind::File => 0,
        };
        self.piece(DraftPiece::Attachment(AttachmentRef { kind, number, path }))
    }

    /// Adds a piece that has its number already.
    fn piece(&mut self, piece: DraftPiece) -> Option<char> {
        if self.all.len() >= PART_LIMIT {
            return None;
        }
        let index = u32::try_from(self.all.len()).ok()?;
        let char = char::from_u32(PART_FIRST as u32 + index)?;
        match &piece {
            DraftPiece::Text(_) => {}
            DraftPiece::Paste { number, .. } => self.pastes = self.pastes.max(*number),
            DraftPiece::Attachment(attachment) => match attachment.kind {
                AttachmentKind::Image => self.images = self.images.max(attachment.number),
                AttachmentKind::File => {}
            },
        }
        let label = piece.label();
        self.all.push(Arc::new(Part { piece, label }));
        Some(char)
    }

    fn part(&self, char: char) -> Option<&Part> {
        let index = (char as usize).checked_sub(PART_FIRST as usize)?;
        self.all.get(index).map(Arc::as_ref)
    }

    /// Placeholder of a character, if it stands for a part.
    pub(super) fn label(&self, char: char) -> Option<&str> {
        self.part(char).map(|part| part.label.as_str())
    }

    /// The text from outside in the form that the buffer holds: too long or ambiguous text becomes a paste.
    pub(super) fn encode(&mut self, text: &str, inline: usize) -> String {
        let text = normalised(text);
        if text.len() <= inline && !text.contains(is_part) {
            return text;
        }
        match self.paste(text.clone()) {
            Some(char) => char.to_string(),
            None => text.replace(is_part, "\u{FFFD}"),
        }
    }

    /// The pieces in the form that the buffer holds.
    pub(super) fn encode_pieces(&mut self, pieces: &[DraftPiece], inline: usize) -> String {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                DraftPiece::Text(plain) => {
                    let room = inline.saturating_sub(text.len());
                    text.push_str(&self.encode(plain, room));
                }
                DraftPiece::Paste { text: paste, .. } => match self.piece(piece.clone()) {
                    Some(char) => text.push(char),
                    None => text.push_str(&paste.replace(is_part, "\u{FFFD}")),
                },
                DraftPiece::Attachment(_) => text.extend(self.piece(piece.clone())),
            }
        }
        text
    }

    /// The pieces of a text of the buffer.
    pub(super) fn pieces(&self, text: &str) -> Vec<DraftPiece> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(is_part) {
            if at > 0 {
                pieces.push(DraftPiece::Text(rest[..at].to_owned()));
            }
            let mut after = rest[at..].chars();
            pieces.extend(after.next().and_then(|char| self.part(char)).map(|part| part.piece.clone()));
            rest = after.as_str();
        }
        if !rest.is_empty() {
            pieces.push(DraftPiece::Text(rest.to_owned()));
        }
        pieces
    }
}

/// A text whose lines end in line feeds only.
pub(super) fn normalised(text: &str) -> String {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text.to_owned() }
}
