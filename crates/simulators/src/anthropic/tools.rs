//! The tools of a request, and the references to them in the history.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::error::invalid;
use crate::refusal::Refusal;
use crate::vendor::InputKind;

const MAX_NAME: usize = 128;

pub(super) fn check(body: &Value) -> Result<(), Refusal> {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        if is_custom(tool) {
            if !is_word(name, MAX_NAME) {
                return Err(invalid(format!(
                    "tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,{MAX_NAME}}}$'"
                )));
            }
            schema(index, &tool["input_schema"])?;
        }
        if !names.insert(name) {
            return Err(invalid("tools: Tool names must be unique."));
        }
    }
    if !tools.is_empty() && tools.iter().all(|tool| tool["defer_loading"] == true) {
        return Err(invalid("At least one tool must have defer_loading=false."));
    }
    if body["tool_choice"]["type"] == "tool" {
        let name = body["tool_choice"]["name"].as_str().unwrap_or_default();
        if !names.contains(name) {
            return Err(invalid(format!("Tool '{name}' not found in provided tools")));
        }
    }
    if tools.is_empty() && uses_tools(body) {
        return Err(invalid("Requests which include `tool_use` or `tool_result` blocks must define tools."));
    }
    Ok(())
}

fn is_custom(tool: &Value) -> bool {
    tool["type"].is_null() || tool["type"] == "custom"
}

/// Letters, digits, `_` and `-`.
pub(super) fn is_word(text: &str, longest: usize) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=longest).contains(&text.len()) && text.chars().all(fits)
}

fn schema(index: usize, schema: &Value) -> Result<(), Refusal> {
    let path = format!("tools.{index}.custom.input_schema");
    match schema.get("type") {
        None => return Err(invalid(format!("{path}.type: Field required"))),
        Some(kind) if kind != "object" => {
            return Err(invalid(format!("{path}.type: Input should be 'object'")));
        }
        Some(_) => {}
    }
    if ["oneOf", "allOf", "anyOf"].iter().any(|keyword| schema.get(*keyword).is_some()) {
        return Err(invalid(format!(
            "{path}: input_schema does not support oneOf, allOf, or anyOf at the top level"
        )));
    }
    Ok(())
}

fn uses_tools(body: &Value) -> bool {
    let messages = body["messages"].as_array().into_iter().flatten();
    let mut blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    blocks.any(|block| block["type"] == "tool_use" || block["type"] == "tool_result")
}

pub(super) fn offered(body: &Value) -> BTreeMap<String, InputKind> {
    if body["tool_choice"]["type"] == "none" {
        return BTreeMap::new();
    }
    let own = body["tools"].as_array().into_iter().flatten().filter(|tool| is_custom(tool));
    let names = own.filter_map(|tool| tool["name"].as_str());
    names.map(|name| (name.to_owned(), InputKind::Function)).collect()
}
