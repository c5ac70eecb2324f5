//! Reads a text character by character, and knows the line.

use serde_json::Value;

use super::TemplateError;

#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a str,
    pub(super) line: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, line: usize) -> Self {
        Self { rest: text, line }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn advance(&mut self, bytes: usize) -> &'a str {
        let (gone, rest) = self.rest.split_at(bytes);
        self.line += gone.matches('\n').count();
        self.rest = rest;
        gone
    }

    pub(super) fn skip_space(&mut self) {
        let trimmed = self.rest.trim_start();
        self.advance(self.rest.len() - trimmed.len());
    }

    /// Skips white space, then the token if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest.starts_with(token);
        if found {
            self.advance(token.len());
        }
        found
    }

    pub(super) fn is_done(&mut self) -> bool {
        self.skip_space();
        self.rest.is_empty()
    }

    /// An identifier that comes next, without white space before it.
    pub(super) fn name(&mut self, extra: &[char]) -> Option<&'a str> {
        if !self.peek().is_some_and(|c| c.is_alphabetic() || c == '_') {
            return None;
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || extra.contains(&c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        Some(self.advance(end))
    }

    /// The word that comes next, without taking it.
    pub(super) fn word(&self) -> &'a str {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
        &text[..end]
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        if found {
            self.skip_space();
            self.advance(word.len());
        }
        found
    }

    pub(super) fn number(&mut self) -> Option<Value> {
        let digits = self.rest.strip_prefix('-').unwrap_or(self.rest);
        if !digits.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let sign = self.rest.len() - digits.len();
        let mut end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let fraction = &digits[end..];
        if fraction.starts_with('.') && fraction[1..].starts_with(|c: char| c.is_ascii_digit()) {
            let more = &fraction[1..];
            end += 1 + more.find(|c: char| !c.is_ascii_digit()).unwrap_or(more.len());
        }
        let text = self.advance(sign + end);
        let integer = text.parse::<i64>().ok().map(Value::from);
        integer.or_else(|| text.parse::<f64>().ok().map(Value::from))
    }

    /// A quoted text, in which a backslash escapes if `escapes`.
    pub(super) fn quoted(&mut self, escapes: bool) -> Result<String, TemplateError> {
        let line = self.line;
        let unfinished = || TemplateError::new(line, "a quoted text has no end");
        let quote = self.peek().ok_or_else(unfinished)?;
        let mut out = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            if c == quote {
                self.advance(at + c.len_utf8());
                return Ok(out);
            }
            if c != '\\' || !escapes {
                out.push(c);
                continue;
            }
            let (_, escaped) = characters.next().ok_or_else(unfinished)?;
            out.push(match escaped {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            });
        }
        Err(unfinished())
    }

    pub(super) fn error(&self, message: impl Into<String>) -> TemplateError {
        TemplateError::new(self.line, message)
    }
}
