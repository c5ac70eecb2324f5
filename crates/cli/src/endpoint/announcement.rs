//! Announcing endpoints: the file is there, and locked, for as long as its process wants to be found.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hangar_server::Presence;
use hangar_store::SessionId;
use parking_lot::Mutex;
use serde::Serialize;

use super::{ProcessEndpoint, portals_dir, sessions_dir};

/// An endpoint that can be found. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Announcement {
    path: PathBuf,
    /// Holds the lock.
    file: File,
}

impl Announcement {
    pub(crate) fn of_session(home: &Path, id: &SessionId, endpoint: &ProcessEndpoint) -> io::Result<Self> {
        Self::publish(&sessions_dir(home), &format!("{id}.json"), endpoint)
    }

    pub(crate) fn of_portal(home: &Path, endpoint: &ProcessEndpoint) -> io::Result<Self> {
        Self::publish(&portals_dir(home), &format!("{}.json", endpoint.pid), endpoint)
    }

    /// Writes the file and locks it before it gets its name, so that no reader takes it for that of a dead process.
    pub(super) fn publish(dir: &Path, name: &str, content: &impl Serialize) -> io::Result<Self> {
        hangar_disk::ensure_dir(dir)?;
        let draft = dir.join(format!("{}.tmp", uuid::Uuid::new_v4().simple()));
        let path = dir.join(name);
        let mut file = hangar_disk::private().write(true).create_new(true).open(&draft)?;
        let published = file
            .lock()
            .and_then(|()| file.write_all(&serde_json::to_vec(content)?))
            .and_then(|()| std::fs::rename(&draft, &path));
        match published {
            Ok(()) => Ok(Self { path, file }),
            Err(error) => {
                // The error that is reported is the one that matters.
                let _ = std::fs::remove_file(&draft);
                Err(error)
            }
        }
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        remove(&self.path, &self.file);
        // A child that is just being started may share the open file.
        let _ = self.file.unlock();
    }
}

/// Removes a file, unless another one has its name by now.
pub(super) fn remove(path: &Path, file: &File) {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let named = std::fs::metadata(path).map(identity).ok();
    if named.is_some() && named == file.metadata().map(identity).ok() {
        // A file that stays is recognised by its lock.
        let _ = std::fs::remove_file(path);
    }
}

/// Announces the sessions of a terminal while they are alive.
pub(crate) struct TerminalPresence {
    home: PathBuf,
    endpoint: ProcessEndpoint,
    open: Mutex<HashMap<SessionId, Announcement>>,
}

impl TerminalPresence {
    pub(crate) fn new(home: &Path, endpoint: ProcessEndpoint) -> Self {
        Self { home: home.to_owned(), endpoint, open: Mutex::default() }
    }
}

impl Presence for TerminalPresence {
    fn opened(&self, id: &SessionId) {
        match Announcement::of_session(&self.home, id, &self.endpoint) {
            Ok(announcement) => drop(self.open.lock().insert(id.clone(), announcement)),
            // The session works all the same; it cannot be joined.
            Err(error) => tracing::warn!(%error, session = %id, "the session cannot be announced"),
        }
    }

    fn closed(&self, id: &SessionId) {
        self.open.lock().remove(id);
    }
}
