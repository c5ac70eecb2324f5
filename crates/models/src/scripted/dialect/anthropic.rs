//! Anthropic messages.

use hangar_agent::model::Finish;
use serde_json::{Value, json};

use super::{AnswerFinish, AnswerHead, AnswerWriter, SseEvent, list, offer, text};
use crate::scripted::turn::{Asked, TurnPiece};

/// Signature of thinking. Clients send it back without reading it.
const SIGNATURE: &str = "c2ln";

pub(super) fn asked(body: &Value) -> Asked {
    let mut asked = Asked::new(offer(list(&body["tools"]), &body["tool_choice"]));
    for message in list(&body["messages"]) {
        let content = &message["content"];
        let results: Vec<_> = list(content).iter().filter(|part| part["type"] == "tool_result").collect();
        match message["role"].as_str() {
            Some("user") if results.is_empty() => asked.user(text(content)),
            // Text beside results is the client's remark about them, not a prompt.
            Some("user") => results.iter().for_each(|result| asked.result(text(&result["content"]))),
            Some("assistant") => asked.assistant(),
            _ => {}
        }
    }
    asked
}

pub(super) struct AnthropicAnswer {
    head: AnswerHead,
    /// The last block may still grow.
    blocks: Vec<Block>,
    open: bool,
}

enum Block {
    Text(String),
    Thinking(String),
    ToolUse { id: String, name: String, input: String },
}

impl Block {
    /// As it starts in a stream, before its deltas.
    fn opening(&self) -> Value {
        match self {
            Self::Text(_) => json!({"type": "text", "text": ""}),
            Self::Thinking(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Self::ToolUse { id, name, .. } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": {}})
            }
        }
    }

    fn whole(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Thinking(text) => json!({"type": "thinking", "thinking": text, "signature": SIGNATURE}),
            Self::ToolUse { id, name, input } => {
                // A stream can carry invalid JSON; here it must be some value.
                let input = serde_json::from_str(input).unwrap_or_else(|_| json!(input));
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
        }
    }
}

impl AnthropicAnswer {
    pub(super) fn new(head: AnswerHead) -> Self {
        Self { head, blocks: Vec::new(), open: false }
    }

    fn usage(&self, output_tokens: u64) -> Value {
        json!({
            "input_tokens": self.head.input_tokens, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0, "output_tokens": output_tokens,
        })
    }

    fn message(&self, content: &[Value], stop: Option<&str>, output_tokens: u64) -> Value {
        json!({
            "id": format!("msg_{}", self.head.id), "type": "message", "role": "assistant",
            "model": self.head.model, "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": self.usage(output_tokens),
        })
    }

    fn start_block(&mut self, block: Block) -> Vec<SseEvent> {
        let mut events = self.stop_block();
        events.push(named(
            "content_block_start",
            json!({"index": self.blocks.len(), "content_block": block.opening()}),
        ));
        self.blocks.push(block);
        self.open = true;
        events
    }

    fn stop_block(&mut self) -> Vec<SseEvent> {
        let mut events = Vec::new();
        if std::mem::take(&mut self.open) {
            if let Some(Block::Thinking(_)) = self.blocks.last() {
                events.push(self.delta(&json!({"type": "signature_delta", "signature": SIGNATURE})));
            }
            events.push(named("content_block_stop", json!({"index": self.blocks.len() - 1})));
        }
        events
    }

    fn delta(&self, delta: &Value) -> SseEvent {
        named("content_block_delta", json!({"index": self.blocks.len() - 1, "delta": delta}))
    }
}

impl AnswerWriter for AnthropicAnswer {
    fn start(&mut self) -> Vec<SseEvent> {
        vec![named("message_start", json!({"message": self.message(&[], None, 1)}))]
    }

    fn say(&mut self, said: TurnPiece) -> Vec<SseEvent> {
        let (mut events, delta) = match said {
            TurnPiece::Text(delta) => {
                let mut events = Vec::new();
                if !matches!(self.blocks.last(), Some(Block::Text(_)) if self.open) {
                    events = self.start_block(Block::Text(String::new()));
                }
                if let Some(Block::Text(text)) = self.blocks.last_mut() {
                    text.push_str(&delta);
                }
                (events, json!({"type": "text_delta", "text": delta}))
            }
            TurnPiece::Thinking(delta) => {
                let mut events = Vec::new();
                if !matches!(self.blocks.last(), Some(Block::Thinking(_)) if self.open) {
                    events = self.start_block(Block::Thinking(String::new()));
                }
                if let Some(Block::Thinking(text)) = self.blocks.last_mut() {
                    text.push_str(&delta);
                }
                (events, json!({"type": "thinking_delta", "thinking": delta}))
            }
            TurnPiece::Call(call) => {
                let delta = json!({"type": "input_json_delta", "partial_json": call.input});
                let id = format!("toolu_{}", call.id);
                (self.start_block(Block::ToolUse { id, name: call.tool, input: call.input }), delta)
            }
        };
        events.push(self.delta(&delta));
        events
    }

    fn finish(&mut self, end: &AnswerFinish) -> Vec<SseEvent> {
        let mut events = self.stop_block();
        let delta = json!({"stop_reason": reason(&end.finish), "stop_sequence": null});
        events.push(named("message_delta", json!({"delta": delta, "usage": self.usage(end.output_tokens)})));
        events.push(named("message_stop", json!({})));
        events
    }

    fn whole(&self, end: &AnswerFinish) -> Value {
        let content: Vec<_> = self.blocks.iter().map(Block::whole).collect();
        self.message(&content, Some(reason(&end.finish)), end.output_tokens)
    }
}

fn named(name: &'static str, fields: Value) -> SseEvent {
    let mut data = json!({"type": name});
    if let (Value::Object(data), Value::Object(fields)) = (&mut data, fields) {
        data.extend(fields);
    }
    SseEvent::named(name, &data)
}

fn reason(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::ToolCalls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::ContextFull => "model_context_window_exceeded",
        Finish::Paused => "pause_turn",
        Finish::ContentFilter | Finish::Refusal(_) => "refusal",
        Finish::Broken(reason) | Finish::Other(reason) => reason,
    }
}
