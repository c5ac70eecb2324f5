//! The tools of a request, and the references to them in the history.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::error::invalid;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::vendor::InputKind;

const MAX_NAME: usize = 128;

/// Header that allows defining tools in messages of the system.
const INLINE_TOOLS: &str = "inline-tools-2026-09-15";

pub(super) fn check(request: &Request) -> Result<(), Refusal> {
    let body = &request.body;
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    additions(request)?;
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        if is_custom(tool) {
            if !is_word(name, MAX_NAME) {
                return Err(invalid(format!(
                    "tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,{MAX_NAME}}}$'"
                )));
            }
            schema(&format!("tools.{index}.custom"), &tool["input_schema"])?;
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

/// Definitions in messages of the system. Each has the form of an entry of the list.
fn additions(request: &Request) -> Result<(), Refusal> {
    let betas = request.header("anthropic-beta").unwrap_or_default();
    for (path, role, block) in added(&request.body) {
        if role != "system" {
            return Err(invalid(format!("{path}: `tool_addition` blocks can only be in `system` messages")));
        }
        if !betas.contains(INLINE_TOOLS) {
            return Err(invalid(format!(
                "{path}: `tool_addition` blocks are not supported without the `{INLINE_TOOLS}` beta header"
            )));
        }
        let definition = &block["tool"]["definition"];
        if is_custom(definition) {
            schema(&format!("{path}.tool.definition"), &definition["input_schema"])?;
        }
    }
    Ok(())
}

/// Blocks that add tools: path, role of the message, block.
fn added(body: &Value) -> impl Iterator<Item = (String, &Value, &Value)> {
    let messages = body["messages"].as_array().into_iter().flatten().enumerate();
    messages.flat_map(|(index, message)| {
        let blocks = message["content"].as_array().into_iter().flatten().enumerate();
        let added = blocks.filter(|(_, block)| block["type"] == "tool_addition");
        added
            .map(move |(place, block)| (format!("messages.{index}.content.{place}"), &message["role"], block))
    })
}

fn is_custom(tool: &Value) -> bool {
    tool["type"].is_null() || tool["type"] == "custom"
}

/// Letters, digits, `_` and `-`.
pub(super) fn is_word(text: &str, longest: usize) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=longest).contains(&text.len()) && text.chars().all(fits)
}

fn schema(path: &str, schema: &Value) -> Result<(), Refusal> {
    let path = format!("{path}.input_schema");
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
    if is_valid(schema) {
        return Ok(());
    }
    Err(invalid(format!(
        "{path}: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn \
         more about tool use at https://docs.anthropic.com/en/docs/tool-use."
    )))
}

/// Whether a schema has nothing that the draft of 2020 does not have: other types, lists of items, bounds that are booleans.
fn is_valid(schema: &Value) -> bool {
    const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
    let Value::Object(fields) = schema else { return schema.is_boolean() };
    let is_type = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    fields.iter().all(|(name, value)| match name.as_str() {
        "type" => is_type(value) || value.as_array().is_some_and(|kinds| kinds.iter().all(is_type)),
        "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "required" | "enum" => value.is_array(),
        "items" | "additionalProperties" | "not" | "contains" => is_valid(value),
        "properties" | "$defs" | "definitions" | "patternProperties" => {
            value.as_object().is_some_and(|named| named.values().all(is_valid))
        }
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
            value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_valid))
        }
        _ => true,
    })
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
    let listed = body["tools"].as_array().into_iter().flatten();
    let own = listed
        .chain(added(body).map(|(_, _, block)| &block["tool"]["definition"]))
        .filter(|tool| is_custom(tool));
    let names = own.filter_map(|tool| tool["name"].as_str());
    names.map(|name| (name.to_owned(), InputKind::Function)).collect()
}
