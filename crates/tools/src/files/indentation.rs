//! Indentation of a replacement: moved to where the replaced text really stood. Pure.

use std::collections::BTreeMap;

/// Indentations that were expected, each with the one that the file has in its place.
#[derive(Debug, Default)]
pub(super) struct Indentation<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Indentation<'a> {
    /// Compares lines that were expected with the lines of the file. `None` if they do not agree on one indentation for
    /// another, so that nobody could say where a further line belongs.
    pub(super) fn compare(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut known = BTreeMap::new();
        for (expected, found) in pairs {
            if expected.trim().is_empty() || found.trim().is_empty() {
                continue;
            }
            let found = indent(found);
            if *known.entry(indent(expected)).or_insert(found) != found {
                return None;
            }
        }
        Some(Self(known))
    }

    /// Moves the lines of a text. What follows the indentation of a line stays.
    pub(super) fn apply(&self, text: &str) -> String {
        if self.0.iter().all(|(expected, found)| expected == found) {
            return text.to_owned();
        }
        let lines = text.split('\n').map(|line| match line.trim().is_empty() {
            true => line.to_owned(),
            false => self.shift(indent(line)) + line.trim_start(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn shift(&self, wanted: &str) -> String {
        if let Some(found) = self.0.get(wanted) {
            return (*found).to_owned();
        }
        // Deeper than a line that is known: the rest of it follows, in the file's own units.
        if let Some((expected, found)) =
            self.0.iter().rev().find(|(expected, _)| wanted.starts_with(**expected))
        {
            return (*found).to_owned() + &self.in_units_of_file(&wanted[expected.len()..]);
        }
        // Less deep than all that are known: as much less than the least of them in the file.
        if let Some((expected, found)) = self.0.iter().find(|(expected, _)| expected.starts_with(wanted)) {
            let rest = self.in_units_of_file(&expected[wanted.len()..]);
            return found.strip_suffix(rest.as_str()).unwrap_or("").to_owned();
        }
        wanted.to_owned()
    }

    /// Spaces as tabs or tabs as spaces, where a pair of lines tells how many make one.
    fn in_units_of_file(&self, indent: &str) -> String {
        let of = |text: &str, unit: char| !text.is_empty() && text.chars().all(|c| c == unit);
        // Both sides may be deeper by the same: what tells is how much two lines differ.
        let steps = self
            .0
            .iter()
            .zip(self.0.iter().skip(1))
            .filter_map(|((e1, f1), (e2, f2))| Some((e2.strip_prefix(e1)?, f2.strip_prefix(f1)?)));
        let whole = self.0.iter().map(|(expected, found)| (*expected, *found));
        for (expected, found) in steps.chain(whole) {
            if of(indent, ' ') && of(expected, ' ') && of(found, '\t') && expected.len() % found.len() == 0 {
                let width = expected.len() / found.len();
                return "\t".repeat(indent.len() / width) + &" ".repeat(indent.len() % width);
            }
            if of(indent, '\t') && of(expected, '\t') && of(found, ' ') && found.len() % expected.len() == 0 {
                return " ".repeat(indent.len() * (found.len() / expected.len()));
            }
        }
        indent.to_owned()
    }
}

/// Whether a replacement is indented as the file is, although the text that it replaces was expected otherwise: the lines that it
/// keeps tell. `pairs` are the lines that were expected, each with that of the file.
pub(super) fn is_as_in_file(pairs: &[(&str, &str)], text: &str) -> bool {
    let mut kept_as_in_file = false;
    for line in text.split('\n').filter(|line| !line.trim().is_empty()) {
        let same = || pairs.iter().filter(|(_, found)| found.trim() == line.trim());
        let as_found = same().any(|(_, found)| indent(found) == indent(line));
        let as_expected = same().any(|(expected, _)| indent(expected) == indent(line));
        if as_expected && !as_found {
            return false;
        }
        kept_as_in_file |= as_found && !as_expected;
    }
    kept_as_in_file
}

/// Whitespace at the beginning of a line.
pub(super) fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &str, found: &str, text: &str, moved: Option<&str>) {
        let indentation = Indentation::compare(expected.split('\n').zip(found.split('\n')));
        assert_eq!(indentation.map(|indentation| indentation.apply(text)).as_deref(), moved);
    }

    #[test]
    fn lines_move_with_the_text_that_they_replace() {
        check("a\n  b", "    a\n      b", "a\n  c\n    d\n\ne", Some("    a\n      c\n        d\n\n    e"));
        check("    a", "  a", "    a\n        b", Some("  a\n      b"));
        check("    a", "a", "  b", Some("b"));
    }

    #[test]
    fn spaces_become_tabs_as_the_file_has_them() {
        check("    a\n        b", "\ta\n\t\tb", "    a\n            c", Some("\ta\n\t\t\tc"));
        check("\ta", "    a", "\ta\n\t\tb", Some("    a\n        b"));
    }

    #[test]
    fn lines_that_disagree_move_nothing() {
        check("a\nb", "a\n    b", "a\nb\nc", None);
    }

    #[test]
    fn equal_indentation_changes_nothing() {
        check("  a \n", "  a\n", "\n x\n   y \n", Some("\n x\n   y \n"));
    }
}
