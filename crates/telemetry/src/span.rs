//! A span: a piece of work with a beginning, an end and a parent.

use hangar_protocol::EventId;
use jiff::Timestamp;
use serde_json::{Map, Value};

pub(crate) type Attributes = Map<String, Value>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Internal,
    /// A call to someone else.
    Client,
}

#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) attributes: Attributes,
    /// Why it failed, if it did.
    pub(crate) error: Option<String>,
    pub(crate) events: Vec<SpanEvent>,
    pub(crate) work: SpanWork,
}

/// Something that happened during a span.
#[derive(Debug, Clone)]
pub(crate) struct SpanEvent {
    pub(crate) name: &'static str,
    pub(crate) time: Timestamp,
    pub(crate) attributes: Attributes,
}

/// The kind of work that a span measures, for metrics.
#[derive(Debug, Clone)]
pub(crate) enum SpanWork {
    Invocation {
        calls: u64,
        tools: u64,
    },
    Chat(Box<ChatFigures>),
    Tool {
        name: String,
    },
    /// Waiting or running in the queue.
    Queued,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ChatFigures {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) reasoning: u64,
    pub(crate) first_chunk_ms: Option<f64>,
}

impl Span {
    pub(crate) fn seconds(&self) -> f64 {
        self.end.duration_since(self.start).as_secs_f64().max(0.0)
    }
}

/// The ids of a trace and of a span, from the id of the event that began it: both are random already.
pub(crate) fn trace_id(event: &EventId) -> String {
    hex(event)
}

pub(crate) fn span_id(event: &EventId) -> String {
    hex(event).split_off(16)
}

fn hex(event: &EventId) -> String {
    let digits: String = event.0.chars().filter(char::is_ascii_hexdigit).take(32).collect();
    // Logs of other programs may have ids of another form.
    format!("{:0>32}", digits.to_ascii_lowercase())
}
