//! Claude Code, `--output-format stream-json`: one line per block of a message, pieces on request, a result per turn.
//!
//! Blocks of one message come on lines of their own, and a tool starts before the next line is written. So each block
//! becomes an event at once, named by its message and its place in it.

use std::collections::BTreeMap;

use hangar_protocol::AgentId;
use hangar_protocol::data;
use serde_json::Value;

use super::bookkeeping::{Bookkeeping, ToolEnd};
use super::codex::session_error;
use super::json::{at, content, count, flag, list, owned, text};
use super::{Translation, Translator};
use crate::outcome::{AgentVerdict, ReportedError};
use crate::usage::{AgentUsage, Figure};

/// Model name on messages that the agent itself wrote.
const SYNTHETIC: &str = "<synthetic>";
/// Sub-agents that are kept apart. One that never ends must not make this grow without bound.
const MAX_AGENTS: usize = 1024;

#[derive(Debug, Default)]
pub struct ClaudeTranslator {
    account: Bookkeeping,
    /// The message whose blocks are coming, per agent, and how many of them came.
    blocks: BTreeMap<Option<String>, (String, usize)>,
    /// The message whose pieces are coming.
    streaming: Option<String>,
    /// Running sub-agents, by the call that started them.
    agents: BTreeMap<String, String>,
}

impl Translator for ClaudeTranslator {
    fn line(&mut self, line: &str, said: &mut Translation) {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return said.malformed(line) };
        let agent = text(&value, "parent_tool_use_id").map(|id| AgentId(id.to_owned()));
        match text(&value, "type").unwrap_or_default() {
            "system" => self.system(&value, line, said),
            "assistant" => self.assistant(agent, &value, said),
            "user" => self.user(agent, &value, said),
            "stream_event" => self.piece(agent, &value["event"], said),
            "result" => self.result(&value, said),
            // Asked and answered by the host, where it is one.
            "control_request" | "control_response" | "keep_alive" => {}
            other => said.unknown(other, line),
        }
    }

    fn end(&mut self, said: &mut Translation) {
        self.account.close(said);
    }
}

impl ClaudeTranslator {
    fn system(&mut self, value: &Value, line: &str, said: &mut Translation) {
        match text(value, "subtype").unwrap_or_default() {
            "init" => {
                said.facts.session_id = owned(value, "session_id");
                said.facts.model = owned(value, "model");
                self.account.set_model(text(value, "model"));
                let servers = list(value, "mcp_servers").to_vec();
                if !servers.is_empty() {
                    said.push(data::McpServersLoaded { servers });
                }
                if let Some(model) = owned(value, "model") {
                    said.push(data::ToolsUpdated { model });
                }
            }
            "api_retry" => {
                let status_code = count(value, "error_status").and_then(|status| status.try_into().ok());
                let reported_error = ReportedError {
                    message: owned(value, "error").unwrap_or_else(|| "a call to the model failed".to_owned()),
                    status_code,
                    code: owned(value, "error"),
                };
                said.push(data::ModelCallFailure {
                    model: self.account.model().map(str::to_owned),
                    status_code,
                    duration_ms: None,
                    api_endpoint: None,
                    failure_kind: Some(if status_code.is_some() { "api" } else { "transport" }.to_owned()),
                    source: "top_level".to_owned(),
                    error_message: Some(reported_error.message.clone()),
                    error_code: reported_error.code.clone(),
                    error_type: None,
                });
                said.facts.reported_error = Some(reported_error);
            }
            "task_started" => self.agent_started(value, line, said),
            "task_notification" => self.agent_ended(value, said),
            "compact_boundary" => {
                said.push(data::SessionInfo::new("compaction", "the agent summed its history up".to_owned()));
            }
            "status"
            | "task_updated"
            | "task_progress"
            | "thinking_tokens"
            | "hook_started"
            | "hook_progress"
            | "hook_response"
            | "files_persisted"
            | "session_state_changed"
            | "post_turn_summary" => {}
            other => said.unknown(&format!("system:{other}"), line),
        }
    }

    fn agent_started(&mut self, value: &Value, line: &str, said: &mut Translation) {
        let Some(call) = owned(value, "tool_use_id") else { return };
        let name = owned(value, "subagent_type").unwrap_or_else(|| "agent".to_owned());
        if self.agents.len() >= MAX_AGENTS {
            return said.unknown("system:task_started", line);
        }
        self.agents.insert(call.clone(), name.clone());
        let started = data::SubagentStarted {
            tool_call_id: call.clone(),
            agent_name: name.clone(),
            agent_display_name: name,
            agent_description: owned(value, "description").unwrap_or_default(),
            ..Default::default()
        };
        said.push_from(Some(AgentId(call)), started);
    }

    fn agent_ended(&mut self, value: &Value, said: &mut Translation) {
        let Some(call) = owned(value, "tool_use_id") else { return };
        let Some(name) = self.agents.remove(&call) else { return };
        let agent = Some(AgentId(call.clone()));
        if text(value, "status") == Some("completed") {
            let completed = data::SubagentCompleted {
                tool_call_id: call,
                agent_name: name.clone(),
                agent_display_name: name,
                total_tool_calls: count(value, "usage.tool_uses"),
                total_tokens: count(value, "usage.total_tokens"),
                duration_ms: count(value, "usage.duration_ms"),
                ..Default::default()
            };
            said.push_from(agent, completed);
        } else {
            let failed = data::SubagentFailed {
                tool_call_id: call,
                agent_name: name.clone(),
                agent_display_name: name,
                error: owned(value, "summary").unwrap_or_default(),
                ..Default::default()
            };
            said.push_from(agent, failed);
        }
    }

    fn assistant(&mut self, agent: Option<AgentId>, value: &Value, said: &mut Translation) {
        let message = &value["message"];
        let model = text(message, "model").unwrap_or_default();
        if model == SYNTHETIC {
            // Its own words about a failure; the result repeats them with the facts.
            return;
        }
        let id = text(message, "id").unwrap_or_default();
        let first = self.next_message(&agent, id);
        if agent.is_none() {
            self.account.set_model(Some(model));
            if first {
                self.account.close_turn(said);
            }
        }
        for block in list(message, "content") {
            let place = self.next_block(&agent);
            let name = format!("{id}.{place}");
            match text(block, "type").unwrap_or_default() {
                "text" => {
                    let words = owned(block, "text").unwrap_or_default();
                    self.account.message(agent.clone(), name, words, said);
                }
                "thinking" => {
                    let content = owned(block, "thinking").unwrap_or_default();
                    said.push_from(agent.clone(), data::AssistantReasoning { reasoning_id: name, content });
                }
                "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                    let call = text(block, "id").unwrap_or(&name).to_owned();
                    let tool = text(block, "name").unwrap_or_default().to_owned();
                    self.account.tool_called(agent.clone(), &call, &tool, block["input"].clone(), said);
                }
                // Reasoning that only the provider can read.
                "redacted_thinking" => {}
                kind if kind.ends_with("_tool_result") => self.tool_result(block, said),
                other => said.unknown(&format!("block:{other}"), &block.to_string()),
            }
        }
    }

    /// Notes which message the next blocks belong to; true if it is a new one.
    fn next_message(&mut self, agent: &Option<AgentId>, id: &str) -> bool {
        let key = agent.as_ref().map(|agent| agent.0.clone());
        match self.blocks.get(&key) {
            Some((current, _)) if current == id => false,
            _ => {
                if self.blocks.len() >= MAX_AGENTS {
                    self.blocks.retain(|agent, _| agent.is_none());
                }
                self.blocks.insert(key, (id.to_owned(), 0));
                true
            }
        }
    }

    fn next_block(&mut self, agent: &Option<AgentId>) -> usize {
        let key = agent.as_ref().map(|agent| agent.0.clone());
        let Some((_, count)) = self.blocks.get_mut(&key) else { return 0 };
        let place = *count;
        *count += 1;
        place
    }

    fn user(&mut self, agent: Option<AgentId>, value: &Value, said: &mut Translation) {
        for block in list(value, "message.content") {
            match text(block, "type").unwrap_or_default() {
                "tool_result" => self.tool_result(block, said),
                "text" if agent.is_some() => {
                    let message = data::UserMessage {
                        content: owned(block, "text").unwrap_or_default(),
                        ..Default::default()
                    };
                    said.push_from(agent.clone(), message);
                }
                // Its own notes to the model, and prompts that we know because we sent them.
                _ => {}
            }
        }
    }

    fn tool_result(&mut self, block: &Value, said: &mut Translation) {
        let Some(call) = text(block, "tool_use_id") else { return };
        let failed = flag(block, "is_error").unwrap_or(false);
        let words = content(&block["content"]);
        let exit_code = failed
            .then(|| words.strip_prefix("Exit code ")?.split_whitespace().next()?.parse().ok())
            .flatten();
        let end = ToolEnd { success: !failed, text: words, exit_code, ..ToolEnd::default() };
        self.account.tool_ended(call, end, said);
    }

    fn piece(&mut self, agent: Option<AgentId>, event: &Value, said: &mut Translation) {
        match text(event, "type").unwrap_or_default() {
            "message_start" => {
                let id = owned(event, "message.id").unwrap_or_default();
                if agent.is_none() && self.next_message(&agent, &id) {
                    self.account.close_turn(said);
                    self.account.open_turn(said);
                }
                self.streaming = Some(id);
            }
            "content_block_start" if text(event, "content_block.type") == Some("text") => {
                if let Some(message_id) = self.block_of(event) {
                    said.push_from(agent, data::MessageStart { message_id });
                }
            }
            "content_block_delta" => {
                let Some(id) = self.block_of(event) else { return };
                let delta = &event["delta"];
                match text(delta, "type").unwrap_or_default() {
                    "text_delta" => {
                        let delta_content = owned(delta, "text").unwrap_or_default();
                        let piece =
                            data::MessageDelta { message_id: id, delta_content, parent_tool_call_id: None };
                        said.push_from(agent, piece);
                    }
                    "thinking_delta" => {
                        let delta_content = owned(delta, "thinking").unwrap_or_default();
                        said.push_from(agent, data::ReasoningDelta { reasoning_id: id, delta_content });
                    }
                    // Arguments in pieces are of no use before they are whole.
                    _ => {}
                }
            }
            "message_stop" => self.streaming = None,
            _ => {}
        }
    }

    fn block_of(&self, event: &Value) -> Option<String> {
        let message = self.streaming.as_ref()?;
        Some(format!("{message}.{}", count(event, "index")?))
    }

    fn result(&mut self, value: &Value, said: &mut Translation) {
        self.account.close(said);
        if let Some(id) = owned(value, "session_id") {
            said.facts.session_id = Some(id);
        }
        said.facts.usage = AgentUsage {
            input_tokens: told(value, "usage.input_tokens", "inputTokens"),
            output_tokens: told(value, "usage.output_tokens", "outputTokens"),
            cache_read_tokens: told(value, "usage.cache_read_input_tokens", "cacheReadInputTokens"),
            cache_write_tokens: told(value, "usage.cache_creation_input_tokens", "cacheCreationInputTokens"),
            reasoning_tokens: Figure::Unknown,
            cost_usd: at(value, "total_cost_usd")
                .and_then(Value::as_f64)
                .map_or(Figure::Unknown, Figure::Reported),
            premium_requests: Figure::Unknown,
            model_calls: Figure::reported(count(value, "num_turns")),
            api_ms: Figure::reported(count(value, "duration_api_ms")),
        };
        let usage = said.facts.usage;
        said.push(data::AssistantUsage {
            model: self.account.model().unwrap_or_default().to_owned(),
            input_tokens: usage.input_tokens.count(),
            output_tokens: usage.output_tokens.count(),
            cache_read_tokens: usage.cache_read_tokens.count(),
            cache_write_tokens: usage.cache_write_tokens.count(),
            finish_reason: owned(value, "stop_reason"),
            ..Default::default()
        });
        let subtype = text(value, "subtype").unwrap_or_default();
        let failed = flag(value, "is_error").unwrap_or(false) || subtype.starts_with("error");
        if !failed {
            said.facts.verdict = Some(AgentVerdict::Success);
            said.facts.reported_error = None;
            return;
        }
        let code = said.facts.reported_error.take().and_then(|reported_error| reported_error.code);
        let reported_error = ReportedError {
            message: owned(value, "result")
                .or_else(|| list(value, "errors").first().map(content))
                .unwrap_or_else(|| subtype.to_owned()),
            status_code: at(value, "api_error_status")
                .and_then(Value::as_u64)
                .and_then(|code| code.try_into().ok()),
            code: if subtype.starts_with("error") { Some(subtype.to_owned()) } else { code },
        };
        said.push(session_error(&reported_error));
        said.facts.reported_error = Some(reported_error);
        said.facts.verdict = Some(AgentVerdict::Failure);
    }
}

/// A count of a turn. The sum of an interrupted turn is zero; the counts by model are right.
fn told(value: &Value, turn: &str, model: &str) -> Figure {
    let cut_short =
        count(value, "usage.input_tokens") == Some(0) && count(value, "usage.output_tokens") == Some(0);
    let by_model = at(value, "modelUsage").and_then(Value::as_object).filter(|_| cut_short);
    match by_model.filter(|models| !models.is_empty()) {
        Some(models) => {
            Figure::Derived(models.values().filter_map(|usage| count(usage, model)).sum::<u64>() as f64)
        }
        None => Figure::reported(count(value, turn)),
    }
}
