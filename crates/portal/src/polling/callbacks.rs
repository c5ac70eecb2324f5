//! Converts a session's events into callbacks. Pure: a fold that remembers what it needs to distinguish a text's first
//! delta from its next, and a tool's new output from earlier output.

use std::collections::{HashMap, HashSet};

use hangar_jobs::mcp::SERVER_NAME;
use hangar_protocol::data::{ToolComplete, ToolStart};
use hangar_protocol::{AgentId, Body, Event};
use serde_json::Value;

use super::response::{CallbackError, CallbackResult, SessionCallback, SessionResponse};

#[derive(Debug, Default)]
pub(crate) struct Callbacks {
    /// Texts that have begun and not ended.
    reasoning: HashSet<String>,
    messages: HashSet<String>,
    /// Output of running tools so far.
    shown: HashMap<String, String>,
    /// The calls that started agents.
    agents: HashMap<AgentId, String>,
    /// Whether idle was already reported for the current turn, so that its end does not repeat it.
    idle: bool,
    complained: bool,
}

impl Callbacks {
    pub(crate) fn event(&mut self, event: &Event) -> Vec<SessionResponse> {
        match event.body() {
            Body::TurnStart(start) => {
                (self.idle, self.complained) = (false, false);
                one(SessionCallback::OnAgentStart { turn_id: start.turn_id.clone() })
            }
            Body::TurnEnd(end) => one(SessionCallback::OnAgentEnd { turn_id: end.turn_id.clone() }),
            Body::ReasoningDelta(piece) => {
                let reasoning_id = piece.reasoning_id.clone();
                let begun = self.reasoning.insert(reasoning_id.clone());
                let start = begun
                    .then(|| SessionCallback::OnStartReasoning { reasoning_id: reasoning_id.clone() }.into());
                let delta = piece.delta_content.clone();
                let delta = SessionCallback::OnReasoning { reasoning_id, delta };
                start.into_iter().chain(one(delta)).collect()
            }
            Body::Reasoning(whole) => {
                self.reasoning.remove(&whole.reasoning_id);
                one(SessionCallback::OnEndReasoning {
                    reasoning_id: whole.reasoning_id.clone(),
                    complete_content: whole.content.clone(),
                })
            }
            Body::MessageDelta(piece) => {
                let message_id = piece.message_id.clone();
                let begun = self.messages.insert(message_id.clone());
                let start =
                    begun.then(|| SessionCallback::OnStartMessage { message_id: message_id.clone() }.into());
                let delta = SessionCallback::OnMessage { message_id, delta: piece.delta_content.clone() };
                start.into_iter().chain(one(delta)).collect()
            }
            Body::AssistantMessage(whole) => {
                self.messages.remove(&whole.message_id);
                one(SessionCallback::OnEndMessage {
                    message_id: whole.message_id.clone(),
                    complete_content: whole.content.clone(),
                })
            }
            Body::SubagentStarted(started) => {
                if let Some(agent) = event.agent_id() {
                    self.agents.insert(agent.clone(), started.tool_call_id.clone());
                }
                Vec::new()
            }
            Body::SubagentCompleted(_) | Body::SubagentFailed(_) => {
                if let Some(agent) = event.agent_id() {
                    self.agents.remove(agent);
                }
                Vec::new()
            }
            Body::ToolStart(start) => one(self.tool_start(start, event.agent_id())),
            Body::ToolPartialResult(partial) => {
                let before = self.shown.entry(partial.tool_call_id.clone()).or_default();
                let delta = news(before, &partial.partial_output).to_owned();
                before.clone_from(&partial.partial_output);
                if delta.is_empty() {
                    return Vec::new();
                }
                one(SessionCallback::OnToolExecution { tool_call_id: partial.tool_call_id.clone(), delta })
            }
            Body::ToolComplete(complete) => {
                self.shown.remove(&complete.tool_call_id);
                one(tool_end(complete))
            }
            Body::SessionIdle(_) => {
                self.idle = true;
                one(SessionCallback::OnIdle)
            }
            Body::SessionError(error) => {
                self.complained = true;
                vec![SessionResponse::Error { session_error: error.message.clone() }]
            }
            // The rest is not for those who look through callbacks.
            _ => Vec::new(),
        }
    }

    /// The end of a turn, with why it failed if it did. Not all agents say that in events.
    pub(crate) fn turn_ended(&mut self, failure: Option<&str>) -> Vec<SessionResponse> {
        let mut said = Vec::new();
        if let Some(failure) = failure.filter(|_| !self.complained) {
            said.push(SessionResponse::Error { session_error: failure.to_owned() });
        }
        if !self.idle {
            said.push(SessionCallback::OnIdle.into());
        }
        (self.idle, self.complained) = (false, false);
        // Texts and tools that did not end with their turn will not.
        self.reasoning.clear();
        self.messages.clear();
        self.shown.clear();
        said
    }

    fn tool_start(&self, start: &ToolStart, agent: Option<&AgentId>) -> SessionCallback {
        let parent = start.parent_tool_call_id.clone();
        SessionCallback::OnStartToolExecution {
            tool_call_id: start.tool_call_id.clone(),
            parent_tool_call_id: parent.or_else(|| self.agents.get(agent?).cloned()),
            tool_name: tool_name(start),
            tool_arguments: arguments(&start.arguments),
        }
    }
}

fn one(callback: SessionCallback) -> Vec<SessionResponse> {
    vec![callback.into()]
}

/// The tools of jobs are known by their own names, whatever server they come from.
fn tool_name(start: &ToolStart) -> String {
    let of_jobs = start.mcp_server_name.as_deref() == Some(SERVER_NAME);
    let named = start.mcp_tool_name.as_ref().filter(|_| of_jobs);
    named.unwrap_or(&start.tool_name).clone()
}

/// Two spaces per level; nothing for nothing.
fn arguments(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        given => serde_json::to_string_pretty(given).unwrap_or_default(),
    }
}

fn tool_end(complete: &ToolComplete) -> SessionCallback {
    SessionCallback::OnEndToolExecution {
        tool_call_id: complete.tool_call_id.clone(),
        result: complete.result.as_ref().map(|result| CallbackResult {
            content: result.content.clone(),
            detailed_content: result.detailed_content.clone(),
        }),
        error: complete
            .error
            .as_ref()
            .map(|error| CallbackError { message: error.message.clone(), code: error.code.clone() }),
    }
}

/// New part of a tool's output; each report is the whole output so far, or its end.
fn news<'a>(before: &str, now: &'a str) -> &'a str {
    if let Some(more) = now.strip_prefix(before) {
        return more;
    }
    &now[overlap(before.as_bytes(), now.as_bytes()).min(now.len())..]
}

/// Length of the longest suffix of the first that is a prefix of the second, in bytes. Whole characters, as both are.
fn overlap(first: &[u8], second: &[u8]) -> usize {
    // Knuth, Morris and Pratt: for each prefix the longest shorter one that it ends with.
    let mut borders = vec![0; second.len()];
    let mut length = 0;
    for index in 1..second.len() {
        while length > 0 && second[index] != second[length] {
            length = borders[length - 1];
        }
        if second[index] == second[length] {
            length += 1;
        }
        borders[index] = length;
    }
    let mut matched = 0;
    for byte in first {
        while matched > 0 && (matched == second.len() || second[matched] != *byte) {
            matched = borders[matched - 1];
        }
        if second.get(matched) == Some(byte) {
            matched += 1;
        }
    }
    matched
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    /// A line per event: its type, its data, and the agent that it is from.
    #[track_caller]
    fn check(events: &[(&str, Value)], expected: Expect) {
        let mut callbacks = Callbacks::default();
        let told = events.iter().flat_map(|(kind, data)| callbacks.event(&event(kind, data)));
        expected.assert_eq(&shown(&told.collect::<Vec<_>>()));
    }

    fn event(kind: &str, data: &Value) -> Event {
        let mut line = json!({ "type": kind, "data": data, "id": "e", "timestamp": "t", "parentId": null });
        if let Some(agent) = data.get("agent") {
            line["agentId"] = agent.clone();
        }
        Event::parse(&line.to_string()).unwrap()
    }

    fn shown(responses: &[SessionResponse]) -> String {
        responses.iter().map(|response| serde_json::to_string(response).unwrap() + "\n").collect()
    }

    #[test]
    fn a_text_begins_with_its_first_piece_and_ends_whole() {
        let piece =
            |text: &str| ("assistant.reasoning_delta", json!({ "reasoningId": "r", "deltaContent": text }));
        let word =
            |text: &str| ("assistant.message_delta", json!({ "messageId": "m", "deltaContent": text }));
        check(
            &[
                ("assistant.turn_start", json!({ "turnId": "0" })),
                piece("th"),
                piece("ink"),
                ("assistant.reasoning", json!({ "reasoningId": "r", "content": "think" })),
                ("assistant.message_start", json!({ "messageId": "m" })),
                word("he"),
                word("llo"),
                ("assistant.message", json!({ "messageId": "m", "content": "hello" })),
                ("assistant.turn_end", json!({ "turnId": "0" })),
                ("session.idle", json!({})),
            ],
            expect![[r#"
                {"callback":"onAgentStart","turnId":"0"}
                {"callback":"onStartReasoning","reasoningId":"r"}
                {"callback":"onReasoning","reasoningId":"r","delta":"th"}
                {"callback":"onReasoning","reasoningId":"r","delta":"ink"}
                {"callback":"onEndReasoning","reasoningId":"r","completeContent":"think"}
                {"callback":"onStartMessage","messageId":"m"}
                {"callback":"onMessage","messageId":"m","delta":"he"}
                {"callback":"onMessage","messageId":"m","delta":"llo"}
                {"callback":"onEndMessage","messageId":"m","completeContent":"hello"}
                {"callback":"onAgentEnd","turnId":"0"}
                {"callback":"onIdle"}
            "#]],
        );
    }

    #[test]
    fn a_message_that_came_at_once_only_ends() {
        check(
            &[("assistant.message", json!({ "messageId": "m", "content": "hello" }))],
            expect![[r#"
                {"callback":"onEndMessage","messageId":"m","completeContent":"hello"}
            "#]],
        );
    }

    #[test]
    fn arguments_are_indented_by_two_and_absent_ones_are_empty() {
        let start = |arguments: Value| {
            ("tool.execution_start", json!({ "toolCallId": "c", "toolName": "t", "arguments": arguments }))
        };
        check(
            &[start(json!({ "b": [1], "a": {} })), start(Value::Null), start(json!("raw"))],
            expect![[r#"
                {"callback":"onStartToolExecution","toolCallId":"c","toolName":"t","toolArguments":"{\n  \"b\": [\n    1\n  ],\n  \"a\": {}\n}"}
                {"callback":"onStartToolExecution","toolCallId":"c","toolName":"t","toolArguments":""}
                {"callback":"onStartToolExecution","toolCallId":"c","toolName":"t","toolArguments":"\"raw\""}
            "#]],
        );
    }

    #[test]
    fn a_tool_ends_with_its_result_or_its_error() {
        check(
            &[
                (
                    "tool.execution_complete",
                    json!({ "toolCallId": "a", "success": true, "result": { "content": "c", "detailedContent": "d" } }),
                ),
                (
                    "tool.execution_complete",
                    json!({ "toolCallId": "b", "success": false, "error": { "message": "no", "code": "denied" } }),
                ),
            ],
            expect![[r#"
                {"callback":"onEndToolExecution","toolCallId":"a","result":{"content":"c","detailedContent":"d"}}
                {"callback":"onEndToolExecution","toolCallId":"b","error":{"message":"no","code":"denied"}}
            "#]],
        );
    }

    #[test]
    fn output_is_told_once_though_it_is_shown_again_and_again() {
        let partial = |text: &str| {
            ("tool.execution_partial_result", json!({ "toolCallId": "c", "partialOutput": text }))
        };
        check(
            // The last one has lost its beginning, as output does that has become long.
            &[partial("one\n"), partial("one\ntwo\n"), partial("one\ntwo\n"), partial("two\nthree\n")],
            expect![[r#"
                {"callback":"onToolExecution","toolCallId":"c","delta":"one\n"}
                {"callback":"onToolExecution","toolCallId":"c","delta":"two\n"}
                {"callback":"onToolExecution","toolCallId":"c","delta":"three\n"}
            "#]],
        );
    }

    #[test]
    fn calls_of_agents_name_the_call_that_started_the_agent() {
        check(
            &[
                (
                    "subagent.started",
                    json!({ "agent": "a1", "toolCallId": "task", "agentName": "", "agentDisplayName": "", "agentDescription": "" }),
                ),
                ("tool.execution_start", json!({ "agent": "a1", "toolCallId": "x", "toolName": "bash" })),
                (
                    "tool.execution_start",
                    json!({ "agent": "a2", "toolCallId": "y", "toolName": "bash", "parentToolCallId": "said" }),
                ),
            ],
            expect![[r#"
                {"callback":"onStartToolExecution","toolCallId":"x","parentToolCallId":"task","toolName":"bash","toolArguments":""}
                {"callback":"onStartToolExecution","toolCallId":"y","parentToolCallId":"said","toolName":"bash","toolArguments":""}
            "#]],
        );
    }

    #[test]
    fn errors_are_told_as_such_and_everything_else_is_not_told() {
        check(
            &[
                ("session.error", json!({ "errorType": "query", "message": "no model" })),
                ("user.message", json!({ "content": "hi" })),
                ("moon.phase", json!({})),
            ],
            expect![[r#"
                {"sessionError":"no model"}
            "#]],
        );
    }

    #[test]
    fn the_end_of_a_turn_says_what_events_did_not() {
        let check = |events: &[(&str, Value)], failure: Option<&str>, expected: Expect| {
            let mut callbacks = Callbacks::default();
            events.iter().for_each(|(kind, data)| drop(callbacks.event(&event(kind, data))));
            expected.assert_eq(&shown(&callbacks.turn_ended(failure)));
        };
        let (idle, error) =
            (("session.idle", json!({})), ("session.error", json!({ "errorType": "", "message": "m" })));
        check(std::slice::from_ref(&idle), None, expect![""]);
        let only_idle = expect![[r#"
            {"callback":"onIdle"}
        "#]];
        check(&[], None, only_idle);
        let both = expect![[r#"
            {"sessionError":"it broke"}
            {"callback":"onIdle"}
        "#]];
        check(&[], Some("it broke"), both);
        check(&[error, idle], Some("it broke"), expect![""]);
    }

    #[test]
    fn overlaps_are_the_longest() {
        for (first, second, expected) in [
            ("abab", "abx", 2),
            ("aaa", "aaab", 3),
            ("x", "y", 0),
            ("", "a", 0),
            ("a", "", 0),
            ("xab", "ab", 2),
        ] {
            assert_eq!(overlap(first.as_bytes(), second.as_bytes()), expected, "{first} {second}");
        }
    }
}
