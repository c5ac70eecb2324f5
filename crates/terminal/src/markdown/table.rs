//! Tables: their source lines and their layout with box characters.
//!
//! Columns shrink to the width and their cells wrap. A table that has too many columns for the width becomes records, one line
//! `header: value` for each cell.

use crate::row::{Row, Span, Style};
use crate::theme::Theme;
use crate::wrap::Text;

use super::inline::inline;

/// Narrowest column that cells are wrapped to; narrower ones make the table a list of records.
const NARROWEST: usize = 8;

/// Most columns of a table; a line with more is text.
const MOST_COLUMNS: usize = 64;

/// Most rows of one table. A longer one is laid out in parts, so that what waits for its end is bounded.
pub(super) const MOST_ROWS: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Center,
    Right,
}

/// Cells of a line. A backslash keeps a `|` in its cell.
pub(super) fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in line.chars() {
        let Some(cell) = cells.last_mut() else { break };
        match c {
            '|' if escaped => {
                cell.pop();
                cell.push('|');
            }
            '|' => cells.push(String::new()),
            c => cell.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    if cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Alignments of the line below the header of a table.
pub(super) fn delimiter(line: &str) -> Option<Vec<Align>> {
    if !line.contains('-')
        || !line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
        || !line.contains(['|', ':'])
    {
        return None;
    }
    let align = |cell: String| {
        let dashes = cell.trim_matches(':');
        let valid = !dashes.is_empty() && dashes.chars().all(|c| c == '-');
        let align = match (cell.starts_with(':'), cell.ends_with(':')) {
            (true, true) => Align::Center,
            (false, true) => Align::Right,
            _ => Align::Left,
        };
        valid.then_some(align)
    };
    cells(line).into_iter().map(align).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    theme: Theme,
    aligns: Vec<Align>,
    header: Vec<Text>,
    rows: Vec<Vec<Text>>,
    /// Whether a part of the table has been split off.
    continued: bool,
}

impl Table {
    /// The table that starts with these two lines, if they are a header and its delimiter.
    pub(super) fn start(header: &str, below: &str, theme: &Theme) -> Option<Self> {
        let aligns = delimiter(below)?;
        let header = cells(header);
        if header.len() != aligns.len() || header.len() > MOST_COLUMNS {
            return None;
        }
        let style = theme.text.with(theme.heading);
        let header = header.iter().map(|cell| inline(cell, style, theme)).collect();
        Some(Self { theme: *theme, aligns, header, rows: Vec::new(), continued: false })
    }

    pub(super) fn push(&mut self, line: &str) {
        let mut cells = cells(line);
        if cells.len() > self.aligns.len() {
            // Cells beyond the header stay visible in the last column.
            let rest = cells.split_off(self.aligns.len() - 1).join(" | ");
            cells.push(rest);
        }
        cells.resize(self.aligns.len(), String::new());
        self.rows.push(cells.iter().map(|cell| inline(cell, self.theme.text, &self.theme)).collect());
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= MOST_ROWS
    }

    /// The table so far; what stays has the same header and no rows.
    pub(super) fn split(&mut self) -> Self {
        let rows = std::mem::take(&mut self.rows);
        let part = Self { rows, ..self.clone() };
        self.continued = true;
        part
    }

    /// Whether all of the table is in the parts that were split off.
    pub(super) fn is_spent(&self) -> bool {
        self.continued && self.rows.is_empty()
    }

    pub(super) fn layout(&self, columns: usize, first: &[Span], next: &[Span]) -> Vec<Row> {
        let indent: usize =
            next.iter().map(|span| unicode_width::UnicodeWidthStr::width(span.text.as_str())).sum();
        let lines = match self.widths(columns.saturating_sub(indent)) {
            Some(widths) => self.boxed(&widths),
            None => return self.records(columns, first, next),
        };
        let indented = |(at, mut row): (usize, Row)| {
            row.spans.splice(0..0, if at == 0 { first } else { next }.iter().cloned());
            row
        };
        lines.into_iter().enumerate().map(indented).collect()
    }

    /// Widths of the columns that fit; none if they would be too narrow.
    fn widths(&self, columns: usize) -> Option<Vec<usize>> {
        let count = self.aligns.len();
        let natural: Vec<usize> = (0..count)
            .map(|column| {
                self.lines().filter_map(|cells| cells.get(column)).map(Text::width).max().unwrap_or(0).max(1)
            })
            .collect();
        let mut left = columns.checked_sub(3 * count + 1)?;
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|column| natural.get(*column));
        let mut widths = vec![0; count];
        for (done, column) in order.into_iter().enumerate() {
            let share = left / (count - done);
            let wanted = *natural.get(column)?;
            if wanted > share && share < NARROWEST {
                return None;
            }
            let width = wanted.min(share);
            *widths.get_mut(column)? = width;
            left -= width;
        }
        Some(widths)
    }

    fn lines(&self) -> impl Iterator<Item = &Vec<Text>> {
        std::iter::once(&self.header).chain(&self.rows)
    }

    fn boxed(&self, widths: &[usize]) -> Vec<Row> {
        let border = self.theme.border;
        let edge = |left: &str, middle: &str, right: &str| {
            let parts: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
            Row::styled(format!("{left}{}{right}", parts.join(middle)), border)
        };
        let wrapped: Vec<Vec<Vec<Row>>> = self
            .lines()
            .map(|cells| cells.iter().zip(widths).map(|(cell, width)| cell.rows(*width, &[], &[])).collect())
            .collect();
        // Rows of several lines could not be told apart without a line between them.
        let tall = wrapped.iter().skip(1).flatten().any(|cell| cell.len() > 1);
        let mut rows = vec![edge("┌", "┬", "┐")];
        for (at, cells) in wrapped.iter().enumerate() {
            if at == 1 || at > 1 && tall {
                rows.push(edge("├", "┼", "┤"));
            }
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            rows.extend((0..height).map(|line| self.boxed_line(cells, line, widths)));
        }
        rows.push(edge("└", "┴", "┘"));
        rows
    }

    fn boxed_line(&self, cells: &[Vec<Row>], line: usize, widths: &[usize]) -> Row {
        let mut row = Row::default();
        for ((cell, width), align) in cells.iter().zip(widths).zip(&self.aligns) {
            let text = cell.get(line).cloned().unwrap_or_default();
            let free = width.saturating_sub(text.width());
            let before = match align {
                Align::Left => 0,
                Align::Center => free / 2,
                Align::Right => free,
            };
            row.push(Span::new("│", self.theme.border));
            row.push(Span::new(" ".repeat(before + 1), Style::PLAIN));
            row.spans.extend(text.spans);
            row.push(Span::new(" ".repeat(free - before + 1), Style::PLAIN));
        }
        row.push(Span::new("│", self.theme.border));
        row
    }

    fn records(&self, columns: usize, first: &[Span], next: &[Span]) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut deeper = next.to_vec();
        deeper.push(Span::plain("  "));
        if self.rows.is_empty() {
            for header in &self.header {
                rows.extend(header.rows(columns, if rows.is_empty() { first } else { next }, &deeper));
            }
        }
        for (at, cells) in self.rows.iter().enumerate() {
            if at > 0 {
                rows.extend(Text::default().rows(columns, next, next));
            }
            for (header, cell) in self.header.iter().zip(cells) {
                let mut line = header.clone();
                line.push(": ", self.theme.text.with(self.theme.heading));
                line.append(cell);
                rows.extend(line.rows(columns, if rows.is_empty() { first } else { next }, &deeper));
            }
        }
        rows
    }
}
