//! Words of source code: keywords, and names by what is around them.

use super::code::{Code, Expected};
use super::line::Line;
use super::rules::{Case, Feature};
use crate::theme::Syntax;

impl Code {
    /// Reads a word, or the string whose prefix it is.
    pub(super) fn word(&mut self, line: &mut Line<'_>, first: bool) {
        // The first byte was found to start a word.
        let mut length = 1 + line.run(1, |byte| self.rules.is_word(byte));
        // A mark that may be in a word but ends it here belongs to what follows: `x.`, `a-`.
        while length > 1 && line.byte(length - 1).is_some_and(|last| matches!(last, b'.' | b'-' | b':')) {
            length -= 1;
        }
        let word = &line.rest()[..length];
        if self.prefixed_text(line, word) {
            return;
        }
        let next = line.byte(length);
        if self.rules.has(Feature::Macros) && next == Some(b'!') && line.byte(length + 1) != Some(b'=') {
            self.after_value = false;
            return line.take(length + 1, Some(Syntax::Function));
        }
        let role = self.role(line, word, first);
        self.expected = match role {
            Some(Syntax::Keyword) if self.rules.functions.contains(&word) => Expected::Function,
            Some(Syntax::Keyword) if self.rules.definitions.contains(&word) => Expected::Type,
            _ => Expected::Anything,
        };
        self.after_value = role != Some(Syntax::Keyword);
        if self.rules.has(Feature::Shell) {
            self.at_command =
                role == Some(Syntax::Keyword) && !matches!(word, "in" | "for" | "case" | "function");
        }
        line.take(length, role);
    }

    /// Role of a word, which is the rest of the line up to its length.
    fn role(&self, line: &Line<'_>, word: &str, first: bool) -> Option<Syntax> {
        let rules = self.rules;
        let next = line.byte(word.len());
        let next_token = line.after_blanks(word.len());
        let is_member = line.before() == Some(b'.')
            && line.at.checked_sub(2).and_then(|at| line.text.as_bytes().get(at)) != Some(&b'.');
        let listed = |words: &[&str]| {
            if rules.case == Case::Ignored {
                words.iter().any(|known| known.eq_ignore_ascii_case(word))
            } else {
                words.contains(&word)
            }
        };
        if rules.has(Feature::Styles) {
            return self.style_role(line, word);
        }
        let is_key = next_token.is_some_and(|next| rules.keys.as_bytes().contains(&next))
            && !(next_token == Some(b'=') && line.rest()[word.len()..].trim_start().starts_with("=="));
        if is_key {
            return Some(Syntax::Attribute);
        }
        if rules.has(Feature::Shell) && self.at_command && next == Some(b'=') {
            return Some(Syntax::Variable);
        }
        if self.expected == Expected::Function && !rules.has(Feature::Shell) && next != Some(b'.') {
            return Some(if listed(rules.keywords) { Syntax::Keyword } else { Syntax::Function });
        }
        let keywords_here = if rules.has(Feature::Instructions) {
            first || word == "AS"
        } else if rules.has(Feature::Shell) {
            self.at_command || matches!(word, "in" | "do" | "then")
        } else {
            !is_member
        };
        if keywords_here && listed(rules.keywords) {
            return Some(Syntax::Keyword);
        }
        if listed(rules.constants) && !is_member {
            return Some(Syntax::Constant);
        }
        if listed(rules.types) && !is_member {
            return Some(Syntax::Type);
        }
        if self.expected == Expected::Type {
            return Some(Syntax::Type);
        }
        if rules.has(Feature::Shell) {
            let is_command = self.at_command && next != Some(b')') || next == Some(b'(');
            let is_cmdlet = word.contains('-') && word.starts_with(|first: char| first.is_ascii_uppercase());
            return (is_command || is_cmdlet).then_some(Syntax::Function);
        }
        self.role_by_form(word, next)
    }

    fn role_by_form(&self, word: &str, next: Option<u8>) -> Option<Syntax> {
        let call = (next == Some(b'(')).then_some(Syntax::Function);
        match self.rules.case {
            Case::Meaningless | Case::Ignored => call,
            Case::TypesAndCalls if call.is_some() => call,
            Case::Types | Case::TypesAndCalls => {
                let mut letters = word.chars().filter(|char| *char != '_');
                let capital = letters.next().is_some_and(char::is_uppercase);
                let capitals = capital && word.len() > 1 && !word.contains(char::is_lowercase);
                match (capital, capitals) {
                    (true, true) if call.is_none() => Some(Syntax::Constant),
                    (true, _) => Some(Syntax::Type),
                    _ => call,
                }
            }
        }
    }

    fn style_role(&self, line: &Line<'_>, word: &str) -> Option<Syntax> {
        if line.byte(word.len()) == Some(b'(') {
            return Some(Syntax::Function);
        }
        if self.in_declaration {
            return None;
        }
        let is_property =
            line.after_blanks(word.len()) == Some(b':') && self.last_brace.is_none_or(|open| open < line.at);
        Some(if is_property { Syntax::Attribute } else { Syntax::Tag })
    }
}
