//! The small part of YAML that `workspace.yaml` is written in: one mapping of names to scalars.
//!
//! Files of other programs are read too, so every style of scalar is understood. What is not understood (nested
//! collections, anchors) is kept as it stands and written back untouched, as are unknown names and comments.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct YamlDocument {
    entries: Vec<YamlEntry>,
}

/// A name with the lines that belong to it, or lines before the first name (then the name is empty).
#[derive(Debug, Clone, PartialEq, Eq)]
struct YamlEntry {
    name: String,
    /// Text after the colon, with the lines that follow, without the last newline.
    value: String,
}

impl YamlDocument {
    pub(crate) fn parse(text: &str) -> Self {
        let mut entries: Vec<YamlEntry> = Vec::new();
        for line in text.lines() {
            match split_name(line) {
                Some((name, value)) => {
                    entries.push(YamlEntry { name: name.to_owned(), value: value.to_owned() });
                }
                None => match entries.last_mut() {
                    Some(entry) => {
                        entry.value.push('\n');
                        entry.value.push_str(line);
                    }
                    None => entries.push(YamlEntry { name: String::new(), value: line.to_owned() }),
                },
            }
        }
        Self { entries }
    }

    /// The scalar of that name; `None` if it is absent, null, or not a scalar.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        decode(&entry.value)
    }

    /// Sets a text, quoted if it would otherwise read as something else.
    pub(crate) fn set(&mut self, name: &str, text: &str) {
        let value = if reads_back_plain(text) { text.to_owned() } else { quote(text) };
        self.put(name, value);
    }

    /// Sets a number, a truth value or a time, none of which need quotes.
    pub(crate) fn set_plain(&mut self, name: &str, value: &impl ToString) {
        self.put(name, value.to_string());
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.entries.retain(|entry| entry.name != name);
    }

    pub(crate) fn render(&self) -> String {
        let mut out = String::new();
        for entry in &self.entries {
            if !entry.name.is_empty() {
                out.push_str(&entry.name);
                out.push(':');
                if !entry.value.is_empty() && !entry.value.starts_with(['\n', ' ']) {
                    out.push(' ');
                }
            }
            out.push_str(&entry.value);
            out.push('\n');
        }
        out
    }

    fn put(&mut self, name: &str, value: String) {
        match self.entries.iter_mut().find(|entry| entry.name == name) {
            Some(entry) => entry.value = value,
            None => self.entries.push(YamlEntry { name: name.to_owned(), value }),
        }
    }
}

/// Splits `name: value`. Lines that are indented, comments and document marks belong to what stands before them.
fn split_name(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let value_is_apart = value.is_empty() || value.starts_with([' ', '\t']);
    (is_name && value_is_apart).then(|| (name, value.trim_end()))
}

fn decode(value: &str) -> Option<String> {
    let text = value.trim_start_matches([' ', '\t']);
    match text.chars().next() {
        None => None,
        Some('"') => decode_double(&text[1..]),
        Some('\'') => decode_single(&text[1..]),
        Some(style @ ('|' | '>')) => Some(decode_block(&text[1..], style == '>')),
        Some('[' | '{' | '&' | '*' | '!' | '#') => None,
        Some('\n') if text.trim_start().starts_with("- ") => None,
        Some(_) => decode_plain(text),
    }
}

fn decode_plain(text: &str) -> Option<String> {
    let uncommented = text.lines().map(|line| match line.find(" #") {
        Some(comment) => &line[..comment],
        None if line.starts_with('#') => "",
        None => line,
    });
    let folded = fold(&uncommented.collect::<Vec<_>>().join("\n"));
    let folded = folded.trim();
    (!matches!(folded, "" | "~" | "null" | "Null" | "NULL")).then(|| folded.to_owned())
}

/// Decodes the text after the opening quote; `''` is one quote.
fn decode_single(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    loop {
        let at = rest.find('\'')?;
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                rest = after;
            }
            None => return Some(fold(&out)),
        }
    }
}

/// Decodes the text after the opening quote. Line breaks are folded before escapes are resolved, so that an escaped
/// newline stays.
fn decode_double(text: &str) -> Option<String> {
    let folded = fold_double(text);
    let mut out = String::new();
    let mut chars = folded.chars();
    loop {
        match chars.next()? {
            '"' => return Some(out),
            '\\' => {
                let escape = chars.next()?;
                let hex = |chars: &mut std::str::Chars<'_>, digits: usize| {
                    let digits: String = chars.by_ref().take(digits).collect();
                    u32::from_str_radix(&digits, 16).ok()
                };
                let code = match escape {
                    '0' => 0,
                    'a' => 7,
                    'b' => 8,
                    't' | '\t' => 9,
                    'n' => 10,
                    'v' => 11,
                    'f' => 12,
                    'r' => 13,
                    'e' => 27,
                    'N' => 0x85,
                    '_' => 0xa0,
                    'L' => 0x2028,
                    'P' => 0x2029,
                    'x' => hex(&mut chars, 2)?,
                    'u' => hex(&mut chars, 4)?,
                    'U' => hex(&mut chars, 8)?,
                    other => u32::from(other),
                };
                // Half of a surrogate pair, as JSON writers produce them, needs its other half.
                let code = match code {
                    0xd800..=0xdbff if chars.as_str().starts_with("\\u") => {
                        chars.nth(1);
                        let low = hex(&mut chars, 4)?;
                        0x1_0000 + ((code - 0xd800) << 10) + low.wrapping_sub(0xdc00) % 0x400
                    }
                    code => code,
                };
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            other => out.push(other),
        }
    }
}

fn fold_double(text: &str) -> String {
    // A backslash at the end of a line joins it to the next without a space.
    let mut out = String::new();
    let mut pending = String::new();
    for line in text.split('\n') {
        let joined = if pending.is_empty() { line } else { line.trim_start() };
        pending.push_str(joined);
        let backslashes = pending.len() - pending.trim_end_matches('\\').len();
        if backslashes % 2 == 1 {
            pending.pop();
            continue;
        }
        out.push_str(&pending);
        out.push('\n');
        pending.clear();
    }
    out.push_str(&pending);
    fold(out.strip_suffix('\n').unwrap_or(&out))
}

/// Line breaks inside a flow scalar: one is a space, `n` more are `n` newlines.
fn fold(text: &str) -> String {
    let mut lines = text.split('\n');
    let mut out = lines.next().unwrap_or_default().to_owned();
    let mut blank = 0;
    for line in lines {
        if line.trim().is_empty() {
            blank += 1;
            continue;
        }
        out.truncate(out.trim_end_matches([' ', '\t', '\r']).len());
        if blank == 0 {
            out.push(' ');
        }
        out.extend(std::iter::repeat_n('\n', blank));
        blank = 0;
        out.push_str(line.trim_start());
    }
    out
}

/// `|` and `>` with what follows them: `-` strips the last newline, `+` keeps them all.
fn decode_block(text: &str, folded: bool) -> String {
    let (header, body) = text.split_once('\n').unwrap_or((text, ""));
    let indent = body
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start_matches(' ').len())
        .min()
        .unwrap_or(0);
    let lines: Vec<&str> = body.lines().map(|line| line.get(indent..).unwrap_or("")).collect();
    let joined = lines.join("\n");
    let content = if folded { fold(joined.trim_end_matches('\n')) } else { joined };
    let trimmed = content.trim_end_matches('\n');
    match header.trim_start_matches(|c: char| c.is_ascii_digit()).chars().next() {
        Some('-') => trimmed.to_owned(),
        Some('+') => content,
        _ => format!("{trimmed}\n"),
    }
}

/// Whether a text without quotes is read as that same text by every reader of YAML, old and new.
fn reads_back_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let first_is_harmless = first.is_alphanumeric() || matches!(first, '/' | '_' | '(' | '<' | '~' | '.');
    let word = text.to_ascii_lowercase();
    let means_something = matches!(
        word.as_str(),
        "~" | "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | ".inf" | ".nan" | "<<"
    );
    let like_a_number = !first.is_alphabetic()
        && (word.starts_with("0x") || text.chars().all(|c| c.is_ascii_digit() || "+-._:eETZo ".contains(c)));
    first_is_harmless
        && !means_something
        && !like_a_number
        && !text.chars().any(needs_escape)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
}

fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if needs_escape(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_read(text: &str, expected: Option<&str>) {
        assert_eq!(YamlDocument::parse(text).get("name").as_deref(), expected, "{text:?}");
    }

    fn check_round_trip(text: &str) {
        let mut document = YamlDocument::default();
        document.set("before", "x");
        document.set("name", text);
        document.set("after", "y");
        let read = YamlDocument::parse(&document.render());
        assert_eq!(read.get("name").as_deref(), Some(text), "{}", document.render());
        assert_eq!(read.get("after").as_deref(), Some("y"));
    }

    #[test]
    fn every_style_of_scalar_is_read() {
        check_read("name: plain text", Some("plain text"));
        check_read("id: 1\nname: a: b # comment\nx: y", Some("a: b"));
        check_read("name: TOOL:view:{\"path\":\"/x\"}", Some("TOOL:view:{\"path\":\"/x\"}"));
        check_read("name: 'it''s'", Some("it's"));
        check_read(r#"name: "a\"b\\ \n\u00e9\x41 \ud83d\ude00""#, Some("a\"b\\ \né\u{41} 😀"));
        check_read("name: |\n  one\n    two\n\n  three\nnext: 1", Some("one\n  two\n\nthree\n"));
        check_read("name: |-\n  one\n  two\n", Some("one\ntwo"));
        check_read("name: >-\n  one\n  two\n\n  three\n", Some("one two\nthree"));
        check_read(
            "name: a long plain\n  scalar that goes on\nx: 1",
            Some("a long plain scalar that goes on"),
        );
        check_read(
            "name: \"a long\n  quoted\n\n  one \\\n  joined\"\nx: 1",
            Some("a long quoted\none joined"),
        );
        check_read("name: crlf\r\nx: 1\r\n", Some("crlf"));
    }

    #[test]
    fn what_is_no_text_reads_as_absent() {
        check_read("other: x", None);
        check_read("name:", None);
        check_read("name: null", None);
        check_read("name: ~", None);
        check_read("name: [a, b]", None);
        check_read("name:\n  - a\n", None);
        check_read("name: \"unfinished", None);
        check_read("", None);
        check_read("\0\0\0", None);
    }

    #[test]
    fn every_text_survives_being_written_and_read() {
        for text in [
            "plain",
            "",
            " spaces ",
            "true",
            "No",
            "null",
            "~",
            "12345",
            "1e5",
            "0x1f",
            "2026-01-01",
            "12345678-1234-4123-8123-123456789012",
            "435b56ef-152e-48ff-a1f0-b6733f72680b",
            "- item",
            "key: value",
            "ends with:",
            "a #b",
            "#b",
            "'quoted'",
            "\"quoted\"",
            "two\nlines\n",
            "tab\tcr\rnul\0esc\u{1b}nel\u{85}ls\u{2028}bom\u{feff}",
            "back\\slash",
            "trailing backslash\\",
            "*star &anchor !tag %percent @at `tick` |pipe >more {brace} [bracket]",
            "*",
            "&a",
            "!t",
            "[x]",
            "{x}",
            "| x",
            "é😀",
        ] {
            check_round_trip(text);
        }
    }

    #[test]
    fn usual_values_are_written_without_quotes() {
        let mut document = YamlDocument::default();
        document.set("cwd", "/home/me/a repo");
        document.set("repository", "acme/widgets");
        document.set("id", "435b56ef-152e-48ff-a1f0-b6733f72680b");
        document.set_plain("user_named", &false);
        assert_eq!(
            document.render(),
            "cwd: /home/me/a repo\nrepository: acme/widgets\nid: 435b56ef-152e-48ff-a1f0-b6733f72680b\nuser_named: false\n"
        );
    }

    #[test]
    fn what_is_not_understood_is_written_back_as_it_was() {
        let text = "# comment\nid: x\nlist:\n  - a\n  - b: c\nfork_count: 0\nmap: {a: 1}\n";
        let mut document = YamlDocument::parse(text);
        assert_eq!(document.render(), text);
        document.set("id", "z");
        document.remove("map");
        assert_eq!(document.render(), "# comment\nid: z\nlist:\n  - a\n  - b: c\nfork_count: 0\n");
    }
}
