//! The overlay: a full screen of rows on the alternate screen, which leaves no trace on the main one.

use super::ScreenCaps;
use super::line::Line;
use super::out::Out;
use crate::row::Row;

/// Alternate screen that is open, and its rows.
#[derive(Debug, Default)]
pub(super) struct OverlayScreen {
    shown: Vec<Line>,
    line: usize,
    column: Option<usize>,
    stale: bool,
    resized: bool,
}

impl OverlayScreen {
    /// An alternate screen that was just entered.
    pub(super) fn open() -> Self {
        Self { stale: true, ..Self::default() }
    }

    /// Notes that the terminal changed its size: the content of the screen is unknown.
    pub(super) fn resize(&mut self) {
        self.stale = true;
        self.resized = true;
    }

    /// Redraws everything the next time.
    pub(super) fn invalidate(&mut self) {
        self.stale = true;
    }

    /// Whether the terminal changed its size since the overlay was opened.
    pub(super) fn resized(&self) -> bool {
        self.resized
    }

    /// Writes the rows that differ, and leaves the cursor at a place in them.
    pub(super) fn draw(
        &mut self,
        caps: &ScreenCaps,
        rows: &[Row],
        cursor: Option<(usize, usize)>,
        (columns, height): (usize, usize),
    ) -> Out {
        let mut out = Out::new(self.line, self.column, columns);
        if std::mem::take(&mut self.stale) {
            out = Out::new(0, None, columns);
            out.move_to_address(0, 0);
            out.erase_below();
            self.shown.clear();
        }
        let new: Vec<Line> =
            rows.iter().take(height).map(|row| Line::new(&row.clipped(columns), caps.color)).collect();
        let empty = Line::new(&Row::default(), caps.color);
        for index in 0..new.len().max(self.shown.len()) {
            let old = self.shown.get(index).unwrap_or(&empty);
            let line = new.get(index).unwrap_or(&empty);
            if old != line {
                out.turn(old, line, |out, column| out.move_to_address(index, column));
            }
        }
        self.shown = new;
        let (line, column) = cursor.unwrap_or_default();
        self.line = line.min(height.saturating_sub(1));
        self.column = Some(column.min(columns.saturating_sub(1)));
        out.move_to_address(self.line, column.min(columns.saturating_sub(1)));
        out
    }
}
