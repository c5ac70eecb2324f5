//! Values of templates: what is true, how they are printed and compared.

use std::cmp::Ordering;

use serde_json::Value;

use super::Language;

impl Language {
    /// Whether a condition holds. In Go, an empty value does not; in Liquid, only `nil` and `false` do not.
    pub(super) fn is_true(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null | Value::Bool(false)) => false,
            (Language::Liquid, _) => true,
            (Language::Go, Value::Bool(true)) => true,
            (Language::Go, Value::Number(number)) => number.as_f64() != Some(0.0),
            (Language::Go, Value::String(text)) => !text.is_empty(),
            (Language::Go, Value::Array(items)) => !items.is_empty(),
            (Language::Go, Value::Object(map)) => !map.is_empty(),
        }
    }

    pub(super) fn print(self, value: &Value) -> String {
        match (self, value) {
            (_, Value::Null) => String::new(),
            (_, Value::Bool(value)) => value.to_string(),
            (_, Value::Number(value)) => value.to_string(),
            (_, Value::String(text)) => text.clone(),
            (Language::Go, Value::Array(items)) => {
                let items: Vec<String> = items.iter().map(|item| self.print(item)).collect();
                format!("[{}]", items.join(" "))
            }
            (Language::Liquid, Value::Array(items)) => items.iter().map(|item| self.print(item)).collect(),
            (Language::Go, Value::Object(map)) => {
                let entries: Vec<String> =
                    map.iter().map(|(key, value)| format!("{key}:{}", self.print(value))).collect();
                format!("map[{}]", entries.join(" "))
            }
            (Language::Liquid, Value::Object(_)) => value.to_string(),
        }
    }
}

pub(super) fn is_equal(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b) == Ordering::Equal,
        _ => a == b,
    }
}

/// Order of two numbers or two texts. Others have none.
pub(super) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(a.as_f64()?.total_cmp(&b.as_f64()?)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

pub(super) fn length(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Object(map) => Some(map.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Integers stay integers.
pub(super) fn number(value: f64) -> Value {
    match value.fract() == 0.0 && value.abs() < 9e15 {
        true => Value::from(value as i64),
        false => Value::from(value),
    }
}
