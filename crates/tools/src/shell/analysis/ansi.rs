//! Strings in `$'…'`.

use std::iter::Peekable;
use std::str::Chars;

/// Decodes the escapes of such a string; `None` if the result is no text.
pub(super) fn decode(text: &str) -> Option<String> {
    // Escapes can write a character byte by byte.
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            push(&mut bytes, c);
            continue;
        }
        match rest.next() {
            None => push(&mut bytes, '\\'),
            Some('a') => bytes.push(0x07),
            Some('b') => bytes.push(0x08),
            Some('e' | 'E') => bytes.push(0x1b),
            Some('f') => bytes.push(0x0c),
            Some('n') => bytes.push(b'\n'),
            Some('r') => bytes.push(b'\r'),
            Some('t') => bytes.push(b'\t'),
            Some('v') => bytes.push(0x0b),
            Some(c @ ('\\' | '\'' | '"' | '?')) => push(&mut bytes, c),
            Some(c @ '0'..='7') => {
                let value = number(&mut rest, 8, 2, c.to_digit(8).unwrap_or(0));
                bytes.push((value & 0xff) as u8);
            }
            Some('x') if rest.peek().is_some_and(char::is_ascii_hexdigit) => {
                let value = number(&mut rest, 16, 2, 0);
                bytes.push((value & 0xff) as u8);
            }
            Some('u') => push(&mut bytes, char::from_u32(number(&mut rest, 16, 4, 0))?),
            Some('U') => push(&mut bytes, char::from_u32(number(&mut rest, 16, 8, 0))?),
            Some('c') => bytes.push(u8::try_from(rest.next()?).ok()? & 0x1f),
            Some(other) => {
                push(&mut bytes, '\\');
                push(&mut bytes, other);
            }
        }
    }
    // A NUL ends the string for the shell; what it does with the rest is not worth knowing.
    if bytes.contains(&0) { None } else { String::from_utf8(bytes).ok() }
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn number(rest: &mut Peekable<Chars<'_>>, radix: u32, digits: usize, start: u32) -> u32 {
    let mut value = start;
    for _ in 0..digits {
        let Some(digit) = rest.peek().and_then(|c| c.to_digit(radix)) else { break };
        rest.next();
        value = value.wrapping_mul(radix).wrapping_add(digit);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn escapes_stand_for_characters() {
        let check =
            |text: &str, expected: Option<&str>| assert_eq!(decode(text).as_deref(), expected, "{text}");
        check("plain", Some("plain"));
        check(r"\x72m", Some("rm"));
        check(r"\162\155", Some("rm"));
        check(r"r\u006d", Some("rm"));
        check(r"\U0000072m", Some("rm"));
        check(r"a\tb\nc\\d\'e", Some("a\tb\nc\\d'e"));
        check(r"\xc3\xa4", Some("ä"));
        check(r"\xff", None);
        check(r"a\0b", None);
        check(r"\q\x", Some(r"\q\x"));
        check("\\", Some("\\"));
    }
}
