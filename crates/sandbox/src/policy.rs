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
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    #[default]
    Closed,
    Open,
}

impl Policy {
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
