//! Plan of a patch: its whole effect, computed before anything is touched.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::hunks::{self, HunkMismatch, SearchTarget};
use super::parse::Operation;
use crate::files::diff::{self, Change, Report};
use crate::inspected::ResolvedPaths;
use crate::workspace::Workspace;

/// A patch that fits the files as they are.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The net effect on each directory entry.
    pub(crate) entries: BTreeMap<PathBuf, PlannedFile>,
    pub(crate) outcomes: Vec<PatchOutcome>,
    pub(crate) report: Report,
}

/// One directory entry before and after. `None` is no file.
#[derive(Debug)]
pub(crate) struct PlannedFile {
    pub(crate) old: Option<Vec<u8>>,
    pub(crate) new: Option<Vec<u8>>,
    /// A file whose mode this one gets.
    pub(crate) like: Option<PathBuf>,
}

/// Result of one operation, by the path as the model gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatchOutcome {
    Added(PathBuf),
    Updated(PathBuf),
    Moved { to: PathBuf },
    Deleted(PathBuf),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("No files were modified.")]
    Empty,
    #[error("File already exists: {}", .0.display())]
    Exists(PathBuf),
    #[error("Failed to read file to update {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("Failed to delete {}: {source}", path.display())]
    Undeletable { path: PathBuf, source: io::Error },
    #[error("{}", misfit_text(path, misfit))]
    HunkMismatch { path: PathBuf, misfit: HunkMismatch },
}

fn misfit_text(path: &Path, misfit: &HunkMismatch) -> String {
    let (what, lines) = match &misfit.sought {
        SearchTarget::Lines(lines) => ("expected lines", lines.join("\n")),
        SearchTarget::Hint(hint) => ("context", hint.clone()),
    };
    format!(
        "Failed to find {what} in {}:\n{lines}\n(hunk {} of the file, line {} of the patch; no files were changed)",
        path.display(),
        misfit.hunk,
        misfit.patch_line
    )
}

/// The places that the operations touch, in their order: what a permission is for.
pub(crate) fn places(workspace: &Workspace, operations: &[Operation]) -> ResolvedPaths {
    let is_away = workspace.files.is_client();
    let mut now = ResolvedPaths { real: Vec::new(), is_plain: true, is_away };
    let mut push = |shown: &Path, real: PathBuf| {
        now.is_plain &= shown == real;
        now.real.push(real);
    };
    for operation in operations {
        match operation {
            Operation::Add { path, .. } => {
                let location = workspace.locate(path);
                push(&location.shown, location.real);
            }
            Operation::Delete { path } => {
                let shown = workspace.locate(path).shown;
                push(&shown, workspace.files.resolve_entry(&shown));
            }
            Operation::Update { path, move_to, .. } => {
                let location = workspace.locate(path);
                push(&location.shown, location.real);
                if let Some(to) = move_to {
                    push(&location.shown, workspace.files.resolve_entry(&location.shown));
                    let target = workspace.locate(to);
                    push(&target.shown, target.real);
                }
            }
        }
    }
    now
}

pub(crate) fn plan(workspace: &Workspace, operations: &[Operation]) -> Result<Plan, PlanError> {
    if operations.is_empty() {
        return Err(PlanError::Empty);
    }
    let mut planner = Planner { workspace, entries: BTreeMap::new() };
    let mut outcomes = Vec::new();
    let mut reports = Vec::new();
    for operation in operations {
        let (outcome, report) = planner.step(operation)?;
        outcomes.push(outcome);
        reports.push(report);
    }
    Ok(Plan { entries: planner.entries, outcomes, report: diff::sum(reports) })
}

/// The files as the operations so far would leave them.
struct Planner<'a> {
    workspace: &'a Workspace,
    entries: BTreeMap<PathBuf, PlannedFile>,
}

impl Planner<'_> {
    fn step(&mut self, operation: &Operation) -> Result<(PatchOutcome, Report), PlanError> {
        match operation {
            Operation::Add { path, content } => {
                let location = self.workspace.locate(path);
                self.put(location.real, &location.shown, content.as_bytes(), None)?;
                let report = diff::report(Change::Created { path: &location.shown, new: content.as_bytes() });
                Ok((PatchOutcome::Added(location.shown), report))
            }
            Operation::Delete { path } => {
                let shown = self.workspace.locate(path).shown;
                let old = self
                    .take(&shown)
                    .map_err(|source| PlanError::Undeletable { path: shown.clone(), source })?;
                let report = diff::report(Change::Deleted { path: &shown, old: &old });
                Ok((PatchOutcome::Deleted(shown), report))
            }
            Operation::Update { path, move_to, hunks } => {
                let location = self.workspace.locate(path);
                let unreadable = |source| PlanError::Unreadable { path: location.shown.clone(), source };
                let old = self.current(&location.real).map_err(unreadable)?;
                let new = hunks::apply(&old, hunks)
                    .map_err(|misfit| PlanError::HunkMismatch { path: location.shown.clone(), misfit })?;
                let target = move_to.as_ref().map(|to| self.workspace.locate(to));
                if let Some(target) = target.filter(|target| target.real != location.real) {
                    let (from, to) = (&location.shown, &target.shown);
                    let report = diff::report(Change::Moved { from, to, old: &old, new: &new });
                    self.put(target.real, to, &new, Some(location.real))?;
                    self.take(from)
                        .map_err(|source| PlanError::Undeletable { path: from.clone(), source })?;
                    Ok((PatchOutcome::Moved { to: target.shown }, report))
                } else {
                    let report = diff::report(Change::Edited { path: &location.shown, old: &old, new: &new });
                    let entry = self
                        .entry(location.real, || Ok(old))
                        .map_err(|source| PlanError::Unreadable { path: location.shown.clone(), source })?;
                    entry.new = Some(new);
                    Ok((PatchOutcome::Updated(location.shown), report))
                }
            }
        }
    }

    /// A file where there must be none.
    fn put(
        &mut self,
        real: PathBuf,
        shown: &Path,
        content: &[u8],
        like: Option<PathBuf>,
    ) -> Result<(), PlanError> {
        // Any existing entry is in the way, even a directory or something unreadable.
        let occupied = !self.entries.contains_key(&real) && self.workspace.files.find(&real).is_ok();
        let entry = self.entries.entry(real).or_insert(PlannedFile { old: None, new: None, like: None });
        if occupied || entry.new.is_some() {
            return Err(PlanError::Exists(shown.to_path_buf()));
        }
        entry.new = Some(content.to_vec());
        entry.like = like;
        Ok(())
    }

    /// Removes a directory entry; a link, not what it leads to. Gives the content that is gone from there.
    fn take(&mut self, shown: &Path) -> io::Result<Vec<u8>> {
        let files = &self.workspace.files;
        let path = files.resolve_entry(shown);
        let target = files.resolve(shown);
        let is_link = path != target;
        let entry = self.entry(path, || match files.read(&target) {
            // Of a link, the link is removed, whether it leads anywhere or not.
            Err(_) if is_link => Ok(Vec::new()),
            content => content,
        })?;
        entry.new.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn current(&self, real: &Path) -> io::Result<Vec<u8>> {
        match self.entries.get(real) {
            Some(entry) => entry.new.clone().ok_or_else(|| io::ErrorKind::NotFound.into()),
            None => self.workspace.files.read(real),
        }
    }

    /// The entry of a path; if no operation has touched it, with the content it has on disk.
    fn entry(
        &mut self,
        path: PathBuf,
        on_disk: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<&mut PlannedFile> {
        use std::collections::btree_map::Entry as Slot;
        match self.entries.entry(path) {
            Slot::Occupied(slot) => Ok(slot.into_mut()),
            Slot::Vacant(slot) => {
                let old = Some(on_disk()?);
                Ok(slot.insert(PlannedFile { new: old.clone(), old, like: None }))
            }
        }
    }
}
