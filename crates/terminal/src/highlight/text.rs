//! Strings of source code: quotes, raw strings, here documents, and the code within them.

use super::code::{Code, LexerMode};
use super::line::{Line, is_blank};
use super::rules::{Escape, Feature, Holes, LexicalRules, Quote, StringPrefix};
use crate::theme::Syntax;

/// Bytes of an end mark that the source chooses. A longer one is not taken for one.
const LONGEST_END: usize = 64;
/// Bytes in which the end of a variable or a placeholder is searched.
const LOOKAHEAD: usize = 100;

impl Code {
    /// Reads the start of a string; returns false if there is none.
    pub(super) fn starts_text(&mut self, line: &mut Line<'_>) -> bool {
        if self.rules.has(Feature::BlankBeforeQuote)
            && line.before().is_some_and(|byte| self.rules.is_word(byte))
        {
            return false;
        }
        let mark = line.byte(0);
        if mark == Some(b'[') && self.rules.has(Feature::LongBrackets) {
            let level = line.run(1, |byte| byte == b'=');
            if line.byte(1 + level) == Some(b'[') && level <= LONGEST_END {
                return self.open_fenced(line, level + 2, format!("]{}]", "=".repeat(level)));
            }
        }
        if mark == Some(b'#') && self.rules.has(Feature::HashStrings) && self.open_hashes(line, 0) {
            return true;
        }
        if self.rules.heredoc.is_some_and(|mark| line.starts_with(mark)) && self.starts_heredoc(line) {
            return true;
        }
        let Some(quote) = self.rules.quotes.iter().find(|quote| line.starts_with(quote.open)) else {
            return false;
        };
        if let Some(length) = key(line, quote, self.rules) {
            line.take(length, Some(Syntax::Attribute));
            self.after_value = true;
            return true;
        }
        self.open_text(line, 0, quote, quote.escape == Escape::None, quote.holes);
        true
    }

    fn open_text(
        &mut self,
        line: &mut Line<'_>,
        prefix: usize,
        quote: &'static Quote,
        raw: bool,
        holes: Holes,
    ) {
        line.take(prefix + quote.open.len(), Some(Syntax::String));
        self.after_value = true;
        self.at_command = false;
        self.push(LexerMode::Text { quote, raw, holes });
    }

    fn open_fenced(&mut self, line: &mut Line<'_>, length: usize, end: String) -> bool {
        line.take(length, Some(Syntax::String));
        self.after_value = true;
        self.push(LexerMode::Fenced { end });
        true
    }

    /// Opens a string in hashes and quotes that starts after so many bytes.
    fn open_hashes(&mut self, line: &mut Line<'_>, prefix: usize) -> bool {
        let hashes = line.run(prefix, |byte| byte == b'#');
        let opens = line.byte(prefix + hashes) == Some(b'"') && hashes <= LONGEST_END;
        opens && self.open_fenced(line, prefix + hashes + 1, format!("\"{}", "#".repeat(hashes)))
    }

    /// Reads a word that is the prefix of a string, with its quote; returns false if it is none.
    pub(super) fn prefixed_text(&mut self, line: &mut Line<'_>, word: &str) -> bool {
        let rules = self.rules;
        let Some(next) = line.byte(word.len()).filter(|next| matches!(next, b'"' | b'\'' | b'#' | b'`'))
        else {
            return false;
        };
        let prefixes = rules.prefixes.iter();
        let mut prefixes = prefixes.filter(|(prefix, _)| prefix.eq_ignore_ascii_case(word));
        let Some((_, prefix)) = prefixes.next() else { return false };
        if *prefix == StringPrefix::Hashes {
            return self.open_hashes(line, word.len());
        }
        if next == b'#' {
            return false;
        }
        if *prefix == StringPrefix::Delimiter {
            let after = line.rest().get(word.len() + 1..).unwrap_or_default();
            return match after.bytes().take(LONGEST_END).position(|byte| byte == b'(') {
                Some(length) => {
                    let end = format!("){}\"", &after[..length]);
                    self.open_fenced(line, word.len() + length + 2, end)
                }
                None => false,
            };
        }
        let rest = line.rest().get(word.len()..).unwrap_or_default();
        let Some(quote) = rules.quotes.iter().find(|quote| rest.starts_with(quote.open)) else {
            return false;
        };
        let (raw, holes) = match prefix {
            StringPrefix::Raw => (true, Holes::None),
            StringPrefix::Holes(holes) => (false, *holes),
            StringPrefix::RawHoles(holes) => (true, *holes),
            StringPrefix::Plain | StringPrefix::Hashes | StringPrefix::Delimiter => (false, quote.holes),
        };
        self.open_text(line, word.len(), quote, raw, holes);
        true
    }

    fn starts_heredoc(&mut self, line: &mut Line<'_>) -> bool {
        let Some(mark) = self.rules.heredoc else { return false };
        let mut at = mark.len();
        at += usize::from(matches!(line.byte(at), Some(b'-' | b'~')));
        if self.rules.has(Feature::Shell) || mark == "<<<" {
            at += line.run(at, is_blank);
        }
        let quote = line.byte(at).filter(|byte| matches!(byte, b'"' | b'\''));
        at += usize::from(quote.is_some());
        let length = line.run(at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let starts_well = line.byte(at).is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        // In languages where `<<` also shifts, marks are in capitals or quotes.
        let is_mark = self.rules.has(Feature::Shell)
            || quote.is_some()
            || line.byte(at).is_some_and(|byte| byte.is_ascii_uppercase());
        let closes = quote.is_none() || line.byte(at + length) == quote;
        if !starts_well
            || !is_mark
            || !closes
            || length > LONGEST_END
            || line.starts_with("<<<") && mark == "<<"
        {
            return false;
        }
        self.heredoc = Some(line.rest()[at..at + length].to_owned());
        line.take(at + length + usize::from(quote.is_some()), Some(Syntax::String));
        self.after_value = true;
        true
    }

    /// Reads text in quotes up to its end, an escape or code in it.
    pub(super) fn text(&mut self, line: &mut Line<'_>, quote: &'static Quote, raw: bool, holes: Holes) {
        let close = quote.close.as_bytes()[0];
        let plain = line.run(0, |byte| byte != close && !matches!(byte, b'\\' | b'{' | b'}' | b'$' | b'#'));
        line.take(plain, Some(Syntax::String));
        let Some(byte) = line.byte(0) else { return };
        if line.starts_with(quote.close) {
            let length = quote.close.len();
            if quote.escape == Escape::Doubled && line.rest()[length..].starts_with(quote.close) {
                return line.take(2 * length, Some(Syntax::Constant));
            }
            line.take(length, Some(Syntax::String));
            self.stack.pop();
            return;
        }
        if self.opens_hole(line, byte, holes) {
            return;
        }
        if byte == b'\\' && quote.escape == Escape::Backslash {
            // In a raw string a backslash keeps the quote after it, but is text.
            let role = if raw { Syntax::String } else { Syntax::Constant };
            return line.take(escape(line), Some(role));
        }
        line.take(1, Some(Syntax::String));
    }

    /// Reads the start of code within a string; returns false if there is none.
    fn opens_hole(&mut self, line: &mut Line<'_>, byte: u8, holes: Holes) -> bool {
        let next = line.byte(1);
        let (length, close) = match (holes, byte, next) {
            (Holes::Format | Holes::Braces, b'{', Some(b'{'))
            | (Holes::Format | Holes::Braces, b'}', Some(b'}')) => {
                line.take(2, Some(Syntax::Constant));
                return true;
            }
            (Holes::Format, b'{', _) => {
                let Some(length) = placeholder(line.rest()) else { return false };
                line.take(length, Some(Syntax::Constant));
                return true;
            }
            (Holes::Braces, b'{', _) => (1, b'}'),
            (Holes::Template | Holes::Dollar, b'$', Some(b'{')) | (Holes::Hash, b'#', Some(b'{')) => {
                (2, b'}')
            }
            (Holes::Shell, b'$', Some(b'(')) => (2, b')'),
            (Holes::Parenthesis, b'\\', Some(b'(')) => (2, b')'),
            (Holes::Shell | Holes::Dollar, b'$', _) => {
                let Some(length) = variable(line.rest(), self.rules) else { return false };
                line.take(length, Some(Syntax::Variable));
                return true;
            }
            _ => return false,
        };
        line.take(length, Some(Syntax::Punctuation));
        self.after_value = false;
        self.at_command = true;
        self.push(LexerMode::Hole { close, depth: 0 });
        true
    }

    /// Reads a string up to a mark that the source chose.
    pub(super) fn raw_text(&mut self, line: &mut Line<'_>) {
        match self.stack.last() {
            Some(LexerMode::Fenced { end }) => match line.rest().find(end.as_str()) {
                Some(at) => {
                    line.take(at + end.len(), Some(Syntax::String));
                    self.stack.pop();
                }
                None => line.take_rest(Some(Syntax::String)),
            },
            Some(LexerMode::Heredoc { end }) => {
                let after = line.text.trim_start().strip_prefix(end.as_str());
                if after
                    .is_some_and(|after| !after.bytes().next().is_some_and(|byte| self.rules.is_word(byte)))
                {
                    let length = line.text.len() - after.map_or(0, str::len);
                    line.take(length, Some(Syntax::String));
                    self.stack.pop();
                } else {
                    line.take_rest(Some(Syntax::String));
                }
            }
            _ => line.take_rest(Some(Syntax::String)),
        }
    }
}

/// Length of a whole string that is a key, if it is one.
fn key(line: &Line<'_>, quote: &Quote, rules: &LexicalRules) -> Option<usize> {
    if rules.keys.is_empty() || quote.open.len() > 1 {
        return None;
    }
    let bytes = line.rest().as_bytes();
    let close = quote.close.as_bytes()[0];
    let mut at = quote.open.len();
    while *bytes.get(at)? != close {
        at += 1 + usize::from(bytes[at] == b'\\' && quote.escape == Escape::Backslash);
    }
    let next = line.after_blanks(at + 1)?;
    rules.keys.as_bytes().contains(&next).then_some(at + 1)
}

/// Length of an escape, which starts with a backslash.
fn escape(line: &Line<'_>) -> usize {
    let hex = |most: usize| line.run(2, |byte| byte.is_ascii_hexdigit()).min(most);
    match line.byte(1) {
        Some(b'u') if line.byte(2) == Some(b'{') => {
            let digits = line.run(3, |byte| byte.is_ascii_hexdigit()).min(8);
            3 + digits + usize::from(line.byte(3 + digits) == Some(b'}'))
        }
        Some(b'x') => 2 + hex(2),
        Some(b'u') => 2 + hex(4),
        Some(_) => 2,
        None => 1,
    }
}

/// Length of a placeholder in braces.
fn placeholder(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let end = bytes.iter().take(LOOKAHEAD).position(|byte| *byte == b'}')?;
    let is_format =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_:.?#<>^+-*$ ".contains(byte) || !byte.is_ascii();
    let inner = &bytes[1..end];
    (inner.iter().all(is_format) && !inner.starts_with(b" ")).then_some(end + 1)
}

/// Length of a variable with its sigil.
pub(super) fn variable(rest: &str, rules: &LexicalRules) -> Option<usize> {
    let bytes = rest.as_bytes();
    let name = |from: usize| {
        let name = bytes.get(from..).unwrap_or_default();
        name.iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_' || !byte.is_ascii())
            .count()
    };
    match bytes.get(1)? {
        b'{' | b'(' if bytes[0] == b'$' && (rules.has(Feature::Targets) || bytes[1] == b'{') => {
            let close = if bytes[1] == b'{' { b'}' } else { b')' };
            let end = bytes.iter().take(LOOKAHEAD).position(|byte| *byte == close)?;
            Some(end + 1)
        }
        byte if byte.is_ascii_alphabetic() || *byte == b'_' || !byte.is_ascii() => Some(1 + name(1)),
        // `@@x`, `$$`, `$1`, `$?`.
        b'@' if bytes[0] == b'@' => Some(2 + name(2)).filter(|length| *length > 2),
        byte if bytes[0] == b'$' && (byte.is_ascii_digit() || b"?!#@*$-<^".contains(byte)) => Some(2),
        _ => None,
    }
}
