//! Reading a range of lines without loading the whole file.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use tokio_util::sync::CancellationToken;

/// Number of lines between two checks for cancellation.
const LINES_PER_CHECK: usize = 4096;

/// Range of line numbers, from 1. Without `last` it extends to the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: usize,
    pub(crate) last: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The lines of the range, joined by `\n`.
    pub(crate) text: String,
    /// Number of lines read, up to the end of the range. Text after the last newline counts as a line, unless the file
    /// is empty.
    pub(crate) lines_seen: usize,
    /// First line that is left out of the text, if any.
    pub(crate) continues_at: Option<usize>,
}

/// Marker at the end of a truncated line.
const CUT: &str = " [... omitted end of long line]";

/// Size limits of an excerpt in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineLimits {
    /// Limit for all lines together.
    pub(crate) text: usize,
    /// Limit for one line; longer lines are truncated with a marker.
    pub(crate) line: usize,
}

/// Reads as many lines of the range as fit. `None` when cancelled.
pub(crate) fn read(
    mut file: impl BufRead,
    range: Range,
    limits: LineLimits,
    cancel: &CancellationToken,
) -> io::Result<Option<Excerpt>> {
    let line_limit = limits.line.min(limits.text);
    let mut text = String::new();
    let mut lines_seen = 0;
    let mut continues_at = None;
    let mut line = Vec::new();
    // The text after the last newline is visited once, as an empty line.
    let mut after_newline = false;
    while range.last.is_none_or(|last| lines_seen < last) {
        if lines_seen % LINES_PER_CHECK == 0 && cancel.is_cancelled() {
            return Ok(None);
        }
        line.clear();
        // No more of a line is held than could be shown: it may be a gigabyte.
        let piece = file.by_ref().take(line_limit as u64 + 1).read_until(b'\n', &mut line)?;
        if piece == 0 && !after_newline {
            break;
        }
        after_newline = if line.last() == Some(&b'\n') {
            line.pop();
            true
        } else {
            piece > line_limit && skip_line(&mut file, cancel)?
        };
        lines_seen += 1;
        if lines_seen < range.first {
            continue;
        }
        let is_first = lines_seen == range.first;
        let shown = shown(&line, line_limit);
        if !is_first && text.len() + 1 + shown.len() > limits.text {
            continues_at = Some(lines_seen);
            break;
        }
        if !is_first {
            text.push('\n');
        }
        text.push_str(&shown);
    }
    Ok(Some(Excerpt { text, lines_seen, continues_at }))
}

/// Decodes and truncates a line. Invalid UTF-8 is replaced.
fn shown(line: &[u8], limit: usize) -> Cow<'_, str> {
    if line.len() <= limit {
        return String::from_utf8_lossy(line);
    }
    // A character that is split by the limit is dropped.
    let whole = match std::str::from_utf8(&line[..limit]) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => limit,
    };
    Cow::Owned(String::from_utf8_lossy(&line[..whole]).into_owned() + CUT)
}

/// Skips to the next line. Returns whether a newline was found before the end of the file.
fn skip_line(file: &mut impl BufRead, cancel: &CancellationToken) -> io::Result<bool> {
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() || cancel.is_cancelled() {
            return Ok(false);
        }
        let newline = memchr::memchr(b'\n', buffer);
        let used = newline.map_or(buffer.len(), |at| at + 1);
        file.consume(used);
        if newline.is_some() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &str, first: usize, last: Option<usize>, expected: (&str, usize, Option<usize>)) {
        let limits = LineLimits { text: 16, line: 8 };
        let excerpt = read(content.as_bytes(), Range { first, last }, limits, &CancellationToken::new());
        let (text, lines_seen, continues_at) = expected;
        let expected = Excerpt { text: text.to_owned(), lines_seen, continues_at };
        assert_eq!(excerpt.unwrap(), Some(expected), "{content:?}");
    }

    #[test]
    fn what_follows_the_last_newline_is_a_line() {
        check("", 1, None, ("", 0, None));
        check("a", 1, None, ("a", 1, None));
        check("a\n", 1, None, ("a\n", 2, None));
        check("a\n\n", 2, None, ("\n", 3, None));
        check("a\nb\n", 2, Some(2), ("b", 2, None));
        check("a\nb\n", 9, Some(10), ("", 3, None));
    }

    #[test]
    fn lines_are_given_as_far_as_they_fit() {
        check("12345678\n1234567\n", 1, Some(2), ("12345678\n1234567", 2, None));
        check("12345678\n12345678\n9\n", 1, None, ("12345678", 2, Some(2)));
    }

    #[test]
    fn a_long_line_is_cut_with_a_mark() {
        let cut = "12345678 [... omitted end of long line]";
        check("123456789abc\nnext\n", 1, Some(1), (cut, 1, None));
        check("123456789abc\nnext\n", 1, None, (cut, 2, Some(2)));
        check("123456789abc\nnext\n", 2, None, ("next\n", 3, None));
        check("123456789abc", 2, None, ("", 1, None));
        check("1234567\u{e9}xyz", 1, None, ("1234567 [... omitted end of long line]", 1, None));
    }

    #[test]
    fn a_cancelled_reading_gives_nothing() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let limits = LineLimits { text: 8, line: 8 };
        assert_eq!(read(b"a".as_slice(), Range { first: 1, last: None }, limits, &cancel).unwrap(), None);
    }
}
