//! Reading a call's arguments: typed values, or one answer that names everything wrong with them.
//!
//! Models slip in a few common ways (a number in quotes, one path instead of a list of them, `null` for "not given");
//! where the meaning is plain, it is taken.

use hangar_agent::tool::{ToolInput, ToolOutcome};
use serde_json::{Map, Value};

use crate::answer;

/// Numbers further from zero than this are no line numbers, lengths or counts; it keeps sums from overflowing.
const INTEGER_LIMIT: f64 = 1e15;

/// The arguments being read. Each reading that fails leaves a stand-in value and a note of the problem.
pub(crate) struct Arguments<'a> {
    object: &'a Map<String, Value>,
    problems: Vec<Problem>,
}

struct Problem {
    /// `view_range.0`
    place: String,
    what: String,
}

/// A closed set of words an argument can be.
pub(crate) trait Word: Sized {
    fn parse(text: &str) -> Option<Self>;
}

/// Reads all arguments with `read`. The stand-ins are never seen: one problem makes the whole an `Err`.
pub(crate) fn read<T>(
    call: &ToolInput,
    read: impl FnOnce(&mut Arguments<'_>) -> T,
) -> Result<T, ToolOutcome> {
    let nothing = Map::new();
    let object = match &call.arguments {
        Value::Object(object) => object,
        // A call without arguments: what is missing is then said by name.
        Value::Null => &nothing,
        other => return Err(invalid(&format!("Expected object, received {}", kind(other)))),
    };
    let mut arguments = Arguments { object, problems: Vec::new() };
    let value = read(&mut arguments);
    match arguments.problems.as_slice() {
        [] => Ok(value),
        [problem] => Err(invalid(&problem.line())),
        problems => {
            let lines: Vec<String> = problems.iter().map(|problem| format!("- {}", problem.line())).collect();
            Err(invalid(&format!("Multiple validation errors:\n{}", lines.join("\n"))))
        }
    }
}

fn invalid(message: &str) -> ToolOutcome {
    answer::failed(message, format!("Invalid input: {message}"))
}

impl Problem {
    fn line(&self) -> String {
        format!("\"{}\": {}", self.place, self.what)
    }
}

impl<'a> Arguments<'a> {
    pub(crate) fn required_text(&mut self, name: &str) -> String {
        match self.object.get(name) {
            None => {
                self.problem(name, "Required".to_owned());
                String::new()
            }
            // Unlike for an optional argument, `null` cannot be read as "not given".
            Some(value) => self.text(name, value),
        }
    }

    pub(crate) fn optional_text(&mut self, name: &str) -> Option<String> {
        let value = self.given(name)?;
        Some(self.text(name, value))
    }

    pub(crate) fn flag(&mut self, name: &str) -> bool {
        self.optional_flag(name).unwrap_or(false)
    }

    pub(crate) fn optional_flag(&mut self, name: &str) -> Option<bool> {
        match self.given(name)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) if text == "true" => Some(true),
            Value::String(text) if text == "false" => Some(false),
            other => {
                self.expected(name, "boolean", other);
                None
            }
        }
    }

    pub(crate) fn integer(&mut self, name: &str) -> Option<i64> {
        let value = self.given(name)?;
        Some(self.whole_number(name, value))
    }

    /// A count that cannot be below `least`.
    pub(crate) fn count(&mut self, name: &str, least: usize) -> Option<usize> {
        let number = self.integer(name)?;
        match usize::try_from(number) {
            Ok(count) if count >= least => Some(count),
            _ => {
                self.problem(name, format!("Must be greater than or equal to {least}"));
                None
            }
        }
    }

    pub(crate) fn integers(&mut self, name: &str) -> Option<Vec<i64>> {
        let value = self.given(name)?;
        // A list in quotes.
        let unquoted = match value {
            Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_array),
            _ => None,
        };
        match unquoted.as_ref().unwrap_or(value) {
            Value::Array(items) => Some(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.whole_number(&format!("{name}.{index}"), item))
                    .collect(),
            ),
            other => {
                self.expected(name, "array", other);
                None
            }
        }
    }

    /// A list of texts, or one text alone. `alias` is another name for the same argument.
    pub(crate) fn texts(&mut self, name: &str, alias: &str) -> Vec<String> {
        let (name, value) = match (self.given(name), self.given(alias)) {
            (Some(value), _) => (name, value),
            (None, Some(value)) => (alias, value),
            (None, None) => return Vec::new(),
        };
        match value {
            Value::String(text) => vec![text.clone()],
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| self.text(&format!("{name}.{index}"), item))
                .collect(),
            other => {
                self.expected(name, "array", other);
                Vec::new()
            }
        }
    }

    pub(crate) fn word<W: Word>(&mut self, name: &str) -> Option<W> {
        let text = self.optional_text(name)?;
        let word = W::parse(&text);
        if word.is_none() {
            self.problem(name, "Invalid enum value".to_owned());
        }
        word
    }

    fn given(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, place: &str, value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            other => {
                self.expected(place, "string", other);
                String::new()
            }
        }
    }

    fn whole_number(&mut self, place: &str, value: &Value) -> i64 {
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if number.fract() == 0.0 && number.abs() <= INTEGER_LIMIT => number as i64,
            Some(_) => {
                self.problem(place, "Expected integer, received float".to_owned());
                0
            }
            None => {
                self.expected(place, "number", value);
                0
            }
        }
    }

    fn expected(&mut self, place: &str, kind_expected: &str, value: &Value) {
        self.problem(place, format!("Expected {kind_expected}, received {}", kind(value)));
    }

    fn problem(&mut self, place: &str, what: String) {
        self.problems.push(Problem { place: place.to_owned(), what });
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use hangar_protocol::data::ToolType;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Read {
        path: String,
        lines: Option<Vec<i64>>,
        force: bool,
        after: Option<usize>,
        paths: Vec<String>,
    }

    fn read_all(arguments: Value) -> Result<Read, ToolOutcome> {
        let call = ToolInput { call_id: "c".to_owned(), kind: ToolType::Function, arguments };
        read(&call, |a| Read {
            path: a.required_text("path"),
            lines: a.integers("lines"),
            force: a.flag("force"),
            after: a.count("after", 1),
            paths: a.texts("paths", "where"),
        })
    }

    fn check(arguments: Value, expected: &str) {
        let outcome = read_all(arguments).expect_err("arguments were accepted");
        assert_eq!(outcome.error.as_deref(), Some(expected));
        assert_eq!(outcome.text, format!("Invalid input: {expected}"));
    }

    #[test]
    fn one_problem_is_one_line() {
        check(json!({}), "\"path\": Required");
        check(Value::Null, "\"path\": Required");
        check(json!({"path": null}), "\"path\": Expected string, received null");
        check(json!({"path": 5}), "\"path\": Expected string, received number");
        check(json!({"path": "a", "lines": "x"}), "\"lines\": Expected array, received string");
        check(json!({"path": "a", "lines": [1.5]}), "\"lines.0\": Expected integer, received float");
        check(json!({"path": "a", "lines": [1e300]}), "\"lines.0\": Expected integer, received float");
        check(json!({"path": "a", "after": 0}), "\"after\": Must be greater than or equal to 1");
        check(json!({"path": "a", "paths": {}}), "\"paths\": Expected array, received object");
        check(json!([1]), "Expected object, received array");
    }

    #[test]
    fn several_problems_are_all_named() {
        check(
            json!({"path": true, "lines": {}, "force": "yes", "paths": ["a", 1]}),
            "Multiple validation errors:\n\
             - \"path\": Expected string, received boolean\n\
             - \"lines\": Expected array, received object\n\
             - \"force\": Expected boolean, received string\n\
             - \"paths.1\": Expected string, received number",
        );
    }

    #[test]
    fn plain_slips_are_understood() {
        let read = read_all(json!({
            "path": "a", "lines": "[1, 2]", "force": "true", "after": "3", "where": "src", "unknown": 1
        }));
        let expected = Read {
            path: "a".to_owned(),
            lines: Some(vec![1, 2]),
            force: true,
            after: Some(3),
            paths: vec!["src".to_owned()],
        };
        assert_eq!(read, Ok(expected));
        let read = read_all(json!({"path": "a", "lines": null, "force": null, "paths": null})).unwrap();
        assert_eq!((read.lines, read.force, read.paths), (None, false, Vec::new()));
    }
}
