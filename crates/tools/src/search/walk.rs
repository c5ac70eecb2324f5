//! The files of a search, in order, with the names they are shown under.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};
use tokio_util::sync::CancellationToken;

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

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) real: PathBuf,
    pub(crate) shown: String,
    /// Named by the call itself, rather than met on the way.
    pub(crate) is_root: bool,
}

/// Tells a search to end before it is through.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    cancel: CancellationToken,
    deadline: Instant,
}

impl Stop {
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
        // What rules see must be what is searched, so an empty name is not handed on.
        let given = if given.is_empty() { "." } else { given };
        Root { given: PathBuf::from(given), location: workspace.locate_here(given) }
    };
    match given {
        [] => vec![root(".")],
        given => given.iter().map(|given| root(given)).collect(),
    }
}

/// Where the roots lead: what a permission is for.
pub(crate) fn places(roots: &[Root]) -> Vec<PathBuf> {
    roots.iter().map(|root| root.location.real.clone()).collect()
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
    root: &'a Root,
    filter: Option<&'a NameFilter>,
    stop: &'a Stop,
) -> impl Iterator<Item = Found> + 'a {
    let mut walk = WalkBuilder::new(&root.location.real);
    walk.hidden(false)
        // The user's own ignore file lies in a home directory, which tools do not look into.
        .git_global(false)
        .add_custom_ignore_filename(".rgignore")
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    walk.build()
        .take_while(|_| !stop.is_due())
        // What cannot be read is passed over, as a search of a directory does.
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(move |entry| found(root, filter, entry))
}

fn found(root: &Root, filter: Option<&NameFilter>, entry: DirEntry) -> Option<Found> {
    let is_root = entry.depth() == 0;
    let below = entry.path().strip_prefix(&root.location.real).unwrap_or(entry.path());
    let shown = if is_root { root.given.clone() } else { root.given.join(below) };
    // A file that was named by itself has no path below; its name is what a filter is about.
    let below = if is_root { Path::new(entry.file_name()) } else { below };
    if filter.is_some_and(|filter| !filter.admits(below, &shown)) {
        return None;
    }
    let shown = shown.to_string_lossy().into_owned();
    Some(Found { real: entry.into_path(), shown, is_root })
}
