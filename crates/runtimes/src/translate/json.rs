//! Reading JSON of others with tolerance: a member that is missing or of another type is simply not there.

use serde_json::Value;

pub(super) fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    at(value, path).and_then(Value::as_str)
}

pub(super) fn owned(value: &Value, path: &str) -> Option<String> {
    text(value, path).map(str::to_owned)
}

pub(super) fn count(value: &Value, path: &str) -> Option<u64> {
    let value = at(value, path)?;
    value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}

pub(super) fn flag(value: &Value, path: &str) -> Option<bool> {
    at(value, path).and_then(Value::as_bool)
}

pub(super) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Members by name, separated by dots.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

/// A result in the shapes that models are given: text, or a list of parts of which some are text.
pub(super) fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let parts: Vec<&str> = parts.iter().filter_map(|part| text(part, "text")).collect();
            parts.join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
