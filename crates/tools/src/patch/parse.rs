//! The patch format: whole files added and deleted, and hunks found by their lines rather than by line numbers.

/// Bytes of a patch. Several times what a model writes in one answer.
const PATCH_LIMIT: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    Add { path: String, content: String },
    Delete { path: String },
    Update { path: String, move_to: Option<String>, hunks: Vec<Hunk> },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// Lines that lie somewhere before the hunk, outermost first: `class Foo`, `def bar`.
    pub(crate) hints: Vec<String>,
    pub(crate) lines: Vec<PatchLine>,
    /// The hunk's lines are the last of the file.
    pub(crate) at_end: bool,
    /// Line of the patch at which the hunk starts, from 1.
    pub(crate) patch_line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatchLine {
    Keep(String),
    Remove(String),
    Insert(String),
}

/// The message is a sentence for the model, and names the line of the patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct PatchError {
    message: String,
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";

pub(crate) fn parse(patch: &str) -> Result<Vec<Operation>, PatchError> {
    if patch.len() > PATCH_LIMIT {
        return Err(PatchError { message: format!("The patch is larger than {PATCH_LIMIT} bytes") });
    }
    let mut reader = Reader::new(patch);
    reader.skip_wrapping();
    if reader.next().map(|(_, line)| line.trim()) != Some(BEGIN) {
        return Err(PatchError { message: format!("The first line of the patch must be '{BEGIN}'") });
    }
    let mut operations = Vec::new();
    loop {
        let Some((number, line)) = reader.next() else {
            return Err(PatchError { message: format!("The last line of the patch must be '{END}'") });
        };
        let line = line.trim_end();
        if line == END {
            return Ok(operations);
        } else if let Some(path) = line.strip_prefix(ADD) {
            operations.push(reader.add(path));
        } else if let Some(path) = line.strip_prefix(DELETE) {
            operations.push(Operation::Delete { path: path.trim().to_owned() });
        } else if let Some(path) = line.strip_prefix(UPDATE) {
            operations.push(reader.update(path.trim(), number)?);
        } else if !line.is_empty() {
            return Err(PatchError {
                message: format!(
                    "'{line}' is not a valid hunk header. Valid hunk headers: '{ADD}{{path}}', '{DELETE}{{path}}', \
                     '{UPDATE}{{path}}' (line {number})"
                ),
            });
        }
    }
}

/// The lines of a patch, with their numbers from 1.
struct Reader<'a> {
    lines: std::iter::Peekable<std::iter::Zip<std::ops::RangeFrom<usize>, std::str::Lines<'a>>>,
}

impl<'a> Reader<'a> {
    fn new(patch: &'a str) -> Self {
        Self { lines: (1..).zip(patch.lines()).peekable() }
    }

    fn next(&mut self) -> Option<(usize, &'a str)> {
        self.lines.next()
    }

    /// The next line, unless it starts something else.
    fn next_of_body(&mut self) -> Option<(usize, &'a str)> {
        self.lines.next_if(|(_, line)| !line.starts_with("*** "))
    }

    /// Blank lines, and the code fence that some models cannot do without.
    fn skip_wrapping(&mut self) {
        while self.lines.next_if(|(_, line)| line.trim().is_empty() || line.starts_with("```")).is_some() {}
    }

    fn add(&mut self, path: &str) -> Operation {
        let mut content = String::new();
        while let Some((_, line)) = self.next_of_body() {
            content.push_str(line.strip_prefix('+').unwrap_or(line));
            content.push('\n');
        }
        Operation::Add { path: path.trim().to_owned(), content }
    }

    fn update(&mut self, path: &str, number: usize) -> Result<Operation, PatchError> {
        let move_to = self
            .lines
            .next_if(|(_, line)| line.starts_with(MOVE))
            .map(|(_, line)| line[MOVE.len()..].trim().to_owned());
        let mut hunks: Vec<Hunk> = Vec::new();
        let mut open = Hunk::default();
        loop {
            if self.lines.next_if(|(_, line)| line.trim_end() == END_OF_FILE).is_some() {
                open.at_end = true;
                hunks.push(std::mem::take(&mut open));
                continue;
            }
            let Some((number, line)) = self.next_of_body() else { break };
            if let Some(hint) = hint(line) {
                if !open.lines.is_empty() {
                    hunks.push(std::mem::take(&mut open));
                }
                open.hints.extend(hint);
            } else {
                open.lines.push(self.hunk_line(line, number)?);
            }
            if open.patch_line == 0 {
                open.patch_line = number;
            }
        }
        if !open.lines.is_empty() {
            hunks.push(open);
        }
        if hunks.is_empty() && move_to.is_none() {
            return Err(PatchError {
                message: format!("Update file hunk for path '{path}' is empty (line {number})"),
            });
        }
        Ok(Operation::Update { path: path.to_owned(), move_to, hunks })
    }

    fn hunk_line(&mut self, line: &str, number: usize) -> Result<PatchLine, PatchError> {
        let mut chars = line.chars();
        match chars.next() {
            // Editors and models drop the space of a line that has nothing else.
            None => Ok(PatchLine::Keep(String::new())),
            Some(' ') => Ok(PatchLine::Keep(chars.as_str().to_owned())),
            Some('-') => Ok(PatchLine::Remove(chars.as_str().to_owned())),
            Some('+') => Ok(PatchLine::Insert(chars.as_str().to_owned())),
            Some(_) => Err(PatchError {
                message: format!(
                    "Unexpected line found in update hunk: '{line}'. Every line should start with ' ' (context line), \
                     '+' (added line), or '-' (removed line) (line {number})"
                ),
            }),
        }
    }
}

/// `Some` for a line that opens a hunk, with the text to look for if it has one.
fn hint(line: &str) -> Option<Option<String>> {
    let rest = line.strip_prefix("@@")?;
    let text = rest.trim();
    // The line numbers of a unified diff say nothing here; what may follow them is a hint like any other.
    let text = match text.strip_prefix('-').and_then(|numbers| numbers.split_once("@@")) {
        Some((numbers, after)) if numbers.bytes().all(|b| b.is_ascii_digit() || b" ,+".contains(&b)) => {
            after.trim()
        }
        _ => text,
    };
    Some(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: &[Operation]) {
        assert_eq!(parse(&format!("{BEGIN}\n{body}\n{END}")).as_deref(), Ok(expected), "{body}");
    }

    fn check_error(patch: &str, expected: &str) {
        assert_eq!(parse(patch).map_err(|error| error.message), Err(expected.to_owned()));
    }

    fn update(hunks: Vec<Hunk>) -> Operation {
        Operation::Update { path: "a.txt".to_owned(), move_to: None, hunks }
    }

    fn keep(text: &str) -> PatchLine {
        PatchLine::Keep(text.to_owned())
    }

    fn remove(text: &str) -> PatchLine {
        PatchLine::Remove(text.to_owned())
    }

    fn insert(text: &str) -> PatchLine {
        PatchLine::Insert(text.to_owned())
    }

    #[test]
    fn files_are_added_deleted_and_moved() {
        check(
            "*** Add File: new/n.txt\n+hello\n+\n+world\n*** Delete File: d.txt\n*** Update File: a.txt\n*** Move to: b.txt",
            &[
                Operation::Add { path: "new/n.txt".to_owned(), content: "hello\n\nworld\n".to_owned() },
                Operation::Delete { path: "d.txt".to_owned() },
                Operation::Update {
                    path: "a.txt".to_owned(),
                    move_to: Some("b.txt".to_owned()),
                    hunks: vec![],
                },
            ],
        );
    }

    #[test]
    fn hunks_are_separated_and_hinted() {
        check(
            "*** Update File: a.txt\n@@ class A\n@@ def f\n one\n-two\n+TWO\n\n@@\n-x\n*** End of File",
            &[update(vec![
                Hunk {
                    hints: vec!["class A".to_owned(), "def f".to_owned()],
                    lines: vec![keep("one"), remove("two"), insert("TWO"), keep("")],
                    at_end: false,
                    patch_line: 3,
                },
                Hunk { hints: vec![], lines: vec![remove("x")], at_end: true, patch_line: 9 },
            ])],
        );
    }

    #[test]
    fn the_marks_of_other_formats_are_understood() {
        check(
            "*** Update File: a.txt\r\n@@ -1,3 +1,4 @@ fn main()\r\n-x\r",
            &[update(vec![Hunk {
                hints: vec!["fn main()".to_owned()],
                lines: vec![remove("x")],
                at_end: false,
                patch_line: 3,
            }])],
        );
        let fenced = format!("\n```diff\n{BEGIN}\n*** Delete File: x\n{END}\n```\n");
        assert_eq!(parse(&fenced), Ok(vec![Operation::Delete { path: "x".to_owned() }]));
    }

    #[test]
    fn what_is_no_patch_is_refused_by_line() {
        check_error("not a patch", "The first line of the patch must be '*** Begin Patch'");
        check_error("", "The first line of the patch must be '*** Begin Patch'");
        check_error(
            "*** Begin Patch\n*** Delete File: x",
            "The last line of the patch must be '*** End Patch'",
        );
        check_error(
            "*** Begin Patch\n*** Frob File: x\n*** End Patch",
            "'*** Frob File: x' is not a valid hunk header. Valid hunk headers: '*** Add File: {path}', \
             '*** Delete File: {path}', '*** Update File: {path}' (line 2)",
        );
        check_error(
            "*** Begin Patch\n*** Update File: x\n*** End Patch",
            "Update file hunk for path 'x' is empty (line 2)",
        );
        check_error(
            "*** Begin Patch\n*** Update File: x\n@@\nfoo\n*** End Patch",
            "Unexpected line found in update hunk: 'foo'. Every line should start with ' ' (context line), '+' \
             (added line), or '-' (removed line) (line 4)",
        );
        check_error(&"x".repeat(PATCH_LIMIT + 1), "The patch is larger than 8388608 bytes");
    }
}
