//! The lines of a telemetry file, in the form that the reference writes.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Instrumentation;
use crate::metrics::{self, Metrics};
use crate::span::{Kind, Span};

pub(crate) fn span(span: &Span, source: &Instrumentation) -> Value {
    let events: Vec<Value> = span
        .events
        .iter()
        .map(|event| json!({ "name": event.name, "attributes": event.attributes, "time": time(event.time), "droppedAttributesCount": 0 }))
        .collect();
    let mut line = json!({ "type": "span", "traceId": span.trace, "spanId": span.id });
    if let Some(parent) = &span.parent {
        line["parentSpanId"] = json!(parent);
    }
    line["name"] = json!(span.name);
    line["kind"] = json!(match span.kind {
        Kind::Internal => 0,
        Kind::Client => 2,
    });
    line["startTime"] = time(span.start);
    line["endTime"] = time(span.end);
    line["attributes"] = json!(span.attributes);
    line["status"] = match &span.error {
        None => json!({ "code": 0 }),
        Some(error) => json!({ "code": 2, "message": error }),
    };
    line["events"] = json!(events);
    sign(&mut line, source);
    line
}

/// One line per instrument.
pub(crate) fn metrics(
    metrics: &Metrics,
    source: &Instrumentation,
    since: Timestamp,
    now: Timestamp,
) -> Vec<Value> {
    let mut lines: Vec<Value> = Vec::new();
    for series in metrics.series() {
        let value = match &series.value {
            metrics::Value::Sum(sum) => json!(sum),
            metrics::Value::Distribution(distribution) => json!({
                "buckets": { "boundaries": distribution.bounds, "counts": distribution.counts },
                "count": distribution.count,
                "sum": distribution.sum,
                "min": distribution.min,
                "max": distribution.max,
            }),
        };
        let point = json!({
            "attributes": series.attributes, "startTime": time(since), "endTime": time(now), "value": value,
        });
        // Series of one instrument follow one another.
        if let Some(line) = lines.last_mut()
            && line["name"] == series.instrument.name
            && let Some(points) = line["dataPoints"].as_array_mut()
        {
            points.push(point);
            continue;
        }
        let mut line = json!({
            "type": "metric",
            "name": series.instrument.name,
            "unit": series.instrument.unit,
            "dataPoints": [point],
        });
        sign(&mut line, source);
        lines.push(line);
    }
    lines
}

fn sign(line: &mut Value, source: &Instrumentation) {
    line["resource"] =
        json!({ "attributes": { "service.name": source.service, "service.version": source.version } });
    line["instrumentationScope"] = json!({ "name": source.scope, "version": source.version });
}

/// Seconds and nanoseconds.
fn time(at: Timestamp) -> Value {
    json!([at.as_second(), at.subsec_nanosecond()])
}
