//! The tools of a request and their schemas.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Gpt;
use super::error::invalid;
use super::parameters::too_long;
use crate::refusal::Refusal;
use crate::vendor::InputKind;

const MAX_NAME: usize = 64;
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
/// Depth to which a schema is checked.
const MAX_DEPTH: usize = 32;

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Whether the vendor may search the web.
pub(super) fn searches(body: &Value) -> bool {
    let is_search = |tool: &Value| tool["type"] == "web_search";
    body["tool_choice"] != "none" && list(&body["tools"]).iter().any(is_search)
}

pub(super) fn check(model: &Gpt, body: &Value) -> Result<(), Refusal> {
    if body["reasoning"]["effort"] == "minimal" && searches(body) {
        return Err(invalid(
            "The following tools cannot be used with reasoning.effort 'minimal': web_search.",
            "tools",
            "invalid_value",
        ));
    }
    each("tools", list(&body["tools"]))?;
    for (index, item) in list(&body["input"]).iter().enumerate() {
        if item["type"] == "additional_tools" {
            if !model.rules.late_tools {
                let message = "Invalid value: 'additional_tools'. Supported values are: 'message', 'reasoning', \
                               'function_call', and 'function_call_output'.";
                return Err(invalid(message, &format!("input[{index}]"), "invalid_value"));
            }
            each(&format!("input[{index}].tools"), list(&item["tools"]))?;
        }
    }
    let named: Vec<&str> = all(body).iter().filter_map(|(tool, _)| tool["name"].as_str()).collect();
    if let Some(name) =
        named.iter().enumerate().find_map(|(at, name)| named[..at].contains(name).then_some(name))
    {
        let message = format!("Duplicate tool name: '{name}'. Tool names must be unique.");
        return Err(invalid(message, "tools", "invalid_value"));
    }
    if !body["tool_choice"].is_null()
        && body["tool_choice"] != "none"
        && body["tool_choice"] != "auto"
        && list(&body["tools"]).is_empty()
    {
        return Err(invalid(
            "Tool choice is only allowed when 'tools' are specified.",
            "tool_choice",
            "invalid_value",
        ));
    }
    Ok(())
}

/// The tools of one list.
fn each(path: &str, tools: &[Value]) -> Result<(), Refusal> {
    for (index, tool) in tools.iter().enumerate() {
        let Some(name) = tool["name"].as_str() else { continue };
        check_name(name, &format!("{path}[{index}].name"))?;
        if tool["type"] == "function" {
            Schema { name, param: &format!("{path}[{index}].parameters"), strict: tool["strict"] == true }
                .root(&tool["parameters"])?;
        }
    }
    Ok(())
}

pub(super) fn check_name(name: &str, param: &str) -> Result<(), Refusal> {
    if name.len() > MAX_NAME {
        return Err(too_long(param, MAX_NAME, name.len()));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(fits) {
        let message = format!(
            "Invalid '{param}': string does not match pattern. Expected a string that matches the pattern \
             '^[a-zA-Z0-9_-]+$'."
        );
        return Err(invalid(message, param, "invalid_value"));
    }
    Ok(())
}

struct Schema<'a> {
    name: &'a str,
    param: &'a str,
    strict: bool,
}

impl Schema<'_> {
    fn wrong(&self, context: &[String], said: &str) -> Refusal {
        let place: Vec<_> = context.iter().map(|step| format!("'{step}'")).collect();
        let place = if place.len() == 1 { format!("{},", place[0]) } else { place.join(", ") };
        let message = format!("Invalid schema for function '{}': In context=({place}), {said}", self.name);
        invalid(message, self.param, "invalid_function_parameters")
    }

    fn root(&self, schema: &Value) -> Result<(), Refusal> {
        let kind = match schema {
            Value::Null if !self.strict => return Ok(()),
            Value::Object(fields) => fields.get("type").and_then(Value::as_str).unwrap_or("None"),
            _ => "None",
        };
        if kind != "object" {
            let message = format!(
                "Invalid schema for function '{}': schema must be a JSON Schema of 'type: \"object\"', got 'type: \
                 \"{kind}\"'.",
                self.name
            );
            return Err(invalid(message, self.param, "invalid_function_parameters"));
        }
        if ["oneOf", "anyOf", "allOf", "enum", "not"].iter().any(|word| schema.get(word).is_some()) {
            let message = format!(
                "Invalid schema for function '{}': schema must have type 'object' and not have \
                 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
                self.name
            );
            return Err(invalid(message, self.param, "invalid_function_parameters"));
        }
        if schema.get("properties").is_none() {
            return Err(self.wrong(&[], "object schema missing properties."));
        }
        self.node(schema, &mut Vec::new())
    }

    fn node(&self, schema: &Value, context: &mut Vec<String>) -> Result<(), Refusal> {
        if context.len() > MAX_DEPTH {
            return Ok(());
        }
        let Value::Object(fields) = schema else {
            let word = if schema == &Value::Bool(true) { "True" } else { "False" };
            return Err(self.wrong(context, &format!("{word} is not of type 'object'.")));
        };
        if let Some(kind) = fields.get("type").and_then(Value::as_str).filter(|kind| !TYPES.contains(kind)) {
            let message = format!(
                "Invalid schema for function '{}': '{kind}' is not valid under any of the given schemas.",
                self.name
            );
            return Err(invalid(message, self.param, "invalid_function_parameters"));
        }
        let is = |kind: &str| fields.get("type").is_some_and(|found| found == kind);
        if is("array") && !fields.contains_key("items") && !fields.contains_key("prefixItems") {
            return Err(self.wrong(context, "array schema missing items."));
        }
        if self.strict && is("object") {
            self.strict_object(schema, context)?;
        }
        for (name, property) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.inside(property, context, &["properties", name])?;
        }
        if let Some(items) = fields.get("items") {
            self.inside(items, context, &["items"])?;
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for (index, part) in fields.get(keyword).map_or(&[][..], list).iter().enumerate() {
                self.inside(part, context, &[keyword, &index.to_string()])?;
            }
        }
        Ok(())
    }

    fn inside(&self, schema: &Value, context: &mut Vec<String>, steps: &[&str]) -> Result<(), Refusal> {
        let depth = context.len();
        context.extend(steps.iter().map(|step| (*step).to_owned()));
        let checked = self.node(schema, context);
        context.truncate(depth);
        checked
    }

    fn strict_object(&self, schema: &Value, context: &[String]) -> Result<(), Refusal> {
        if schema["additionalProperties"] != false {
            let said = "'additionalProperties' is required to be supplied and to be false.";
            return Err(self.wrong(context, said));
        }
        let required = list(&schema["required"]);
        let missing = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .find(|(name, _)| !required.iter().any(|required| required == name.as_str()));
        match missing {
            Some((name, _)) => Err(self.wrong(
                context,
                &format!(
                    "'required' is required to be supplied and to be an array including every key in properties. Missing \
                     '{name}'."
                ),
            )),
            None => Ok(()),
        }
    }
}

/// Tools stand in `tools`, in items that add more, and in namespaces in either.
fn all(body: &Value) -> Vec<(&Value, Option<&str>)> {
    let added = list(&body["input"]).iter().filter(|item| item["type"] == "additional_tools");
    let listed = list(&body["tools"]).iter().chain(added.flat_map(|item| list(&item["tools"])));
    let mut found = Vec::new();
    for tool in listed {
        if tool["type"] == "namespace" {
            found.extend(list(&tool["tools"]).iter().map(|member| (member, tool["name"].as_str())));
        } else {
            found.push((tool, None));
        }
    }
    found
}

pub(super) fn offered(body: &Value) -> BTreeMap<String, InputKind> {
    if body["tool_choice"] == "none" {
        return BTreeMap::new();
    }
    let kind = |tool: &Value| if tool["type"] == "custom" { InputKind::Custom } else { InputKind::Function };
    let named = all(body).into_iter().filter_map(|(tool, _)| Some((tool["name"].as_str()?, kind(tool))));
    named.map(|(name, kind)| (name.to_owned(), kind)).collect()
}

/// The namespaces of the tools that are in one.
pub(super) fn namespaces(body: &Value) -> BTreeMap<String, String> {
    let all = all(body);
    let named = all.iter().filter_map(|(tool, space)| Some((tool["name"].as_str()?, (*space)?)));
    named.map(|(name, space)| (name.to_owned(), space.to_owned())).collect()
}
