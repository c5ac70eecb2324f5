//! Framing by `Content-Length`. That is the only header written, in that very spelling: one of the clients compares it
//! letter by letter. Both headers of the protocol are read. Anything else, an HTTP request say, is an error before its
//! first line has ended.

/// Bytes of a header block. A peer that sends more is not speaking this protocol.
const MAX_HEADER: usize = 8 << 10;
/// Bytes of a body. Images and diffs travel in frames, so it is large.
pub const MAX_BODY: usize = 256 << 20;

const END_OF_LINE: &[u8] = b"\r\n";
const END_OF_HEADER: &[u8] = b"\r\n\r\n";

const CONTENT_LENGTH: &[u8] = b"content-length";
/// The headers of the protocol, in lower case.
const HEADERS: [&[u8]; 2] = [CONTENT_LENGTH, b"content-type"];

#[derive(Debug, PartialEq, Eq)]
pub enum FrameError {
    /// A line that is no header of this protocol. The peer speaks another one.
    Foreign,
    NoLength,
    HeaderTooLong,
    BodyTooLong {
        length: usize,
        most: usize,
    },
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::Foreign => write!(f, "a header that is neither Content-Length nor Content-Type"),
            FrameError::NoLength => write!(f, "a frame without a usable Content-Length"),
            FrameError::HeaderTooLong => write!(f, "a frame header of more than {MAX_HEADER} bytes"),
            FrameError::BodyTooLong { length, most } => {
                write!(f, "a frame of {length} bytes, more than {most}")
            }
        }
    }
}

impl std::error::Error for FrameError {}

/// Incremental decoder from bytes to frames.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    /// Bytes of `buffer` that have been searched for the end of the header.
    scanned: usize,
    body: Option<usize>,
    /// Limit of a body, in bytes.
    most: usize,
}

impl Default for FrameDecoder {
    fn default() -> Self {
        Self { buffer: Vec::new(), scanned: 0, body: None, most: MAX_BODY }
    }
}

impl FrameDecoder {
    /// Sets the limit of a body, from the next header on.
    pub fn limit(&mut self, most: usize) {
        self.most = most;
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame's body. After an error the stream has no known frame boundary any more.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let length = match self.body {
            Some(length) => length,
            None => match self.header()? {
                Some(length) => *self.body.insert(length),
                None => return Ok(None),
            },
        };
        if self.buffer.len() < length {
            return Ok(None);
        }
        let rest = self.buffer.split_off(length);
        self.body = None;
        Ok(Some(std::mem::replace(&mut self.buffer, rest)))
    }

    fn header(&mut self) -> Result<Option<usize>, FrameError> {
        let from = self.scanned.saturating_sub(END_OF_HEADER.len() - 1);
        let found = find(&self.buffer[from..], END_OF_HEADER).map(|at| at + from);
        let head = &self.buffer[..found.unwrap_or(self.buffer.len()).min(MAX_HEADER)];
        if !lines(head).all(may_be_header) {
            return Err(FrameError::Foreign);
        }
        if found.unwrap_or(self.buffer.len()) > MAX_HEADER {
            return Err(FrameError::HeaderTooLong);
        }
        let Some(end) = found else {
            self.scanned = self.buffer.len();
            return Ok(None);
        };
        let length = content_length(&self.buffer[..end]).ok_or(FrameError::NoLength)?;
        if length > self.most {
            return Err(FrameError::BodyTooLong { length, most: self.most });
        }
        self.buffer.drain(..end + END_OF_HEADER.len());
        self.scanned = 0;
        Ok(Some(length))
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(head);
    std::iter::from_fn(move || {
        let here = rest?;
        let end = find(here, END_OF_LINE);
        rest = end.map(|end| &here[end + END_OF_LINE.len()..]);
        Some(&here[..end.unwrap_or(here.len())])
    })
}

/// Whether the line, which may be incomplete, can still become a header of this protocol.
fn may_be_header(line: &[u8]) -> bool {
    let is_named = |name: &&[u8]| {
        let common = name.len().min(line.len());
        let (start, rest) = line.split_at(common);
        let after = rest.iter().find(|byte| !byte.is_ascii_whitespace());
        start.eq_ignore_ascii_case(&name[..common]) && after.is_none_or(|byte| *byte == b':')
    };
    // The end of the header may be cut in the middle.
    line == b"\r" || HEADERS.iter().any(is_named)
}

fn content_length(header: &[u8]) -> Option<usize> {
    let mut lengths = lines(header).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        name.eq_ignore_ascii_case(CONTENT_LENGTH).then_some(value)
    });
    let value = lengths.next()?;
    // Two lengths leave it open where the next frame begins.
    if lengths.any(|other| other != value) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// A frame, ready to be written.
pub fn encode(body: &[u8]) -> Vec<u8> {
    let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    frame.extend_from_slice(body);
    frame
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(pieces: &[&[u8]]) -> Result<Vec<String>, FrameError> {
        let mut decoder = FrameDecoder::default();
        let mut out = Vec::new();
        for piece in pieces {
            decoder.feed(piece);
            while let Some(frame) = decoder.next_frame()? {
                out.push(String::from_utf8(frame).unwrap());
            }
        }
        Ok(out)
    }

    #[test]
    fn both_headers_are_accepted_in_any_case() {
        let input = b"Content-Type: x\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(frames(&[input]).unwrap(), ["{}"]);
        assert_eq!(frames(&[b"CONTENT-LENGTH : 2\r\nContent-Type: x\r\n\r\n{}"]).unwrap(), ["{}"]);
    }

    #[test]
    fn a_frame_without_a_length_is_an_error() {
        for head in [
            "Content-Type: x",
            "Content-Length: -3",
            "Content-Length: 2\r\nContent-Length: 5",
            "",
            "Content-Length",
        ] {
            let input = format!("{head}\r\n\r\n{{}}");
            assert_eq!(frames(&[input.as_bytes()]), Err(FrameError::NoLength), "{head}");
        }
    }

    #[test]
    fn what_is_no_header_of_the_protocol_is_an_error_before_its_line_has_ended() {
        let foreign: [&[u8]; 12] = [
            b"X: 1\r\n\r\n{}",
            b"GET ",
            b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
            b"OPTIONS",
            b"CONNECT localhost:1 HTTP/1.1",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00",
            b"{\"jsonrpc\":\"2.0\"}\n",
            b"Content-Length: 2\r\nHost: x",
            b"Content-Lengthy: 2",
            b"Content-Encoding: gzip",
            b"\r\nPOST / HTTP/1.1",
        ];
        for bytes in foreign {
            assert_eq!(frames(&[bytes]), Err(FrameError::Foreign), "{}", String::from_utf8_lossy(bytes));
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(frames(&single), Err(FrameError::Foreign), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn headers_and_bodies_are_bounded() {
        let long = [b"Content-Type: ".as_slice(), &[b'x'; MAX_HEADER]].concat();
        assert_eq!(frames(&[&long]), Err(FrameError::HeaderTooLong));
        assert_eq!(
            frames(&[&[&long, b"\r\nContent-Length: 2\r\n\r\n{}".as_slice()].concat()]),
            Err(FrameError::HeaderTooLong)
        );
        assert_eq!(
            frames(&[b"Content-Length: 99999999999\r\n\r\n"]),
            Err(FrameError::BodyTooLong { length: 99_999_999_999, most: MAX_BODY })
        );
    }

    #[test]
    fn a_limit_holds_until_it_is_lifted() {
        let mut decoder = FrameDecoder::default();
        decoder.limit(2);
        decoder.feed(b"Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n{ }");
        assert_eq!(decoder.next_frame().unwrap().unwrap(), b"{}");
        decoder.limit(3);
        assert_eq!(decoder.next_frame().unwrap().unwrap(), b"{ }");
        decoder.limit(2);
        decoder.feed(b"Content-Length: 3\r\n\r\n");
        assert_eq!(decoder.next_frame(), Err(FrameError::BodyTooLong { length: 3, most: 2 }));
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_frames(
            bodies in prop::collection::vec(".{0,40}", 0..5),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let stream: Vec<u8> = bodies.iter().flat_map(|body| encode(body.as_bytes())).collect();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            at.push(0);
            at.push(stream.len());
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            prop_assert_eq!(frames(&pieces).unwrap(), bodies);
        }
    }
}
