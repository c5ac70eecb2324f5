//! opencode, `run --format json`: steps made of parts. Whole parts only, and no line that says how the run ended.

use hangar_protocol::data;
use serde_json::Value;

use super::bookkeeping::{Bookkeeping, ToolEnd};
use super::codex::session_error;
use super::json::{at, count, owned, text};
use super::{Translation, Translator};
use crate::outcome::{Halt, ReportedError};
use crate::usage::{AgentUsage, Figure};

/// Prefix of a tool's error when it would have needed a permission.
const REFUSED: &str = "The user rejected permission";

#[derive(Debug, Default)]
pub struct OpencodeTranslator {
    account: Bookkeeping,
    /// Usage of the steps so far; absent before the first.
    used: Option<AgentUsage>,
    /// Whether a tool of the step was not run because it would have needed a permission.
    refused: bool,
}

impl Translator for OpencodeTranslator {
    fn line(&mut self, line: &str, said: &mut Translation) {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return said.malformed(line) };
        if let Some(id) = owned(&value, "sessionID") {
            said.facts.session_id = Some(id);
        }
        let part = &value["part"];
        let id = text(part, "id").unwrap_or_default();
        match text(&value, "type").unwrap_or_default() {
            "step_start" => {
                (self.refused, said.facts.halted) = (false, None);
                self.account.open_turn(said);
            }
            "text" => {
                let words = owned(part, "text").unwrap_or_default();
                self.account.message(None, id.to_owned(), words, said);
            }
            "reasoning" => {
                let content = owned(part, "text").unwrap_or_default();
                said.push(data::AssistantReasoning { reasoning_id: id.to_owned(), content });
            }
            "tool_use" => self.tool(part, said),
            "step_finish" => self.step_finished(part, said),
            "error" => {
                let reported_error = ReportedError {
                    message: owned(&value, "error.data.message")
                        .or_else(|| owned(&value, "error.name"))
                        .unwrap_or_else(|| "an error without a message".to_owned()),
                    status_code: count(&value, "error.data.statusCode")
                        .and_then(|status| status.try_into().ok()),
                    code: owned(&value, "error.name"),
                };
                said.push(session_error(&reported_error));
                said.facts.reported_error = Some(reported_error);
            }
            other => said.unknown(other, line),
        }
    }

    fn end(&mut self, said: &mut Translation) {
        self.account.close(said);
    }
}

impl OpencodeTranslator {
    fn tool(&mut self, part: &Value, said: &mut Translation) {
        let id = text(part, "callID").or_else(|| text(part, "id")).unwrap_or_default();
        let name = text(part, "tool").unwrap_or_default();
        let input = at(part, "state.input").cloned().unwrap_or_default();
        self.account.tool_called(None, id, name, input, said);
        let status = text(part, "state.status").unwrap_or_default();
        if !matches!(status, "completed" | "error") {
            return;
        }
        self.refused |= text(part, "state.error").is_some_and(|error| error.starts_with(REFUSED));
        let exit_code = at(part, "state.metadata.exit").and_then(Value::as_i64);
        let words = owned(part, "state.output").or_else(|| owned(part, "state.error")).unwrap_or_default();
        let end = ToolEnd {
            // A call that it could not make sense of it answers itself, under this name.
            success: status == "completed" && name != "invalid",
            text: words,
            code: None,
            exit_code: exit_code.and_then(|code| i32::try_from(code).ok()),
            detailed: owned(part, "state.metadata.diff"),
        };
        self.account.tool_ended(id, end, said);
    }

    fn step_finished(&mut self, part: &Value, said: &mut Translation) {
        let tokens = |name: &str| count(part, &format!("tokens.{name}"));
        let cost = at(part, "cost").and_then(Value::as_f64);
        said.push(data::AssistantUsage {
            model: self.account.model().unwrap_or_default().to_owned(),
            input_tokens: tokens("input"),
            output_tokens: tokens("output"),
            reasoning_tokens: tokens("reasoning"),
            cache_read_tokens: tokens("cache.read"),
            cache_write_tokens: tokens("cache.write"),
            cost,
            finish_reason: owned(part, "reason"),
            ..Default::default()
        });
        let step = AgentUsage {
            input_tokens: Figure::reported(tokens("input")),
            output_tokens: Figure::reported(tokens("output")),
            cache_read_tokens: Figure::reported(tokens("cache.read")),
            cache_write_tokens: Figure::reported(tokens("cache.write")),
            reasoning_tokens: Figure::reported(tokens("reasoning")),
            cost_usd: cost.map_or(Figure::Unknown, Figure::Reported),
            model_calls: Figure::Derived(1.0),
            ..AgentUsage::default()
        };
        let used = self.used.map_or(step, |used| used.plus(step));
        self.used = Some(used);
        said.facts.usage = used;
        // Behind a step with tools there is another, unless it asked for a permission and gave up.
        said.facts.halted = match (text(part, "reason"), self.refused) {
            (Some("tool-calls"), true) => Some(Halt::Asked),
            (Some("tool-calls"), false) => Some(Halt::Midway),
            _ => None,
        };
        // A step that ended well got over whatever came before it.
        said.facts.reported_error = None;
        self.account.close_turn(said);
    }
}
