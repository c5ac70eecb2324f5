//! The log of requests to the served model: one JSON object per line, without the secrets that clients send.

use parking_lot::Mutex;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use hyper::HeaderMap;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::script::ScriptStep;

/// Parts of header names whose values are credentials.
const SECRET: [&str; 5] = ["authorization", "cookie", "key", "secret", "token"];
/// Characters of a step that the log keeps.
const STEP_HEAD: usize = 200;

#[derive(Debug)]
pub(super) struct RequestLog(Mutex<File>);

impl RequestLog {
    pub(super) fn new(file: File) -> Self {
        Self(Mutex::new(file))
    }

    fn write(&self, record: &Value) {
        let line = format!("{record}\n");
        // The log is a by-product; a full disk must not fail the request.
        if let Err(error) = self.0.lock().write_all(line.as_bytes()) {
            tracing::warn!(%error, "the request log could not be written");
        }
    }
}

/// Outcome of a request in the log: an HTTP status, or one of the two ways to end without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestOutcome {
    Status(u16),
    /// The script cut the connection.
    Cut,
    /// The client went away.
    Gone,
}

/// Log entry of one request. It is written when dropped: an answer that a client no longer reads just ends.
pub(super) struct RequestEntry {
    log: Option<Arc<RequestLog>>,
    begin: Instant,
    fields: Map<String, Value>,
    pub(super) outcome: RequestOutcome,
}

impl RequestEntry {
    /// `time` is in seconds since 1970.
    pub(super) fn new(
        log: Option<Arc<RequestLog>>,
        number: u64,
        time: f64,
        head: &hyper::http::request::Parts,
    ) -> Self {
        let fields = json!({
            "n": number, "t": time, "method": head.method.as_str(), "path": head.uri.to_string(),
            "headers": log.as_ref().map(|_| shown(&head.headers)), "body": null, "plan": [],
        });
        let Value::Object(fields) = fields else { unreachable!("an object literal is an object") };
        Self { log, begin: Instant::now(), fields, outcome: RequestOutcome::Gone }
    }

    /// Whether the entry will be written.
    pub(super) fn is_kept(&self) -> bool {
        self.log.is_some()
    }

    pub(super) fn body(&mut self, body: &Value) {
        if self.is_kept() {
            self.fields["body"] = body.clone();
        }
    }

    pub(super) fn plan(&mut self, steps: &[ScriptStep]) {
        if self.log.is_some() {
            let steps = steps.iter().map(|step| step.to_string().chars().take(STEP_HEAD).collect::<String>());
            self.fields["plan"] = steps.collect();
        }
    }
}

impl Drop for RequestEntry {
    fn drop(&mut self) {
        let Some(log) = &self.log else { return };
        let mut fields = std::mem::take(&mut self.fields);
        let status = match self.outcome {
            RequestOutcome::Status(status) => i32::from(status),
            RequestOutcome::Cut => 0,
            RequestOutcome::Gone => -1,
        };
        fields.insert("status".to_owned(), json!(status));
        fields.insert("ms".to_owned(), json!(self.begin.elapsed().as_micros() as f64 / 1e3));
        log.write(&Value::Object(fields));
    }
}

fn shown(headers: &HeaderMap) -> Value {
    let shown = headers.iter().map(|(name, value)| {
        let name = name.as_str();
        let secret = SECRET.iter().any(|part| name.contains(part));
        let value = if secret { "***".into() } else { String::from_utf8_lossy(value.as_bytes()) };
        (name.to_owned(), json!(value))
    });
    Value::Object(shown.collect())
}
