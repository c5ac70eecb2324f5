//! Lexer of source code, driven by the rules of its language.
//!
//! Each step reads at least one byte or leaves a mode, and looks ahead a bounded way or once per line, so that a line takes time in
//! proportion to its length.

use super::Lexer;
use super::line::{Line, is_blank};
use super::rules::{BlockComment, Feature, Holes, LexicalRules, Quote, StringPrefix};
use crate::theme::Syntax;

/// Depth of modes, such as strings in code in strings. What is nested deeper is read as the mode around it.
const DEPTH: usize = 16;

/// Construct that the lexer is in.
#[derive(Debug, Clone)]
pub(super) enum LexerMode {
    Comment {
        block: &'static BlockComment,
        depth: u16,
    },
    Text {
        quote: &'static Quote,
        raw: bool,
        holes: Holes,
    },
    /// Raw string up to a mark that the source chose.
    Fenced {
        end: String,
    },
    /// Here document up to a line that the source chose.
    Heredoc {
        end: String,
    },
    /// Code within a string or markup, up to a closing bracket.
    Hole {
        close: u8,
        depth: u16,
    },
    /// Text between tags; for JSX with the number of open elements within the first.
    Content {
        jsx: bool,
        depth: u16,
    },
    Tag(super::markup::Tag),
    /// Another language up to a mark.
    Foreign {
        lexer: Box<Lexer>,
        end: &'static str,
    },
    /// Text of YAML that is indented deeper than its key.
    Indented {
        indent: usize,
    },
}

/// Role that the word before gives to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Anything,
    Function,
    Type,
}

/// Lexer with the state that carries over from line to line.
#[derive(Debug, Clone)]
pub(super) struct Code {
    pub(super) rules: &'static LexicalRules,
    pub(super) stack: Vec<LexerMode>,
    /// Here document that starts with the next line.
    pub(super) heredoc: Option<String>,
    /// Whether the last token was a value, after which `/` divides and `<` compares.
    pub(super) after_value: bool,
    /// Whether the next word of a shell is a command.
    pub(super) at_command: bool,
    /// Whether the next word of a style sheet belongs to a value.
    pub(super) in_declaration: bool,
    pub(super) expected: Expected,
    /// Whether no pattern can start in this line any more.
    no_pattern: bool,
    /// The last opening brace of the line of a style sheet.
    pub(super) last_brace: Option<usize>,
    pub(super) at_line_start: bool,
    /// Whether the line before ended in a backslash.
    pub(super) is_continued: bool,
}

impl Code {
    pub(super) fn new(rules: &'static LexicalRules) -> Self {
        let document = rules.has(Feature::Document).then_some(LexerMode::Content { jsx: false, depth: 0 });
        Self {
            rules,
            stack: document.into_iter().collect(),
            heredoc: None,
            after_value: false,
            at_command: true,
            in_declaration: false,
            expected: Expected::Anything,
            no_pattern: false,
            last_brace: None,
            at_line_start: true,
            is_continued: false,
        }
    }

    pub(super) fn push(&mut self, mode: LexerMode) {
        if self.stack.len() < DEPTH {
            self.stack.push(mode);
        }
    }

    pub(super) fn line(&mut self, line: &mut Line<'_>) {
        if let Some(end) = self.heredoc.take() {
            self.push(LexerMode::Heredoc { end });
        }
        self.start_line(line);
        while !line.is_read() {
            self.step(line);
        }
        self.end_line(line.text);
    }

    /// Reads the next token.
    pub(super) fn step(&mut self, line: &mut Line<'_>) {
        match self.stack.last() {
            None | Some(LexerMode::Hole { .. }) => self.token(line),
            Some(LexerMode::Comment { .. }) => self.comment(line),
            Some(LexerMode::Text { quote, raw, holes }) => {
                let (quote, raw, holes) = (*quote, *raw, *holes);
                self.text(line, quote, raw, holes);
            }
            Some(LexerMode::Fenced { .. } | LexerMode::Heredoc { .. } | LexerMode::Indented { .. }) => {
                self.raw_text(line);
            }
            Some(LexerMode::Content { jsx, .. }) => {
                let jsx = *jsx;
                self.content(line, jsx);
            }
            Some(LexerMode::Tag(_)) => self.tag(line),
            Some(LexerMode::Foreign { .. }) => self.foreign(line),
        }
    }

    fn start_line(&mut self, line: &mut Line<'_>) {
        self.at_line_start = true;
        self.no_pattern = false;
        self.last_brace = if self.rules.has(Feature::Styles) { line.text.rfind('{') } else { None };
        self.expected = Expected::Anything;
        if self.stack.is_empty() {
            if !self.is_continued {
                self.after_value = false;
                self.at_command = true;
                self.line_keys(line);
            }
        } else if matches!(self.stack.last(), Some(LexerMode::Indented { .. })) {
            self.indented(line);
        }
    }

    fn end_line(&mut self, text: &str) {
        self.is_continued = text.ends_with('\\');
        if self.is_continued {
            return;
        }
        // A string on one line that is still open is invalid: the next line starts afresh.
        let one_line = |mode: &LexerMode| matches!(mode, LexerMode::Text { quote, .. } if !quote.lines);
        if let Some(open) = self.stack.iter().position(one_line) {
            self.stack.truncate(open);
        }
    }

    fn token(&mut self, line: &mut Line<'_>) {
        let Some(byte) = line.byte(0) else { return };
        if is_blank(byte) {
            let length = line.run(0, is_blank);
            return line.take(length, None);
        }
        let was_line_start = std::mem::replace(&mut self.at_line_start, false);
        if self.starts_comment(line) || self.starts_text(line) || self.is_special(line, byte, was_line_start)
        {
            return;
        }
        let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
        if byte.is_ascii_digit()
            || byte == b'.' && !self.after_value && line.before() != Some(b'.') && is_digit(line.byte(1))
        {
            return self.number(line);
        }
        // A character that words may have within them does not start one: `-`, `.`, `'`.
        let starts_path = matches!(byte, b'.' | b'/' | b'~') && self.rules.has(Feature::Shell);
        let starts_word = byte.is_ascii_alphabetic()
            || !byte.is_ascii()
            || matches!(byte, b'_' | b'$') && self.rules.is_word(byte);
        if starts_word || starts_path {
            return self.word(line, was_line_start);
        }
        self.punctuation(line, byte);
    }

    fn starts_comment(&mut self, line: &mut Line<'_>) -> bool {
        let at_start = line.at == 0;
        if let Some(block) = self
            .rules
            .blocks
            .iter()
            .find(|block| line.starts_with(block.open) && (at_start || !block.open.starts_with('=')))
        {
            line.take(block.open.len(), Some(Syntax::Comment));
            self.push(LexerMode::Comment { block, depth: 0 });
            return true;
        }
        let free = !self.rules.has(Feature::BlankBeforeComment)
            || line.before().is_none_or(|byte| matches!(byte, b' ' | b'\t' | b';' | b'(' | b'&' | b'|'));
        let starts = free && self.rules.comments.iter().any(|mark| line.starts_with(mark));
        if starts {
            line.take_rest(Some(Syntax::Comment));
        }
        starts
    }

    fn comment(&mut self, line: &mut Line<'_>) {
        let Some(LexerMode::Comment { block, depth }) = self.stack.last_mut() else { return };
        let rest = line.rest();
        let first = block.close.as_bytes()[0];
        let opener = block.open.as_bytes()[0];
        let mark = |byte: &u8| *byte == first || block.nested && *byte == opener;
        let length = rest.bytes().position(|byte| mark(&byte)).unwrap_or(rest.len());
        line.take(length, Some(Syntax::Comment));
        if line.starts_with(block.close) {
            line.take(block.close.len(), Some(Syntax::Comment));
            match depth.checked_sub(1) {
                Some(less) => *depth = less,
                None => {
                    self.stack.pop();
                }
            }
        } else if block.nested && line.starts_with(block.open) {
            line.take(block.open.len(), Some(Syntax::Comment));
            *depth = depth.saturating_add(1);
        } else {
            line.take(1, Some(Syntax::Comment));
        }
    }

    fn number(&mut self, line: &mut Line<'_>) {
        let digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_hex = line.starts_with("0x") || line.starts_with("0X");
        let mut length = 0;
        loop {
            length += line.run(length, digit);
            let last = length.checked_sub(1).and_then(|last| line.byte(last));
            let next = line.byte(length + 1);
            let goes_on = match line.byte(length) {
                Some(b'.') => next.is_some_and(|next| next.is_ascii_digit()),
                Some(b'+' | b'-') => {
                    !is_hex
                        && matches!(last, Some(b'e' | b'E'))
                        && next.is_some_and(|next| next.is_ascii_digit())
                }
                Some(b'\'') => {
                    self.rules.prefixes.iter().any(|(_, prefix)| *prefix == StringPrefix::Delimiter)
                        && next.is_some_and(|next| next.is_ascii_hexdigit())
                }
                Some(b'%') => {
                    length += usize::from(self.rules.has(Feature::Styles));
                    false
                }
                _ => false,
            };
            if !goes_on {
                break;
            }
            length += 1;
        }
        // In a shell, `2fa` and `a/2b` are words.
        let is_word = self.rules.has(Feature::Shell)
            && (line.run(0, |byte| self.rules.is_word(byte)) > length
                || line.rest()[..length].bytes().any(|byte| byte.is_ascii_alphabetic()));
        line.take(length, (!is_word).then_some(Syntax::Number));
        self.after_value = true;
        self.at_command = false;
    }

    fn punctuation(&mut self, line: &mut Line<'_>, byte: u8) {
        self.expected = match byte {
            // `func (r *Receiver) Name(`, `fn<T>`.
            b'*' | b'&' => self.expected,
            _ => Expected::Anything,
        };
        self.after_value = matches!(byte, b')' | b']');
        self.at_command = matches!(byte, b'|' | b'&' | b';' | b'(' | b'{' | b'!' | b'$');
        if self.rules.has(Feature::Styles) {
            match byte {
                b':' if self.last_brace.is_none_or(|open| open < line.at) => self.in_declaration = true,
                b';' | b'{' | b'}' => self.in_declaration = false,
                _ => {}
            }
        }
        if let Some(LexerMode::Hole { close, depth }) = self.stack.last_mut() {
            let open = if *close == b')' { b'(' } else { b'{' };
            if byte == open {
                *depth = depth.saturating_add(1);
            } else if byte == *close {
                match depth.checked_sub(1) {
                    Some(less) => *depth = less,
                    None => {
                        self.stack.pop();
                        self.after_value = true;
                        self.at_command = false;
                    }
                }
            }
        }
        let role = match byte {
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b';' | b',' | b'.' | b':' => Syntax::Punctuation,
            _ => Syntax::Operator,
        };
        line.take(1, Some(role));
    }

    /// Reads a token of a language's special syntax; returns false if there is none.
    fn is_special(&mut self, line: &mut Line<'_>, byte: u8, first: bool) -> bool {
        let rules = self.rules;
        let next = line.byte(1);
        let word = |offset: usize| line.run(offset, |byte| rules.is_word(byte));
        let name_follows = next.is_some_and(|next| next.is_ascii_alphabetic() || next == b'_');
        let (length, role) = match byte {
            b'#' if rules.has(Feature::Attributes) && matches!(next, Some(b'[' | b'!')) => {
                let length = line.rest().find(']').map_or(line.rest().len(), |end| end + 1);
                (length, Syntax::Attribute)
            }
            b'#' if rules.has(Feature::Preprocessor) && first => {
                let directive = 1 + line.run(1, is_blank);
                let length = directive + word(directive);
                let is_include = line.rest()[directive..length].eq("include");
                line.take(length, Some(Syntax::Keyword));
                let blanks = line.run(0, is_blank);
                if is_include && line.byte(blanks) == Some(b'<') {
                    line.take(blanks, None);
                    line.take_rest(Some(Syntax::String));
                }
                return true;
            }
            b'#' if rules.has(Feature::Styles) => {
                (1 + word(1), if self.in_declaration { Syntax::Number } else { Syntax::Tag })
            }
            b'.' if rules.has(Feature::Styles) && name_follows && !self.in_declaration => {
                (1 + word(1), Syntax::Tag)
            }
            b'-' if rules.has(Feature::Styles) && next == Some(b'-') => (word(0), Syntax::Variable),
            b'-' if rules.has(Feature::Shell)
                && line.before().is_none_or(is_blank)
                && next.is_some_and(|next| next.is_ascii_alphanumeric() || next == b'-') =>
            {
                (
                    1 + line.run(1, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')),
                    Syntax::Attribute,
                )
            }
            b'\\' if rules.has(Feature::Shell) => (2, Syntax::Constant),
            b'@' if rules.has(Feature::Styles) && name_follows => (1 + word(1), Syntax::Keyword),
            b'@' if rules.has(Feature::Decorators) && name_follows => {
                (1 + line.run(1, |byte| rules.is_word(byte) || byte == b'.'), Syntax::Attribute)
            }
            b':' if rules.has(Feature::Symbols)
                && name_follows
                && line.before() != Some(b':')
                && !self.after_value =>
            {
                (1 + word(1), Syntax::Constant)
            }
            b'/' if rules.has(Feature::Patterns) && !self.after_value && !self.no_pattern => {
                let Some(length) = pattern(line.rest()) else {
                    self.no_pattern = true;
                    return false;
                };
                (length, Syntax::String)
            }
            b'\'' if rules.has(Feature::Lifetimes) || rules.has(Feature::Characters) => {
                match character(line.rest()) {
                    Some(length) => (length, Syntax::String),
                    None if rules.has(Feature::Lifetimes) && name_follows => (1 + word(1), Syntax::Keyword),
                    None => return false,
                }
            }
            b'<' if rules.has(Feature::Jsx)
                && !self.after_value
                && super::markup::is_element(line.rest()) =>
            {
                self.open_tag(line, true);
                return true;
            }
            _ if rules.sigils.as_bytes().contains(&byte) => match super::text::variable(line.rest(), rules) {
                Some(length) => (length, Syntax::Variable),
                None => return false,
            },
            _ => return false,
        };
        line.take(length, Some(role));
        self.after_value = true;
        self.at_command = false;
        self.expected = Expected::Anything;
        true
    }
}

/// Length of a pattern between slashes with its flags, if the line holds its end.
fn pattern(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut in_class = false;
    let mut at = 1;
    if matches!(bytes.get(1), None | Some(b' ' | b'=')) {
        return None;
    }
    loop {
        match bytes.get(at)? {
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => break,
            _ => {}
        }
        at += 1;
    }
    let flags = bytes.get(at + 1..).unwrap_or_default();
    Some(at + 1 + flags.iter().take_while(|byte| byte.is_ascii_alphabetic()).count())
}

/// Length of a character in single quotes.
fn character(rest: &str) -> Option<usize> {
    const LONGEST: usize = 12;
    let mut chars = rest.char_indices().skip(1);
    match chars.next()? {
        (_, '\\') => {
            chars.next()?;
            let (end, _) = chars.take(LONGEST).find(|(_, char)| *char == '\'')?;
            Some(end + 1)
        }
        (_, '\'') => None,
        _ => chars.next().filter(|(_, char)| *char == '\'').map(|(end, _)| end + 1),
    }
}
