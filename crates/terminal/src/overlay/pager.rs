//! Pager: a long text that is scrolled and searched.

use super::OverlayEnd;
use crate::composer::{FieldView, TextField};
use crate::key::{Key, KeyCode};
use crate::keymap::Keymap;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;
use crate::wrap::wrap;

/// Rows of the screen that the pager needs itself: its title and its hint.
const FRAME: usize = 2;

pub struct Pager {
    title: String,
    /// Lines as they were made, at the width they were made for.
    lines: Vec<Row>,
    /// Lines wrapped to the screen, with the index of the line that each row is of.
    rows: Vec<(usize, Row)>,
    columns: usize,
    top: usize,
    search: Search,
}

#[derive(Default)]
struct Search {
    /// The field while it is open.
    field: Option<TextField>,
    text: String,
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
        };
        pager.layout(columns);
        pager
    }

    /// The same, at its end.
    #[must_use]
    pub fn at_end(mut self, rows: usize) -> Self {
        self.top = self.last_top(rows);
        self
    }

    pub fn layout(&mut self, columns: usize) {
        if self.columns == columns {
            return;
        }
        let line = self.rows.get(self.top).map_or(0, |(line, _)| *line);
        self.columns = columns;
        let wrapped = self.lines.iter().enumerate().flat_map(|(at, line)| {
            let rows = match line.width() > columns {
                true => wrap(&line.spans, columns.max(1), &[], &[]),
                false => vec![line.clone()],
            };
            rows.into_iter().map(move |row| (at, row))
        });
        self.rows = wrapped.collect();
        self.top = self.rows.iter().position(|(at, _)| *at >= line).unwrap_or(0);
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
        let found =
            steps.map(at).find(|at| self.rows[*at].1.text().to_lowercase().contains(&self.search.text));
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
        for (_, row) in &self.rows[self.top.min(end)..end] {
            let hit = !self.search.text.is_empty() && row.text().to_lowercase().contains(&self.search.text);
            let row = if hit { row.clone().after(Span::new("▌", theme.accent)) } else { row.clone() };
            screen.push(row.clipped(columns));
        }
        screen.resize_with(height + 1, Row::default);
        if let Some(field) = &self.search.field {
            let FieldView { row, cursor: column } = field.view(columns.saturating_sub(1), Style::PLAIN);
            screen.push(row.after(Span::new("/", theme.accent)));
            return (screen, Some((height + 1, column + 1)));
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
