//! JSON as people write it: with comments and commas too many.

use serde_json::Value;

pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let text = text.trim_start_matches('\u{feff}');
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(_) => serde_json::from_str(&plain(text)),
    }
}

/// The text without comments and without commas before a closing bracket. Strings stay as they are; so do lines, for
/// the sake of error messages.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match (character, rest.peek()) {
            ('"', _) => {
                out.push('"');
                let mut escaped = false;
                for character in rest.by_ref() {
                    out.push(character);
                    if character == '"' && !escaped {
                        break;
                    }
                    escaped = character == '\\' && !escaped;
                }
            }
            ('/', Some('/')) => while rest.next_if(|next| *next != '\n').is_some() {},
            ('/', Some('*')) => {
                let mut last = ' ';
                for character in rest.by_ref().skip(1) {
                    if character == '\n' {
                        out.push('\n');
                    }
                    if last == '*' && character == '/' {
                        break;
                    }
                    last = character;
                }
            }
            ('}' | ']', _) => {
                let kept = out.trim_end();
                if kept.ends_with(',') {
                    let blank = out[kept.len()..].to_owned();
                    out.truncate(kept.len() - 1);
                    out.push_str(&blank);
                }
                out.push(character);
            }
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: Value) {
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn comments_and_trailing_commas_are_taken() {
        check("// a\n{ /* b */ \"x\": [1, 2, ], // c\n }", json!({ "x": [1, 2] }));
        check("\u{feff}{\"x\": 1,}", json!({ "x": 1 }));
    }

    #[test]
    fn strings_that_look_like_comments_stay() {
        check(r#"{"u": "http://x/*,}", "q": "\"//", }"#, json!({ "u": "http://x/*,}", "q": "\"//" }));
    }

    #[test]
    fn nonsense_is_an_error_with_its_line() {
        assert!(parse("{\n/* x\n*/ nope").unwrap_err().to_string().contains("line 3"));
    }
}
