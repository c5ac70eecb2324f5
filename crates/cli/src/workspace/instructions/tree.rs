//! Bounded search for instruction files in directories.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::Gitignore;

/// Limits of a search: depth, opened directories and names. Some milliseconds at most, even in a repository of a
/// million files; deeper files are found when they are touched.
const NESTED_DEPTH: usize = 4;
const NESTED_DIRS: usize = 128;
const NESTED_NAMES: usize = 8192;

/// Bounds of a directory that exists to hold instruction files.
const MODULAR_DEPTH: usize = 6;
const MODULAR_NAMES: usize = 2048;

/// Maximum number of names that are compared without regard to case.
const CASED_NAMES: usize = 4096;

/// The file of that name in a directory, found case-insensitively. The given name if there is none.
pub(super) fn named(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    if path.exists() {
        return path;
    }
    let (Some(parent), Some(file)) = (path.parent(), path.file_name()) else { return path };
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten().take(CASED_NAMES);
    let mut cased = entries.map(|entry| entry.file_name()).filter(|found| found.eq_ignore_ascii_case(file));
    match cased.next() {
        Some(found) => parent.join(found),
        None => path,
    }
}

/// `*.instructions.md` below a directory, sorted by path.
pub(super) fn modular(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = MODULAR_NAMES;
    let mut queue = VecDeque::from([(dir.to_owned(), 0)]);
    while let Some((dir, depth)) = queue.pop_front() {
        let listing =
            Listing::read(&dir, &mut left, |name| name.as_encoded_bytes().ends_with(b".instructions.md"));
        found.extend(listing.files.iter().map(|name| dir.join(name)));
        if depth < MODULAR_DEPTH {
            queue.extend(listing.dirs.iter().map(|name| (dir.join(name), depth + 1)));
        }
    }
    found.sort();
    found
}

/// Directories below `root` that have a file of that name, the nearest first. What Git ignores, hidden directories and
/// other repositories are left out.
pub(super) fn directories_with(name: &str, root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let (mut dirs, mut names) = (NESTED_DIRS, NESTED_NAMES);
    let mut queue = VecDeque::from([Candidate { dir: root.to_owned(), depth: 0, rules: None }]);
    while let Some(candidate) = queue.pop_front() {
        if dirs == 0 || names == 0 {
            break;
        }
        // Checked here and not when the directory was queued, because most of a long queue is never reached.
        if candidate.rules.as_ref().is_some_and(|rules| rules.exclude(&candidate.dir)) {
            continue;
        }
        dirs -= 1;
        let wanted = |file: &OsStr| file.eq_ignore_ascii_case(name) || file == ".git" || file == ".gitignore";
        let listing = Listing::read(&candidate.dir, &mut names, wanted);
        if candidate.depth > 0 {
            if listing.has(".git") {
                continue;
            }
            if listing.has(name) {
                found.push(candidate.dir.clone());
            }
        }
        if candidate.depth == NESTED_DEPTH {
            continue;
        }
        let rules = if listing.has(".gitignore") { Some(Rules::read(&candidate)) } else { candidate.rules };
        for name in listing.dirs.iter().filter(|name| !name.as_encoded_bytes().starts_with(b".")) {
            let (dir, depth) = (candidate.dir.join(name), candidate.depth + 1);
            queue.push_back(Candidate { dir, depth, rules: rules.clone() });
        }
    }
    found
}

/// Relevant entries of a directory, sorted by name, so that two runs find the same.
struct Listing {
    dirs: Vec<OsString>,
    files: Vec<OsString>,
}

impl Listing {
    /// Reads at most `left` names, and subtracts them. Links to directories are not followed, so no cycle is possible.
    fn read(dir: &Path, left: &mut usize, wanted: impl Fn(&OsStr) -> bool) -> Self {
        let (mut dirs, mut files) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten().take(*left) {
            *left -= 1;
            let name = entry.file_name();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if wanted(&name) {
                files.push(name.clone());
            }
            if is_dir {
                dirs.push(name);
            }
        }
        dirs.sort();
        files.sort();
        Self { dirs, files }
    }

    fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.eq_ignore_ascii_case(name))
    }
}

struct Candidate {
    dir: PathBuf,
    depth: usize,
    /// The rules of the directories above.
    rules: Option<Rc<Rules>>,
}

/// A `.gitignore` and those above it, which apply where it has no rule.
struct Rules {
    own: Gitignore,
    above: Option<Rc<Rules>>,
}

impl Rules {
    fn read(candidate: &Candidate) -> Rc<Self> {
        // Lines that make no sense are skipped, as Git does.
        let (own, _) = Gitignore::new(candidate.dir.join(".gitignore"));
        Rc::new(Self { own, above: candidate.rules.clone() })
    }

    fn exclude(&self, dir: &Path) -> bool {
        match self.own.matched(dir, true) {
            Match::Ignore(_) => true,
            Match::Whitelist(_) => false,
            Match::None => self.above.as_ref().is_some_and(|above| above.exclude(dir)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let (name, content) = file.split_once('=').unwrap_or((file, ""));
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        dir
    }

    fn check_nested(files: &[&str], expected: &[&str]) {
        let dir = tree(files);
        let found = directories_with("AGENTS.md", dir.path());
        let found: Vec<&Path> = found.iter().map(|path| path.strip_prefix(dir.path()).unwrap()).collect();
        assert_eq!(found, expected.iter().map(Path::new).collect::<Vec<_>>());
    }

    #[test]
    fn directories_below_are_found_nearest_first() {
        check_nested(
            &["AGENTS.md", "b/c/AGENTS.md", "d/AGENTS.md", "a/AGENTS.md", "e/x"],
            &["a", "d", "b/c"],
        );
    }

    #[test]
    fn names_may_be_written_in_any_letters_and_the_usual_ones_go_first() {
        check_nested(&["a/agents.md", "b/Agents.md"], &["a", "b"]);
        let check = |files: &[&str], expected: &str| {
            let dir = tree(files);
            assert_eq!(named(dir.path(), ".github/AGENTS.md"), dir.path().join(expected));
        };
        check(&[".github/agents.md"], ".github/agents.md");
        check(&[".github/agents.md", ".github/AGENTS.md"], ".github/AGENTS.md");
        check(&["agents.md"], ".github/AGENTS.md");
    }

    #[test]
    fn what_git_ignores_is_left_out() {
        check_nested(
            &[
                ".gitignore=node_modules/\n/out\n*.tmp\n",
                "node_modules/x/AGENTS.md",
                "a/node_modules/AGENTS.md",
                "out/AGENTS.md",
                "a/out/AGENTS.md",
                "b.tmp/AGENTS.md",
                "c/.gitignore=!keep.tmp\n",
                "c/keep.tmp/AGENTS.md",
            ],
            &["a/out", "c/keep.tmp"],
        );
    }

    #[test]
    fn hidden_directories_and_other_repositories_are_left_out() {
        check_nested(
            &[".git/AGENTS.md", ".x/AGENTS.md", "sub/.git/HEAD", "sub/AGENTS.md", "sub/y/AGENTS.md"],
            &[],
        );
    }

    #[test]
    fn a_search_ends_at_some_depth_and_some_number() {
        check_nested(&["1/2/3/4/AGENTS.md", "1/2/3/4/5/AGENTS.md"], &["1/2/3/4"]);
        let names: Vec<String> = (0..NESTED_DIRS * 2).map(|n| format!("{n:04}/AGENTS.md")).collect();
        let dir = tree(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(directories_with("AGENTS.md", dir.path()).len(), NESTED_DIRS - 1);
    }

    #[test]
    fn modular_files_are_found_at_any_depth() {
        let dir = tree(&["b.instructions.md", "a/c.instructions.md", ".github/d.instructions.md", "x.md"]);
        let found = modular(dir.path());
        let found: Vec<&Path> = found.iter().map(|path| path.strip_prefix(dir.path()).unwrap()).collect();
        let expected = [".github/d.instructions.md", "a/c.instructions.md", "b.instructions.md"];
        assert_eq!(found, expected.map(Path::new));
    }
}
