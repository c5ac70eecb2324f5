//! Overlays on the alternate screen: pagers and pickers. They leave no trace on the main screen.

mod comments;
mod pager;
mod picker;
mod plain;
mod search;

use crate::key::Key;
use crate::keymap::Keymap;
use crate::row::Row;
use crate::theme::Theme;

pub use pager::Pager;
pub use picker::{Pick, PickItem, Picker};

pub enum Overlay {
    Pager(Box<Pager>),
    Picker(Box<Picker>),
}

/// State of an overlay after a key.
#[derive(Debug, Clone, PartialEq)]
pub enum OverlayEnd {
    Open,
    Closed,
    Picked(Pick),
    /// A letter that the owner of the overlay handles.
    Keyed(char),
    /// Closed with comments, as a text for the next message.
    Commented(String),
}

impl Overlay {
    /// Handles a key. `rows` is the height of the screen.
    pub fn key(&mut self, key: Key, rows: usize, keymap: &Keymap) -> OverlayEnd {
        match self {
            Self::Pager(pager) => pager.key(key, rows, keymap),
            Self::Picker(picker) => picker.key(key, rows, keymap),
        }
    }

    /// Inserts pasted text where text is typed: in a search, the filter of a picker, a comment. Elsewhere it has no effect.
    pub fn paste(&mut self, text: &str) {
        match self {
            Self::Pager(pager) => pager.paste(text),
            Self::Picker(picker) => picker.paste(text),
        }
    }

    /// The whole screen, row by row, and the cursor if a text is edited.
    pub fn view(&self, columns: usize, rows: usize, theme: &Theme) -> (Vec<Row>, Option<(usize, usize)>) {
        let (mut screen, cursor) = match self {
            Self::Pager(pager) => pager.view(columns, rows, theme),
            Self::Picker(picker) => picker.view(columns, rows, theme),
        };
        screen.resize_with(rows, Row::default);
        (screen, cursor)
    }
}
