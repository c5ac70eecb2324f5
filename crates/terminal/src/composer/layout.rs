//! Layout of the composer's text in rows of the screen.

use std::borrow::Cow;
use std::ops::Range;

use unicode_width::UnicodeWidthStr as _;

use super::parts::Parts;
use super::segments::Segments;
use super::text;
use super::wrap::{Shape, Widths, Wrap};
use crate::gate;

/// Mark of a cluster that is wider than a row.
const TOO_WIDE: &str = "…";

/// Kind of a cell, which decides its look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellKind {
    Text,
    Placeholder,
    /// Mark of a character that has no shape of its own.
    Mark,
}

/// Cluster of the screen. A placeholder has several, of which only the first is a place for the cursor.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    pub(super) shown: Cow<'a, str>,
    pub(super) kind: CellKind,
    pub(super) width: usize,
    offset: usize,
    next: usize,
    first: bool,
}

#[derive(Debug)]
struct LayoutRow {
    cells: Range<usize>,
    /// Offset of the first place for the cursor that is not before this row.
    start: usize,
}

/// Rows of a text, or of the part of it around the cursor. Numbers of rows are those of the whole text.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    cells: Vec<Cell<'a>>,
    rows: Vec<LayoutRow>,
    /// First cell of the row that is being filled.
    start: usize,
    /// Rows before and after those that are laid out.
    above: usize,
    below: usize,
    /// Length of the text.
    end: usize,
}

impl<'a> Layout<'a> {
    /// Wraps a text, after a blank where there is one. `hidden` bytes at its start take no room.
    pub(super) fn new(text: &'a str, parts: &'a Parts, widths: Widths, hidden: usize) -> Self {
        let mut layout = Self::empty(text);
        layout.fill(text, 0..text.len(), parts, widths, hidden);
        layout
    }

    /// Wraps the part of a text around the cursor, with at least so many rows on each side of it, where there are so many.
    pub(super) fn around(
        text: &'a str,
        parts: &'a Parts,
        widths: Widths,
        hidden: usize,
        cursor: usize,
        rows: usize,
    ) -> Self {
        let window = Segments::new(text, parts, widths, hidden).around(cursor, rows);
        let mut layout = Self { above: window.above, ..Self::empty(text) };
        layout.fill(text, window.range, parts, widths, hidden);
        layout.below = window.total.saturating_sub(layout.above + layout.rows.len());
        layout
    }

    fn empty(text: &str) -> Self {
        Self { cells: Vec::new(), rows: Vec::new(), start: 0, above: 0, below: 0, end: text.len() }
    }

    /// Lays out a range that starts and ends with a row.
    fn fill(&mut self, text: &'a str, range: Range<usize>, parts: &'a Parts, widths: Widths, hidden: usize) {
        let mut wrap = Wrap::new(widths);
        let is_last = range.end == text.len();
        for (offset, cluster) in text::clusters(&text[range.clone()]) {
            let offset = range.start + offset;
            let next = offset + cluster.len();
            if cluster == "\n" || next <= hidden {
                let shown = "".into();
                self.cells.push(Cell { shown, kind: CellKind::Text, width: 0, offset, next, first: true });
                wrap.push_hidden();
                if cluster == "\n" {
                    wrap.end_row();
                    self.break_row(self.cells.len());
                }
                continue;
            }
            match cluster.chars().next().and_then(|char| parts.label(char)) {
                Some(label) => {
                    for (index, piece) in text::clusters(label) {
                        let shown = visible(piece);
                        let (kind, first) = (CellKind::Placeholder, index == 0);
                        self.push(&mut wrap, Cell { width: shown.width(), shown, kind, offset, next, first });
                    }
                }
                None => {
                    let shown = visible(cluster);
                    let kind = if shown == cluster { CellKind::Text } else { CellKind::Mark };
                    self.push(
                        &mut wrap,
                        Cell { width: shown.width(), shown, kind, offset, next, first: true },
                    );
                }
            }
        }
        // Before the end of the text, an empty row is the first of what follows.
        if is_last || !wrap.is_empty {
            self.break_row(self.cells.len());
        }
    }

    fn push(&mut self, wrap: &mut Wrap, mut cell: Cell<'a>) {
        let shape = Shape::of(&cell.shown);
        let placed = wrap.push(self.cells.len(), cell.width, shape);
        for at in placed.breaks.into_iter().flatten() {
            self.break_row(at);
        }
        cell.width = placed.width;
        if placed.is_too_wide {
            cell.shown = TOO_WIDE.into();
        } else if shape == Shape::Tab {
            cell.shown = " ".repeat(placed.width).into();
        }
        self.cells.push(cell);
    }

    fn break_row(&mut self, at: usize) {
        let start = match self.cells.get(self.start) {
            Some(cell) if cell.first => cell.offset,
            Some(cell) => cell.next,
            None => self.end,
        };
        self.rows.push(LayoutRow { cells: self.start..at, start });
        self.start = at;
    }

    /// Number of rows of the whole text.
    pub(super) fn rows(&self) -> usize {
        self.above + self.rows.len() + self.below
    }

    /// Whether the rows that are laid out reach the start or the end of the text.
    pub(super) fn reaches_end(&self, up: bool) -> bool {
        if up { self.above == 0 } else { self.below == 0 }
    }

    fn row(&self, row: usize) -> Option<&LayoutRow> {
        self.rows.get(row.checked_sub(self.above)?)
    }

    pub(super) fn cells(&self, row: usize) -> &[Cell<'a>] {
        self.row(row).map_or(&[], |row| &self.cells[row.cells.clone()])
    }

    /// Row and column of a place for the cursor, without the gutter. The column may be one behind the row.
    pub(super) fn position(&self, cursor: usize) -> (usize, usize) {
        let row = self.above + self.rows.partition_point(|row| row.start <= cursor).saturating_sub(1);
        let before = self.cells(row).iter().take_while(|cell| cell.offset < cursor);
        (row, before.map(|cell| cell.width).sum())
    }

    /// The place for the cursor in the next row above or below that has one, nearest to a column.
    pub(super) fn vertical(&self, cursor: usize, column: usize, up: bool) -> Option<usize> {
        let (mut row, _) = self.position(cursor);
        loop {
            row = if up { row.checked_sub(1)? } else { row + 1 };
            let place = self.place(row, column)?;
            if if up { place < cursor } else { place > cursor } {
                return Some(place);
            }
        }
    }

    fn place(&self, row: usize, wanted: usize) -> Option<usize> {
        let mut place = self.row(row)?.start;
        let mut column = 0;
        for cell in self.cells(row) {
            if cell.first {
                place = cell.offset;
            }
            column += cell.width;
            if column > wanted {
                return Some(place);
            }
        }
        // The end of the text is a place of the last row; the end of a wrapped row is one of the next.
        Some(if row + 1 == self.rows() { self.end } else { place })
    }
}

/// A cluster as it is shown: what a terminal would obey or hide has a visible mark instead. A tab is left to the wrapping.
pub(super) fn visible(cluster: &str) -> Cow<'_, str> {
    if cluster == "\t" { cluster.into() } else { gate::visible(cluster) }
}
