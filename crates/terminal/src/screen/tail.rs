//! The tail: rows at the end of the main screen that are redrawn, and the facts about their position.

use super::ScreenCaps;
use super::line::Line;
use super::out::Out;
use crate::row::Row;

/// Rows wider than this are written with the terminal's own wrapping switched off. A terminal may be narrower than it has told
/// us: a row that it wrapped would take two screen rows, and all later moves would be off by one.
const CERTAIN_COLUMNS: usize = 40;

/// One row of the tail as it was given and as it is on the screen.
#[derive(Debug, Default)]
struct Shown {
    row: Row,
    line: Line,
}

/// Rows of the tail that are on the screen, at least one, and the cursor among them.
#[derive(Debug)]
pub(super) struct Tail {
    shown: Vec<Shown>,
    line: usize,
    column: Option<usize>,
}

impl Default for Tail {
    /// A tail of one empty row, with the cursor at its start.
    fn default() -> Self {
        Self { shown: vec![Shown::default()], line: 0, column: Some(0) }
    }
}

impl Tail {
    /// Output that continues where the cursor is.
    pub(super) fn out(&self, columns: usize) -> Out {
        Out::new(self.line, self.column, columns)
    }

    /// Output that continues where the cursor is after the terminal was resized to `columns`.
    ///
    /// Everything from the tail's first row down is erased and drawn again, so the distance from the cursor up to that row is all that
    /// has to be known. Rows below the cursor do not count. Neither does a change of height: terminals drop rows below the cursor and
    /// move rows above it into or out of the scrollback, which changes no distance.
    ///
    /// A change of width does count where a row from the first to the cursor's is wider than the new screen. A terminal that reflows
    /// (tmux, VTE, kitty, Alacritty, foot, `WezTerm`, iTerm2, Konsole, xterm.js) gives it more screen rows and keeps the cursor at its
    /// character; one that does not (xterm, GNU screen, the Linux console) cuts it. Taking the second for the first would erase rows
    /// above the tail, the opposite leaves a copy of the tail's first rows there. Losing is worse: `reflow` is for terminals that are
    /// known to do it. Views avoid the question: while text streams their rows are under 40 columns, and a hidden cursor is parked
    /// in the first row, where the distance is always nought.
    ///
    /// Rows of the tail that a lower screen has pushed into the scrollback are out of reach for any program. They stay there.
    pub(super) fn out_after_resize(&self, columns: usize, reflow: bool) -> Out {
        let line = if reflow { self.reflowed_line(columns) } else { self.line };
        Out::new(line, None, columns)
    }

    fn reflowed_line(&self, columns: usize) -> usize {
        let above: usize = self.shown[..self.line].iter().map(|shown| shown.line.wrapped_rows(columns)).sum();
        above + self.shown[self.line].line.wrapped_row(self.column.unwrap_or(usize::MAX), columns)
    }

    /// Prints rows above the tail for good, and the tail anew below them.
    ///
    /// Everything is erased first: a committed row may take another number of screen rows than we think, and nothing of the old
    /// tail may remain beside it.
    pub(super) fn rewrite(
        &mut self,
        out: &mut Out,
        caps: &ScreenCaps,
        commit: &[Row],
        rows: &[Row],
        columns: usize,
    ) {
        out.move_to_line(0);
        out.move_to_column(0);
        out.erase_from_row();
        for row in commit {
            out.line(&Line::new(row, caps.color));
            out.next_line();
        }
        out.rebase();
        self.shown = shown(rows, caps, columns);
        let wraps = may_wrap(self.shown.iter().map(|shown| &shown.line));
        if wraps {
            out.raw(b"\x1b[?7l");
        }
        for (index, shown) in self.shown.iter().enumerate() {
            if index > 0 {
                out.next_line();
            }
            out.line(&shown.line);
        }
        if wraps {
            out.raw(b"\x1b[?7h");
        }
    }

    /// Turns the rows on the screen into other ones by writing what differs.
    pub(super) fn update(&mut self, out: &mut Out, caps: &ScreenCaps, rows: &[Row], columns: usize) {
        if self.shown.len() == rows.len() && self.shown.iter().zip(rows).all(|(shown, row)| shown.row == *row)
        {
            return;
        }
        let new = shown(rows, caps, columns);
        let changed =
            |index: usize, shown: &Shown| self.shown.get(index).is_none_or(|old| old.line != shown.line);
        let wraps = may_wrap(
            new.iter()
                .enumerate()
                .filter(|(index, shown)| changed(*index, shown))
                .map(|(_, shown)| &shown.line),
        );
        if wraps {
            out.raw(b"\x1b[?7l");
        }
        for (index, shown) in new.iter().enumerate() {
            match self.shown.get(index) {
                Some(old) if old.line == shown.line => {}
                Some(old) => {
                    out.move_to_line(index);
                    out.turn(&old.line, &shown.line, Out::move_to_column);
                }
                None => {
                    out.move_to_line(index - 1);
                    out.next_line();
                    out.line(&shown.line);
                }
            }
        }
        if new.len() < self.shown.len() {
            out.move_to_line(new.len());
            out.move_to_column(0);
            out.erase_below();
        }
        if wraps {
            out.raw(b"\x1b[?7h");
        }
        self.shown = new;
    }

    /// Leaves the cursor at a row and column of the tail, or in its first row if there is none to be seen.
    pub(super) fn place(&mut self, out: &mut Out, cursor: Option<(usize, usize)>, columns: usize) {
        let (line, column) = cursor.unwrap_or_default();
        self.line = line.min(self.shown.len() - 1);
        let column = column.min(columns.saturating_sub(1));
        self.column = Some(column);
        out.move_to_line(self.line);
        out.move_to_column(column);
    }

    /// Erases the tail and leaves the cursor where its first row began.
    pub(super) fn erase(&mut self, out: &mut Out) {
        out.move_to_line(0);
        out.move_to_column(0);
        out.erase_from_row();
        *self = Self::default();
    }

    /// Leaves the rows where they are and the cursor on a new line below them.
    pub(super) fn abandon(&mut self, out: &mut Out) {
        out.move_to_line(self.shown.len() - 1);
        out.next_line();
        *self = Self::default();
    }
}

/// The rows as lines that fit the screen. A tail without rows is one empty row, since the cursor has to be somewhere.
fn shown(rows: &[Row], caps: &ScreenCaps, columns: usize) -> Vec<Shown> {
    if rows.is_empty() {
        return vec![Shown::default()];
    }
    rows.iter()
        .map(|row| Shown { row: row.clone(), line: Line::new(&row.clipped(columns), caps.color) })
        .collect()
}

fn may_wrap<'a>(mut lines: impl Iterator<Item = &'a Line>) -> bool {
    lines.any(|line| line.width() > CERTAIN_COLUMNS || !line.certain())
}
