//! Working directory of a session: its repository and its instructions.

mod discovery;
pub(crate) mod git;
pub(crate) mod instructions;
pub(crate) mod trust;

use std::path::Path;

use hangar_protocol::data::WorkingDirectory;

use git::Repository;

/// Working directory of a session, as its events and its list entry show it.
pub(crate) fn working_directory(cwd: &Path, repository: Option<&Repository>) -> WorkingDirectory {
    WorkingDirectory {
        cwd: cwd.display().to_string(),
        git_root: repository.map(|repository| repository.root.display().to_string()),
        repository: repository.and_then(|repository| repository.name.clone()),
        branch: repository.and_then(|repository| repository.branch.clone()),
    }
}
