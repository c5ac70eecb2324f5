//! A chat completions answer.

use hangar_agent::model::{Finish, ModelError, ModelEvent, ModelRequest, Reasoning, Reply, TokenUsage};
use hangar_protocol::data::ToolType;
use serde::Deserialize;
use serde_json::Value;

use crate::error;
use crate::wire::assembly::Assembly;
use crate::wire::{Decode, Progress, cost, count};

/// Chunks of a stream and whole answers alike: a message is a delta that says everything.
#[derive(Deserialize)]
struct Chunk {
    id: Option<Value>,
    choices: Option<Vec<Choice>>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Delta>,
    message: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Value>,
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    reasoning_text: Option<Value>,
    reasoning_opaque: Option<String>,
    refusal: Option<Value>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
    custom: Option<CustomDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct CustomDelta {
    name: Option<String>,
    input: Option<Value>,
}

pub(crate) struct Decoder {
    assembly: Assembly,
    /// The calls begun so far, by how the wire tells them apart.
    slots: Vec<Slot>,
    opaque: Option<String>,
    finish: Option<Finish>,
    /// Something of a choice came.
    answered: bool,
    over: bool,
}

struct Slot {
    choice: u64,
    index: Option<u64>,
    /// As the wire gave it, which may be nothing.
    id: String,
    call: usize,
}

impl Decoder {
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            assembly: Assembly::new(request),
            slots: Vec::new(),
            opaque: None,
            finish: None,
            answered: false,
            over: false,
        }
    }

    fn chunk(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| {
            error::protocol(format!("the model provider sent what is not a chat completion: {error}"))
        })?;
        if chunk.error.is_some_and(|error| !error.is_null()) {
            return Err(error::in_stream(&serde_json::from_str(data).unwrap_or_default()));
        }
        self.assembly.identify(chunk.id.as_ref().and_then(Value::as_str).unwrap_or_default());
        if let Some(usage) = chunk.usage.filter(Value::is_object) {
            self.assembly.usage = read_usage(&usage);
        }
        for choice in chunk.choices.into_iter().flatten() {
            let index = choice.index.unwrap_or(0);
            if let Some(delta) = choice.delta.or(choice.message) {
                self.answered = true;
                self.delta(index, delta, out);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(read_finish(reason));
            }
        }
        Ok(())
    }

    fn delta(&mut self, choice: u64, delta: Delta, out: &mut Vec<ModelEvent>) {
        // Servers that say it under two names say the same twice.
        let thoughts = [delta.reasoning_content, delta.reasoning, delta.reasoning_text].into_iter().flatten();
        if let Some(thought) = thoughts.map(|value| text(&value)).find(|text| !text.is_empty()) {
            self.assembly.thought(&thought, out);
        }
        if let Some(opaque) = delta.reasoning_opaque.filter(|opaque| !opaque.is_empty()) {
            self.opaque = Some(opaque);
        }
        for said in [delta.content, delta.refusal].into_iter().flatten() {
            self.assembly.text(&text(&said), out);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(choice, call, out);
        }
    }

    fn call(&mut self, choice: u64, delta: CallDelta, out: &mut Vec<ModelEvent>) {
        let (kind, name, input) = match (delta.custom, delta.function) {
            (Some(custom), _) => (ToolType::Custom, custom.name, custom.input),
            (None, Some(function)) => (ToolType::Function, function.name, function.arguments),
            (None, None) => (ToolType::Function, None, None),
        };
        let name = name.unwrap_or_default();
        let id = delta.id.unwrap_or_default();
        let call = match self.slot(choice, delta.index, &id, !name.is_empty()) {
            Some(call) => {
                self.assembly.name_call(call, &name);
                call
            }
            None => {
                let call = self.assembly.open_call(&id, &name, kind);
                self.slots.push(Slot { choice, index: delta.index, id, call });
                call
            }
        };
        match input {
            Some(Value::String(piece)) => self.assembly.extend_call(call, &piece, out),
            // Arguments that are an object instead of its text.
            Some(arguments @ Value::Object(_)) => {
                self.assembly.extend_call(call, &arguments.to_string(), out);
            }
            _ => {}
        }
    }

    /// The call that a piece belongs to; `None` if it begins one.
    ///
    /// The index is meant to tell. Some servers leave it out, or give every call the same one; then an id of its own, or
    /// at least a name, begins a call.
    fn slot(&self, choice: u64, index: Option<u64>, id: &str, named: bool) -> Option<usize> {
        let mut slots = self.slots.iter().rev().filter(|slot| slot.choice == choice);
        if let Some(same) = slots.clone().find(|slot| !id.is_empty() && slot.id == id && slot.index == index)
        {
            return Some(same.call);
        }
        let slot = slots.find(|slot| index.is_none() || slot.index == index)?;
        let other_id = !id.is_empty() && !slot.id.is_empty();
        let begins = named && (other_id || (index.is_none() && id.is_empty()));
        (!begins).then_some(slot.call)
    }
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if data.trim() == "[DONE]" {
            self.over = true;
            return Ok(());
        }
        self.chunk(data, out)
    }

    fn whole(&mut self, body: &str) -> Result<(), ModelError> {
        self.chunk(body, &mut Vec::new())?;
        self.over = self.finish.is_some() || self.answered;
        if self.over { Ok(()) } else { Err(error::protocol("the model provider's answer has no choices")) }
    }

    fn progress(&self) -> Progress {
        match (self.over, &self.finish) {
            (true, _) => Progress::Over,
            (false, Some(_)) => Progress::Complete,
            (false, None) => Progress::Going,
        }
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Option<Reply> {
        let finish = match self.finish.take() {
            Some(finish) => finish,
            None if self.over && (self.assembly.has_text() || !self.slots.is_empty()) => Finish::Stop,
            // An end without a reason and without an answer is not one that a model makes.
            None if self.over => Finish::Other(String::new()),
            None => return None,
        };
        let opaque = self.opaque.take();
        let reasoning = |text| Reasoning { text, opaque: None, encrypted: opaque };
        Some(self.assembly.finish(finish, reasoning, out))
    }
}

/// Text, or the text parts of a list.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text")).filter_map(Value::as_str).collect()
        }
        _ => String::new(),
    }
}

/// Gateways pass on the words of other wires, too.
fn read_finish(reason: String) -> Finish {
    match reason.to_lowercase().as_str() {
        "stop" | "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_calls" | "function_call" | "tool_use" => Finish::ToolCalls,
        "length" | "max_tokens" => Finish::Length,
        "model_context_window_exceeded" => Finish::ContextFull,
        "pause_turn" => Finish::Paused,
        "content_filter" | "safety" => Finish::ContentFilter,
        "refusal" => Finish::Refusal(None),
        // Google: `function_call_filter: MALFORMED_FUNCTION_CALL`. OpenRouter: `error`.
        words if words == "error" || words.contains("malformed") => Finish::Broken(reason),
        _ => Finish::Other(reason),
    }
}

fn read_usage(usage: &Value) -> TokenUsage {
    TokenUsage {
        input_tokens: count(usage, "/prompt_tokens"),
        output_tokens: count(usage, "/completion_tokens"),
        cache_read_tokens: count(usage, "/prompt_tokens_details/cached_tokens")
            .or_else(|| count(usage, "/prompt_cache_hit_tokens")),
        cache_write_tokens: count(usage, "/prompt_tokens_details/cache_write_tokens"),
        reasoning_tokens: count(usage, "/completion_tokens_details/reasoning_tokens")
            .or_else(|| count(usage, "/reasoning_tokens")),
        cost: cost(usage),
    }
}
