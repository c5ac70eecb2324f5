//! HTML taken apart into text and tags, as far as reading needs it. Never fails: what is no tag is text.

/// Elements whose content is not for reading.
const SKIPPED: [&str; 10] =
    ["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "math", "select"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HtmlToken<'a> {
    /// As written; entities are still in it.
    Text(&'a str),
    Open(HtmlTag<'a>),
    Close(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HtmlTag<'a> {
    /// In lower case.
    pub(crate) name: String,
    attributes: &'a str,
}

pub(crate) struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(html: &'a str) -> Self {
        Self { rest: html }
    }

    /// Text up to `end`, which is consumed; all of the rest if it never comes.
    fn up_to(&mut self, end: &str) -> &'a str {
        let (inside, rest) = self.rest.split_once(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        inside
    }

    /// Passes the content of an element that is not for reading, and its end.
    fn skip_content(&mut self, name: &str) {
        let mut rest = self.rest;
        while let Some(at) = rest.find("</") {
            let after = &rest[at + 2..];
            if after.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
                self.rest = after.split_once('>').map_or("", |(_, rest)| rest);
                return;
            }
            rest = after;
        }
        self.rest = "";
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = HtmlToken<'a>;

    fn next(&mut self) -> Option<HtmlToken<'a>> {
        loop {
            let Some(after) = self.rest.strip_prefix('<') else {
                if self.rest.is_empty() {
                    return None;
                }
                let end = self.rest.find('<').unwrap_or(self.rest.len());
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                return Some(HtmlToken::Text(text));
            };
            if let Some(comment) = after.strip_prefix("!--") {
                self.rest = comment;
                self.up_to("-->");
                continue;
            }
            match after.chars().next() {
                Some('!' | '?') => {
                    self.up_to(">");
                }
                Some('/') => {
                    let inside = self.up_to(">");
                    return Some(HtmlToken::Close(tag_name(&inside[2..])));
                }
                Some(first) if first.is_ascii_alphabetic() => {
                    let end = tag_end(after);
                    let inside = &after[..end];
                    self.rest = after[end..].strip_prefix('>').unwrap_or_default();
                    let name = tag_name(inside);
                    if SKIPPED.contains(&name.as_str()) {
                        if !inside.ends_with('/') {
                            self.skip_content(&name);
                        }
                        continue;
                    }
                    let attributes = inside.get(name.len()..).unwrap_or_default();
                    return Some(HtmlToken::Open(HtmlTag { name, attributes }));
                }
                // A lone `<`.
                _ => {
                    let end = after.find('<').map_or(self.rest.len(), |at| at + 1);
                    let (text, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    return Some(HtmlToken::Text(text));
                }
            }
        }
    }
}

/// End of a tag: the first `>` outside quotation marks.
fn tag_end(text: &str) -> usize {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    // An unclosed quotation would swallow the page.
    text.find('>').unwrap_or(text.len())
}

fn tag_name(inside: &str) -> String {
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(inside.len());
    inside[..end].to_ascii_lowercase()
}

impl HtmlTag<'_> {
    /// The value of an attribute, entities decoded.
    pub(crate) fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
            if rest.is_empty() {
                return None;
            }
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '=' | '/')).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let after = after.trim_start();
            let value = match after.strip_prefix('=').map(str::trim_start) {
                None => {
                    rest = after;
                    ""
                }
                Some(after) => {
                    let (value, remaining) = attribute_value(after);
                    rest = remaining;
                    value
                }
            };
            if name.eq_ignore_ascii_case(wanted) {
                return Some(decode(value));
            }
            // A stray `=` has no name before it and would stand still.
            if name.is_empty() && value.is_empty() {
                return None;
            }
        }
    }
}

fn attribute_value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(inside) = text.strip_prefix(quote) {
            return inside.split_once(quote).unwrap_or((inside, ""));
        }
    }
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// Replaces entities by what they stand for. Unknown ones stay.
pub(crate) fn decode(text: &str) -> String {
    /// Characters of the longest entity that is known.
    const LONGEST: usize = 10;

    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(LONGEST).position(|byte| byte == b';');
        match end.and_then(|end| Some((end, entity(&rest[1..end])?))) {
            Some((end, meaning)) => {
                decoded.push(meaning);
                rest = &rest[end + 1..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return code.ok().and_then(char::from_u32);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "mdash" => '—',
        "ndash" => '–',
        "hellip" => '…',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "laquo" => '«',
        "raquo" => '»',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "bull" => '•',
        "middot" => '·',
        "times" => '×',
        "rarr" => '→',
        "larr" => '←',
        "euro" => '€',
        "deg" => '°',
        "shy" => '\u{ad}',
        _ => return None,
    })
}
