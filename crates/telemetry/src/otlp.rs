//! OTLP as JSON over HTTP, as collectors take it.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Instrumentation;
use crate::metrics::{self, Metrics};
use crate::span::{Attributes, Kind, Span};

pub(crate) fn traces(spans: &[Span], source: &Instrumentation) -> Value {
    let spans: Vec<Value> = spans.iter().map(span).collect();
    json!({ "resourceSpans": [{
        "resource": resource(source),
        "scopeSpans": [{ "scope": scope(source), "spans": spans }],
    }] })
}

fn span(span: &Span) -> Value {
    let events: Vec<Value> = span
        .events
        .iter()
        .map(|event| json!({ "timeUnixNano": nanos(event.time), "name": event.name, "attributes": attributes(&event.attributes) }))
        .collect();
    json!({
        "traceId": span.trace,
        "spanId": span.id,
        "parentSpanId": span.parent.as_deref().unwrap_or_default(),
        "name": span.name,
        "kind": match span.kind { Kind::Internal => 1, Kind::Client => 3 },
        "startTimeUnixNano": nanos(span.start),
        "endTimeUnixNano": nanos(span.end),
        "attributes": attributes(&span.attributes),
        "events": events,
        "status": match &span.error { None => json!({}), Some(error) => json!({ "code": 2, "message": error }) },
    })
}

pub(crate) fn metrics(
    metrics: &Metrics,
    source: &Instrumentation,
    since: Timestamp,
    now: Timestamp,
) -> Value {
    let metrics: Vec<Value> = metrics
        .series()
        .map(|series| {
            let mut point = json!({
                "attributes": attributes(&series.attributes),
                "startTimeUnixNano": nanos(since),
                "timeUnixNano": nanos(now),
            });
            let mut metric = json!({ "name": series.instrument.name, "unit": series.instrument.unit });
            match &series.value {
                metrics::Value::Sum(sum) => {
                    point["asInt"] = json!(sum.to_string());
                    metric["sum"] =
                        json!({ "dataPoints": [point], "aggregationTemporality": 2, "isMonotonic": true });
                }
                metrics::Value::Distribution(distribution) => {
                    let counts: Vec<String> = distribution.counts.iter().map(u64::to_string).collect();
                    point["count"] = json!(distribution.count.to_string());
                    point["sum"] = json!(distribution.sum);
                    point["min"] = json!(distribution.min);
                    point["max"] = json!(distribution.max);
                    point["bucketCounts"] = json!(counts);
                    point["explicitBounds"] = json!(distribution.bounds);
                    metric["histogram"] = json!({ "dataPoints": [point], "aggregationTemporality": 2 });
                }
            }
            metric
        })
        .collect();
    json!({ "resourceMetrics": [{
        "resource": resource(source),
        "scopeMetrics": [{ "scope": scope(source), "metrics": metrics }],
    }] })
}

fn resource(source: &Instrumentation) -> Value {
    json!({ "attributes": [
        { "key": "service.name", "value": { "stringValue": source.service } },
        { "key": "service.version", "value": { "stringValue": source.version } },
    ] })
}

fn scope(source: &Instrumentation) -> Value {
    json!({ "name": source.scope, "version": source.version })
}

fn attributes(attributes: &Attributes) -> Vec<Value> {
    attributes.iter().map(|(key, value)| json!({ "key": key, "value": any(value) })).collect()
}

fn any(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => json!({ "boolValue": flag }),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => json!({ "intValue": whole.to_string() }),
            None => json!({ "doubleValue": number }),
        },
        Value::String(text) => json!({ "stringValue": text }),
        Value::Array(values) => {
            json!({ "arrayValue": { "values": values.iter().map(any).collect::<Vec<_>>() } })
        }
        Value::Null | Value::Object(_) => json!({ "stringValue": value.to_string() }),
    }
}

fn nanos(at: Timestamp) -> String {
    at.as_nanosecond().to_string()
}
