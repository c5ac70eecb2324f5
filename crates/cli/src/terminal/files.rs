//! Files below a directory, for completion.

use std::path::Path;

use ignore::WalkBuilder;

/// Files and folders that completion knows.
const MAX_FILES: usize = 50_000;
const MAX_DEPTH: usize = 24;

/// Paths below a directory that git does not ignore; folders end in `/`.
pub(super) fn below(directory: &Path) -> Vec<String> {
    let walk = WalkBuilder::new(directory)
        .hidden(false)
        .max_depth(Some(MAX_DEPTH))
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let entries = walk.filter_map(Result::ok).filter(|entry| entry.depth() > 0).take(MAX_FILES);
    let mut paths: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.path().strip_prefix(directory).ok()?.to_str()?.to_owned();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            Some(if is_folder { format!("{path}/") } else { path })
        })
        .collect();
    paths.sort_unstable();
    paths
}
