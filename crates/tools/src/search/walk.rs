//! The files of a search, in order, with the names they are shown under.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hangar_disk::{FileKind, Folder};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};
use tokio_util::sync::CancellationToken;

use crate::files::anchor::Anchor;
use crate::files::content;
use crate::held_paths::HeldPaths;
use crate::inspected::ResolvedPaths;
use crate::workspace::{Location, Workspace};

/// A search of a whole disk ends here, with what it has.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A place to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    /// As it was given; results are shown below this name.
    pub(crate) given: PathBuf,
    pub(crate) location: Location,
}

/// A place to search that is held open. Files are found by their names, for which ignore files above count too, and reached
/// by way of what is held: what a link put in the way leads to is not found.
pub(crate) struct HeldRoot<'a> {
    root: &'a Root,
    reach: RootAccess,
}

enum RootAccess {
    Folder(Folder),
    File(Anchor),
}

impl<'a> HeldRoot<'a> {
    /// `None` if there is nothing there.
    pub(crate) fn new(root: &'a Root, places: &HeldPaths) -> Option<Self> {
        let real = &root.location.real;
        if real.parent().is_none() {
            return Some(Self { root, reach: RootAccess::Folder(Folder::open(real).ok()?) });
        }
        let anchor = places.anchor(real).ok()?;
        let is_dir = anchor.status().ok()?.is_dir();
        let reach =
            if is_dir { RootAccess::Folder(anchor.into_folder().ok()?) } else { RootAccess::File(anchor) };
        Some(Self { root, reach })
    }

    /// Opens a file that was found here.
    pub(crate) fn open(&self, found: &FoundFile) -> io::Result<File> {
        match &self.reach {
            RootAccess::Folder(folder) => folder.read(found.below(self.root)),
            RootAccess::File(anchor) => content::open(anchor),
        }
    }

    fn has(&self, found: &FoundFile) -> bool {
        match &self.reach {
            RootAccess::Folder(folder) => {
                folder.kind(found.below(self.root)).is_ok_and(|kind| kind == FileKind::File)
            }
            RootAccess::File(anchor) => anchor.status().is_ok_and(|found| found.is_file()),
        }
    }
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) real: PathBuf,
    pub(crate) shown: String,
    /// Named by the call itself, rather than met on the way.
    pub(crate) is_root: bool,
}

impl FoundFile {
    fn below(&self, root: &Root) -> &Path {
        self.real.strip_prefix(&root.location.real).unwrap_or(&self.real)
    }
}

/// Deadline and cancellation of a search.
#[derive(Debug, Clone)]
pub(crate) struct SearchLimit {
    cancel: CancellationToken,
    deadline: Instant,
}

impl SearchLimit {
    pub(crate) fn new(cancel: CancellationToken) -> Self {
        Self { cancel, deadline: Instant::now() + TIME_LIMIT }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.is_cancelled() || self.is_late()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    pub(crate) fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }
}

/// The places given, or the working directory.
pub(crate) fn roots(workspace: &Workspace, given: &[String]) -> Vec<Root> {
    let root = |given: &str| {
        // Rules must see exactly what is searched, so an empty name is not passed on.
        let given = if given.is_empty() { "." } else { given };
        Root { given: PathBuf::from(given), location: workspace.locate_here(given) }
    };
    match given {
        [] => vec![root(".")],
        given => given.iter().map(|given| root(given)).collect(),
    }
}

/// Resolves the roots: a permission is for these paths.
pub(crate) fn places(roots: &[Root]) -> ResolvedPaths {
    ResolvedPaths {
        real: roots.iter().map(|root| root.location.real.clone()).collect(),
        is_plain: roots.iter().all(|root| root.location.real == root.location.shown),
        is_away: false,
    }
}

/// A filter by name, in the language of ignore files: `*.rs`, `src/**/*.ts`, `!*.min.js`.
pub(crate) struct NameFilter(Override);

impl NameFilter {
    pub(crate) fn new(pattern: &str) -> Result<Self, ignore::Error> {
        // A path that was only meant to be spelled out would otherwise match nothing.
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let mut builder = OverrideBuilder::new("");
        builder.add(pattern)?;
        Ok(Self(builder.build()?))
    }

    /// Whether a file passes, by its path below the place searched or by the path it is shown under.
    fn admits(&self, below: &Path, shown: &Path) -> bool {
        let shown = shown.strip_prefix("./").unwrap_or(shown);
        [below, shown].iter().any(|path| !self.0.matched(path, false).is_ignore())
    }
}

/// The regular files under `root`.
pub(crate) fn files<'a>(
    held: &'a HeldRoot<'a>,
    filter: Option<&'a NameFilter>,
    stop: &'a SearchLimit,
) -> impl Iterator<Item = FoundFile> + 'a {
    let root = held.root;
    let mut walk = WalkBuilder::new(&root.location.real);
    walk.hidden(false)
        // The user's own ignore file lies in a home directory, which tools do not look into.
        .git_global(false)
        .add_custom_ignore_filename(".rgignore")
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    walk.build()
        .take_while(|_| !stop.is_due())
        // Unreadable files are skipped, as in a search of a directory.
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(move |entry| found(root, filter, entry))
        .filter(move |found| held.has(found))
}

fn found(root: &Root, filter: Option<&NameFilter>, entry: DirEntry) -> Option<FoundFile> {
    let is_root = entry.depth() == 0;
    let below = entry.path().strip_prefix(&root.location.real).unwrap_or(entry.path());
    let shown = if is_root { root.given.clone() } else { root.given.join(below) };
    // A file that was named by itself has no path below; its name is what a filter is about.
    let below = if is_root { Path::new(entry.file_name()) } else { below };
    if filter.is_some_and(|filter| !filter.admits(below, &shown)) {
        return None;
    }
    let shown = shown.to_string_lossy().into_owned();
    Some(FoundFile { real: entry.into_path(), shown, is_root })
}
