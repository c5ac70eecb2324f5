//! The items of a request: parts by role, ids, and calls with their outputs.

use serde_json::Value;

use super::Gpt;
use super::error::{invalid, refuse};
use super::parameters::too_long;
use super::tools::{check_name, list};
use crate::history::AnswerHistory;
use crate::refusal::Refusal;
use crate::signature::digest;
use hangar_models::image::Image;

const MAX_ID: usize = 64;

/// Returns rules of the simulator that the request breaks.
pub(super) fn check(model: &Gpt, body: &Value, history: &AnswerHistory) -> Result<Vec<String>, Refusal> {
    let items = list(&body["input"]);
    let mut violations = Vec::new();
    for (index, item) in items.iter().enumerate() {
        identity(index, item, body["store"] == false)?;
        if kind(item) == "message" {
            message(index, item)?;
            violations.extend(phase(model, index, item, history));
        }
        violations.extend(cut(item, history));
        violations.extend(changed_search(index, item, history));
        if let Some(name) = item["name"].as_str() {
            check_name(name, &format!("input[{index}].name"))?;
        }
        images(index, item)?;
    }
    calls(items)?;
    Ok(violations)
}

pub(super) fn kind(item: &Value) -> &str {
    item["type"].as_str().unwrap_or("message")
}

/// Ids have the prefix of their kind, and have no effect where nothing is stored.
fn identity(index: usize, item: &Value, unstored: bool) -> Result<(), Refusal> {
    if let Some(call_id) = item["call_id"].as_str() {
        let param = format!("input[{index}].call_id");
        if call_id.is_empty() {
            let message = format!(
                "Invalid '{param}': empty string. Expected a string with minimum length 1, but got an empty string instead."
            );
            return Err(invalid(message, &param, "empty_string"));
        }
        if call_id.len() > MAX_ID {
            return Err(too_long(&param, MAX_ID, call_id.len()));
        }
    }
    let Some(id) = item["id"].as_str() else { return Ok(()) };
    let prefix = match kind(item) {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" => "fc",
        "custom_tool_call" => "ctc",
        "web_search_call" => "ws",
        "item_reference" if unstored => return Err(not_stored(id)),
        _ => return Ok(()),
    };
    let param = format!("input[{index}].id");
    if id.len() > MAX_ID {
        return Err(too_long(&param, MAX_ID, id.len()));
    }
    if !id.starts_with(prefix) {
        let message = format!("Invalid '{param}': '{id}'. Expected an ID that begins with '{prefix}'.");
        return Err(invalid(message, &param, "invalid_value"));
    }
    Ok(())
}

pub(super) fn not_stored(id: &str) -> Refusal {
    let message = format!(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to \
         true, or remove this item from your input."
    );
    refuse(404, message, Some("input"), None)
}

fn message(index: usize, item: &Value) -> Result<(), Refusal> {
    let assistant = item["role"] == "assistant";
    for (place, part) in list(&item["content"]).iter().enumerate() {
        let kind = part["type"].as_str().unwrap_or_default();
        let said = ["output_text", "refusal"].contains(&kind);
        if said != assistant {
            let supported = if assistant {
                "'output_text' and 'refusal'"
            } else {
                "'input_text', 'input_image', and 'input_file'"
            };
            let message = format!("Invalid value: '{kind}'. Supported values are: {supported}.");
            return Err(invalid(message, &format!("input[{index}].content[{place}]"), "invalid_value"));
        }
    }
    Ok(())
}

/// The phase of a message of the model must be sent back: without it the vendor's models silently do worse.
fn phase(model: &Gpt, index: usize, item: &Value, history: &AnswerHistory) -> Option<String> {
    if !model.rules.phase || item["role"] != "assistant" {
        return None;
    }
    let given = history.recall(&message_key(item))?;
    if given.as_array()?.contains(&item["phase"]) {
        return None;
    }
    Some(format!("input[{index}].phase is {} and was given as {}", item["phase"], given[0]))
}

/// A client drops a call that was cut: half an input means nothing.
fn cut(item: &Value, history: &AnswerHistory) -> Option<String> {
    let id = item["call_id"].as_str().filter(|_| kind(item).ends_with("_call"))?;
    history.recall(&format!("cut:{id}"))?;
    Some(format!("the call {id} was cut inside its input: it must be dropped, not sent back"))
}

/// A search is sent back unchanged.
fn changed_search(index: usize, item: &Value, history: &AnswerHistory) -> Option<String> {
    let id = item["id"].as_str().filter(|_| kind(item) == "web_search_call")?;
    let made = history.recall(&search_key(id))?;
    (made != item).then(|| format!("input[{index}] is not the search {id} as it was made"))
}

/// Looks up a search.
pub(super) fn search_key(id: &str) -> String {
    format!("search:{id}")
}

/// Looks up a message by its content.
pub(super) fn message_key(item: &Value) -> String {
    format!("message:{}", digest(&[&text(&item["content"])]))
}

/// The text of content, whatever its parts.
pub(super) fn text(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = list(content).iter();
    let texts = parts.filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()));
    texts.collect::<Vec<_>>().join("\n")
}

fn images(index: usize, item: &Value) -> Result<(), Refusal> {
    for field in ["content", "output"] {
        for (place, part) in list(&item[field]).iter().enumerate() {
            let url = part["image_url"].as_str().unwrap_or_default();
            if url.starts_with("data:") && Image::of_data_url(url).is_none() {
                return Err(invalid(
                    "The image data you provided does not represent a valid image. Please check your input and try again with \
                     one of the following image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
                    &format!("input[{index}].{field}[{place}].image_url"),
                    "invalid_value",
                ));
            }
        }
    }
    Ok(())
}

/// Each call has one output after it, and each output a call before it.
fn calls(items: &[Value]) -> Result<(), Refusal> {
    let of = |kinds: [&'static str; 2]| {
        let found = items.iter().enumerate().filter(move |(_, item)| kinds.contains(&kind(item)));
        found.filter_map(|(index, item)| Some((index, item["call_id"].as_str()?, kind(item))))
    };
    let calls: Vec<_> = of(["function_call", "custom_tool_call"]).collect();
    let outputs: Vec<_> = of(["function_call_output", "custom_tool_call_output"]).collect();
    if let Some((_, id, _)) = calls
        .iter()
        .enumerate()
        .find_map(|(at, call)| calls[..at].iter().any(|(_, before, _)| *before == call.1).then_some(call))
    {
        let message = format!(
            "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
        );
        return Err(refuse(400, message, Some("input"), None));
    }
    for (index, id, kind) in &outputs {
        let answers = |call: &&(usize, &str, &str)| call.1 == *id && call.0 < *index;
        let called = calls.iter().find(answers);
        let word = if *kind == "function_call_output" { "function call" } else { "custom tool call" };
        if called.is_none_or(|(_, _, call)| format!("{call}_output") != *kind) {
            let message = format!("No tool call found for {word} output with call_id {id}.");
            return Err(refuse(400, message, Some("input"), None));
        }
        if outputs.iter().filter(|(_, other, _)| other == id).count() > 1 {
            let message = format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            );
            return Err(refuse(400, message, Some("input"), None));
        }
    }
    for (_, id, kind) in &calls {
        if !outputs.iter().any(|(_, answered, _)| answered == id) {
            let word = if *kind == "function_call" { "function call" } else { "custom tool call" };
            return Err(refuse(400, format!("No tool output found for {word} {id}."), Some("input"), None));
        }
    }
    Ok(())
}
