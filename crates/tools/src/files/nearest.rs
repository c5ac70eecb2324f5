//! The text of a file that is most like one that is not in it. Pure.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// Lines of the wanted text that are looked for, and lines that are shown.
const LINES: usize = 20;

/// Bytes of a line that are shown.
const LINE_BYTES: usize = 300;

/// Bytes of a file that is searched.
const TEXT_LIMIT: usize = 2 * 1024 * 1024;

/// Comparisons of two lines.
const COMPARISONS: usize = 200_000;

/// Share of the words of a line that another has too, in percent, from which on the two are taken for the same.
const LIKENESS: usize = 50;

/// The lines that are most like those of `wanted`, with their numbers as `view` prints them. `None` if none are like it.
pub(super) fn excerpt(text: &str, wanted: &str) -> Option<String> {
    if text.len() > TEXT_LIMIT {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = wanted.trim_matches('\n').lines().take(LINES).collect();
    let start = best_start(&lines, &wanted)?;
    let shown = &lines[start..(start + wanted.len()).min(lines.len())];
    let mut out = String::new();
    for (offset, line) in shown.iter().enumerate() {
        let cut = &line[..line.floor_char_boundary(LINE_BYTES)];
        let mark = if cut.len() < line.len() { " [...]" } else { "" };
        let _ = write!(out, "\n{}. {cut}{mark}", start + offset + 1);
    }
    Some(out)
}

/// The line from which on most of the wanted lines are found, each at its distance.
fn best_start(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let mut votes: HashMap<usize, usize> = HashMap::new();
    let fuzzy = lines.len() * wanted.len() <= COMPARISONS;
    let bags: Vec<HashSet<&str>> = wanted.iter().map(|line| words(line)).collect();
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            continue;
        }
        let own = if fuzzy { words(line) } else { HashSet::new() };
        for (offset, expected) in wanted.iter().enumerate() {
            let weight = match expected.trim() == trimmed {
                true => 100,
                false => likeness(&bags[offset], &own),
            };
            if weight >= LIKENESS {
                // Of lines that are alike, longer ones say more.
                *votes.entry(at.saturating_sub(offset)).or_default() += weight * trimmed.len().min(80);
            }
        }
    }
    votes.into_iter().max_by_key(|(start, votes)| (*votes, std::cmp::Reverse(*start))).map(|(start, _)| start)
}

fn words(line: &str) -> HashSet<&str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}

fn likeness(a: &HashSet<&str>, b: &HashSet<&str>) -> usize {
    (200 * a.intersection(b).count()).checked_div(a.len() + b.len()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, wanted: &str, expected: Option<&str>) {
        assert_eq!(excerpt(text, wanted).as_deref(), expected);
    }

    #[test]
    fn the_lines_that_are_most_like_it_are_numbered() {
        let text = "fn one() {\n    a();\n}\n\nfn two() {\n    b(1);\n    c();\n}\n";
        check(
            text,
            "fn two() {\n    b(2);\n    c()\n}\n",
            Some("\n5. fn two() {\n6.     b(1);\n7.     c();\n8. }"),
        );
        check(text, "fn one(x) {", Some("\n1. fn one() {"));
        check(text, "    b(1, 2);", Some("\n6.     b(1);"));
    }

    #[test]
    fn nothing_is_shown_for_what_is_like_nothing() {
        check("a\nb\n", "something else", None);
        check("", "x", None);
    }

    #[test]
    fn long_lines_are_cut() {
        let text = format!("word {}\n", "x".repeat(1000));
        let shown = excerpt(&text, &format!("word {}", "x".repeat(1000) + " y")).unwrap();
        assert!(shown.len() < 320 && shown.ends_with(" [...]"), "{shown}");
    }
}
