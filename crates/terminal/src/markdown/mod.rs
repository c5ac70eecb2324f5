//! Markdown that is rendered while it is being written.
//!
//! [`MarkdownStream`] takes text in pieces and gives rows that no later piece can change, each exactly once: the concatenation of all
//! rows is the same for every split into pieces and for every moment at which rows are taken. Three rules make it so:
//!
//! - Blocks are decided line by line ([`blocks`]). A line is decided when it is complete, or at its first [`EARLY`] bytes if those can
//!   only be prose; the lines that the next one can change (a heading by underline, the header of a table) are held.
//! - Prose is cut into segments that are parsed on their own ([`paragraph`]), at places that depend on the text alone. pulldown-cmark
//!   parses what is inside of a segment ([`inline`]).
//! - Wrapping is greedy, so that rows before the last one are final.
//!
//! It deviates from CommonMark where that looks arbitrarily far ahead or hides text: reference links and their definitions are shown as
//! written, an underline makes a heading of one short line only, a hard break ends emphasis, and a line without `|` ends a table.
//!
//! Code goes out unwrapped and without indent of its containers, so that copies of it are exact.

mod block;
mod blocks;
mod container;
mod inline;
mod line;
mod paragraph;
mod scan;
mod table;

use block::WIDEST_PROSE;
use blocks::{Blocks, Preview};
use inline::inline;
use scan::Scan;

use crate::gate;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;
use crate::wrap;

/// Length of a line in bytes at which prose is recognised before its end.
const EARLY: usize = 160;

/// Bytes of open text that the open row is made of.
const OPEN_BYTES: usize = 512;

/// Renders Markdown that comes in pieces.
pub struct MarkdownStream {
    theme: Theme,
    blocks: Blocks,
    /// Start of a line that is not decided.
    line: String,
    state: LineState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineState {
    /// Fewer than [`EARLY`] bytes are here.
    Short,
    /// Only the whole line can be decided.
    Waiting,
    /// The line is prose and goes to its paragraph as it comes.
    Flowing,
}

impl MarkdownStream {
    pub fn new(theme: Theme) -> Self {
        Self { theme, blocks: Blocks::new(theme), line: String::new(), state: LineState::Short }
    }

    /// Rows of a whole text.
    pub fn render(text: &str, columns: usize, theme: Theme) -> Vec<Row> {
        let mut stream = Self::new(theme);
        stream.push(text);
        stream.finish();
        stream.take_rows(columns)
    }

    /// Adds the next piece of the text.
    pub fn push(&mut self, piece: &str) {
        let mut rest = piece;
        while !rest.is_empty() {
            let end = rest.find('\n').unwrap_or(rest.len());
            let (part, after) = match self.state {
                LineState::Short => {
                    rest.split_at(end.min(boundary(rest, EARLY.saturating_sub(self.line.len()))))
                }
                LineState::Waiting | LineState::Flowing => rest.split_at(end),
            };
            match self.state {
                LineState::Flowing => self.blocks.feed(part),
                LineState::Short | LineState::Waiting => self.line.push_str(part),
            }
            if self.state == LineState::Short && self.line.len() >= EARLY {
                self.decide_early();
            }
            rest = match after.strip_prefix('\n') {
                Some(after) => {
                    self.end_line();
                    after
                }
                None => after,
            };
        }
        self.release_early();
    }

    fn decide_early(&mut self) {
        self.state = LineState::Waiting;
        let place = self.blocks.place(&self.line);
        if place.is_prose() {
            self.blocks.start(&place);
            self.state = LineState::Flowing;
            self.line.clear();
        }
    }

    fn end_line(&mut self) {
        match self.state {
            LineState::Flowing => self.blocks.end_line(),
            LineState::Short | LineState::Waiting => {
                let line = std::mem::take(&mut self.line);
                self.blocks.line(line.strip_suffix('\r').unwrap_or(&line));
            }
        }
        self.state = LineState::Short;
    }

    /// Releases a held line as soon as the line below it has a character that no underline and no delimiter has.
    fn release_early(&mut self) {
        if self.state == LineState::Short
            && self.blocks.held().is_some()
            && self.line.contains(|c| !matches!(c, '=' | '-' | '|' | ':' | '>' | ' ' | '\t' | '\r'))
        {
            self.blocks.release();
        }
    }

    /// Ends the text. Text that is pushed later starts a new one.
    pub fn finish(&mut self) {
        if self.state == LineState::Flowing || !self.line.is_empty() {
            self.end_line();
        }
        self.blocks.finish();
    }

    /// Removes and returns the rows that no later piece can change.
    pub fn take_rows(&mut self, columns: usize) -> Vec<Row> {
        let settled = std::mem::take(&mut self.blocks.settled);
        let mut rows: Vec<Row> = settled.iter().flat_map(|block| block.rows(columns)).collect();
        rows.extend(self.blocks.open_rows(columns.min(WIDEST_PROSE)));
        rows
    }

    /// The end of the text that has not been taken, in one row; none if all has been.
    pub fn open_row(&self, columns: usize) -> Option<Row> {
        let preview = match self.line.trim() {
            "" => Preview::More(""),
            _ if self.line.len() > OPEN_BYTES => Preview::Exact,
            _ => self.blocks.preview(&self.line),
        };
        let spans = match preview {
            Preview::More(line) => self.open_paragraph(line),
            Preview::New { mut indent, text, style } => {
                indent.extend(open_inline(&text, style, &self.theme));
                indent
            }
            Preview::Exact => vec![Span::new(gate::visible(last_bytes(&self.line)), self.theme.text)],
        };
        let shown = spans.iter().any(|span| !span.text.trim().is_empty());
        shown.then(|| wrap::tail(&spans, columns))
    }

    /// Spans of the open paragraph with another line of it.
    fn open_paragraph(&self, line: &str) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut source = String::new();
        if let Some(paragraph) = self.blocks.open() {
            let (indent, text, segment) = paragraph.open();
            spans.extend_from_slice(indent);
            spans.extend(text.spans());
            source.push_str(last_bytes(segment));
        }
        let held = self.blocks.held().map(|(indent, held)| {
            if spans.is_empty() {
                spans = indent;
            }
            held
        });
        for line in [held, Some(line)].into_iter().flatten().filter(|line| !line.is_empty()) {
            if !source.is_empty() && !source.ends_with(' ') {
                source.push(' ');
            }
            source.push_str(last_bytes(line));
        }
        spans.extend(open_inline(&source, self.theme.text, &self.theme));
        spans
    }

    /// Bytes that the next calls read again. It has to stay small for the whole to be linear.
    #[cfg(test)]
    fn reread(&self) -> usize {
        let line = if self.state == LineState::Short { self.line.len() } else { 0 };
        line + self.blocks.open().map_or(0, |paragraph| paragraph.open().1.text().len())
    }
}

/// Spans of text whose emphasis or code may still be open.
fn open_inline(source: &str, style: Style, theme: &Theme) -> Vec<Span> {
    let source = source.trim_end();
    let mut scan = Scan::default();
    source.chars().for_each(|c| scan.push(c));
    let closers = scan.closers();
    inline(&format!("{source}{closers}"), style, theme).spans()
}

/// First place at or after `at` where a text may be cut.
fn boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

fn last_bytes(text: &str) -> &str {
    let from = boundary(text, text.len().saturating_sub(OPEN_BYTES));
    text.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests;
