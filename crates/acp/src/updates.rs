//! Events of a session as updates of the protocol. Events without an equivalent are left out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hangar_agent::driver::EventSink;
use hangar_peer::Peer;
use hangar_protocol::data::ToolStart;
use hangar_protocol::{Body, Event};
use serde::Serialize;

use crate::commands;
use crate::options::mode_id;
use crate::schema::{ContentBlock, Update};
use crate::tool_call;

/// Whether events are live or replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateDelivery {
    Live,
    /// The whole conversation, its user's part too, and nothing but that.
    Again,
}

pub(crate) struct UpdateTranslator {
    telling: UpdateDelivery,
    /// Calls that have begun and not ended.
    calls: HashMap<String, ToolStart>,
    /// Messages and thoughts that came in pieces, until they are whole.
    in_pieces: HashSet<String>,
    thought_in_pieces: bool,
}

impl UpdateTranslator {
    pub(crate) fn new(telling: UpdateDelivery) -> Self {
        Self { telling, calls: HashMap::new(), in_pieces: HashSet::new(), thought_in_pieces: false }
    }

    pub(crate) fn translate(&mut self, event: &Event) -> Vec<Update> {
        // Events of a sub-agent are part of the call that started it.
        if event.agent_id().is_some() {
            return Vec::new();
        }
        self.conversation(event.body()).or_else(|| self.news(event)).unwrap_or_default()
    }

    /// Updates about the conversation; the same live and in a replay.
    fn conversation(&mut self, body: &Body) -> Option<Vec<Update>> {
        Some(match body {
            Body::UserMessage(message) => {
                let spoken = self.telling == UpdateDelivery::Again && message.source.is_none();
                let content = ContentBlock::text(message.content.clone());
                spoken.then_some(Update::UserMessageChunk { content }).into_iter().collect()
            }
            Body::AssistantMessage(message) => {
                let mut updates = Vec::new();
                let thought = message.reasoning_text.as_ref().filter(|text| !text.is_empty());
                if let Some(thought) = thought.filter(|_| !std::mem::take(&mut self.thought_in_pieces)) {
                    let content = ContentBlock::text(thought.clone());
                    updates.push(Update::AgentThoughtChunk { content });
                }
                if !self.in_pieces.remove(&message.message_id) && !message.content.is_empty() {
                    updates.push(Update::said(message.content.clone()));
                }
                updates
            }
            Body::ToolStart(start) => {
                self.calls.insert(start.tool_call_id.clone(), start.clone());
                vec![Update::ToolCall(tool_call::started(start))]
            }
            Body::ToolComplete(complete) => {
                let start = self.calls.remove(&complete.tool_call_id);
                vec![Update::ToolCallUpdate(tool_call::completed(complete, start.as_ref()))]
            }
            Body::TaskComplete(complete) => complete
                .summary
                .clone()
                .filter(|text| !text.is_empty())
                .map(Update::said)
                .into_iter()
                .collect(),
            _ => return None,
        })
    }

    /// Updates that matter only while they happen.
    fn news(&mut self, event: &Event) -> Option<Vec<Update>> {
        if self.telling == UpdateDelivery::Again {
            return None;
        }
        let update = match event.body() {
            Body::MessageDelta(delta) => {
                self.in_pieces.insert(delta.message_id.clone());
                Update::said(delta.delta_content.clone())
            }
            Body::ReasoningDelta(delta) => {
                self.thought_in_pieces = true;
                Update::AgentThoughtChunk { content: ContentBlock::text(delta.delta_content.clone()) }
            }
            Body::ToolPartialResult(partial) if !partial.partial_output.is_empty() => Update::ToolCallUpdate(
                tool_call::output_so_far(&partial.tool_call_id, &partial.partial_output),
            ),
            Body::UsageInfo(usage) => {
                Update::UsageUpdate { used: usage.current_tokens, size: usage.token_limit }
            }
            Body::TitleChanged(title) => Update::SessionInfoUpdate {
                title: title.title.clone(),
                updated_at: event.timestamp().to_owned(),
            },
            Body::ModeChanged(change) => {
                Update::CurrentModeUpdate { current_mode_id: mode_id(change.new_mode) }
            }
            Body::SkillsLoaded(loaded) if !loaded.skills.is_empty() => commands::available(&loaded.skills),
            Body::SessionError(error) => Update::said(format!("Error: {}", error.message)),
            Body::SessionWarning(warning) => Update::said(format!("Warning: {}", warning.message)),
            // The answer of a slash command.
            Body::SessionInfo(info) if info.info_type == "command" => Update::said(info.message.clone()),
            // Others are about how the session is set up.
            Body::SessionInfo(info) if info.info_type == "model_retry" => {
                Update::said(format!("Info: {}", info.message))
            }
            _ => return None,
        };
        Some(vec![update])
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionUpdate<'a> {
    session_id: &'a str,
    update: &'a Update,
}

/// Sender of one session's updates.
#[derive(Clone)]
pub(crate) struct UpdateSender {
    pub(crate) peer: Peer,
    pub(crate) session_id: Arc<str>,
}

impl UpdateSender {
    pub(crate) fn send(&self, update: &Update) {
        self.peer.notify("session/update", &SessionUpdate { session_id: &self.session_id, update });
    }
}

/// Sends the events of a session to the client.
pub(crate) struct UpdateSink {
    channel: UpdateSender,
    translator: UpdateTranslator,
}

impl UpdateSink {
    pub(crate) fn new(channel: UpdateSender) -> Self {
        Self { channel, translator: UpdateTranslator::new(UpdateDelivery::Live) }
    }
}

impl EventSink for UpdateSink {
    fn publish(&mut self, event: &Event) {
        for update in self.translator.translate(event) {
            self.channel.send(&update);
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;

    fn check(telling: UpdateDelivery, events: &[(&str, Value)], expect: Expect) {
        let mut translator = UpdateTranslator::new(telling);
        let mut told = String::new();
        for (kind, data) in events {
            let event = json!({"type": kind, "data": data, "id": "e", "timestamp": "T", "parentId": null});
            let event = Event::parse(&event.to_string()).unwrap();
            assert!(!matches!(event.body(), Body::Unknown { .. }), "{kind} is not understood");
            for update in translator.translate(&event) {
                told.push_str(&serde_json::to_string(&update).unwrap());
                told.push('\n');
            }
        }
        expect.assert_eq(&told);
    }

    fn message(text: &str) -> (&'static str, Value) {
        (
            "assistant.message",
            json!({"messageId": "m", "content": text, "reasoningText": "hm", "toolRequests": []}),
        )
    }

    #[test]
    fn an_answer_in_pieces_is_not_told_twice() {
        check(
            UpdateDelivery::Live,
            &[
                ("assistant.reasoning_delta", json!({"reasoningId": "r", "deltaContent": "hm"})),
                ("assistant.message_delta", json!({"messageId": "m", "deltaContent": "po"})),
                ("assistant.message_delta", json!({"messageId": "m", "deltaContent": "ng"})),
                message("pong"),
                message("whole"),
            ],
            expect![[r#"
                {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}
                {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"po"}}
                {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"ng"}}
                {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}
                {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"whole"}}
            "#]],
        );
    }

    #[test]
    fn a_conversation_that_is_told_again_has_both_sides_and_no_news() {
        check(
            UpdateDelivery::Again,
            &[
                ("user.message", json!({"content": "say pong"})),
                ("user.message", json!({"content": "go on", "source": "autopilot"})),
                ("session.usage_info", json!({"tokenLimit": 10, "currentTokens": 1, "messagesLength": 1})),
                message("pong"),
                ("session.error", json!({"errorType": "query", "message": "gone by"})),
            ],
            expect![[r#"
                {"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"say pong"}}
                {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}
                {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"pong"}}
            "#]],
        );
    }

    #[test]
    fn skills_are_commands_beside_our_own() {
        let mut translator = UpdateTranslator::new(UpdateDelivery::Live);
        let skill = |name: &str, user_invocable: bool| json!({"name": name, "description": "Ship it", "source": "project", "userInvocable": user_invocable, "enabled": true});
        let skills = json!({"skills": [skill("deploy", true), skill("x", false)]});
        let event = json!({"type": "session.skills_loaded", "data": skills, "id": "e", "timestamp": "T", "parentId": null});
        let updates = translator.translate(&Event::parse(&event.to_string()).unwrap());
        let [Update::AvailableCommandsUpdate { available_commands }] = updates.as_slice() else {
            panic!("{updates:?}")
        };
        let last = available_commands.last().unwrap();
        assert_eq!((last.name.as_str(), last.description.as_str()), ("deploy", "Ship it"));
        assert!(available_commands.iter().any(|command| command.name == "plan"));
    }

    #[test]
    fn an_edit_is_told_as_a_difference_and_a_failure_with_its_code() {
        let edit = json!({"path": "/w/a", "old_str": "x", "new_str": "y"});
        check(
            UpdateDelivery::Live,
            &[
                ("tool.execution_start", json!({"toolCallId": "1", "toolName": "edit", "arguments": edit})),
                (
                    "tool.execution_complete",
                    json!({"toolCallId": "1", "success": true, "result": {"content": "done"}}),
                ),
                (
                    "tool.execution_start",
                    json!({"toolCallId": "2", "toolName": "nosuch", "arguments": {"x": 1}}),
                ),
                (
                    "tool.execution_complete",
                    json!({"toolCallId": "2", "success": false, "error": {"message": "no such tool", "code": "failure"}}),
                ),
            ],
            expect![[r#"
                {"sessionUpdate":"tool_call","toolCallId":"1","title":"Editing /w/a","kind":"edit","status":"pending","rawInput":{"path":"/w/a","old_str":"x","new_str":"y"},"locations":[{"path":"/w/a"}],"content":[{"type":"diff","path":"/w/a","oldText":"x","newText":"y"}]}
                {"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","content":[{"type":"diff","path":"/w/a","oldText":"x","newText":"y"}],"rawOutput":{"content":"done"}}
                {"sessionUpdate":"tool_call","toolCallId":"2","title":"nosuch","kind":"other","status":"pending","rawInput":{"x":1}}
                {"sessionUpdate":"tool_call_update","toolCallId":"2","status":"failed","rawOutput":{"message":"no such tool","code":"failure"}}
            "#]],
        );
    }

    #[test]
    fn a_command_is_told_with_its_output_so_far_and_its_end() {
        let bash = json!({"command": "make", "description": "Build"});
        check(
            UpdateDelivery::Live,
            &[
                ("tool.execution_start", json!({"toolCallId": "1", "toolName": "bash", "arguments": bash})),
                ("tool.execution_partial_result", json!({"toolCallId": "1", "partialOutput": ""})),
                ("tool.execution_partial_result", json!({"toolCallId": "1", "partialOutput": "cc"})),
                (
                    "tool.execution_complete",
                    json!({"toolCallId": "1", "success": true, "result": {"content": "cc ok"}}),
                ),
            ],
            expect![[r#"
                {"sessionUpdate":"tool_call","toolCallId":"1","title":"Build","kind":"execute","status":"pending","rawInput":{"command":"make","description":"Build"}}
                {"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"cc"}}]}
                {"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"cc ok"}}],"rawOutput":{"content":"cc ok"}}
            "#]],
        );
    }
}
