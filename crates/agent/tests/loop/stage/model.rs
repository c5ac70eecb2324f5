//! The model of the stage, which reads its lines, and the meter of its requests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use hangar_agent::model::*;
use hangar_agent::tool::*;
use hangar_protocol::data::{ModelOrigin, ToolType};
use parking_lot::Mutex;
use serde_json::json;

/// The model's reaction to a request.
#[derive(Clone)]
pub(crate) enum Line {
    Say(&'static str),
    /// Says it after a while.
    SayAfter(Duration, &'static str),
    /// Calls of `(id, tool, json)`.
    Call(Vec<(&'static str, &'static str, serde_json::Value)>),
    /// Calls one tool after a while.
    CallAfter(Duration, &'static str, &'static str),
    /// Says the pieces, then breaks off.
    Cut(&'static str),
    Fail(ModelErrorKind, Option<u16>),
    FailAfter(ModelErrorKind, Duration),
    Finish(&'static str, Finish),
    /// Says something, calls `(id, tool, input)`, and ends in this way.
    Ends(&'static str, Vec<(&'static str, &'static str, &'static str)>, Finish),
    Hang(&'static str),
}

pub(crate) fn call(id: &'static str, tool: &'static str) -> Line {
    Line::Call(vec![(id, tool, json!({}))])
}

/// Counts one token for each letter of the conversation.
#[derive(Default)]
pub(super) struct Letters(pub(super) Arc<AtomicUsize>);

impl TokenMeter for Letters {
    fn system(&self, _: &str) -> u64 {
        0
    }

    fn message(&self, message: &Message) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        letters(message)
    }

    fn tools(&self, _: &[Arc<ToolSpec>]) -> u64 {
        0
    }
}

/// Tokens of a request by the worst of tokenizers, which makes one of each byte. The meter counts far less.
fn bytes(request: &ModelRequest) -> u64 {
    let tools: usize = request.tools.iter().map(|tool| tool.size()).sum();
    let messages: u64 = request.messages.iter().map(|message| letters(message)).sum();
    (request.system.len() + tools) as u64 + messages
}

fn letters(message: &Message) -> u64 {
    let letters = |parts: &[Part]| -> u64 {
        parts.iter().map(|part| if let Part::Text(text) = part { text.len() as u64 } else { 0 }).sum()
    };
    match message {
        Message::User(parts) | Message::Tool { parts, .. } => letters(parts),
        Message::Assistant(turn) => turn.text.len() as u64,
    }
}

pub(super) struct Actor {
    pub(super) facts: ProviderFacts,
    /// Whether each answer uses all tokens that it may, and so costs as much as it can.
    pub(super) uses_all: bool,
    /// Whether each answer has items of its vendor, which name the request that it answers.
    pub(super) signs: bool,
    /// How long a summary takes, if it does not follow the lines.
    pub(super) summary_after: Option<Duration>,
    pub(super) lines: Mutex<VecDeque<Line>>,
    pub(super) requests: Arc<Mutex<Vec<(tokio::time::Instant, ModelRequest)>>>,
}

fn reply(text: &str, calls: Vec<ToolCall>, finish: Finish, usage: Option<TokenUsage>) -> ModelEvent {
    let usual = TokenUsage { input_tokens: Some(10), output_tokens: Some(1), ..TokenUsage::default() };
    let turn = AssistantTurn { text: text.to_owned(), reasoning: None, tool_calls: calls, native: None };
    let reply = Reply { id: Some("api".to_owned()), ..Reply::new(turn, finish, usage.unwrap_or(usual)) };
    ModelEvent::Finished(Box::new(reply))
}

fn error(kind: ModelErrorKind, status: Option<u16>) -> ModelError {
    ModelError { status, ..ModelError::new(kind, format!("{kind:?}")) }
}

impl ModelProvider for Actor {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let line = agent_line(&request);
        let usage = self.uses_all.then(|| TokenUsage {
            input_tokens: Some(bytes(&request)),
            output_tokens: request.max_output_tokens,
            ..TokenUsage::default()
        });
        let signed = self.signs.then(|| NativeTurn {
            paused: false,
            prefix: None,
            origin: ModelOrigin { wire: "/v1/messages".to_owned(), ..ModelOrigin::default() },
            items: self.requests.lock().len().to_string().into(),
            rewritten: false,
        });
        let reply =
            move |text: &str, calls: Vec<ToolCall>, finish: Finish| match reply(text, calls, finish, usage) {
                ModelEvent::Finished(mut reply) => {
                    reply.turn.native.clone_from(&signed);
                    ModelEvent::Finished(reply)
                }
                piece => piece,
            };
        let summary = self.summary_after.filter(|_| request.tool_choice == ToolChoice::None);
        let line = line.or_else(|| summary.map(|wait| Line::SayAfter(wait, "THE SUMMARY")));
        self.requests.lock().push((tokio::time::Instant::now(), request));
        let line = line.unwrap_or_else(|| self.lines.lock().pop_front().unwrap_or(Line::Say("pong")));
        let text = |text: &str| Ok(ModelEvent::Text(text.to_owned()));
        match line {
            Line::Say(say) => {
                futures_util::stream::iter([text(say), Ok(reply(say, Vec::new(), Finish::Stop))]).boxed()
            }
            Line::SayAfter(wait, say) => futures_util::stream::once(async move {
                tokio::time::sleep(wait).await;
                Ok(reply(say, Vec::new(), Finish::Stop))
            })
            .boxed(),
            Line::Finish(say, finish) => {
                futures_util::stream::iter([text(say), Ok(reply(say, Vec::new(), finish))]).boxed()
            }
            Line::Ends(say, calls, finish) => {
                let call = |(id, name, input): (&str, &str, &str)| ToolCall {
                    id: id.to_owned(),
                    name: name.to_owned(),
                    kind: ToolType::Function,
                    input: input.to_owned(),
                };
                let calls = calls.into_iter().map(call).collect();
                futures_util::stream::iter([text(say), Ok(reply(say, calls, finish))]).boxed()
            }
            Line::Call(calls) => {
                let calls = calls
                    .into_iter()
                    .map(|(id, name, input)| ToolCall {
                        id: id.to_owned(),
                        name: name.to_owned(),
                        kind: ToolType::Function,
                        input: input.as_str().map_or_else(|| input.to_string(), str::to_owned),
                    })
                    .collect();
                futures_util::stream::iter([Ok(reply("", calls, Finish::ToolCalls))]).boxed()
            }
            Line::CallAfter(wait, id, name) => futures_util::stream::once(async move {
                tokio::time::sleep(wait).await;
                let (id, name) = (id.to_owned(), name.to_owned());
                let call = ToolCall { id, name, kind: ToolType::Function, input: "{}".to_owned() };
                Ok(reply("", vec![call], Finish::ToolCalls))
            })
            .boxed(),
            Line::Cut(say) => {
                futures_util::stream::iter([text(say), Err(error(ModelErrorKind::Cut, None))]).boxed()
            }
            Line::Fail(kind, status) => futures_util::stream::iter([Err(error(kind, status))]).boxed(),
            Line::FailAfter(kind, wait) => {
                let mut error = error(kind, Some(429));
                error.retry_after = Some(wait);
                futures_util::stream::iter([Err(error)]).boxed()
            }
            Line::Hang(say) => {
                futures_util::stream::iter([text(say)]).chain(futures_util::stream::pending()).boxed()
            }
        }
    }

    fn facts(&self) -> ProviderFacts {
        self.facts.clone()
    }
}

/// Facts about every provider on this stage.
pub(crate) fn facts() -> ProviderFacts {
    ProviderFacts {
        endpoint: "/chat/completions",
        is_byok: true,
        base_url: "test:".to_owned(),
        name: None,
        max_prompt_tokens: None,
        max_output_tokens: None,
        price: None,
    }
}

/// Agents run side by side, so what the model says to them is in their prompts: `DO:tool` calls the tool once, and then
/// the answer is `done`. Any other conversation follows the lines.
fn agent_line(request: &ModelRequest) -> Option<Line> {
    let Message::User(parts) = &**request.messages.first()? else { return None };
    let Part::Text(text) = parts.first()? else { return None };
    let (_, tool) = text.split_once("DO:")?;
    let called = request.messages.iter().any(|message| matches!(**message, Message::Tool { .. }));
    let tool = ["echo", "slow", "hang", "write", "own", "nothing"]
        .into_iter()
        .find(|name| tool.starts_with(name))?;
    if tool == "nothing" || called { Some(Line::Say("done")) } else { Some(call("inner", tool)) }
}
