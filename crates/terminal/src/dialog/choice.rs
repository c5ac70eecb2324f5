//! A question with a few answers, each a key, some with a text.

mod lines;

use serde_json::Value;

use super::body::DialogBody;
use super::{BodyPart, DialogEnd, DialogReply, DialogView};
use crate::arming::Arming;
use crate::composer::{FieldView, TextField};
use crate::format::plural;
use crate::gate;
use crate::key::{Key, KeyCode};
use crate::keymap::Keymap;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;
use crate::wrap::wrap;

/// Rows of a body that are shown at once, at most; more is scrolled.
const BODY_ROWS: usize = 16;
/// Rows of a dialog that are always there: its title and its hint.
const FRAME: usize = 2;
/// Rows of one on a small screen: the selected answer and the hint.
const COMPACT_FRAME: usize = 2;
/// Height from which one on a small screen has its title: what is asked must not be taken from what is asked about.
const TITLED: usize = 6;
/// Fewest rows of a longer body beside all answers; with less room only the selected answer is shown.
const FEW_ROWS: usize = 3;
/// Height from which an empty row separates the body from the answers.
const SPACIOUS: usize = 18;
/// Shown on a small screen if there are other answers.
const MORE_CHOICES: &str = " (↑↓)";

/// Whether an answer comes with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextNeed {
    None,
    Optional,
    Required,
}

/// Makes a reply from the text that goes with it.
pub type MakeReply = Box<dyn Fn(Option<&str>) -> DialogReply + Send>;

/// One answer.
pub struct DialogChoice {
    pub label: String,
    pub text: TextNeed,
    /// Makes the reply, with the text.
    pub reply: MakeReply,
}

impl DialogChoice {
    pub fn new(label: impl Into<String>, reply: DialogReply) -> Self {
        Self { label: label.into(), text: TextNeed::None, reply: Box::new(move |_| reply.clone()) }
    }

    pub fn with_text(
        label: impl Into<String>,
        text: TextNeed,
        reply: impl Fn(Option<&str>) -> DialogReply + Send + 'static,
    ) -> Self {
        Self { label: label.into(), text, reply: Box::new(reply) }
    }
}

pub struct ChoiceDialog {
    pub request_id: Option<String>,
    pub(super) arming: Arming,
    title: String,
    body: DialogBody,
    choices: Vec<DialogChoice>,
    /// Reply to Esc.
    cancel: DialogReply,
    selected: usize,
    field: Option<TextField>,
    scroll: usize,
    /// Rows of the body that have been on the screen, counted from its beginning.
    seen: usize,
    /// Labels of the choices with their numbers, wrapped.
    labels: Vec<Vec<Row>>,
    columns: usize,
    /// Rows of the screen that the dialog may take.
    height: usize,
}

/// Shape of a dialog on a screen of a height.
struct Shape {
    /// Whether only the selected choice is shown, and the title only if there is room.
    compact: bool,
    /// Rows of the body.
    body: usize,
    /// Whether an empty row separates the body from the answers.
    is_spacious: bool,
}

impl ChoiceDialog {
    pub fn new(
        request_id: Option<String>,
        title: impl Into<String>,
        parts: Vec<BodyPart>,
        choices: Vec<DialogChoice>,
        cancel: DialogReply,
        now: u64,
    ) -> Self {
        Self {
            request_id,
            arming: Arming::new(now),
            title: title.into(),
            body: DialogBody::new(parts),
            choices,
            cancel,
            selected: 0,
            field: None,
            scroll: 0,
            seen: 0,
            labels: Vec::new(),
            columns: 80,
            height: usize::MAX,
        }
    }

    /// Starts in the text of the first answer: the question has no others.
    #[must_use]
    pub fn in_text(mut self) -> Self {
        self.field = Some(TextField::default());
        self
    }

    #[must_use]
    pub fn recommending(mut self, choice: usize) -> Self {
        self.selected = choice.min(self.choices.len().saturating_sub(1));
        self
    }

    pub(super) fn layout(&mut self, columns: usize, rows: usize, theme: &Theme) {
        let was_seen = self.seen > 0 && self.is_seen();
        let is_wrapped_anew = self.columns != columns.max(1) || self.labels.is_empty();
        self.columns = columns.max(1);
        self.height = rows;
        self.body.layout(self.columns, theme);
        self.labels =
            self.choices.iter().enumerate().map(|(at, choice)| label(at, choice, self.columns)).collect();
        if is_wrapped_anew {
            // Another width makes other rows.
            self.seen = if was_seen { self.body.rows().len() } else { 0 };
            self.scroll = if was_seen { self.scroll } else { 0 };
        }
        self.scroll = self.scroll.min(self.last_scroll());
        self.see();
    }

    fn shape(&self) -> Shape {
        let field = usize::from(self.field.is_some());
        let choices: usize = self.labels.iter().map(Vec::len).sum();
        let all = self.body.rows().len();
        let is_spacious = self.height >= SPACIOUS && all > 0;
        let room = self.height.saturating_sub(FRAME + choices + field + usize::from(is_spacious));
        if all <= room.min(BODY_ROWS) {
            return Shape { compact: false, body: all, is_spacious };
        }
        // Two rows show how much is above and below.
        match room.checked_sub(2).filter(|left| *left >= FEW_ROWS) {
            Some(left) => Shape { compact: false, body: left.min(BODY_ROWS), is_spacious },
            None => {
                let title = usize::from(self.height >= TITLED + field);
                let left = self.height.saturating_sub(COMPACT_FRAME + title + field);
                Shape { compact: true, body: left.clamp(1, BODY_ROWS).min(all), is_spacious: false }
            }
        }
    }

    fn last_scroll(&self) -> usize {
        self.body.rows().len().saturating_sub(self.shape().body)
    }

    fn see(&mut self) {
        // On a smaller screen the body gives way to the answers.
        if self.height <= COMPACT_FRAME {
            return;
        }
        let end = (self.scroll + self.shape().body).min(self.body.rows().len());
        // Rows that were skipped have not been seen.
        if self.scroll <= self.seen {
            self.seen = self.seen.max(end);
        }
    }

    fn scroll_by(&mut self, rows: isize) {
        self.scroll = self.scroll.saturating_add_signed(rows).min(self.last_scroll());
        self.see();
    }

    fn page(&self) -> isize {
        isize::try_from(self.shape().body).unwrap_or(1)
    }

    /// Whether the whole body was on the screen.
    fn is_seen(&self) -> bool {
        self.seen >= self.body.rows().len()
    }

    pub(super) fn key(&mut self, key: Key, keymap: &Keymap) -> DialogEnd {
        if let Some(field) = &mut self.field {
            return match key.code {
                KeyCode::Char('c') if key.ctrl => DialogEnd::Answered(self.cancel.clone()),
                KeyCode::Enter => self.choose(self.selected),
                KeyCode::Esc if self.choices.len() > 1 || !field.text().is_empty() => {
                    self.field = None;
                    DialogEnd::Open
                }
                KeyCode::Esc => DialogEnd::Answered(self.cancel.clone()),
                _ => {
                    field.key(key, keymap);
                    DialogEnd::Open
                }
            };
        }
        match key.code {
            KeyCode::Esc => return DialogEnd::Answered(self.cancel.clone()),
            KeyCode::Char('c' | 'd') if key.ctrl => return DialogEnd::Answered(self.cancel.clone()),
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => {
                self.selected = (self.selected + 1).min(self.choices.len().saturating_sub(1));
            }
            KeyCode::PageUp => self.scroll_by(-self.page()),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll_by(self.page()),
            KeyCode::Enter => return self.choose(self.selected),
            KeyCode::Char(digit @ '1'..='9') if !key.ctrl && !key.alt => {
                let choice = digit as usize - '1' as usize;
                if choice < self.choices.len() {
                    self.selected = choice;
                    return self.choose(choice);
                }
            }
            _ => {}
        }
        DialogEnd::Open
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(field) = &mut self.field {
            field.insert(text);
        }
    }

    fn choose(&mut self, choice: usize) -> DialogEnd {
        let Some(chosen) = self.choices.get(choice) else { return DialogEnd::Open };
        // A request can always be refused, but approved only after all of it was shown.
        let refuses = choice + 1 == self.choices.len();
        if !refuses && (!self.is_seen() || self.body.is_cut()) {
            self.scroll_by(self.page());
            return DialogEnd::Open;
        }
        if chosen.text == TextNeed::None {
            return DialogEnd::Answered((chosen.reply)(None));
        }
        let Some(field) = &self.field else {
            self.field = Some(TextField::default());
            return DialogEnd::Open;
        };
        let text = field.text().trim();
        match (text.is_empty(), chosen.text) {
            (true, TextNeed::Required) => DialogEnd::Open,
            (true, _) => DialogEnd::Answered((chosen.reply)(None)),
            (false, _) => DialogEnd::Answered((chosen.reply)(Some(text))),
        }
    }

    pub(super) fn view(&self, now: u64, theme: &Theme) -> DialogView {
        let Shape { compact, body, is_spacious } = self.shape();
        let all = self.body.rows();
        let end = (self.scroll + body).min(all.len());
        let mut rows = Vec::new();
        let field = usize::from(self.field.is_some());
        if !compact || body + COMPACT_FRAME + field < self.height {
            rows.push(Row::styled(gate::visible(&self.title), theme.accent.bold()).clipped(self.columns));
            if !compact && self.scroll > 0 {
                let above = format!("  … {} {} above (pgup)", self.scroll, plural("row", self.scroll));
                rows.push(Row::styled(above, theme.dim).clipped(self.columns));
            }
        }
        rows.extend_from_slice(&all[self.scroll.min(end)..end]);
        if !compact && end < all.len() {
            let left = all.len() - end;
            let more = format!("  … {left} more {} (pgdn)", plural("row", left));
            rows.push(Row::styled(more, theme.warning).clipped(self.columns));
        }
        if is_spacious {
            rows.push(Row::default());
        }
        let mut cursor = None;
        for (at, label) in self.labels.iter().enumerate() {
            let is_selected = at == self.selected;
            if compact && !is_selected {
                continue;
            }
            if self.labels.len() > 1 || self.field.is_none() {
                rows.extend(self.choice_rows(label, is_selected, compact, theme));
            }
            if let Some(field) = self.field.as_ref().filter(|_| is_selected) {
                let FieldView { row, cursor: column } =
                    field.view(self.columns.saturating_sub(4), Style::PLAIN);
                cursor = Some((rows.len(), column + 4));
                rows.push(row.after(Span::new("  ❯ ", theme.accent)));
            }
        }
        rows.push(Row::styled(self.hint(now), theme.dim).clipped(self.columns));
        DialogView { rows, cursor }
    }

    fn choice_rows(&self, label: &[Row], is_selected: bool, compact: bool, theme: &Theme) -> Vec<Row> {
        let style = if is_selected { theme.selection } else { Style::PLAIN };
        let shown = if compact { &label[..label.len().min(1)] } else { label };
        let rows = shown.iter().enumerate().map(|(at, row)| {
            let mark = if is_selected && at == 0 { "❯ " } else { "  " };
            let mut row = Row::styled(row.text(), style).after(Span::new(mark, theme.accent));
            if compact && self.labels.len() > 1 {
                row = row.clipped(self.columns.saturating_sub(MORE_CHOICES.len()));
                row.push(Span::new(MORE_CHOICES, theme.dim));
            }
            row.clipped(self.columns)
        });
        rows.collect()
    }

    fn hint(&self, now: u64) -> &'static str {
        let mut arming = self.arming;
        if !arming.is_armed(now) {
            "…"
        } else if self.body.is_cut() {
            "too long to show in full; esc refuses"
        } else if self.height <= COMPACT_FRAME {
            "the screen is too small; esc cancels"
        } else if !self.is_seen() {
            "pgdn shows the rest first; esc cancels"
        } else if self.field.is_some() {
            "enter sends; esc goes back"
        } else {
            "a number or enter answers; esc cancels"
        }
    }
}

/// Rows of a label with the number of its key.
fn label(at: usize, choice: &DialogChoice, columns: usize) -> Vec<Row> {
    let number = format!("{}. ", at + 1);
    let indent = [Span::plain(" ".repeat(number.len()))];
    let spans = [Span::plain(gate::visible(&choice.label))];
    wrap(&spans, columns.saturating_sub(2).max(1), &[Span::plain(number)], &indent)
}

/// A request that answers a question of the session.
pub(super) fn answer(method: &'static str, request_id: &str, key: &str, value: Value) -> DialogReply {
    DialogReply::Call { method, params: serde_json::json!({ "requestId": request_id, key: value }) }
}
