//! The JSON Schema of `config.toml`, and how checks, edits and forms read it.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::definition::ConfigFile;

/// Words in the name of a key that hold a secret itself, not a reference to one.
const SECRET_KEYS: [&str; 2] = ["api_key", "bearer_token"];

pub(crate) struct Schema(Value);

/// Definition of one setting.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    schema: &'a Schema,
    node: &'a Value,
    /// The node without references.
    resolved: &'a Value,
}

impl Schema {
    pub(crate) fn of_config() -> &'static Self {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| Self(schemars::schema_for!(ConfigFile).to_value()))
    }

    pub(crate) fn as_value(&self) -> &Value {
        &self.0
    }

    pub(crate) fn root(&self) -> Setting<'_> {
        Setting { schema: self, node: &self.0, resolved: &self.0 }
    }

    /// Definition of a setting by its path. `None` if there is no such setting.
    pub(crate) fn setting(&self, path: &[String]) -> Option<Setting<'_>> {
        path.iter().try_fold(self.root(), |setting, key| setting.member(key))
    }

    fn resolve<'a>(&'a self, mut node: &'a Value) -> &'a Value {
        // References of schemas that are made from types have no loops here; the bound is for a faulty one.
        for _ in 0..16 {
            if let Some(name) = node["$ref"].as_str() {
                let name = name.rsplit('/').next().unwrap_or_default();
                node = &self.0["$defs"][name];
            } else if let Some(any) = node["anyOf"].as_array() {
                node = any.iter().find(|node| node["type"] != "null").unwrap_or(&Value::Null);
            } else {
                break;
            }
        }
        node
    }
}

impl<'a> Setting<'a> {
    fn of(schema: &'a Schema, node: &'a Value) -> Self {
        Self { schema, node, resolved: schema.resolve(node) }
    }

    /// Definition of a key of a table, or of an item of a list.
    pub(crate) fn member(&self, key: &str) -> Option<Self> {
        let members = self.resolved["properties"].as_object();
        let named = members.and_then(|members| members.get(key));
        let any = || self.resolved.get("additionalProperties").filter(|any| any.is_object());
        let item = || self.resolved.get("items").filter(|_| key.parse::<usize>().is_ok());
        named.or_else(any).or_else(item).map(|node| Self::of(self.schema, node))
    }

    pub(crate) fn items(&self) -> Option<Self> {
        self.resolved.get("items").map(|node| Self::of(self.schema, node))
    }

    /// Names of the keys of a table.
    pub(crate) fn keys(&self) -> Vec<&'a str> {
        let members = self.resolved["properties"].as_object();
        members
            .map(|members: &Map<String, Value>| members.keys().map(String::as_str).collect())
            .unwrap_or_default()
    }

    /// Whether a table has keys of any name, which the user chooses.
    pub(crate) fn is_open(&self) -> bool {
        self.resolved.get("additionalProperties").is_some_and(Value::is_object)
    }

    /// Whether it is a table whose keys are all known.
    pub(crate) fn is_closed(&self) -> bool {
        self.resolved["additionalProperties"] == false
    }

    pub(crate) fn required(&self) -> Vec<&'a str> {
        let required = self.resolved["required"].as_array();
        required.map(|keys| keys.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
    }

    /// Types that a value may have, by the names of JSON Schema. Empty is any.
    pub(crate) fn types(&self) -> Vec<&'a str> {
        match &self.resolved["type"] {
            Value::String(one) => vec![one],
            Value::Array(some) => {
                some.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect()
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.types().contains(&kind)
    }

    /// The only values that are allowed, if they are listed.
    pub(crate) fn allowed(&self) -> Vec<&'a str> {
        let listed = self.node["enum"].as_array().or_else(|| self.resolved["enum"].as_array());
        if let Some(listed) = listed {
            return listed.iter().filter_map(Value::as_str).collect();
        }
        let documented = self.resolved["oneOf"].as_array();
        documented
            .map(|each| each.iter().filter_map(|one| one["const"].as_str()).collect())
            .unwrap_or_default()
    }

    /// Smallest and largest number; whether the smallest itself is excluded.
    pub(crate) fn range(&self) -> (Option<f64>, Option<f64>, bool) {
        let number = |key: &str| self.node[key].as_f64().or_else(|| self.resolved[key].as_f64());
        let above = number("exclusiveMinimum");
        (above.or_else(|| number("minimum")), number("maximum"), above.is_some())
    }

    pub(crate) fn description(&self) -> Option<&'a str> {
        self.node["description"].as_str().or_else(|| self.resolved["description"].as_str())
    }

    /// The type in words.
    pub(crate) fn kind(&self) -> String {
        let allowed = self.allowed();
        if !allowed.is_empty() {
            return format!("one of {}", allowed.join(", "));
        }
        let words = self.types().into_iter().map(|kind| match kind {
            "string" => "a text".to_owned(),
            "integer" => "a whole number".to_owned(),
            "number" => "a number".to_owned(),
            "boolean" => "true or false".to_owned(),
            "array" => match self.items() {
                Some(items) if items.is("object") => "a list of tables".to_owned(),
                _ => "a list".to_owned(),
            },
            "object" => "a table".to_owned(),
            other => other.to_owned(),
        });
        let words: Vec<String> = words.collect();
        let range = match self.range() {
            (Some(least), Some(most), _) => format!(" from {least} to {most}"),
            (Some(least), None, true) => format!(" above {least}"),
            (Some(least), None, false) if least != 0.0 => format!(" from {least} on"),
            _ => String::new(),
        };
        if words.is_empty() { "any value".to_owned() } else { words.join(" or ") + &range }
    }
}

/// Whether a key holds a secret itself, so that its value is never shown.
pub(crate) fn is_secret(path: &[String]) -> bool {
    let last = path.last().map(String::as_str).unwrap_or_default();
    let in_variables = path.iter().any(|key| key == "env" || key == "headers");
    SECRET_KEYS.contains(&last) || (in_variables && crate::credentials::is_secret_name(last))
}
