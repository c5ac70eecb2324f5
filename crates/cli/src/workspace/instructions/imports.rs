//! Imports: `@path` in an instruction file inserts another file of the same tree after the line that names it.

use std::path::{Path, PathBuf};

use super::told::SeenInstructions;

/// Maximum depth of nested imports.
const DEPTH_LIMIT: usize = 5;

/// Maximum number of files that one instruction file imports, directly and indirectly.
const COUNT_LIMIT: usize = 50;

pub(super) struct Importer<'a> {
    told: &'a mut SeenInstructions,
    /// The tree that imports may not leave.
    tree: PathBuf,
    left: usize,
}

impl<'a> Importer<'a> {
    pub(super) fn new(told: &'a mut SeenInstructions, tree: &Path) -> Option<Self> {
        Some(Self { told, tree: tree.canonicalize().ok()?, left: COUNT_LIMIT })
    }

    /// The text of a file in `dir` with everything that it imports.
    pub(super) fn expand(&mut self, text: &str, dir: &Path) -> String {
        self.expand_at(text, dir, 0)
    }

    fn expand_at(&mut self, text: &str, dir: &Path, depth: usize) -> String {
        let mut out = String::with_capacity(text.len());
        let mut in_code = false;
        for line in text.split_inclusive('\n') {
            out.push_str(line);
            if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
                in_code = !in_code;
            } else if !in_code && depth < DEPTH_LIMIT && line.contains('@') {
                for mention in mentions(line) {
                    self.import(mention, dir, depth, &mut out);
                }
            }
        }
        out
    }

    fn import(&mut self, mention: &str, dir: &Path, depth: usize, out: &mut String) {
        if self.left == 0 || Path::new(mention).is_absolute() {
            return;
        }
        // A sentence may end right behind the path.
        let trimmed = mention.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']);
        let path = [mention, trimmed].into_iter().map(|name| dir.join(name)).find(|path| path.is_file());
        let inside = |path: &PathBuf| path.canonicalize().is_ok_and(|real| real.starts_with(&self.tree));
        let Some(source) = path.filter(inside).and_then(|path| self.told.take(&path)) else { return };
        self.left -= 1;
        let shown = source.real.strip_prefix(&self.tree).unwrap_or(&source.real).display().to_string();
        let inner = self.expand_at(&source.text, source.real.parent().unwrap_or(dir), depth + 1);
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&format!(
            "<imported_custom_instruction source=\"{shown}\">\n{}\n</imported_custom_instruction>\n",
            inner.trim_end()
        ));
    }
}

/// Paths after an `@` at the start of a word, outside of code.
fn mentions(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_code = false;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '`' {
            in_code = !in_code;
        } else if c == '@' && !in_code && (before.is_whitespace() || matches!(before, '(' | '"' | '\'')) {
            let rest = &line[at + 1..];
            let end = rest.find(|c: char| c.is_whitespace() || c == '`').unwrap_or(rest.len());
            if end > 0 {
                found.push(&rest[..end]);
            }
        }
        before = c;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_start_with_it_are_mentions() {
        assert_eq!(mentions("@a.md see @b/c.md, (@d) me@example.com `@code` @"), ["a.md", "b/c.md,", "d)"]);
    }

    /// `main.md` imports; the other files are what it may find.
    fn check(main: &str, files: &[(&str, &str)], expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        for (name, text) in files {
            let path = tree.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::write(dir.path().join("outside.md"), "OUTSIDE").unwrap();
        let mut told = SeenInstructions::within([dir.path()].into_iter());
        let mut importer = Importer::new(&mut told, &tree).unwrap();
        let text = importer.expand(main, &tree);
        let plain = text.replace("imported_custom_instruction", "import");
        assert_eq!(plain, expected);
    }

    #[test]
    fn an_import_stands_behind_its_line() {
        check(
            "see @docs/a.md.\nend",
            &[("docs/a.md", "A\n")],
            "see @docs/a.md.\n<import source=\"docs/a.md\">\nA\n</import>\nend",
        );
    }

    #[test]
    fn imports_are_relative_to_the_file_that_names_them_and_happen_once() {
        check(
            "@docs/a.md",
            &[("docs/a.md", "A @b.md"), ("docs/b.md", "B @a.md @b.md")],
            "@docs/a.md\n<import source=\"docs/a.md\">\nA @b.md\n<import source=\"docs/b.md\">\nB @a.md \
             @b.md\n</import>\n</import>\n",
        );
    }

    #[test]
    fn code_people_and_missing_files_are_no_imports() {
        let text = "```\n@a.md\n```\n`@a.md` @nobody me@a.md\n";
        check(text, &[("a.md", "A")], text);
    }

    #[test]
    fn imports_stay_in_the_tree() {
        check("@../outside.md\n", &[("a.md", "")], "@../outside.md\n");
        check("@/etc/hostname\n", &[("a.md", "")], "@/etc/hostname\n");
    }

    #[test]
    fn imports_end_at_some_depth() {
        let names: Vec<(String, String)> =
            (0..20).map(|n| (format!("{n}.md"), format!("@{}.md", n + 1))).collect();
        let files: Vec<(&str, &str)> =
            names.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let mut told = SeenInstructions::within([dir.path()].into_iter());
        let text = Importer::new(&mut told, dir.path()).unwrap().expand("@0.md", dir.path());
        assert_eq!(text.matches("<imported").count(), DEPTH_LIMIT);
    }
}
