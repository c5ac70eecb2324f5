//! Applying the hunks of one file to its content. Pure.

use std::cell::Cell;

use super::parse::{Hunk, PatchLine};

/// A hunk that has no place in the file. Counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HunkMismatch {
    pub(crate) hunk: usize,
    pub(crate) patch_line: usize,
    pub(crate) sought: SearchTarget,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SearchTarget {
    Hint(String),
    Lines(Vec<String>),
}

/// Tolerance of comparing lines. Each level is tried over the whole rest of the file before the next.
#[derive(Debug, Clone, Copy)]
enum MatchLevel {
    Exact,
    TrailingSpace,
    Trimmed,
}

const LIKENESSES: [MatchLevel; 3] = [MatchLevel::Exact, MatchLevel::TrailingSpace, MatchLevel::Trimmed];

/// Lines compared in search of one hunk. Honest files need a few per line; a file of one line repeated a million times
/// and a hunk of thousands of them would need billions.
const COMPARISON_LIMIT: usize = 20_000_000;

/// The content with the hunks applied, each behind the one before.
///
/// Lines that stay keep their bytes and endings, even where the patch has them slightly differently; new lines get the
/// ending that most lines have. Whether the file ends in a newline does not change.
pub(crate) fn apply(content: &[u8], hunks: &[Hunk]) -> Result<Vec<u8>, HunkMismatch> {
    let file = FileText::of(content);
    let mut edits = Vec::new();
    let mut cursor = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let misfit = |sought| HunkMismatch { hunk: index + 1, patch_line: hunk.patch_line, sought };
        for hint in &hunk.hints {
            let found =
                file.find_hint(hint, cursor).ok_or_else(|| misfit(SearchTarget::Hint(hint.clone())))?;
            cursor = found + 1;
        }
        let mut lines = hunk.lines.as_slice();
        let mut place = file.place(hunk, lines, cursor);
        // An empty line at the end of a hunk is often the patch's own and not the file's.
        if let (None, [shorter @ .., PatchLine::Keep(last)]) = (place, lines)
            && last.is_empty()
        {
            lines = shorter;
            place = file.place(hunk, lines, cursor);
        }
        let start = place.ok_or_else(|| {
            misfit(SearchTarget::Lines(old_lines(&hunk.lines).map(str::to_owned).collect()))
        })?;
        cursor = start + old_lines(lines).count();
        edits.push((start, lines));
    }
    Ok(file.rebuild(&edits))
}

/// The lines that a hunk expects to find.
fn old_lines(lines: &[PatchLine]) -> impl Iterator<Item = &str> {
    lines.iter().filter_map(|line| match line {
        PatchLine::Keep(text) | PatchLine::Remove(text) => Some(text.as_str()),
        PatchLine::Insert(_) => None,
    })
}

struct FileText<'a> {
    /// Without their endings.
    lines: Vec<&'a [u8]>,
    /// `\r\n` or `\n`, for each line; that of an unterminated last line is what it would have.
    endings: Vec<&'static [u8]>,
    usual_ending: &'static [u8],
    ends_in_newline: bool,
}

impl<'a> FileText<'a> {
    fn of(content: &'a [u8]) -> Self {
        let ends_in_newline = content.is_empty() || content.ends_with(b"\n");
        let body = content.strip_suffix(b"\n").unwrap_or(content);
        let mut lines: Vec<&[u8]> = body.split(|&byte| byte == b'\n').collect();
        if content.is_empty() {
            lines.clear();
        }
        let terminated = if ends_in_newline { lines.len() } else { lines.len() - 1 };
        let mut endings: Vec<&[u8]> = Vec::with_capacity(lines.len());
        for line in &mut lines[..terminated] {
            if let Some(text) = line.strip_suffix(b"\r") {
                *line = text;
                endings.push(b"\r\n");
            } else {
                endings.push(b"\n");
            }
        }
        let returns = endings.iter().filter(|ending| ending.len() == 2).count();
        let usual_ending: &[u8] = if returns * 2 > terminated { b"\r\n" } else { b"\n" };
        endings.resize(lines.len(), usual_ending);
        Self { lines, endings, usual_ending, ends_in_newline }
    }

    /// A line like the hint, or failing that, one that begins with it: `def f` for `def f(x):`.
    fn find_hint(&self, hint: &str, from: usize) -> Option<usize> {
        let hint = hint.as_bytes();
        let rest = &self.lines[from..];
        LIKENESSES
            .iter()
            .find_map(|likeness| rest.iter().position(|line| likeness.holds(line, hint)))
            .or_else(|| rest.iter().position(|line| line.trim_ascii().starts_with(hint.trim_ascii())))
            .map(|offset| from + offset)
    }

    /// Position of the lines of a hunk, at or behind `from`.
    fn place(&self, hunk: &Hunk, lines: &[PatchLine], from: usize) -> Option<usize> {
        let wanted: Vec<&[u8]> = old_lines(lines).map(str::as_bytes).collect();
        let last_start = self.lines.len().checked_sub(wanted.len())?;
        if wanted.is_empty() {
            // Only insertions: behind the hint, or with nothing to go by, at the end.
            return Some(if hunk.hints.is_empty() || hunk.at_end { self.lines.len() } else { from });
        }
        let first_start = if hunk.at_end { last_start } else { 0 }.max(from);
        let comparisons = Cell::new(COMPARISON_LIMIT);
        LIKENESSES.iter().find_map(|likeness| {
            (first_start..=last_start).take_while(|_| comparisons.get() > 0).find(|&start| {
                self.lines[start..].iter().zip(&wanted).all(|(line, wanted)| {
                    comparisons.set(comparisons.get().saturating_sub(1));
                    likeness.holds(line, wanted)
                })
            })
        })
    }

    fn rebuild(&self, edits: &[(usize, &[PatchLine])]) -> Vec<u8> {
        let mut output: Vec<(&[u8], &[u8])> = Vec::with_capacity(self.lines.len());
        let mut next = 0;
        for &(start, lines) in edits {
            output.extend((next..start).map(|index| self.line(index)));
            next = start;
            for line in lines {
                match line {
                    PatchLine::Keep(_) => {
                        output.push(self.line(next));
                        next += 1;
                    }
                    PatchLine::Remove(_) => next += 1,
                    PatchLine::Insert(text) => output.push((text.as_bytes(), self.usual_ending)),
                }
            }
        }
        output.extend((next..self.lines.len()).map(|index| self.line(index)));
        let mut content = Vec::new();
        let count = output.len();
        for (index, (line, ending)) in output.into_iter().enumerate() {
            content.extend_from_slice(line);
            if self.ends_in_newline || index + 1 < count {
                content.extend_from_slice(ending);
            }
        }
        content
    }

    fn line(&self, index: usize) -> (&[u8], &[u8]) {
        (self.lines[index], self.endings[index])
    }
}

impl MatchLevel {
    fn holds(self, line: &[u8], wanted: &[u8]) -> bool {
        match self {
            MatchLevel::Exact => line == wanted,
            MatchLevel::TrailingSpace => line.trim_ascii_end() == wanted.trim_ascii_end(),
            MatchLevel::Trimmed => line.trim_ascii() == wanted.trim_ascii(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse::{Operation, parse};
    use super::*;

    fn hunks(body: &str) -> Vec<Hunk> {
        let patch = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
        match parse(&patch).unwrap().remove(0) {
            Operation::Update { hunks, .. } => hunks,
            other => panic!("{other:?}"),
        }
    }

    fn check(content: &str, body: &str, expected: &str) {
        let applied = apply(content.as_bytes(), &hunks(body)).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(applied.as_deref(), Ok(expected), "{body}");
    }

    fn check_misfit(content: &str, body: &str, hunk: usize, sought: SearchTarget) {
        let misfit = apply(content.as_bytes(), &hunks(body)).unwrap_err();
        assert_eq!((misfit.hunk, misfit.sought), (hunk, sought), "{body}");
    }

    const NUMBERS: &str = "one\ntwo\nthree\nfour\n";

    #[test]
    fn lines_are_replaced_removed_and_inserted() {
        check(NUMBERS, "@@\n one\n-two\n+TWO\n three", "one\nTWO\nthree\nfour\n");
        check(NUMBERS, "@@\n-one\n@@\n three\n+3.5\n four", "two\nthree\n3.5\nfour\n");
        check(NUMBERS, "-one\n-two\n-three\n-four", "");
        check("", "+first", "first\n");
        check(NUMBERS, "@@\n+five", "one\ntwo\nthree\nfour\nfive\n");
        check(NUMBERS, "@@ two\n+2.5", "one\ntwo\n2.5\nthree\nfour\n");
    }

    #[test]
    fn hints_choose_among_equal_places() {
        let code = "class A:\n  def f():\n    pass\nclass B:\n  def f():\n    pass\n";
        let expected = "class A:\n  def f():\n    pass\nclass B:\n  def f():\n    return 1\n";
        check(code, "@@ class B:\n@@   def f():\n-    pass\n+    return 1", expected);
        check(code, "@@ class B\n-    pass\n+    return 1", expected);
        check("dup\na\ndup\n", "@@\n-dup\n+DUP\n*** End of File", "dup\na\nDUP\n");
    }

    #[test]
    fn spaces_need_not_agree_and_what_stays_keeps_its_own() {
        check("a  \n\tb\nc\n", "@@\n a\n-b\n+B", "a  \nB\nc\n");
        check("x\n  y\n", "@@\n-  x  \n+X\n y", "X\n  y\n");
        check("a\nb\n", "@@\n-a\n+A\n b\n", "A\nb\n");
    }

    #[test]
    fn endings_and_the_final_newline_stay() {
        check("x\r\ny\r\n", "@@\n-x\n+X\n+Z\n y", "X\r\nZ\r\ny\r\n");
        check("a\nb", "@@\n-b\n+B", "a\nB");
        check("a\nb", "@@\n a\n b\n+c", "a\nb\nc");
        check("a\r\nb", "@@\n a\n b\n+c", "a\r\nb\r\nc");
    }

    #[test]
    fn a_misfit_names_its_hunk() {
        check_misfit(NUMBERS, "@@\n-nope", 1, SearchTarget::Lines(vec!["nope".to_owned()]));
        check_misfit(NUMBERS, "@@\n-one\n@@ gone\n-two", 2, SearchTarget::Hint("gone".to_owned()));
        // Hunks come in the order of the file.
        check_misfit(NUMBERS, "@@\n-two\n@@\n-one", 2, SearchTarget::Lines(vec!["one".to_owned()]));
        check_misfit("a\nb\n", "@@\n-a\n*** End of File", 1, SearchTarget::Lines(vec!["a".to_owned()]));
        check_misfit("", "@@\n-a\n+b", 1, SearchTarget::Lines(vec!["a".to_owned()]));
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        assert_eq!(apply(b"\xff\nb\n", &hunks("@@\n-b\n+B")), Ok(b"\xff\nB\n".to_vec()));
    }

    proptest! {
        /// A hunk made of all old lines removed and all new ones inserted turns any file into any other.
        #[test]
        fn any_file_can_become_any_other(
            old in prop::collection::vec("[a-z \t]{0,6}", 1..12), new in prop::collection::vec("[a-z \t]{0,6}", 0..12),
            crlf: bool, terminated: bool,
        ) {
            let ending = if crlf { "\r\n" } else { "\n" };
            let text = |lines: &[String]| {
                let mut text = lines.join(ending);
                if terminated && !lines.is_empty() { text.push_str(ending); }
                text
            };
            // An unterminated file that ends in an empty line is the terminated file without it, and a lone
            // unterminated line shows no ending.
            prop_assume!(terminated || (old.last().is_some_and(|l| !l.is_empty()) && (!crlf || old.len() > 1)));
            let lines = old.iter().cloned().map(PatchLine::Remove).chain(new.iter().cloned().map(PatchLine::Insert)).collect();
            let hunk = Hunk { lines, ..Hunk::default() };
            let applied = apply(text(&old).as_bytes(), &[hunk]).unwrap();
            prop_assert_eq!(String::from_utf8(applied).unwrap(), text(&new));
        }

        /// Nonsense gives an answer, never a panic.
        #[test]
        fn hostile_patches_are_answered(content in "[a-c\r\n]{0,30}", body in "([ +@*-][a-c]{0,3}\n){0,12}") {
            let patch = format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch");
            if let Ok(operations) = parse(&patch) {
                for operation in operations {
                    if let Operation::Update { hunks, .. } = operation {
                        let _ = apply(content.as_bytes(), &hunks);
                    }
                }
            }
        }
    }
}
