//! Segments of the composer's text: rows are counted in all of it, but laid out around the cursor only.

use std::ops::Range;

use unicode_width::UnicodeWidthStr as _;

use super::layout::visible;
use super::parts::Parts;
use super::text;
use super::wrap::{Shape, Widths, Wrap};

/// Least rows of a segment.
const SEGMENT_ROWS: usize = 16;
/// Cell at which no segment can start: it is within a placeholder.
const WITHIN: usize = usize::MAX;

/// Part of the text that starts and ends with a row.
#[derive(Debug)]
struct Segment {
    start: usize,
    first_row: usize,
}

/// Segments of a text, which has at least one row.
#[derive(Debug)]
pub(super) struct Segments {
    all: Vec<Segment>,
    rows: usize,
    end: usize,
}

/// Part of a text around a place, with the numbers of rows before it and of all rows.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) range: Range<usize>,
    pub(super) above: usize,
    pub(super) total: usize,
}

impl Segments {
    /// Counts the rows of a text. `hidden` bytes at its start take no room.
    pub(super) fn new(text: &str, parts: &Parts, widths: Widths, hidden: usize) -> Self {
        let mut segments = Self { all: vec![Segment { start: 0, first_row: 0 }], rows: 0, end: text.len() };
        let mut start = 0;
        for line in text.split('\n') {
            segments.split(start, segments.rows);
            // Most lines: each byte is a column, and all fit.
            let fits = line.len() <= widths.text && line.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            let last = if fits { segments.rows } else { segments.line(line, start, parts, widths, hidden) };
            segments.rows = last + 1;
            start += line.len() + 1;
        }
        segments
    }

    /// Counts the rows of a line and returns the number of its last one.
    fn line(&mut self, line: &str, start: usize, parts: &Parts, widths: Widths, hidden: usize) -> usize {
        let mut wrap = Wrap::new(widths);
        let mut row = self.rows;
        let mut push = |wrap: &mut Wrap, cell: usize, shown: &str| {
            let width = if shown.len() == 1 { 1 } else { shown.width() };
            for at in wrap.push(cell, width, Shape::of(shown)).breaks.into_iter().flatten() {
                row += 1;
                self.split(at, row);
            }
        };
        for (offset, cluster) in text::clusters(line) {
            let offset = start + offset;
            if offset + cluster.len() <= hidden {
                wrap.push_hidden();
                continue;
            }
            match cluster.chars().next().and_then(|char| parts.label(char)) {
                Some(label) => {
                    for (index, piece) in text::clusters(label) {
                        push(&mut wrap, if index == 0 { offset } else { WITHIN }, &visible(piece));
                    }
                }
                None => push(&mut wrap, offset, &visible(cluster)),
            }
        }
        row
    }

    /// Starts a segment where a row starts, unless the last one is short.
    fn split(&mut self, start: usize, row: usize) {
        let is_long = self.all.last().is_some_and(|last| row >= last.first_row + SEGMENT_ROWS);
        if is_long && start != WITHIN {
            self.all.push(Segment { start, first_row: row });
        }
    }

    /// The segment of a place and those around it that hold at least so many rows on each side, where the text has them.
    pub(super) fn around(&self, place: usize, rows: usize) -> Window {
        let after = self.all.partition_point(|segment| segment.start <= place);
        let row = after.checked_sub(1).and_then(|at| self.all.get(at)).map_or(0, |segment| segment.first_row);
        let first = self.all.partition_point(|segment| segment.first_row <= row.saturating_sub(rows));
        let first = first.checked_sub(1).and_then(|at| self.all.get(at));
        let end_row = self.all.get(after).map_or(self.rows, |segment| segment.first_row).saturating_add(rows);
        let end = self.all.iter().skip(after).find(|segment| segment.first_row >= end_row);
        Window {
            range: first.map_or(0, |segment| segment.start)..end.map_or(self.end, |segment| segment.start),
            above: first.map_or(0, |segment| segment.first_row),
            total: self.rows,
        }
    }
}
