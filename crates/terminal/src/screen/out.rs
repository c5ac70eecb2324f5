//! Bytes for the terminal, with the position and style that its cursor has after them.

use std::io::Write as _;

use super::line::Line;
use super::sgr::Pen;

/// Backspaces are shorter than a sequence up to this many columns.
const BACKSPACES: usize = 3;

/// Output of one draw. Lines are counted from the first one of the tail, or from the top of the alternate screen.
pub(super) struct Out {
    bytes: Vec<u8>,
    line: usize,
    /// Column of the cursor; `None` where terminals disagree, such as behind the last column.
    column: Option<usize>,
    columns: usize,
    pen: Pen,
    origin: usize,
    scattered: bool,
}

impl Out {
    /// Output for a terminal whose cursor is at a position.
    pub(super) fn new(line: usize, column: Option<usize>, columns: usize) -> Self {
        Self { bytes: Vec::new(), line, column, columns, pen: Pen::default(), origin: line, scattered: false }
    }

    /// Whether more than the line of the cursor was written to, so that a half-drawn state could be seen.
    pub(super) fn scattered(&self) -> bool {
        self.scattered
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends a sequence that moves nothing.
    pub(super) fn raw(&mut self, sequence: &[u8]) {
        self.bytes.extend_from_slice(sequence);
    }

    fn touch(&mut self) {
        self.scattered |= self.line != self.origin;
    }

    fn sequence(&mut self, count: usize, last: char) {
        // Writing into a vector cannot fail.
        let _ = match count {
            1 => write!(self.bytes, "\x1b[{last}"),
            _ => write!(self.bytes, "\x1b[{count}{last}"),
        };
    }

    /// Moves to a line of the tail. Downwards it goes by line feeds: a terminal that has become lower drops rows below the cursor
    /// before it tells us, and a line feed makes such a row again where a cursor movement would stop at the last one.
    pub(super) fn move_to_line(&mut self, line: usize) {
        if line < self.line {
            self.sequence(self.line - line, 'A');
        } else if line > self.line {
            self.bytes.push(b'\r');
            self.bytes.resize(self.bytes.len() + line - self.line, b'\n');
            self.column = Some(0);
        }
        self.line = line;
    }

    pub(super) fn move_to_column(&mut self, column: usize) {
        match self.column {
            Some(now) if now == column => {}
            Some(now) if now < column => self.sequence(column - now, 'C'),
            Some(now) if now - column <= BACKSPACES.min(column) => {
                self.bytes.resize(self.bytes.len() + now - column, b'\x08');
            }
            Some(now) if column > 0 && now - column < column => self.sequence(now - column, 'D'),
            Some(_) | None => {
                self.bytes.push(b'\r');
                if column > 0 {
                    self.sequence(column, 'C');
                }
            }
        }
        self.column = Some(column);
    }

    /// Moves to a line and column by absolute address. Only the alternate screen has those.
    pub(super) fn move_to_address(&mut self, line: usize, column: usize) {
        if self.line != line || self.column != Some(column) {
            // Writing into a vector cannot fail.
            let _ = match (line, column) {
                (0, 0) => write!(self.bytes, "\x1b[H"),
                (line, 0) => write!(self.bytes, "\x1b[{}H", line + 1),
                (line, column) => write!(self.bytes, "\x1b[{};{}H", line + 1, column + 1),
            };
        }
        self.line = line;
        self.column = Some(column);
    }

    /// Moves to the start of the next line; the terminal scrolls if there is none.
    pub(super) fn next_line(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
        self.line += 1;
        self.column = Some(0);
        self.scattered = true;
    }

    /// Counts lines from the current one on.
    pub(super) fn rebase(&mut self) {
        self.line = 0;
        self.scattered = true;
    }

    /// Ends the style.
    pub(super) fn reset(&mut self) {
        self.pen.change_to(Pen::default(), &mut self.bytes);
        self.pen = Pen::default();
    }

    pub(super) fn erase_line_end(&mut self) {
        self.reset();
        self.touch();
        self.raw(b"\x1b[K");
    }

    pub(super) fn erase_below(&mut self) {
        self.reset();
        self.touch();
        self.raw(b"\x1b[J");
    }

    /// Erases from the start of the cursor's row on. Not from the first column: tmux takes an erasure from the top left corner for one of
    /// the whole screen, and keeps what was on it in its scrollback.
    pub(super) fn erase_from_row(&mut self) {
        self.reset();
        self.touch();
        self.raw(b" \x1b[J\r\x1b[K");
    }

    /// Writes a whole line from the current column on.
    pub(super) fn line(&mut self, line: &Line) {
        self.cells(line, 0, line.cells().len());
    }

    /// Writes the cells `from..to` of a line.
    fn cells(&mut self, line: &Line, from: usize, to: usize) {
        for (cell, text) in line.cells().take(to).skip(from) {
            self.pen.change_to(cell.pen, &mut self.bytes);
            self.pen = cell.pen;
            self.bytes.extend_from_slice(text.as_bytes());
            self.column = self.column.map(|column| column + cell.width);
        }
        self.reset();
        self.touch();
        // Behind the last column a terminal waits for the next character before it wraps: only a carriage return is safe there.
        if !line.certain() || self.column.is_some_and(|column| column >= self.columns) {
            self.column = None;
        }
    }

    /// Turns the line at the cursor's row from `old` into `new` by writing what differs. `go` moves to a column of it.
    pub(super) fn turn(&mut self, old: &Line, new: &Line, go: impl FnOnce(&mut Self, usize)) {
        let (start, column) = new.common_start(old);
        let sure = old.certain() && new.certain();
        let kept = if sure && old.width() == new.width() { new.common_end(old, start) } else { 0 };
        go(self, column);
        let end = new.cells().len() - kept;
        if end > start {
            self.cells(new, start, end);
        }
        if (old.width() > new.width() || !sure) && new.width() < self.columns {
            self.erase_line_end();
        }
    }
}
