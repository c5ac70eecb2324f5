//! Output that was too large for the model: the log has its two ends, and a file has the whole, which the pager has not.

use super::tool::{HEAD_LINES, TAIL_LINES, bounded};
use crate::ansi::{self, SgrState};
use crate::gate;
use crate::row::{Row, Span};
use crate::theme::Theme;

// The notice of the tools, which recorded conversations fix.
const TOO_LARGE: &str = "Output too large to read at once (";
const SAVED_TO: &str = "). Saved to: ";
const PREVIEW: &str = "Preview (";
const LABEL_END: &str = " chars):\n";
const LEFT_OUT: &str = "\n[... ";

pub(super) struct Spilled<'a> {
    size: &'a str,
    path: &'a str,
    head: &'a str,
    /// Lines between the ends.
    left_out: usize,
    /// End of the output; empty if it is one line.
    tail: &'a str,
}

impl<'a> Spilled<'a> {
    /// Reads the notice in the place of an output; `None` if the output is whole.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let (first, rest) = text.strip_prefix(TOO_LARGE)?.split_once('\n')?;
        let (size, path) = first.split_once(SAVED_TO)?;
        let (_, ends) = rest.split_once(PREVIEW)?.1.split_once(LABEL_END)?;
        // The output may hold a line of the same form: the last one is that of the notice.
        let parts = ends.rsplit_once(LEFT_OUT).and_then(|(head, after)| {
            let (count, after) = after.split_once(' ')?;
            Some((head, count.parse().ok()?, after.split_once(LABEL_END)?.1))
        });
        let (head, left_out, tail) = parts.unwrap_or((ends, 0, ""));
        Some(Self { size, path, head, left_out, tail })
    }

    /// The ends as of any other long output, and where the rest is.
    pub(super) fn rows(&self, theme: &Theme) -> Vec<Row> {
        let head: Vec<&str> = gate::lines(self.head).collect();
        let tail: Vec<&str> = gate::lines(self.tail.trim_end()).filter(|_| !self.tail.is_empty()).collect();
        let shown_head = head.len().min(HEAD_LINES);
        let from = tail.len().saturating_sub(TAIL_LINES);
        let hidden = head.len() - shown_head + self.left_out + from;
        let mut rows: Vec<Row> = head[..shown_head].iter().map(|line| output_row(line, theme)).collect();
        let hidden = match hidden {
            0 => String::new(),
            1 => "1 line, ".to_owned(),
            hidden => format!("{hidden} lines, "),
        };
        let told = format!("    … {hidden}all {} in {}", gate::visible(self.size), gate::visible(self.path));
        rows.push(Row::styled(told, theme.dim).unwrapped());
        rows.extend(tail[from..].iter().map(|line| output_row(line, theme)));
        if let Some(mark) = rows.first_mut().and_then(|row| row.spans.first_mut()) {
            mark.text = mark.text.replacen("    ", "  └ ", 1);
        }
        rows
    }
}

fn output_row(line: &str, theme: &Theme) -> Row {
    let mut row = Row::new(vec![Span::new("    ", theme.dim)]);
    row.spans.extend(ansi::spans(bounded(line), &mut SgrState::default()));
    row.unwrapped()
}
