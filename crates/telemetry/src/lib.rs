//! Telemetry: spans and metrics by the GenAI conventions of OpenTelemetry, made from the events of sessions.
//!
//! A [`SpanRecorder`](recorder::Recorder) folds the events of one session into spans. An [`Exporter`] takes finished spans
//! from all sessions, keeps the metrics, and writes both to a file or a collector in a thread of its own. Nothing in a
//! session knows of this: a [`Tap`] is one more listener.
//!
//! The shapes are few and JSON on both ways out, so they are written by hand.

mod exporter;
mod file;
mod metrics;
mod otlp;
mod queued;
mod recorder;
mod span;

use hangar_agent::driver::EventSink;
use hangar_protocol::Event;

pub use exporter::{Destination, Exporter, StartError};
pub use queued::QueuedSpan;
pub use recorder::SessionAttributes;

use recorder::SpanRecorder;

/// Origin of the spans (`resource` and `scope` of OTLP).
#[derive(Debug, Clone)]
pub struct Instrumentation {
    /// The name of the instrumentation.
    pub scope: String,
    pub service: String,
    pub version: String,
}

/// Passes the events of a session on, and makes spans of them.
pub struct Tap {
    inner: Box<dyn EventSink>,
    recorder: SpanRecorder,
    exporter: Exporter,
}

impl Tap {
    pub fn new(inner: Box<dyn EventSink>, session: SessionAttributes, exporter: Exporter) -> Self {
        Self { inner, recorder: SpanRecorder::new(session), exporter }
    }
}

impl EventSink for Tap {
    fn publish(&mut self, event: &Event) {
        self.inner.publish(event);
        for span in self.recorder.observe(event) {
            self.exporter.send(span);
        }
    }
}
