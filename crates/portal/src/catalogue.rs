//! The sessions of the home as lists show them, without reading any log twice.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

use hangar_store::{Position, SessionId, Store};

use crate::digest::Digest;
use crate::trouble::Trouble;

/// Digests that are kept. Each is a few hundred bytes; one that is not kept is made again when it is wanted.
const KEPT: usize = 4096;

pub(crate) struct Catalogue {
    store: Store,
    digests: Mutex<HashMap<SessionId, Arc<Digest>>>,
    /// Names on their way into files of sessions that are open.
    names: Mutex<HashMap<SessionId, String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Catalogue {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, digests: Mutex::default(), names: Mutex::default() }
    }

    /// What the log of a session says by now.
    pub(crate) fn digest(&self, id: &SessionId) -> Result<Digest, Trouble> {
        let length = self.store.log_bytes(id).ok_or_else(|| Trouble::NoSession(id.to_string()))?;
        self.digest_of(id, length)
    }

    /// The same, for a log that is known to be so long. Only what came on top is read.
    pub(crate) fn digest_of(&self, id: &SessionId, length: u64) -> Result<Digest, Trouble> {
        let kept = lock(&self.digests).get(id).cloned();
        let mut digest = match kept {
            Some(kept) if kept.at.offset == length => return Ok(Digest::clone(&kept)),
            // A log that has become shorter is another one.
            Some(kept) if kept.at.offset < length => Digest::clone(&kept),
            _ => Digest::default(),
        };
        let mut follow = self.store.follow(id, digest.at)?;
        digest
            .catch_up(&mut follow)
            .map_err(|error| Trouble::Store(format!("reading session {id}: {error}")))?;
        self.keep(id, digest.clone());
        Ok(digest)
    }

    /// A place in the log at or before a line, as far as one is known.
    pub(crate) fn mark_before(&self, id: &SessionId, seq: u64) -> Position {
        lock(&self.digests).get(id).map(|digest| digest.mark_before(seq)).unwrap_or_default()
    }

    pub(crate) fn keep(&self, id: &SessionId, digest: Digest) {
        let mut digests = lock(&self.digests);
        if digests.len() >= KEPT && !digests.contains_key(id) {
            // Which one goes hardly matters: lists want the newest, and those come back at once.
            if let Some(any) = digests.keys().next().cloned() {
                digests.remove(&any);
            }
        }
        digests.insert(id.clone(), Arc::new(digest));
        lock(&self.names).remove(id);
    }

    pub(crate) fn forget(&self, id: &SessionId) {
        lock(&self.digests).remove(id);
        lock(&self.names).remove(id);
    }

    /// A session that is open writes its name itself, which takes a moment.
    pub(crate) fn renamed(&self, id: &SessionId, name: String) {
        lock(&self.names).insert(id.clone(), name);
    }

    pub(crate) fn name_given(&self, id: &SessionId) -> Option<String> {
        lock(&self.names).get(id).cloned()
    }
}
