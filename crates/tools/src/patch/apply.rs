//! Carrying a plan out: all of it, or after a failure, none of it.

use std::io;
use std::path::{Path, PathBuf};

use super::plan::{Plan, PlannedFile};
use crate::tool_files::ToolFiles;

/// An applied step, with what undoing it takes.
enum AppliedStep {
    MadeDirectory(PathBuf),
    Created(PathBuf),
    Replaced { path: PathBuf, old: Vec<u8> },
    SetAside { path: PathBuf, aside: PathBuf },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("Failed to write {}: {source} (no files were changed)", path.display())]
    Undone { path: PathBuf, source: io::Error },
    #[error(
        "Failed to write {}: {source}. These files could not be put back as they were: {}",
        path.display(), left.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    HalfDone { path: PathBuf, source: io::Error, left: Vec<PathBuf> },
}

pub(crate) fn apply(files: &ToolFiles, plan: Plan) -> Result<(), ApplyError> {
    let mut done = Vec::new();
    for (path, entry) in plan.entries {
        if let Err(source) = step(files, &path, entry, &mut done) {
            let left = undo(files, done);
            return Err(match left.is_empty() {
                true => ApplyError::Undone { path, source },
                false => ApplyError::HalfDone { path, source, left },
            });
        }
    }
    for step in done {
        if let AppliedStep::SetAside { aside, .. } = step {
            // All is done as asked; a left-over under a name of ours is not worth a failure.
            let _ = files.remove(&aside);
        }
    }
    Ok(())
}

fn step(files: &ToolFiles, path: &Path, entry: PlannedFile, done: &mut Vec<AppliedStep>) -> io::Result<()> {
    match (entry.old, entry.new) {
        (None, None) => {}
        (None, Some(new)) => {
            make_directories(files, path, done)?;
            files.create(path, &new)?;
            done.push(AppliedStep::Created(path.to_path_buf()));
            // A moved file keeps its mode. Its source may be gone already, set aside in an earlier step.
            if let Some(like) = entry.like {
                let source = done.iter().find_map(|step| match step {
                    AppliedStep::SetAside { path, aside } if *path == like => Some(aside.clone()),
                    _ => None,
                });
                files.copy_mode(&source.unwrap_or(like), path)?;
            }
        }
        (Some(old), Some(new)) => {
            if old != new {
                files.replace(path, &new)?;
                done.push(AppliedStep::Replaced { path: path.to_path_buf(), old });
            }
        }
        (Some(_), None) => {
            let aside = files.set_aside(path)?;
            done.push(AppliedStep::SetAside { path: path.to_path_buf(), aside });
        }
    }
    Ok(())
}

fn make_directories(files: &ToolFiles, path: &Path, done: &mut Vec<AppliedStep>) -> io::Result<()> {
    for directory in files.missing_parents(path) {
        files.make_dir(&directory)?;
        done.push(AppliedStep::MadeDirectory(directory));
    }
    Ok(())
}

/// Takes the steps back, last first. Gives the paths where that failed.
fn undo(files: &ToolFiles, done: Vec<AppliedStep>) -> Vec<PathBuf> {
    let mut left = Vec::new();
    for step in done.into_iter().rev() {
        let (path, undone) = match step {
            AppliedStep::MadeDirectory(path) => (path.clone(), files.remove_dir(&path)),
            AppliedStep::Created(path) => (path.clone(), files.remove(&path)),
            AppliedStep::Replaced { path, old } => {
                let undone = files.replace(&path, &old);
                (path, undone)
            }
            AppliedStep::SetAside { path, aside } => {
                let undone = files.rename(&aside, &path);
                (path, undone)
            }
        };
        if undone.is_err() {
            left.push(path);
        }
    }
    left
}
