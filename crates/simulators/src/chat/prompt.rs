//! The model's input of a request, counted, in pieces that can be cached.

use serde_json::Value;

use super::model::ChatModel;
use crate::{CacheMark, Image, ModelInput, TokenCounter};

/// Longer edge in pixels that a model sees.
const LONGEST_EDGE: u32 = 1568;
/// Tokens of an image whose size cannot be read.
const UNREADABLE_IMAGE: u64 = 1000;
/// Bytes of an attached file, in base64, per token.
const FILE_BYTES: usize = 500;

/// A request as the model reads it: tools, then messages, each separately.
pub(crate) struct Reading {
    tools: ModelInput,
    messages: Vec<(Role, ModelInput)>,
    key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    System,
    Other,
}

impl Reading {
    pub(crate) fn of(model: &ChatModel, body: &Value) -> Self {
        let counter = TokenCounter::new(model.token_percent);
        let mut tools = ModelInput::default();
        for tool in body["tools"].as_array().into_iter().flatten() {
            tools.push(&without_mark(tool), counter.json(tool), mark(tool));
        }
        let messages = body["messages"].as_array().into_iter().flatten();
        let messages = messages.map(|message| {
            let role = match message["role"].as_str() {
                Some("system" | "developer") => Role::System,
                _ => Role::Other,
            };
            (role, message_prompt(&counter, message))
        });
        let key = ["prompt_cache_key", "session_id"].iter().find_map(|name| body[*name].as_str());
        Self { tools, messages: messages.collect(), key: key.unwrap_or_default().to_owned() }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tools.tokens() + self.messages.iter().map(|(_, prompt)| prompt.tokens()).sum::<u64>()
    }

    /// Tokens of tools and system messages, which are the same in every request.
    pub(crate) fn fixed_tokens(&self) -> u64 {
        let system = self.messages.iter().filter(|(role, _)| *role == Role::System);
        self.tools.tokens() + system.map(|(_, prompt)| prompt.tokens()).sum::<u64>()
    }

    /// Drops the oldest messages until the rest fits into `window`, except the system's and the last one. Returns the
    /// number of dropped messages.
    pub(crate) fn truncate(&mut self, window: u64) -> usize {
        let before = self.messages.len();
        while self.tokens() > window {
            let last = self.messages.len().saturating_sub(1);
            let oldest = self.messages[..last].iter().position(|(role, _)| *role == Role::Other);
            let Some(oldest) = oldest else { break };
            self.messages.remove(oldest);
        }
        before - self.messages.len()
    }

    pub(crate) fn into_prompt(self) -> ModelInput {
        let parts = std::iter::once(self.tools).chain(self.messages.into_iter().map(|(_, prompt)| prompt));
        ModelInput { segments: parts.flat_map(|prompt| prompt.segments).collect(), key: self.key }
    }
}

fn message_prompt(counter: &TokenCounter, message: &Value) -> ModelInput {
    let mut prompt = ModelInput::default();
    prompt.push(&message["role"], counter.message(), None);
    let text = |text: &str, prompt: &mut ModelInput| prompt.push_text(text, |piece| counter.text(piece));
    for field in ["reasoning_content", "reasoning", "reasoning_text"] {
        text(message[field].as_str().unwrap_or_default(), &mut prompt);
    }
    match &message["content"] {
        Value::String(content) => text(content, &mut prompt),
        Value::Array(parts) => {
            for part in parts {
                match part["text"].as_str() {
                    Some(content) => text(content, &mut prompt),
                    None => prompt.push(&without_mark(part), medium_tokens(counter, part), None),
                }
                set_mark(&mut prompt, mark(part));
            }
        }
        _ => {}
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        prompt.push(call, counter.json(&call["function"]), None);
    }
    set_mark(&mut prompt, mark(message));
    prompt
}

fn medium_tokens(counter: &TokenCounter, part: &Value) -> u64 {
    let url = part.pointer("/image_url/url").or_else(|| part.get("image_url")).and_then(Value::as_str);
    if let Some(url) = url {
        return Image::of_data_url(url).map_or(UNREADABLE_IMAGE, |image| counter.image(image, LONGEST_EDGE));
    }
    match part.pointer("/file/file_data").and_then(Value::as_str) {
        Some(data) => (data.len() / FILE_BYTES) as u64,
        None => counter.json(part),
    }
}

fn set_mark(prompt: &mut ModelInput, mark: Option<CacheMark>) {
    if let (Some(mark), Some(last)) = (mark, prompt.segments.last_mut()) {
        last.mark = Some(mark);
    }
}

fn mark(value: &Value) -> Option<CacheMark> {
    let mark = ["cache_control", "copilot_cache_control"].iter().find_map(|name| value.get(name))?;
    Some(if mark["ttl"] == "1h" { CacheMark::OneHour } else { CacheMark::FiveMinutes })
}

/// A mark is not part of the cached content.
fn without_mark(value: &Value) -> Value {
    let mut value = value.clone();
    if let Value::Object(fields) = &mut value {
        fields.remove("cache_control");
        fields.remove("copilot_cache_control");
    }
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::rulebook::Rulebook;

    fn reading(body: &Value) -> Reading {
        let book = Rulebook::named("openai").unwrap();
        Reading::of(book.model("gpt-4.1").unwrap(), body)
    }

    #[test]
    fn marks_do_not_change_what_is_read() {
        let message = |mark: bool| {
            let mut part = json!({"type": "text", "text": "hello"});
            if mark {
                part["cache_control"] = json!({"type": "ephemeral"});
            }
            json!({"messages": [{"role": "user", "content": [part]}]})
        };
        let (plain, marked) = (reading(&message(false)).into_prompt(), reading(&message(true)).into_prompt());
        assert_eq!(plain.hash(), marked.hash());
        assert_eq!(marked.segments.last().unwrap().mark, Some(CacheMark::FiveMinutes));
    }

    #[test]
    fn truncation_keeps_the_system_message_and_the_last_one() {
        let long = "word ".repeat(100);
        let body = json!({"messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": long},
            {"role": "assistant", "content": long},
            {"role": "user", "content": "last"},
        ]});
        for (window, dropped) in [(1000, 0), (150, 1), (20, 2), (1, 2)] {
            assert_eq!(reading(&body).truncate(window), dropped, "{window}");
        }
    }
}
