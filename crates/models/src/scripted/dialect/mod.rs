//! The wire formats of the served scripted model: how each writes a request, an answer, a stream and an error.

use bytes::Bytes;
use hangar_agent::model::Finish;
use serde_json::{Value, json};

use super::script::{ScriptedFailure, ToolOffer};
use super::turn::{Asked, TurnPiece};

mod anthropic;
mod chat;
mod responses;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Chat,
    Responses,
    Anthropic,
}

/// Metadata of an answer, for all dialects.
#[derive(Debug, Clone)]
pub(super) struct AnswerHead {
    /// New for each request.
    pub(super) id: String,
    pub(super) model: String,
    /// Seconds since 1970.
    pub(super) created: u64,
    pub(super) input_tokens: u64,
}

/// How an answer ended.
#[derive(Debug, Clone)]
pub(super) struct AnswerFinish {
    pub(super) finish: Finish,
    pub(super) output_tokens: u64,
}

/// Writes one answer. The same calls are made whether it is streamed or not; if not, the events are discarded.
pub(super) trait AnswerWriter: Send {
    fn start(&mut self) -> Vec<SseEvent>;
    fn say(&mut self, said: TurnPiece) -> Vec<SseEvent>;
    fn finish(&mut self, end: &AnswerFinish) -> Vec<SseEvent>;
    /// The body of an answer that is not streamed, once finished.
    fn whole(&self, end: &AnswerFinish) -> Value;
}

impl Dialect {
    /// Clients put their own prefixes before the path.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else {
            None
        }
    }

    pub(super) fn asked(self, body: &Value) -> Asked {
        match self {
            Self::Chat => chat::asked(body),
            Self::Responses => responses::asked(body),
            Self::Anthropic => anthropic::asked(body),
        }
    }

    pub(super) fn answer(self, head: AnswerHead, body: &Value) -> Box<dyn AnswerWriter> {
        match self {
            Self::Chat => Box::new(chat::ChatAnswer::new(head, body)),
            Self::Responses => Box::new(responses::ResponsesAnswer::new(head, body)),
            Self::Anthropic => Box::new(anthropic::AnthropicAnswer::new(head)),
        }
    }

    pub(super) fn error(self, failure: &ScriptedFailure, message: &str) -> Value {
        let kind = failure.error_type();
        match self {
            Self::Anthropic => json!({"type": "error", "error": {"type": kind, "message": message}}),
            Self::Chat | Self::Responses => json!({
                "error": {"type": kind, "message": message, "code": failure.code(), "param": null},
            }),
        }
    }
}

/// A server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SseEvent {
    name: Option<&'static str>,
    data: String,
}

impl SseEvent {
    fn unnamed(data: String) -> Self {
        Self { name: None, data }
    }

    /// An event that has its name in its data too, as in both vendors' streams.
    fn named(name: &'static str, data: &Value) -> Self {
        Self { name: Some(name), data: data.to_string() }
    }
}

pub(super) fn encode(events: &[SseEvent]) -> Bytes {
    let mut text = String::new();
    for event in events {
        if let Some(name) = event.name {
            text.extend(["event: ", name, "\n"]);
        }
        text.extend(["data: ", &event.data, "\n\n"]);
    }
    text.into()
}

/// The elements of an array, or nothing: requests are read tolerantly.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The plain text of content: a string, or parts that hold text or nested content.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Object(_) => part_text(content).unwrap_or_default(),
        Value::Array(parts) => parts.iter().filter_map(part_text).collect::<Vec<_>>().join("\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

fn part_text(part: &Value) -> Option<String> {
    match (part, part.get("text"), part.get("content").or_else(|| part.get("output"))) {
        (Value::String(text), ..) | (_, Some(Value::String(text)), _) => Some(text.clone()),
        (_, _, Some(content)) => Some(text(content)),
        _ => None,
    }
}

/// Whether the model may call one of `tools`: there are some, and the request does not forbid them.
fn offer(tools: &[Value], choice: &Value) -> ToolOffer {
    let forbidden = choice == "none" || choice["type"] == "none";
    if tools.is_empty() || forbidden { ToolOffer::TextOnly } else { ToolOffer::Tools }
}

#[cfg(test)]
mod tests;
