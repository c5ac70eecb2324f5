//! Customisation files beside the code and in the home directory: hooks, skills, agents, plugins, settings.
//!
//! Everything is found at documented paths, read with tolerance, and reported in one sentence when it is broken. A
//! broken file costs its own content and nothing else.

pub mod agents;
pub mod extensions;
pub mod hooks;
pub mod jsonc;
pub mod plugins;
pub mod settings;
pub mod skills;

use std::path::{Path, PathBuf};

/// The largest file of any kind that is read whole.
const FILE_LIMIT: u64 = 1 << 20;

/// Directories of a session, and whether they are trusted.
#[derive(Debug, Clone, Default)]
pub struct CustomPaths {
    /// The folder that Hangar keeps its things in.
    pub home: PathBuf,
    /// The user's own home, for what other programs share with us.
    pub user_home: Option<PathBuf>,
    pub cwd: PathBuf,
    pub git_root: Option<PathBuf>,
    /// Whether programs that the project configures may run.
    pub trusted: bool,
}

impl CustomPaths {
    /// The top of the project.
    pub fn root(&self) -> &Path {
        self.git_root.as_deref().unwrap_or(&self.cwd)
    }

    /// The directories of the project that speak about the current one, the nearest first.
    pub fn upwards(&self) -> impl Iterator<Item = &Path> {
        let root = self.root();
        let inside = self.cwd.starts_with(root);
        self.cwd.ancestors().take_while(move |dir| inside && dir.starts_with(root))
    }
}

/// The directory tree that files of one owner must lie in, links resolved, to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Tree {
    /// No bounds: a link in the user's own folders is the user's decision.
    #[default]
    Any,
    /// A project, a plugin or a folder of skills. A link in a cloned repository must not bring in a file of its user.
    Below(PathBuf),
}

impl Tree {
    pub(crate) fn below(root: &Path) -> Self {
        Self::Below(root.to_owned())
    }

    /// Refuses a path that leads out of the tree.
    pub(crate) fn check(&self, path: &Path) -> Result<(), String> {
        let Tree::Below(root) = self else { return Ok(()) };
        let real = |path: &Path| path.canonicalize().map_err(|error| cannot_read(path, &error));
        match real(path)?.starts_with(real(root)?) {
            true => Ok(()),
            false => Err(format!("{} is a link to a file outside of {}", path.display(), root.display())),
        }
    }
}

fn cannot_read(path: &Path, error: &std::io::Error) -> String {
    format!("{} cannot be read: {error}", path.display())
}

/// A file as text, or a sentence about why not. Absent is neither.
fn read(path: &Path, tree: &Tree) -> Result<Option<String>, String> {
    let problem = |error: std::io::Error| cannot_read(path, &error);
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(problem(error)),
    };
    if meta.is_dir() {
        return Ok(None);
    }
    // A pipe or a device would never end.
    if !meta.is_file() {
        return Err(format!("{} is not a file", path.display()));
    }
    tree.check(path)?;
    if meta.len() > FILE_LIMIT {
        return Err(format!("{} is larger than {} KB and is not read", path.display(), FILE_LIMIT >> 10));
    }
    let bytes = std::fs::read(path).map_err(problem)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Maximum number of entries that are read of one directory.
const MAX_NAMES: usize = 2000;
/// Maximum depth of the search below a directory.
const MAX_DEPTH: usize = 4;

/// The files of a directory that end in one of these, in the order of their names.
fn files_in(dir: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let named = |path: &PathBuf| endings.iter().any(|ending| name_of(path).ends_with(ending));
    entries(dir).into_iter().filter(|path| named(path) && path.is_file()).collect()
}

/// Files of a directory, then those of its subdirectories.
fn files_below(dir: &Path, endings: &[&str]) -> Vec<PathBuf> {
    below(dir, endings, MAX_DEPTH)
}

fn below(dir: &Path, endings: &[&str], depth: usize) -> Vec<PathBuf> {
    let mut files = files_in(dir, endings);
    if depth > 0 {
        // Links are not followed: one may lead back to where it is.
        let dirs = entries(dir).into_iter().filter(|path| path.is_dir() && !path.is_symlink());
        files.extend(dirs.flat_map(|dir| below(&dir, endings, depth - 1)));
    }
    files.truncate(MAX_NAMES);
    files
}

/// Entries of a directory that are not hidden, sorted by name.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().take(MAX_NAMES);
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| !name_of(path).starts_with('.')).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
