//! Pager: a long text that is scrolled and searched.

use super::OverlayEnd;
use super::comments::Comments;
use crate::composer::{FieldView, TextField};
use crate::key::{Key, KeyCode};
use crate::keymap::Keymap;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;
use crate::wrap::wrap;

/// Rows of the screen that the pager needs itself: its title and its hint.
const FRAME: usize = 2;
/// Indent of a second column that is below the first.
const NARROW_INDENT: usize = 4;
/// Columns of the mark before lines that can be commented.
const MARK: usize = 2;

pub struct Pager {
    title: String,
    /// Lines as they were made, at the width they were made for.
    lines: Vec<Row>,
    /// Rows of the screen: the index of the line that each is of, and its part of a line that does not fit.
    rows: Vec<(usize, Option<Row>)>,
    columns: usize,
    top: usize,
    search: Search,
    /// Comments, where lines can be commented.
    comments: Option<Comments>,
    /// Letters that the owner of the pager handles, with what they do.
    keys: &'static [(char, &'static str)],
}

#[derive(Default)]
struct Search {
    /// The field while it is open.
    field: Option<TextField>,
    text: String,
}

/// Rows of a line that does not fit. Where the first column of a list is wide, the second goes below it.
fn wrapped(line: &Row, columns: usize) -> Vec<Row> {
    match line.spans.as_slice() {
        [name, _, rest @ ..] if line.hanging * 2 > columns => {
            let indent = [Span::plain(" ".repeat(NARROW_INDENT))];
            let mut rows = wrap(std::slice::from_ref(name), columns, &[], &indent);
            rows.extend(wrap(rest, columns, &indent, &indent));
            rows
        }
        spans => wrap(spans, columns, &[], &[Span::plain(" ".repeat(line.hanging))]),
    }
}

impl Pager {
    /// A pager that begins at the top.
    pub fn new(title: impl Into<String>, lines: Vec<Row>, columns: usize) -> Self {
        let mut pager = Self {
            title: title.into(),
            lines,
            rows: Vec::new(),
            columns: 0,
            top: 0,
            search: Search::default(),
            comments: None,
            keys: &[],
        };
        pager.layout(columns);
        pager
    }

    /// A pager whose lines can be commented, at these places; the lines `files` name a file.
    #[must_use]
    pub fn with_places(mut self, places: Vec<Option<String>>, files: Vec<usize>) -> Self {
        self.comments = Some(Comments::on(places, files));
        let columns = std::mem::take(&mut self.columns);
        self.layout(columns);
        self
    }

    /// A pager that leaves these letters to its owner.
    #[must_use]
    pub fn with_keys(mut self, keys: &'static [(char, &'static str)]) -> Self {
        self.keys = keys;
        self
    }

    /// The same, at its end.
    #[must_use]
    pub fn at_end(mut self, rows: usize) -> Self {
        self.top = self.last_top(rows);
        self
    }

    /// Moves to the last row that has a text, and marks all that have it.
    pub fn seek(&mut self, text: &str, rows: usize) {
        self.search.text = text.to_lowercase();
        if let Some(last) = (0..self.rows.len()).rev().find(|at| self.has(*at)) {
            self.top = last.min(self.last_top(rows));
        }
    }

    /// Puts other lines in place of these. A view at the end stays there.
    pub fn replace(&mut self, lines: Vec<Row>, rows: usize) {
        let follows = self.top >= self.last_top(rows);
        let columns = std::mem::take(&mut self.columns);
        let top = self.top;
        self.lines = lines;
        self.layout(columns);
        self.top = if follows { self.last_top(rows) } else { top.min(self.last_top(rows)) };
    }

    /// Fits the lines to a screen of another size, which had `before` rows. A view at the end stays there.
    pub fn resize(&mut self, columns: usize, before: usize, rows: usize) {
        let end = self.last_top(before);
        let follows = end > 0 && self.top >= end;
        self.layout(columns);
        let end = self.last_top(rows);
        self.top = if follows { end } else { self.top.min(end) };
    }

    fn layout(&mut self, columns: usize) {
        if self.columns == columns {
            return;
        }
        let line = self.rows.get(self.top).map_or(0, |(line, _)| *line);
        self.columns = columns;
        self.rows = Vec::with_capacity(self.lines.len());
        let width = columns.saturating_sub(if self.comments.is_some() { MARK } else { 0 }).max(1);
        for (at, line) in self.lines.iter().enumerate() {
            match line.width() > width {
                true => {
                    let parts = wrapped(line, width);
                    self.rows.extend(parts.into_iter().map(|part| (at, Some(part))));
                }
                false => self.rows.push((at, None)),
            }
        }
        self.top = self.rows.iter().position(|(at, _)| *at >= line).unwrap_or(0);
    }

    /// A row of the screen.
    fn row(&self, at: usize) -> Option<&Row> {
        let (line, part) = self.rows.get(at)?;
        part.as_ref().or_else(|| self.lines.get(*line))
    }

    fn has(&self, at: usize) -> bool {
        self.row(at).is_some_and(|row| row.text().to_lowercase().contains(&self.search.text))
    }

    fn last_top(&self, rows: usize) -> usize {
        self.rows.len().saturating_sub(rows.saturating_sub(FRAME))
    }

    pub(super) fn key(&mut self, key: Key, rows: usize, keymap: &Keymap) -> OverlayEnd {
        if let Some(field) = &mut self.search.field {
            match key.code {
                KeyCode::Esc => self.search = Search::default(),
                KeyCode::Enter => {
                    self.search.text = field.text().to_lowercase();
                    self.search.field = None;
                    self.find(rows, true);
                }
                _ => {
                    field.key(key, keymap);
                }
            }
            return OverlayEnd::Open;
        }
        if let Some(end) = self.comment_key(key, rows, keymap) {
            return end;
        }
        // Comments are about the lines of this page.
        let is_commented = self.comments.as_ref().is_some_and(|comments| comments.message().is_some());
        if let KeyCode::Char(letter) = key.code
            && !key.ctrl
            && !is_commented
            && self.keys.iter().any(|(known, _)| *known == letter)
        {
            return OverlayEnd::Keyed(letter);
        }
        let page = rows.saturating_sub(FRAME + 1).max(1);
        let last = self.last_top(rows);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return OverlayEnd::Closed,
            KeyCode::Char('c' | 'd' | 'o' | 'e' | 't') if key.ctrl => return OverlayEnd::Closed,
            KeyCode::Char('f') if key.ctrl => self.search.field = Some(TextField::default()),
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter => self.top = (self.top + 1).min(last),
            KeyCode::PageUp | KeyCode::Char('b') => self.top = self.top.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => self.top = (self.top + page).min(last),
            KeyCode::Home | KeyCode::Char('g') => self.top = 0,
            KeyCode::End | KeyCode::Char('G') => self.top = last,
            KeyCode::Char('/') => self.search.field = Some(TextField::default()),
            KeyCode::Char('n') => self.find(rows, true),
            KeyCode::Char('N') => self.find(rows, false),
            _ => {}
        }
        OverlayEnd::Open
    }

    pub(super) fn paste(&mut self, text: &str) {
        let comment = self.comments.as_mut().and_then(|comments| comments.field.as_mut());
        if let Some(field) = self.search.field.as_mut().or(comment) {
            field.insert(text.trim());
        }
    }

    /// Handles a key for the comments. `None` if it is one of the pager.
    fn comment_key(&mut self, key: Key, rows: usize, keymap: &Keymap) -> Option<OverlayEnd> {
        let comments = self.comments.as_mut()?;
        if let Some(field) = &mut comments.field {
            match key.code {
                KeyCode::Esc => comments.field = None,
                KeyCode::Enter => comments.finish(),
                _ => {
                    field.key(key, keymap);
                }
            }
            return Some(OverlayEnd::Open);
        }
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => comments.step(false),
            KeyCode::Down | KeyCode::Char('j') => comments.step(true),
            KeyCode::Left | KeyCode::Char('h') => comments.step_file(false),
            KeyCode::Right | KeyCode::Char('l') => comments.step_file(true),
            KeyCode::Char('c') if !key.ctrl => comments.begin(),
            KeyCode::Enter => comments.begin(),
            KeyCode::Esc | KeyCode::Char('q' | 's') => {
                return Some(comments.message().map_or(OverlayEnd::Closed, OverlayEnd::Commented));
            }
            _ => return None,
        }
        let (line, file) = (comments.line, comments.file_line());
        let row_of = |line: usize| self.rows.iter().position(|(of, _)| *of == line);
        if let Some(at) = row_of(line) {
            let height = rows.saturating_sub(FRAME).max(1);
            // The name of a file is on the screen with its first lines.
            let first = file.and_then(row_of).filter(|file| at - file < height / 2).unwrap_or(at);
            self.top = self.top.clamp((at + 1).saturating_sub(height), first);
        }
        Some(OverlayEnd::Open)
    }

    /// Mark before a row of a page that can be commented.
    fn mark(&self, line: usize, theme: &Theme) -> Option<Span> {
        let comments = self.comments.as_ref()?;
        let mark = match (comments.line == line, comments.comment(line).is_some()) {
            (true, _) => "❯ ",
            (false, true) => "● ",
            (false, false) => "  ",
        };
        Some(Span::new(mark, theme.accent))
    }

    /// Moves to the next row that has the text, around the end.
    fn find(&mut self, rows: usize, forward: bool) {
        if self.search.text.is_empty() || self.rows.is_empty() {
            return;
        }
        let count = self.rows.len();
        let steps = 1..=count;
        let at = |step: usize| {
            if forward { (self.top + step) % count } else { (self.top + count - step % count) % count }
        };
        let found = steps.map(at).find(|at| self.has(*at));
        if let Some(found) = found {
            self.top = found.min(self.last_top(rows));
        }
    }

    pub(super) fn view(
        &self,
        columns: usize,
        rows: usize,
        theme: &Theme,
    ) -> (Vec<Row>, Option<(usize, usize)>) {
        let height = rows.saturating_sub(FRAME);
        let end = (self.top + height).min(self.rows.len());
        let title = crate::gate::visible(&self.title).into_owned();
        let mut screen = vec![Row::styled(title, theme.accent.bold()).clipped(columns)];
        for at in self.top.min(end)..end {
            let (Some((line, _)), Some(row)) = (self.rows.get(at), self.row(at)) else { continue };
            let hit = !self.search.text.is_empty() && self.has(at);
            let row = if hit { marked(row.clone(), columns, theme) } else { row.clone() };
            let row = match self.mark(*line, theme) {
                Some(mark) => row.after(mark),
                None => row,
            };
            screen.push(row.clipped(columns));
        }
        screen.resize_with(height + 1, Row::default);
        if let Some(field) = &self.search.field {
            let FieldView { row, cursor: column } = field.view(columns.saturating_sub(1), Style::PLAIN);
            screen.push(row.after(Span::new("/", theme.accent)));
            return (screen, Some((height + 1, column + 1)));
        }
        if let Some(field) = self.comments.as_ref().and_then(|comments| comments.field.as_ref()) {
            let FieldView { row, cursor: column } = field.view(columns.saturating_sub(9), Style::PLAIN);
            screen.push(row.after(Span::new("comment: ", theme.accent)));
            return (screen, Some((height + 1, column + 9)));
        }
        if let Some(comments) = &self.comments {
            let hint = match comments.comment(comments.line) {
                Some(text) => format!("comment: {}", crate::gate::visible(text)),
                None => {
                    let keys: String =
                        self.keys.iter().map(|(key, does)| format!(" · {key} {does}")).collect();
                    format!("↑↓ selects · c comments · ←→ file{keys} · / searches · q closes")
                }
            };
            screen.push(Row::styled(hint, theme.dim).clipped(columns));
            return (screen, None);
        }
        let place = match self.rows.len() {
            0 => "empty".to_owned(),
            all => format!("{}–{end} of {all}", self.top + 1),
        };
        let hint = format!("{place} · ↑↓ pgup pgdn g G move · / searches, n next · q closes");
        screen.push(Row::styled(hint, theme.dim).clipped(columns));
        (screen, None)
    }
}

/// A row that has the text that is searched for. One without room for a mark is shown in another style, so that nothing is cut.
fn marked(mut row: Row, columns: usize, theme: &Theme) -> Row {
    if row.width() < columns {
        return row.after(Span::new("▌", theme.accent));
    }
    row.spans.iter_mut().for_each(|span| span.style = theme.selection);
    row
}
