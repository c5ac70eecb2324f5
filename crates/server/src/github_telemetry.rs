//! Telemetry for clients that asked for it in `connect`: a few facts about their sessions, in the form of GitHub's events.
//! It is sent to these clients and nowhere else. It has names, counts and times, and no text of anybody.

use hangar_protocol::{Body, Event};
use serde_json::{Map, Value, json};

/// The facts of an event, if it has some.
pub(crate) fn of_event(session_id: &str, event: &Event) -> Option<Value> {
    let (kind, properties, metrics) = match event.body() {
        Body::SessionStart(start) => {
            let facts = [
                ("producer", start.producer.clone()),
                ("copilot_version", start.copilot_version.clone()),
                ("model", start.selected_model.clone().unwrap_or_default()),
            ];
            ("session_start", texts(&facts), json!({ "version": start.version }))
        }
        Body::SessionShutdown(end) => {
            let metrics = json!({
                "total_api_duration_ms": end.total_api_duration_ms,
                "lines_added": end.code_changes.lines_added,
                "lines_removed": end.code_changes.lines_removed,
            });
            ("session_shutdown", Map::new(), metrics)
        }
        Body::ToolComplete(done) => {
            let facts = [
                ("tool_call_id", done.tool_call_id.clone()),
                ("result", if done.success { "success" } else { "failure" }.to_owned()),
            ];
            ("tool_call_executed", texts(&facts), json!({}))
        }
        Body::AssistantUsage(usage) => {
            let metrics = json!({ "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens });
            ("model_call", texts(&[("model", usage.model.clone())]), metrics)
        }
        Body::SessionError(error) => {
            ("session_error", texts(&[("error_type", error.error_type.clone())]), json!({}))
        }
        _ => return None,
    };
    let metrics: Map<String, Value> = match metrics {
        Value::Object(metrics) => metrics.into_iter().filter(|(_, value)| value.is_number()).collect(),
        _ => Map::new(),
    };
    Some(json!({
        "sessionId": session_id,
        "restricted": false,
        "event": {
            "kind": kind,
            "created_at": event.timestamp(),
            "properties": properties,
            "metrics": metrics,
            "session_id": session_id,
        },
    }))
}

fn texts(facts: &[(&str, String)]) -> Map<String, Value> {
    facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
}
