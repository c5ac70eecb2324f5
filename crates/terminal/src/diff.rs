//! Diffs as rows: line numbers, code in its colours, and the words that changed.
//!
//! The input is a unified diff as git and tools write it, or two texts. Diffs of models may have wrong or no line
//! numbers: lines are classified by their first character, and numbers are shown if the hunk has them. Rows are not
//! wrapped.

mod parse;

use std::collections::HashMap;
use std::ops::Range;

use hangar_diff::{DiffOp, operations};
use parse::{Line, Side, parse};
use unicode_segmentation::UnicodeSegmentation;

use crate::format::plural;
use crate::gate;
use crate::highlight::Highlighter;
use crate::row::{Row, Span, Style};
use crate::theme::Theme;

/// Most lines in a row of changed ones whose words are compared.
const MOST_COMPARED_LINES: usize = 200;

/// Longest line whose words are compared, in bytes.
const LONGEST_COMPARED: usize = 2_000;

/// Most lines of two texts that are compared; longer texts are shown as replaced.
const MOST_LINES: usize = 50_000;

/// Limit of the work of a comparison, which is about the number of lines times the number of those that differ.
const MOST_WORK: usize = 25_000_000;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Size of a diff.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffSummary {
    pub added: usize,
    pub removed: usize,
    pub files: usize,
}

/// Numbers of added and removed lines and of files of a unified diff.
pub fn summary(diff: &str) -> DiffSummary {
    let mut summary = DiffSummary::default();
    for line in parse(diff) {
        match line {
            Line::File { .. } => summary.files += 1,
            Line::Code { side: Side::Added, .. } => summary.added += 1,
            Line::Code { side: Side::Removed, .. } => summary.removed += 1,
            Line::Code { side: Side::Both, .. } | Line::Hunk(_) | Line::Note(_) => {}
        }
    }
    summary
}

/// Rows of a unified diff, at most `max_rows`; the last one says how many are left out.
pub fn rows(diff: &str, theme: &Theme, max_rows: usize) -> Vec<Row> {
    let lines = parse(diff);
    let kept = if lines.len() > max_rows { max_rows.saturating_sub(1) } else { lines.len() };
    let (shown, hidden) = lines.split_at(kept);
    let mut painter = Painter::new(theme, shown);
    let mut rows = painter.rows(shown);
    if !hidden.is_empty() && max_rows > 0 {
        rows.push(left_out(hidden.len(), theme));
    }
    rows
}

/// Rows of a unified diff below the name of its file: that is left out, if it is one file, and so are the headers of hunks, since
/// the lines have numbers.
pub fn inline_rows(diff: &str, theme: &Theme, max_rows: usize) -> Vec<Row> {
    let lines = parse(diff);
    let is_one = lines.iter().filter(|line| matches!(line, Line::File { .. })).count() == 1;
    // Of two lines at most one is a header that is left out.
    let (lines, hidden) = lines.split_at(lines.len().min(max_rows.saturating_mul(2).saturating_add(2)));
    let hidden = hidden.iter().filter(|line| matches!(line, Line::Code { .. } | Line::Note(_))).count();
    let mut inline = Vec::new();
    // Only code has other code before it in the same file.
    let mut follows = false;
    for (line, row) in lines.iter().zip(Painter::new(theme, lines).rows(lines)) {
        match line {
            Line::File { .. } => {
                follows = false;
                inline.extend((!is_one).then_some(row));
            }
            Line::Hunk(_) if follows => inline.push(Row::styled("⋯", theme.dim)),
            Line::Hunk(_) => {}
            Line::Note(_) => inline.push(row),
            Line::Code { .. } => {
                follows = true;
                inline.push(row);
            }
        }
    }
    let all = inline.len() + hidden;
    if all > max_rows {
        inline.truncate(max_rows.saturating_sub(1));
        inline.extend((max_rows > 0).then(|| left_out(all - inline.len(), theme)));
    }
    inline
}

fn left_out(lines: usize, theme: &Theme) -> Row {
    Row::styled(format!("… {lines} more {}", plural("line", lines)), theme.dim)
}

/// Place of each of the rows that [`rows`] makes: file, line and code. Rows that are no code have none.
pub fn places(diff: &str, max_rows: usize) -> Vec<Option<String>> {
    let mut file = "";
    let mut places = Vec::new();
    for line in parse(diff).iter().take(max_rows) {
        places.push(match line {
            Line::File { path } => {
                file = path;
                None
            }
            Line::Code { side, number, text } => {
                let sign = match side {
                    Side::Both => ' ',
                    Side::Removed => '-',
                    Side::Added => '+',
                };
                let number = number.map(|number| format!(":{number}")).unwrap_or_default();
                Some(format!("{file}{number} `{sign}{}`", text.trim_end()))
            }
            Line::Hunk(_) | Line::Note(_) => None,
        });
    }
    places
}

/// Indexes of the rows that [`rows`] makes which name a file.
pub fn files(diff: &str, max_rows: usize) -> Vec<usize> {
    let lines = parse(diff);
    let files = lines.iter().take(max_rows).enumerate().filter(|(_, line)| matches!(line, Line::File { .. }));
    files.map(|(at, _)| at).collect()
}

/// Rows of the change from one text of a file to another.
pub fn rows_between(old: &str, new: &str, path: &str, theme: &Theme, max_rows: usize) -> Vec<Row> {
    rows(&unified(old, new, path), theme, max_rows)
}

/// Unified diff of two texts; empty if they are equal.
pub fn unified(old: &str, new: &str, path: &str) -> String {
    if old == new {
        return String::new();
    }
    let path = gate::visible(path);
    if !comparable(old, new) {
        return replaced(old, new, &path);
    }
    hangar_diff::unified(old, new, (&path, &path), CONTEXT, None)
}

/// Whether the comparison of two texts is within the bounds.
fn comparable(old: &str, new: &str) -> bool {
    let mut counts: HashMap<&str, isize> = HashMap::new();
    old.lines().for_each(|line| *counts.entry(line).or_default() += 1);
    new.lines().for_each(|line| *counts.entry(line).or_default() -= 1);
    let lines = old.lines().count() + new.lines().count();
    let different: usize = counts.values().map(|count| count.unsigned_abs()).sum();
    lines <= MOST_LINES && lines.saturating_mul(different) <= MOST_WORK
}

/// Unified diff that removes all lines between the common start and end of two texts, and adds the new ones.
fn replaced(old: &str, new: &str, path: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let shorter = old.len().min(new.len()) - start;
    let end =
        old.iter().rev().zip(new.iter().rev()).take(shorter).take_while(|(old, new)| old == new).count();
    let (removed, added) = (start..old.len() - end, start..new.len() - end);
    let mut diff = format!(
        "--- {path}\n+++ {path}\n@@ -{},{} +{},{} @@\n",
        start + 1,
        removed.len(),
        start + 1,
        added.len()
    );
    for (sign, lines) in [('-', old.get(removed)), ('+', new.get(added))] {
        for line in lines.unwrap_or_default() {
            diff.push(sign);
            diff.push_str(line);
            diff.push('\n');
        }
    }
    diff
}

/// Makes rows of lines, with the state of the code on both sides.
struct Painter<'t> {
    theme: &'t Theme,
    /// Columns of the widest line number.
    digits: usize,
    fresh: Highlighter,
    old: Highlighter,
    new: Highlighter,
}

impl<'t> Painter<'t> {
    fn new(theme: &'t Theme, lines: &[Line<'_>]) -> Self {
        let number = |line: &Line<'_>| match line {
            Line::Code { number, .. } => *number,
            Line::File { .. } | Line::Hunk(_) | Line::Note(_) => None,
        };
        let digits = lines.iter().filter_map(number).max().map_or(0, |most| most.to_string().len());
        let plain = Highlighter::plain(theme);
        Self { theme, digits, fresh: plain.clone(), old: plain.clone(), new: plain }
    }

    fn rows(&mut self, lines: &[Line<'_>]) -> Vec<Row> {
        let mut rows = Vec::with_capacity(lines.len());
        let mut rest = lines;
        while let Some((line, after)) = rest.split_first() {
            let changed = rest.iter().take_while(|line| is_changed(line)).count();
            if changed > 0 {
                let (group, after) = rest.split_at(changed);
                self.group(group, &mut rows);
                rest = after;
            } else {
                rows.push(self.row(line));
                rest = after;
            }
        }
        rows
    }

    /// Row of a line that is not changed.
    fn row(&mut self, line: &Line<'_>) -> Row {
        match line {
            Line::File { path } => {
                self.fresh = Highlighter::for_path(path, self.theme);
                Row::styled(gate::visible(path), self.theme.heading).unwrapped()
            }
            Line::Hunk(header) => {
                self.old = self.fresh.clone();
                self.new = self.fresh.clone();
                Row::styled(gate::visible(header), self.theme.hunk).unwrapped()
            }
            Line::Note(text) => Row::styled(gate::visible(text), self.theme.dim).unwrapped(),
            Line::Code { side, number, text } => {
                let text = gate::visible(text);
                self.old.line(&text);
                let spans = self.new.line(&text);
                self.code(*side, *number, spans)
            }
        }
    }

    /// Rows of lines that are all changed.
    fn group(&mut self, group: &[Line<'_>], rows: &mut Vec<Row>) {
        let texts: Vec<String> = group.iter().map(|line| gate::visible(text_of(line)).into_owned()).collect();
        let words = words(group, &texts);
        for ((line, text), words) in group.iter().zip(&texts).zip(&words) {
            let Line::Code { side, number, .. } = line else { continue };
            let (highlighter, look, word) = match side {
                Side::Removed => (&mut self.old, self.theme.removed_line, self.theme.removed_word),
                Side::Added | Side::Both => (&mut self.new, self.theme.added_line, self.theme.added_word),
            };
            let code = highlighter.line(text);
            let keeps_colours = look.fg.is_none() && look.bg.is_some();
            let spans = if keeps_colours {
                code.into_iter().map(|span| Span::new(span.text, span.style.with(look))).collect()
            } else {
                vec![Span::new(text.as_str(), look)]
            };
            let spans = emphasised(&spans, words, word);
            rows.push(self.code(*side, *number, spans));
        }
    }

    fn code(&self, side: Side, number: Option<usize>, spans: Vec<Span>) -> Row {
        let (sign, style) = match side {
            Side::Both => (' ', Style::PLAIN),
            Side::Removed => ('-', self.theme.removed.with(background(self.theme.removed_line))),
            Side::Added => ('+', self.theme.added.with(background(self.theme.added_line))),
        };
        let number = number.map_or(String::new(), |number| number.to_string());
        let mut row = Row::default().unwrapped();
        if self.digits > 0 {
            row.push(Span::new(format!("{number:>width$} ", width = self.digits), self.theme.line_number));
        }
        row.push(Span::new(format!("{sign} "), style));
        row.spans.extend(spans.into_iter().filter(|span| !span.text.is_empty()));
        row
    }
}

fn background(style: Style) -> Style {
    Style { bg: style.bg, ..Style::PLAIN }
}

fn is_changed(line: &Line<'_>) -> bool {
    matches!(line, Line::Code { side: Side::Removed | Side::Added, .. })
}

fn text_of<'d>(line: &Line<'d>) -> &'d str {
    match line {
        Line::Code { text, .. } | Line::Note(text) | Line::Hunk(text) => text,
        Line::File { path } => path,
    }
}

/// Ranges of each line that changed, where removed lines have added ones that are much like them.
fn words(group: &[Line<'_>], texts: &[String]) -> Vec<Vec<Range<usize>>> {
    let mut words = vec![Vec::new(); group.len()];
    if group.len() > MOST_COMPARED_LINES || texts.iter().any(|text| text.len() > LONGEST_COMPARED) {
        return words;
    }
    let of = |wanted: Side| -> Vec<usize> {
        let is = |line: &Line<'_>| matches!(line, Line::Code { side, .. } if *side == wanted);
        group.iter().enumerate().filter(|(_, line)| is(line)).map(|(at, _)| at).collect()
    };
    let (removed, added) = (of(Side::Removed), of(Side::Added));
    let lines = |places: &[usize]| -> Vec<&str> {
        places.iter().filter_map(|at| texts.get(*at)).map(String::as_str).collect()
    };
    let (old, new) = (lines(&removed), lines(&added));
    for replaced in operations(&old, &new, None) {
        let DiffOp::Replace { .. } = replaced else { continue };
        let (old, new) =
            (words_of(&removed, texts, replaced.old_range()), words_of(&added, texts, replaced.new_range()));
        let (old_words, new_words): (Vec<&str>, Vec<&str>) =
            (old.iter().map(|word| word.text).collect(), new.iter().map(|word| word.text).collect());
        let compared = operations(&old_words, &new_words, None);
        if !are_alike(&compared, old.len() + new.len()) {
            continue;
        }
        for change in compared.iter().filter(|operation| !matches!(operation, DiffOp::Equal { .. })) {
            let changed =
                old.get(change.old_range()).into_iter().chain(new.get(change.new_range())).flatten();
            changed.for_each(|word| word.mark(&mut words));
        }
    }
    for (ranges, text) in words.iter_mut().zip(texts) {
        // A line without a counterpart is all new, as its colour shows.
        if ranges.iter().map(Range::len).sum::<usize>() == text.len() {
            ranges.clear();
        }
    }
    words
}

/// A word of a line.
struct Word<'t> {
    line: usize,
    at: usize,
    text: &'t str,
}

impl Word<'_> {
    /// Adds the word to the ranges of its line.
    fn mark(&self, words: &mut [Vec<Range<usize>>]) {
        let Some(ranges) = words.get_mut(self.line) else { return };
        let end = self.at + self.text.len();
        match ranges.last_mut() {
            Some(last) if last.end == self.at => last.end = end,
            _ => ranges.push(self.at..end),
        }
    }
}

/// Words of some of the lines at `places`.
fn words_of<'t>(places: &[usize], texts: &'t [String], lines: Range<usize>) -> Vec<Word<'t>> {
    let lines = places.get(lines).unwrap_or_default();
    let texts = lines.iter().filter_map(|line| texts.get(*line).map(|text| (*line, text)));
    let words = texts.flat_map(|(line, text)| {
        text.split_word_bound_indices().map(move |(at, text)| Word { line, at, text })
    });
    words.collect()
}

/// Whether at least half of the words are equal. Marks in lines that have little in common are noise.
fn are_alike(operations: &[DiffOp], words: usize) -> bool {
    let equal = operations.iter().filter(|operation| matches!(operation, DiffOp::Equal { .. }));
    4 * equal.map(|operation| operation.old_range().len()).sum::<usize>() >= words
}

/// Spans with another style in some ranges of their text.
fn emphasised(spans: &[Span], ranges: &[Range<usize>], style: Style) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    let mut start = 0;
    let mut ranges = ranges.iter().peekable();
    for span in spans {
        let end = start + span.text.len();
        let mut at = start;
        while at < end {
            while ranges.next_if(|range| range.end <= at).is_some() {}
            let (to, look) = match ranges.peek() {
                Some(range) if range.start <= at => (range.end.min(end), style),
                Some(range) => (range.start.min(end), span.style),
                None => (end, span.style),
            };
            let part = span.text.get(at - start..to - start).unwrap_or_default();
            match out.last_mut() {
                Some(last) if last.style == look => last.text.push_str(part),
                _ => out.push(Span::new(part, look)),
            }
            at = to;
        }
        start = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// Rows as text, changed words in brackets.
    fn shown(rows: &[Row]) -> String {
        let theme = Theme::ansi();
        let mut out = String::new();
        for row in rows {
            for span in &row.spans {
                if [theme.added_word, theme.removed_word].contains(&span.style) {
                    out.push_str(&format!("[{}]", span.text));
                } else {
                    out.push_str(&span.text);
                }
            }
            out.push_str("⏎\n");
        }
        out
    }

    fn check(diff: &str, max_rows: usize, expected: Expect) {
        expected.assert_eq(&format!("{}{:?}", shown(&rows(diff, &Theme::ansi(), max_rows)), summary(diff)));
    }

    const GIT: &str = "\
diff --git a/src/a.rs b/src/a.rs
index 1111111..2222222 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -98,5 +98,5 @@ fn main() {
 \tlet a = 1;
-    let total = sum(a, b);
---- a comment of SQL
+    let total = product(a, c);
     end();
+
@@ -200 +200,2 @@
-x
\\ No newline at end of file
+y
+z
diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
diff --git a/p.png b/p.png
Binary files a/p.png and b/p.png differ
";

    #[test]
    fn a_diff_of_git_has_numbers_and_changed_words() {
        check(
            GIT,
            100,
            expect![[r#"
                src/a.rs⏎
                @@ -98,5 +98,5 @@ fn main() {⏎
                 98           let a = 1;⏎
                 99 -     let total = [sum](a, [b]);⏎
                100 - --- a comment of SQL⏎
                 99 +     let total = [product](a, [c]);⏎
                100       end();⏎
                101 + ⏎
                @@ -200 +200,2 @@⏎
                200 - x⏎
                \ No newline at end of file⏎
                200 + y⏎
                201 + z⏎
                new name.txt⏎
                similarity index 100%⏎
                rename from old name.txt⏎
                rename to new name.txt⏎
                p.png⏎
                Binary files a/p.png and b/p.png differ⏎
                DiffSummary { added: 4, removed: 3, files: 3 }"#]],
        );
    }

    #[test]
    fn rows_are_bounded() {
        check(
            GIT,
            4,
            expect![[r#"
            src/a.rs⏎
            @@ -98,5 +98,5 @@ fn main() {⏎
            98           let a = 1;⏎
            … 16 more lines⏎
            DiffSummary { added: 4, removed: 3, files: 3 }"#]],
        );
        check(
            GIT,
            1,
            expect![[r#"
            … 19 more lines⏎
            DiffSummary { added: 4, removed: 3, files: 3 }"#]],
        );
        check(GIT, 0, expect!["DiffSummary { added: 4, removed: 3, files: 3 }"]);
    }

    #[test]
    fn the_end_of_a_file_is_no_line_of_its_own() {
        check(
            "\ndiff --git a/w/a b/w/a\nindex 0000000..0000000 100644\n--- a/w/a\n+++ b/w/a\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n \n",
            9,
            expect![[r#"
                w/a⏎
                @@ -1,3 +1,3 @@⏎
                1   one⏎
                2 - two⏎
                2 + TWO⏎
                DiffSummary { added: 1, removed: 1, files: 1 }"#]],
        );
        // An empty line of git's is one of the file.
        check(
            "diff --git a/a b/a\nindex 1111111..2222222 100644\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-two\n+TWO\n \n",
            9,
            expect![[r#"
                a⏎
                @@ -1,2 +1,2 @@⏎
                1 - two⏎
                1 + TWO⏎
                2   ⏎
                DiffSummary { added: 1, removed: 1, files: 1 }"#]],
        );
    }

    #[test]
    fn diffs_without_numbers_or_with_wrong_ones_are_shown_whole() {
        check(
            "@@ fn main\n-a\n+b\n",
            9,
            expect![[r#"
            @@ fn main⏎
            - a⏎
            + b⏎
            DiffSummary { added: 1, removed: 1, files: 0 }"#]],
        );
        check(
            "--- a/x\t2026\n+++ b/x\n@@ -1,9 +1 @@\n-a\n+b\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n+d\n",
            20,
            expect![[r#"
                x⏎
                @@ -1,9 +1 @@⏎
                1 - a⏎
                1 + b⏎
                y⏎
                @@ -1 +0,0 @@⏎
                1 - c⏎
                0 + d⏎
                DiffSummary { added: 2, removed: 2, files: 2 }"#]],
        );
        check(
            "no diff at all\n\n+but\n",
            9,
            expect![[r#"
            no diff at all⏎
            +but⏎
            DiffSummary { added: 0, removed: 0, files: 0 }"#]],
        );
        check(
            "@@ -99999999999999999999 +18446744073709551615,2 @@\n+a\n+b",
            9,
            expect![[r#"
            @@ -99999999999999999999 +18446744073709551615,2 @@⏎
            + a⏎
            + b⏎
            DiffSummary { added: 2, removed: 0, files: 0 }"#]],
        );
    }

    #[test]
    fn texts_are_compared() {
        let shown_between =
            |old: &str, new: &str| shown(&rows_between(old, new, "a\u{1b}.py", &Theme::ansi(), 50));
        expect![[r#"
            a␛.py⏎
            @@ -1,6 +1,6 @@⏎
            1   a⏎
            2   b⏎
            3   c⏎
            4 - d⏎
            4 + [D ]d⏎
            5   e⏎
            6 - f⏎
            6 + f⏎
            \ No newline at end of file⏎
        "#]]
        .assert_eq(&shown_between("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nD d\ne\nf"));
        expect![[r#"
            a␛.py⏎
            @@ -0,0 +1 @@⏎
            1 + new⏎
        "#]]
        .assert_eq(&shown_between("", "new\n"));
        expect![[""]].assert_eq(&shown_between("same", "same"));
    }

    #[test]
    fn huge_texts_are_replaced_between_their_common_ends() {
        let text = |middle: &str| format!("{}{}{}", "a\n".repeat(3), middle.repeat(6000), "z\n".repeat(3));
        let diff = unified(&text("old\n"), &text("new\n"), "x");
        assert_eq!(summary(&diff), DiffSummary { added: 6000, removed: 6000, files: 1 });
        assert!(diff.starts_with("--- x\n+++ x\n@@ -4,6000 +4,6000 @@\n-old\n"));
    }

    #[test]
    fn a_theme_with_backgrounds_keeps_the_colours_of_code() {
        let theme = Theme::dark();
        let rows = rows(
            "+++ b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-let a = \"x\";\n+let a = \"y\";\n",
            &theme,
            9,
        );
        let added = rows.last().unwrap();
        assert_eq!(added.text(), "1 + let a = \"y\";");
        let keyword = added.spans.iter().find(|span| span.text.starts_with("let")).unwrap();
        assert_eq!(keyword.style, theme.syntax.keyword.with(theme.added_line));
        assert!(added.spans.iter().any(|span| span.style == theme.added_word));
    }

    #[test]
    fn no_attack_leaves_a_character_that_a_terminal_obeys() {
        for (name, text) in gate::attacks::ATTACKS {
            let diff = format!(
                "diff --git a/{text} b/{text}\nmode {text}\n--- {text}\n+++ {text}\n@@ -1 +1 @@ {text}\n-{text}\n+{text}x\n {text}"
            );
            let between = rows_between(text, &format!("{text}y"), text, &Theme::dark(), 50);
            for row in rows(&diff, &Theme::dark(), 50).iter().chain(&between) {
                assert_eq!(gate::attacks::obeyed(&row.text()), None, "{name}");
            }
        }
    }

    #[test]
    fn controls_in_paths_and_lines_are_marks() {
        check(
            "--- a/\u{1b}]0;t\u{7}\n+++ b/\u{1b}]0;t\u{7}\n@@ -1 +1 @@ \u{202e}\n-\u{9b}2J\n+a\tb\u{200b}\r\n",
            9,
            expect![[r#"
                ␛]0;t␇⏎
                @@ -1 +1 @@ <U+202E>⏎
                1 - <U+[009B]>[2J]⏎
                1 + [a       b]<U+[200B]>⏎
                DiffSummary { added: 1, removed: 1, files: 1 }"#]],
        );
    }
}
