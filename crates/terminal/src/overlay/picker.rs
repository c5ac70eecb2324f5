//! Picker: one of many items, filtered by typing.

use unicode_width::UnicodeWidthStr as _;

use super::OverlayEnd;
use super::search::search;
use crate::composer::{FieldView, TextField};
use crate::gate;
use crate::key::{Key, KeyCode};
use crate::keymap::Keymap;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;

/// Rows of the screen that the picker needs itself: title, filter, hint.
const FRAME: usize = 3;

/// Widest column of names.
const MAX_NAME_COLUMNS: usize = 36;

/// An item that can be picked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PickItem {
    /// Id for the program.
    pub id: String,
    pub label: String,
    pub detail: String,
    /// Values to go through with ← and →, such as efforts, and the one that is chosen.
    pub variants: Vec<String>,
    pub variant: usize,
    /// Whether it is only a message and cannot be picked.
    pub is_note: bool,
}

/// The choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    pub id: String,
    pub variant: Option<String>,
    /// The key, if it was not Enter: a letter of `keys`.
    pub key: Option<char>,
}

pub struct Picker {
    title: String,
    pub(super) items: Vec<PickItem>,
    /// Indexes of the items that fit the filter, best first.
    pub(super) matches: Vec<usize>,
    pub(super) filter: TextField,
    selected: usize,
    /// Shown in place of items while there are none.
    pub(super) message: String,
    /// Whether the items are still being fetched.
    pub(super) is_loading: bool,
    /// Further keys with ctrl, and what each does: `x` deletes.
    pub(super) keys: Vec<(char, &'static str)>,
    /// Key that takes effect only when it is pressed twice, and whether it was pressed once.
    careful: Option<(char, bool)>,
}

impl Picker {
    pub fn new(title: impl Into<String>, items: Vec<PickItem>) -> Self {
        let matches = (0..items.len()).collect();
        Self {
            title: title.into(),
            items,
            matches,
            filter: TextField::default(),
            selected: 0,
            message: "nothing here".to_owned(),
            is_loading: false,
            keys: Vec::new(),
            careful: None,
        }
    }

    /// A picker whose items are still being fetched.
    pub fn loading(title: impl Into<String>) -> Self {
        Self { message: "loading …".to_owned(), is_loading: true, ..Self::new(title, Vec::new()) }
    }

    #[must_use]
    pub fn with_keys(mut self, keys: &[(char, &'static str)]) -> Self {
        self.keys = keys.to_vec();
        self
    }

    /// Makes a key take effect only when it is pressed twice, because its action cannot be undone.
    #[must_use]
    pub fn careful_with(mut self, key: char) -> Self {
        self.careful = Some((key, false));
        self
    }

    #[must_use]
    pub fn selecting(mut self, id: &str) -> Self {
        self.selected = self.items.iter().position(|item| item.id == id).unwrap_or(0);
        self
    }

    /// Adds a message below the items. Without items it is shown in their place.
    pub fn note(&mut self, message: &str) {
        if self.items.is_empty() {
            return self.say(message);
        }
        self.items.push(PickItem { label: message.to_owned(), is_note: true, ..PickItem::default() });
        self.refresh();
    }

    pub fn say(&mut self, message: impl Into<String>) {
        self.message = message.into();
        self.is_loading = false;
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub(super) fn refresh(&mut self) {
        let query = self.filter.text();
        self.selected = 0;
        if query.trim().is_empty() {
            self.matches = (0..self.items.len()).collect();
            return;
        }
        self.matches = search(query, &self.items);
    }

    fn pick(&self, key: Option<char>) -> OverlayEnd {
        let Some(item) = self.matches.get(self.selected).and_then(|at| self.items.get(*at)) else {
            return OverlayEnd::Open;
        };
        if item.is_note {
            return OverlayEnd::Open;
        }
        let variant = item.variants.get(item.variant).cloned();
        OverlayEnd::Picked(Pick { id: item.id.clone(), variant, key })
    }

    pub(super) fn key(&mut self, key: Key, rows: usize, keymap: &Keymap) -> OverlayEnd {
        let page = rows.saturating_sub(FRAME).max(1);
        let is_again = match &mut self.careful {
            Some((careful, was_pressed)) => {
                let presses = key.ctrl && key.code == KeyCode::Char(*careful);
                std::mem::replace(was_pressed, presses) && presses
            }
            None => false,
        };
        let last = self.matches.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc if !self.filter.text().is_empty() => {
                self.filter = TextField::default();
                self.refresh();
            }
            KeyCode::Esc => return OverlayEnd::Closed,
            KeyCode::Char('c') if key.ctrl => return OverlayEnd::Closed,
            KeyCode::Char(letter) if key.ctrl && self.keys.iter().any(|(known, _)| *known == letter) => {
                if self.careful.is_some_and(|(careful, _)| careful == letter) && !is_again {
                    return OverlayEnd::Open;
                }
                return self.pick(Some(letter));
            }
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Char('p') if key.ctrl => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(last),
            KeyCode::Char('n') if key.ctrl => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(page),
            KeyCode::PageDown => self.selected = (self.selected + page).min(last),
            KeyCode::Enter => return self.pick(None),
            KeyCode::Left | KeyCode::Right if self.filter.text().is_empty() => {
                let selected = self.matches.get(self.selected).copied();
                if let Some(item) =
                    selected.and_then(|at| self.items.get_mut(at)).filter(|item| !item.variants.is_empty())
                {
                    let most = item.variants.len() - 1;
                    item.variant = match key.code {
                        KeyCode::Left => item.variant.saturating_sub(1),
                        _ => (item.variant + 1).min(most),
                    };
                }
            }
            _ => {
                let before = self.filter.text().to_owned();
                self.filter.key(key, keymap);
                if self.filter.text() != before {
                    self.refresh();
                }
            }
        }
        OverlayEnd::Open
    }

    pub(super) fn paste(&mut self, text: &str) {
        self.filter.insert(text.trim());
        self.refresh();
    }

    /// Width of the column of names with their variants. Longer names reach into the descriptions.
    fn name_columns(&self, columns: usize) -> usize {
        // Variants are read with the names; descriptions have the rest.
        let has_variants = self.items.iter().any(|item| !item.variants.is_empty());
        let most = (columns / if has_variants { 2 } else { 3 }).min(MAX_NAME_COLUMNS);
        let described = self.items.iter().filter(|item| !item.detail.is_empty());
        let widths = described.map(|item| {
            let variant =
                item.variants.get(item.variant).map_or(0, |variant| gate::visible(variant).width() + 6);
            gate::visible(&item.label).width() + variant
        });
        widths.filter(|width| *width <= most).max().unwrap_or(0)
    }

    pub(super) fn view(
        &self,
        columns: usize,
        rows: usize,
        theme: &Theme,
    ) -> (Vec<Row>, Option<(usize, usize)>) {
        let height = rows.saturating_sub(FRAME);
        let title = format!("{} ({})", gate::visible(&self.title), self.matches.len());
        let mut screen = vec![Row::styled(title, theme.accent.bold()).clipped(columns)];
        let FieldView { row: filter, cursor: column } =
            self.filter.view(columns.saturating_sub(2), Style::PLAIN);
        screen.push(filter.after(Span::new("❯ ", theme.accent)));
        let top = self.selected.saturating_sub(height.saturating_sub(1));
        let name_columns = self.name_columns(columns);
        for (at, index) in self.matches.iter().enumerate().skip(top).take(height) {
            let Some(item) = self.items.get(*index) else { continue };
            let is_selected = at == self.selected;
            let style = if is_selected { theme.selection } else { Style::PLAIN };
            let mut row = Row::new(vec![
                Span::new(if is_selected { "❯ " } else { "  " }, theme.accent),
                Span::new(gate::visible(&item.label), style),
            ]);
            if let Some(variant) = item.variants.get(item.variant) {
                row.push(Span::new(format!("  ‹ {} ›", gate::visible(variant)), theme.accent));
            }
            if !item.detail.is_empty() {
                let missing = (name_columns + 2).saturating_sub(row.width());
                row.push(Span::plain(" ".repeat(missing)));
                let detail = Span::new(format!("  {}", gate::visible(&item.detail)), theme.dim);
                // A long name leaves room for the beginning of its description.
                let room = detail.text.width().min(columns / 3);
                row = row.clipped(columns.saturating_sub(room));
                row.push(detail);
            }
            screen.push(row.clipped(columns));
        }
        if self.matches.is_empty() {
            let told = if self.items.is_empty() { self.message.as_str() } else { "nothing fits" };
            screen.push(Row::styled(gate::visible(told), theme.dim).clipped(columns));
        }
        screen.resize_with(height + 2, Row::default);
        if let Some((key, true)) = self.careful {
            let does = self.keys.iter().find(|(known, _)| *known == key).map_or("acts", |(_, does)| does);
            let again = format!("ctrl+{key} again {does}; any other key keeps it");
            screen.push(Row::styled(again, theme.warning).clipped(columns));
            return (screen, Some((1, column + 2)));
        }
        let mut hint = "type to search · ↑↓ move · enter picks".to_owned();
        if self.items.iter().any(|item| !item.variants.is_empty()) {
            hint.push_str(" · ←→ changes");
        }
        for (key, does) in &self.keys {
            hint.push_str(&format!(" · ctrl+{key} {does}"));
        }
        hint.push_str(" · esc closes");
        screen.push(Row::styled(hint, theme.dim).clipped(columns));
        (screen, Some((1, column + 2)))
    }
}
