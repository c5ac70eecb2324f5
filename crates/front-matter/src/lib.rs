//! The YAML at the head of a Markdown file, between two lines of dashes: instructions, skills, agents, workflows and issues have one.

use serde_json::Value;

/// Line that begins and ends a front matter.
pub const FENCE: &str = "---";

/// A file in two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a> {
    /// Text between the fences, if there are any.
    pub yaml: Option<&'a str>,
    pub body: &'a str,
    /// Lines before the first line of the body.
    pub body_offset: usize,
}

/// The members of a front matter. Absent is empty.
#[derive(Debug, Default)]
pub struct Head(Value);

/// Splits a text, without a byte order mark. `None` if the front matter has no end.
pub fn split(text: &str) -> Option<Parts<'_>> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != FENCE {
        return Some(Parts { yaml: None, body: text, body_offset: 0 });
    }
    let mut at = first.len();
    for (number, line) in lines.enumerate() {
        let end = at + line.len();
        if line.trim_end() == FENCE {
            return Some(Parts {
                yaml: Some(&text[first.len()..at]),
                body: &text[end..],
                body_offset: number + 2,
            });
        }
        at = end;
    }
    None
}

/// The members of a text's front matter, and the body without the empty lines before it. The error is a sentence about the file.
pub fn parse(text: &str) -> Result<(Head, &str), String> {
    let parts = split(text).ok_or("its front matter has no end")?;
    let head = parts.yaml.map(Head::parse).transpose()?.unwrap_or_default();
    let body = match parts.yaml {
        Some(_) => parts.body.trim_start_matches(['\r', '\n']),
        None => parts.body,
    };
    Ok((head, body))
}

impl Head {
    pub fn parse(yaml: &str) -> Result<Self, String> {
        if yaml.trim().is_empty() {
            return Ok(Self::default());
        }
        // Without strict booleans `[x, y]` has a truth in it.
        let options = serde_saphyr::options! { strict_booleans: true };
        let parsed: Result<Value, _> = serde_saphyr::from_str_with_options(yaml, options);
        match parsed {
            Ok(value) if value.is_object() => Ok(Self(value)),
            Ok(Value::Null) => Ok(Self::default()),
            Ok(_) => Err("its front matter is not a list of names and values".to_owned()),
            // Descriptions with a colon in them are no YAML, and common.
            Err(error) => match plain_lines(yaml) {
                Some(value) => Ok(Self(value)),
                None => Err(format!("its front matter is not YAML: {}", first_line(&error.to_string()))),
            },
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            // `argument-hint: [file]` is meant as text.
            Value::Array(items) => {
                let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                Some(format!("[{}]", items.join(", ")))
            }
            value => word(value).filter(|text| !text.is_empty()),
        }
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => match text.as_str() {
                "true" | "yes" => Some(true),
                "false" | "no" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// A list, or text with commas. Commas inside parentheses or braces belong to their item.
    pub fn list(&self, name: &str) -> Option<Vec<String>> {
        match self.get(name)? {
            Value::Array(items) => Some(items.iter().filter_map(word).collect()),
            Value::String(text) => Some(comma_list(text)),
            _ => None,
        }
    }
}

/// A text or number as text.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The parts of a text between its commas, without those inside parentheses or braces.
pub fn comma_list(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut depth = 0_i32;
    for character in text.chars() {
        match character {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            ',' if depth <= 0 => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(item) = items.last_mut() {
            item.push(character);
        }
    }
    items.into_iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// Parses `name: anything` lines, with the values as they are written: words, or lists of words.
fn plain_lines(yaml: &str) -> Option<Value> {
    let mut members = serde_json::Map::new();
    let is_said = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut lines = yaml.lines().filter(is_said).peekable();
    while let Some(line) = lines.next() {
        let (name, value) = line.split_once(':')?;
        if name.is_empty() || name.contains(char::is_whitespace) {
            return None;
        }
        let value = value.trim();
        let mut items = Vec::new();
        while let Some(item) = lines.peek().and_then(|line| line.trim_start().strip_prefix("- ")) {
            items.push(unquoted(item.trim()).to_owned());
            lines.next();
        }
        let value = match value.strip_prefix('[').and_then(|value| value.strip_suffix(']')) {
            _ if !items.is_empty() && value.is_empty() => items.into(),
            _ if !items.is_empty() => return None,
            Some(list) => comma_list(list).iter().map(|item| unquoted(item)).collect(),
            // Was meant to be more than words.
            None if value.starts_with(['[', '{', '}', ']']) => return None,
            None => unquoted(value).into(),
        };
        members.insert(name.to_owned(), value);
    }
    Some(Value::Object(members))
}

fn unquoted(value: &str) -> &str {
    let inner = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_taken_apart_and_the_body_begins_after_it() {
        let text = "---\nname: x\ntools: [y, no, 3]\nallow: Bash(a, b), Read\non: true\n---\n\n# Body\n";
        let (head, body) = parse(text).unwrap();
        assert_eq!(body, "# Body\n");
        assert_eq!(head.text("name").as_deref(), Some("x"));
        assert_eq!(head.list("tools").unwrap(), ["y", "no", "3"]);
        assert_eq!(head.list("allow").unwrap(), ["Bash(a, b)", "Read"]);
        assert_eq!(head.flag("on"), Some(true));
    }

    #[test]
    fn lines_before_the_body_are_counted() {
        let check = |text, yaml, body, body_offset| {
            assert_eq!(split(text), Some(Parts { yaml, body, body_offset }), "{text:?}");
        };
        check("Do it.\n", None, "Do it.\n", 0);
        check("", None, "", 0);
        check("---\na: 1\n--- \n\nDo it.", Some("a: 1\n"), "\nDo it.", 3);
        check("\u{feff}---\r\na: 1\r\n---\r\nx", Some("a: 1\r\n"), "x", 3);
        check("---\n---", Some(""), "", 2);
    }

    #[test]
    fn values_with_colons_are_what_people_meant() {
        let (head, _) = parse("---\nname: x\ndescription: Use it: when needed\n---\nb").unwrap();
        assert_eq!(head.text("description").as_deref(), Some("Use it: when needed"));
    }

    #[test]
    fn patterns_that_are_no_yaml_are_lists_all_the_same() {
        let list = |value: &str| parse(&format!("---\na: {value}\n---\n")).unwrap().0.list("a").unwrap();
        assert_eq!(list("**/*.rs"), ["**/*.rs"]);
        assert_eq!(list("[**/*.rs, 'b/{c,d}']"), ["**/*.rs", "b/{c,d}"]);
        assert_eq!(list("\n  - **/*.rs\n  - \"b\"\nz: 1"), ["**/*.rs", "b"]);
        assert!(parse("---\na: b\n  - c: *\n---\n").is_err());
    }

    #[test]
    fn a_head_without_an_end_is_broken() {
        assert!(parse("---\nname: x\n").is_err());
        assert!(parse("no head").unwrap().0.get("name").is_none());
    }
}
