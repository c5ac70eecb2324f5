//! Reading what a process writes: lines of bounded length from one pipe, head and tail of another.

use std::collections::VecDeque;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest line that an agent may write.
pub const MAX_LINE: usize = 10 << 20;
/// What is read at once. There are as many of these as sessions, and a burst touches all of it for good.
const CHUNK: usize = 8 << 10;
/// What is kept of stderr: its beginning and its end.
const STDERR_HEAD: usize = 8 << 10;
const STDERR_TAIL: usize = 56 << 10;

/// Cuts bytes into lines at line feeds, and nowhere else: JSON may hold characters that others take for the end of a line.
#[derive(Debug, Default)]
pub struct LineSplitter {
    rest: Vec<u8>,
    /// How much of the rest is known to hold no line feed.
    searched: usize,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a line is longer than {MAX_LINE} bytes")]
pub struct LineTooLong;

impl LineSplitter {
    pub fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// The next whole line, without its end. Empty lines are passed over.
    pub fn next_line(&mut self) -> Result<Option<String>, LineTooLong> {
        loop {
            let Some(offset) = self.rest[self.searched..].iter().position(|byte| *byte == b'\n') else {
                self.searched = self.rest.len();
                return if self.rest.len() > MAX_LINE { Err(LineTooLong) } else { Ok(None) };
            };
            let end = self.searched + offset;
            if end > MAX_LINE {
                return Err(LineTooLong);
            }
            let line = text(&self.rest[..end]);
            self.rest.drain(..=end);
            self.searched = 0;
            if self.rest.is_empty() && self.rest.capacity() > CHUNK {
                // One long line is no reason to hold on to its room.
                self.rest = Vec::new();
            }
            if !line.trim().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// What stands behind the last line feed when nothing more comes.
    pub fn finish(&mut self) -> Option<String> {
        self.searched = 0;
        let line = text(&std::mem::take(&mut self.rest));
        (!line.trim().is_empty()).then_some(line)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(b"\r").unwrap_or(bytes)).into_owned()
}

/// The lines of a pipe.
pub(crate) struct Lines<R> {
    pipe: R,
    buffer: Box<[u8]>,
    splitter: LineSplitter,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(pipe: R) -> Self {
        Self {
            pipe,
            buffer: vec![0; CHUNK].into_boxed_slice(),
            splitter: LineSplitter::default(),
            ended: false,
        }
    }

    /// The next line; `None` at the end. Nothing is lost if this is dropped while it waits.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(line) = self.splitter.next_line().map_err(io::Error::other)? {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(self.splitter.finish());
            }
            match self.pipe.read(&mut self.buffer).await? {
                0 => self.ended = true,
                length => self.splitter.push(&self.buffer[..length]),
            }
        }
    }
}

/// The beginning and the end of what was written, whatever was between them.
#[derive(Debug, Default)]
pub(crate) struct Excerpt {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: bool,
}

impl Excerpt {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = STDERR_HEAD.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend(&bytes[room..]);
        if self.tail.len() > STDERR_TAIL {
            self.dropped = true;
            self.tail.drain(..self.tail.len() - STDERR_TAIL);
        }
    }

    pub(crate) fn text(&mut self) -> String {
        let head = String::from_utf8_lossy(&self.head).into_owned();
        let tail = String::from_utf8_lossy(self.tail.make_contiguous()).into_owned();
        if self.dropped { format!("{head}\n[…]\n{tail}") } else { head + &tail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(pieces: &[&[u8]]) -> Vec<String> {
        let mut splitter = LineSplitter::default();
        let mut lines = Vec::new();
        for piece in pieces {
            splitter.push(piece);
            while let Ok(Some(line)) = splitter.next_line() {
                lines.push(line);
            }
        }
        lines.extend(splitter.finish());
        lines
    }

    proptest! {
        #[test]
        fn where_bytes_are_cut_makes_no_difference(bytes in prop::collection::vec(prop::sample::select(b"ab\n\r\xe2\x80\xa8 ".to_vec()), 0..60), cuts in prop::collection::vec(0usize..60, 0..8)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
            prop_assert_eq!(split(&pieces), split(&[&bytes]));
        }
    }

    #[test]
    fn a_line_separator_inside_json_is_no_end_of_line() {
        assert_eq!(split(&["{\"a\":\"x\u{2028}y\"}\nz".as_bytes()]), ["{\"a\":\"x\u{2028}y\"}", "z"]);
    }

    #[test]
    fn a_line_without_end_is_refused_when_it_is_too_long() {
        let mut splitter = LineSplitter::default();
        splitter.push(&vec![b'x'; MAX_LINE + 1]);
        assert_eq!(splitter.next_line(), Err(LineTooLong));
    }

    #[test]
    fn stderr_keeps_its_beginning_and_its_end() {
        let mut excerpt = Excerpt::default();
        excerpt.push(b"first ");
        excerpt.push(&vec![b'.'; 1 << 20]);
        excerpt.push(b" last");
        let text = excerpt.text();
        assert!(text.starts_with("first .") && text.ends_with(". last") && text.len() < 80 << 10);
    }
}
