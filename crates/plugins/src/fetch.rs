//! Copies of plugins and marketplaces in the home folder: clones, and copies of directories.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hangar_git::Git;

use crate::PluginError;
use crate::source::{Remote, Source};
use crate::state::StateFiles;

/// Most files of a plugin.
const MAX_FILES: usize = 20_000;
/// Most bytes of a plugin.
const MAX_BYTES: u64 = 256 << 20;

/// A fetched folder: deleted again unless it is kept.
pub(crate) struct Fetched {
    /// Folder of ours, if the source was copied.
    pub(crate) copy: Option<PathBuf>,
    /// The folder that was asked for, in the copy or at the source.
    pub(crate) folder: PathBuf,
    is_kept: bool,
}

impl Fetched {
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { copy: None, folder, is_kept: true }
    }

    fn copied(copy: PathBuf) -> Self {
        Self { folder: copy.clone(), copy: Some(copy), is_kept: false }
    }

    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        if let Some(copy) = self.copy.as_ref().filter(|_| !self.is_kept) {
            let _ = fs::remove_dir_all(copy);
        }
    }
}

/// Fetches a source into a new folder of ours.
pub(crate) async fn fetch(files: &StateFiles, git: &Git, source: &Source) -> Result<Fetched, PluginError> {
    let folder = files.folder();
    hangar_disk::ensure_dir(&folder)
        .map_err(|error| PluginError(format!("{} cannot be created: {error}", folder.display())))?;
    let into = folder.join(uuid::Uuid::new_v4().to_string());
    let mut fetched = Fetched::copied(into.clone());
    match source.remote() {
        Err(path) => copy(path, &into)
            .map_err(|error| PluginError(format!("{} cannot be copied: {error}", path.display())))?,
        Ok(remote) => {
            clone(git, &remote, source, &into).await?;
            if let Some(path) = &remote.path {
                fetched.folder = below(&into, path)?;
            }
        }
    }
    Ok(fetched)
}

async fn clone(git: &Git, remote: &Remote, source: &Source, into: &Path) -> Result<(), PluginError> {
    let failed = |problem: String| PluginError(format!("Failed to fetch {}: {problem}", source.describe()));
    let output = git
        .clone_into(&remote.url, &remote.revision, into)
        .await
        .map_err(|error| failed(error.to_string()))?;
    match output.code {
        0 => Ok(()),
        _ => Err(failed(output.stderr.lines().map(str::trim).collect::<Vec<_>>().join(" "))),
    }
}

/// A folder in a clone, links resolved.
fn below(root: &Path, path: &str) -> Result<PathBuf, PluginError> {
    let folder = root.join(path);
    let real = |path: &Path| path.canonicalize().ok();
    match (real(&folder), real(root)) {
        (Some(folder), Some(root)) if folder.is_dir() && folder.starts_with(&root) => Ok(folder),
        _ => Err(PluginError(format!("the repository has no folder {path}"))),
    }
}

/// Copies a directory without its `.git`. A link is copied as one if it leads to a place in the directory, else it is left out.
fn copy(from: &Path, into: &Path) -> io::Result<()> {
    let root = from.canonicalize()?;
    let mut left = (MAX_FILES, MAX_BYTES);
    copy_into(&root, &root, into, &mut left)
}

fn copy_into(root: &Path, from: &Path, into: &Path, left: &mut (usize, u64)) -> io::Result<()> {
    fs::create_dir(into)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target, kind) = (entry.path(), into.join(entry.file_name()), entry.file_type()?);
        if entry.file_name() == ".git" {
            continue;
        }
        left.0 = left
            .0
            .checked_sub(1)
            .ok_or_else(|| io::Error::other(format!("it has more than {MAX_FILES} files")))?;
        if kind.is_dir() {
            copy_into(root, &path, &target, left)?;
        } else if kind.is_file() {
            let size = entry.metadata()?.len();
            let too_large = || io::Error::other(format!("it is larger than {} MB", MAX_BYTES >> 20));
            left.1 = left.1.checked_sub(size).ok_or_else(too_large)?;
            fs::copy(&path, &target)?;
        } else if kind.is_symlink() {
            let link = fs::read_link(&path)?;
            if link.is_relative() && path.canonicalize().is_ok_and(|real| real.starts_with(root)) {
                std::os::unix::fs::symlink(link, target)?;
            }
        }
    }
    Ok(())
}
