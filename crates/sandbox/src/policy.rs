//! The permissions of a confined command.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Paths are absolute. Those that do not exist when a command starts allow and deny nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// Readable paths, except for `denied`.
    #[serde(default)]
    pub readable: Readable,
    /// Directories whose content may be changed; everything in them may be read too.
    pub writable: Vec<PathBuf>,
    /// Paths in writable directories that stay as they are, where mount namespaces are available.
    pub protected: Vec<PathBuf>,
    /// Files that are not there and must not be made: they are removed when the command has ended, where process namespaces
    /// are available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<PathBuf>,
    /// Paths that must not be read.
    pub denied: Vec<PathBuf>,
    pub network: Network,
    /// How changes of modes, owners, times and attributes are restricted to the writable directories.
    #[serde(default)]
    pub metadata: Metadata,
    /// Features not to use even if this kernel has them: for testing single layers and older kernels. Empty in a session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<KernelFeature>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readable {
    #[default]
    Everything,
    /// These paths, links resolved, and what is below them, what programs need to run ([`crate::system`]), and the writable directories.
    Only(Vec<PathBuf>),
}

/// How changes of file metadata are restricted to the writable directories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Metadata {
    /// By read-only mounts, where mount namespaces are available.
    #[default]
    Mounts,
    /// All such calls are denied: commands that only read do not need them, nor the mounts.
    Frozen,
}

/// A kernel feature that may be missing or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelFeature {
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

impl KernelFeature {
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

impl SandboxPolicy {
    #[cfg(target_os = "linux")]
    pub(crate) fn may_use(&self, feature: KernelFeature) -> bool {
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

/// Number of components of the longest of these paths that contains `of`: of two contradicting rules, the longer path wins.
pub fn deepest(paths: &[PathBuf], of: &Path) -> Option<usize> {
    paths.iter().filter(|path| of.starts_with(path)).map(|path| path.components().count()).max()
}
