//! Codex, `exec --json`: threads, turns and items. It sends whole items, never pieces, and its usage counts the thread.

use hangar_protocol::data;
use serde_json::{Value, json};

use super::bookkeeping::{Bookkeeping, ToolEnd};
use super::json::{count, list, owned, text};
use super::{Translation, Translator};
use crate::outcome::{AgentVerdict, ReportedError};
use crate::usage::{AgentUsage, Figure};

#[derive(Debug, Default)]
pub struct CodexTranslator {
    account: Bookkeeping,
}

impl Translator for CodexTranslator {
    fn line(&mut self, line: &str, said: &mut Translation) {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return said.malformed(line) };
        let kind = text(&value, "type").unwrap_or_default();
        match kind {
            "thread.started" => said.facts.session_id = owned(&value, "thread_id"),
            "turn.started" => self.account.open_turn(said),
            "item.started" | "item.updated" => self.item(&value["item"], ItemProgress::UnderWay, line, said),
            "item.completed" => self.item(&value["item"], ItemProgress::Over, line, said),
            "turn.completed" => {
                self.account.close(said);
                said.facts.verdict = Some(AgentVerdict::Success);
                // It recovered from its earlier errors.
                said.facts.reported_error = None;
                said.facts.usage = usage(&value["usage"]);
                said.push(data::AssistantUsage {
                    model: self.account.model().unwrap_or_default().to_owned(),
                    input_tokens: count(&value, "usage.input_tokens"),
                    output_tokens: count(&value, "usage.output_tokens"),
                    cache_read_tokens: count(&value, "usage.cached_input_tokens"),
                    cache_write_tokens: count(&value, "usage.cache_write_input_tokens"),
                    reasoning_tokens: count(&value, "usage.reasoning_output_tokens"),
                    ..Default::default()
                });
            }
            "turn.failed" => {
                self.account.close(said);
                said.facts.verdict = Some(AgentVerdict::Failure);
                let reported_error =
                    reported_error(text(&value, "error.message").unwrap_or("the turn failed"));
                said.push(session_error(&reported_error));
                said.facts.reported_error = Some(reported_error);
            }
            "error" => {
                let message = text(&value, "message").unwrap_or("an error without a message");
                said.facts.reported_error = Some(reported_error(message));
                said.push(data::SessionWarning::new("agent_error", message.to_owned()));
            }
            other => said.unknown(other, line),
        }
    }

    fn end(&mut self, said: &mut Translation) {
        self.account.close(said);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemProgress {
    UnderWay,
    Over,
}

impl CodexTranslator {
    fn item(&mut self, item: &Value, progress: ItemProgress, line: &str, said: &mut Translation) {
        let id = text(item, "id").unwrap_or_default();
        let kind = text(item, "type").unwrap_or_default();
        match (kind, progress) {
            ("agent_message", ItemProgress::Over) => {
                let words = owned(item, "text").unwrap_or_default();
                self.account.message(None, id.to_owned(), words, said);
            }
            ("reasoning", ItemProgress::Over) => {
                let content = owned(item, "text").unwrap_or_default();
                said.push(data::AssistantReasoning { reasoning_id: id.to_owned(), content });
            }
            // Messages about itself are no failure of the turn.
            ("error", ItemProgress::Over) => {
                let message = owned(item, "message").unwrap_or_default();
                said.push(data::SessionWarning::new("agent_notice", message));
            }
            ("agent_message" | "reasoning" | "error", ItemProgress::UnderWay) => {}
            ("command_execution", _) => {
                self.tool(id, "shell", json!({ "command": item["command"] }), item, progress, said);
            }
            ("file_change", _) => {
                self.tool(id, "apply_patch", json!({ "changes": item["changes"] }), item, progress, said);
            }
            ("mcp_tool_call", _) => {
                let server = text(item, "server").unwrap_or_default();
                let name = format!("{server}-{}", text(item, "tool").unwrap_or_default());
                self.tool(id, &name, item["arguments"].clone(), item, progress, said);
            }
            ("web_search" | "todo_list" | "collab_tool_call" | "image_generation", _) => {
                let mut arguments = item.clone();
                if let Value::Object(members) = &mut arguments {
                    members.retain(|name, _| !matches!(name.as_str(), "id" | "type" | "status"));
                }
                self.tool(id, kind, arguments, item, progress, said);
            }
            (other, _) => said.unknown(&format!("item:{other}"), line),
        }
    }

    fn tool(
        &mut self,
        id: &str,
        name: &str,
        arguments: Value,
        item: &Value,
        progress: ItemProgress,
        said: &mut Translation,
    ) {
        if !self.account.is_open(id) {
            self.account.tool_called(None, id, name, arguments, said);
        }
        if progress == ItemProgress::UnderWay {
            return;
        }
        let exit_code = item["exit_code"].as_i64().and_then(|code| i32::try_from(code).ok());
        let status = text(item, "status").unwrap_or("completed");
        let words = owned(item, "aggregated_output")
            .or_else(|| owned(item, "error.message"))
            .or_else(|| item.get("result").map(super::json::content))
            .unwrap_or_else(|| changed(item));
        let end = ToolEnd {
            success: status == "completed",
            text: words,
            code: (status == "declined").then(|| "denied".to_owned()),
            exit_code,
            detailed: None,
        };
        self.account.tool_ended(id, end, said);
    }
}

fn changed(item: &Value) -> String {
    let lines: Vec<String> = list(item, "changes")
        .iter()
        .map(|change| {
            format!(
                "{} {}",
                text(change, "kind").unwrap_or("update"),
                text(change, "path").unwrap_or_default()
            )
        })
        .collect();
    lines.join("\n")
}

fn usage(value: &Value) -> AgentUsage {
    AgentUsage {
        input_tokens: Figure::reported(count(value, "input_tokens")),
        output_tokens: Figure::reported(count(value, "output_tokens")),
        cache_read_tokens: Figure::reported(count(value, "cached_input_tokens")),
        cache_write_tokens: Figure::reported(count(value, "cache_write_input_tokens")),
        reasoning_tokens: Figure::reported(count(value, "reasoning_output_tokens")),
        ..AgentUsage::default()
    }
}

/// Its errors are sentences. The one place where a status stands in them is fixed.
fn reported_error(message: &str) -> ReportedError {
    let status_code = message
        .split_once("unexpected status ")
        .and_then(|(_, rest)| rest.get(..3))
        .and_then(|digits| digits.parse().ok());
    ReportedError { message: message.to_owned(), status_code, code: None }
}

pub(super) fn session_error(reported_error: &ReportedError) -> data::SessionError {
    use crate::outcome::ErrorKind;
    let error_type = match reported_error.kind() {
        Some(ErrorKind::Auth) => "authentication",
        Some(ErrorKind::RateLimited) => "rate_limit",
        Some(ErrorKind::ContextLimit) => "context_limit",
        Some(ErrorKind::BudgetExceeded) => "quota",
        _ => "query",
    };
    data::SessionError {
        error_type: error_type.to_owned(),
        message: reported_error.message.clone(),
        status_code: reported_error.status_code,
        error_code: reported_error.code.clone(),
        ..data::SessionError::default()
    }
}
