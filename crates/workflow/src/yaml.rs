//! YAML with positions: a tree of values that know where they were written.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use crate::problem::{FilePosition, Problem, check};

/// A value and its position in the file.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) at: FilePosition,
    pub(crate) value: Yaml,
}

#[derive(Debug, Clone)]
pub(crate) enum Yaml {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) at: FilePosition,
}

/// Parses the front matter. `None` if it is empty.
pub(crate) fn parse(yaml: &str, offset: usize) -> Result<Option<Node>, Problem> {
    if yaml.trim().is_empty() {
        return Ok(None);
    }
    let options = serde_saphyr::options! { strict_booleans: true };
    let parsed: Result<Parsed, _> = serde_saphyr::from_str_with_options(yaml, options);
    match parsed {
        Ok(parsed) => Ok(Some(node(parsed.0, offset))),
        Err(error) => {
            let at = error.location().map_or(FilePosition::line(1), |location| FilePosition {
                line: location.line() as usize,
                column: location.column() as usize,
            });
            let text = error.to_string();
            let message = text.lines().next().unwrap_or("it is no YAML").to_owned();
            let at = FilePosition { line: at.line + offset, ..at };
            Err(Problem::error(check::PARSE, at, format!("the front matter is no valid YAML: {message}")))
        }
    }
}

/// Shape in which the library gives values with positions.
struct Parsed(Spanned<Raw>);

enum Raw {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Parsed>),
    Map(Vec<(Spanned<String>, Parsed)>),
}

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Parsed)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(i64::try_from(value).map_or(Raw::Float(value as f64), Raw::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Raw::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            all.push(entry);
        }
        Ok(Raw::Map(all))
    }
}

fn position<T>(spanned: &Spanned<T>, offset: usize) -> FilePosition {
    let at = spanned.referenced;
    FilePosition { line: (at.line() as usize).max(1) + offset, column: (at.column() as usize).max(1) }
}

fn node(parsed: Spanned<Raw>, offset: usize) -> Node {
    let at = position(&parsed, offset);
    let value = match parsed.value {
        Raw::Null => Yaml::Null,
        Raw::Bool(value) => Yaml::Bool(value),
        Raw::Int(value) => Yaml::Int(value),
        Raw::Float(value) => Yaml::Float(value),
        Raw::Text(value) => Yaml::Text(value),
        Raw::List(items) => Yaml::List(items.into_iter().map(|item| node(item.0, offset)).collect()),
        Raw::Map(entries) => {
            let entries = entries.into_iter().map(|(key, value)| {
                let at = position(&key, offset);
                (Key { name: key.value, at }, node(value.0, offset))
            });
            Yaml::Map(entries.collect())
        }
    };
    Node { at, value }
}

impl Node {
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entries().iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    pub(crate) fn key(&self, name: &str) -> Option<&Key> {
        self.entries().iter().find(|(key, _)| key.name == name).map(|(key, _)| key)
    }

    pub(crate) fn entries(&self) -> &[(Key, Node)] {
        match &self.value {
            Yaml::Map(entries) => entries,
            Yaml::Null | Yaml::Bool(_) | Yaml::Int(_) | Yaml::Float(_) | Yaml::Text(_) | Yaml::List(_) => &[],
        }
    }

    /// Name of the type, for sentences.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Yaml::Null => "null",
            Yaml::Bool(_) => "a boolean",
            Yaml::Int(_) => "an integer",
            Yaml::Float(_) => "a number",
            Yaml::Text(_) => "a string",
            Yaml::List(_) => "a list",
            Yaml::Map(_) => "a map",
        }
    }

    /// The value without positions.
    pub(crate) fn json(&self) -> Value {
        match &self.value {
            Yaml::Null => Value::Null,
            Yaml::Bool(value) => Value::Bool(*value),
            Yaml::Int(value) => Value::from(*value),
            Yaml::Float(value) => Value::from(*value),
            Yaml::Text(value) => Value::String(value.clone()),
            Yaml::List(items) => Value::Array(items.iter().map(Node::json).collect()),
            Yaml::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.name.clone(), value.json()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_lines() {
        let tree = parse("a:\n  b: 1\n  c: [x, y]\nd: |\n  text\n", 1).unwrap().unwrap();
        let a = tree.get("a").unwrap();
        assert_eq!(a.key("b").unwrap().at.line, 3);
        assert_eq!(a.get("c").unwrap().at.line, 4);
        assert_eq!(tree.key("d").unwrap().at.line, 5);
        assert_eq!(tree.json(), serde_json::json!({"a": {"b": 1, "c": ["x", "y"]}, "d": "text\n"}));
    }

    #[test]
    fn broken_yaml_is_an_error_with_its_line() {
        let problem = parse("a: 1\nb: [1\nc: 2\n", 1).unwrap_err();
        assert_eq!(problem.check, check::PARSE);
        assert!((3..=5).contains(&problem.at.line), "{problem}");
    }

    #[test]
    fn words_are_text_unless_they_are_booleans() {
        let tree = parse("a: yes\nb: true\nc: ~\nd: 1.5\ne: 'true'\n", 0).unwrap().unwrap();
        assert_eq!(tree.json(), serde_json::json!({"a": "yes", "b": true, "c": null, "d": 1.5, "e": "true"}));
    }
}
