//! Token counts of requests, by the rule that Copilot CLI uses.

mod memo;

use std::sync::Arc;

use hangar_agent::model::{AssistantTurn, Message, ModelRequest, Part};
use hangar_agent::schema::Schema;
use hangar_agent::tool::{ToolSchema, ToolSpec};
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::facts;
use crate::image::Image;

/// Tokens of a message beside its content: its role and separators.
const PER_MESSAGE: u64 = 4;
const PER_CALL: u64 = 3;
const PER_REQUEST: u64 = 3;
/// An image whose size cannot be read.
const PER_IMAGE: u64 = 765;
/// Longer edge in pixels that a model sees, where that is unknown.
const LONGEST_EDGE: u32 = 1568;
/// Bytes of encrypted reasoning per token, as an estimate.
const BYTES_PER_SEALED_TOKEN: usize = 8;
/// Encoded bytes of a document per token, as an estimate.
const BYTES_PER_DOCUMENT_TOKEN: usize = 16;

/// Token counter for one model. Cheap to create.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    percent: u64,
    longest_edge: u32,
}

impl Counter {
    pub fn new(model: &str) -> Self {
        let facts = facts::of(model);
        Self { percent: facts.token_percent, longest_edge: facts.images.max_edge.unwrap_or(LONGEST_EDGE) }
    }

    pub fn text(&self, text: &str) -> u64 {
        self.scale(memo::count(text))
    }

    /// Counts everything: system prompt, messages and tools.
    pub fn request(&self, request: &ModelRequest) -> u64 {
        let messages: u64 = request.messages.iter().map(|message| self.message(message)).sum();
        self.scale(PER_REQUEST) + self.system(&request.system) + messages + self.tools(&request.tools)
    }

    /// The system prompt as the message that it is.
    pub fn system(&self, text: &str) -> u64 {
        self.text(text) + PER_MESSAGE
    }

    pub fn message(&self, message: &Message) -> u64 {
        let content = match message {
            Message::User(parts) | Message::Tool { parts, .. } => {
                parts.iter().map(|part| self.part(part)).sum()
            }
            Message::Assistant(turn) => self.assistant(turn),
        };
        content + PER_MESSAGE
    }

    /// The definitions, as compact JSON.
    pub fn tools(&self, tools: &[Arc<ToolSpec>]) -> u64 {
        tools.iter().map(|tool| self.text(&definition(tool))).sum()
    }

    fn assistant(&self, turn: &AssistantTurn) -> u64 {
        let calls = turn.tool_calls.iter();
        let calls: u64 = calls.map(|call| self.text(&call.name) + self.text(&call.input) + PER_CALL).sum();
        self.text(&turn.text) + self.reasoning(turn) + calls
    }

    /// Reasoning that is sent back: its text, and the part that only the vendor can read.
    fn reasoning(&self, turn: &AssistantTurn) -> u64 {
        let Some(reasoning) = turn.reasoning.as_ref().filter(|_| turn.native.is_some()) else { return 0 };
        let sealed = reasoning.encrypted.as_ref().map_or(0, String::len) / BYTES_PER_SEALED_TOKEN;
        self.text(&reasoning.text) + sealed as u64
    }

    fn part(&self, part: &Part) -> u64 {
        match part {
            Part::Text(text) => self.text(text),
            Part::Image { data, .. } => {
                Image::of_base64(data).map_or(PER_IMAGE, |image| image.tokens(self.longest_edge))
            }
            // Its pages are not counted here; the encoded bytes have at least their order of magnitude.
            Part::Document { data, .. } => (data.len() / BYTES_PER_DOCUMENT_TOKEN) as u64,
        }
    }

    fn scale(&self, tokens: u64) -> u64 {
        (tokens * self.percent).div_ceil(100)
    }
}

fn definition(tool: &ToolSpec) -> String {
    #[skip_serializing_none]
    #[derive(Serialize)]
    struct Definition<'a> {
        name: &'a str,
        description: &'a str,
        parameters: Option<&'a Schema>,
        format: Option<&'a Option<String>>,
        #[serde(rename = "type")]
        kind: &'static str,
    }
    let (parameters, format, kind) = match &tool.input {
        ToolSchema::Function(schema) => (Some(schema), None, "function"),
        ToolSchema::Custom { grammar } => (None, Some(grammar), "custom"),
        ToolSchema::Hosted => (None, None, "hosted"),
    };
    let definition =
        Definition { name: &tool.name, description: &tool.description, parameters, format, kind };
    // Text and JSON always serialise.
    serde_json::to_string(&definition).unwrap_or_default()
}

#[cfg(test)]
mod tests;
