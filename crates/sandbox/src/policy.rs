//! What a confined command may do.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Paths are absolute. Those that do not exist when a command starts allow and deny nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Directories whose content may be changed; everything in them may be read too.
    pub writable: Vec<PathBuf>,
    /// Files in writable directories that stay as they are, where mount namespaces can be had.
    pub protected: Vec<PathBuf>,
    /// What must not be read. Everything else may be. A writable directory is readable as a whole.
    pub denied: Vec<PathBuf>,
    pub network: Network,
    /// What to do without although this kernel may have it: how the layers are tried one by one, and how an older
    /// kernel is. A session leaves it empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Feature>,
}

/// Something that a kernel, or who runs it, may not offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Feature {
    MountNamespace,
    /// Landlock at all, as before Linux 6.2.
    Landlock,
    /// Landlock for TCP, as before Linux 6.7; what came later is missing too.
    LandlockNetwork,
    /// Landlock's bounds for signals, as before Linux 6.12; what came later is missing too.
    LandlockScopes,
    /// A filter of system calls.
    Seccomp,
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
        self.writable.iter().chain(&self.protected).chain(&self.denied).map(PathBuf::as_path)
    }

    /// A path that is denied and writable at once, with the directory that it is in: that cannot be kept.
    pub fn contradiction(&self) -> Option<(&Path, &Path)> {
        self.denied.iter().find_map(|denied| {
            let within = self.writable.iter().find(|dir| denied.starts_with(dir))?;
            Some((denied.as_path(), within.as_path()))
        })
    }
}
