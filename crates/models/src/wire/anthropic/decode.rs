//! An Anthropic messages answer.

use std::collections::BTreeMap;

use hangar_agent::model::{Finish, ModelError, ModelEvent, ModelRequest, Reasoning, Reply, TokenUsage};
use hangar_protocol::data::ToolType;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error;
use crate::wire::assembly::Assembly;
use crate::wire::{Decode, Progress, cost, count};

/// Any event: each uses some of the fields.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    index: u64,
    message: Option<Value>,
    content_block: Option<Value>,
    delta: Option<Delta>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
    stop_details: Option<Value>,
}

pub(crate) struct Decoder {
    assembly: Assembly,
    blocks: BTreeMap<u64, Block>,
    counted: Counted,
    finish: Option<Finish>,
    over: bool,
}

enum Block {
    Text,
    Thinking {
        text: String,
        signature: String,
    },
    Redacted {
        data: String,
    },
    /// `given` is the input that came with the start of the block: meant to be empty, but some servers send it all there.
    Call {
        call: usize,
        given: Option<Value>,
    },
    Other,
}

/// What the wire counts: input apart from what was read from or written to the cache.
#[derive(Default)]
struct Counted {
    fresh: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
    cost: Option<f64>,
}

impl Decoder {
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            assembly: Assembly::new(request),
            blocks: BTreeMap::new(),
            counted: Counted::default(),
            finish: None,
            over: false,
        }
    }

    fn message(&mut self, message: &Value) {
        self.assembly.identify(message.get("id").and_then(Value::as_str).unwrap_or_default());
        if let Some(usage) = message.get("usage") {
            self.counted.update(usage);
        }
    }

    fn begin(&mut self, index: u64, block: &Value, out: &mut Vec<ModelEvent>) {
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let begun = match text("type") {
            "text" => {
                self.assembly.text(text("text"), out);
                Block::Text
            }
            "thinking" => {
                if self.assembly.has_thoughts() {
                    self.assembly.thought("\n\n", out);
                }
                self.assembly.thought(text("thinking"), out);
                Block::Thinking { text: text("thinking").into(), signature: text("signature").into() }
            }
            "redacted_thinking" => Block::Redacted { data: text("data").into() },
            "tool_use" => {
                let call = self.assembly.open_call(text("id"), text("name"), ToolType::Function);
                let is_given = |input: &&Value| input.as_object().is_some_and(|input| !input.is_empty());
                Block::Call { call, given: block.get("input").filter(is_given).cloned() }
            }
            _ => Block::Other,
        };
        self.blocks.insert(index, begun);
    }

    fn delta(&mut self, index: u64, delta: Delta, out: &mut Vec<ModelEvent>) {
        match self.blocks.get_mut(&index) {
            Some(Block::Text) => self.assembly.text(&delta.text.unwrap_or_default(), out),
            Some(Block::Thinking { text, signature }) => {
                let thought = delta.thinking.unwrap_or_default();
                text.push_str(&thought);
                signature.push_str(&delta.signature.unwrap_or_default());
                self.assembly.thought(&thought, out);
            }
            Some(Block::Call { call, .. }) => {
                self.assembly.extend_call(*call, &delta.partial_json.unwrap_or_default(), out);
            }
            Some(Block::Redacted { .. } | Block::Other) | None => {}
        }
    }

    fn end(&mut self, index: u64, out: &mut Vec<ModelEvent>) {
        if let Some(Block::Call { call, given }) = self.blocks.get_mut(&index) {
            if let Some(input) = given.take()
                && self.assembly.call_input(*call).is_empty()
            {
                self.assembly.extend_call(*call, &input.to_string(), out);
            }
            self.assembly.close_call(*call, out);
        }
    }

    /// A signature is kept beside the text; anything more is kept as it came.
    fn reasoning(&mut self) -> (Option<String>, Option<String>) {
        let blocks: Vec<Value> = std::mem::take(&mut self.blocks)
            .into_values()
            .filter_map(|block| match block {
                Block::Thinking { text, signature } if !signature.is_empty() => {
                    Some(json!({ "type": "thinking", "thinking": text, "signature": signature }))
                }
                Block::Redacted { data } => Some(json!({ "type": "redacted_thinking", "data": data })),
                Block::Thinking { .. } | Block::Text | Block::Call { .. } | Block::Other => None,
            })
            .collect();
        match blocks.as_slice() {
            [] => (None, None),
            [block] if block.get("signature").is_some() => {
                (block.get("signature").and_then(Value::as_str).map(str::to_owned), None)
            }
            _ => (None, Some(Value::Array(blocks).to_string())),
        }
    }
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: Event = serde_json::from_str(data).map_err(|error| {
            error::protocol(format!("the model provider sent what is not a message event: {error}"))
        })?;
        if event.error.is_some_and(|error| !error.is_null()) {
            return Err(error::in_stream(&serde_json::from_str(data).unwrap_or_default()));
        }
        match event.kind.as_str() {
            "message_start" => self.message(&event.message.unwrap_or_default()),
            "content_block_start" => self.begin(event.index, &event.content_block.unwrap_or_default(), out),
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.delta(event.index, delta, out);
                }
            }
            "content_block_stop" => self.end(event.index, out),
            "message_delta" => {
                if let Some(Delta { stop_reason: Some(reason), stop_details, .. }) = event.delta {
                    self.finish = Some(read_finish(reason, stop_details.as_ref()));
                }
                if let Some(usage) = &event.usage {
                    self.counted.update(usage);
                }
            }
            "message_stop" => self.over = true,
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str) -> Result<(), ModelError> {
        let message: Value = serde_json::from_str(body).map_err(|error| {
            error::protocol(format!("the model provider sent what is not a message: {error}"))
        })?;
        if message.get("error").is_some_and(|error| !error.is_null()) {
            return Err(error::in_stream(&message));
        }
        let Some(content) = message.get("content").and_then(Value::as_array) else {
            return Err(error::protocol("the model provider's answer has no content"));
        };
        let out = &mut Vec::new();
        for (index, block) in (0..).zip(content) {
            self.begin(index, block, out);
            self.end(index, out);
        }
        self.message(&message);
        let reason = message.get("stop_reason").and_then(Value::as_str);
        self.finish = reason.map(|reason| read_finish(reason.to_owned(), message.get("stop_details")));
        self.over = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.over { Progress::Over } else { Progress::Going }
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Option<Reply> {
        if !self.over {
            return None;
        }
        self.assembly.usage = self.counted.usage();
        let (opaque, encrypted) = self.reasoning();
        let finish = self.finish.take().unwrap_or(Finish::Stop);
        Some(self.assembly.finish(finish, |text| Reasoning { text, opaque, encrypted }, out))
    }
}

impl Counted {
    /// Later counts are totals, and may leave out what has not changed.
    fn update(&mut self, usage: &Value) {
        self.fresh = count(usage, "/input_tokens").or(self.fresh);
        self.read = count(usage, "/cache_read_input_tokens").or(self.read);
        self.written = count(usage, "/cache_creation_input_tokens").or(self.written);
        self.output = count(usage, "/output_tokens").or(self.output);
        self.cost = cost(usage).or(self.cost);
    }

    fn usage(&self) -> TokenUsage {
        TokenUsage {
            input_tokens: self.fresh.map(|fresh| {
                fresh.saturating_add(self.read.unwrap_or(0)).saturating_add(self.written.unwrap_or(0))
            }),
            output_tokens: self.output,
            cache_read_tokens: self.read,
            cache_write_tokens: self.written,
            reasoning_tokens: None,
            cost: self.cost,
        }
    }
}

/// `details` are `stop_details`, which say why a model refused.
fn read_finish(reason: String, details: Option<&Value>) -> Finish {
    match reason.as_str() {
        "end_turn" | "stop_sequence" | "stop" => Finish::Stop,
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "length" => Finish::Length,
        "model_context_window_exceeded" => Finish::ContextFull,
        "pause_turn" => Finish::Paused,
        "refusal" => Finish::Refusal(details.and_then(explanation)),
        _ => Finish::Other(reason),
    }
}

/// What `stop_details` say for people: `{"category": "cyber", "explanation": "…"}`.
fn explanation(details: &Value) -> Option<String> {
    let text = |name: &str| details.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (text("category"), text("explanation")) {
        (Some(category), Some(explanation)) => Some(format!("{category}: {explanation}")),
        (category, explanation) => category.or(explanation).map(str::to_owned),
    }
}
