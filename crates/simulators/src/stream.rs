//! Answers as bytes: whole, or as server-sent events with delays between them, and quirks of transports.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::gzip::Gzip;
use crate::refusal::Refusal;
use crate::scenario::Fault;

/// Bytes of a frame when a stream comes in tiny pieces. Two, so that most non-ASCII characters are split.
const CRUMB: usize = 2;

/// Response to the client.
#[derive(Debug, Clone, PartialEq)]
pub enum VendorResponse {
    Whole { status: u16, headers: Vec<(String, String)>, body: Value },
    Stream { headers: Vec<(String, String)>, frames: Vec<StreamFrame> },
}

impl VendorResponse {
    pub fn ok(body: Value) -> Self {
        Self::Whole { status: 200, headers: Vec::new(), body }
    }

    pub fn stream(frames: Vec<StreamFrame>) -> Self {
        Self::Stream { headers: Vec::new(), frames }
    }

    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        let (Self::Whole { headers, .. } | Self::Stream { headers, .. }) = &mut self;
        headers.push((name.to_owned(), value.into()));
        self
    }

    /// Applies the quirks that any wire can have; those of one wire were applied when it was encoded.
    #[must_use]
    pub(crate) fn with_faults(self, faults: &[Fault]) -> Self {
        match self {
            Self::Stream { mut headers, frames } => {
                let mut frames = disturb(frames, faults);
                if faults.contains(&Fault::Gzip) {
                    headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
                    frames = zipped(frames);
                }
                Self::Stream { headers, frames }
            }
            whole @ Self::Whole { .. } => whole,
        }
    }
}

impl From<Refusal> for VendorResponse {
    fn from(refusal: Refusal) -> Self {
        Self::Whole { status: refusal.status, headers: refusal.headers, body: refusal.body }
    }
}

/// One moment of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamFrame {
    Data(Bytes),
    Wait(Duration),
    /// The connection breaks; nothing follows.
    Cut,
}

impl StreamFrame {
    /// A comment line, which clients skip.
    pub fn comment(text: &str) -> Self {
        Self::Data(format!(": {text}\n\n").into())
    }
}

/// A server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub struct SseEvent {
    pub name: Option<String>,
    pub data: String,
}

impl SseEvent {
    /// An event without a name, as chat completions have them.
    pub fn data(data: impl Into<String>) -> Self {
        Self { name: None, data: data.into() }
    }

    /// An event whose data has its name too, in `type`.
    pub fn typed(data: &Value) -> Self {
        Self { name: data["type"].as_str().map(str::to_owned), data: data.to_string() }
    }
}

impl From<SseEvent> for StreamFrame {
    fn from(event: SseEvent) -> Self {
        let name = event.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        Self::Data(format!("{name}data: {}\n\n", event.data).into())
    }
}

fn disturb(mut frames: Vec<StreamFrame>, faults: &[Fault]) -> Vec<StreamFrame> {
    if faults.contains(&Fault::Crlf) {
        for frame in &mut frames {
            if let StreamFrame::Data(bytes) = frame {
                *bytes = String::from_utf8_lossy(bytes).replace('\n', "\r\n").into();
            }
        }
    }
    if faults.contains(&Fault::NoFinalBlankLine)
        && let Some(StreamFrame::Data(bytes)) = frames.last_mut()
    {
        let text = bytes.trim_ascii_end().len();
        bytes.truncate(text);
    }
    if faults.contains(&Fault::Crumbs) {
        frames = frames.into_iter().flat_map(crumbs).collect();
    }
    frames
}

/// The same data in gzip. A stream that is cut stays unfinished.
fn zipped(frames: Vec<StreamFrame>) -> Vec<StreamFrame> {
    let mut gzip = Gzip::new();
    let is_cut = frames.contains(&StreamFrame::Cut);
    let mut zipped: Vec<StreamFrame> = frames
        .into_iter()
        .map(|frame| match frame {
            StreamFrame::Data(bytes) => StreamFrame::Data(gzip.write(&bytes).into()),
            frame @ (StreamFrame::Wait(_) | StreamFrame::Cut) => frame,
        })
        .collect();
    if !is_cut {
        zipped.push(StreamFrame::Data(gzip.finish().into()));
    }
    zipped
}

fn crumbs(frame: StreamFrame) -> Vec<StreamFrame> {
    match frame {
        StreamFrame::Data(bytes) => {
            bytes.chunks(CRUMB).map(|crumb| StreamFrame::Data(Bytes::copy_from_slice(crumb))).collect()
        }
        frame @ (StreamFrame::Wait(_) | StreamFrame::Cut) => vec![frame],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(faults: &[Fault], expected: &[&[u8]]) {
        let frames = vec![SseEvent::typed(&json!({"type": "a"})).into(), SseEvent::data("é").into()];
        let VendorResponse::Stream { frames, .. } = VendorResponse::stream(frames).with_faults(faults) else {
            panic!()
        };
        let bytes: Vec<_> = frames
            .iter()
            .map(|frame| match frame {
                StreamFrame::Data(bytes) => &bytes[..],
                StreamFrame::Wait(_) | StreamFrame::Cut => b"",
            })
            .collect();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn events_are_frames_and_faults_change_their_bytes_only() {
        check(&[], &[b"event: a\ndata: {\"type\":\"a\"}\n\n", "data: é\n\n".as_bytes()]);
        check(&[Fault::Crlf], &[b"event: a\r\ndata: {\"type\":\"a\"}\r\n\r\n", "data: é\r\n\r\n".as_bytes()]);
        check(&[Fault::NoFinalBlankLine], &[b"event: a\ndata: {\"type\":\"a\"}\n\n", "data: é".as_bytes()]);
    }

    #[test]
    fn a_stream_in_gzip_says_so_and_ends_unless_it_is_cut() {
        let frames = |last: StreamFrame| {
            let answer =
                VendorResponse::stream(vec![SseEvent::data("a").into(), last]).with_faults(&[Fault::Gzip]);
            let VendorResponse::Stream { headers, frames } = answer else { panic!() };
            assert_eq!(headers, [("content-encoding".to_owned(), "gzip".to_owned())]);
            frames.len()
        };
        assert_eq!(frames(SseEvent::data("b").into()), 3);
        assert_eq!(frames(StreamFrame::Cut), 2);
    }

    #[test]
    fn crumbs_cut_characters() {
        let whole = StreamFrame::Data("aé".into());
        assert_eq!(
            crumbs(whole),
            [StreamFrame::Data(Bytes::from_static(b"a\xc3")), StreamFrame::Data(Bytes::from_static(b"\xa9"))]
        );
    }
}
