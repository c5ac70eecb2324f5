//! Frames of an event stream, serialised once for all its readers.

use bytes::Bytes;
use hangar_protocol::EventKind;
use hangar_protocol::event::type_at_start;
use serde::Serialize;

/// Whether subscribers of a session get an event. The vendor's items of an answer, reservations and the mark of a fork
/// are for the session that resumes from the log. Records of usage and lists of tools are sent: they are small, and may be
/// the last line.
pub(crate) fn is_told(kind: Option<EventKind>) -> bool {
    !matches!(kind, Some(EventKind::ModelItems | EventKind::Reservation | EventKind::Forked))
}

/// The same of a line of the log.
pub(crate) fn is_shown(line: &[u8]) -> bool {
    is_told(type_at_start(line).and_then(EventKind::of_type))
}

/// One entry of a session's stream.
#[derive(Debug, Clone)]
pub enum StreamItem {
    Event(SseFrame),
    /// The session as lists show it, because that changed.
    Session(Bytes),
}

/// One event as a frame of server-sent events, around its line in the log.
#[derive(Debug, Clone)]
pub struct SseFrame {
    /// The number of its line; absent for what is shown and forgotten.
    pub seq: Option<u64>,
    bytes: Bytes,
    json: (usize, usize),
}

impl SseFrame {
    pub fn new(seq: Option<u64>, json: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(json.len() + 40);
        if let Some(seq) = seq {
            bytes.extend_from_slice(format!("id: {seq}\n").as_bytes());
        }
        bytes.extend_from_slice(b"data: ");
        let start = bytes.len();
        bytes.extend_from_slice(json);
        let json = (start, bytes.len());
        bytes.extend_from_slice(b"\n\n");
        Self { seq, bytes: bytes.into(), json }
    }

    /// The event as JSON, in one line.
    pub fn json(&self) -> Bytes {
        self.bytes.slice(self.json.0..self.json.1)
    }

    /// The whole frame.
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }
}

/// A message with a name. JSON has no line breaks of its own, so one line holds it.
pub fn named(name: &str, data: &impl Serialize) -> Bytes {
    // These are our own types, which always serialise.
    let json = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    format!("event: {name}\ndata: {json}\n\n").into()
}

/// Keeps an idle connection open.
pub const HEARTBEAT: Bytes = Bytes::from_static(b": \n\n");

/// Ends a stream whose session was deleted.
pub const END: Bytes = Bytes::from_static(b"event: end\ndata: {}\n\n");
