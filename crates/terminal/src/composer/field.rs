//! Text field of one line, for forms and for the reason of an answer.

use super::{Composer, Edit};
use crate::key::{Key, KeyCode};
use crate::keymap::{Action, KeyContext, KeyMeaning, Keymap, PendingKeys};
use crate::row::{Row, Style};

/// Bytes of a field.
const FIELD_LIMIT: usize = 16 * 1024;
/// Columns of a field are never wrapped: one row holds it all.
const ONE_ROW: usize = usize::MAX;

/// Single-line editor with the composer's keys.
#[derive(Debug, Clone, Default)]
pub struct TextField {
    composer: Composer,
}

/// Field on the screen, scrolled to its cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldView {
    pub row: Row,
    pub cursor: usize,
}

impl TextField {
    pub fn new(text: &str) -> Self {
        let mut field = Self::default();
        field.insert(text);
        field
    }

    pub fn text(&self) -> &str {
        self.composer.text()
    }

    pub fn is_empty(&self) -> bool {
        self.composer.is_empty()
    }

    pub fn clear(&mut self) {
        self.composer.set("");
    }

    /// Inserts text that was typed or pasted: line breaks become blanks, what exceeds the limit is left out.
    pub fn insert(&mut self, text: &str) {
        let mut room = FIELD_LIMIT.saturating_sub(self.text().len());
        let line: String = super::parts::normalised(text)
            .chars()
            .map(|char| match char {
                '\n' => ' ',
                char if super::text::is_part(char) => char::REPLACEMENT_CHARACTER,
                char => char,
            })
            .take_while(|char| {
                let fits = char.len_utf8() <= room;
                room = room.saturating_sub(char.len_utf8());
                fits
            })
            .collect();
        self.composer.insert(&line);
    }

    /// Handles a key that edits the line; returns false for all others, such as enter, esc and tab.
    pub fn key(&mut self, key: Key, keymap: &Keymap) -> bool {
        if matches!(key.code, KeyCode::Enter | KeyCode::Esc | KeyCode::Tab | KeyCode::BackTab) {
            return false;
        }
        let context = KeyContext { empty: false, completing: false };
        match keymap.resolve(&mut PendingKeys::default(), key, context) {
            KeyMeaning::Action(Action::Edit(Edit::Newline | Edit::Up | Edit::Down)) => false,
            KeyMeaning::Action(Action::Edit(edit)) => {
                self.composer.edit(edit, ONE_ROW);
                true
            }
            KeyMeaning::Insert(char) => {
                self.insert(char.encode_utf8(&mut [0; 4]));
                true
            }
            KeyMeaning::Action(_) | KeyMeaning::Pending | KeyMeaning::Nothing => false,
        }
    }

    /// Shows the part of the line around the cursor.
    pub fn view(&self, columns: usize, style: Style) -> FieldView {
        let columns = columns.max(1);
        let layout = super::layout::Layout::new(
            self.composer.text(),
            &self.composer.parts,
            super::wrap::Widths::unbounded(),
            0,
        );
        let (_, cursor) = layout.position(self.composer.cursor());
        let first = (cursor + 1).saturating_sub(columns);
        let mut text = String::new();
        let mut column = 0;
        let mut shown = 0;
        for cell in layout.cells(0) {
            let start = column;
            column += cell.width;
            if column <= first {
                continue;
            }
            // A wide cluster that is cut by the left edge leaves a blank.
            if start < first {
                let rest = " ".repeat((column - first).min(columns));
                shown += rest.len();
                text.push_str(&rest);
            } else if shown + cell.width <= columns {
                shown += cell.width;
                text.push_str(&cell.shown);
            } else {
                break;
            }
        }
        FieldView { row: Row::styled(text, style), cursor: cursor - first }
    }
}
