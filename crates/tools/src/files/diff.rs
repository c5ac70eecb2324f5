//! The diffs that people are shown before and after a change, in the form of git's.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use hangar_diff::{DiffOp, LineCounts, hunks, operations};
use hangar_protocol::data::CodeChanges;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;

/// Finding the smallest diff of two large, unlike texts takes quadratic time; after this, any diff will do.
const SEARCH_LIMIT: Duration = Duration::from_millis(500);

/// Bytes of a diff that is shown. A diff is for reading, and goes into the log.
const DIFF_LIMIT: usize = 256 * 1024;

/// Change of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    Created { path: &'a Path, new: &'a [u8] },
    Edited { path: &'a Path, old: &'a [u8], new: &'a [u8] },
    Moved { from: &'a Path, to: &'a Path, old: &'a [u8], new: &'a [u8] },
    Deleted { path: &'a Path, old: &'a [u8] },
}

/// A change as people see it, and as it is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) diff: String,
    pub(crate) changes: CodeChanges,
}

pub(crate) fn report(change: Change<'_>) -> Report {
    let (old, new) = match change {
        Change::Created { new, .. } => (Vec::new(), whole_lines(new)),
        Change::Deleted { old, .. } => (whole_lines(old), Vec::new()),
        // The empty piece behind a final newline stays, so that adding or removing that newline shows.
        Change::Edited { old, new, .. } | Change::Moved { old, new, .. } => (pieces(old), pieces(new)),
    };
    let deadline = Some(Instant::now() + SEARCH_LIMIT);
    let ops = operations(&old, &new, deadline);
    let LineCounts { added, removed } = LineCounts::of(&ops);
    let changes = CodeChanges {
        files_modified: vec![change.path().display().to_string()],
        lines_added: added as u64,
        lines_removed: removed as u64,
    };
    let mut diff = header(change);
    match change {
        Change::Created { .. } => {
            let _ = writeln!(diff, "@@ -1,0 +1,{} @@", new.len());
            push_lines(&mut diff, '+', &new);
        }
        Change::Deleted { .. } => {
            let _ = writeln!(diff, "@@ -1,{} +0,0 @@", old.len());
            push_lines(&mut diff, '-', &old);
        }
        Change::Edited { .. } | Change::Moved { .. } => {
            let hunks = hunks(ops, CONTEXT);
            if hunks.is_empty() {
                diff.push('\n');
            }
            for hunk in hunks {
                push_hunk(&mut diff, &hunk, &old, &new);
            }
        }
    }
    Report { diff: bounded(diff), changes }
}

/// Lines that were only looked at, in the clothes of a diff without changes.
pub(crate) fn unchanged(path: &Path, first_line: usize, text: &str) -> String {
    let lines = pieces(text.as_bytes());
    let mut diff = header(Change::Edited { path, old: &[], new: &[] });
    let count = lines.len();
    let _ = writeln!(diff, "@@ -{first_line},{count} +{first_line},{count} @@");
    push_lines(&mut diff, ' ', &lines);
    bounded(diff)
}

/// Adds up changes of several files.
pub(crate) fn sum(reports: impl IntoIterator<Item = Report>) -> Report {
    let mut diffs = Vec::new();
    let mut changes = CodeChanges::default();
    for report in reports {
        diffs.push(report.diff);
        changes.add(&report.changes);
    }
    Report { diff: bounded(diffs.join("\n")), changes }
}

impl<'a> Change<'a> {
    fn path(self) -> &'a Path {
        match self {
            Change::Created { path, .. } | Change::Edited { path, .. } | Change::Deleted { path, .. } => path,
            Change::Moved { to, .. } => to,
        }
    }
}

fn header(change: Change<'_>) -> String {
    let nothing = Path::new("/dev/null");
    let (from, to, mode, index) = match change {
        Change::Created { path, .. } => (nothing, path, "create file mode 100644\n", "0000000..0000000"),
        Change::Edited { path, .. } => (path, path, "", "0000000..0000000 100644"),
        Change::Moved { from, to, .. } => (from, to, "", "0000000..0000000 100644"),
        Change::Deleted { path, .. } => (path, nothing, "", "0000000..0000000 100644"),
    };
    // The first line of a created file names it on both sides.
    let first = if matches!(change, Change::Created { .. }) { to } else { from };
    let (first, from, to) = (first.display(), from.display(), to.display());
    format!("\ndiff --git a{first} b{to}\n{mode}index {index}\n--- a{from}\n+++ b{to}\n")
}

fn push_hunk(diff: &mut String, hunk: &[DiffOp], old: &[&[u8]], new: &[&[u8]]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let (old_range, new_range) =
        (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end);
    let _ = writeln!(
        diff,
        "@@ -{},{} +{},{} @@",
        old_range.start + 1,
        old_range.len(),
        new_range.start + 1,
        new_range.len()
    );
    for op in hunk {
        match *op {
            DiffOp::Equal { .. } => push_lines(diff, ' ', &old[op.old_range()]),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                push_lines(diff, '-', &old[op.old_range()]);
                push_lines(diff, '+', &new[op.new_range()]);
            }
        }
    }
}

fn push_lines(diff: &mut String, mark: char, lines: &[&[u8]]) {
    for line in lines {
        diff.push(mark);
        diff.push_str(&String::from_utf8_lossy(line));
        diff.push('\n');
        if diff.len() > DIFF_LIMIT {
            return;
        }
    }
}

/// The text between newlines, without the carriage returns of files that have them.
fn pieces(text: &[u8]) -> Vec<&[u8]> {
    text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
}

fn whole_lines(text: &[u8]) -> Vec<&[u8]> {
    pieces(text.strip_suffix(b"\n").unwrap_or(text))
}

fn bounded(mut diff: String) -> String {
    if diff.len() > DIFF_LIMIT {
        diff.truncate(diff.floor_char_boundary(DIFF_LIMIT));
        diff.push_str("\n[diff cut]\n");
    }
    diff
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(change: Change<'_>, expected: &Expect) {
        let Report { diff, changes } = report(change);
        expected.assert_eq(&format!("{diff}+{} -{}", changes.lines_added, changes.lines_removed));
    }

    const PATH: &str = "/w/a.txt";

    fn check_edit(old: &str, new: &str, expected: &Expect) {
        check(Change::Edited { path: Path::new(PATH), old: old.as_bytes(), new: new.as_bytes() }, expected);
    }

    #[test]
    fn a_created_file_is_all_added() {
        check(
            Change::Created { path: Path::new(PATH), new: b"one\ntwo\n" },
            &expect![[r#"

                diff --git a/w/a.txt b/w/a.txt
                create file mode 100644
                index 0000000..0000000
                --- a/dev/null
                +++ b/w/a.txt
                @@ -1,0 +1,2 @@
                +one
                +two
                +2 -0"#]],
        );
    }

    #[test]
    fn an_edit_shows_its_surroundings() {
        check_edit(
            "1\n2\n3\n4\n5\n6\n7\n8\n",
            "1\n2\n3\n4\nfive\n6\n7\n8\n",
            &expect![[r#"

                diff --git a/w/a.txt b/w/a.txt
                index 0000000..0000000 100644
                --- a/w/a.txt
                +++ b/w/a.txt
                @@ -2,7 +2,7 @@
                 2
                 3
                 4
                -5
                +five
                 6
                 7
                 8
                +1 -1"#]],
        );
    }

    #[test]
    fn the_end_of_a_file_shows_as_an_empty_line() {
        check_edit(
            "one\r\ntwo\r\n",
            "one\r\nTWO\r\n",
            &expect![[r#"

                diff --git a/w/a.txt b/w/a.txt
                index 0000000..0000000 100644
                --- a/w/a.txt
                +++ b/w/a.txt
                @@ -1,3 +1,3 @@
                 one
                -two
                +TWO
                 
                +1 -1"#]],
        );
    }

    #[test]
    fn distant_changes_are_separate_hunks() {
        let old: String = (1..=20).map(|n| format!("l{n}\n")).collect();
        let new = old.replace("l2\n", "L2\n").replace("l15\n", "L15\n");
        check_edit(
            &old,
            &new,
            &expect![[r#"

                diff --git a/w/a.txt b/w/a.txt
                index 0000000..0000000 100644
                --- a/w/a.txt
                +++ b/w/a.txt
                @@ -1,5 +1,5 @@
                 l1
                -l2
                +L2
                 l3
                 l4
                 l5
                @@ -12,7 +12,7 @@
                 l12
                 l13
                 l14
                -l15
                +L15
                 l16
                 l17
                 l18
                +2 -2"#]],
        );
    }

    #[test]
    fn a_move_names_both_places() {
        check(
            Change::Moved { from: Path::new(PATH), to: Path::new("/w/b.txt"), old: b"x", new: b"x" },
            &expect![[r#"

                diff --git a/w/a.txt b/w/b.txt
                index 0000000..0000000 100644
                --- a/w/a.txt
                +++ b/w/b.txt

                +0 -0"#]],
        );
    }

    #[test]
    fn a_deleted_file_is_all_removed() {
        check(
            Change::Deleted { path: Path::new(PATH), old: b"one\n\xff\n" },
            &expect![[r#"

                diff --git a/w/a.txt b/dev/null
                index 0000000..0000000 100644
                --- a/w/a.txt
                +++ b/dev/null
                @@ -1,2 +0,0 @@
                -one
                -�
                +0 -2"#]],
        );
    }

    #[test]
    fn a_huge_diff_is_cut() {
        let new = "line\n".repeat(200_000);
        let Report { diff, changes } = report(Change::Created { path: Path::new(PATH), new: new.as_bytes() });
        assert!(diff.len() < DIFF_LIMIT + 100 && diff.ends_with("[diff cut]\n"));
        assert_eq!(changes.lines_added, 200_000);
    }
}
