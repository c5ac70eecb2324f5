//! Markup: documents of HTML and XML, and the elements within JavaScript.

use super::code::{Code, LexerMode};
use super::line::{Line, is_blank};
use super::rules::{Feature, Holes, Quote, quote};
use super::{Lexer, languages};
use crate::theme::Syntax;

/// Quotes of attributes.
static QUOTES: [Quote; 2] = [quote("\"").raw().over_lines(), quote("'").raw().over_lines()];
/// Bytes of the longest name of a character, with its marks.
const LONGEST_ENTITY: usize = 12;

/// Tag that is being read.
#[derive(Debug, Clone)]
pub(super) struct Tag {
    jsx: bool,
    is_closing: bool,
    /// Whether the name was read.
    is_named: bool,
    /// Language and end of the content, if it is not markup.
    foreign: Option<(&'static str, &'static str)>,
}

/// Whether an element starts here, and not a comparison or a type argument.
pub(super) fn is_element(rest: &str) -> bool {
    let bytes = rest.as_bytes();
    match bytes.get(1) {
        Some(b'>' | b'/') => true,
        Some(byte) if byte.is_ascii_alphabetic() => {
            let name = bytes[1..].iter().take_while(|byte| is_name(**byte)).count();
            !matches!(bytes.get(1 + name), Some(b','))
        }
        _ => false,
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'_' | b':' | b'.' | b'@' | b'#')
        || !byte.is_ascii()
}

impl Code {
    /// Reads `<` or `</` and goes on with the tag.
    pub(super) fn open_tag(&mut self, line: &mut Line<'_>, jsx: bool) {
        let is_closing = line.byte(1) == Some(b'/');
        let marks = 1 + usize::from(matches!(line.byte(1), Some(b'/' | b'!' | b'?')));
        line.take(marks, Some(Syntax::Tag));
        self.push(LexerMode::Tag(Tag { jsx, is_closing, is_named: false, foreign: None }));
    }

    /// Reads text between tags.
    pub(super) fn content(&mut self, line: &mut Line<'_>, jsx: bool) {
        let plain = line.run(0, |byte| !matches!(byte, b'<' | b'&' | b'{'));
        line.take(plain, None);
        match line.byte(0) {
            Some(b'<') => {
                if let Some(block) =
                    self.rules.blocks.iter().find(|block| !jsx && line.starts_with(block.open))
                {
                    line.take(block.open.len(), Some(Syntax::Comment));
                    self.push(LexerMode::Comment { block, depth: 0 });
                } else if is_element(line.rest()) || !jsx && matches!(line.byte(1), Some(b'!' | b'?')) {
                    self.open_tag(line, jsx);
                } else {
                    line.take(1, None);
                }
            }
            Some(b'&') => {
                let name = line.run(1, |byte| byte.is_ascii_alphanumeric() || byte == b'#');
                let is_entity = name > 0 && name < LONGEST_ENTITY && line.byte(1 + name) == Some(b';');
                line.take(if is_entity { name + 2 } else { 1 }, is_entity.then_some(Syntax::Constant));
            }
            Some(b'{') if jsx => self.open_braces(line),
            Some(_) => line.take(1, None),
            None => {}
        }
    }

    fn open_braces(&mut self, line: &mut Line<'_>) {
        line.take(1, Some(Syntax::Punctuation));
        self.after_value = false;
        self.push(LexerMode::Hole { close: b'}', depth: 0 });
    }

    /// Reads a token of a tag.
    pub(super) fn tag(&mut self, line: &mut Line<'_>) {
        let Some(LexerMode::Tag(tag)) = self.stack.last_mut() else { return };
        let Some(byte) = line.byte(0) else { return };
        if is_blank(byte) {
            let length = line.run(0, is_blank);
            return line.take(length, None);
        }
        match byte {
            b'>' => {
                line.take(1, Some(Syntax::Tag));
                self.end_tag();
            }
            b'/' | b'?' if line.byte(1) == Some(b'>') => {
                line.take(2, Some(Syntax::Tag));
                self.stack.pop();
                self.after_value = true;
            }
            b'{' if tag.jsx => self.open_braces(line),
            b'=' => line.take(1, Some(Syntax::Operator)),
            b'"' | b'\'' => {
                let quote = if byte == b'"' { &QUOTES[0] } else { &QUOTES[1] };
                line.take(1, Some(Syntax::String));
                self.push(LexerMode::Text { quote, raw: true, holes: Holes::None });
            }
            _ if is_name(byte) => {
                let length = line.run(0, is_name);
                let name = &line.rest()[..length];
                let role = if tag.is_named { Syntax::Attribute } else { Syntax::Tag };
                if !tag.is_named && !tag.is_closing && !tag.jsx {
                    tag.foreign = foreign(name).filter(|_| self.rules.has(Feature::Document));
                }
                tag.is_named = true;
                line.take(length, Some(role));
            }
            _ => line.take(1, None),
        }
    }

    /// Leaves a tag for the content after it.
    fn end_tag(&mut self) {
        let Some(LexerMode::Tag(tag)) = self.stack.pop() else { return };
        if let Some((language, end)) = tag.foreign {
            if let Some(language) = languages::by_name(language) {
                self.push(LexerMode::Foreign { lexer: Box::new(Lexer::new(language)), end });
            }
            return;
        }
        if !tag.jsx {
            return;
        }
        match (self.stack.last_mut(), tag.is_closing) {
            (Some(LexerMode::Content { depth, .. }), false) => *depth = depth.saturating_add(1),
            (Some(LexerMode::Content { depth, .. }), true) => match depth.checked_sub(1) {
                Some(less) => *depth = less,
                None => {
                    self.stack.pop();
                    self.after_value = true;
                }
            },
            (_, false) => self.push(LexerMode::Content { jsx: true, depth: 0 }),
            (_, true) => self.after_value = true,
        }
    }

    /// Reads another language up to its end mark.
    pub(super) fn foreign(&mut self, line: &mut Line<'_>) {
        let Some(LexerMode::Foreign { lexer, end }) = self.stack.last_mut() else { return };
        let rest = line.rest();
        // The mark is ASCII, so that the offsets are those of the line.
        let until = rest.to_ascii_lowercase().find(*end);
        for (range, role) in lexer.line(&rest[..until.unwrap_or(rest.len())]) {
            line.take(range.len(), role);
        }
        if until.is_some() {
            self.stack.pop();
        }
    }
}

/// Language and end of the content of an element.
fn foreign(name: &str) -> Option<(&'static str, &'static str)> {
    if name.eq_ignore_ascii_case("script") {
        Some(("tsx", "</script"))
    } else if name.eq_ignore_ascii_case("style") {
        Some(("css", "</style"))
    } else {
        None
    }
}
