//! A chat completions answer.

use hangar_agent::model::{Finish, ModelError, ModelEvent, ReasoningText, Reply, TokenUsage};
use hangar_protocol::data::ToolType;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::request::THINKING;
use crate::error;
use crate::wire::assembly::Assembly;
use crate::wire::{Decode, Progress, cost, count};

/// Chunks of a stream and whole answers alike: a message is a delta that has everything.
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
    /// The field that some servers use instead.
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Value>,
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    reasoning_text: Option<Value>,
    reasoning_opaque: Option<String>,
    reasoning_details: Option<Vec<Value>>,
    refusal: Option<Value>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
    custom: Option<CustomDelta>,
    /// Vendor data of this call, such as the signature of the reasoning behind it.
    extra_content: Option<Value>,
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
    /// The calls begun so far, by the key that identifies them on the wire.
    slots: Vec<Slot>,
    kept: Kept,
    finish: Option<Finish>,
    /// Whether anything of a choice arrived.
    answered: bool,
    over: bool,
}

/// Parts of a message that are sent back unchanged, beside its text and its calls.
#[derive(Default)]
struct Kept {
    /// Name of the field that the reasoning came in, or of the parts of the content.
    thoughts_in: Option<&'static str>,
    opaque: Option<String>,
    details: Vec<Value>,
    /// Vendor data by the index of the call.
    on_calls: Vec<(usize, Value)>,
}

struct Slot {
    choice: u64,
    index: Option<u64>,
    /// As the wire gave it, which may be nothing.
    id: String,
    call: usize,
}

impl Decoder {
    pub(in crate::wire) fn new(assembly: Assembly) -> Self {
        Self {
            assembly,
            slots: Vec::new(),
            kept: Kept::default(),
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
            if let Some(usage) = choice.usage.filter(Value::is_object) {
                self.assembly.usage = read_usage(&usage);
            }
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
        // Servers that send it under two names send the same text twice.
        let thoughts = [
            ("reasoning_content", delta.reasoning_content),
            ("reasoning", delta.reasoning),
            ("reasoning_text", delta.reasoning_text),
        ];
        let thoughts = thoughts.into_iter().filter_map(|(field, value)| Some((field, text(&value?))));
        if let Some((field, thought)) = thoughts.into_iter().find(|(_, text)| !text.is_empty()) {
            self.kept.thoughts_in = Some(field);
            self.assembly.thought(&thought, out);
        }
        if let Some(opaque) = delta.reasoning_opaque.filter(|opaque| !opaque.is_empty()) {
            self.kept.opaque = Some(opaque);
        }
        for detail in delta.reasoning_details.into_iter().flatten() {
            self.kept.add_detail(detail);
        }
        for said in [delta.content, delta.refusal].into_iter().flatten() {
            let thought = thinking(&said);
            if !thought.is_empty() {
                self.kept.thoughts_in = Some(THINKING);
                self.assembly.thought(&thought, out);
            }
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
        let starts = match &input {
            Some(Value::String(piece)) => piece.trim_start().starts_with('{'),
            Some(Value::Object(_)) => true,
            _ => false,
        };
        let call = match self.slot(choice, delta.index, &id, (!name.is_empty(), starts)) {
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
        if let Some(mark) = delta.extra_content.filter(|mark| !mark.is_null()) {
            self.kept.on_calls.push((call, mark));
        }
        match input {
            Some(Value::String(piece)) => self.assembly.extend_call(call, &piece, out),
            // Arguments that are an object instead of its text.
            Some(arguments @ Value::Object(_)) => {
                self.assembly.extend_call(call, &arguments.to_string(), out);
            }
            _ => {}
        }
    }

    /// The call that a piece belongs to; `None` if it begins one. The index should identify it. Some servers omit it,
    /// or give every call the same one; then a new id, or at least a name, begins a call. So does a name with the start of an
    /// input behind a complete one, if a server gives two calls the same id.
    fn slot(
        &self,
        choice: u64,
        index: Option<u64>,
        id: &str,
        (named, starts): (bool, bool),
    ) -> Option<usize> {
        let mut slots = self.slots.iter().rev().filter(|slot| slot.choice == choice);
        if let Some(same) = slots.clone().find(|slot| !id.is_empty() && slot.id == id && slot.index == index)
        {
            let is_complete =
                || serde_json::from_str::<Map<String, Value>>(self.assembly.call_input(same.call)).is_ok();
            return (!(named && starts && is_complete())).then_some(same.call);
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
            // An end without a reason and without an answer is not an end by the model.
            None if self.over => Finish::Other(String::new()),
            None => return None,
        };
        let kept = std::mem::take(&mut self.kept);
        let items = kept.items(&self.assembly, &finish);
        let reasoning = |text| ReasoningText { text, opaque: None, encrypted: kept.opaque };
        Some(self.assembly.finish(finish, reasoning, items, out))
    }
}

impl Kept {
    /// Adds a detail, or a piece of the last one: they are streamed like text.
    fn add_detail(&mut self, piece: Value) {
        let same = |last: &Value, field: &str| last.get(field) == piece.get(field);
        let last = self.details.last_mut().filter(|last| same(last, "type") && same(last, "index"));
        // A server that gives no index gives each whole.
        match (last, piece) {
            (Some(Value::Object(last)), Value::Object(piece)) if piece.contains_key("index") => {
                for (field, value) in piece {
                    match (last.get_mut(&field), value) {
                        (Some(Value::String(text)), Value::String(more))
                            if matches!(field.as_str(), "text" | "summary" | "data") =>
                        {
                            text.push_str(&more);
                        }
                        (_, Value::Null) => {}
                        (_, value) => drop(last.insert(field, value)),
                    }
                }
            }
            (_, piece) => self.details.push(piece),
        }
    }

    /// The parts that are sent back beside text and calls, as a message with only those; `None` if there are none.
    fn items(&self, assembly: &Assembly, finish: &Finish) -> Option<String> {
        // Reasoning alone is not sent back.
        if !assembly.has_text() && !assembly.has_whole_calls(finish) {
            return None;
        }
        let mut message = Map::new();
        if let Some(field) = self.thoughts_in {
            message.insert(field.to_owned(), json!(assembly.thoughts()));
        }
        if let Some(opaque) = &self.opaque {
            message.insert("reasoning_opaque".to_owned(), json!(opaque));
        }
        if !self.details.is_empty() {
            message.insert("reasoning_details".to_owned(), json!(self.details));
        }
        if !self.on_calls.is_empty() {
            let call = |(call, mark): &(usize, Value)| json!({ "id": assembly.call_id(*call), "extra_content": mark });
            message.insert("tool_calls".to_owned(), self.on_calls.iter().map(call).collect());
        }
        (!message.is_empty()).then(|| Value::Object(message).to_string())
    }
}

/// Reasoning in a list of parts, where some servers put it.
fn thinking(value: &Value) -> String {
    let parts = value.as_array().into_iter().flatten();
    parts.filter_map(|part| part.get("thinking")).map(text).collect()
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

/// Gateways pass on reasons of other wires, too.
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
            .or_else(|| count(usage, "/prompt_cache_hit_tokens"))
            // Claude behind LiteLLM and other gateways.
            .or_else(|| count(usage, "/cache_read_input_tokens"))
            // Kimi.
            .or_else(|| count(usage, "/cached_tokens")),
        cache_write_tokens: count(usage, "/prompt_tokens_details/cache_write_tokens")
            .or_else(|| count(usage, "/prompt_tokens_details/cache_creation_tokens"))
            .or_else(|| count(usage, "/cache_creation_input_tokens")),
        reasoning_tokens: count(usage, "/completion_tokens_details/reasoning_tokens")
            .or_else(|| count(usage, "/reasoning_tokens")),
        web_searches: None,
        cost: cost(usage),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_spelling_of_cached_tokens_is_read() {
        for usage in [
            json!({ "prompt_tokens_details": { "cached_tokens": 5 } }),
            json!({ "prompt_cache_hit_tokens": 5 }),
            json!({ "cached_tokens": 5 }),
            json!({ "cache_read_input_tokens": 5 }),
        ] {
            assert_eq!(read_usage(&usage).cache_read_tokens, Some(5), "{usage}");
        }
        for usage in [
            json!({ "prompt_tokens_details": { "cache_write_tokens": 5 } }),
            json!({ "prompt_tokens_details": { "cache_creation_tokens": 5 } }),
            json!({ "cache_creation_input_tokens": 5 }),
        ] {
            assert_eq!(read_usage(&usage).cache_write_tokens, Some(5), "{usage}");
        }
    }
}
