//! Reading a pipe or a socket line by line, with a bound on how long a line may be.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that are read at once. There are as many of these as connections, and a burst touches all of it for good.
const CHUNK: usize = 8 << 10;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadLine {
    Text(Vec<u8>),
    /// The line is longer than lines may be, and is dropped.
    TooLong,
}

/// The lines of a pipe or socket. Blank ones are passed over.
#[derive(Debug)]
pub struct LineReader<R> {
    pipe: R,
    chunk: Box<[u8]>,
    splitter: LineSplitter,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Lines of `max` bytes at the most.
    pub fn new(pipe: R, max: usize) -> Self {
        let chunk = vec![0; CHUNK].into_boxed_slice();
        Self { pipe, chunk, splitter: LineSplitter::new(max), ended: false }
    }

    /// The next line; `None` at the end, where a line without a line feed may be half a message and does not count.
    /// Nothing is lost if this is dropped while it waits.
    pub async fn next(&mut self) -> io::Result<Option<ReadLine>> {
        loop {
            if let Some(line) = self.splitter.next_line() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            match self.pipe.read(&mut self.chunk).await? {
                0 => self.ended = true,
                length => self.splitter.push(&self.chunk[..length]),
            }
        }
    }

    /// Like [`next`](Self::next), as text, where a line that is too long is an error and the last one needs no end.
    pub async fn next_text(&mut self) -> io::Result<Option<String>> {
        match self.next().await? {
            Some(ReadLine::Text(line)) => Ok(Some(text(&line))),
            Some(ReadLine::TooLong) => {
                let problem = format!("it sent a message of more than {} MB", self.splitter.max >> 20);
                Err(io::Error::new(io::ErrorKind::InvalidData, problem))
            }
            None => Ok(self.splitter.finish().as_deref().map(text)),
        }
    }
}

/// Cuts bytes into lines at line feeds, and nowhere else: JSON may hold characters that others take for the end of a line.
#[derive(Debug)]
pub struct LineSplitter {
    max: usize,
    rest: Vec<u8>,
    /// How much of the rest is known to hold no line feed.
    searched: usize,
    /// Whether the rest of a line is dropped.
    skips: bool,
}

impl LineSplitter {
    pub fn new(max: usize) -> Self {
        Self { max, rest: Vec::new(), searched: 0, skips: false }
    }

    pub fn push(&mut self, mut bytes: &[u8]) {
        if self.skips {
            let Some(end) = memchr::memchr(b'\n', bytes) else { return };
            bytes = &bytes[end + 1..];
            self.skips = false;
        }
        self.rest.extend_from_slice(bytes);
    }

    /// The next whole line, or that one is too long.
    pub fn next_line(&mut self) -> Option<ReadLine> {
        loop {
            let Some(offset) = memchr::memchr(b'\n', &self.rest[self.searched..]) else {
                self.searched = self.rest.len();
                if self.rest.len() <= self.max {
                    return None;
                }
                self.skips = true;
                self.rest = Vec::new();
                self.searched = 0;
                return Some(ReadLine::TooLong);
            };
            let end = self.searched + offset;
            let line = self.rest[..end].strip_suffix(b"\r").unwrap_or(&self.rest[..end]).to_vec();
            self.rest.drain(..=end);
            self.searched = 0;
            if self.rest.is_empty() && self.rest.capacity() > CHUNK {
                // One long line is no reason to hold on to its room.
                self.rest = Vec::new();
            }
            if end > self.max {
                return Some(ReadLine::TooLong);
            }
            if !line.trim_ascii().is_empty() {
                return Some(ReadLine::Text(line));
            }
        }
    }

    /// The bytes behind the last line feed, when nothing more comes.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        self.searched = 0;
        let line = std::mem::take(&mut self.rest);
        (!line.trim_ascii().is_empty()).then_some(line)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX: usize = 1 << 20;

    fn split(pieces: &[&[u8]], max: usize) -> Vec<String> {
        let mut splitter = LineSplitter::new(max);
        let mut lines = Vec::new();
        for piece in pieces {
            splitter.push(piece);
            while let Some(line) = splitter.next_line() {
                lines.push(match line {
                    ReadLine::Text(line) => text(&line),
                    ReadLine::TooLong => "(too long)".to_owned(),
                });
            }
        }
        lines.extend(splitter.finish().as_deref().map(text));
        lines
    }

    proptest! {
        #[test]
        fn where_bytes_are_cut_makes_no_difference(
            bytes in prop::collection::vec(prop::sample::select(b"ab\n\r\xe2\x80\xa8 ".to_vec()), 0..60),
            cuts in prop::collection::vec(0usize..60, 0..8),
            max in 1usize..20,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
            prop_assert_eq!(split(&pieces, max), split(&[&bytes], max));
        }
    }

    #[test]
    fn a_line_separator_inside_json_is_no_end_of_line() {
        assert_eq!(split(&["{\"a\":\"x\u{2028}y\"}\nz".as_bytes()], MAX), ["{\"a\":\"x\u{2028}y\"}", "z"]);
    }

    async fn check(input: &[u8], expected: &[ReadLine]) {
        let mut lines = LineReader::new(input, MAX);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(line);
        }
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn blank_lines_are_skipped_and_half_a_line_is_none() {
        let text = |text: &str| ReadLine::Text(text.as_bytes().to_vec());
        check(b"a\n\n \r\nb\r\nhalf", &[text("a"), text("b")]).await;
        check(b"", &[]).await;
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_named_and_the_next_one_is_read() {
        let mut input = vec![b'x'; MAX + 1];
        input.extend_from_slice(b"\nnext\n");
        check(&input, &[ReadLine::TooLong, ReadLine::Text(b"next".to_vec())]).await;
        input = vec![b'x'; 3 * MAX];
        input.extend_from_slice(b"\nnext\n");
        check(&input, &[ReadLine::TooLong, ReadLine::Text(b"next".to_vec())]).await;
    }

    #[tokio::test]
    async fn text_ends_with_the_last_byte_and_with_a_line_that_is_too_long() {
        let mut lines = LineReader::new(&b"a\nhalf"[..], MAX);
        assert_eq!(lines.next_text().await.unwrap().as_deref(), Some("a"));
        assert_eq!(lines.next_text().await.unwrap().as_deref(), Some("half"));
        assert_eq!(lines.next_text().await.unwrap(), None);
        let endless = vec![b'x'; MAX + 1];
        let error = LineReader::new(&endless[..], MAX).next_text().await.unwrap_err();
        assert_eq!(error.to_string(), "it sent a message of more than 1 MB");
    }
}
