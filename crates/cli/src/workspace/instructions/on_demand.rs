//! Instructions about a part of the tree, added when a file of that part is touched for the first time.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::told::SeenInstructions;
use super::{
    DIRECTORY_FILES, Instructions, MODULAR_DIR, REPOSITORY_FILE, Scoped, scope, sealed, tree, with_imports,
};

/// Maximum number of instruction files that one touched file can reveal.
const FOUND_LIMIT: usize = 20;

/// Instructions that a touched file revealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RevealedInstructions {
    /// Relative to the top of the tree if it lies in it.
    pub(crate) source: String,
    /// For the model, with the name of the file in front.
    pub(crate) text: String,
}

/// Instructions of a directory that a conversation has seen, and those that it can still see.
#[derive(Debug)]
pub(crate) struct OnDemand {
    /// State at the start. Copied on the first change.
    start: Arc<Known>,
    known: Arc<Known>,
}

#[derive(Debug, Clone)]
struct Known {
    root: PathBuf,
    told: SeenInstructions,
    /// Instructions that were not added yet.
    pending: Vec<Pending>,
    /// Directories whose own files were looked at.
    visited: HashSet<PathBuf>,
}

#[derive(Debug, Clone)]
struct Pending {
    scoped: Scoped,
    /// Matcher, built on first use, since most runs touch few files.
    matcher: Option<Matcher>,
}

#[derive(Debug, Clone)]
enum Matcher {
    Everything,
    Globs(GlobSet),
}

impl From<Instructions> for OnDemand {
    fn from(instructions: Instructions) -> Self {
        let Instructions { scoped, dirs, told, .. } = instructions;
        let dirs: Vec<PathBuf> = dirs.into_iter().map(real_or_given).collect();
        let pending = scoped.into_iter().map(Pending::new).collect();
        let start = Arc::new(Known {
            root: dirs.first().cloned().unwrap_or_default(),
            told,
            pending,
            visited: dirs.into_iter().collect(),
        });
        Self { known: Arc::clone(&start), start }
    }
}

impl OnDemand {
    /// The same for a conversation that has only the instructions of the start.
    pub(crate) fn anew(&self) -> Self {
        Self { start: Arc::clone(&self.start), known: Arc::clone(&self.start) }
    }

    /// Marks the instructions that an earlier run of the session has added, by the sources that it reported.
    pub(crate) fn note_told(&mut self, source: &str) {
        let known = Arc::make_mut(&mut self.known);
        known.told.note_file(&known.root.join(source));
    }

    /// Instructions that apply because a file is touched; each only once.
    pub(crate) fn touch(&mut self, file: &Path) -> Vec<RevealedInstructions> {
        Arc::make_mut(&mut self.known).touch(file)
    }
}

impl Known {
    fn touch(&mut self, file: &Path) -> Vec<RevealedInstructions> {
        // A file that is about to be created has no real path yet, but its directory may have one.
        let real =
            file.canonicalize().or_else(|_| Ok::<_, std::io::Error>(real_parent(file)?.join(name_of(file))));
        let Ok(file) = real else { return Vec::new() };
        if !file.starts_with(&self.root) {
            return Vec::new();
        }
        // A model that views an instruction file needs no second copy of it.
        self.told.note_file(&file);
        let mut found = Vec::new();
        self.matching(&file, &mut found);
        let dirs: Vec<&Path> =
            file.ancestors().skip(1).take_while(|dir| dir.starts_with(&self.root)).collect();
        for dir in dirs {
            if self.visited.insert(dir.to_owned()) {
                for name in [REPOSITORY_FILE].into_iter().chain(DIRECTORY_FILES) {
                    self.tell(&tree::named(dir, name), &mut found);
                }
                self.collect(dir);
                self.matching(&file, &mut found);
            }
        }
        found
    }

    /// Adds the pending instructions whose patterns match the file.
    fn matching(&mut self, file: &Path, found: &mut Vec<RevealedInstructions>) {
        let hits: Vec<Pending> = self.pending.extract_if(.., |pending| pending.is_about(file)).collect();
        for hit in hits {
            self.tell(&hit.scoped.path, found);
        }
    }

    /// Adds the modular instructions of a directory.
    fn collect(&mut self, dir: &Path) {
        for path in tree::modular(&dir.join(MODULAR_DIR)) {
            let Some(source) = self.told.peek(&path) else { continue };
            let (front, _) = scope::split(&source.text);
            if front.for_others {
                continue;
            }
            let (globs, description) = (front.globs, front.description);
            self.pending.push(Pending::new(Scoped { globs, base: dir.to_owned(), path, description }));
        }
    }

    fn tell(&mut self, path: &Path, found: &mut Vec<RevealedInstructions>) {
        if found.len() == FOUND_LIMIT {
            return;
        }
        let Some(source) = self.told.take(path) else { return };
        let text = with_imports(&source, &self.root, &mut self.told);
        let (_, body) = scope::split(&text);
        if body.trim().is_empty() || !self.told.note_text(body) {
            return;
        }
        let shown = path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
        let text = format!(
            "{shown} has instructions for the code you are looking at. Follow them there:\n\n{}",
            sealed(body.trim())
        );
        found.push(RevealedInstructions { source: shown, text });
    }
}

fn real_parent(file: &Path) -> std::io::Result<PathBuf> {
    file.parent().unwrap_or(Path::new("/")).canonicalize()
}

fn name_of(file: &Path) -> &std::ffi::OsStr {
    file.file_name().unwrap_or_default()
}

fn real_or_given(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

impl Pending {
    fn new(mut scoped: Scoped) -> Self {
        scoped.base = real_or_given(scoped.base);
        Self { scoped, matcher: None }
    }

    fn is_about(&mut self, file: &Path) -> bool {
        let Ok(relative) = file.strip_prefix(&self.scoped.base) else { return false };
        match self.matcher.get_or_insert_with(|| Matcher::new(&self.scoped.globs)) {
            Matcher::Everything => true,
            Matcher::Globs(globs) => globs.is_match(relative),
        }
    }
}

impl Matcher {
    fn new(globs: &[String]) -> Self {
        if globs.is_empty() {
            return Self::Everything;
        }
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            let glob = glob.trim_start_matches("./").trim_start_matches('/');
            // A pattern without a directory matches names anywhere.
            let glob = if glob.contains('/') { glob.to_owned() } else { format!("**/{glob}") };
            // An invalid pattern matches nothing.
            if let Ok(glob) = GlobBuilder::new(&glob).literal_separator(true).build() {
                set.add(glob);
            }
        }
        Self::Globs(set.build().unwrap_or_else(|_| GlobSet::empty()))
    }
}
