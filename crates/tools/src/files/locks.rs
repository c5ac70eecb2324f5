//! Locks on files: one change at a time per file, across all tools.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Files are the process's, not a session's, so the locks are too: two sessions may share a directory.
static LOCKS: Mutex<BTreeMap<PathBuf, Weak<AsyncMutex<()>>>> = Mutex::new(BTreeMap::new());

/// Guard: no other tool changes these files while it exists.
pub(crate) type Guards = Vec<OwnedMutexGuard<()>>;

/// Locks these files (resolved paths), waiting for other changes to end. Dropping the guards unlocks them.
pub(crate) async fn lock(paths: impl IntoIterator<Item = PathBuf>) -> Guards {
    // In order, so that two calls that share files never each wait for the other.
    let paths: BTreeSet<PathBuf> = paths.into_iter().collect();
    let mut guards = Vec::with_capacity(paths.len());
    for path in paths {
        guards.push(of(path).lock_owned().await);
    }
    guards
}

fn of(path: PathBuf) -> Arc<AsyncMutex<()>> {
    let mut locks = LOCKS.lock();
    locks.retain(|_, lock| lock.strong_count() > 0);
    if let Some(lock) = locks.get(&path).and_then(Weak::upgrade) {
        return lock;
    }
    let lock = Arc::new(AsyncMutex::new(()));
    locks.insert(path, Arc::downgrade(&lock));
    lock
}
