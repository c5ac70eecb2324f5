//! Syntax highlighting of source code, line by line.
//!
//! A small lexer reads each line once, driven by a table of [languages]. It knows words, numbers, strings and comments,
//! not grammar: that is enough for reading code, takes microseconds per line and no memory but the state of a block.
//! Lines and blocks beyond the bounds come out plain.

mod code;
mod keys;
mod languages;
mod line;
mod markdown;
mod markup;
mod rules;
mod text;
mod word;

#[cfg(test)]
mod tests;

use std::path::Path;

use code::Code;
use line::{Line, LinePiece};
use markdown::Markdown;
use rules::{Grammar, Language};

use crate::row::{Span, Style};
use crate::theme::{Syntax, Theme};

/// Longest line that is highlighted, in bytes.
pub const LONGEST_LINE: usize = 2_000;

/// Number of lines of a block that are highlighted.
pub const MOST_LINES: usize = 5_000;

/// Highlights the lines of one block, with the state that carries over from line to line.
#[derive(Debug, Clone)]
pub struct Highlighter {
    theme: Theme,
    lexer: Option<Lexer>,
    lines: usize,
}

impl Highlighter {
    /// A highlighter for the language of a fenced code block; an unknown language gives plain lines.
    pub fn for_language(info: &str, theme: &Theme) -> Self {
        Self::new(languages::by_info(info), theme)
    }

    /// A highlighter for a file, by its name.
    pub fn for_path(path: &str, theme: &Theme) -> Self {
        Self::new(languages::by_path(Path::new(path)), theme)
    }

    /// A highlighter that leaves all lines plain.
    pub fn plain(theme: &Theme) -> Self {
        Self::new(None, theme)
    }

    fn new(language: Option<&'static Language>, theme: &Theme) -> Self {
        Self { theme: *theme, lexer: language.map(Lexer::new), lines: 0 }
    }

    /// Spans of the next line, which has passed the gate and has no newline.
    pub fn line(&mut self, line: &str) -> Vec<Span> {
        self.lines = self.lines.saturating_add(1);
        if line.len() > LONGEST_LINE || self.lines > MOST_LINES {
            // The state may be wrong from here on, and wrong colours mislead.
            self.lexer = None;
        }
        let Some(lexer) = &mut self.lexer else {
            return if line.is_empty() { Vec::new() } else { vec![Span::new(line, self.theme.text)] };
        };
        let mut spans = Vec::new();
        for (range, role) in lexer.line(line) {
            let style = role.map_or(self.theme.text, |role| self.theme.of(role));
            push(&mut spans, &line[range], style);
        }
        spans
    }
}

fn push(spans: &mut Vec<Span>, text: &str, style: Style) {
    match spans.last_mut() {
        Some(span) if span.style == style || text.trim().is_empty() => span.text.push_str(text),
        _ => spans.push(Span::new(text, style)),
    }
}

/// Lexer of any language.
#[derive(Debug, Clone)]
enum Lexer {
    Code(Box<Code>),
    Markdown(Markdown),
    Diff,
}

impl Lexer {
    fn new(language: &'static Language) -> Self {
        match &language.grammar {
            Grammar::Code(rules) => Self::Code(Box::new(Code::new(rules))),
            Grammar::Markdown => Self::Markdown(Markdown::default()),
            Grammar::Diff => Self::Diff,
        }
    }

    /// Lexer of a language within Markdown.
    fn inner(language: &'static Language) -> Self {
        match Self::new(language) {
            Self::Markdown(_) => Self::Markdown(Markdown::inner()),
            lexer => lexer,
        }
    }

    /// Pieces of the next line, which together are the line.
    fn line(&mut self, text: &str) -> Vec<LinePiece> {
        let mut line = Line::new(text);
        match self {
            Self::Code(code) => code.line(&mut line),
            Self::Markdown(markdown) => markdown.line(&mut line),
            Self::Diff => line.take_rest(diff(text)),
        }
        line.finish()
    }
}

/// Role of a line of a diff.
fn diff(line: &str) -> Option<Syntax> {
    const HEADERS: &[&str] = &["+++", "---", "diff ", "index ", "Index: ", "==="];
    if HEADERS.iter().any(|header| line.starts_with(header)) {
        return Some(Syntax::Heading);
    }
    match line.bytes().next()? {
        b'+' | b'>' => Some(Syntax::Inserted),
        b'-' | b'<' => Some(Syntax::Deleted),
        b'@' => Some(Syntax::Attribute),
        _ => None,
    }
}
