//! Parser of unified diffs. It is tolerant: a diff that is cut off or wrongly counted is read as far as it makes sense.

use crate::gate;

/// Index line of diffs that tools make of two texts. They split at newlines, so the end of a file is an empty line of its own.
const OF_TEXTS: &str = "index 0000000..0000000";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Both,
    Removed,
    Added,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'d> {
    File { path: &'d str },
    Hunk(&'d str),
    Code { side: Side, number: Option<usize>, text: &'d str },
    Note(&'d str),
}

/// Position in a hunk: next line of each side, and how many of each the header has promised.
#[derive(Clone, Copy)]
struct Hunk {
    old: Option<usize>,
    new: Option<usize>,
    old_left: usize,
    new_left: usize,
}

pub(super) fn parse(diff: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut hunk: Option<Hunk> = None;
    // Whether `diff --git` has named the file that `---` and `+++` name again.
    let mut named = false;
    let mut is_of_texts = false;
    let mut source = gate::lines(diff).peekable();
    while let Some(line) = source.next() {
        if let Some(open) = &mut hunk
            && !open.ends_before(line, source.peek().copied())
        {
            lines.push(open.line(line));
        } else if let Some(paths) = line.strip_prefix("diff --git ") {
            hunk = None;
            named = true;
            drop_end(&mut lines, std::mem::take(&mut is_of_texts));
            lines.push(Line::File { path: new_path(paths) });
        } else if let Some(old) = line.strip_prefix("--- ")
            && let Some(new) = source.next_if(|next| next.starts_with("+++ "))
        {
            hunk = None;
            if !std::mem::take(&mut named) {
                let new = file(new.get(4..).unwrap_or_default(), "b/");
                lines.push(Line::File { path: if new == "/dev/null" { file(old, "a/") } else { new } });
            }
        } else if line.starts_with("@@") {
            hunk = Some(Hunk::new(line));
            lines.push(Line::Hunk(line));
        } else if line.starts_with("index ") {
            is_of_texts = line.starts_with(OF_TEXTS);
        } else if !line.is_empty() {
            lines.push(Line::Note(note(line)));
        }
    }
    drop_end(&mut lines, is_of_texts);
    lines
}

/// Removes the empty line that stands for the end of a file.
fn drop_end(lines: &mut Vec<Line<'_>>, is_of_texts: bool) {
    if is_of_texts {
        lines.pop_if(|line| matches!(line, Line::Code { side: Side::Both, text: "", .. }));
    }
}

/// A line between the name of a file and its changes. That a file is new or gone is said in words.
fn note(line: &str) -> &str {
    let mode = |prefixes: [&str; 2]| prefixes.into_iter().find_map(|prefix| line.strip_prefix(prefix));
    let is_program = |mode: &str| mode.ends_with("755");
    match (mode(["new file mode ", "create file mode "]), mode(["deleted file mode ", "delete file mode "])) {
        (Some(mode), _) if is_program(mode) => "new file, executable",
        (Some(_), _) => "new file",
        (None, Some(_)) => "deleted file",
        (None, None) => line,
    }
}

/// Path of a `---` or `+++` line, which may end in a tab and a date.
fn file<'d>(path: &'d str, prefix: &str) -> &'d str {
    let path = path.split('\t').next().unwrap_or_default();
    path.strip_prefix(prefix).unwrap_or(path)
}

/// The new one of the two paths of a `diff --git` line.
fn new_path(paths: &str) -> &str {
    match paths.rfind(" b/").and_then(|at| paths.get(at + 3..)) {
        Some(path) => path,
        None => paths,
    }
}

impl Hunk {
    /// Hunk of a header like `@@ -1,3 +1,4 @@`; one without numbers has no limits.
    fn new(header: &str) -> Self {
        let mut words = header.split_whitespace().skip(1);
        let mut range = |sign: char| {
            let word = words.next()?.strip_prefix(sign)?;
            let (start, count) = word.split_once(',').unwrap_or((word, "1"));
            Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
        };
        match (range('-'), range('+')) {
            (Some((old, old_left)), Some((new, new_left))) => {
                Self { old: Some(old), new: Some(new), old_left, new_left }
            }
            _ => Self { old: None, new: None, old_left: 0, new_left: 0 },
        }
    }

    /// Whether a line is not part of the hunk. Where no lines of a side are left, it may be the header of a file.
    fn ends_before(&self, line: &str, next: Option<&str>) -> bool {
        let header = line.starts_with("--- ") && next.is_some_and(|next| next.starts_with("+++ "));
        let complete = self.old_left == 0 && self.new_left == 0;
        let code = line.starts_with([' ', '+', '-', '\\']) || line.is_empty() && !complete;
        !code || header && (self.old_left == 0 || self.new_left == 0)
    }

    fn line<'d>(&mut self, line: &'d str) -> Line<'d> {
        let text = line.get(1..).unwrap_or_default();
        match line.bytes().next() {
            Some(b'\\') => Line::Note(line),
            Some(b'+') => Line::Code { side: Side::Added, number: self.next_new(), text },
            Some(b'-') => Line::Code { side: Side::Removed, number: self.next_old(), text },
            _ => {
                self.next_old();
                Line::Code { side: Side::Both, number: self.next_new(), text }
            }
        }
    }

    fn next_old(&mut self) -> Option<usize> {
        self.old_left = self.old_left.saturating_sub(1);
        let next = self.old.map(|number| number.saturating_add(1));
        std::mem::replace(&mut self.old, next)
    }

    fn next_new(&mut self) -> Option<usize> {
        self.new_left = self.new_left.saturating_sub(1);
        let next = self.new.map(|number| number.saturating_add(1));
        std::mem::replace(&mut self.new, next)
    }
}
