//! Replacing one piece of a file's content, whatever its line endings. Pure.
//!
//! Models write `\n`. In a file with `\r\n` those match, and the lines that are written get the ending of the place
//! they go to; every byte outside that place stays as it was, including a byte order mark and bytes that are no UTF-8.
//!
//! A text that is not there exactly is looked for in forgiving forms. Only what is found in one place is replaced.

use std::ops::Range;

use memchr::memmem::Finder;

use super::forgiving::{self, Form, NearMatch};

/// Places listed when a text is found more than once.
pub(super) const PLACES_LISTED: usize = 100;

/// Bytes of a file in which forgiving forms are looked for.
const FORGIVING_LIMIT: usize = 4 * 1024 * 1024;

/// A replacement that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    /// The whole content, as it is now.
    pub(crate) content: Vec<u8>,
    /// How the replaced text differs from the one that was asked for.
    pub(crate) form: Form,
    /// The lines that it was on.
    pub(crate) lines: Lines,
}

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

impl Lines {
    /// `7` or `7-9`.
    pub(crate) fn range(&self) -> String {
        match self.first == self.last {
            true => self.first.to_string(),
            false => format!("{}-{}", self.first, self.last),
        }
    }

    /// `line 7` or `lines 7-9`.
    pub(crate) fn told(&self) -> String {
        format!("{} {}", if self.first == self.last { "line" } else { "lines" }, self.range())
    }
}

/// Replaces the one occurrence of `old`, which is not empty.
pub(crate) fn replace_once(content: &[u8], old: &str, new: &str) -> Result<Replacement, Mismatch> {
    let flat = Flat::of(content);
    if flat.returns.is_empty() {
        match find_once(content, old.as_bytes()) {
            Ok(start) => {
                let place = start..start + old.len();
                let lines = lines_at(content, &place);
                return Ok(Replacement { content: splice(content, place, new), form: Form::Exact, lines });
            }
            Err(Mismatch::NotFound) => {}
            Err(mismatch) => return Err(mismatch),
        }
    }
    // In the endings of the flat text, which may not be those that the model wrote.
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    let (form, place, new) = match find_once(&flat.text, old.as_bytes()) {
        Ok(start) => (Form::Exact, start..start + old.len(), new),
        Err(Mismatch::NotFound) => find_forgiving(&flat.text, &old, &new)?,
        Err(mismatch) => return Err(mismatch),
    };
    let lines = lines_at(&flat.text, &place);
    let place = flat.original(place.start)..flat.original(place.end);
    let new = if flat.has_returns_at(&content[place.clone()]) { new.replace('\n', "\r\n") } else { new };
    Ok(Replacement { content: splice(content, place, &new), form, lines })
}

fn find_forgiving(text: &[u8], old: &str, new: &str) -> Result<(Form, Range<usize>, String), Mismatch> {
    let text = match std::str::from_utf8(text) {
        Ok(text) if text.len() <= FORGIVING_LIMIT => text,
        _ => return Err(Mismatch::NotFound),
    };
    let mut found = forgiving::find(text, old, new);
    match found.pop() {
        None => Err(Mismatch::NotFound),
        Some(NearMatch { form, place, new }) if found.is_empty() => {
            new.map(|new| (form, place, new)).ok_or(Mismatch::NotFound)
        }
        Some(last) => {
            let places = found.iter().chain([&last]).take(PLACES_LISTED);
            Err(Mismatch::Ambiguous(places.map(|found| lines_at(text.as_bytes(), &found.place)).collect()))
        }
    }
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
            None => !self.returns.is_empty() && self.returns.len() * 2 >= self.newlines,
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

/// The lines of a place. A newline at its end does not begin another one.
fn lines_at(text: &[u8], place: &Range<usize>) -> Lines {
    let first = 1 + newlines(&text[..place.start]);
    let body = &text[place.clone()];
    Lines { first, last: first + newlines(body.strip_suffix(b"\n").unwrap_or(body)) }
}

fn splice(content: &[u8], place: Range<usize>, new: &str) -> Vec<u8> {
    [&content[..place.start], new.as_bytes(), &content[place.end..]].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(content: &str, old: &str, new: &str, expected: &str) {
        let replaced = replace_once(content.as_bytes(), old, new)
            .map(|replacement| String::from_utf8(replacement.content).unwrap());
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
        let replaced = replace_once(b"\xff\xfeabc\n", "abc", "ABC").unwrap();
        assert_eq!(replaced.content, b"\xff\xfeABC\n");
        assert_eq!(replace_once(b"\xff\xfe  abc\n", "\tabc\n", "ABC"), Err(Mismatch::NotFound));
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
    fn a_text_that_is_remembered_badly_is_replaced_where_it_is() {
        check("\u{feff}if x {\r\n    y\r\n}\r\n", "  if x {\n      y\n  }\n", "  z\n", "\u{feff}z\r\n");
        let replaced = replace_once(b"a\n  b\n  c\nd\n", "b\nc\n", "B\n").unwrap();
        assert_eq!((replaced.form, replaced.lines), (Form::Indentation, Lines { first: 2, last: 3 }));
        assert_eq!(replaced.content, b"a\n  B\nd\n");
    }

    #[test]
    fn a_text_that_is_remembered_badly_and_there_twice_is_not_replaced() {
        let lines = vec![Lines { first: 1, last: 1 }, Lines { first: 3, last: 3 }];
        let ambiguous = Err(Mismatch::Ambiguous(lines));
        assert_eq!(replace_once(b" a b\nc\n\ta b\n", "    a b", "x"), ambiguous);
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
            let changed = replace_once(content.as_bytes(), &old, &new).unwrap().content;
            // A file whose every newline was in the replaced piece has no endings left to tell its kind by.
            prop_assume!(!crlf || changed.windows(2).any(|pair| pair == b"\r\n") || !old.contains('\n'));
            let back = replace_once(&changed, &new, &old).unwrap().content;
            prop_assert_eq!(String::from_utf8(back).unwrap(), content);
        }
    }
}
