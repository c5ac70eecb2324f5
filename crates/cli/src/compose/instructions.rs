//! The custom instructions of a session.

use std::path::{Path, PathBuf};

use hangar_spec::InstructionOptions;

use super::{HostSettings, SessionPaths};
use crate::settings::Settings;
use crate::workspace::git::Repository;
use crate::workspace::instructions::{InstructionPlaces, Instructions};

/// Loads the instructions of files.
pub(crate) fn load(
    settings: &Settings,
    options: &InstructionOptions,
    cwd: &Path,
    repository: Option<&Repository>,
) -> Instructions {
    let named = settings.var("COPILOT_CUSTOM_INSTRUCTIONS_DIRS").into_iter().flat_map(|dirs| dirs.split(','));
    let mut extra_dirs: Vec<PathBuf> = named.map(|dir| cwd.join(dir.trim())).collect();
    extra_dirs.extend(options.dirs.iter().flatten().map(|dir| cwd.join(dir)));
    Instructions::load(InstructionPlaces {
        home: &settings.home,
        cwd,
        git_root: repository.map(|repository| repository.root.as_path()),
        extra_dirs: &extra_dirs,
    })
}

/// Loads the instructions of a session; `None` if it does not read them.
pub(super) fn of_session(
    settings: &Settings,
    host: &HostSettings,
    options: &InstructionOptions,
    paths: &SessionPaths,
) -> Option<Instructions> {
    let reads = host.reads_instructions(options);
    reads.then(|| load(settings, options, &paths.cwd, paths.repository.as_ref()))
}

/// The text for the model: instructions of files, then those of the organisation.
pub(super) fn render(loaded: Option<&Instructions>, options: &InstructionOptions) -> String {
    let mut told = loaded.map(Instructions::render).unwrap_or_default();
    let further = options.organization.as_deref().map(str::trim).filter(|further| !further.is_empty());
    if let Some(further) = further {
        if !told.is_empty() {
            told.push_str("\n\n");
        }
        told.push_str(further);
    }
    told
}
