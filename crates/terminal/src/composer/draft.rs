//! Prompts outside of the composer: as pieces that can be stored and edited again, and as text that is sent.

use serde::{Deserialize, Serialize};

/// Columns that a name takes in a placeholder.
const NAME_LIMIT: usize = 60;

/// Kind of a file that goes with a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentKind {
    Image,
    File,
}

/// File or image that goes with a prompt. The caller reads it when the prompt is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentRef {
    pub kind: AttachmentKind,
    /// Number of an image in the draft, from 1. Files have none and are known by their path.
    pub number: usize,
    /// Path of the file, as the caller gave it.
    pub path: String,
}

impl AttachmentRef {
    /// Placeholder of the attachment, in the composer and in the text that is sent.
    pub fn label(&self) -> String {
        match self.kind {
            AttachmentKind::Image => {
                let name = self.path.rsplit(['/', '\\']).next().unwrap_or(&self.path);
                format!("[Image #{}: {}]", self.number, shown_name(name))
            }
            AttachmentKind::File => format!("[File: {}]", shown_name(&self.path)),
        }
    }
}

/// A name in one line, cut at its start when it is long: the end of a path says more.
fn shown_name(name: &str) -> String {
    let name: String =
        name.chars().map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char }).collect();
    let length = name.chars().count();
    if length <= NAME_LIMIT {
        return name;
    }
    std::iter::once('…').chain(name.chars().skip(length - NAME_LIMIT + 1)).collect()
}

/// Piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftPiece {
    Text(String),
    Paste { number: usize, text: String },
    Attachment(AttachmentRef),
}

impl DraftPiece {
    /// Text of the piece as the composer shows it.
    pub fn label(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Paste { number, text } => match text.trim_end_matches('\n').split('\n').count() {
                1 => format!("[Paste #{number}: {} bytes]", text.len()),
                lines => format!("[Paste #{number}: {lines} lines]"),
            },
            Self::Attachment(attachment) => attachment.label(),
        }
    }

    /// Bytes of the text in the piece.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Paste { text, .. } => text.len(),
            Self::Attachment(attachment) => attachment.path.len(),
        }
    }
}

/// Prompt with its cursor, from which the composer can be brought back to the same state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftSnapshot {
    pub pieces: Vec<DraftPiece>,
    /// Byte offset in the text that the composer edits, where a placeholder counts as one character.
    #[serde(default)]
    pub cursor: usize,
}

impl DraftSnapshot {
    /// A text with the cursor at its end.
    pub fn of_text(text: impl Into<String>) -> Self {
        Self { pieces: vec![DraftPiece::Text(text.into())], cursor: usize::MAX }
    }

    /// Text of the prompt with placeholders, as the composer shows it.
    pub fn label(&self) -> String {
        self.pieces.iter().map(DraftPiece::label).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, DraftPiece::Text(text) if text.is_empty()))
    }

    /// Prompt as it is sent: pastes in full, attachments as their placeholder and in the list.
    pub fn draft(&self) -> Draft {
        let mut draft = Draft::default();
        for piece in &self.pieces {
            match piece {
                DraftPiece::Text(text) | DraftPiece::Paste { text, .. } => draft.text.push_str(text),
                DraftPiece::Attachment(attachment) => {
                    draft.text.push_str(&attachment.label());
                    if !draft.attachments.contains(attachment) {
                        draft.attachments.push(attachment.clone());
                    }
                }
            }
        }
        draft
    }
}

/// Prompt as it is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    pub text: String,
    pub attachments: Vec<AttachmentRef>,
}
