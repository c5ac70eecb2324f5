//! Reader of the start of a line: indentation and the marks of blocks.

/// Position in a line, with columns for tabs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'l> {
    rest: &'l str,
    column: usize,
    /// Columns of a tab that was consumed in part.
    pending: usize,
}

/// Indentation that makes a line code.
pub(super) const CODE_INDENT: usize = 4;

/// Distance of tab stops in Markdown's indentation.
const STOP: usize = 4;

impl<'l> Cursor<'l> {
    pub(super) fn new(line: &'l str) -> Self {
        Self { rest: line, column: 0, pending: 0 }
    }

    /// Columns of white space before the next character.
    pub(super) fn indent(&self) -> usize {
        let mut column = self.column + self.pending;
        for byte in self.rest.bytes() {
            match byte {
                b' ' => column += 1,
                b'\t' => column = (column / STOP + 1) * STOP,
                _ => break,
            }
        }
        column - self.column
    }

    /// The rest of the line without white space before it.
    pub(super) fn text(&self) -> &'l str {
        self.rest.trim_start_matches([' ', '\t'])
    }

    /// The rest of the line with its white space.
    pub(super) fn exact(&self) -> String {
        format!("{}{}", " ".repeat(self.pending), self.rest)
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text().trim_end().is_empty()
    }

    /// Skips columns of white space, as many as there are up to `columns`.
    pub(super) fn skip(&mut self, columns: usize) {
        let mut left = columns;
        while left > 0 {
            if self.pending == 0 {
                let Some(blank) = self.rest.chars().next().filter(|c| matches!(c, ' ' | '\t')) else {
                    return;
                };
                self.pending = if blank == ' ' { 1 } else { STOP - self.column % STOP };
                self.rest = self.rest.get(1..).unwrap_or_default();
            }
            let used = left.min(self.pending);
            self.pending -= used;
            self.column += used;
            left -= used;
        }
    }

    /// Skips the mark of a block after its indentation.
    pub(super) fn skip_mark(&mut self, bytes: usize) {
        self.skip(self.indent());
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        self.column += bytes;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) mark: char,
    pub(super) length: usize,
    pub(super) info: String,
}

/// Opening fence of a code block.
pub(super) fn fence(text: &str) -> Option<Fence> {
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = text.trim_start_matches(mark);
    let length = text.len() - info.len();
    let valid = length >= 3 && !(mark == '`' && info.contains('`'));
    valid.then(|| Fence { mark, length, info: info.trim().to_owned() })
}

pub(super) fn closes(fence: &Fence, text: &str) -> bool {
    let rest = text.trim_start_matches(fence.mark);
    text.len() - rest.len() >= fence.length && rest.trim().is_empty()
}

/// Level and text of a heading with `#`.
pub(super) fn heading(text: &str) -> Option<(usize, &str)> {
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let rest = rest.trim();
    let cut = rest.trim_end_matches('#');
    Some((level, if cut.is_empty() || cut.ends_with([' ', '\t']) { cut.trim_end() } else { rest }))
}

/// Whether the line is a thematic break.
pub(super) fn is_rule(text: &str) -> bool {
    let Some(mark) = text.chars().next().filter(|c| matches!(c, '-' | '*' | '_')) else { return false };
    text.chars().all(|c| c == mark || c == ' ' || c == '\t')
        && text.chars().filter(|c| *c == mark).count() >= 3
}

/// Level of the heading that this underline makes of the line before it.
pub(super) fn underline(text: &str) -> Option<usize> {
    let text = text.trim_end();
    let all = |mark: char| !text.is_empty() && text.chars().all(|c| c == mark);
    if all('=') {
        Some(1)
    } else if all('-') {
        Some(2)
    } else {
        None
    }
}

/// Mark of a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ItemMark<'l> {
    /// The mark as written: `-`, `*`, `+`, `7.` or `7)`.
    pub(super) mark: &'l str,
    pub(super) number: Option<u32>,
}

pub(super) fn item(text: &str) -> Option<ItemMark<'_>> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (length, number) = match digits {
        0 if text.starts_with(['-', '*', '+']) => (1, None),
        1..=9 if text.get(digits..).is_some_and(|rest| rest.starts_with(['.', ')'])) => {
            (digits + 1, Some(text.get(..digits)?.parse().ok()?))
        }
        _ => return None,
    };
    let rest = text.get(length..)?;
    (rest.is_empty() || rest.starts_with([' ', '\t']))
        .then_some(ItemMark { mark: text.get(..length)?, number })
}

/// Box of a task at the start of an item: whether it is checked.
pub(super) fn task(text: &str) -> Option<bool> {
    match text.as_bytes() {
        [b'[', b' ', b']', b' ' | b'\t', ..] => Some(false),
        [b'[', b'x' | b'X', b']', b' ' | b'\t', ..] => Some(true),
        _ => None,
    }
}

/// Elements that start a block of HTML.
const HTML_BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "center",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "li",
    "link",
    "main",
    "menu",
    "meta",
    "nav",
    "ol",
    "p",
    "pre",
    "script",
    "section",
    "style",
    "summary",
    "table",
    "tbody",
    "td",
    "textarea",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "ul",
];

/// Whether the line starts a block of HTML, which ends at a blank line.
pub(super) fn is_html(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('<') else { return false };
    if rest.starts_with("!--") {
        return true;
    }
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    let name = name.to_ascii_lowercase();
    HTML_BLOCKS.contains(&name.as_str()) && (after.is_empty() || after.starts_with(['>', ' ', '\t', '/']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_count_to_the_next_stop_and_may_be_consumed_in_part() {
        let mut cursor = Cursor::new("-\tcode");
        cursor.skip_mark(1);
        assert_eq!(cursor.indent(), 3);
        cursor.skip(1);
        assert_eq!((cursor.indent(), cursor.exact().as_str()), (2, "  code"));
    }

    #[test]
    fn marks_of_blocks() {
        assert_eq!(heading("## a b ##"), Some((2, "a b")));
        assert_eq!(heading("# #c#"), Some((1, "#c#")));
        assert_eq!(heading("#tag"), None);
        assert!(is_rule("- - -") && is_rule("***") && !is_rule("--") && !is_rule("**a"));
        assert_eq!(item("12) x"), Some(ItemMark { mark: "12)", number: Some(12) }));
        assert_eq!(item("-x"), None);
        assert_eq!(item("1234567890. x"), None);
        assert_eq!(fence("```a`"), None);
        assert_eq!(
            fence("~~~~ rust x").map(|fence| (fence.length, fence.info)),
            Some((4, "rust x".to_owned()))
        );
        assert!(
            is_html("<div>")
                && is_html("</details>")
                && is_html("<!-- x")
                && !is_html("<b>x")
                && !is_html("<https://a>")
        );
    }
}
