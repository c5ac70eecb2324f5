//! Spans of queued work: its wait, and its run. All attempts of an item are one trace.

use jiff::Timestamp;
use serde_json::Value;

use crate::Exporter;
use crate::span::{Attributes, Kind, Span, SpanWork};

/// A part of the life of queued work that has ended.
#[derive(Debug, Clone)]
pub struct QueuedSpan {
    /// `queue.wait` or `queue.run`.
    pub name: &'static str,
    /// Identity of the work; the trace is made from it.
    pub item: String,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

impl Exporter {
    /// Takes a span of queued work.
    pub fn queued(&self, span: QueuedSpan) {
        let named = span.attributes.into_iter().map(|(name, value)| (name.to_owned(), value));
        let mut attributes: Attributes = named.collect();
        if let Some(error) = &span.error {
            attributes.insert("error.type".to_owned(), error.clone().into());
        }
        let id = digits(&[span.name.as_bytes(), span.item.as_bytes(), span.start.to_string().as_bytes()]);
        self.send(Span {
            trace: digits(&[span.item.as_bytes()]),
            id: id[..16].to_owned(),
            parent: None,
            name: span.name.to_owned(),
            kind: Kind::Internal,
            start: span.start,
            end: span.end,
            attributes,
            error: span.error,
            events: Vec::new(),
            work: SpanWork::Queued,
        });
    }
}

/// 32 hexadecimal digits by FNV-1a. They tell items apart and are no secret.
fn digits(parts: &[&[u8]]) -> String {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0]));
    format!("{:032x}", bytes.fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_has_one_trace_and_its_parts_have_ids_of_their_own() {
        assert_eq!(digits(&[b"a"]).len(), 32);
        assert_eq!(digits(&[b"a"]), digits(&[b"a"]));
        assert_ne!(digits(&[b"a", b"b"]), digits(&[b"ab"]));
    }
}
