//! The scripted model in process: plays a script as a [`ModelProvider`], with no socket in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_core::stream::BoxStream;
use futures_util::stream::{self, StreamExt};
use hangar_agent::model::{
    AssistantTurn, Finish, Message, ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest,
    Part, ProviderFacts, ReasoningText, Reply, TokenUsage, ToolCall, ToolChoice,
};
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_protocol::data::ToolType;
use hyper::StatusCode;
use hyper::header::RETRY_AFTER;

use super::dialect::Dialect;
use super::script::{Script, ScriptedFailure, ToolOffer};
use super::turn::{Asked, Beat, Beats, Pace, Playbook, ScriptedCall, TurnPiece, tokens};
use crate::error;

/// Answers from a [`Script`].
#[derive(Debug)]
pub struct ScriptedModel {
    playbook: Playbook,
    run: u32,
    requests: AtomicU64,
}

impl ScriptedModel {
    /// `run` becomes part of the ids of tool calls. It should differ between processes that continue the same session.
    pub fn new(script: Script, run: u32) -> Self {
        Self { playbook: Playbook::new(script), run, requests: AtomicU64::new(0) }
    }
}

impl ModelProvider for ScriptedModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let turn = self.playbook.turn(&asked(&request));
        if let Some(failure) = &turn.failure {
            return stream::iter([Err(refusal(failure))]).boxed();
        }
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{:x}{number:04x}", self.run);
        let performance = Performance {
            usage: TokenUsage { input_tokens: Some(tokens(input_bytes(&request))), ..TokenUsage::default() },
            finish: turn.finish(),
            beats: turn.beats(&id),
            pace: Pace::new(),
            id: format!("scripted-{id}"),
            said_bytes: 0,
            turn: AssistantTurn::default(),
            upcoming: None,
            request,
        };
        stream::unfold(Some(performance), |performance| async { Some(performance?.next().await) }).boxed()
    }

    fn facts(&self) -> ProviderFacts {
        ProviderFacts {
            endpoint: "/chat/completions",
            is_byok: true,
            base_url: "scripted:".to_owned(),
            name: None,
            max_prompt_tokens: None,
            max_output_tokens: None,
            price: None,
        }
    }
}

fn asked(request: &ModelRequest) -> Asked {
    let offer = match request.tool_choice {
        ToolChoice::Auto if !request.tools.is_empty() => ToolOffer::Tools,
        ToolChoice::Auto | ToolChoice::None => ToolOffer::TextOnly,
    };
    let mut asked = Asked::new(offer);
    for message in &request.messages {
        match &**message {
            Message::User(parts) => asked.user(text(parts)),
            Message::Tool { parts, .. } => asked.result(text(parts)),
            Message::Assistant(_) => asked.assistant(),
        }
    }
    asked
}

fn text(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image { .. } | Part::Document { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Approximate size of the request on a wire.
fn input_bytes(request: &ModelRequest) -> usize {
    let parts = |parts: &[Part]| -> usize {
        let sizes = parts.iter().map(|part| match part {
            Part::Text(text) => text.len(),
            Part::Image { data, .. } | Part::Document { data, .. } => data.len(),
        });
        sizes.sum()
    };
    let messages = request.messages.iter().map(|message| match &**message {
        Message::User(content) | Message::Tool { parts: content, .. } => parts(content),
        Message::Assistant(turn) => {
            turn.text.len()
                + turn.tool_calls.iter().map(|call| call.name.len() + call.input.len()).sum::<usize>()
        }
    });
    let tools = request.tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.input.size());
    request.system.len() + messages.sum::<usize>() + tools.sum::<usize>()
}

/// The error that a provider returns for an HTTP response with that status.
fn refusal(failure: &ScriptedFailure) -> ModelError {
    let status = StatusCode::from_u16(failure.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = failure.retry_after().map(|seconds| (RETRY_AFTER, seconds)).into_iter().collect();
    error::refused(status, &headers, &Dialect::Chat.error(failure, &failure.message()).to_string())
}

/// An answer in progress.
struct Performance {
    request: ModelRequest,
    beats: Beats,
    pace: Pace,
    id: String,
    turn: AssistantTurn,
    said_bytes: usize,
    finish: Finish,
    usage: TokenUsage,
    /// The second event of a beat that has two.
    upcoming: Option<ModelEvent>,
}

type Item = Result<ModelEvent, ModelError>;

impl Performance {
    async fn next(mut self) -> (Item, Option<Self>) {
        loop {
            if let Some(event) = self.upcoming.take() {
                return (Ok(event), Some(self));
            }
            // A script without waits is never pending: without this, a reader could not be interrupted.
            tokio::task::consume_budget().await;
            match self.beats.next() {
                Some(Beat::Wait(delay)) => self.pace.wait(delay).await,
                Some(Beat::Say(said)) => {
                    if let Some(event) = self.say(said)
                        && self.request.stream
                    {
                        return (Ok(event), Some(self));
                    }
                }
                Some(Beat::Cut) => {
                    return (Err(error::bare(ModelErrorKind::Cut, "the script broke off the answer")), None);
                }
                None => return (Ok(self.reply()), None),
            }
        }
    }

    fn say(&mut self, said: TurnPiece) -> Option<ModelEvent> {
        self.said_bytes += said.bytes();
        match said {
            TurnPiece::Text(text) => {
                self.turn.text.push_str(&text);
                (!text.is_empty()).then_some(ModelEvent::Text(text))
            }
            TurnPiece::Thinking(text) => {
                self.turn.reasoning.get_or_insert_with(ReasoningText::default).text.push_str(&text);
                (!text.is_empty()).then_some(ModelEvent::Reasoning(text))
            }
            TurnPiece::Call(call) => {
                let call = called(&call, &self.request.tools);
                let piece = |delta| ModelEvent::ToolInput {
                    call_id: call.id.clone(),
                    name: call.name.clone(),
                    kind: call.kind,
                    delta,
                };
                let (opening, input) = (piece(String::new()), piece(call.input.clone()));
                self.upcoming = self.request.stream.then_some(input);
                self.turn.tool_calls.push(call);
                Some(opening)
            }
        }
    }

    fn reply(self) -> ModelEvent {
        let usage = TokenUsage { output_tokens: Some(tokens(self.said_bytes)), ..self.usage };
        let reply = Reply { id: Some(self.id), ..Reply::new(self.turn, self.finish, usage) };
        ModelEvent::Finished(Box::new(reply))
    }
}

fn called(call: &ScriptedCall, tools: &[Arc<ToolSpec>]) -> ToolCall {
    let custom =
        tools.iter().any(|tool| tool.name == call.tool && matches!(tool.input, ToolSchema::Custom { .. }));
    ToolCall {
        id: call.id.clone(),
        name: call.tool.clone(),
        kind: if custom { ToolType::Custom } else { ToolType::Function },
        input: if custom { call.free_text() } else { call.input.clone() },
    }
}

#[cfg(test)]
mod tests;
