//! Defects in the schema of a tool's parameters, and their positions.

use serde_json::{Map, Value};

use crate::chat::rules::SchemaRule;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// A place where a schema breaks a rule that some hosts have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Defect {
    pub(super) rule: SchemaRule,
    pub(super) place: SchemaPath,
    pub(super) value: Value,
    /// The offending keyword of the schema.
    pub(super) keyword: String,
}

/// The path from the root to a part of a schema.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SchemaPath(Vec<SchemaStep>);

#[derive(Debug, Clone, PartialEq)]
enum SchemaStep {
    Word(String),
    /// An entry of a map, with its position.
    Entry(String, usize),
    Item(usize),
}

impl SchemaPath {
    fn then(&self, steps: impl IntoIterator<Item = SchemaStep>) -> Self {
        Self(self.0.iter().cloned().chain(steps).collect())
    }

    /// `properties.color.items`, or `root`.
    pub(super) fn dotted(&self) -> String {
        if self.0.is_empty() {
            return "root".to_owned();
        }
        let steps = self.0.iter().map(|step| match step {
            SchemaStep::Word(word) | SchemaStep::Entry(word, _) => word.clone(),
            SchemaStep::Item(at) => at.to_string(),
        });
        steps.collect::<Vec<_>>().join(".")
    }

    /// `.properties[2].value.items`: how Google's JSON parser names an entry of a map.
    pub(super) fn numbered(&self) -> String {
        self.bracketed(|_, at| format!("[{at}].value"))
    }

    /// `.properties[color].items`: how Google's validation names it.
    pub(super) fn keyed(&self) -> String {
        self.bracketed(|name, _| format!("[{name}]"))
    }

    fn bracketed(&self, entry: impl Fn(&str, usize) -> String) -> String {
        let steps = self.0.iter().map(|step| match step {
            SchemaStep::Word(word) => format!(".{word}"),
            SchemaStep::Entry(name, at) => entry(name, *at),
            SchemaStep::Item(at) => format!("[{at}]"),
        });
        steps.collect()
    }
}

/// All defects, those of the root first.
pub(super) fn defects(schema: &Value) -> Vec<Defect> {
    let mut found = Vec::new();
    if schema["type"] != "object" {
        let value = schema.get("type").cloned().unwrap_or_else(|| "None".into());
        let place = SchemaPath::default();
        found.push(Defect { rule: SchemaRule::ObjectRoot, place, value, keyword: "type".to_owned() });
    }
    if let Some(word) =
        ["oneOf", "anyOf", "allOf", "enum", "not"].iter().find(|word| schema.get(word).is_some())
    {
        let (rule, place) = (SchemaRule::NoRootAlternatives, SchemaPath::default());
        found.push(Defect { rule, place, value: Value::Null, keyword: (*word).to_owned() });
    }
    if schema.get("properties").is_none() {
        let (rule, place) = (SchemaRule::RootProperties, SchemaPath::default());
        found.push(Defect { rule, place, value: Value::Null, keyword: "properties".to_owned() });
    }
    walk(schema, SchemaPath::default(), &mut found);
    found
}

fn walk(schema: &Value, place: SchemaPath, found: &mut Vec<Defect>) {
    let fields = match schema {
        Value::Bool(_) => {
            let value = schema.clone();
            return found.push(Defect { rule: SchemaRule::NoBoolean, place, value, keyword: String::new() });
        }
        Value::Object(fields) => fields,
        _ => return,
    };
    found.extend(own_defects(fields, &place));
    for word in ["properties", "$defs", "definitions"] {
        let entries = fields.get(word).and_then(Value::as_object).into_iter().flat_map(Map::iter);
        for (at, (name, part)) in entries.enumerate() {
            walk(
                part,
                place.then([SchemaStep::Word(word.to_owned()), SchemaStep::Entry(name.clone(), at)]),
                found,
            );
        }
    }
    for word in ["anyOf", "oneOf", "allOf", "items", "prefixItems"] {
        match fields.get(word) {
            Some(Value::Array(parts)) => {
                for (at, part) in parts.iter().enumerate() {
                    walk(part, place.then([SchemaStep::Word(word.to_owned()), SchemaStep::Item(at)]), found);
                }
            }
            Some(part) => walk(part, place.then([SchemaStep::Word(word.to_owned())]), found),
            None => {}
        }
    }
}

fn own_defects(fields: &Map<String, Value>, place: &SchemaPath) -> Vec<Defect> {
    let mut found = Vec::new();
    let mut add = |rule, value: &Value, keyword: &str| {
        found.push(Defect { rule, place: place.clone(), value: value.clone(), keyword: keyword.to_owned() });
    };
    let kind = fields.get("type");
    if let Some(types @ Value::Array(_)) = kind {
        add(SchemaRule::NoTypeList, types, "type");
    }
    if let Some(kind) = kind.filter(|kind| kind.as_str().is_some_and(|kind| !TYPES.contains(&kind))) {
        add(SchemaRule::KnownType, kind, "type");
    }
    let has_items = ["items", "prefixItems"].iter().any(|word| fields.contains_key(*word));
    if kind.is_some_and(|kind| kind == "array") && !has_items {
        add(SchemaRule::ListItems, &Value::Null, "items");
    }
    let values = fields.get("enum").and_then(Value::as_array);
    if let Some(value) = values.into_iter().flatten().find(|value| !value.is_string()) {
        add(SchemaRule::StringEnum, value, "enum");
    }
    let properties = fields.get("properties").and_then(Value::as_object);
    if kind.is_some_and(|kind| kind == "object") && properties.is_none_or(Map::is_empty) {
        add(SchemaRule::NoEmptyObject, &Value::Null, "properties");
    }
    if fields.contains_key("$ref")
        && let Some((sibling, value)) = fields.iter().find(|(name, _)| *name != "$ref")
    {
        add(SchemaRule::LoneRef, value, sibling);
    }
    if let Some(items @ Value::Array(_)) = fields.get("items") {
        add(SchemaRule::NoTupleItems, items, "items");
    }
    if let (Some(kind), Some(word)) =
        (kind, ["anyOf", "oneOf"].into_iter().find(|word| fields.contains_key(*word)))
    {
        add(SchemaRule::NoTypeBesideAnyOf, kind, word);
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, expected: &[(SchemaRule, &str, &str)]) {
        let found = defects(schema);
        let found: Vec<_> = found
            .iter()
            .map(|defect| (defect.rule, defect.place.dotted(), defect.place.numbered()))
            .collect();
        let owned = |(rule, dotted, numbered): &(SchemaRule, &str, &str)| {
            (*rule, (*dotted).to_owned(), (*numbered).to_owned())
        };
        assert_eq!(found, expected.iter().map(owned).collect::<Vec<_>>(), "{schema}");
    }

    #[test]
    fn each_rule_finds_its_defect_where_it_is() {
        use SchemaRule::*;
        check(&json!({"type": "object", "properties": {"a": {"type": "string"}}}), &[]);
        check(&json!({}), &[(ObjectRoot, "root", ""), (RootProperties, "root", "")]);
        check(
            &json!({"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "any"}}}),
            &[
                (ListItems, "properties.a", ".properties[0].value"),
                (KnownType, "properties.b", ".properties[1].value"),
            ],
        );
        check(
            &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": ["x", 1]}, "c": true}}),
            &[
                (StringEnum, "properties.b", ".properties[1].value"),
                (NoBoolean, "properties.c", ".properties[2].value"),
            ],
        );
        check(
            &json!({"type": "object", "properties": {"a": {"type": "array", "items": [{"type": ["string", "null"]}]}}}),
            &[
                (NoTupleItems, "properties.a", ".properties[0].value"),
                (NoTypeList, "properties.a.items.0", ".properties[0].value.items[0]"),
            ],
        );
        check(
            &json!({"type": "object", "anyOf": [{"$ref": "#/$defs/x", "description": "d"}], "$defs": {"x": {"type": "object"}}}),
            &[
                (NoRootAlternatives, "root", ""),
                (RootProperties, "root", ""),
                (NoEmptyObject, "root", ""),
                (NoTypeBesideAnyOf, "root", ""),
                (NoEmptyObject, "$defs.x", ".$defs[0].value"),
                (LoneRef, "anyOf.0", ".anyOf[0]"),
            ],
        );
    }
}
