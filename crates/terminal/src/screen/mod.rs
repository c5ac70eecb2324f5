//! Screen writer: frames in, bytes for the terminal out.
//!
//! The main screen is append-only. A committed row is printed once, above the tail, and is the terminal's from then on: it scrolls,
//! is copied and reflowed without us. Only the tail below it is drawn again, by relative moves and by what differs, in one write.
//! Nothing here asks the terminal for anything, sets a scroll region, clears the screen or addresses a row of the main screen, so
//! nothing above the first row that we printed can change. Terminals without an alternate screen scroll everything away first.

mod line;
mod out;
mod overlay;
mod sgr;
mod tail;
#[cfg(test)]
mod tests;

use out::Out;
use overlay::OverlayScreen;
pub use sgr::ColorDepth;
use tail::Tail;

use crate::row::Row;

/// Rows that wait for the overlay to close. With more, the main screen is shown for one write to print them.
const HELD_ROWS: usize = 4096;
/// Longest title, in characters.
const TITLE_CHARS: usize = 120;

const SYNC_BEGIN: &[u8] = b"\x1b[?2026h";
const SYNC_END: &[u8] = b"\x1b[?2026l";
const CURSOR_HIDE: &[u8] = b"\x1b[?25l";
const CURSOR_SHOW: &[u8] = b"\x1b[?25h";
const ALTERNATE_ENTER: &[u8] = b"\x1b[?1049h";
const ALTERNATE_LEAVE: &[u8] = b"\x1b[?1049l";

/// Capabilities of the terminal that the writer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenCaps {
    pub color: ColorDepth,
    /// Whether the terminal shows everything between `?2026h` and `?2026l` at once.
    pub sync: bool,
    /// Whether it reflows rows that have become too wide, and keeps the cursor at its character. If in doubt, no.
    pub reflow: bool,
    /// Whether it has a title.
    pub title: bool,
    /// Whether it has an alternate screen. If not, what is on the screen is scrolled away before an overlay is drawn over it.
    pub alternate: bool,
}

/// Everything that is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    /// Rows that are final: printed above the tail, once.
    pub commit: Vec<Row>,
    /// Rows below them, redrawn with each frame.
    pub tail: Vec<Row>,
    /// Row and column of the cursor in the overlay, or in the tail if there is none. `None` hides it.
    pub cursor: Option<(usize, usize)>,
    /// Rows of the alternate screen, from the top, if one is open.
    pub overlay: Option<Vec<Row>>,
    /// Title of the terminal; `None` leaves it.
    pub title: Option<String>,
}

/// Terminal as it was left by the last draw. The cursor is expected at the start of an empty row when it is created.
#[derive(Debug)]
pub struct Screen {
    columns: usize,
    rows: usize,
    caps: ScreenCaps,
    tail: Tail,
    /// Whether the tail has to be rewritten.
    stale: bool,
    /// Whether the terminal has another size than when the tail was written.
    resized: bool,
    overlay: Option<OverlayScreen>,
    /// Committed rows that wait for the overlay to close.
    held: Vec<Row>,
    /// The tail of the last frame with an overlay.
    covered: Vec<Row>,
    visible: bool,
    title: Option<String>,
}

impl Screen {
    pub fn new(columns: usize, rows: usize, caps: ScreenCaps) -> Self {
        Self {
            columns: columns.max(1),
            rows: rows.max(1),
            caps,
            tail: Tail::default(),
            stale: true,
            resized: false,
            overlay: None,
            held: Vec::new(),
            covered: Vec::new(),
            visible: true,
            title: None,
        }
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Highest tail that is shown as a whole. One row of the screen is left to the transcript.
    pub fn tail_rows(&self) -> usize {
        self.rows.saturating_sub(1).max(1)
    }

    /// Whether the alternate screen is shown.
    pub fn has_overlay(&self) -> bool {
        self.overlay.is_some()
    }

    /// Notes the terminal's size. Draws nothing: terminals change their size many times while a window is dragged, and
    /// tmux reflows its rows before it reports the size. Query the size before each draw, and after a change draw once
    /// it has been stable for 120 ms.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        let (columns, rows) = (columns.max(1), rows.max(1));
        if (columns, rows) == (self.columns, self.rows) {
            return;
        }
        (self.columns, self.rows) = (columns, rows);
        match &mut self.overlay {
            Some(overlay) => overlay.resize(),
            None => self.resized = true,
        }
    }

    /// Redraws everything with the next frame, whatever is on the screen.
    pub fn invalidate(&mut self) {
        match &mut self.overlay {
            Some(overlay) => overlay.invalidate(),
            None => self.stale = true,
        }
    }

    /// Bytes that make the terminal show a frame; none if it does already. They go out in one write.
    ///
    /// While an overlay is shown, committed rows are kept and printed when it closes.
    pub fn draw(&mut self, frame: &Frame) -> Vec<u8> {
        let mut bytes = self.title(frame.title.as_deref());
        let (before, out) = match &frame.overlay {
            Some(rows) => {
                self.held.extend_from_slice(&frame.commit);
                self.covered.clone_from(&frame.tail);
                let before = self.open_overlay();
                let size = (self.columns, self.rows);
                let overlay = self.overlay.get_or_insert_with(OverlayScreen::open);
                (before, overlay.draw(&self.caps, rows, frame.cursor, size))
            }
            None if self.overlay.is_some() => {
                let before = self.close_overlay();
                let mut commit = std::mem::take(&mut self.held);
                commit.extend_from_slice(&frame.commit);
                (before, self.draw_main(&commit, &frame.tail, frame.cursor))
            }
            None => (Vec::new(), self.draw_main(&frame.commit, &frame.tail, frame.cursor)),
        };
        bytes.extend(self.at_once(&before, out, frame.cursor.is_some()));
        bytes
    }

    /// Erases the tail and leaves the cursor where it began, for something else to be printed there. The next draw begins at the
    /// start of the row that the cursor is in then.
    pub fn clear_tail(&mut self) -> Vec<u8> {
        if self.overlay.is_some() {
            return Vec::new();
        }
        let mut out = self.out();
        self.tail.erase(&mut out);
        self.stale = true;
        out.into_bytes()
    }

    /// Gives the terminal back: closes an overlay, prints the rows that it held back, and leaves the cursor visible at the start
    /// of an empty row below the tail, or in place of it.
    pub fn leave(&mut self, keep_tail: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.overlay.is_some() {
            bytes.extend(self.close_overlay());
            let commit = std::mem::take(&mut self.held);
            let tail = std::mem::take(&mut self.covered);
            bytes.extend(self.draw_main(&commit, &tail, None).into_bytes());
        }
        let mut out = self.out();
        if keep_tail {
            self.tail.abandon(&mut out);
        } else {
            self.tail.erase(&mut out);
        }
        self.stale = true;
        bytes.extend(out.into_bytes());
        if !std::mem::replace(&mut self.visible, true) {
            bytes.extend_from_slice(CURSOR_SHOW);
        }
        bytes
    }

    /// Gives the terminal to another program for a while (Ctrl+Z, an editor). The tail goes; the next frame brings it back.
    pub fn suspend(&mut self) -> Vec<u8> {
        self.leave(false)
    }

    /// Takes the terminal back after [`Self::suspend`]. The cursor is expected at the start of an empty row.
    pub fn resume(&mut self, columns: usize, rows: usize) {
        (self.columns, self.rows) = (columns.max(1), rows.max(1));
        self.tail = Tail::default();
        self.stale = true;
        self.resized = false;
        self.title = None;
    }

    fn title(&mut self, title: Option<&str>) -> Vec<u8> {
        let Some(title) = title.filter(|title| self.caps.title && self.title.as_deref() != Some(*title))
        else {
            return Vec::new();
        };
        self.title = Some(title.to_owned());
        let text: String = title.chars().filter(|char| !char.is_control()).take(TITLE_CHARS).collect();
        format!("\x1b]2;{text}\x1b\\").into_bytes()
    }

    /// Output that continues at the cursor on the main screen.
    fn out(&self) -> Out {
        if self.resized {
            self.tail.out_after_resize(self.columns, self.caps.reflow)
        } else {
            self.tail.out(self.columns)
        }
    }

    fn draw_main(&mut self, commit: &[Row], rows: &[Row], cursor: Option<(usize, usize)>) -> Out {
        // The end of a tail that is too high is shown: the composer and the status are there.
        let above = rows.len().saturating_sub(self.tail_rows());
        let rows = &rows[above..];
        let cursor = cursor.map(|(row, column)| (row.saturating_sub(above), column));
        let mut out = self.out();
        let stale = std::mem::take(&mut self.stale) | std::mem::take(&mut self.resized);
        if stale || !commit.is_empty() {
            self.tail.rewrite(&mut out, &self.caps, commit, rows, self.columns);
        } else {
            self.tail.update(&mut out, &self.caps, rows, self.columns);
        }
        self.tail.place(&mut out, cursor, self.columns);
        out
    }

    /// Bytes that bring the terminal to the alternate screen, if it is not there, or print the rows that wait if there are many.
    fn open_overlay(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.overlay.is_some() {
            if self.held.len() <= HELD_ROWS {
                return bytes;
            }
            bytes.extend(self.close_overlay());
            let commit = std::mem::take(&mut self.held);
            bytes.extend(self.draw_main(&commit, &[], None).into_bytes());
        }
        // Without a tail the main screen holds only what is final: whatever happens to it behind the overlay, there is nothing
        // that could be doubled.
        let mut out = self.out();
        self.tail.erase(&mut out);
        self.stale = true;
        self.resized = false;
        bytes.extend(out.into_bytes());
        match self.caps.alternate {
            true => bytes.extend_from_slice(ALTERNATE_ENTER),
            false => {
                bytes.extend(format!("\x1b[{}B\r", self.rows).into_bytes());
                bytes.extend(std::iter::repeat_n(b'\n', self.rows));
            }
        }
        self.overlay = Some(OverlayScreen::open());
        bytes
    }

    /// Leaves the alternate screen.
    ///
    /// If the terminal was resized meanwhile, nobody knows where its cursor is restored: some terminals move the saved position with
    /// the text, some keep the address. The next row then begins below the last one of the screen: there may be a gap, but
    /// nothing is overwritten.
    fn close_overlay(&mut self) -> Vec<u8> {
        let mut bytes = match self.caps.alternate {
            true => ALTERNATE_LEAVE.to_vec(),
            // Row by row: GNU screen keeps a screen that is cleared at once in its scrollback.
            false => {
                let rows = (1..=self.rows).map(|row| format!("\x1b[{row}H\x1b[K"));
                rows.chain(["\x1b[H".to_owned()]).collect::<String>().into_bytes()
            }
        };
        if self.overlay.take().is_some_and(|overlay| overlay.resized()) && self.caps.alternate {
            bytes.extend(format!("\x1b[{}B\r\n", self.rows).into_bytes());
        }
        self.tail = Tail::default();
        self.stale = true;
        self.resized = false;
        bytes
    }

    /// The bytes of a draw between those that keep a half-drawn state from being seen.
    fn at_once(&mut self, before: &[u8], out: Out, visible: bool) -> Vec<u8> {
        let was = std::mem::replace(&mut self.visible, visible);
        let scattered = out.scattered() || !before.is_empty();
        let sync = scattered && self.caps.sync;
        let hide = was && (!visible || (scattered && !self.caps.sync));
        let show = visible && (!was || hide);
        let body = out.into_bytes();
        let mut bytes = Vec::with_capacity(before.len() + body.len() + 32);
        for (when, part) in [
            (sync, SYNC_BEGIN),
            (hide, CURSOR_HIDE),
            (true, before),
            (true, &body),
            (show, CURSOR_SHOW),
            (sync, SYNC_END),
        ] {
            if when {
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }
}
