//! `Content-Length` frames. The only header written is `Content-Length`, in that very spelling: one of the clients
//! compares it letter by letter.

/// More than any header block needs; a peer that sends more is not speaking this protocol.
const MAX_HEADER: usize = 8 << 10;
/// Images and diffs travel in frames, so they may be large, but not endless.
const MAX_BODY: usize = 256 << 20;

const END_OF_HEADER: &[u8] = b"\r\n\r\n";

#[derive(Debug, PartialEq, Eq)]
pub enum FrameError {
    NoLength,
    HeaderTooLong,
    BodyTooLong { length: usize },
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::NoLength => write!(f, "a frame without a usable Content-Length"),
            FrameError::HeaderTooLong => write!(f, "a frame header of more than {MAX_HEADER} bytes"),
            FrameError::BodyTooLong { length } => {
                write!(f, "a frame of {length} bytes, more than {MAX_BODY}")
            }
        }
    }
}

impl std::error::Error for FrameError {}

/// Cuts a stream of bytes into frames, however the bytes arrive.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are known to hold no end of header.
    scanned: usize,
    body: Option<usize>,
}

impl FrameDecoder {
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
        let found =
            self.buffer[from..].windows(END_OF_HEADER.len()).position(|window| window == END_OF_HEADER);
        let Some(end) = found.map(|at| at + from) else {
            self.scanned = self.buffer.len();
            return if self.buffer.len() > MAX_HEADER { Err(FrameError::HeaderTooLong) } else { Ok(None) };
        };
        let length = content_length(&self.buffer[..end]).ok_or(FrameError::NoLength)?;
        if length > MAX_BODY {
            return Err(FrameError::BodyTooLong { length });
        }
        self.buffer.drain(..end + END_OF_HEADER.len());
        self.scanned = 0;
        Ok(Some(length))
    }
}

fn content_length(header: &[u8]) -> Option<usize> {
    let header = std::str::from_utf8(header).ok()?;
    header.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
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
    fn other_headers_and_any_case_are_accepted() {
        let input = b"Content-Type: x\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(frames(&[input]).unwrap(), ["{}"]);
    }

    #[test]
    fn a_frame_without_a_length_is_an_error() {
        assert_eq!(frames(&[b"X: 1\r\n\r\n{}"]), Err(FrameError::NoLength));
        assert_eq!(frames(&[b"Content-Length: -3\r\n\r\n{}"]), Err(FrameError::NoLength));
    }

    #[test]
    fn headers_and_bodies_are_bounded() {
        assert_eq!(frames(&[&[b'x'; MAX_HEADER + 1]]), Err(FrameError::HeaderTooLong));
        assert_eq!(
            frames(&[b"Content-Length: 99999999999\r\n\r\n"]),
            Err(FrameError::BodyTooLong { length: 99_999_999_999 })
        );
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
