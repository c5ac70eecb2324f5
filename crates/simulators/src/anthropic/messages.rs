//! The order of messages and of the blocks in them.

use serde_json::Value;

use super::Claude;
use super::error::invalid;
use super::thinking::is_thinking;
use super::tools::is_word;
use crate::refusal::Refusal;
use hangar_models::image::Image;

const MAX_ID: usize = 64;
const MAX_IMAGES: usize = 100;
const MAX_EDGE: u32 = 8000;
/// From this many images on, they must be smaller.
const MANY_IMAGES: usize = 20;
const MAX_EDGE_OF_MANY: u32 = 2000;

pub(super) fn check(model: &Claude, body: &Value) -> Result<(), Refusal> {
    let messages = list(&body["messages"]);
    roles(model, messages)?;
    for (index, message) in messages.iter().enumerate() {
        blocks(index, message)?;
        ends(index, message)?;
    }
    for (index, message) in messages.iter().enumerate() {
        calls(messages, index, message)?;
    }
    images(messages)
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn roles(model: &Claude, messages: &[Value]) -> Result<(), Refusal> {
    let Some(first) = messages.first() else {
        return Err(invalid("messages: at least one message is required"));
    };
    if first["role"] != "user" {
        return Err(invalid("messages: first message must use the \"user\" role"));
    }
    let mut before = &Value::Null;
    for (index, message) in messages.iter().enumerate() {
        let role = &message["role"];
        if role == "system" {
            if !model.rules.late_system {
                return Err(invalid(format!("messages.{index}.role: Input should be 'user' or 'assistant'")));
            }
            if before != "user" {
                return Err(invalid(format!(
                    "messages.{index}: a `system` message must immediately follow a `user` message"
                )));
            }
        } else if role == before && role == "user" {
            return Err(invalid(format!(
                "messages.{index}: roles must alternate between \"user\" and \"assistant\", but found multiple {role} \
                 roles in a row"
            )));
        }
        before = role;
    }
    Ok(())
}

fn blocks(index: usize, message: &Value) -> Result<(), Refusal> {
    let (role, content) = (&message["role"], &message["content"]);
    let empty = || invalid(format!("messages.{index}: all messages must have non-empty content"));
    if content.as_str().is_some_and(str::is_empty) || content.as_array().is_some_and(Vec::is_empty) {
        return Err(empty());
    }
    for (place, block) in list(content).iter().enumerate() {
        let path = format!("messages.{index}.content.{place}");
        let kind = block["type"].as_str().unwrap_or_default();
        let side = match kind {
            "tool_use" | "thinking" | "redacted_thinking" | "server_tool_use" | "web_search_tool_result" => {
                "assistant"
            }
            "tool_result" | "image" | "document" => "user",
            _ => "",
        };
        if !side.is_empty() && role != side {
            return Err(invalid(format!(
                "messages.{index}: `{kind}` blocks can only be in `{side}` messages"
            )));
        }
        if kind == "text" && block["text"].as_str().is_some_and(|text| text.trim().is_empty()) {
            return Err(invalid(if block["text"] == "" {
                "messages: text content blocks must be non-empty".to_owned()
            } else {
                "messages: text content blocks must contain non-whitespace text".to_owned()
            }));
        }
        let is_text = |part: &Value| part["type"] == "text";
        if kind == "tool_result" && block["is_error"] == true && !list(&block["content"]).iter().all(is_text)
        {
            return Err(invalid(format!(
                "{path}.tool_result: all content must be type \"text\" if \"is_error\" is true"
            )));
        }
        for field in ["id", "tool_use_id"] {
            if let Some(id) = block[field].as_str().filter(|id| !is_word(id, MAX_ID)) {
                return Err(invalid(format!(
                    "{path}.{kind}.{field}: String should match pattern '^[a-zA-Z0-9_-]{{1,{MAX_ID}}}$' (got '{id}')"
                )));
            }
        }
    }
    Ok(())
}

/// The last block of an answer says or calls something.
fn ends(index: usize, message: &Value) -> Result<(), Refusal> {
    match list(&message["content"]).last() {
        Some(block) if message["role"] == "assistant" && is_thinking(block) => Err(invalid(format!(
            "messages.{index}: The final block in an assistant message cannot be `thinking`."
        ))),
        _ => Ok(()),
    }
}

/// Each call is answered in the next message, before anything else in it.
fn calls(messages: &[Value], index: usize, message: &Value) -> Result<(), Refusal> {
    let calls: Vec<_> = ids(message, "tool_use", "id").collect();
    let earlier = || messages[..index].iter().flat_map(|message| ids(message, "tool_use", "id"));
    let repeats = |at: usize, id: &str| calls[..at].contains(&id) || earlier().any(|earlier| earlier == id);
    if calls.iter().enumerate().any(|(at, id)| repeats(at, id)) {
        return Err(invalid(format!("messages.{index}: `tool_use` ids must be unique")));
    }
    let next = messages.get(index + 1);
    let content = next.map_or(&[][..], |next| list(&next["content"]));
    let first = content.iter().take_while(|block| block["type"] == "tool_result");
    let answered: Vec<_> = first.filter_map(|block| block["tool_use_id"].as_str()).collect();
    let open: Vec<_> = calls.iter().filter(|id| !answered.contains(*id)).copied().collect();
    if !open.is_empty() {
        return Err(invalid(format!(
            "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
             `tool_use` block must have a corresponding `tool_result` block in the next message.",
            open.join(", ")
        )));
    }
    let results = next.into_iter().flat_map(|next| ids(next, "tool_result", "tool_use_id"));
    for (place, id) in results.enumerate() {
        if !calls.contains(&id) {
            return Err(unexpected(index + 1, place, id));
        }
        if answered.iter().filter(|answered| **answered == id).count() > 1 {
            return Err(invalid(format!(
                "messages.{}.content.{place}: each tool_use must have a single result. Found multiple `tool_result` \
                 blocks with id: {id}",
                index + 1
            )));
        }
    }
    if index == 0
        && let Some(id) = ids(message, "tool_result", "tool_use_id").next()
    {
        return Err(unexpected(0, 0, id));
    }
    Ok(())
}

fn unexpected(index: usize, place: usize, id: &str) -> Refusal {
    invalid(format!(
        "messages.{index}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
         `tool_result` block must have a corresponding `tool_use` block in the previous message."
    ))
}

fn ids<'a>(message: &'a Value, kind: &'a str, field: &'a str) -> impl Iterator<Item = &'a str> {
    let blocks = list(&message["content"]).iter().filter(move |block| block["type"] == kind);
    blocks.filter_map(move |block| block[field].as_str())
}

/// Images of messages and of results, with the paths of their blocks.
fn all_images(messages: &[Value]) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        for (place, block) in list(&message["content"]).iter().enumerate() {
            let path = format!("messages.{index}.content.{place}");
            if block["type"] == "image" {
                found.push((path.clone(), block));
            }
            for (inner, part) in list(&block["content"]).iter().enumerate() {
                if part["type"] == "image" {
                    found.push((format!("{path}.tool_result.content.{inner}"), part));
                }
            }
        }
    }
    found
}

fn images(messages: &[Value]) -> Result<(), Refusal> {
    let images = all_images(messages);
    if images.len() > MAX_IMAGES {
        return Err(invalid(format!("messages: too many images: {} > {MAX_IMAGES} maximum", images.len())));
    }
    let many = images.len() > MANY_IMAGES;
    let (edge, which) = if many { (MAX_EDGE_OF_MANY, " for many-image requests") } else { (MAX_EDGE, "") };
    for (path, block) in images.iter().filter(|(_, block)| block["source"]["type"] == "base64") {
        let data = block["source"]["data"].as_str().unwrap_or_default();
        let path = format!("{path}.image.source.base64");
        let Some(Image { width, height }) = Image::of_base64(data) else {
            return Err(invalid(format!("{path}: Could not process image")));
        };
        if width.max(height) > edge {
            return Err(invalid(format!(
                "{path}.data: At least one of the image dimensions exceed max allowed size{which}: {edge} pixels"
            )));
        }
    }
    Ok(())
}
