//! The model's input of a request: segments for the cache, tokens, and the newest prompt.

use hangar_models::scripted::markers::{Asked, ToolOffer};
use serde_json::{Value, json};

use super::Gpt;
use super::items::{kind, text};
use super::tools::{list, offered};
use crate::cache::ModelInput;
use crate::signature::Seal;
use crate::tokens::TokenCounter;
use hangar_models::image::Image;

/// Edge of the tiles of an image, and the upper bound of its tokens.
const PATCH: u32 = 32;
const MAX_PATCHES: u64 = 1536;
/// Tokens of an image of unknown size.
const IMAGE_TOKENS: u64 = 765;
/// Encoded bytes of a document per token.
const BYTES_PER_DOCUMENT_TOKEN: usize = 16;

pub(super) struct Reading<'a> {
    pub(super) model: &'a Gpt,
    pub(super) body: &'a Value,
    /// Indexes of items that the model does not see.
    pub(super) dropped: &'a [usize],
}

impl Reading<'_> {
    fn counter(&self) -> TokenCounter {
        TokenCounter::new(self.model.token_percent)
    }

    pub(super) fn prompt(&self) -> ModelInput {
        let (counter, body) = (self.counter(), self.body);
        let key = body["prompt_cache_key"].as_str().unwrap_or_default().to_owned();
        let mut prompt = ModelInput { key, ..ModelInput::default() };
        if self.model.rules.effort_in_prefix {
            prompt.push(&body["reasoning"]["effort"], 0, None);
        }
        for tool in list(&body["tools"]) {
            prompt.push(tool, counter.json(tool), None);
        }
        if let Some(instructions) = body["instructions"].as_str() {
            prompt.push_text(instructions, |piece| counter.text(piece));
        }
        if !body["text"]["format"].is_null() {
            prompt.push(&body["text"]["format"], counter.json(&body["text"]["format"]), None);
        }
        if let Some(input) = body["input"].as_str() {
            prompt.push(&json!(input), counter.text(input) + counter.message(), None);
        }
        for (index, item) in list(&body["input"]).iter().enumerate() {
            if !self.dropped.contains(&index) {
                prompt.push(&seen(item), self.tokens(item), None);
            }
        }
        prompt
    }

    fn tokens(&self, item: &Value) -> u64 {
        let counter = self.counter();
        let string = |name: &str| counter.text(item[name].as_str().unwrap_or_default());
        match kind(item) {
            "message" => self.content(&item["content"]) + counter.message(),
            "reasoning" => {
                let encrypted = item["encrypted_content"].as_str().unwrap_or_default();
                Seal::open(encrypted).map_or(0, |seal| seal.tokens)
            }
            "function_call" => string("name") + string("arguments") + counter.message(),
            "custom_tool_call" => string("name") + string("input") + counter.message(),
            "function_call_output" | "custom_tool_call_output" => {
                self.content(&item["output"]) + counter.message()
            }
            _ => counter.json(item),
        }
    }

    fn content(&self, content: &Value) -> u64 {
        let counter = self.counter();
        let part = |part: &Value| match part["type"].as_str().unwrap_or_default() {
            "input_image" => image(part["image_url"].as_str().unwrap_or_default()),
            "input_file" => {
                let data = part["file_data"].as_str().unwrap_or_default();
                (data.len() / BYTES_PER_DOCUMENT_TOKEN) as u64
            }
            _ => counter.text(part["text"].as_str().or(part["refusal"].as_str()).unwrap_or_default()),
        };
        match content {
            Value::String(text) => counter.text(text),
            content => list(content).iter().map(part).sum(),
        }
    }

    /// Prompts and results, as the marker language counts them.
    pub(super) fn asked(&self) -> Asked {
        let offer = if offered(self.body).is_empty() { ToolOffer::TextOnly } else { ToolOffer::Tools };
        let mut asked = Asked::new(offer);
        if let Some(prompt) = self.body["input"].as_str() {
            asked.user(prompt.to_owned());
        }
        for item in list(&self.body["input"]) {
            match (kind(item), item["role"].as_str()) {
                ("message", Some("user")) => asked.user(text(&item["content"])),
                ("message", Some("assistant")) => asked.assistant(),
                ("function_call_output" | "custom_tool_call_output", _) => {
                    asked.result(text(&item["output"]));
                }
                _ => {}
            }
        }
        asked
    }

    /// Text of the newest user message.
    pub(super) fn prompt_text(&self) -> String {
        let user = |item: &&Value| kind(item) == "message" && item["role"] == "user";
        let newest = list(&self.body["input"]).iter().rev().find(user);
        let newest = newest.map(|item| text(&item["content"]));
        newest.or_else(|| self.body["input"].as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// An item without the parts that the model does not read: ids, states and marks.
fn seen(item: &Value) -> Value {
    let mut item = item.clone();
    if let Value::Object(fields) = &mut item {
        fields.retain(|name, _| !["id", "status"].contains(&name.as_str()));
        fields.sort_keys();
    }
    item
}

fn image(url: &str) -> u64 {
    let Some(Image { width, height }) = Image::of_data_url(url) else { return IMAGE_TOKENS };
    (u64::from(width.div_ceil(PATCH)) * u64::from(height.div_ceil(PATCH))).min(MAX_PATCHES)
}
