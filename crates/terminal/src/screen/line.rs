//! Rows as cells, so that two of them can be compared column by column.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::sgr::{ColorDepth, Pen};
use crate::row::Row;

/// One character as it is seen: a grapheme cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    start: usize,
    end: usize,
    pub(super) width: usize,
    pub(super) pen: Pen,
    /// Whether every terminal gives the cluster the same width. They disagree about clusters of several code points.
    certain: bool,
}

/// Row that is ready to be written: cells without trailing blanks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    text: String,
    cells: Vec<Cell>,
    width: usize,
    certain: bool,
}

impl Line {
    pub(super) fn new(row: &Row, depth: ColorDepth) -> Self {
        let mut line = Self { certain: true, ..Self::default() };
        for span in &row.spans {
            let pen = Pen::new(span.style, depth);
            for cluster in span.text.graphemes(true) {
                line.push(cluster, pen);
            }
        }
        while let Some(cell) = line.cells.last()
            && &line.text[cell.start..cell.end] == " "
            && cell.pen.hides_blanks()
        {
            line.cells.pop();
        }
        line.width = line.cells.iter().map(|cell| cell.width).sum();
        line.certain = line.cells.iter().all(|cell| cell.certain);
        line
    }

    fn push(&mut self, cluster: &str, pen: Pen) {
        // Spans hold no control characters; one that is there by mistake must not reach the terminal.
        let cluster = if cluster.contains(char::is_control) { "\u{fffd}" } else { cluster };
        let start = self.text.len();
        self.text.push_str(cluster);
        let cell = Cell {
            start,
            end: self.text.len(),
            width: cluster.width(),
            pen,
            certain: cluster.chars().nth(1).is_none() && cluster.width() > 0,
        };
        self.cells.push(cell);
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Whether every terminal gives the line the same width.
    pub(super) fn certain(&self) -> bool {
        self.certain
    }

    /// Cells with their text.
    pub(super) fn cells(&self) -> impl DoubleEndedIterator<Item = (Cell, &str)> + ExactSizeIterator {
        self.cells.iter().map(|cell| (*cell, &self.text[cell.start..cell.end]))
    }

    /// Number of leading cells, and of their columns, that are the same in `other` and have a certain width.
    pub(super) fn common_start(&self, other: &Self) -> (usize, usize) {
        let same = self
            .cells()
            .zip(other.cells())
            .take_while(|(mine, its)| mine.0.certain && mine.0.pen == its.0.pen && mine.1 == its.1);
        same.fold((0, 0), |(cells, columns), (mine, _)| (cells + 1, columns + mine.0.width))
    }

    /// Number of trailing cells that are the same in `other`, beyond the first `start` cells.
    pub(super) fn common_end(&self, other: &Self, start: usize) -> usize {
        let longest = self.cells.len().min(other.cells.len()).saturating_sub(start);
        self.cells()
            .rev()
            .zip(other.cells().rev())
            .take(longest)
            .take_while(|(mine, its)| mine.0.pen == its.0.pen && mine.1 == its.1)
            .count()
    }

    /// Screen row, counted from the line's first, on which a terminal of `columns` that wraps the line has the character at
    /// `column`. A column behind the text counts as its last character.
    pub(super) fn wrapped_row(&self, column: usize, columns: usize) -> usize {
        let columns = columns.max(1);
        let (mut row, mut used, mut passed) = (0, 0, 0);
        for cell in &self.cells {
            if used > 0 && used + cell.width > columns {
                row += 1;
                used = 0;
            }
            used += cell.width;
            passed += cell.width;
            if passed > column {
                break;
            }
        }
        row
    }

    /// Number of screen rows that the line takes in a terminal of `columns` that wraps it.
    pub(super) fn wrapped_rows(&self, columns: usize) -> usize {
        self.wrapped_row(usize::MAX, columns) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Span, Style};

    fn line(text: &str) -> Line {
        Line::new(&Row::plain(text), ColorDepth::Rgb)
    }

    #[test]
    fn trailing_blanks_that_nobody_sees_are_dropped() {
        assert_eq!(line("a b  ").width(), 3);
        let row = Row::new(vec![Span::plain("a "), Span::new("  ", Style::REVERSE), Span::plain(" ")]);
        assert_eq!(Line::new(&row, ColorDepth::Rgb).width(), 4);
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let text: String = line("a\x1b[2J\r\nb\u{9b}").cells().map(|(_, text)| text.to_owned()).collect();
        assert_eq!(text, "a\u{fffd}[2J\u{fffd}b\u{fffd}");
    }

    #[test]
    fn lines_wrap_as_terminals_wrap_them() {
        for (text, columns, rows) in [
            ("", 5, 1),
            ("abcde", 5, 1),
            ("abcdef", 5, 2),
            ("漢字漢", 5, 2),
            ("漢字漢字漢", 5, 3),
            ("漢", 1, 1),
        ] {
            assert_eq!(line(text).wrapped_rows(columns), rows, "{text} in {columns}");
        }
        let text = line("abcdefgh");
        assert_eq!([0, 3, 4, 7, 8, 30].map(|column| text.wrapped_row(column, 4)), [0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn cells_before_and_after_a_change_are_kept() {
        assert_eq!(line("abcd").common_start(&line("abxd")), (2, 2));
        assert_eq!(line("abcd").common_end(&line("abxd"), 2), 1);
        assert_eq!(line("aaa").common_end(&line("aa"), 2), 0);
        // Behind a cluster whose width is uncertain no column is known.
        assert_eq!(line("ae\u{301}b").common_start(&line("ae\u{301}c")), (1, 1));
    }
}
