//! The lines that a search prints, in the forms of ripgrep's output, within bounds.

use std::fmt::Write as _;
use std::io;

use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use super::walk::SearchLimit;
use crate::arguments::Word;

/// Bytes of output that are collected; it is spilled long before.
const OUTPUT_LIMIT: usize = 1024 * 1024;

/// Bytes of one line that are shown. Longer ones are not written by people.
const LINE_LIMIT: usize = 2000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SearchMode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

impl Word for SearchMode {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "content" => Some(SearchMode::Content),
            "files_with_matches" => Some(SearchMode::FilesWithMatches),
            "count" => Some(SearchMode::Count),
            _ => None,
        }
    }
}

/// Matches so far, over all files.
#[derive(Debug)]
pub(crate) struct SearchOutput {
    pub(crate) text: String,
    mode: SearchMode,
    numbered: bool,
    /// Groups of lines are separated where there is context around them.
    separated: bool,
    /// Results still wanted: lines, or files.
    wanted: usize,
    /// Reason for which nothing more is added.
    pub(crate) full: bool,
}

impl SearchOutput {
    pub(crate) fn new(mode: SearchMode, numbered: bool, separated: bool, wanted: Option<usize>) -> Self {
        Self {
            text: String::new(),
            mode,
            numbered,
            separated,
            wanted: wanted.unwrap_or(usize::MAX),
            full: false,
        }
    }

    /// Nothing more is wanted, or nothing more fits.
    pub(crate) fn is_done(&self) -> bool {
        self.wanted == 0 || self.full
    }

    /// Adds what one file gave.
    fn add(&mut self, file: FileLines) {
        if file.text.is_empty() {
            return;
        }
        if self.text.len() + file.text.len() > OUTPUT_LIMIT {
            self.full = true;
            if self.text.is_empty() {
                self.text = file.text;
                self.text.truncate(self.text.floor_char_boundary(OUTPUT_LIMIT));
            }
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
            if self.separated {
                self.text.push_str("--\n");
            }
        }
        self.text.push_str(&file.text);
        self.wanted = self.wanted.saturating_sub(file.results);
        self.full |= file.full;
    }
}

#[derive(Debug, Default)]
struct FileLines {
    text: String,
    results: usize,
    full: bool,
}

/// Takes the matches in one file.
pub(crate) struct FileSink<'a> {
    output: &'a mut SearchOutput,
    stop: &'a SearchLimit,
    shown: &'a str,
    is_root: bool,
    lines: FileLines,
    matches: u64,
    binary_at: Option<u64>,
}

impl<'a> FileSink<'a> {
    pub(crate) fn new(
        output: &'a mut SearchOutput,
        stop: &'a SearchLimit,
        shown: &'a str,
        is_root: bool,
    ) -> Self {
        Self { output, stop, shown, is_root, lines: FileLines::default(), matches: 0, binary_at: None }
    }

    fn push_line(&mut self, mark: char, number: Option<u64>, line: &[u8]) {
        if !self.lines.text.is_empty() {
            self.lines.text.push('\n');
        }
        self.lines.text.push_str(self.shown);
        self.lines.text.push(mark);
        if let Some(number) = number.filter(|_| self.output.numbered) {
            let _ = write!(self.lines.text, "{number}{mark}");
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = String::from_utf8_lossy(line);
        let shown = line.floor_char_boundary(LINE_LIMIT);
        self.lines.text.push_str(&line[..shown]);
        if shown < line.len() {
            self.lines.text.push_str(" [... omitted end of long line]");
        }
        self.lines.full = self.lines.text.len() > OUTPUT_LIMIT;
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.matches += 1;
        // One match is all there is to say about a binary file.
        if self.binary_at.is_some() || self.stop.is_due() {
            return Ok(false);
        }
        match self.output.mode {
            SearchMode::FilesWithMatches => Ok(false),
            SearchMode::Count => Ok(true),
            SearchMode::Content => {
                for (number, line) in (0..).zip(found.lines()) {
                    self.push_line(':', found.line_number().map(|first| first + number), line);
                }
                self.lines.results += 1;
                Ok(self.lines.results < self.output.wanted && !self.lines.full)
            }
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        if self.output.mode == SearchMode::Content {
            self.push_line('-', context.line_number(), context.bytes());
        }
        Ok(!self.lines.full)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if self.output.mode == SearchMode::Content && !self.lines.text.is_empty() {
            self.lines.text.push_str("\n--");
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, offset: u64) -> Result<bool, io::Error> {
        self.binary_at.get_or_insert(offset);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> Result<(), io::Error> {
        let mut lines = std::mem::take(&mut self.lines);
        if let Some(offset) = self.binary_at {
            // Binary files are of no interest unless asked for by name.
            lines = FileLines::default();
            if self.is_root && self.matches > 0 && self.output.mode == SearchMode::Content {
                lines.text = format!(
                    "{}: binary file matches (found \"\\0\" byte around offset {offset})",
                    self.shown
                );
                lines.results = 1;
            }
        }
        let counts = self.matches > 0 && (self.binary_at.is_none() || self.is_root);
        match self.output.mode {
            SearchMode::Content => {}
            SearchMode::FilesWithMatches if counts => {
                lines = FileLines { text: self.shown.to_owned(), results: 1, full: false };
            }
            SearchMode::Count if counts => {
                lines =
                    FileLines { text: format!("{}:{}", self.shown, self.matches), results: 1, full: false };
            }
            SearchMode::FilesWithMatches | SearchMode::Count => {}
        }
        self.output.add(lines);
        Ok(())
    }
}
