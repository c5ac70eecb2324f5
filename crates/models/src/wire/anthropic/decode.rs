//! An Anthropic messages answer.

use std::collections::BTreeMap;

use hangar_agent::model::{Finish, ModelError, ModelEvent, ReasoningText, Reply, TokenUsage};
use hangar_protocol::data::ToolType;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::error;
use crate::hosted::WEB_SEARCH;
use crate::wire::assembly::Assembly;
use crate::wire::{Decode, Progress, cost, count};

/// Any event: each uses some of the fields.
#[derive(Deserialize)]
struct WireEvent {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    index: u64,
    message: Option<Value>,
    content_block: Option<Map<String, Value>>,
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
    citation: Option<Value>,
    stop_reason: Option<String>,
    stop_details: Option<Value>,
}

pub(crate) struct Decoder {
    assembly: Assembly,
    blocks: BTreeMap<u64, Block>,
    counted: Counted,
    finish: Option<Finish>,
    over: bool,
    /// Blocks of thinking in the request that the vendor left out, because they do not fit it.
    dropped: usize,
}

/// A content block to be sent back: its initial fields, with the deltas applied.
struct Block {
    kind: Kind,
    fields: Map<String, Value>,
    /// Input of a call, as text.
    input: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    /// Thinking that only the vendor can read.
    Redacted,
    /// A call, by its number in the assembly.
    Call(usize),
    /// A block of the vendor's own tools, or of an unknown type.
    Other,
}

/// Token counts of the wire: input without what was read from or written to the cache.
#[derive(Default)]
struct Counted {
    fresh: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
    searches: Option<u64>,
    cost: Option<f64>,
}

impl Decoder {
    pub(in crate::wire) fn new(assembly: Assembly) -> Self {
        Self {
            assembly,
            blocks: BTreeMap::new(),
            counted: Counted::default(),
            finish: None,
            over: false,
            dropped: 0,
        }
    }

    fn message(&mut self, message: &Value) {
        self.assembly.identify(message.get("id").and_then(Value::as_str).unwrap_or_default());
        if let Some(usage) = message.get("usage") {
            self.counted.update(usage);
        }
        let changes = message.get("input_transformations").and_then(Value::as_array);
        self.dropped += changes.into_iter().flatten().filter(|change| is_dropped_thinking(change)).count();
    }

    fn begin(&mut self, index: u64, mut fields: Map<String, Value>, out: &mut Vec<ModelEvent>) {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut input = String::new();
        let kind = match text("type") {
            "text" => {
                // Text after a search is a paragraph of its own.
                if self.blocks.values().last().is_some_and(|before| before.kind == Kind::Other)
                    && self.assembly.has_text()
                {
                    self.assembly.text("\n\n", out);
                }
                self.assembly.text(text("text"), out);
                let cited = fields.get("citations").and_then(Value::as_array);
                cited.into_iter().flatten().for_each(|citation| self.assembly.cite(citation));
                Kind::Text
            }
            "thinking" => {
                if self.assembly.has_thoughts() {
                    self.assembly.thought("\n\n", out);
                }
                self.assembly.thought(text("thinking"), out);
                Kind::Thinking
            }
            "redacted_thinking" => Kind::Redacted,
            "tool_use" => Kind::Call(self.assembly.open_call(text("id"), text("name"), ToolType::Function)),
            _ => Kind::Other,
        };
        // The input should be empty at first, but some servers send all of it here.
        if matches!(kind, Kind::Call(_) | Kind::Other)
            && fields.get("input").and_then(Value::as_object).is_some_and(|input| !input.is_empty())
        {
            input = fields.shift_remove("input").unwrap_or_default().to_string();
        }
        self.blocks.insert(index, Block { kind, fields, input });
    }

    fn delta(&mut self, index: u64, delta: Delta, out: &mut Vec<ModelEvent>) {
        let Some(block) = self.blocks.get_mut(&index) else { return };
        let piece = delta.partial_json.unwrap_or_default();
        match block.kind {
            Kind::Text => {
                let said = delta.text.unwrap_or_default();
                append(&mut block.fields, "text", &said);
                self.assembly.text(&said, out);
                if let Some(citation) = delta.citation {
                    self.assembly.cite(&citation);
                    let cited = block.fields.entry("citations").or_insert_with(|| json!([]));
                    match cited.as_array_mut() {
                        Some(list) => list.push(citation),
                        None => *cited = json!([citation]),
                    }
                }
            }
            Kind::Thinking => {
                let thought = delta.thinking.unwrap_or_default();
                append(&mut block.fields, "thinking", &thought);
                append(&mut block.fields, "signature", &delta.signature.unwrap_or_default());
                self.assembly.thought(&thought, out);
            }
            Kind::Call(call) => {
                block.input.push_str(&piece);
                self.assembly.extend_call(call, &piece, out);
            }
            Kind::Other => block.input.push_str(&piece),
            Kind::Redacted => {}
        }
    }

    fn end(&mut self, index: u64, out: &mut Vec<ModelEvent>) {
        let Some(block) = self.blocks.get(&index) else { return };
        if let Kind::Call(call) = block.kind {
            if self.assembly.call_input(call).is_empty() {
                self.assembly.extend_call(call, &block.input, out);
            }
            self.assembly.close_call(call, out);
        }
        if block.kind == Kind::Other && block.text("name") == Some(WEB_SEARCH) {
            let input: Value = serde_json::from_str(&block.input).unwrap_or_default();
            self.assembly.searched(&input, out);
        }
    }

    /// Reasoning for the log: a signature beside its text, or all blocks unchanged.
    fn marks(&self) -> (Option<String>, Option<String>) {
        let signed = |block: &&Block| match block.kind {
            Kind::Thinking => block.text("signature").is_some_and(|signature| !signature.is_empty()),
            Kind::Redacted => true,
            Kind::Text | Kind::Call(_) | Kind::Other => false,
        };
        let blocks: Vec<&Block> = self.blocks.values().filter(signed).collect();
        match blocks.as_slice() {
            [] => (None, None),
            [block] if block.kind == Kind::Thinking => (block.text("signature").map(str::to_owned), None),
            _ => {
                (None, Some(json!(blocks.iter().map(|block| &block.fields).collect::<Vec<_>>()).to_string()))
            }
        }
    }

    /// The blocks to be sent back; `None` where text followed by calls says the same. A paused answer is always sent
    /// back unchanged.
    fn items(&self, finish: &Finish) -> Option<String> {
        let is_cut =
            |block: &&Block| matches!(block.kind, Kind::Call(call) if self.assembly.is_cut(call, finish));
        let blocks = self.blocks.values().filter(|block| !block.is_blank() && !is_cut(block));
        let mut blocks: Vec<&Block> = blocks.collect();
        // Thinking that led to nothing any more: an answer may not end with it, and its signature may not have come.
        let is_thinking = |block: &&Block| matches!(block.kind, Kind::Thinking | Kind::Redacted);
        while *finish != Finish::Paused && blocks.last().is_some_and(is_thinking) {
            blocks.pop();
        }
        let is_plain = |(at, block): (usize, &&Block)| match block.kind {
            Kind::Text => at == 0 && !block.fields.contains_key("citations"),
            Kind::Call(_) => true,
            Kind::Thinking | Kind::Redacted | Kind::Other => false,
        };
        let is_paused = *finish == Finish::Paused && !blocks.is_empty();
        if !is_paused && blocks.iter().enumerate().all(is_plain) {
            return None;
        }
        let written: Vec<String> = blocks.iter().filter_map(|block| self.written(block)).collect();
        Some(format!("[{}]", written.join(",")))
    }

    /// A block as JSON. The input of a call that is no JSON is empty: its result says so. `None` for another block that broke off.
    fn written(&self, block: &Block) -> Option<String> {
        let mut fields = block.fields.clone();
        if let Kind::Call(call) = block.kind {
            // For a server without ids, the generated one is sent back.
            fields.insert("id".into(), json!(self.assembly.call_id(call)));
        }
        let input = if block.input.is_empty() { None } else { Some(block.input.as_str()) };
        let Some(input) = input else { return serde_json::to_string(&fields).ok() };
        let raw: &RawValue = match (serde_json::from_str(input), block.kind) {
            (Ok(raw), _) => raw,
            (Err(_), Kind::Call(_)) => serde_json::from_str("{}").ok()?,
            (Err(_), _) => return None,
        };
        fields.shift_remove("input");
        let head = serde_json::to_string(&fields).ok()?;
        Some(format!("{},\"input\":{}}}", head.strip_suffix('}')?, raw.get()))
    }
}

impl Block {
    fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }

    /// Whether the block is empty: the vendor sends such texts and refuses to take them back.
    fn is_blank(&self) -> bool {
        let empty_text =
            self.kind == Kind::Text && self.text("text").is_none_or(|text| text.trim().is_empty());
        empty_text || self.fields.is_empty()
    }
}

fn append(fields: &mut Map<String, Value>, field: &str, piece: &str) {
    if piece.is_empty() {
        return;
    }
    match fields.get_mut(field) {
        Some(Value::String(text)) => text.push_str(piece),
        _ => drop(fields.insert(field.to_owned(), json!(piece))),
    }
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: WireEvent = serde_json::from_str(data).map_err(|error| {
            error::protocol(format!("the model provider sent what is not a message event: {error}"))
        })?;
        if event.error.is_some_and(|error| !error.is_null()) {
            return Err(error::in_stream(&serde_json::from_str(data).unwrap_or_default()));
        }
        match event.kind.as_str() {
            "message_start" => self.message(&event.message.unwrap_or_default()),
            "content_block_start" => self.begin(event.index, event.content_block.unwrap_or_default(), out),
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
        let mut message: Value = serde_json::from_str(body).map_err(|error| {
            error::protocol(format!("the model provider sent what is not a message: {error}"))
        })?;
        if message.get("error").is_some_and(|error| !error.is_null()) {
            return Err(error::in_stream(&message));
        }
        let Some(Value::Array(content)) = message.get_mut("content").map(Value::take) else {
            return Err(error::protocol("the model provider's answer has no content"));
        };
        let out = &mut Vec::new();
        for (index, block) in (0..).zip(content) {
            if let Value::Object(fields) = block {
                self.begin(index, fields, out);
                self.end(index, out);
            }
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
        let (opaque, encrypted) = self.marks();
        let finish = self.finish.take().unwrap_or(Finish::Stop);
        let items = self.items(&finish);
        if self.dropped > 0 {
            out.push(ModelEvent::Notice(format!(
                "The provider left {} block(s) of earlier reasoning out, because the tools, the system prompt or a message \
                 before them changed.",
                self.dropped
            )));
        }
        Some(self.assembly.finish(finish, |text| ReasoningText { text, opaque, encrypted }, items, out))
    }
}

impl Counted {
    /// Later counts are totals, and may omit unchanged values.
    fn update(&mut self, usage: &Value) {
        self.fresh = count(usage, "/input_tokens").or(self.fresh);
        self.read = count(usage, "/cache_read_input_tokens").or(self.read);
        self.written = count(usage, "/cache_creation_input_tokens").or(self.written);
        self.output = count(usage, "/output_tokens").or(self.output);
        self.thinking = count(usage, "/output_tokens_details/thinking_tokens").or(self.thinking);
        self.searches = count(usage, "/server_tool_use/web_search_requests").or(self.searches);
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
            reasoning_tokens: self.thinking,
            web_searches: self.searches.filter(|searches| *searches > 0),
            cost: self.cost,
        }
    }
}

fn is_dropped_thinking(change: &Value) -> bool {
    change.get("type").and_then(Value::as_str).is_some_and(|kind| kind.contains("thinking"))
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

/// Explanation in `stop_details`, for people: `{"category": "cyber", "explanation": "…"}`.
fn explanation(details: &Value) -> Option<String> {
    let text = |name: &str| details.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (text("category"), text("explanation")) {
        (Some(category), Some(explanation)) => Some(format!("{category}: {explanation}")),
        (category, explanation) => category.or(explanation).map(str::to_owned),
    }
}
