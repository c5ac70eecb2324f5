//! Errors of stored sessions, as far as callers act on them.

use std::io;
use std::path::{Path, PathBuf};

use crate::SessionId;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("session {id} is in use by {}; wait for it to end, or start a new one", Holder(*pid))]
    InUse { id: SessionId, pid: Option<u32> },
    #[error("there is no session {id}")]
    NotFound { id: SessionId },
    #[error("session {id} exists already")]
    Exists { id: SessionId },
    #[error("{doing} {}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl StoreError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}

/// Error of resolving a user's text to one session.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("no session has the id or name {text:?}")]
    NotFound { text: String },
    #[error("{text:?} could mean {} sessions: {}", ids.len(), Some3(ids))]
    Ambiguous { text: String, ids: Vec<SessionId> },
    #[error(transparent)]
    Store(#[from] StoreError),
}

struct Holder(Option<u32>);

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("another process"),
        }
    }
}

struct Some3<'a>(&'a [SessionId]);

impl std::fmt::Display for Some3<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, id) in self.0.iter().take(3).enumerate() {
            write!(f, "{}{id}", if n == 0 { "" } else { ", " })?;
        }
        if self.0.len() > 3 { f.write_str(", ...") } else { Ok(()) }
    }
}
