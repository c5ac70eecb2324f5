//! Text of people and models inside a Markdown document, so that it cannot swallow or restructure what follows.

use std::borrow::Cow;

/// A line of three or more backticks or tildes opens or closes a block of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: usize,
}

impl Fence {
    fn opening(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        if line.len() - text.len() > 3 {
            return None;
        }
        let mark = *text.as_bytes().first()?;
        let length = text.bytes().take_while(|byte| *byte == mark).count();
        // A backtick behind opening backticks makes it code within a line.
        let is_fence =
            matches!(mark, b'`' | b'~') && length >= 3 && !(mark == b'`' && text[length..].contains('`'));
        is_fence.then_some(Self { mark, length })
    }

    fn is_closed_by(self, line: &str) -> bool {
        Self::opening(line).is_some_and(|other| other.mark == self.mark && other.length >= self.length)
            && line.trim().bytes().all(|byte| byte == self.mark)
    }

    fn text(self) -> String {
        char::from(self.mark).to_string().repeat(self.length)
    }
}

/// Markdown as it is, except that HTML outside of code shows as text and a block of code left open is closed.
pub(super) fn contained(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len() + 16);
    let mut open: Option<Fence> = None;
    for line in markdown.trim_end().lines() {
        match open {
            Some(fence) => {
                if fence.is_closed_by(line) {
                    open = None;
                }
                out.push_str(line);
            }
            None => {
                open = Fence::opening(line);
                out.push_str(&without_html(line));
            }
        }
        out.push('\n');
    }
    if let Some(fence) = open {
        out.push_str(&fence.text());
        out.push('\n');
    }
    out
}

/// The same as a quotation.
pub(super) fn quoted(markdown: &str) -> String {
    contained(markdown)
        .lines()
        .map(|line| if line.is_empty() { ">\n".to_owned() } else { format!("> {line}\n") })
        .collect()
}

/// A block of code with a fence that nothing in the text can close.
pub(super) fn fenced(language: &str, text: &str) -> String {
    let longest = text.lines().map(|line| longest_run(line, b'`')).max().unwrap_or(0);
    let fence = "`".repeat(longest.saturating_add(1).max(3));
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{newline}{fence}\n")
}

/// Code within a line.
pub(super) fn code(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let ticks = "`".repeat(longest_run(&text, b'`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// One line of plain text, for headings and lists.
pub(super) fn one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    without_html(&joined).into_owned()
}

fn longest_run(text: &str, mark: u8) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == mark { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Replaces each `<` that could start a tag, a comment or a declaration, unless it stands in code.
fn without_html(line: &str) -> Cow<'_, str> {
    if !line.contains('<') {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len() + 8);
    let mut rest = line;
    while let Some(at) = rest.find(['<', '`']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with('`') {
            let ticks = rest.len() - rest.trim_start_matches('`').len();
            code_span(rest, ticks).unwrap_or(ticks)
        } else {
            1
        };
        let (piece, after) = rest.split_at(length);
        let starts_tag = after.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        out.push_str(if piece == "<" && starts_tag { "&lt;" } else { piece });
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Length of the code that starts with so many backticks and ends with as many, if it ends.
fn code_span(text: &str, ticks: usize) -> Option<usize> {
    let mut from = ticks;
    loop {
        let start = from + text[from..].find('`')?;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        if run == ticks {
            return Some(start + run);
        }
        from = start + run;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_shows_as_text_but_code_stays() {
        assert_eq!(contained("a <b>bold</b> <!-- x -> 1 < 2"), "a &lt;b>bold&lt;/b> &lt;!-- x -> 1 < 2\n");
        assert_eq!(
            contained("`Vec<String>` and ``<a> ` <b>`` <c>"),
            "`Vec<String>` and ``<a> ` <b>`` &lt;c>\n"
        );
        assert_eq!(contained("a ` b <c>"), "a ` b &lt;c>\n");
        assert_eq!(contained("```html\n<b>\n```\n<b>"), "```html\n<b>\n```\n&lt;b>\n");
    }

    #[test]
    fn a_block_of_code_left_open_is_closed() {
        assert_eq!(contained("```rust\nfn x() {}"), "```rust\nfn x() {}\n```\n");
        assert_eq!(contained("~~~~\n```\n~~~"), "~~~~\n```\n~~~\n~~~~\n");
        assert_eq!(contained("````\n```\n````\nend"), "````\n```\n````\nend\n");
    }

    #[test]
    fn a_quotation_holds_every_line() {
        assert_eq!(quoted("a\n\n# b\n```"), "> a\n>\n> # b\n> ```\n> ```\n");
    }

    #[test]
    fn nothing_breaks_out_of_a_fence() {
        assert_eq!(fenced("", "a"), "```\na\n```\n");
        assert_eq!(
            fenced("json", "x\n```\n# free\n`````` y\n"),
            "```````json\nx\n```\n# free\n`````` y\n```````\n"
        );
        assert_eq!(fenced("", ""), "```\n```\n");
    }

    #[test]
    fn code_in_a_line_is_one_piece() {
        assert_eq!(code("bash"), "`bash`");
        assert_eq!(code("a`b\nc"), "``a`b c``");
        assert_eq!(code("`"), "`` ` ``");
    }
}
