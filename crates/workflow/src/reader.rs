//! Reads single settings: from a variable that replaces them, from the file, or by default.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::environment::WorkflowEnvironment;
use crate::keys;
use crate::problem::{FilePosition, Problem, check};
use crate::yaml::{Node, Yaml};

/// Reader of a front matter, with the problems that it has met.
pub(crate) struct Reader<'a> {
    pub(crate) root: Option<&'a Node>,
    pub(crate) environment: &'a WorkflowEnvironment,
    /// Directory of the workflow file.
    pub(crate) base: &'a Path,
    pub(crate) problems: Vec<Problem>,
}

/// Value of a setting before it has a type.
enum Raw<'a> {
    Variable { name: String, value: &'a str },
    File(&'a Node),
}

impl<'a> Reader<'a> {
    fn node(&self, path: &str) -> Option<&'a Node> {
        let found = path.split('.').try_fold(self.root?, |node, name| node.get(name));
        found.filter(|node| !matches!(node.value, Yaml::Null))
    }

    fn raw(&self, path: &str) -> Option<Raw<'a>> {
        let replaced = keys::variable_of(path).and_then(|name| {
            let value = self.environment.override_of(&name)?;
            Some(Raw::Variable { name, value })
        });
        replaced.or_else(|| self.node(path).map(Raw::File))
    }

    /// Position of a setting, of its block, or of the file.
    pub(crate) fn position(&self, path: &str) -> FilePosition {
        let mut at = FilePosition::START;
        let Some(mut node) = self.root else { return at };
        for name in path.split('.') {
            if let Some(key) = node.key(name) {
                at = key.at;
            }
            match node.get(name) {
                Some(next) => node = next,
                None => return at,
            }
        }
        at
    }

    pub(crate) fn error(&mut self, path: &str, message: impl Into<String>) {
        let at = self.position(path);
        self.problems.push(Problem::error(path, at, message));
    }

    fn mistyped(&mut self, path: &str, wanted: &str, raw: &Raw<'_>) {
        let (at, message) = match raw {
            Raw::Variable { name, value } => {
                (FilePosition::START, format!("`{name}` must be {wanted}, not `{value}`"))
            }
            Raw::File(node) => (node.at, format!("`{path}` must be {wanted}, not {}", node.kind())),
        };
        self.problems.push(Problem::error(check::TYPE, at, message));
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.raw(path).is_some()
    }

    /// Text without any replacement.
    fn literal(&mut self, path: &str) -> Option<(String, bool)> {
        let raw = self.raw(path)?;
        match &raw {
            Raw::Variable { value, .. } => Some(((*value).to_owned(), true)),
            Raw::File(node) => match &node.value {
                Yaml::Text(text) => Some((text.clone(), false)),
                Yaml::Int(number) => Some((number.to_string(), false)),
                Yaml::Float(number) => Some((number.to_string(), false)),
                Yaml::Null | Yaml::Bool(_) | Yaml::List(_) | Yaml::Map(_) => {
                    self.mistyped(path, "a string", &raw);
                    None
                }
            },
        }
    }

    /// Text in which a leading `$NAME` is replaced. Values of variables are taken as they are.
    pub(crate) fn text(&mut self, path: &str) -> Option<String> {
        let (text, replaced) = self.literal(path)?;
        let text = if !replaced && text.starts_with('$') { self.environment.expand(&text) } else { text };
        Some(text).filter(|text| !text.is_empty())
    }

    /// Text in which every `$NAME` is replaced.
    pub(crate) fn expanded(&mut self, path: &str) -> Option<String> {
        let (text, replaced) = self.literal(path)?;
        let text = if replaced { text } else { self.environment.expand(&text) };
        Some(text).filter(|text| !text.is_empty())
    }

    /// A script: nothing in it is ours to replace.
    pub(crate) fn script(&mut self, path: &str) -> Option<String> {
        self.literal(path).map(|(text, _)| text).filter(|text| !text.trim().is_empty())
    }

    pub(crate) fn path(&mut self, path: &str) -> Option<PathBuf> {
        let (text, replaced) = self.literal(path)?;
        if replaced {
            return Some(self.base.join(text));
        }
        let found = self.environment.path(&text, self.base);
        // A variable that is not set leaves nothing to work in.
        Some(found).filter(|found| !text.starts_with('$') || found != self.base)
    }

    pub(crate) fn boolean(&mut self, path: &str) -> Option<bool> {
        let raw = self.raw(path)?;
        let value = match &raw {
            Raw::Variable { value, .. } => match *value {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
            Raw::File(Node { value: Yaml::Bool(value), .. }) => Some(*value),
            Raw::File(_) => None,
        };
        if value.is_none() {
            self.mistyped(path, "true or false", &raw);
        }
        value
    }

    pub(crate) fn integer(&mut self, path: &str) -> Option<i64> {
        let raw = self.raw(path)?;
        let value = match &raw {
            Raw::Variable { value, .. } => value.parse().ok(),
            Raw::File(Node { value: Yaml::Int(value), .. }) => Some(*value),
            Raw::File(Node { value: Yaml::Text(text), .. }) => {
                let text = self.environment.expand(text);
                text.parse().ok()
            }
            Raw::File(_) => None,
        };
        if value.is_none() {
            self.mistyped(path, "an integer", &raw);
        }
        value
    }

    /// A number of things. One below `least` is an error.
    pub(crate) fn count(&mut self, path: &str, least: u32, default: u32) -> u32 {
        let Some(value) = self.integer(path) else { return default };
        match u32::try_from(value) {
            Ok(value) if value >= least => value,
            _ => {
                self.error(path, format!("`{path}` must be at least {least}, not {value}"));
                default
            }
        }
    }

    /// Milliseconds that must be more than none.
    pub(crate) fn milliseconds(&mut self, path: &str, default: Duration) -> Duration {
        let Some(value) = self.integer(path) else { return default };
        match u64::try_from(value) {
            Ok(value @ 1..) => Duration::from_millis(value),
            _ => {
                self.error(path, format!("`{path}` must be more than 0, not {value}"));
                default
            }
        }
    }

    /// Milliseconds; none and less switch the limit off.
    pub(crate) fn limit(&mut self, path: &str, default: Duration) -> Option<Duration> {
        match self.integer(path) {
            None => Some(default),
            Some(value) => u64::try_from(value).ok().filter(|value| *value > 0).map(Duration::from_millis),
        }
    }

    pub(crate) fn list(&mut self, path: &str) -> Option<Vec<String>> {
        let raw = self.raw(path)?;
        match &raw {
            Raw::Variable { value, .. } => Some(comma_separated(value)),
            Raw::File(Node { value: Yaml::List(items), .. }) => {
                let mut all = Vec::new();
                for item in items {
                    match &item.value {
                        Yaml::Text(text) => all.push(text.trim().to_owned()),
                        Yaml::Int(number) => all.push(number.to_string()),
                        Yaml::Null | Yaml::Bool(_) | Yaml::Float(_) | Yaml::List(_) | Yaml::Map(_) => {
                            self.mistyped(path, "a list of strings", &Raw::File(item));
                        }
                    }
                }
                Some(all)
            }
            Raw::File(Node { value: Yaml::Text(text), .. }) => {
                let text = if text.starts_with('$') { self.environment.expand(text) } else { text.clone() };
                Some(comma_separated(&text))
            }
            Raw::File(_) => {
                self.mistyped(path, "a list", &raw);
                None
            }
        }
    }

    /// Entries of a map of the file.
    pub(crate) fn entries(&mut self, path: &str) -> &'a [(crate::yaml::Key, Node)] {
        let Some(node) = self.node(path) else { return &[] };
        if !matches!(node.value, Yaml::Map(_)) {
            self.mistyped(path, "a map", &Raw::File(node));
        }
        node.entries()
    }

    /// Items of a list of the file.
    pub(crate) fn items(&mut self, path: &str) -> &'a [Node] {
        let Some(node) = self.node(path) else { return &[] };
        match &node.value {
            Yaml::List(items) => items,
            _ => {
                self.mistyped(path, "a list", &Raw::File(node));
                &[]
            }
        }
    }

    /// An error at a place that the caller knows.
    pub(crate) fn wrong(&mut self, at: FilePosition, message: String) {
        self.problems.push(Problem::error(check::TYPE, at, message));
    }

    /// A block as JSON, with a leading `$NAME` replaced in its texts.
    pub(crate) fn block(&self, path: &str) -> Map<String, Value> {
        match self.node(path).map(Node::json) {
            Some(mut value @ Value::Object(_)) => {
                self.expand(&mut value);
                match value {
                    Value::Object(map) => map,
                    _ => Map::new(),
                }
            }
            _ => Map::new(),
        }
    }

    fn expand(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.starts_with('$') => *text = self.environment.expand(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.expand(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.expand(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// A value of a fixed set.
    pub(crate) fn choice(&mut self, path: &str, known: &[&str], default: &str) -> String {
        let Some(text) = self.text(path) else { return default.to_owned() };
        if !known.contains(&text.as_str()) {
            self.error(path, format!("`{path}` is one of {}, not `{text}`", known.join(", ")));
            return default.to_owned();
        }
        text
    }
}

fn comma_separated(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
