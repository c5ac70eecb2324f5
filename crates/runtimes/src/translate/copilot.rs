//! Copilot CLI, `--output-format json`: our own vocabulary. Events pass as they are; the last line is the verdict.

use hangar_protocol::result::RunResult;
use hangar_protocol::{Body, Event, EventKind};
use serde_json::Value;

use super::json::{count, owned, text};
use super::{TranslatedEvent, Translation, Translator, copilot_usage as usage};
use crate::outcome::{AgentVerdict, ReportedError};
use crate::usage::{AgentUsage, Figure};

/// Event that says that something changed, without saying what: a third of the agent's output, dropped.
const NOISE: EventKind = EventKind::BackgroundTasksChanged;

#[derive(Debug, Default)]
pub struct CopilotTranslator {
    output_tokens: Option<u64>,
    /// Whether the session had earlier turns.
    resumed: bool,
    /// Whether the agent reported its own usage.
    counted: bool,
}

impl CopilotTranslator {
    pub fn new(resumed: bool) -> Self {
        Self { resumed, ..Self::default() }
    }
}

impl Translator for CopilotTranslator {
    fn line(&mut self, line: &str, said: &mut Translation) {
        if line.contains("\"result\"")
            && let Ok(value) = serde_json::from_str::<Value>(line)
            && text(&value, "type") == Some("result")
        {
            return self.result(line, &value, said);
        }
        match serde_json::from_str::<Event>(line) {
            Ok(event) => self.event(event, said),
            Err(_) => match serde_json::from_str::<Value>(line) {
                Ok(value) if text(&value, "type").is_some() => {
                    said.unknown(text(&value, "type").unwrap_or_default(), line);
                }
                _ => said.malformed(line),
            },
        }
    }

    fn report(&mut self, text: &str, said: &mut Translation) {
        self.counted |= usage::add(text, &mut said.facts.usage);
    }

    fn end(&mut self, said: &mut Translation) {
        // The sum over the messages of this turn is not the usage of the session, unless it is the first turn.
        if self.resumed && !self.counted {
            said.facts.usage.output_tokens = Figure::Unknown;
        }
    }
}

impl CopilotTranslator {
    fn event(&mut self, event: Event, said: &mut Translation) {
        let facts = &mut said.facts;
        match event.body() {
            Body::SessionStart(start) => facts.session_id = Some(start.session_id.clone()),
            Body::ToolsUpdated(updated) => facts.model = Some(updated.model.clone()),
            Body::AssistantMessage(message) => {
                facts.worked = true;
                if event.agent_id().is_none() {
                    facts.reported_error = None;
                }
                if let Some(tokens) = message.output_tokens {
                    *self.output_tokens.get_or_insert(0) += tokens;
                }
            }
            Body::ToolComplete(_) => facts.worked = true,
            Body::Abort(_) => facts.aborted = true,
            Body::SessionError(error) => {
                facts.reported_error = Some(ReportedError {
                    message: error.message.clone(),
                    status_code: error.status_code,
                    code: Some(error.error_type.clone()),
                });
            }
            Body::Unknown { kind, .. } if !known_elsewhere(kind) => {
                facts.note_unknown(kind);
            }
            _ => {}
        }
        if event.event_kind() != Some(NOISE) {
            said.events.push(TranslatedEvent::Whole(event));
        }
    }

    fn result(&mut self, line: &str, value: &Value, said: &mut Translation) {
        said.facts.session_id = owned(value, "sessionId").or_else(|| said.facts.session_id.take());
        let exit_code = value.get("exitCode").and_then(Value::as_i64);
        said.facts.verdict =
            Some(if exit_code == Some(0) { AgentVerdict::Success } else { AgentVerdict::Failure });
        // Ours has counts that the reference has not.
        let ours = serde_json::from_str::<RunResult>(line).ok().map(|result| result.usage);
        let told = |value: Option<u64>| value.filter(|value| *value > 0);
        let output = ours.as_ref().and_then(|usage| usage.output_tokens);
        said.facts.usage = AgentUsage {
            input_tokens: Figure::reported(ours.as_ref().and_then(|usage| usage.input_tokens)),
            output_tokens: match (output, self.output_tokens) {
                (Some(tokens), _) => Figure::Reported(tokens as f64),
                (None, Some(sum)) => Figure::Derived(sum as f64),
                (None, None) => Figure::Unknown,
            },
            premium_requests: Figure::reported(count(value, "usage.premiumRequests")),
            api_ms: Figure::reported(told(count(value, "usage.totalApiDurationMs"))),
            ..AgentUsage::default()
        };
    }
}

/// Types that the reference sends and that mean nothing to us: no drift.
fn known_elsewhere(kind: &str) -> bool {
    const KNOWN: &[&str] =
        &["agent.interrupted", "session.mcp_server_tools_loaded", "session.permissions_changed"];
    KNOWN.contains(&kind)
}
