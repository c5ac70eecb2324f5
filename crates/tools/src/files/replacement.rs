//! Replacing one piece of a file's content, whatever its line endings. Pure.
//!
//! Models write `\n`. In a file with `\r\n` those match, and the lines that are written get the ending of the place
//! they go to; every byte outside that place stays as it was, including a byte order mark and bytes that are no UTF-8.

use memchr::memmem::Finder;

/// Places listed when a text is found more than once.
const PLACES_LISTED: usize = 100;

/// Error of a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mismatch {
    NotFound,
    /// The lines (from 1) of the places found.
    Ambiguous(Vec<Lines>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Replaces the one occurrence of `old`, which is not empty.
pub(crate) fn replace_once(content: &[u8], old: &str, new: &str) -> Result<Vec<u8>, Mismatch> {
    let flat = Flat::of(content);
    if flat.returns.is_empty() {
        return match find_once(content, old.as_bytes()) {
            Ok(start) => Ok(splice(content, start..start + old.len(), new)),
            // The model wrote endings that the file does not have.
            Err(Mismatch::NotFound) if old.contains("\r\n") => {
                let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
                let start = find_once(content, old.as_bytes())?;
                Ok(splice(content, start..start + old.len(), &new))
            }
            Err(mismatch) => Err(mismatch),
        };
    }
    let old = old.replace("\r\n", "\n");
    let start = find_once(&flat.text, old.as_bytes())?;
    let place = flat.original(start)..flat.original(start + old.len());
    let new = new.replace("\r\n", "\n");
    let new = if flat.has_returns_at(&content[place.clone()]) { new.replace('\n', "\r\n") } else { new };
    Ok(splice(content, place, &new))
}

/// Content without the carriage returns of its line endings.
struct Flat {
    text: Vec<u8>,
    /// The positions in `text` of newlines that had one.
    returns: Vec<usize>,
    newlines: usize,
}

impl Flat {
    fn of(content: &[u8]) -> Self {
        let mut flat = Self { text: Vec::with_capacity(content.len()), returns: Vec::new(), newlines: 0 };
        for &byte in content {
            if byte == b'\n' {
                flat.newlines += 1;
                if flat.text.last() == Some(&b'\r') {
                    flat.text.pop();
                    flat.returns.push(flat.text.len());
                }
            }
            flat.text.push(byte);
        }
        flat
    }

    /// The position in the content of a position in the flat text.
    fn original(&self, position: usize) -> usize {
        position + self.returns.partition_point(|&newline| newline < position)
    }

    /// Whether lines at `place` end in `\r\n`: as its own do, or if it has none, as most of the file's do.
    fn has_returns_at(&self, place: &[u8]) -> bool {
        match place.iter().position(|&byte| byte == b'\n') {
            Some(newline) => newline > 0 && place[newline - 1] == b'\r',
            None => self.returns.len() * 2 >= self.newlines,
        }
    }
}

fn find_once(text: &[u8], wanted: &[u8]) -> Result<usize, Mismatch> {
    let finder = Finder::new(wanted);
    let start = finder.find(text).ok_or(Mismatch::NotFound)?;
    // From the next byte on, so that places which overlap count as two.
    let mut next = finder.find(&text[start + 1..]).map(|offset| start + 1 + offset);
    if next.is_none() {
        return Ok(start);
    }
    let mut places = vec![start];
    while let Some(place) = next.filter(|_| places.len() < PLACES_LISTED) {
        places.push(place);
        next = finder.find(&text[place + 1..]).map(|offset| place + 1 + offset);
    }
    Err(Mismatch::Ambiguous(lines_of(text, &places, wanted)))
}

fn lines_of(text: &[u8], places: &[usize], wanted: &[u8]) -> Vec<Lines> {
    let body = wanted.strip_suffix(b"\n").unwrap_or(wanted);
    let span = newlines(body);
    let (mut line, mut counted) = (1, 0);
    places
        .iter()
        .map(|&place| {
            line += newlines(&text[counted..place]);
            counted = place;
            Lines { first: line, last: line + span }
        })
        .collect()
}

fn newlines(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

fn splice(content: &[u8], place: std::ops::Range<usize>, new: &str) -> Vec<u8> {
    [&content[..place.start], new.as_bytes(), &content[place.end..]].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(content: &str, old: &str, new: &str, expected: &str) {
        let replaced =
            replace_once(content.as_bytes(), old, new).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(replaced.as_deref(), Ok(expected));
    }

    #[test]
    fn one_occurrence_is_replaced() {
        check("one\ntwo\n", "two", "TWO", "one\nTWO\n");
        check("no newline", "newline", "NL", "no NL");
        check("\u{feff}bom\n", "bom", "BOM", "\u{feff}BOM\n");
        check("a\n", "a\n", "$& $1\n", "$& $1\n");
        check("naïve 😀\n", "😀", "ß", "naïve ß\n");
    }

    #[test]
    fn line_endings_of_the_place_are_kept() {
        check("a\r\nb\r\nc\r\n", "a\nb", "A\nB\nB2", "A\r\nB\r\nB2\r\nc\r\n");
        check("a\r\nb\r\nc\r\n", "a\r\nb", "A\r\nB", "A\r\nB\r\nc\r\n");
        check("a\r\nb\r\n", "\nb", "\nB", "a\r\nB\r\n");
        check("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n");
        check("m\r\nline\nother\r\n", "line\nother", "L\nO", "m\r\nL\nO\r\n");
        check("a\nb\n", "a\r\nb", "A\r\nB", "A\nB\n");
        check("a\nb\n", "b", "b\r\nc", "a\nb\r\nc\n");
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        assert_eq!(replace_once(b"\xff\xfeabc\n", "abc", "ABC"), Ok(b"\xff\xfeABC\n".to_vec()));
    }

    #[test]
    fn several_occurrences_are_listed_by_line() {
        let check = |content: &str, old: &str, expected: &[(usize, usize)]| {
            let lines = expected.iter().map(|&(first, last)| Lines { first, last }).collect();
            assert_eq!(replace_once(content.as_bytes(), old, "x"), Err(Mismatch::Ambiguous(lines)));
        };
        check("two\nx\ntwo\n", "two", &[(1, 1), (3, 3)]);
        check("a\nb\na\nb\n", "a\nb", &[(1, 2), (3, 4)]);
        check("a\r\nb\r\na\r\nb\r\n", "a\nb\n", &[(1, 2), (3, 4)]);
        check("aaa", "aa", &[(1, 1), (1, 1)]);
    }

    #[test]
    fn what_is_not_there_is_not_replaced() {
        assert_eq!(replace_once(b"abc", "x", "y"), Err(Mismatch::NotFound));
        assert_eq!(replace_once(b"", "x", "y"), Err(Mismatch::NotFound));
    }

    proptest! {
        /// Replacing a unique piece there and back gives the file, byte for byte, when its endings are all alike.
        #[test]
        fn a_replacement_can_be_undone(
            before in "[a-c\n]{0,20}", after in "[a-c\n]{0,20}", old in "[x-z\n]{0,8}Q", new in "[x-z\n]{0,8}R",
            crlf: bool,
        ) {
            let content = format!("{before}{old}{after}");
            let content = if crlf { content.replace('\n', "\r\n") } else { content };
            let changed = replace_once(content.as_bytes(), &old, &new).unwrap();
            // A file whose every newline was in the replaced piece has no endings left to tell its kind by.
            prop_assume!(!crlf || changed.windows(2).any(|pair| pair == b"\r\n") || !old.contains('\n'));
            let back = replace_once(&changed, &new, &old).unwrap();
            prop_assert_eq!(String::from_utf8(back).unwrap(), content);
        }
    }
}
