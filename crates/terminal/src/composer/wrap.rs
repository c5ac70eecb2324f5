//! Breaking of the composer's text into rows. Knows widths only, so that rows can be counted without being laid out.

/// Distance of tab stops.
const TAB: usize = 4;

/// Widths of the parts of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Widths {
    /// Columns of the prompt mark and of the indentation below it.
    pub(super) gutter: usize,
    pub(super) text: usize,
    /// Whether a column is left free at the end, for the cursor or for the blank at which a row is broken.
    spare: bool,
}

impl Widths {
    /// Columns below which there is no gutter.
    const GUTTER_FROM: usize = 6;

    pub(super) fn of(columns: usize) -> Self {
        let gutter = if columns >= Self::GUTTER_FROM { 2 } else { 0 };
        let left = columns.saturating_sub(gutter).max(1);
        let spare = left >= 2;
        Self { gutter, text: left - usize::from(spare), spare }
    }

    /// A single row without end.
    pub(super) fn unbounded() -> Self {
        Self { gutter: 0, text: usize::MAX, spare: false }
    }
}

/// Kind of a cell for the wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Blank,
    Tab,
}

impl Shape {
    pub(super) fn of(shown: &str) -> Self {
        match shown {
            " " => Self::Blank,
            "\t" => Self::Tab,
            _ => Self::Text,
        }
    }
}

/// Place that a cell got.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) width: usize,
    /// Whether the cell is wider than a row.
    pub(super) is_too_wide: bool,
    /// Cells at which new rows start, because this one did not fit: a word that moved down, and what is wider than a row.
    pub(super) breaks: [Option<usize>; 2],
}

/// Cells after the last blank of a row, which move to the next row when it is full.
#[derive(Debug)]
struct Word {
    first: Option<usize>,
    column: usize,
}

/// State of the wrapping: the row that is being filled. The caller names cells by numbers of its own.
#[derive(Debug)]
pub(super) struct Wrap {
    widths: Widths,
    column: usize,
    pub(super) is_empty: bool,
    word: Option<Word>,
}

impl Wrap {
    pub(super) fn new(widths: Widths) -> Self {
        Self { widths, column: 0, is_empty: true, word: None }
    }

    pub(super) fn push(&mut self, cell: usize, width: usize, shape: Shape) -> Placed {
        let room = self.widths.text;
        let is_blank = shape != Shape::Text;
        let mut placed = Placed { width, is_too_wide: false, breaks: [None; 2] };
        if is_blank && self.column == room && self.widths.spare {
            placed.width = 1;
        } else {
            let mut breaks = placed.breaks.iter_mut();
            loop {
                if shape == Shape::Tab {
                    placed.width = (TAB - self.column % TAB).min(room.saturating_sub(self.column)).max(1);
                }
                if self.column + placed.width <= room {
                    break;
                }
                if self.is_empty {
                    placed.is_too_wide = true;
                    placed.width = 1;
                    break;
                }
                let word = self.word.take().filter(|_| !is_blank);
                let (at, column) = match word {
                    Some(Word { first: Some(first), column }) => (first, self.column - column),
                    Some(Word { first: None, .. }) | None => (cell, 0),
                };
                if let Some(slot) = breaks.next() {
                    *slot = Some(at);
                }
                self.column = column;
                self.is_empty = column == 0 && at == cell;
            }
        }
        self.column += placed.width;
        self.is_empty = false;
        if is_blank {
            self.word = Some(Word { first: None, column: self.column });
        } else if let Some(word) = &mut self.word {
            word.first.get_or_insert(cell);
        }
        placed
    }

    /// Adds a cell that takes no room.
    pub(super) fn push_hidden(&mut self) {
        self.is_empty = false;
    }

    pub(super) fn end_row(&mut self) {
        self.column = 0;
        self.is_empty = true;
        self.word = None;
    }
}
