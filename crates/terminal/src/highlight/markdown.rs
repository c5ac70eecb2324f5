//! Lexer of Markdown as source, with the languages of its fenced code.

use super::line::{Line, is_blank};
use super::{Lexer, languages};
use crate::theme::Syntax;

/// Fenced code that is open.
#[derive(Debug, Clone)]
struct Fence {
    mark: u8,
    length: usize,
    lexer: Option<Box<Lexer>>,
}

/// Lexer with the state that carries over from line to line.
#[derive(Debug, Clone, Default)]
pub(super) struct Markdown {
    fence: Option<Fence>,
    /// Whether code in it is highlighted. Markdown within Markdown is plain code.
    is_inner: bool,
}

impl Markdown {
    pub(super) fn line(&mut self, line: &mut Line<'_>) {
        let indent = line.run(0, is_blank);
        let mark = line.byte(indent).unwrap_or_default();
        let marks = line.run(indent, |byte| byte == mark);
        let after = line.text.get(indent + marks..).unwrap_or_default();
        let is_fence = matches!(mark, b'`' | b'~') && marks >= 3;
        match &mut self.fence {
            Some(fence)
                if is_fence && fence.mark == mark && marks >= fence.length && after.trim().is_empty() =>
            {
                self.fence = None;
                line.take_rest(Some(Syntax::Punctuation));
            }
            Some(Fence { lexer: Some(lexer), .. }) => {
                for (range, role) in lexer.line(line.text) {
                    line.take(range.len(), role);
                }
            }
            Some(_) => line.take_rest(Some(Syntax::String)),
            None if is_fence && !(mark == b'`' && after.contains('`')) => {
                let language = languages::by_info(after.trim()).filter(|_| !self.is_inner);
                let lexer = language.map(|language| Box::new(Lexer::inner(language)));
                self.fence = Some(Fence { mark, length: marks, lexer });
                line.take(indent + marks, Some(Syntax::Punctuation));
                line.take_rest(Some(Syntax::Attribute));
            }
            None => text(line, indent),
        }
    }

    pub(super) fn inner() -> Self {
        Self { fence: None, is_inner: true }
    }
}

/// Reads a line of prose.
fn text(line: &mut Line<'_>, indent: usize) {
    let rest = &line.text[indent..];
    let hashes = rest.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&hashes) && rest[hashes..].bytes().next().is_none_or(is_blank) {
        return line.take_rest(Some(Syntax::Heading));
    }
    line.take(indent, None);
    if rest.starts_with('>') {
        let length = line.run(0, |byte| byte == b'>' || is_blank(byte));
        line.take(length, Some(Syntax::Comment));
    }
    let digits = line.run(0, |byte| byte.is_ascii_digit());
    let marker = match line.byte(digits) {
        Some(b'-' | b'*' | b'+') if digits == 0 => 1,
        Some(b'.' | b')') if digits > 0 => digits + 1,
        _ => 0,
    };
    if marker > 0 && line.byte(marker).is_none_or(is_blank) {
        line.take(marker, Some(Syntax::Keyword));
    }
    while !line.is_read() {
        inline(line);
    }
}

fn inline(line: &mut Line<'_>) {
    let plain = line.run(0, |byte| !matches!(byte, b'`' | b'[' | b'\\' | b'*' | b'<'));
    line.take(plain, None);
    let Some(byte) = line.byte(0) else { return };
    match byte {
        b'`' => {
            let marks = line.run(0, |byte| byte == b'`');
            let mark = &line.rest()[..marks];
            match line.rest()[marks..].find(mark) {
                Some(length) => line.take(length + 2 * marks, Some(Syntax::String)),
                // No other run can close either, but a shorter one might: the rest is searched for that only once.
                None => line.take_rest(None),
            }
        }
        b'[' => {
            let text = line.run(0, |byte| !matches!(byte, b']' | b'`'));
            if line.byte(text) != Some(b']') || line.byte(text + 1) != Some(b'(') {
                return line.take(text, None);
            }
            let target = line.run(text + 2, |byte| byte != b')');
            line.take(text + 1, Some(Syntax::Function));
            line.take(target + 2, Some(Syntax::String));
        }
        b'\\' => line.take(2, Some(Syntax::Constant)),
        b'*' => {
            let marks = line.run(0, |byte| byte == b'*');
            line.take(marks, Some(Syntax::Operator));
        }
        b'<' => {
            let end = line.run(0, |byte| byte != b'>' && !is_blank(byte));
            let is_tag = line.byte(1).is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'/');
            line.take(if is_tag { end + 1 } else { 1 }, is_tag.then_some(Syntax::Tag));
        }
        _ => line.take(1, None),
    }
}
