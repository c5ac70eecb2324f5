//! What a confined command may do.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Paths are absolute. Those that do not exist when a command starts allow and deny nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What may be read, but for `denied`.
    #[serde(default)]
    pub readable: Readable,
    /// Directories whose content may be changed; everything in them may be read too.
    pub writable: Vec<PathBuf>,
    /// Paths in writable directories that stay as they are, where mount namespaces can be had.
    pub protected: Vec<PathBuf>,
    /// Files that are not there and must not be made: they are removed when the command has ended, where process namespaces
    /// can be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<PathBuf>,
    /// What must not be read.
    pub denied: Vec<PathBuf>,
    pub network: Network,
    /// Whether modes, owners, times and attributes may be changed where writing is allowed.
    #[serde(default)]
    pub metadata: Metadata,
    /// What to do without although this kernel may have it: how the layers are tried one by one, and how an older
    /// kernel is. A session leaves it empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Feature>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readable {
    #[default]
    Everything,
    /// These paths, links resolved, and what is below them, what programs need to run ([`crate::system`]), and the writable directories.
    Only(Vec<PathBuf>),
}

/// How changes to the metadata of files are kept to the writable directories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Metadata {
    /// By read-only mounts, where mount namespaces can be had.
    #[default]
    Mounts,
    /// There are none anywhere: commands that only read need no such calls, and need no mounts then.
    Frozen,
}

/// Something that a kernel, or who runs it, may not offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Feature {
    /// Namespaces of mounts, processes and shared memory, as in most containers.
    Namespaces,
    /// Landlock at all, as before Linux 6.2.
    Landlock,
    /// Landlock for TCP, as before Linux 6.7; what came later is missing too.
    LandlockNetwork,
    /// Landlock's bounds for signals, as before Linux 6.12; what came later is missing too.
    LandlockScopes,
    /// A filter of system calls.
    Seccomp,
}

impl Feature {
    /// Reads a feature by the name that tests write in lists: `namespaces`, `landlock-network`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "namespaces" => Self::Namespaces,
            "landlock" => Self::Landlock,
            "landlock-network" => Self::LandlockNetwork,
            "landlock-scopes" => Self::LandlockScopes,
            "seccomp" => Self::Seccomp,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    #[default]
    Closed,
    Open,
}

impl Policy {
    #[cfg(target_os = "linux")]
    pub(crate) fn may_use(&self, feature: Feature) -> bool {
        !self.without.contains(&feature)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let readable = match &self.readable {
            Readable::Everything => &[][..],
            Readable::Only(paths) => paths,
        };
        let lists = [&self.writable[..], &self.protected, &self.absent, &self.denied, readable];
        lists.into_iter().flatten().map(PathBuf::as_path)
    }

    /// A path that is denied and writable at once, with the directory that it is in.
    pub fn contradiction(&self) -> Option<(&Path, &Path)> {
        self.denied.iter().find_map(|denied| {
            let within = self.writable.iter().find(|dir| denied.starts_with(dir))?;
            Some((denied.as_path(), within.as_path()))
        })
    }
}

/// How many parts the longest of these paths has that something is in: of two that say otherwise, the longer one counts.
pub fn deepest(paths: &[PathBuf], of: &Path) -> Option<usize> {
    paths.iter().filter(|path| of.starts_with(path)).map(|path| path.components().count()).max()
}
