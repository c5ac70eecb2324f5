//! Splits a workflow file into its front matter and its prompt.

use crate::problem::{Position, Problem, check};

const FENCE: &str = "---";

/// The parts of a file, with the lines on which they begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// YAML between the fences. Empty if the file has none.
    pub(crate) yaml: &'a str,
    /// Lines before the first line of the YAML.
    pub(crate) yaml_offset: usize,
    pub(crate) prompt: &'a str,
    /// Lines before the first line of the prompt.
    pub(crate) prompt_offset: usize,
}

/// A file as all code here reads it: without a byte order mark, with line feeds alone.
pub(crate) fn normalised(text: &str) -> String {
    text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n")
}

pub(crate) fn split(text: &str) -> Result<Parts<'_>, Problem> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != FENCE {
        return Ok(prompt_of(Parts { yaml: "", yaml_offset: 0, prompt: text, prompt_offset: 0 }));
    }
    let mut at = first.len();
    for (number, line) in lines.enumerate() {
        if line.trim_end() == FENCE {
            let yaml = &text[first.len()..at];
            let prompt = &text[at + line.len()..];
            return Ok(prompt_of(Parts { yaml, yaml_offset: 1, prompt, prompt_offset: number + 2 }));
        }
        at += line.len();
    }
    Err(Problem::error(
        check::PARSE,
        Position::START,
        "the front matter has no end; close it with a line of `---`",
    ))
}

/// Trims the prompt and keeps count of the lines that go.
fn prompt_of(parts: Parts<'_>) -> Parts<'_> {
    let trimmed = parts.prompt.trim_start();
    let gone = parts.prompt.len() - trimmed.len();
    // White space within the first line with text stays part of no line of its own.
    let lines = parts.prompt[..gone].matches('\n').count();
    Parts { prompt: trimmed.trim_end(), prompt_offset: parts.prompt_offset + lines, ..parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, yaml: &str, prompt: &str, prompt_offset: usize) {
        let parts = split(text).unwrap();
        assert_eq!(
            (parts.yaml, parts.prompt, parts.prompt_offset),
            (yaml, prompt, prompt_offset),
            "{text:?}"
        );
    }

    #[test]
    fn a_file_without_front_matter_is_a_prompt() {
        check("Do it.\n", "", "Do it.", 0);
        check("", "", "", 0);
    }

    #[test]
    fn the_prompt_is_trimmed_and_its_lines_are_counted() {
        check("---\na: 1\n---\n\n\nDo it.\n\n", "a: 1\n", "Do it.", 5);
        check("---\n---\nDo it.", "", "Do it.", 2);
    }

    #[test]
    fn a_front_matter_without_an_end_is_refused() {
        assert_eq!(split("---\na: 1\n").unwrap_err().check, check::PARSE);
    }

    #[test]
    fn a_byte_order_mark_and_carriage_returns_go() {
        assert_eq!(normalised("\u{feff}---\r\na: 1\r\n---\r\nx"), "---\na: 1\n---\nx");
    }
}
