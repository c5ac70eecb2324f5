//! Translator of the Agent Client Protocol: updates of a session into our events. Answers come as deltas only, so the
//! full text is emitted when something else begins.

use hangar_protocol::data;
use serde_json::Value;

use super::Translation;
use super::bookkeeping::{Bookkeeping, ToolEnd};
use super::json::{content, count, owned, text};
use crate::outcome::ReportedError;
use crate::usage::{AgentUsage, Figure};

/// The longest answer that is put together from pieces.
const MAX_ANSWER: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct Acp {
    account: Bookkeeping,
    answer: OpenTexts,
    thought: OpenTexts,
    /// The only answer, where it came at once and begins as an error does.
    error: Option<String>,
    pieces: u64,
}

/// A text that comes in pieces, with the name that we gave it.
#[derive(Debug, Default)]
struct OpenTexts {
    id: Option<String>,
    text: String,
}

impl OpenTexts {
    fn push(&mut self, piece: &str) -> String {
        if self.text.len() + piece.len() <= MAX_ANSWER {
            self.text.push_str(piece);
        }
        self.id.get_or_insert_with(|| uuid::Uuid::new_v4().to_string()).clone()
    }

    fn take(&mut self) -> Option<(String, String)> {
        Some((self.id.take()?, std::mem::take(&mut self.text)))
    }
}

impl Acp {
    pub(crate) fn update(&mut self, update: &Value, said: &mut Translation) {
        match text(update, "sessionUpdate").unwrap_or_default() {
            "agent_message_chunk" => {
                self.end_thought(said);
                self.account.open_turn(said);
                let piece = text(update, "content.text").unwrap_or_default();
                let message_id = self.answer.push(piece);
                self.pieces += 1;
                said.facts.worked = true;
                said.push(data::MessageDelta {
                    message_id,
                    delta_content: piece.to_owned(),
                    parent_tool_call_id: None,
                });
            }
            "agent_thought_chunk" => {
                self.account.open_turn(said);
                let piece = text(update, "content.text").unwrap_or_default();
                let reasoning_id = self.thought.push(piece);
                said.push(data::ReasoningDelta { reasoning_id, delta_content: piece.to_owned() });
            }
            "tool_call" => {
                self.flush(said);
                self.called(update, said);
                self.ended(update, said);
            }
            "tool_call_update" => {
                // Some tell of a call for the first time when they ask for permission.
                if text(update, "title").is_some() {
                    self.flush(said);
                    self.called(update, said);
                }
                self.ended(update, said);
            }
            // About the session, or for those who show it.
            "user_message_chunk"
            | "plan"
            | "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "session_info_update"
            | "usage_update" => {}
            other => said.unknown(other, &update.to_string()),
        }
    }

    fn called(&mut self, update: &Value, said: &mut Translation) {
        let Some(id) = text(update, "toolCallId") else { return };
        // The protocol has no names of tools, only what a call is shown as.
        let name = text(update, "kind")
            .filter(|kind| *kind != "other")
            .or_else(|| text(update, "title"))
            .unwrap_or("tool");
        let arguments = update.get("rawInput").cloned().unwrap_or(Value::Null);
        self.account.tool_called(None, id, name, arguments, said);
    }

    fn ended(&mut self, update: &Value, said: &mut Translation) {
        let (Some(id), Some(status)) = (text(update, "toolCallId"), text(update, "status")) else { return };
        if !matches!(status, "completed" | "failed") || !self.account.is_open(id) {
            return;
        }
        let parts: Vec<String> = super::json::list(update, "content")
            .iter()
            .map(|part| match text(part, "type") {
                Some("diff") => format!("changed {}", text(part, "path").unwrap_or_default()),
                _ => owned(part, "content.text").unwrap_or_default(),
            })
            .collect();
        let mut output = parts.join("\n");
        if output.is_empty() {
            output = update
                .get("rawOutput")
                .map(|raw| owned(raw, "content").unwrap_or_else(|| content(raw)))
                .unwrap_or_default();
        }
        let end = ToolEnd { success: status == "completed", text: output, ..ToolEnd::default() };
        self.account.tool_ended(id, end, said);
    }

    fn end_thought(&mut self, said: &mut Translation) {
        if let Some((reasoning_id, content)) = self.thought.take() {
            said.push(data::AssistantReasoning { reasoning_id, content });
        }
    }

    fn flush(&mut self, said: &mut Translation) {
        self.end_thought(said);
        if let Some((id, text)) = self.answer.take() {
            self.error = text.strip_prefix("Error: ").filter(|_| self.pieces == 1).map(str::to_owned);
            self.account.message(None, id, text, said);
        }
    }

    /// The protocol has no word for a model that failed: agents answer with the error's text. It is believed only of an
    /// answer that is the whole of its turn, came in one piece, and for which no model is known to have been paid.
    pub(crate) fn error_in_answer(&self) -> Option<ReportedError> {
        let message = self.error.clone()?;
        Some(ReportedError { message, ..ReportedError::default() })
    }

    /// The turn is over.
    pub(crate) fn end(&mut self, said: &mut Translation) {
        self.flush(said);
        self.account.close(said);
    }
}

/// Usage in the answer to a prompt: since the session was opened.
pub(crate) fn usage(answer: &Value) -> AgentUsage {
    let figure = |path: &str| Figure::reported(count(answer, path));
    AgentUsage {
        input_tokens: figure("usage.inputTokens"),
        output_tokens: figure("usage.outputTokens"),
        cache_read_tokens: figure("usage.cachedReadTokens"),
        cache_write_tokens: figure("usage.cachedWriteTokens"),
        reasoning_tokens: figure("usage.thoughtTokens"),
        ..AgentUsage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translate::TranslatedEvent;
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    /// The events of a turn, as kinds with what matters of them.
    #[track_caller]
    fn check(updates: &[Value], expected: &[&str]) {
        let (mut acp, mut said) = (Acp::default(), Translation::default());
        for update in updates {
            acp.update(update, &mut said);
        }
        acp.end(&mut said);
        assert_eq!(told(&said), expected);
    }

    fn told(said: &Translation) -> Vec<String> {
        let event = |spoken: &TranslatedEvent| {
            let TranslatedEvent::Body { body, .. } = spoken else { unreachable!("every event is made here") };
            let data = body.data().unwrap();
            let words = ["content", "deltaContent", "toolName"].iter().find_map(|name| data[*name].as_str());
            let result = data["result"]["content"].as_str().or_else(|| data["error"]["message"].as_str());
            [body.kind(), words.or(result).unwrap_or_default()].join(" ").trim_end().to_owned()
        };
        said.events.iter().map(event).collect()
    }

    /// A recorded connection: twenty-seven prompts to eight sessions, some of them at once.
    #[test]
    fn the_recorded_run_is_told_as_it_was_reviewed() {
        let mut prompts = BTreeMap::new();
        let mut turns: BTreeMap<String, (Acp, Translation)> = BTreeMap::new();
        let mut report = String::new();
        for line in include_str!("../../tests/captures/copilot-acp.jsonl").lines() {
            let (from, message) = line.split_at(2);
            let message: Value = serde_json::from_str(message).unwrap();
            let (id, params) = (message["id"].as_u64(), &message["params"]);
            let session = owned(params, "sessionId").unwrap_or_default();
            match (from, text(&message, "method"), id.and_then(|id| prompts.remove(&id))) {
                ("> ", Some("session/prompt"), None) => {
                    prompts.insert(id.unwrap(), session.clone());
                    turns.insert(session, Default::default());
                }
                ("< ", Some("session/update"), None) => {
                    if let Some((acp, said)) = turns.get_mut(&session) {
                        acp.update(&params["update"], said);
                    }
                }
                ("< ", None, Some(session)) => {
                    let (mut acp, mut said) = turns.remove(&session).unwrap();
                    acp.end(&mut said);
                    assert!(said.facts.unknown.is_empty(), "{:?}", said.facts.unknown);
                    let usage = usage(&message["result"]);
                    let sizes =
                        [usage.input_tokens, usage.output_tokens].map(|figure| figure.count().unwrap());
                    let told = told(&said).join("\n").replace("\n<", " <");
                    report += &format!("{told}\n-- {} {sizes:?}\n", message["result"]["stopReason"]);
                }
                _ => {}
            }
        }
        expect_test::expect_file!["../../tests/told/copilot-acp.txt"].assert_eq(&report);
    }

    fn piece(kind: &str, text: &str) -> Value {
        json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
    }

    #[test]
    fn pieces_become_one_answer() {
        check(
            &[
                piece("agent_thought_chunk", "hm"),
                piece("agent_message_chunk", "po"),
                piece("agent_message_chunk", "ng"),
            ],
            &[
                "assistant.turn_start",
                "assistant.reasoning_delta hm",
                "assistant.reasoning hm",
                "assistant.message_delta po",
                "assistant.message_delta ng",
                "assistant.message pong",
                "assistant.turn_end",
            ],
        );
    }

    #[test]
    fn a_call_is_told_between_the_answers_around_it() {
        let call = json!({
            "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Say hi", "kind": "execute", "status": "pending",
            "rawInput": { "command": "echo hi" },
        });
        let done = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
            "content": [{ "type": "content", "content": { "type": "text", "text": "hi" } }],
        });
        check(
            &[piece("agent_message_chunk", "a"), call, done, piece("agent_message_chunk", "b")],
            &[
                "assistant.turn_start",
                "assistant.message_delta a",
                "assistant.message a",
                "assistant.message",
                "tool.execution_start execute",
                "tool.execution_complete hi",
                "assistant.message_delta b",
                "assistant.message b",
                "assistant.turn_end",
            ],
        );
    }

    #[test]
    fn a_call_that_never_ended_is_closed() {
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Wait" });
        let expected = [
            "assistant.turn_start",
            "assistant.message",
            "tool.execution_start Wait",
            "tool.execution_complete The agent ended before the tool did.",
            "assistant.turn_end",
        ];
        check(&[call], &expected);
    }

    #[test]
    fn what_nobody_knows_is_kept() {
        check(&[json!({ "sessionUpdate": "moon" })], &["session.info"]);
    }

    proptest! {
        #[test]
        fn updates_of_any_shape_harm_nothing(kind in "agent_message_chunk|tool_call|tool_call_update|plan|x", id in ".{0,4}", status in "completed|failed|x", text in ".{0,20}", list in any::<bool>()) {
            let content = if list { json!([text, { "content": text }, { "type": "diff" }]) } else { json!(text) };
            let update = json!({ "sessionUpdate": kind, "toolCallId": id, "status": status, "title": text, "content": content });
            let (mut acp, mut said) = (Acp::default(), Translation::default());
            acp.update(&update, &mut said);
            acp.update(&update, &mut said);
            acp.end(&mut said);
        }
    }
}
