//! Differences between two sequences of lines or words, and unified diffs of texts.
//!
//! The functions of `similar` are generic over the items and include every algorithm, which adds some 100 KB to the program for
//! each type that is compared. Here items become numbers first, equal ones equal numbers, so that all callers share one copy of
//! one algorithm.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::hash::Hash;
use std::ops::Range;
use std::time::Instant;

use similar::algorithms::{Capture, Compact, Replace, myers};
pub use similar::{DiffOp, group_diff_ops as hunks};

/// Operations that turn one sequence into another. After the deadline they are correct, but not the fewest.
pub fn operations<'t, T: Eq + Hash + ?Sized>(
    old: &[&'t T],
    new: &[&'t T],
    deadline: Option<Instant>,
) -> Vec<DiffOp> {
    let mut numbers: HashMap<&'t T, u32> = HashMap::with_capacity(old.len());
    let mut numbered = |items: &[&'t T]| -> Vec<u32> {
        let mut number = |item| {
            let next = numbers.len() as u32;
            *numbers.entry(item).or_insert(next)
        };
        items.iter().map(|item| number(*item)).collect()
    };
    let (old, new) = (numbered(old), numbered(new));
    operations_of_numbers(&old, &new, deadline)
}

fn operations_of_numbers(old: &[u32], new: &[u32], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let compared: Result<(), Infallible> =
        myers::diff_deadline(&mut hook, old, 0..old.len(), new, 0..new.len(), deadline);
    match compared {
        Ok(()) => hook.into_inner().into_inner().into_ops(),
    }
}

/// Lines that a diff adds and removes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCounts {
    pub added: usize,
    pub removed: usize,
}

impl LineCounts {
    pub fn of(operations: &[DiffOp]) -> Self {
        let changes = operations.iter().filter(|operation| !matches!(operation, DiffOp::Equal { .. }));
        changes.fold(Self::default(), |counts, change| Self {
            added: counts.added + change.new_range().len(),
            removed: counts.removed + change.old_range().len(),
        })
    }
}

/// Lines of a text, each with its newline.
pub fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Unified diff of two texts with `context` unchanged lines around each change; empty if the texts are equal.
pub fn unified(
    old: &str,
    new: &str,
    (from, to): (&str, &str),
    context: usize,
    deadline: Option<Instant>,
) -> String {
    let (old, new) = (lines(old), lines(new));
    let mut diff = String::new();
    for hunk in hunks(operations(&old, &new, deadline), context) {
        if diff.is_empty() {
            let _ = writeln!(diff, "--- {from}\n+++ {to}");
        }
        push_hunk(&mut diff, &hunk, &old, &new);
    }
    diff
}

fn push_hunk(diff: &mut String, hunk: &[DiffOp], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let old_lines = position(&(first.old_range().start..last.old_range().end));
    let new_lines = position(&(first.new_range().start..last.new_range().end));
    let _ = writeln!(diff, "@@ -{old_lines} +{new_lines} @@");
    for operation in hunk {
        match operation {
            DiffOp::Equal { .. } => push_lines(diff, ' ', old, operation.old_range()),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                push_lines(diff, '-', old, operation.old_range());
                push_lines(diff, '+', new, operation.new_range());
            }
        }
    }
}

/// Lines of a hunk as its header has them: the first one and their number, unless that is one.
fn position(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn push_lines(diff: &mut String, sign: char, lines: &[&str], range: Range<usize>) {
    for line in lines.get(range).unwrap_or_default() {
        diff.push(sign);
        diff.push_str(line);
        if !line.ends_with('\n') {
            diff.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(old: &str, new: &str, expected: &Expect) {
        expected.assert_eq(&unified(old, new, ("a", "b"), 1, None));
    }

    #[test]
    fn hunks_have_their_lines_and_context() {
        check(
            "1\n2\n3\n4\n5\n6\n7\n",
            "1\ntwo\n3\n4\n5\n6\n7\n8\n",
            &expect![[r#"
                --- a
                +++ b
                @@ -1,3 +1,3 @@
                 1
                -2
                +two
                 3
                @@ -7 +7,2 @@
                 7
                +8
            "#]],
        );
    }

    #[test]
    fn a_missing_newline_is_shown() {
        check(
            "",
            "one",
            &expect![[r#"
                --- a
                +++ b
                @@ -0,0 +1 @@
                +one
                \ No newline at end of file
            "#]],
        );
    }

    #[test]
    fn equal_texts_have_no_diff() {
        check("same\n", "same\n", &expect![""]);
    }

    #[test]
    fn lines_are_counted() {
        let counts = |old, new| LineCounts::of(&operations(&lines(old), &lines(new), None));
        assert_eq!(counts("a\nb\nc\n", "a\nx\ny\nc\n"), LineCounts { added: 2, removed: 1 });
        assert_eq!(counts("a\n", "a\n"), LineCounts::default());
    }
}
