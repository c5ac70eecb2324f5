//! Splitting of text into pieces, each of which is encoded on its own.
//!
//! The vocabulary publishes its rule as a regular expression with look-ahead. These functions are that expression
//! by hand, so that no regex has to be compiled; tests compare them with it on arbitrary text.

use super::class::Class;

/// Longest piece of a number, in characters.
const DIGITS: usize = 3;

/// The end of the first piece of `text` `text` is not empty.
pub(super) fn piece(text: &str) -> usize {
    word(text).or_else(|| number(text)).or_else(|| symbols(text)).unwrap_or_else(|| space(text))
}

/// A word, perhaps after one other character, perhaps with a contraction behind it:
/// `[^\r\n\p{L}\p{N}]?U*W+C?|[^\r\n\p{L}\p{N}]?U+W*C?`, where U are upper-case, W lower-case letters, marks and letters
/// without case are both, and C is a contraction.
fn word(text: &str) -> Option<usize> {
    let prefix = prefix(text);
    let starts = [prefix, 0];
    let end = starts
        .iter()
        .find_map(|start| lower_word(&text[*start..]).map(|end| start + end))
        .or_else(|| starts.iter().find_map(|start| upper_word(&text[*start..]).map(|end| start + end)))?;
    Some(end + contraction(&text[end..]).unwrap_or(0))
}

/// `U*W+`.
fn lower_word(text: &str) -> Option<usize> {
    let upper = run(text, Class::leads);
    let lower = run(&text[upper..], Class::trails);
    if lower > 0 {
        return Some(upper + lower);
    }
    // Back off to a character that is also in W: the last one without case.
    text[..upper].char_indices().rfind(|(_, c)| Class::of(*c).trails()).map(|(at, c)| at + c.len_utf8())
}

/// `U+W*`.
fn upper_word(text: &str) -> Option<usize> {
    let upper = run(text, Class::leads);
    (upper > 0).then(|| upper + run(&text[upper..], Class::trails))
}

/// The length of a first character that may stand before a word: `[^\r\n\p{L}\p{N}]?`.
fn prefix(text: &str) -> usize {
    match text.chars().next() {
        Some('\r' | '\n') | None => 0,
        Some(first) => match Class::of(first) {
            class if class.is_letter() || class == Class::Number => 0,
            _ => first.len_utf8(),
        },
    }
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)`.
fn contraction(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('\'')?;
    let mut characters = rest.chars();
    match characters.next()? {
        's' | 'S' | 't' | 'T' | 'm' | 'M' | 'd' | 'D' => Some(2),
        // The long s counts as an s in a case-insensitive rule.
        'ſ' => Some(1 + 'ſ'.len_utf8()),
        'r' | 'R' | 'v' | 'V' if matches!(characters.next(), Some('e' | 'E')) => Some(3),
        'l' | 'L' if matches!(characters.next(), Some('l' | 'L')) => Some(3),
        _ => None,
    }
}

/// `\p{N}{1,3}`.
fn number(text: &str) -> Option<usize> {
    let digits = text.chars().take(DIGITS).take_while(|c| Class::of(*c) == Class::Number);
    Some(digits.map(char::len_utf8).sum()).filter(|end| *end > 0)
}

/// ` ?[^\s\p{L}\p{N}]+[\r\n/]*`.
fn symbols(text: &str) -> Option<usize> {
    let start = usize::from(text.starts_with(' '));
    let symbols = run(&text[start..], |class| matches!(class, Class::Mark | Class::Other));
    if symbols == 0 {
        return None;
    }
    let end = start + symbols;
    let rest = &text[end..];
    Some(end + rest.len() - rest.trim_start_matches(['\r', '\n', '/']).len())
}

/// Space, which is all that is left: `\s*[\r\n]+|\s+(?!\S)|\s+`. The last space before a word stays with the word.
fn space(text: &str) -> usize {
    let end = run(text, |class| class == Class::Space);
    let space = &text[..end];
    if let Some(newline) = space.rfind(['\r', '\n']) {
        return newline + 1;
    }
    if end == text.len() {
        return end;
    }
    match space.char_indices().next_back() {
        Some((last, _)) if last > 0 => last,
        _ => end,
    }
}

/// The length of the leading characters for whose class `is` returns true.
fn run(text: &str, is: impl Fn(Class) -> bool) -> usize {
    text.find(|c| !is(Class::of(c))).unwrap_or(text.len())
}
