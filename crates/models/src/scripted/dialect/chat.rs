//! OpenAI chat completions.

use serde_json::{Value, json};

use super::{AnswerFinish, AnswerHead, AnswerWriter, SseEvent, list, offer, text};
use crate::scripted::turn::{Asked, TurnPiece};

pub(super) fn asked(body: &Value) -> Asked {
    let mut asked = Asked::new(offer(list(&body["tools"]), &body["tool_choice"]));
    for message in list(&body["messages"]) {
        match message["role"].as_str() {
            Some("user") => asked.user(text(&message["content"])),
            Some("assistant") => asked.assistant(),
            Some("tool") => asked.result(text(&message["content"])),
            _ => {}
        }
    }
    asked
}

pub(super) struct ChatAnswer {
    head: AnswerHead,
    /// The client asked for a final chunk with the usage.
    include_usage: bool,
    text: String,
    thinking: String,
    calls: Vec<Value>,
}

impl ChatAnswer {
    pub(super) fn new(head: AnswerHead, body: &Value) -> Self {
        let include_usage = body["stream_options"]["include_usage"] == true;
        Self { head, include_usage, text: String::new(), thinking: String::new(), calls: Vec::new() }
    }

    fn object(&self, kind: &str) -> Value {
        let AnswerHead { id, model, created, .. } = &self.head;
        json!({"id": format!("chatcmpl-{id}"), "object": kind, "created": created, "model": model})
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> SseEvent {
        let mut chunk = self.object("chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        SseEvent::unnamed(chunk.to_string())
    }

    fn usage(&self, end: &AnswerFinish) -> Value {
        let (input, output) = (self.head.input_tokens, end.output_tokens);
        json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
    }
}

impl AnswerWriter for ChatAnswer {
    fn start(&mut self) -> Vec<SseEvent> {
        vec![self.chunk(&json!({"role": "assistant", "content": ""}), None)]
    }

    fn say(&mut self, said: TurnPiece) -> Vec<SseEvent> {
        match said {
            TurnPiece::Text(delta) => {
                self.text.push_str(&delta);
                vec![self.chunk(&json!({"content": delta}), None)]
            }
            TurnPiece::Thinking(delta) => {
                self.thinking.push_str(&delta);
                vec![self.chunk(&json!({"reasoning_content": delta}), None)]
            }
            TurnPiece::Call(call) => {
                let index = self.calls.len();
                let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
                let opening = json!([{
                    "index": index, "id": call.id, "type": "function", "function": function(&call.tool, ""),
                }]);
                let input = json!([{"index": index, "function": {"arguments": call.input}}]);
                self.calls.push(json!({
                    "id": call.id, "type": "function", "function": function(&call.tool, &call.input),
                }));
                vec![
                    self.chunk(&json!({"tool_calls": opening}), None),
                    self.chunk(&json!({"tool_calls": input}), None),
                ]
            }
        }
    }

    fn finish(&mut self, end: &AnswerFinish) -> Vec<SseEvent> {
        let mut events = vec![self.chunk(&json!({}), Some(end.finish.name()))];
        if self.include_usage {
            let mut chunk = self.object("chat.completion.chunk");
            chunk["choices"] = json!([]);
            chunk["usage"] = self.usage(end);
            events.push(SseEvent::unnamed(chunk.to_string()));
        }
        events.push(SseEvent::unnamed("[DONE]".to_owned()));
        events
    }

    fn whole(&self, end: &AnswerFinish) -> Value {
        let content = (!self.text.is_empty()).then_some(&self.text);
        let mut message = json!({"role": "assistant", "content": content});
        if !self.thinking.is_empty() {
            message["reasoning_content"] = json!(self.thinking);
        }
        if !self.calls.is_empty() {
            message["tool_calls"] = json!(self.calls);
        }
        let mut whole = self.object("chat.completion");
        whole["usage"] = self.usage(end);
        whole["choices"] = json!([{"index": 0, "message": message, "finish_reason": end.finish.name()}]);
        whole
    }
}
