//! Workspace of a session's tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_images::ImageLimits;

use crate::held_paths::HeldPaths;
use crate::inspected::ResolvedPaths;
use crate::paths;
use crate::spill::Spill;
use crate::tool_files::ToolFiles;

/// The directory that relative paths start from, and what is allowed to reach the model.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Absolute.
    pub cwd: PathBuf,
    /// Texts over its threshold go to its directory; it is also the size above which a file is not viewed whole.
    pub spill: Spill,
    /// The owner of the files that `view`, `create`, `edit` and `apply_patch` work on. Commands and searches run here
    /// either way.
    pub files: ToolFiles,
    /// Images that the model takes.
    pub images: ImageLimits,
}

impl Workspace {
    /// A path as the model gave it, as people are shown it and as rules see it.
    pub(crate) fn locate(&self, given: &str) -> Location {
        let shown = paths::absolute(&self.cwd, given);
        let real = self.files.resolve(&shown);
        Location { shown, real }
    }

    /// The same on this machine, even if a client keeps the files.
    pub(crate) fn locate_here(&self, given: &str) -> Location {
        let shown = paths::absolute(&self.cwd, given);
        let real = paths::resolve(&shown);
        Location { shown, real }
    }

    /// Resolves one path now.
    pub(crate) fn now(&self, location: &Location) -> ResolvedPaths {
        let is_away = self.files.is_client();
        ResolvedPaths {
            real: vec![location.real.clone()],
            is_plain: location.real == location.shown,
            is_away,
        }
    }

    /// The same for the run of a call, which is about the places that it was inspected with.
    pub(crate) fn held(&self, places: &Arc<HeldPaths>) -> Self {
        Self { files: self.files.held(places), ..self.clone() }
    }

    /// Whether a resolved path lies in the session's own directory.
    pub(crate) fn contains(&self, real: &Path) -> bool {
        real.starts_with(self.files.resolve(&self.cwd))
    }
}

/// One place in the file system, under the name it was given and the name it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// Absolute, `..` removed, links left as they are.
    pub(crate) shown: PathBuf,
    /// Links resolved; the one that is opened.
    pub(crate) real: PathBuf,
}
