//! Schemas of tools in a form that every vendor accepts. Servers describe their tools by any draft of JSON Schema; vendors
//! refuse a whole request for one schema without an object at its root, with alternatives there, with lists without items, or
//! in words of an old draft.

use serde_json::{Map, Value, json};

/// Keywords at the root that vendors refuse.
const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];
/// Keywords whose value is a schema.
const ONE: [&str; 9] = [
    "items",
    "additionalProperties",
    "not",
    "contains",
    "if",
    "then",
    "else",
    "propertyNames",
    "additionalItems",
];
/// Keywords whose value is a list of schemas.
const SEVERAL: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose value has a schema for each name.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Types of values. Servers also name those of their own languages.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Whether a schema may need another form. A schema that certainly needs none stays the text that it is.
pub(super) fn may_change(text: &str) -> bool {
    let begins_plainly = text.starts_with(r#"{"type":"object""#) || text.starts_with(r#"{"type": "object""#);
    let odd =
        ["\"array\"", "anyOf\"", "oneOf\"", "allOf\"", "\"$schema\"", ":true", ": true", ":false", ": false"];
    let mut types = text.split(r#""type":"#).skip(1).map(str::trim_start);
    let mut has_odd_type = || {
        types.any(|rest| match rest.strip_prefix('"') {
            Some(rest) => !rest.split('"').next().is_some_and(|kind| TYPES.contains(&kind)),
            // A list of types, or a property of that name.
            None => rest.starts_with('['),
        })
    };
    !begins_plainly
        || !text.contains(r#""properties""#)
        || odd.iter().any(|word| text.contains(word))
        || has_odd_type()
}

/// The schema in the form that every vendor accepts.
pub(super) fn portable(whole: &Value) -> Value {
    let mut fields = whole.as_object().cloned().unwrap_or_default();
    root(whole, &mut fields);
    rewrite(&mut fields);
    fields.into()
}

/// Makes the root an object without references and alternatives.
fn root(whole: &Value, fields: &mut Map<String, Value>) {
    // It names a draft that the words below may not be of any more.
    fields.shift_remove("$schema");
    if let Some(target) = fields.shift_remove("$ref")
        && let Some(Value::Object(named)) = resolve(whole, &target)
    {
        for (name, value) in named {
            fields.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    for keyword in ALTERNATIVES {
        let Some(Value::Array(choices)) = fields.shift_remove(keyword) else { continue };
        let choices: Vec<&Map<String, Value>> =
            choices.iter().filter_map(|choice| branch(whole, choice)).collect();
        merge(fields, &choices, keyword == "allOf");
    }
    if fields.get("type") != Some(&json!("object")) {
        // In front, where it is looked for.
        fields.shift_insert(0, "type".to_owned(), json!("object"));
    }
    if !fields.get("properties").is_some_and(Value::is_object) {
        fields.insert("properties".to_owned(), json!({}));
    }
}

/// An alternative, behind its reference.
fn branch<'a>(whole: &'a Value, choice: &'a Value) -> Option<&'a Map<String, Value>> {
    choice.get("$ref").map_or(Some(choice), |target| resolve(whole, target))?.as_object()
}

/// The part of the schema that a reference names.
fn resolve<'a>(whole: &'a Value, target: &Value) -> Option<&'a Value> {
    whole.pointer(target.as_str()?.strip_prefix('#')?)
}

/// Adds the properties of alternatives to the root. Required are those that all of them require, or any of them where all hold.
fn merge(fields: &mut Map<String, Value>, choices: &[&Map<String, Value>], all_hold: bool) {
    let required = |schema: &Map<String, Value>| -> Vec<Value> {
        schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut demanded: Vec<Value> = Vec::new();
    for name in choices.iter().flat_map(|choice| required(choice)) {
        let is_due = all_hold || choices.iter().all(|choice| required(choice).contains(&name));
        if is_due && !demanded.contains(&name) {
            demanded.push(name);
        }
    }
    let mut own = required(fields);
    demanded.retain(|name| !own.contains(name));
    own.append(&mut demanded);
    if !own.is_empty() {
        fields.insert("required".to_owned(), own.into());
    }
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = properties else { return };
    for (name, value) in choices.iter().filter_map(|choice| choice.get("properties")?.as_object()).flatten() {
        properties.entry(name.clone()).or_insert_with(|| value.clone());
    }
}

/// Rewrites a schema and those within it.
fn rewrite(fields: &mut Map<String, Value>) {
    modernise(fields);
    let is_list = |kind: &Value| {
        kind == "array" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("array")))
    };
    if fields.get("type").is_some_and(is_list) && !fields.contains_key("items") {
        fields.insert("items".to_owned(), json!({}));
    }
    for (keyword, value) in fields.iter_mut() {
        let keyword = keyword.as_str();
        match value {
            // `false` says there that nothing else is allowed, which vendors understand.
            Value::Bool(_) if ["additionalProperties", "additionalItems"].contains(&keyword) => {}
            value if ONE.contains(&keyword) => within(value),
            Value::Array(list) if SEVERAL.contains(&keyword) => list.iter_mut().for_each(within),
            Value::Object(named) if NAMED.contains(&keyword) => named.values_mut().for_each(within),
            _ => {}
        }
    }
}

/// Rewrites a schema within another. `true` and `false` are spelled out as anything.
fn within(schema: &mut Value) {
    match schema {
        Value::Object(fields) => rewrite(fields),
        other => *other = json!({}),
    }
}

/// Words of older drafts in those of today, and types that there are.
fn modernise(fields: &mut Map<String, Value>) {
    let is_known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    match fields.get_mut("type") {
        Some(Value::Array(kinds)) if kinds.iter().any(is_known) => kinds.retain(is_known),
        Some(kind) if !is_known(kind) => drop(fields.shift_remove("type")),
        Some(_) | None => {}
    }
    // A list with a schema for each place: any of them may be anywhere.
    if let Some(Value::Array(places)) = fields.get_mut("items") {
        let places = std::mem::take(places);
        fields.insert(
            "items".to_owned(),
            if places.is_empty() { json!({}) } else { json!({ "anyOf": places }) },
        );
    }
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(&Value::Bool(holds)) = fields.get(exclusive) else { continue };
        fields.shift_remove(exclusive);
        if holds && let Some(limit) = fields.shift_remove(bound) {
            fields.insert(exclusive.to_owned(), limit);
        }
    }
    if fields.get("required").is_some_and(|required| !required.is_array()) {
        fields.shift_remove("required");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: Value) {
        assert!(may_change(&schema.to_string()), "{schema}");
        assert_eq!(portable(&schema), expected);
    }

    fn of(property: Value) -> Value {
        json!({ "type": "object", "properties": { "a": property } })
    }

    #[test]
    fn the_root_is_an_object_without_alternatives() {
        check(json!({}), json!({ "type": "object", "properties": {} }));
        check(json!({ "type": "object" }), json!({ "type": "object", "properties": {} }));
        check(json!(true), json!({ "type": "object", "properties": {} }));
        let [a, b] = ["a", "b"]
            .map(|name| json!({ "properties": { name: { "type": "string" } }, "required": [name, "c"] }));
        let properties = json!({ "a": { "type": "string" }, "b": { "type": "string" } });
        check(
            json!({ "anyOf": [a, b] }),
            json!({ "type": "object", "required": ["c"], "properties": properties }),
        );
        check(
            json!({ "type": "object", "required": ["b"], "allOf": [a, { "$ref": "#/$defs/b" }], "$defs": { "b": b } }),
            json!({ "type": "object", "required": ["b", "a", "c"], "$defs": { "b": b }, "properties": properties }),
        );
        let definitions = json!({ "input": { "type": "object", "properties": { "a": {} } } });
        check(
            json!({ "$ref": "#/definitions/input", "definitions": definitions }),
            json!({ "definitions": definitions, "type": "object", "properties": { "a": {} } }),
        );
    }

    #[test]
    fn lists_have_items_and_schemas_are_objects() {
        check(of(json!({ "type": "array" })), of(json!({ "type": "array", "items": {} })));
        check(
            of(json!({ "type": ["array", "null"] })),
            of(json!({ "type": ["array", "null"], "items": {} })),
        );
        let nested = json!({ "type": "array", "items": { "type": "array" } });
        check(of(nested), of(json!({ "type": "array", "items": { "type": "array", "items": {} } })));
        check(of(json!(true)), of(json!({})));
        check(
            of(json!({ "anyOf": [false, { "type": "null" }] })),
            of(json!({ "anyOf": [{}, { "type": "null" }] })),
        );
    }

    #[test]
    fn words_of_old_drafts_are_those_of_today() {
        let pair = json!({ "type": "array", "items": [{ "type": "string" }, { "type": "number" }] });
        let either = json!({ "anyOf": [{ "type": "string" }, { "type": "number" }] });
        check(of(pair), of(json!({ "type": "array", "items": either })));
        let bound = json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true });
        check(of(bound), of(json!({ "type": "number", "exclusiveMinimum": 0 })));
        check(of(json!({ "type": "string", "required": true })), of(json!({ "type": "string" })));
        check(of(json!({ "type": "any", "description": "d" })), of(json!({ "description": "d" })));
        check(of(json!({ "type": ["float", "null"] })), of(json!({ "type": ["null"] })));
        let named = |mut schema: Value| {
            schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
            schema
        };
        check(named(of(json!({}))), of(json!({})));
    }

    #[test]
    fn a_schema_that_every_vendor_accepts_stays_as_it_is() {
        let closed = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": false });
        assert_eq!(portable(&closed), closed);
        assert!(!may_change(&of(json!({ "type": "string" })).to_string()));
    }
}
