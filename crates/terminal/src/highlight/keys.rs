//! Starts of lines that have a meaning of their own: keys, sections, targets.

use super::code::{Code, LexerMode};
use super::line::{Line, is_blank};
use super::rules::Feature;
use crate::theme::Syntax;

impl Code {
    /// Reads what a line of the language starts with, if that has a meaning of its own.
    pub(super) fn line_keys(&mut self, line: &mut Line<'_>) {
        if self.rules.has(Feature::Sections) && line.starts_with("[") {
            let end = line.text.rfind(']').map_or(line.text.len(), |end| end + 1);
            line.take(end, Some(Syntax::Heading));
        } else if self.rules.has(Feature::Targets) {
            target(line);
        } else if self.rules.has(Feature::Yaml) {
            self.yaml(line);
        }
    }

    fn yaml(&mut self, line: &mut Line<'_>) {
        let indent = line.run(0, |byte| byte == b' ');
        if line.text == "---" || line.text == "..." {
            return line.take_rest(Some(Syntax::Punctuation));
        }
        line.take(indent, None);
        while line.byte(0) == Some(b'-') && line.byte(1).is_none_or(is_blank) {
            line.take(1, Some(Syntax::Punctuation));
            let blanks = line.run(0, is_blank);
            line.take(blanks, None);
        }
        if let Some(length) = yaml_key(line.rest()) {
            line.take(length, Some(Syntax::Attribute));
            line.take(1, Some(Syntax::Punctuation));
            let blanks = line.run(0, is_blank);
            line.take(blanks, None);
        }
        let scalar = line.rest().split(" #").next().unwrap_or_default().trim_end();
        match scalar.bytes().next() {
            Some(b'|' | b'>') => {
                line.take(scalar.len(), Some(Syntax::Operator));
                self.push(LexerMode::Indented { indent });
            }
            None | Some(b'"' | b'\'' | b'[' | b'{' | b'&' | b'*' | b'!' | b'#' | b'%' | b'@') => {}
            Some(_) if self.rules.constants.contains(&scalar) => {
                line.take(scalar.len(), Some(Syntax::Constant));
            }
            Some(_) if scalar.parse::<f64>().is_ok() => line.take(scalar.len(), Some(Syntax::Number)),
            Some(_) => line.take(scalar.len(), Some(Syntax::String)),
        }
    }

    /// Goes on with text that is indented deeper than its key, or leaves it.
    pub(super) fn indented(&mut self, line: &mut Line<'_>) {
        let Some(LexerMode::Indented { indent }) = self.stack.last() else { return };
        if line.text.trim().is_empty() || line.run(0, |byte| byte == b' ') > *indent {
            return;
        }
        self.stack.pop();
        self.line_keys(line);
    }
}

/// Length of a key without quotes, which a colon and a blank follow.
fn yaml_key(rest: &str) -> Option<usize> {
    if rest.starts_with(['"', '\'', '[', '{', '#', '|', '>', '&', '*', '!']) {
        return None;
    }
    let bytes = rest.as_bytes();
    let ends = |at: &usize| bytes[*at] == b':' && bytes.get(at + 1).copied().is_none_or(is_blank);
    let end = (0..bytes.len()).find(ends)?;
    (!rest[..end].contains(" #")).then_some(end)
}

/// Reads a target or the name of a variable. Recipes start with a tab.
fn target(line: &mut Line<'_>) {
    if line.byte(0).is_none_or(|byte| is_blank(byte) || byte == b'#') {
        return;
    }
    let Some(end) = line.text.find([':', '=', '#']) else { return };
    let name = line.text[..end].trim_end_matches([' ', '?', '+', '!']).len();
    let is_variable =
        !line.text[end..].starts_with(':') || line.text[end..].trim_start_matches(':').starts_with('=');
    if line.text[end..].starts_with('#') || line.text[..name].contains(['$', '(']) {
        return;
    }
    line.take(name, Some(if is_variable { Syntax::Attribute } else { Syntax::Function }));
}
