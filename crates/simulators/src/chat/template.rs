//! Texts and JSON of a profile with placeholders: `{name}` inside a text, `"$name"` as a whole JSON value.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Values by the names that a template may use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vars(BTreeMap<String, Value>);

impl Vars {
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Adds the values of `others`, which win.
    pub(crate) fn extend(&mut self, others: impl IntoIterator<Item = (String, Value)>) {
        self.0.extend(others);
    }

    pub(crate) fn join(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The text with every known `{name}` replaced. Other braces stay: vendors write them too.
    pub(crate) fn text(&self, template: &str) -> String {
        let mut out = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            out.push_str(&rest[..open]);
            let behind = &rest[open + 1..];
            let known = behind.find('}').and_then(|close| Some((close, self.0.get(&behind[..close])?)));
            rest = match known {
                Some((close, value)) => {
                    out.push_str(&plain(value));
                    &behind[close + 1..]
                }
                None => {
                    out.push('{');
                    behind
                }
            };
        }
        out.push_str(rest);
        out
    }

    /// The JSON with its placeholders filled. `"$name"` is null where the name is unknown; a field that is `"$name?"`
    /// is omitted then.
    pub(crate) fn json(&self, template: &Value) -> Value {
        self.fill(template).unwrap_or(Value::Null)
    }

    fn fill(&self, template: &Value) -> Option<Value> {
        Some(match template {
            Value::String(text) => match text.strip_prefix('$') {
                Some(name) => match name.strip_suffix('?') {
                    Some(name) => self.0.get(name).filter(|value| !value.is_null())?.clone(),
                    None => self.0.get(name).cloned().unwrap_or(Value::Null),
                },
                None => Value::String(self.text(text)),
            },
            Value::Array(items) => items.iter().filter_map(|item| self.fill(item)).collect(),
            Value::Object(fields) => {
                let fields =
                    fields.iter().filter_map(|(name, field)| Some((self.text(name), self.fill(field)?)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            other => other.clone(),
        })
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// JSON that a profile writes as a text, because TOML has no null.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TemplateJson(pub(crate) Value);

impl<'de> Deserialize<'de> for TemplateJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        serde_json::from_str(&text).map(TemplateJson).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn vars() -> Vars {
        Vars::default().with("model", "gpt-5").with("tokens", 7).with("none", Value::Null)
    }

    #[test]
    fn a_text_takes_known_names_and_keeps_other_braces() {
        for (template, text) in [
            ("model {model} has {tokens}", "model gpt-5 has 7"),
            ("{}{model}{other}", "{}gpt-5{other}"),
            ("{ {model", "{ {model"),
        ] {
            assert_eq!(vars().text(template), text);
        }
    }

    #[test]
    fn a_place_in_json_keeps_the_type_of_its_value() {
        for (template, filled) in [
            (json!({"n": "$tokens", "m": "{model}!"}), json!({"n": 7, "m": "gpt-5!"})),
            (json!({"a": "$missing", "b": "$missing?", "c": "$none?"}), json!({"a": null})),
            (json!([{"x": ["$tokens", "$missing?"]}]), json!([{"x": [7]}])),
        ] {
            assert_eq!(vars().json(&template), filled);
        }
    }
}
