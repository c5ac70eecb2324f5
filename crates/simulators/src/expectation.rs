//! Expectations of a scenario about a request.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::usage::Usage;

/// Expectations about one request. Fields are JSON pointers into its body.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    pub present: Vec<String>,
    pub absent: Vec<String>,
    pub equal: BTreeMap<String, Value>,
    /// Whether the vendor may drop thinking of the continuing turn.
    pub drops: bool,
    /// Least share of its tokens that come from the cache.
    pub cached: Option<f64>,
}

impl Expectation {
    /// The failed expectations, as sentences.
    pub(crate) fn unmet(&self, body: &Value, usage: Option<&Usage>) -> Vec<String> {
        let mut unmet = Vec::new();
        for field in self.present.iter().filter(|field| body.pointer(field).is_none()) {
            unmet.push(format!("`{field}` is missing"));
        }
        for field in &self.absent {
            if let Some(value) = body.pointer(field) {
                unmet.push(format!("`{field}` is {value} and should be absent"));
            }
        }
        for (field, expected) in &self.equal {
            let found = body.pointer(field).unwrap_or(&Value::Null);
            if found != expected {
                unmet.push(format!("`{field}` is {found} and should be {expected}"));
            }
        }
        if let (Some(least), Some(usage)) = (self.cached, usage)
            && usage.hit_ratio() < least
        {
            let Usage { cache_read, input, .. } = usage;
            unmet.push(format!("{cache_read} of {input} tokens came from the cache, less than {least}"));
        }
        unmet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(expectation: &str, expected: &[&str]) {
        let expectation: Expectation = toml::from_str(expectation).unwrap();
        let usage = Usage { input: 100, cache_read: 50, ..Usage::default() };
        assert_eq!(expectation.unmet(&json!({"a": {"b": 1}}), Some(&usage)), expected);
    }

    #[test]
    fn claims_that_do_not_hold_are_told() {
        check("present = ['/a/b']\nabsent = ['/c']\nequal = { '/a/b' = 1 }\ncached = 0.5", &[]);
        check("present = ['/c']", &["`/c` is missing"]);
        check("absent = ['/a/b']", &["`/a/b` is 1 and should be absent"]);
        check("equal = { '/a/b' = 2 }", &["`/a/b` is 1 and should be 2"]);
        check("cached = 0.8", &["50 of 100 tokens came from the cache, less than 0.8"]);
    }
}
