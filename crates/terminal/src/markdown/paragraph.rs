//! Paragraph that is being written.
//!
//! Its source is cut into segments at blanks (and between ideographs) where no inline Markdown is open. Each segment is parsed on its
//! own, as soon as the character after it is known, and is final from then on: the cuts depend on the text alone, never on the pieces
//! it came in. An open `**` or `[` keeps its segment open, up to [`LONGEST_SEGMENT`].

use unicode_width::UnicodeWidthChar as _;

use super::inline::inline;
use super::scan::Scan;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;
use crate::wrap::Text;

/// Length in bytes after which a segment ends at the next blank, whatever is open in it.
const LONGEST_SEGMENT: usize = 4096;
const BLANKS: [char; 2] = [' ', '\t'];
/// A tab between words. Its column is not known before the text is wrapped.
const TAB: &str = "    ";

#[derive(Debug, Clone)]
pub(super) struct Paragraph {
    theme: Theme,
    /// Indents of the first row and of the others.
    first: Vec<Span>,
    next: Vec<Span>,
    /// Whether the first row has been taken.
    started: bool,
    /// Parsed text that has not been taken.
    text: Text,
    /// Width at which this text has no more rows to take.
    taken: Option<usize>,
    segment: String,
    scan: Scan,
    line_start: bool,
    /// Whether the last line ended in a hard break, if more text follows.
    hard_break: bool,
}

impl Paragraph {
    pub(super) fn new(theme: &Theme, first: Vec<Span>, next: Vec<Span>) -> Self {
        Self {
            theme: *theme,
            first,
            next,
            started: false,
            text: Text::default(),
            taken: None,
            segment: String::new(),
            scan: Scan::default(),
            line_start: true,
            hard_break: false,
        }
    }

    /// Adds a part of a line.
    pub(super) fn feed(&mut self, part: &str) {
        for c in part.chars() {
            if matches!(c, ' ' | '\t' | '\r') {
                if !self.line_start {
                    self.add(if c == '\t' { c } else { ' ' });
                }
                continue;
            }
            self.line_start = false;
            if std::mem::take(&mut self.hard_break) {
                let kept = self.segment.trim_end_matches(['\\', ' ']).len();
                self.segment.truncate(kept);
                self.settle();
                self.text.push("\n", Style::PLAIN);
                self.taken = None;
            } else if self.cuts_before(c) {
                self.settle();
            }
            self.add(c);
        }
    }

    fn add(&mut self, c: char) {
        self.segment.push(c);
        self.scan.push(c);
    }

    fn cuts_before(&self, c: char) -> bool {
        let after_blank = self.segment.ends_with(BLANKS) && c.width().unwrap_or(0) > 0;
        let between_ideographs = ideograph(c) && self.segment.ends_with(ideograph);
        (after_blank || between_ideographs) && self.scan.closed()
            || after_blank && self.segment.len() > LONGEST_SEGMENT
    }

    /// Ends a line of the source, which is a blank or a hard break if another line follows.
    pub(super) fn end_line(&mut self) {
        let line = self.segment.trim_end_matches('\\');
        let backslash = (self.segment.len() - line.len()) % 2 == 1;
        self.hard_break = !self.scan.in_code() && (backslash || self.segment.ends_with("  "));
        // A tab at the end of a line separates nothing.
        while self.segment.ends_with('\t') {
            self.segment.pop();
        }
        if !self.hard_break && !self.segment.ends_with(' ') {
            self.add(' ');
        }
        self.line_start = true;
    }

    fn settle(&mut self) {
        let segment = std::mem::take(&mut self.segment);
        let text = segment.trim_end_matches(BLANKS);
        self.text.append(&inline(&text.replace('\t', TAB), self.theme.text, &self.theme));
        let blanks = &segment[text.len()..];
        if !blanks.is_empty() {
            self.text.push(if blanks.contains('\t') { TAB } else { " " }, self.theme.text);
        }
        self.scan = Scan::default();
        self.taken = None;
    }

    /// Removes and returns the rows that no later text can change.
    pub(super) fn take_rows(&mut self, columns: usize) -> Vec<Row> {
        if self.taken.replace(columns) == Some(columns) {
            return Vec::new();
        }
        let first = if self.started { &self.next } else { &self.first };
        let rows = self.text.take(columns, first, &self.next);
        self.started |= !rows.is_empty();
        rows
    }

    /// Ends the paragraph: its indents and the text that has not been taken, if there is any.
    pub(super) fn finish(mut self) -> Option<(Vec<Span>, Vec<Span>, Text)> {
        self.settle();
        if self.started && self.text.is_empty() {
            return None;
        }
        let first = if self.started { self.next.clone() } else { self.first };
        Some((first, self.next, self.text))
    }

    /// Indent of the row that is being written, its settled text and its open source.
    pub(super) fn open(&self) -> (&[Span], &Text, &str) {
        (if self.started { &self.next } else { &self.first }, &self.text, &self.segment)
    }
}

fn ideograph(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30fa}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{20000}'..='\u{3ffff}')
}
