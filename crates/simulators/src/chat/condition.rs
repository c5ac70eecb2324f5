//! Conditions on a request, as a profile defines them.

use regex::Regex;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A regular expression in a profile. It matches anywhere unless it has anchors.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// `None` if it does not match; otherwise what its first group holds, if it has one.
    pub(crate) fn captures(&self, text: &str) -> Option<Option<String>> {
        let found = self.0.captures(text)?;
        Some(found.get(1).map(|group| group.as_str().to_owned()))
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Regex::new(&text).map(Pattern).map_err(serde::de::Error::custom)
    }
}

/// A test of the values at some paths of the request. It holds if one of them passes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    at: Places,
    /// Whether it also holds when there is no value.
    #[serde(default)]
    or_absent: bool,
    one_of: Option<Vec<Value>>,
    none_of: Option<Vec<Value>>,
    kind: Option<Kind>,
    above: Option<f64>,
    below: Option<f64>,
    #[serde(default)]
    absent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    List,
}

/// JSON pointers in which `*` is any element of a list: one, or several alternatives.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
struct Places(Vec<String>);

impl TryFrom<Value> for Places {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let places = match value {
            Value::Array(places) => places,
            place => vec![place],
        };
        let pointer = |place: Value| match place {
            Value::String(place) if place.starts_with('/') => Ok(place),
            other => Err(format!("{other} is no pointer into a request")),
        };
        places.into_iter().map(pointer).collect::<Result<_, _>>().map(Self)
    }
}

/// Position at which a condition held.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ConditionMatch {
    /// `messages[1].content`.
    pub(crate) path: String,
    /// The first index of the path.
    pub(crate) index: Option<usize>,
    pub(crate) value: Value,
}

impl Condition {
    /// The first value that passes, or none.
    pub(crate) fn find(&self, body: &Value) -> Option<ConditionMatch> {
        let mut found = Vec::new();
        for place in &self.at.0 {
            let steps: Vec<&str> = place.split('/').skip(1).collect();
            collect(body, &steps, ConditionMatch::default(), &mut found);
        }
        if found.is_empty() && (self.absent || self.or_absent) {
            let path = self.at.0.first().map(|place| place.trim_start_matches('/').replace('/', "."));
            return Some(ConditionMatch { path: path.unwrap_or_default(), ..ConditionMatch::default() });
        }
        found.into_iter().find(|found| !self.absent && self.passes(&found.value))
    }

    fn passes(&self, value: &Value) -> bool {
        let number = value.as_f64();
        let is_one = |values: &Vec<Value>| values.iter().any(|one| same(one, value));
        self.one_of.as_ref().is_none_or(is_one)
            && !self.none_of.as_ref().is_some_and(is_one)
            && self.kind.is_none_or(|Kind::List| value.is_array())
            && self.above.is_none_or(|limit| number.is_some_and(|number| number > limit))
            && self.below.is_none_or(|limit| number.is_some_and(|number| number < limit))
    }
}

/// The match of each condition, if all of them hold.
pub(crate) fn all(conditions: &[Condition], body: &Value) -> Option<Vec<ConditionMatch>> {
    conditions.iter().map(|condition| condition.find(body)).collect()
}

/// The match of the first condition that holds.
pub(crate) fn any(conditions: &[Condition], body: &Value) -> Option<ConditionMatch> {
    conditions.iter().find_map(|condition| condition.find(body))
}

fn collect(value: &Value, steps: &[&str], at: ConditionMatch, found: &mut Vec<ConditionMatch>) {
    let Some((step, rest)) = steps.split_first() else {
        if !value.is_null() {
            found.push(ConditionMatch { value: value.clone(), ..at });
        }
        return;
    };
    match (value, *step) {
        (Value::Array(items), "*") => {
            for (index, item) in items.iter().enumerate() {
                let path = format!("{}[{index}]", at.path);
                let at = ConditionMatch { path, index: at.index.or(Some(index)), value: Value::Null };
                collect(item, rest, at, found);
            }
        }
        (Value::Object(fields), name) => {
            if let Some(field) = fields.get(name) {
                let dot = if at.path.is_empty() { "" } else { "." };
                let path = format!("{}{dot}{name}", at.path);
                collect(field, rest, ConditionMatch { path, ..at }, found);
            }
        }
        _ => {}
    }
}

/// Equality in which 1 equals 1.0.
fn same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(condition: &str, body: &Value, path: Option<&str>) {
        let condition: Condition = toml::from_str(condition).unwrap();
        assert_eq!(condition.find(body).map(|found| found.path).as_deref(), path, "{condition:?}");
    }

    #[test]
    fn a_condition_finds_the_first_value_that_passes() {
        let body = json!({
            "temperature": 1.0,
            "effort": null,
            "messages": [{"content": "a"}, {"content": [{"type": "text"}, {"type": "image_url"}]}],
        });
        for (condition, path) in [
            ("at = '/temperature'", Some("temperature")),
            ("at = '/temperature'\nnone_of = [1]", None),
            ("at = '/temperature'\none_of = [1]", Some("temperature")),
            ("at = '/temperature'\nabove = 0.5", Some("temperature")),
            ("at = '/temperature'\nbelow = 0.5", None),
            ("at = '/effort'", None),
            ("at = ['/stop', '/temperature']", Some("temperature")),
            ("at = '/effort'\nabsent = true", Some("effort")),
            ("at = '/effort'\nnone_of = ['none']\nor_absent = true", Some("effort")),
            ("at = '/messages/*/content'\nkind = 'list'", Some("messages[1].content")),
            (
                "at = '/messages/*/content/*/type'\none_of = ['image_url']",
                Some("messages[1].content[1].type"),
            ),
        ] {
            check(condition, &body, path);
        }
    }
}
