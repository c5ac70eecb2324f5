//! Paths of errors in JSON documents (`tools[1].name`), computed from the position that an error has anyway.
//! `serde_path_to_error` would instantiate every type once more, which is a megabyte of program.

use std::fmt::Write as _;

use serde_json::Error;

/// Maximum number of steps of a path that are shown.
const MAX_PATH: usize = 256;

/// One step of a path: a member or an index.
enum JsonStep {
    Member(String),
    Item(usize),
}

/// Path of the member that an error is about, as `tools[1].name`; `None` if it is about the whole document or not
/// known.
pub fn error_path(text: &str, error: &Error) -> Option<String> {
    let line_start = match error.line() {
        0 => return None,
        1 => 0,
        line => text.match_indices('\n').nth(line - 2)?.0 + 1,
    };
    let at = (line_start + error.column()).checked_sub(1)?;
    let mut steps = steps_to(text.as_bytes().get(..at)?);
    // At its end, an object lacks something; the member that was read last is not it.
    if text.as_bytes().get(at) == Some(&b'}') {
        steps.pop();
    }
    let mut path = String::new();
    for step in &steps {
        match step {
            JsonStep::Member(name) if path.is_empty() => path.push_str(name),
            JsonStep::Member(name) => path.extend([".", name]),
            JsonStep::Item(number) => {
                let _ = write!(path, "[{number}]");
            }
        }
    }
    Some(path).filter(|path| !path.is_empty() && path.len() <= MAX_PATH)
}

/// Path of the member in which a truncated document ends.
fn steps_to(text: &[u8]) -> Vec<JsonStep> {
    let mut steps = Vec::new();
    let mut name_is_due = false;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' => {
                steps.push(JsonStep::Member(String::new()));
                name_is_due = true;
            }
            b'[' => {
                steps.push(JsonStep::Item(0));
                name_is_due = false;
            }
            b'}' | b']' => {
                steps.pop();
                name_is_due = false;
            }
            b',' => match steps.last_mut() {
                Some(JsonStep::Item(number)) => *number += 1,
                Some(JsonStep::Member(_)) => name_is_due = true,
                None => {}
            },
            b'"' => {
                let start = at + 1;
                at = end_of_string(text, start);
                if name_is_due
                    && at < text.len()
                    && let Some(JsonStep::Member(name)) = steps.last_mut()
                {
                    *name = String::from_utf8_lossy(&text[start..at]).into_owned();
                    name_is_due = false;
                }
            }
            _ => {}
        }
        at += 1;
    }
    steps
}

/// Position of the quote that ends a string, or of the end of the text.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only whether it can be read matters")]
    struct Order {
        name: String,
        #[serde(default)]
        rows: Vec<Order>,
    }

    fn check(text: &str, expected: Option<&str>) {
        let error = serde_json::from_str::<Order>(text).unwrap_err();
        assert_eq!(error_path(text, &error).as_deref(), expected, "{text}: {error}");
    }

    #[test]
    fn the_member_that_is_wrong_is_named() {
        check(r#"{"name":7}"#, Some("name"));
        check(r#"{"name":{}}"#, Some("name"));
        check(r#"{"rows":[],"name":[1]}"#, Some("name"));
        check(
            r#"{"name":"a","rows":[{"name":"b"},{"name":"c","rows":[{"name":true}]}]}"#,
            Some("rows[1].rows[0].name"),
        );
        check("{\"x\": \"}\\\"]\",\n \"name\": null}", Some("name"));
    }

    #[test]
    fn the_object_that_lacks_something_is_named() {
        check("{}", None);
        check(r#"{"rows":[]}"#, None);
        check(r#"{"name":"a","rows":[{"name":"b"},{"rows":[]}]}"#, Some("rows[1]"));
    }

    #[test]
    fn a_place_that_is_too_deep_to_find_is_not_named() {
        // The parser gives up at this depth, and its position is a path of hundreds of steps.
        check(&r#"{"name":"a","rows":["#.repeat(300), None);
    }

    #[test]
    fn a_document_that_ends_too_soon_is_no_danger() {
        check("", None);
        check(r#"{"name":"a","rows":[{"name":"b\"#, Some("rows[0].name"));
        check(r#"{"na"#, None);
    }
}
