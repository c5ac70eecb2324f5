//! A responses answer.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hangar_agent::model::{Finish, ModelError, ModelEvent, ReasoningText, Reply, TokenUsage};
use hangar_protocol::data::ToolType;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error;
use crate::wire::assembly::Assembly;
use crate::wire::{Decode, Progress, cost, count};

/// Any event: each uses some of the fields.
#[derive(Deserialize)]
struct WireEvent {
    #[serde(rename = "type", default)]
    kind: String,
    /// Identifies the items. Their ids do not: some servers give an item a new id with each event.
    #[serde(default)]
    output_index: u64,
    #[serde(default)]
    summary_index: u64,
    #[serde(default)]
    delta: String,
    item: Option<Box<RawValue>>,
    response: Option<Value>,
}

pub(crate) struct Decoder {
    assembly: Assembly,
    items: BTreeMap<u64, Item>,
    /// The items that are complete, as they came.
    done: BTreeMap<u64, Box<RawValue>>,
    /// Web searches that the provider ran.
    searches: u64,
    finish: Option<Finish>,
}

enum Item {
    Message {
        said: bool,
    },
    Reasoning {
        said: bool,
    },
    Call {
        call: usize,
    },
    /// A web search that the provider runs itself.
    Search,
    Other,
}

impl Decoder {
    pub(in crate::wire) fn new(assembly: Assembly) -> Self {
        Self { assembly, items: BTreeMap::new(), done: BTreeMap::new(), searches: 0, finish: None }
    }

    fn begin(&mut self, index: u64, item: &Value) {
        if self.items.contains_key(&index) {
            return;
        }
        let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        let begun = match text("type") {
            "message" => Item::Message { said: false },
            "reasoning" => Item::Reasoning { said: false },
            kind @ ("function_call" | "custom_tool_call") => {
                let kind = if kind == "function_call" { ToolType::Function } else { ToolType::Custom };
                Item::Call { call: self.assembly.open_call(text("call_id"), text("name"), kind) }
            }
            "web_search_call" => Item::Search,
            _ => Item::Other,
        };
        self.items.insert(index, begun);
    }

    /// A piece of a message. A second message of one answer is a paragraph of its own.
    fn say(&mut self, index: u64, delta: &str, out: &mut Vec<ModelEvent>) {
        let item = self.items.entry(index).or_insert(Item::Message { said: false });
        if let Item::Message { said } = item
            && !delta.is_empty()
        {
            if !std::mem::replace(said, true) && self.assembly.has_text() {
                self.assembly.text("\n\n", out);
            }
            self.assembly.text(delta, out);
        }
    }

    fn think(&mut self, index: u64, delta: &str, out: &mut Vec<ModelEvent>) {
        let item = self.items.entry(index).or_insert(Item::Reasoning { said: false });
        if let Item::Reasoning { said } = item
            && !delta.is_empty()
        {
            if !std::mem::replace(said, true) && self.assembly.has_thoughts() {
                self.assembly.thought("\n\n", out);
            }
            self.assembly.thought(delta, out);
        }
    }

    /// Completes an item. Content that its pieces did not have is emitted now.
    fn end(&mut self, index: u64, raw: Box<RawValue>, out: &mut Vec<ModelEvent>) {
        let item = read(&raw);
        self.begin(index, &item);
        self.done.insert(index, raw);
        let list = |name: &str| item.get(name).and_then(Value::as_array).into_iter().flatten();
        for citation in list("content").filter_map(|part| part.get("annotations")?.as_array()).flatten() {
            self.assembly.cite(citation);
        }
        match self.items.get_mut(&index) {
            Some(Item::Message { said: false }) => {
                let text: String = list("content").filter_map(spoken).collect();
                self.say(index, &text, out);
            }
            Some(Item::Reasoning { said }) => {
                let parts: Vec<&str> = list("summary").chain(list("content")).filter_map(spoken).collect();
                let unsaid = if *said { String::new() } else { parts.join("\n\n") };
                self.think(index, &unsaid, out);
            }
            Some(Item::Call { call }) => {
                let call = *call;
                let whole = item.get("arguments").or_else(|| item.get("input")).and_then(Value::as_str);
                if self.assembly.call_input(call).is_empty() {
                    self.assembly.extend_call(call, whole.unwrap_or_default(), out);
                }
                self.assembly.close_call(call, out);
            }
            Some(Item::Search) => {
                let action = item.get("action").unwrap_or(&Value::Null);
                self.searches += u64::from(matches!(action["type"].as_str(), None | Some("search")));
                self.assembly.searched(action, out);
            }
            Some(Item::Message { said: true } | Item::Other) | None => {}
        }
    }

    /// The response as a whole: how it ended, and the items, in case no events had them.
    fn response(&mut self, mut response: Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.assembly.identify(response.get("id").and_then(Value::as_str).unwrap_or_default());
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            self.assembly.usage = read_usage(usage);
        }
        let status = response.get("status").and_then(Value::as_str).unwrap_or_default();
        if status == "failed" || response.get("error").is_some_and(|error| !error.is_null()) {
            return Err(error::in_stream(&json!({ "response": response })));
        }
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        self.finish = Some(match (status, reason) {
            ("incomplete", Some("max_output_tokens")) => Finish::Length,
            ("incomplete", Some("content_filter")) => Finish::ContentFilter,
            ("incomplete" | "cancelled", reason) => Finish::Broken(reason.unwrap_or(status).to_owned()),
            _ => Finish::Stop,
        });
        if let Some(Value::Array(output)) = response.get_mut("output").map(Value::take) {
            for (index, item) in (0..).zip(output) {
                if !self.items.contains_key(&index)
                    && let Ok(raw) = serde_json::value::to_raw_value(&item)
                {
                    self.end(index, raw, out);
                }
            }
        }
        Ok(())
    }

    /// Reasoning for the log: one item in its parts, several unchanged.
    fn marks(&self) -> (Option<String>, Option<String>) {
        let is_reasoning = |index: &u64| matches!(self.items.get(index), Some(Item::Reasoning { .. }));
        let done = self.done.iter().filter(|(index, _)| is_reasoning(index));
        let items: Vec<Value> = done.map(|(_, raw)| read(raw)).collect();
        let text = |item: &Value, name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
        match items.as_slice() {
            [] => (None, None),
            [one] => (text(one, "id"), text(one, "encrypted_content")),
            _ if items.iter().any(|item| text(item, "encrypted_content").is_some()) => {
                (None, Some(Value::Array(items).to_string()))
            }
            _ => (None, None),
        }
    }

    /// Part of the answer that the last message is, if the model says.
    fn phase(&self) -> Option<String> {
        let mut done =
            self.done.iter().filter(|(index, _)| matches!(self.items.get(index), Some(Item::Message { .. })));
        read(done.next_back()?.1).get("phase")?.as_str().map(str::to_owned)
    }

    /// The items to be sent back; `None` where text followed by calls says the same. Reasoning without a following item
    /// belongs to one that never arrived, and is refused without it.
    fn items(&self, finish: &Finish) -> Option<String> {
        let is_cut = |item: &Item| matches!(item, Item::Call { call } if self.assembly.is_cut(*call, finish));
        let done = self.done.iter().filter_map(|(index, raw)| Some((self.items.get(index)?, &**raw)));
        let mut items: Vec<(&Item, &RawValue)> = done.filter(|(item, _)| !is_cut(item)).collect();
        while matches!(items.last(), Some((Item::Reasoning { .. }, _))) {
            items.pop();
        }
        let is_plain = |(at, (item, raw)): (usize, &(&Item, &RawValue))| match item {
            Item::Message { .. } => at == 0 && read(raw).get("phase").is_none_or(Value::is_null),
            Item::Call { .. } => true,
            Item::Reasoning { .. } | Item::Search | Item::Other => false,
        };
        // An item that broke off is only in the text and the calls.
        let is_whole = self.items.iter().all(|(index, item)| match (item, self.done.get(index)) {
            (Item::Message { said }, done) => !said || done.is_some(),
            (call @ Item::Call { .. }, done) => done.is_some() || is_cut(call),
            (Item::Reasoning { .. } | Item::Search | Item::Other, _) => true,
        });
        // Unencrypted reasoning is left out: the provider would look it up, and nothing is stored. The ids of the others would
        // bind them to it.
        let is_open = |(item, raw): &(&Item, &RawValue)| {
            matches!(item, Item::Reasoning { .. })
                && read(raw)["encrypted_content"].as_str().is_none_or(str::is_empty)
        };
        let is_unsealed = items.iter().any(is_open);
        items.retain(|item| !is_open(item));
        if !is_whole || items.iter().enumerate().all(is_plain) {
            return None;
        }
        let written = items.iter().map(|(item, raw)| self.written(item, raw));
        if is_unsealed {
            return Some(written.map(|item| without_id(&item)).collect::<Value>().to_string());
        }
        Some(format!("[{}]", written.collect::<Vec<_>>().join(",")))
    }

    /// An item as it came. A call whose id is missing, or is that of another call, has the one that its result names.
    fn written<'a>(&self, item: &Item, raw: &'a RawValue) -> Cow<'a, str> {
        if let Item::Call { call } = item {
            let id = self.assembly.call_id(*call);
            let mut item = read(raw);
            if item["call_id"].as_str() != Some(id) {
                item["call_id"] = json!(id);
                return item.to_string().into();
            }
        }
        raw.get().into()
    }
}

/// An item for a request that leaves out the reasoning before it.
fn without_id(item: &str) -> Value {
    let mut item: Value = serde_json::from_str(item).unwrap_or_default();
    if let Some(fields) = item.as_object_mut() {
        fields.shift_remove("id");
    }
    item
}

impl Decode for Decoder {
    fn event(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        // Some gateways add the end marker of the other wire; it is ignored here.
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: WireEvent = serde_json::from_str(data).map_err(|error| {
            error::protocol(format!("the model provider sent what is not a response event: {error}"))
        })?;
        let index = event.output_index;
        match event.kind.as_str() {
            "response.created" | "response.in_progress" => {
                let id =
                    event.response.as_ref().and_then(|response| response.get("id")).and_then(Value::as_str);
                self.assembly.identify(id.unwrap_or_default());
            }
            "response.output_item.added" => {
                self.begin(index, &event.item.as_deref().map(read).unwrap_or_default());
            }
            "response.output_text.delta" | "response.refusal.delta" => self.say(index, &event.delta, out),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(index, &event.delta, out);
            }
            "response.reasoning_summary_part.added" if event.summary_index > 0 => {
                self.think(index, "\n\n", out);
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                if let Some(Item::Call { call }) = self.items.get(&index) {
                    self.assembly.extend_call(*call, &event.delta, out);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.end(index, item, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                return self.response(event.response.unwrap_or_default(), out);
            }
            "error" => return Err(error::in_stream(&serde_json::from_str(data).unwrap_or_default())),
            // Events without a type are errors of a gateway in between, or empty.
            "" => {
                let value: Value = serde_json::from_str(data).unwrap_or_default();
                if value.get("error").is_some_and(|error| !error.is_null()) {
                    return Err(error::in_stream(&value));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str) -> Result<(), ModelError> {
        let response: Value = serde_json::from_str(body).map_err(|error| {
            error::protocol(format!("the model provider sent what is not a response: {error}"))
        })?;
        if response.get("output").is_none() && response.get("error").is_none_or(Value::is_null) {
            return Err(error::protocol("the model provider's answer has no output"));
        }
        self.response(response, &mut Vec::new())
    }

    fn progress(&self) -> Progress {
        if self.finish.is_some() { Progress::Over } else { Progress::Going }
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Option<Reply> {
        let finish = self.finish.take()?;
        self.assembly.usage.web_searches = (self.searches > 0).then_some(self.searches);
        let (opaque, encrypted) = self.marks();
        let items = self.items(&finish);
        let phase = self.phase();
        let reply =
            self.assembly.finish(finish, |text| ReasoningText { text, opaque, encrypted }, items, out);
        Some(Reply { phase, ..reply })
    }
}

fn read(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// The text of a part of a message (spoken or refused) or of a summary.
fn spoken(part: &Value) -> Option<&str> {
    part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str)
}

fn read_usage(usage: &Value) -> TokenUsage {
    TokenUsage {
        input_tokens: count(usage, "/input_tokens"),
        output_tokens: count(usage, "/output_tokens"),
        cache_read_tokens: count(usage, "/input_tokens_details/cached_tokens"),
        cache_write_tokens: count(usage, "/input_tokens_details/cache_write_tokens"),
        reasoning_tokens: count(usage, "/output_tokens_details/reasoning_tokens"),
        web_searches: None,
        cost: cost(usage),
    }
}
