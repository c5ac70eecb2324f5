//! Reading a client: a message per line, of bounded length.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Longest line that is read: a prompt with its images.
const MAX_LINE: usize = 64 << 20;

/// The lines of a client.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(Vec<u8>),
    /// The line was longer than lines may be; it is gone.
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader) }
    }

    /// The next line that is not empty; `None` when there will be none.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let buffer = self.reader.fill_buf().await?;
            if buffer.is_empty() {
                // What ends without a newline may be half a message.
                return Ok(None);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            if line.len() + piece.len() > MAX_LINE {
                too_long = true;
                line = Vec::new();
            } else if !too_long {
                line.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_none() {
                continue;
            }
            if too_long {
                return Ok(Some(Line::TooLong));
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(Line::Text(line)));
            }
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(input: &[u8], expected: &[Line]) {
        let mut lines = Lines::new(input);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(line);
        }
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn empty_lines_are_skipped_and_half_a_line_is_none() {
        let text = |text: &str| Line::Text(text.as_bytes().to_vec());
        check(b"a\n\n \r\nb\r\nhalf", &[text("a"), text("b\r")]).await;
        check(b"", &[]).await;
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_named_and_the_next_one_is_read() {
        let mut input = vec![b'x'; MAX_LINE + 1];
        input.extend_from_slice(b"\nnext\n");
        check(&input, &[Line::TooLong, Line::Text(b"next".to_vec())]).await;
    }
}
