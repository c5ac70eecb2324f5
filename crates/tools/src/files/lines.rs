//! Some lines of a file, read without holding the rest of it.

use std::io::{self, BufRead, Read};

use tokio_util::sync::CancellationToken;

/// Lines between two looks at the cancellation.
const LINES_PER_CHECK: usize = 4096;

/// Lines counted from 1. No end is the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: usize,
    pub(crate) last: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The lines of the range, joined by `\n`.
    pub(crate) text: String,
    /// Lines met, up to the end of the range. What follows the last newline is a line, unless the file is empty.
    pub(crate) lines_seen: usize,
    /// First line that is left out of the text, if any.
    pub(crate) continues_at: Option<usize>,
}

/// Reads as many whole lines of the range as fit into `limit` bytes; a first line that does not fit is cut. `None` when
/// cancelled.
pub(crate) fn read(
    mut file: impl BufRead,
    range: Range,
    limit: usize,
    cancel: &CancellationToken,
) -> io::Result<Option<Excerpt>> {
    let mut text = Vec::new();
    let mut lines_seen = 0;
    let mut continues_at = None;
    let mut line = Vec::new();
    // What follows the last newline is met once, as an empty line.
    let mut after_newline = false;
    while range.last.is_none_or(|last| lines_seen < last) {
        if lines_seen % LINES_PER_CHECK == 0 && cancel.is_cancelled() {
            return Ok(None);
        }
        line.clear();
        // No more of a line is held than could be shown: it may be a gigabyte.
        let piece = file.by_ref().take(limit as u64 + 1).read_until(b'\n', &mut line)?;
        if piece == 0 && !after_newline {
            break;
        }
        after_newline = if line.last() == Some(&b'\n') {
            line.pop();
            true
        } else {
            piece > limit && skip_line(&mut file, cancel)?
        };
        lines_seen += 1;
        if lines_seen == range.first {
            if line.len() > limit {
                continues_at = Some(lines_seen + 1);
                line.truncate(limit);
            }
            text.extend_from_slice(&line);
        } else if lines_seen > range.first {
            if continues_at.is_some() || text.len() + 1 + line.len() > limit {
                continues_at = continues_at.or(Some(lines_seen));
                break;
            }
            text.push(b'\n');
            text.extend_from_slice(&line);
        }
    }
    Ok(Some(Excerpt { text: String::from_utf8_lossy(&text).into_owned(), lines_seen, continues_at }))
}

/// Whether the line ended before the file did.
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
        let excerpt = read(content.as_bytes(), Range { first, last }, 8, &CancellationToken::new());
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
    fn whole_lines_are_given_as_far_as_they_fit() {
        check("1234\n567\n", 1, Some(2), ("1234\n567", 2, None));
        check("1234\n5678\n9\n", 1, None, ("1234", 2, Some(2)));
    }

    #[test]
    fn a_line_that_cannot_fit_is_cut_and_passed() {
        check("123456789abc\nnext\n", 1, Some(1), ("12345678", 1, Some(2)));
        check("123456789abc\nnext\n", 1, None, ("12345678", 2, Some(2)));
        check("123456789abc\nnext\n", 2, None, ("next\n", 3, None));
        check("123456789abc", 2, None, ("", 1, None));
    }

    #[test]
    fn a_cancelled_reading_gives_nothing() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert_eq!(read(b"a".as_slice(), Range { first: 1, last: None }, 8, &cancel).unwrap(), None);
    }
}
