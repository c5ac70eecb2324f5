//! The YAML at the head of a Markdown file, between two lines of dashes.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::Tree;

/// Number of bytes that are read for the front matter of a file.
const HEAD_LIMIT: u64 = 16 << 10;

/// A Markdown file in two parts.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) head: Head,
    pub(crate) body: &'a str,
}

/// The members of a front matter. Absent is empty.
#[derive(Debug, Default)]
pub struct Head(Value);

pub(crate) fn split(text: &str) -> Result<Document<'_>, String> {
    match halves(text) {
        (Some(head), body) => {
            Ok(Document { head: Head::parse(head)?, body: body.trim_start_matches(['\r', '\n']) })
        }
        (None, body) if opened(body).is_some() => Err("its front matter has no end".to_owned()),
        (None, body) => Ok(Document { head: Head::default(), body }),
    }
}

/// The front matter of a text, if it has one that ends, and the text behind it.
pub fn halves(text: &str) -> (Option<&str>, &str) {
    let text = text.trim_start_matches('\u{feff}');
    let Some(rest) = opened(text) else { return (None, text) };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (Some(&rest[..at]), &rest[at + line.len()..]);
        }
        at += line.len();
    }
    (None, text)
}

/// The text behind the first line of dashes.
fn opened(text: &str) -> Option<&str> {
    text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"))
}

/// The head of a file, without reading all of it.
pub(crate) fn head_of(path: &Path, tree: &Tree) -> Result<(Head, String), String> {
    tree.check(path)?;
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(HEAD_LIMIT).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    let document = split(&text)?;
    let first = document.body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    Ok((document.head, first.trim_start_matches('#').trim().to_owned()))
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
            Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Value::Number(number) => Some(number.to_string()),
            // `argument-hint: [file]` is meant as text.
            Value::Array(items) => {
                let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                Some(format!("[{}]", items.join(", ")))
            }
            _ => None,
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
            Value::Array(items) => Some(
                items.iter().filter_map(|item| item.as_str().map(|item| item.trim().to_owned())).collect(),
            ),
            Value::String(text) => Some(comma_list(text)),
            _ => None,
        }
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

/// `name: anything` on every line, the values taken as they stand: words, or lists of words.
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
        let text = "---\nname: x\ntools: [y, no]\nallow: Bash(a, b), Read\non: true\n---\n\n# Body\n";
        let document = split(text).unwrap();
        assert_eq!(document.body, "# Body\n");
        assert_eq!(document.head.text("name").as_deref(), Some("x"));
        assert_eq!(document.head.list("tools").unwrap(), ["y", "no"]);
        assert_eq!(document.head.list("allow").unwrap(), ["Bash(a, b)", "Read"]);
        assert_eq!(document.head.flag("on"), Some(true));
    }

    #[test]
    fn values_with_colons_are_what_people_meant() {
        let document = split("---\nname: x\ndescription: Use it: when needed\n---\nb").unwrap();
        assert_eq!(document.head.text("description").as_deref(), Some("Use it: when needed"));
    }

    #[test]
    fn patterns_that_are_no_yaml_are_lists_all_the_same() {
        let list = |value: &str| split(&format!("---\na: {value}\n---\n")).unwrap().head.list("a").unwrap();
        assert_eq!(list("**/*.rs"), ["**/*.rs"]);
        assert_eq!(list("[**/*.rs, 'b/{c,d}']"), ["**/*.rs", "b/{c,d}"]);
        assert_eq!(list("\n  - **/*.rs\n  - \"b\"\nz: 1"), ["**/*.rs", "b"]);
        assert!(split("---\na: b\n  - c: *\n---\n").is_err());
    }

    #[test]
    fn a_head_without_an_end_is_broken() {
        assert!(split("---\nname: x\n").is_err());
        assert!(split("no head").unwrap().head.get("name").is_none());
    }
}
