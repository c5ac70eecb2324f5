//! Rows of the composer on the screen.

use super::Composer;
use super::layout::{CellKind, Layout};
use super::wrap::Widths;
use crate::row::{Row, Span, Style};

/// Styles of the composer, which the theme gives.
#[derive(Debug, Clone, Copy, Default)]
pub struct ComposerStyles {
    pub prompt: Style,
    pub shell: Style,
    pub text: Style,
    pub placeholder: Style,
    pub mark: Style,
    /// The arrows beside rows that have hidden ones above or below.
    pub more: Style,
}

/// The composer on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposerView {
    pub rows: Vec<Row>,
    /// Row and column of the cursor.
    pub cursor: (usize, usize),
    pub hidden_above: usize,
    pub hidden_below: usize,
}

impl Composer {
    /// Layout of the text around the cursor, with so many rows on each side.
    pub(super) fn layout_around(&self, columns: usize, rows: usize) -> Layout<'_> {
        let (widths, hidden) = self.widths(columns);
        Layout::around(self.buffer.text(), &self.parts, widths, hidden, self.buffer.cursor(), rows)
    }

    /// Layout of the whole text.
    pub(super) fn layout(&self, columns: usize) -> Layout<'_> {
        let (widths, hidden) = self.widths(columns);
        Layout::new(self.buffer.text(), &self.parts, widths, hidden)
    }

    /// Widths, and the number of bytes at the start that are not shown.
    fn widths(&self, columns: usize) -> (Widths, usize) {
        let widths = Widths::of(columns);
        // In shell mode the mark is the exclamation mark itself.
        (widths, usize::from(self.is_shell() && widths.gutter > 0))
    }

    /// Shows at most `max_rows` rows around the cursor. An arrow in the gutter marks rows that are cut off.
    pub fn view(&self, columns: usize, max_rows: usize, styles: &ComposerStyles) -> ComposerView {
        let widths = Widths::of(columns);
        let max_rows = max_rows.max(1);
        let layout = self.layout_around(columns, max_rows);
        let (row, column) = layout.position(self.buffer.cursor());
        let last_first = layout.rows().saturating_sub(max_rows);
        let first = row.saturating_sub(max_rows / 2).min(last_first);
        let end = layout.rows().min(first + max_rows);
        let mut rows: Vec<Row> = (first..end)
            .map(|row| {
                let mut spans = Vec::new();
                for cell in layout.cells(row) {
                    let style = match cell.kind {
                        CellKind::Text => styles.text,
                        CellKind::Placeholder => styles.placeholder,
                        CellKind::Mark => styles.mark,
                    };
                    append(&mut spans, &cell.shown, style);
                }
                Row::new(spans)
            })
            .collect();
        if widths.gutter > 0 {
            let count = rows.len();
            for (index, row) in rows.iter_mut().enumerate() {
                let span = match index {
                    0 if first > 0 => Span::new("↑ ", styles.more),
                    _ if first + index == 0 && self.is_shell() => Span::new("! ", styles.shell),
                    _ if first + index == 0 => Span::new("❯ ", styles.prompt),
                    _ if index + 1 == count && end < layout.rows() => Span::new("↓ ", styles.more),
                    _ => Span::plain("  "),
                };
                row.spans.insert(0, span);
            }
        }
        let column = (widths.gutter + column).min(columns.saturating_sub(1));
        ComposerView {
            rows,
            cursor: (row - first, column),
            hidden_above: first,
            hidden_below: layout.rows() - end,
        }
    }
}

/// Adds text to the last span, or as a new one where the style changes.
fn append(spans: &mut Vec<Span>, text: &str, style: Style) {
    match spans.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ => spans.push(Span::new(text, style)),
    }
}
