//! Links that a command follows without naming them: behind a pattern, or in a tree that it walks.

use std::ffi::OsString;
use std::fs::FileType;
use std::path::{Path, PathBuf};

use crate::paths::resolve;

/// Maximum number of directory entries that are checked for one command. Beyond it, links count as unknown.
const LOOK_LIMIT: usize = 100_000;

/// Characters that make a pattern of a name, with those of `extglob`.
const SPECIAL: [char; 9] = ['*', '?', '[', ']', '(', ')', '!', '|', '^'];

/// The entries that a pattern can stand for, and perhaps some more; `None` if they are too many. Everything before `at`
/// is literal.
pub(super) fn behind_pattern(start: &Path, pattern: &str, at: usize) -> Option<Vec<PathBuf>> {
    let mut looks = LookupBudget::default();
    let mut found = vec![start.to_path_buf()];
    if pattern.starts_with('/') {
        found = vec![PathBuf::from("/")];
    }
    let mut offset = 0;
    for name in pattern.split('/') {
        let literal = at.saturating_sub(offset).min(name.len());
        offset += name.len() + 1;
        let special = name.get(literal..)?.find(SPECIAL).map(|at| literal + at);
        let Some(special) = special.filter(|_| offset > at) else {
            found.iter_mut().for_each(|path| path.push(name));
            continue;
        };
        let (prefix, suffix) = (&name[..special], name.rsplit(SPECIAL).next().unwrap_or_default());
        let mut next = Vec::new();
        for directory in &found {
            for (name, _) in looks.entries(directory)? {
                let text = name.to_string_lossy();
                if text.starts_with(prefix) && text.ends_with(suffix) {
                    next.push(directory.join(name));
                }
            }
            // Shells before bash 5.2 take it for a name like others.
            if "..".starts_with(prefix) && !prefix.is_empty() {
                next.push(directory.join(".."));
            }
        }
        found = next;
    }
    found.retain(|path| path.symlink_metadata().is_ok());
    Some(found)
}

/// Targets of the links in a tree, outside of it; `None` if it is too large.
pub(super) fn in_tree(root: &Path) -> Option<Vec<PathBuf>> {
    let mut looks = LookupBudget::default();
    let mut left = vec![root.to_path_buf()];
    let mut targets = Vec::new();
    while let Some(directory) = left.pop() {
        for (name, kind) in looks.entries(&directory)? {
            let path = directory.join(name);
            if kind.is_symlink() {
                targets.push(resolve(&path));
            } else if kind.is_dir() {
                left.push(path);
            }
        }
    }
    targets.retain(|target| !target.starts_with(root));
    Some(targets)
}

/// Remaining budget of directory entries to look at.
struct LookupBudget(usize);

impl Default for LookupBudget {
    fn default() -> Self {
        Self(LOOK_LIMIT)
    }
}

impl LookupBudget {
    /// Entries of a directory; none if it is no directory or not readable.
    fn entries(&mut self, directory: &Path) -> Option<Vec<(OsString, FileType)>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            self.0 = self.0.checked_sub(1)?;
            if let Ok(kind) = entry.file_type() {
                entries.push((entry.file_name(), kind));
            }
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        Some(entries)
    }
}
