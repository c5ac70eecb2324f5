//! Instructions that the model has already seen, and the bounded reading of instruction files.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longest instruction file that is passed on whole.
const FILE_LIMIT: u64 = 64 * 1024;

/// An instruction file as it was found.
#[derive(Debug)]
pub(super) struct InstructionFile {
    /// Without symbolic links.
    pub(super) real: PathBuf,
    pub(super) text: String,
}

/// Files and texts that are in the model's context, so that nothing enters it twice.
#[derive(Debug, Clone, Default)]
pub(super) struct SeenInstructions {
    files: HashSet<PathBuf>,
    texts: HashSet<String>,
    trees: Vec<Tree>,
}

/// A directory that instructions may come from. A link in a cloned repository must not bring in a file of its user, so a
/// file has to be in the same tree with its links resolved.
#[derive(Debug, Clone)]
struct Tree {
    given: PathBuf,
    real: PathBuf,
}

impl Tree {
    fn holds(&self, path: &Path, real: &Path) -> bool {
        (path.starts_with(&self.given) || path.starts_with(&self.real)) && real.starts_with(&self.real)
    }
}

impl SeenInstructions {
    pub(super) fn within<'a>(trees: impl Iterator<Item = &'a Path>) -> Self {
        let trees = trees
            .filter_map(|tree| Some(Tree { given: tree.to_owned(), real: tree.canonicalize().ok()? }))
            .collect();
        Self { trees, ..Self::default() }
    }

    /// Reads a file that the model has not seen. `None` also if the file is empty, missing or outside of its tree.
    pub(super) fn peek(&self, path: &Path) -> Option<InstructionFile> {
        // Also keeps pipes and devices out, which would block.
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let real = path.canonicalize().ok()?;
        if !self.trees.iter().any(|tree| tree.holds(path, &real)) || self.files.contains(&real) {
            return None;
        }
        let text = read_limited(&real)?;
        Some(InstructionFile { real, text })
    }

    /// The same, and marks the file as seen by the model.
    pub(super) fn take(&mut self, path: &Path) -> Option<InstructionFile> {
        let source = self.peek(path)?;
        self.files.insert(source.real.clone());
        Some(source)
    }

    /// Marks a file as seen by the model.
    pub(super) fn note_file(&mut self, path: &Path) {
        if let Ok(real) = path.canonicalize() {
            self.files.insert(real);
        }
    }

    /// Marks a text as seen by the model; `false` if it was already.
    pub(super) fn note_text(&mut self, text: &str) -> bool {
        self.texts.insert(text.trim().to_owned())
    }
}

fn read_limited(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT).read_to_end(&mut bytes).ok()?;
    let mut text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    if size > FILE_LIMIT {
        text.truncate(text.trim_end_matches(char::REPLACEMENT_CHARACTER).len());
        text.push_str(&format!("\n[{} more bytes are in {}]\n", size - FILE_LIMIT, path.display()));
    }
    Some(text)
}
