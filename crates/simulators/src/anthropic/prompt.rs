//! The model's input of a request: segments for the cache, tokens, and the newest prompt.

use hangar_models::scripted::markers::{Asked, ToolOffer};
use serde_json::{Value, json};

use super::Claude;
use super::marks::mark;
use super::messages::list;
use super::prefix::{canonical, content};
use super::thinking::is_thinking;
use crate::cache::{CacheMark, ModelInput};
use crate::signature::Seal;
use crate::tokens::TokenCounter;
use hangar_models::image::Image;

/// Longer edge in pixels that a model sees.
const EDGE: u32 = 1568;
const LARGE_EDGE: u32 = 2576;
/// Upper bound of the tokens of one image.
const LARGE_IMAGE_TOKENS: u64 = 4784;
/// Tokens of an image of unknown size.
const IMAGE_TOKENS: u64 = 1600;
/// Encoded bytes of a document per token.
const BYTES_PER_DOCUMENT_TOKEN: usize = 16;

pub(super) struct Reading<'a> {
    pub(super) model: &'a Claude,
    pub(super) body: &'a Value,
    /// Paths of blocks that the model does not see.
    pub(super) dropped: &'a [String],
}

impl Reading<'_> {
    fn counter(&self) -> TokenCounter {
        TokenCounter::new(self.model.token_percent)
    }

    /// Tools, system, then messages. Content that invalidates only the cache of messages is between them.
    pub(super) fn prompt(&self) -> ModelInput {
        let counter = self.counter();
        let mut prompt = ModelInput::default();
        for tool in list(&self.body["tools"]) {
            let text = canonical(tool);
            prompt.push(&json!(text), counter.text(&text), mark(tool));
        }
        for block in content(&self.body["system"]) {
            prompt.push(&json!(canonical(&block)), self.tokens(&block), mark(&block));
        }
        let toggles = json!([
            self.body["tool_choice"],
            self.body["thinking"]["type"],
            self.body["speed"],
            has_images(self.body)
        ]);
        prompt.push(&toggles, 0, None);
        for (index, message) in list(&self.body["messages"]).iter().enumerate() {
            let blocks = content(&message["content"]);
            for (place, block) in blocks.iter().enumerate() {
                if self.dropped.contains(&format!("messages.{index}.content.{place}")) {
                    continue;
                }
                let head = if place == 0 { counter.message() } else { 0 };
                let inner = list(&block["content"]).iter().filter_map(mark).next_back();
                let text = json!([message["role"], canonical(block)]);
                prompt.push(&text, head + self.tokens(block), mark(block).or(inner));
            }
        }
        if mark(self.body).is_some()
            && let Some(last) = prompt.segments.last_mut()
        {
            last.mark = last.mark.or(Some(CacheMark::FiveMinutes));
        }
        prompt
    }

    fn tokens(&self, block: &Value) -> u64 {
        let counter = self.counter();
        match block["type"].as_str().unwrap_or_default() {
            "text" => counter.text(block["text"].as_str().unwrap_or_default()),
            "thinking" | "redacted_thinking" => {
                let signature = block["signature"].as_str().or(block["data"].as_str()).unwrap_or_default();
                Seal::open(signature).map_or(0, |seal| seal.tokens)
            }
            "tool_use" => {
                let name = block["name"].as_str().unwrap_or_default();
                counter.text(name) + counter.json(&block["input"]) + counter.message()
            }
            "tool_result" => {
                let inner: u64 = content(&block["content"]).iter().map(|part| self.tokens(part)).sum();
                inner + counter.message()
            }
            "image" => self.image(block),
            "document" => {
                let data = block["source"]["data"].as_str().unwrap_or_default();
                (data.len() / BYTES_PER_DOCUMENT_TOKEN) as u64
            }
            _ => counter.text(&canonical(block)),
        }
    }

    fn image(&self, block: &Value) -> u64 {
        let edge = if self.model.rules.large_images { LARGE_EDGE } else { EDGE };
        let data = block["source"]["data"].as_str().unwrap_or_default();
        let tokens = Image::of_base64(data).map(|image| self.counter().image(image, edge));
        tokens.unwrap_or(IMAGE_TOKENS).min(LARGE_IMAGE_TOKENS)
    }

    /// Prompts and results, as the marker language counts them.
    pub(super) fn asked(&self) -> Asked {
        let offered = !list(&self.body["tools"]).is_empty() && self.body["tool_choice"]["type"] != "none";
        let mut asked = Asked::new(if offered { ToolOffer::Tools } else { ToolOffer::TextOnly });
        for message in list(&self.body["messages"]) {
            let blocks = content(&message["content"]);
            let results: Vec<_> = blocks.iter().filter(|block| block["type"] == "tool_result").collect();
            match message["role"].as_str() {
                Some("user") if results.is_empty() => asked.user(text(&message["content"])),
                Some("user") => results.iter().for_each(|result| asked.result(text(&result["content"]))),
                Some("assistant") => asked.assistant(),
                _ => {}
            }
        }
        asked
    }

    /// Text of the newest prompt, and of the text after results since.
    pub(super) fn prompt_text(&self) -> String {
        let messages = list(&self.body["messages"]);
        let is_prompt = |message: &Value| {
            let blocks = content(&message["content"]);
            message["role"] == "user" && !blocks.iter().any(|block| block["type"] == "tool_result")
        };
        let newest = messages.iter().rposition(is_prompt).unwrap_or(0);
        let said = messages[newest..].iter().filter(|message| message["role"] == "user");
        let said = said.map(|message| text(&message["content"])).filter(|text| !text.is_empty());
        said.collect::<Vec<_>>().join("\n")
    }
}

fn has_images(body: &Value) -> bool {
    let is_image = |block: &Value| block["type"] == "image";
    list(&body["messages"]).iter().any(|message| {
        list(&message["content"])
            .iter()
            .any(|block| is_image(block) || list(&block["content"]).iter().any(is_image))
    })
}

fn text(value: &Value) -> String {
    let blocks = content(value);
    let texts = blocks.iter().filter(|block| !is_thinking(block)).filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}
