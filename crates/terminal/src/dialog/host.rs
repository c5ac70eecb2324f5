//! Questions of the program itself, such as which provider to use: a list that is searched by typing, a text, or nothing but a
//! word on what is under way.

use unicode_width::UnicodeWidthStr as _;

use super::body::DialogBody;
use super::{BodyPart, DialogEnd, DialogReply, DialogView};
use crate::arming::Arming;
use crate::composer::{FieldView, TextField};
use crate::fuzzy::{Matcher, Texts};
use crate::gate;
use crate::key::{Key, KeyCode};
use crate::keymap::Keymap;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;

/// Rows that are always there: title and hint.
const FRAME: usize = 2;
/// Items that are shown before the text gives way to them, and at most.
const LEAST_ITEMS: usize = 3;
const MOST_ITEMS: usize = 20;
/// Items that have a key of their own.
const NUMBERED: usize = 9;
/// Items that are printed at once where nothing can be redrawn.
const PRINTED: usize = 40;
/// Bytes of a text that is not shown.
const HIDDEN_LIMIT: usize = 16 * 1024;

/// A question of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostQuestion {
    pub title: String,
    pub parts: Vec<BodyPart>,
    pub asks: HostAsk,
    /// Whether it comes unasked: keys that were meant for the draft must not answer it.
    pub is_unasked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAsk {
    Pick(Vec<HostItem>),
    /// A text; one that is hidden is shown as dots.
    Text {
        hidden: bool,
    },
    /// Nothing: something is under way, which Esc stops.
    Nothing,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostItem {
    /// Name for the program.
    pub id: String,
    pub label: String,
    pub detail: String,
}

/// Answer to a question of the program.
#[derive(Clone, PartialEq, Eq)]
pub enum HostAnswer {
    Picked(String),
    Typed(String),
    /// One step back.
    Back,
}

/// A text that was typed may be a secret, so it is not shown.
impl std::fmt::Debug for HostAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Picked(id) => write!(f, "Picked({id:?})"),
            Self::Typed(text) => write!(f, "Typed({} characters)", text.chars().count()),
            Self::Back => f.write_str("Back"),
        }
    }
}

pub struct HostDialog {
    pub(super) arming: Arming,
    title: String,
    body: DialogBody,
    asks: HostAsk,
    /// Indexes of the items that fit the filter, best first.
    matches: Vec<usize>,
    /// Filter of the items, or the text.
    field: TextField,
    /// The text, if it is hidden.
    hidden: String,
    selected: usize,
    columns: usize,
    /// Rows of the screen that the dialog may take.
    height: usize,
}

impl HostDialog {
    pub fn new(question: HostQuestion, now: u64) -> Self {
        let HostQuestion { title, parts, asks, is_unasked } = question;
        let items = if let HostAsk::Pick(items) = &asks { items.len() } else { 0 };
        Self {
            arming: if is_unasked { Arming::new(now) } else { Arming::at_once() },
            title,
            body: DialogBody::new(parts),
            asks,
            matches: (0..items).collect(),
            field: TextField::default(),
            hidden: String::new(),
            selected: 0,
            columns: 80,
            height: usize::MAX,
        }
    }

    /// Whether a text is typed that must not be shown.
    pub fn is_hidden(&self) -> bool {
        self.asks == HostAsk::Text { hidden: true }
    }

    pub(super) fn layout(&mut self, columns: usize, rows: usize, theme: &Theme) {
        self.columns = columns.max(1);
        self.height = rows;
        self.body.layout(self.columns, theme);
    }

    fn items(&self) -> &[HostItem] {
        match &self.asks {
            HostAsk::Pick(items) => items,
            HostAsk::Text { .. } | HostAsk::Nothing => &[],
        }
    }

    /// Whether each item has a key.
    fn is_numbered(&self) -> bool {
        self.items().len() <= NUMBERED && self.field.is_empty()
    }

    fn refresh(&mut self) {
        self.selected = 0;
        let query = self.field.text().trim().to_owned();
        if query.is_empty() {
            self.matches = (0..self.items().len()).collect();
            return;
        }
        let mut matcher = Matcher::new(&query, Texts::Words);
        let mut scored: Vec<(bool, u32, usize)> = Vec::new();
        for (at, item) in self.items().iter().enumerate() {
            match matcher.score(&item.label) {
                Some(score) => scored.push((false, score, at)),
                None => {
                    let described = matcher.score(&format!("{} {}", item.label, item.detail));
                    scored.extend(described.map(|score| (true, score, at)));
                }
            }
        }
        // Matches of the name come before matches of the description.
        scored.sort_by_key(|(described, score, at)| (*described, std::cmp::Reverse(*score), *at));
        self.matches = scored.into_iter().map(|(_, _, at)| at).collect();
    }

    fn pick(&self, at: usize) -> DialogEnd {
        match self.matches.get(at).and_then(|index| self.items().get(*index)) {
            Some(item) => answered(HostAnswer::Picked(item.id.clone())),
            None => DialogEnd::Open,
        }
    }

    pub(super) fn key(&mut self, key: Key, keymap: &Keymap) -> DialogEnd {
        if key.ctrl && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return answered(HostAnswer::Back);
        }
        match self.asks {
            HostAsk::Pick(_) => self.pick_key(key, keymap),
            HostAsk::Text { hidden } => match key.code {
                KeyCode::Esc => answered(HostAnswer::Back),
                KeyCode::Enter => self.typed(),
                _ if hidden => self.hidden_key(key),
                _ => {
                    self.field.key(key, keymap);
                    DialogEnd::Open
                }
            },
            HostAsk::Nothing if key.code == KeyCode::Esc => answered(HostAnswer::Back),
            HostAsk::Nothing => DialogEnd::Open,
        }
    }

    fn pick_key(&mut self, key: Key, keymap: &Keymap) -> DialogEnd {
        let last = self.matches.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc if !self.field.is_empty() => {
                self.field.clear();
                self.refresh();
            }
            KeyCode::Esc => return answered(HostAnswer::Back),
            KeyCode::Enter => return self.pick(self.selected),
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(LEAST_ITEMS),
            KeyCode::PageDown => self.selected = (self.selected + LEAST_ITEMS).min(last),
            KeyCode::Char(digit @ '1'..='9') if self.is_numbered() && !key.ctrl && !key.alt => {
                return self.pick(digit as usize - '1' as usize);
            }
            _ => {
                let before = self.field.text().to_owned();
                self.field.key(key, keymap);
                if self.field.text() != before {
                    self.refresh();
                }
            }
        }
        DialogEnd::Open
    }

    /// Keys in a hidden field: it can be extended and shortened at its end, and cleared.
    fn hidden_key(&mut self, key: Key) -> DialogEnd {
        match key.code {
            KeyCode::Backspace => {
                self.hidden.pop();
            }
            KeyCode::Char('u' | 'w') if key.ctrl => self.hidden.clear(),
            KeyCode::Char(char) if !key.ctrl && !key.alt => self.paste(char.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        DialogEnd::Open
    }

    fn typed(&mut self) -> DialogEnd {
        let text = if self.is_hidden() { self.hidden.trim() } else { self.field.text().trim() };
        if text.is_empty() { DialogEnd::Open } else { answered(HostAnswer::Typed(text.to_owned())) }
    }

    pub(super) fn paste(&mut self, text: &str) {
        match self.asks {
            HostAsk::Text { hidden: true } => {
                let room = HIDDEN_LIMIT.saturating_sub(self.hidden.len());
                let text = &text[..text.floor_char_boundary(room)];
                self.hidden.extend(text.chars().filter(|char| !char.is_control()));
            }
            HostAsk::Text { hidden: false } => self.field.insert(text),
            HostAsk::Pick(_) => {
                self.field.insert(text);
                self.refresh();
            }
            HostAsk::Nothing => {}
        }
    }

    /// Takes a line of a terminal without keys: a number or a name picks, a text is a text, an empty line goes back.
    pub fn line(&mut self, line: &str) -> DialogEnd {
        let line = line.trim();
        if line.is_empty() {
            return answered(HostAnswer::Back);
        }
        match self.asks {
            HostAsk::Nothing => DialogEnd::Open,
            HostAsk::Text { .. } => answered(HostAnswer::Typed(line.to_owned())),
            HostAsk::Pick(_) => {
                let number = line.parse::<usize>().ok().filter(|number| *number > 0);
                if let Some(number) = number.filter(|number| *number <= self.matches.len()) {
                    return self.pick(number - 1);
                }
                let named = |item: &HostItem| item.id == line || item.label.eq_ignore_ascii_case(line);
                if let Some(item) = self.items().iter().find(|item| named(item)) {
                    return answered(HostAnswer::Picked(item.id.clone()));
                }
                self.field = TextField::new(line);
                self.refresh();
                if self.matches.is_empty() {
                    self.field.clear();
                    self.refresh();
                }
                DialogEnd::Open
            }
        }
    }

    pub(super) fn view(&self, now: u64, theme: &Theme) -> DialogView {
        let mut rows =
            vec![Row::styled(gate::visible(&self.title), theme.accent.bold()).clipped(self.columns)];
        let is_list = matches!(self.asks, HostAsk::Pick(_));
        let has_field = !is_list && self.asks != HostAsk::Nothing || is_list && !self.field.is_empty();
        let room = self.height.saturating_sub(FRAME + usize::from(has_field));
        let list = if is_list { self.matches.len().max(1) } else { 0 };
        let body = self.body.rows().len().min(room.saturating_sub(list.min(LEAST_ITEMS)));
        rows.extend_from_slice(&self.body.rows()[..body]);
        let shown = list.min(room - body).min(MOST_ITEMS);
        if is_list {
            rows.extend(self.list(shown, theme));
        }
        let mut cursor = None;
        if has_field {
            let view = match &self.asks {
                HostAsk::Text { hidden: true } => {
                    TextField::new(&"•".repeat(self.hidden.chars().count())).view(self.room(), Style::PLAIN)
                }
                _ => self.field.view(self.room(), Style::PLAIN),
            };
            let FieldView { row, cursor: column } = view;
            cursor = Some((rows.len(), column + 4));
            rows.push(row.after(Span::new("  ❯ ", theme.accent)));
        }
        rows.push(Row::styled(self.hint(now, shown), theme.dim).clipped(self.columns));
        DialogView { rows, cursor }
    }

    /// Columns of the field.
    fn room(&self) -> usize {
        self.columns.saturating_sub(4)
    }

    fn list(&self, shown: usize, theme: &Theme) -> Vec<Row> {
        if self.matches.is_empty() {
            return vec![Row::styled("  nothing fits", theme.dim).clipped(self.columns)];
        }
        let top = (self.selected + 1).saturating_sub(shown);
        let window = self.matches.iter().enumerate().skip(top).take(shown);
        let described = self.items().iter().filter(|item| !item.detail.is_empty());
        let widths = described.map(|item| gate::visible(&item.label).width());
        let number = if self.is_numbered() { "1. ".len() } else { 0 };
        let column = widths.filter(|width| *width <= self.columns / 2).max().unwrap_or(0) + number;
        let row = |(at, index): (usize, &usize)| {
            let is_selected = at == self.selected;
            let style = if is_selected { theme.selection } else { Style::PLAIN };
            let number = self.is_numbered().then_some(at + 1);
            let mut row = self.item(number, *index, column, style, theme);
            row = row.after(Span::new(if is_selected { "❯ " } else { "  " }, theme.accent));
            row.clipped(self.columns)
        };
        window.map(row).collect()
    }

    /// One item, with its description from a column on.
    fn item(&self, number: Option<usize>, index: usize, column: usize, style: Style, theme: &Theme) -> Row {
        let Some(item) = self.items().get(index) else { return Row::default() };
        let number = number.map(|number| format!("{number}. ")).unwrap_or_default();
        let mut row = Row::styled(format!("{number}{}", gate::visible(&item.label)), style);
        if !item.detail.is_empty() {
            row.push(Span::plain(" ".repeat(column.saturating_sub(row.width()))));
            row.push(Span::new(format!("  {}", gate::visible(&item.detail)), theme.dim));
        }
        row
    }

    fn hint(&self, now: u64, shown: usize) -> String {
        let mut arming = self.arming;
        if !arming.is_armed(now) {
            return "…".to_owned();
        }
        match self.asks {
            HostAsk::Nothing => "esc stops".to_owned(),
            HostAsk::Text { .. } => "enter sends; esc goes back".to_owned(),
            HostAsk::Pick(_) if self.is_numbered() => "a number or enter picks; esc goes back".to_owned(),
            HostAsk::Pick(_) => {
                let more = self.matches.len().saturating_sub(shown);
                let more = if more > 0 { format!(" · {more} more") } else { String::new() };
                format!("enter picks · esc back · type to search{more}")
            }
        }
    }

    /// Rows where nothing can be redrawn: all items with their numbers.
    pub fn plain(&self, theme: &Theme) -> Vec<Row> {
        let mut rows = vec![Row::styled(gate::visible(&self.title), theme.accent)];
        rows.extend(self.body.rows().iter().cloned().map(super::body::apart));
        for (at, index) in self.matches.iter().enumerate().take(PRINTED) {
            rows.push(self.item(Some(at + 1), *index, 0, Style::PLAIN, theme));
        }
        let more = self.matches.len().saturating_sub(PRINTED);
        if more > 0 {
            rows.push(Row::styled(format!("… {more} more: a part of a name finds them"), theme.dim));
        }
        let hint = match self.asks {
            HostAsk::Nothing => "an empty line stops it",
            HostAsk::Text { hidden: true } => "what you type is not shown; an empty line goes back",
            HostAsk::Text { hidden: false } => "an empty line goes back",
            HostAsk::Pick(_) => "a number or a name picks; an empty line goes back",
        };
        rows.push(Row::styled(hint, theme.dim));
        rows
    }
}

fn answered(answer: HostAnswer) -> DialogEnd {
    DialogEnd::Answered(DialogReply::Host(answer))
}
