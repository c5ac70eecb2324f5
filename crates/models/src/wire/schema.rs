//! Schemas of tools in the subset that a host accepts. Tools bring any JSON Schema; some hosts support only part of it
//! and refuse the request otherwise.

use hangar_agent::schema::Schema;
use serde_json::{Map, Value, json};

use crate::facts::HostFacts;

/// Depth to which references are followed: schemas may refer to themselves.
const DEPTH: usize = 8;
/// Keywords that every host with a small subset accepts.
const KNOWN: &[&str] = &[
    "type",
    "title",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "anyOf",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
];

/// The schema as the host accepts it: the same text, unless the host has a small subset.
pub(super) fn conform(schema: Schema, host: &HostFacts) -> Schema {
    if host.strict_schemas {
        let root = schema.to_value();
        return Schema::from(as_object(reduced(&root, &root, DEPTH)));
    }
    let has_lists = || schema.as_str().contains(r#""type":["#) || schema.as_str().contains(r#""type": ["#);
    if host.single_types && has_lists() {
        let mut value = schema.to_value();
        single_types(&mut value);
        return value.into();
    }
    schema
}

/// Leaves each value the first of its types that is not `null`.
fn single_types(value: &mut Value) {
    if let Some(kind) = value.get_mut("type")
        && let Some(kinds) = kind.as_array()
    {
        *kind = kinds.iter().find(|kind| **kind != "null").cloned().unwrap_or(json!("string"));
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(single_types),
        Value::Array(list) => list.iter_mut().for_each(single_types),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a tool has no arguments, which some hosts expect to be expressed by no schema.
pub(super) fn is_empty(schema: &Schema) -> bool {
    let value = schema.to_value();
    value.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty)
}

/// Arguments are always an object, whatever the schema says.
fn as_object(schema: Value) -> Value {
    match schema {
        Value::Object(mut fields) => {
            fields.insert("type".to_owned(), json!("object"));
            fields.entry("properties").or_insert_with(|| json!({}));
            Value::Object(fields)
        }
        _ => json!({ "type": "object", "properties": {} }),
    }
}

/// A schema in the small subset: references resolved, no `null`, enum values only as texts.
fn reduced(schema: &Value, root: &Value, depth: usize) -> Value {
    let Value::Object(fields) = schema else { return json!({ "type": "string" }) };
    if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
        let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return match found.filter(|_| depth > 0) {
            Some(found) => reduced(found, root, depth - 1),
            None => json!({ "type": "string" }),
        };
    }
    let mut out = Map::new();
    for (name, value) in fields.iter().filter(|(name, _)| KNOWN.contains(&name.as_str())) {
        let value = match (name.as_str(), value) {
            ("type", Value::Array(types)) => {
                types.iter().find(|kind| **kind != "null").cloned().unwrap_or(json!("string"))
            }
            ("properties", Value::Object(named)) => {
                named.iter().map(|(name, value)| (name.clone(), reduced(value, root, depth))).collect()
            }
            // A tuple becomes a list with the schema of its first item.
            ("items", Value::Array(places)) => {
                places.first().map_or(json!({ "type": "string" }), |first| reduced(first, root, depth))
            }
            ("items", item) => reduced(item, root, depth),
            ("anyOf", Value::Array(choices)) => choices_of(choices, root, depth),
            ("enum", Value::Array(values)) => {
                values.iter().filter(|value| !value.is_null()).map(as_text).collect()
            }
            (_, value) => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    if let Some(choices) = fields.get("oneOf").or_else(|| fields.get("allOf")).and_then(Value::as_array) {
        out.insert("anyOf".to_owned(), choices_of(choices, root, depth));
    }
    if let Some(value) = fields.get("const").filter(|value| !value.is_null()) {
        out.insert("enum".to_owned(), json!([as_text(value)]));
    }
    if out.contains_key("enum") {
        out.insert("type".to_owned(), json!("string"));
    }
    settle(out)
}

fn choices_of(choices: &[Value], root: &Value, depth: usize) -> Value {
    let is_null = |choice: &&Value| choice.get("type") == Some(&json!("null"));
    choices.iter().filter(|choice| !is_null(choice)).map(|choice| reduced(choice, root, depth)).collect()
}

/// A single alternative is unwrapped, a list gets items, and an object without properties becomes a text for hosts that
/// require names.
fn settle(mut fields: Map<String, Value>) -> Value {
    if let Some(Value::Array(choices)) = fields.get("anyOf")
        && choices.len() < 2
    {
        let only = choices.first().cloned();
        fields.shift_remove("anyOf");
        if let Some(Value::Object(only)) = only {
            for (name, value) in only {
                fields.entry(name).or_insert(value);
            }
        }
    }
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    let has_properties =
        fields.get("properties").and_then(Value::as_object).is_some_and(|named| !named.is_empty());
    match kind {
        "array" if !fields.contains_key("items") => {
            fields.insert("items".to_owned(), json!({ "type": "string" }));
        }
        "object" if !has_properties => {
            fields.insert("type".to_owned(), json!("string"));
            fields.shift_remove("properties");
            fields.shift_remove("required");
        }
        "" if has_properties => drop(fields.insert("type".to_owned(), json!("object"))),
        "" if !fields.contains_key("anyOf") => drop(fields.insert("type".to_owned(), json!("string"))),
        _ => {}
    }
    Value::Object(fields)
}

fn as_text(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        other => json!(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &HostFacts, schema: Value, expected: Value) {
        assert_eq!(conform(Schema::from(schema), host).to_value(), expected);
    }

    fn small() -> HostFacts {
        HostFacts { strict_schemas: true, ..HostFacts::default() }
    }

    fn of(property: Value) -> Value {
        json!({ "type": "object", "properties": { "a": property } })
    }

    #[test]
    fn a_schema_of_the_small_vocabulary_has_no_nulls_numbers_in_enums_or_references() {
        for (property, expected) in [
            (json!({ "type": ["string", "null"] }), json!({ "type": "string" })),
            (json!({ "enum": [1, null, "b"] }), json!({ "enum": ["1", "b"], "type": "string" })),
            (json!({ "const": 5 }), json!({ "enum": ["5"], "type": "string" })),
            (json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }), json!({ "type": "integer" })),
            (json!({ "type": "object" }), json!({ "type": "string" })),
            (json!({ "type": "array" }), json!({ "type": "array", "items": { "type": "string" } })),
            (
                json!({ "type": "array", "items": [{ "type": "integer" }, { "type": "string" }] }),
                json!({ "type": "array", "items": { "type": "integer" } }),
            ),
            (json!(true), json!({ "type": "string" })),
            (json!({ "type": "string", "pattern": "^a", "default": "a" }), json!({ "type": "string" })),
        ] {
            check(&small(), of(property), of(expected));
        }
    }

    #[test]
    fn references_are_written_out_as_deep_as_is_useful() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "$ref": "#/$defs/A", "description": "lost" } },
            "$defs": { "A": { "type": "object", "properties": { "b": { "$ref": "#/$defs/A" } } } },
        });
        let mut shown = conform(Schema::from(schema), &small()).to_value();
        let mut depth = 0;
        while let Some(inner) = shown.get_mut("properties").and_then(|named| {
            let name = if named.get("a").is_some() { "a" } else { "b" };
            named.get_mut(name).map(Value::take)
        }) {
            shown = inner;
            depth += 1;
        }
        assert_eq!((depth, shown), (DEPTH + 1, json!({ "type": "string" })));
    }

    #[test]
    fn a_host_of_single_types_gets_the_first_of_several() {
        let host = HostFacts { single_types: true, ..HostFacts::default() };
        let list = json!({ "type": "array", "items": { "type": ["null", "integer"] } });
        check(&host, of(list), of(json!({ "type": "array", "items": { "type": "integer" } })));
    }

    #[test]
    fn other_hosts_get_the_schema_as_it_is() {
        let schema =
            Schema::from(json!({ "type": "object", "properties": { "a": { "type": ["string", "null"] } } }));
        assert_eq!(conform(schema.clone(), &HostFacts::default()).as_str(), schema.as_str());
    }
}
