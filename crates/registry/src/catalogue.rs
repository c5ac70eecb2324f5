//! The sessions of the home as lists show them, without reading any log twice.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use hangar_protocol::LogPosition;
use hangar_store::{SessionId, Store};

use crate::error::RegistryError;
use crate::session_stats::SessionStats;

/// Digests that are kept. Each is a few hundred bytes; one that is not kept is made again when it is wanted.
const KEPT: usize = 4096;

pub(crate) struct SessionCatalogue {
    store: Store,
    kept_stats: Mutex<HashMap<SessionId, Arc<SessionStats>>>,
    /// Logs that are being read, each with the result that other readers of the same log wait for.
    reading: Mutex<HashMap<SessionId, Arc<Mutex<()>>>>,
    /// Names on their way into files of sessions that are open.
    names: Mutex<HashMap<SessionId, String>>,
    /// Number of times that a log was read.
    #[cfg(test)]
    reads: std::sync::atomic::AtomicUsize,
}

/// A part in the reading of a log. The last one that is dropped removes the log from `reading`.
struct Reading<'a> {
    catalogue: &'a SessionCatalogue,
    id: &'a SessionId,
    gate: Arc<Mutex<()>>,
}

impl<'a> Reading<'a> {
    fn of(catalogue: &'a SessionCatalogue, id: &'a SessionId) -> Self {
        let gate = Arc::clone(catalogue.reading.lock().entry(id.clone()).or_default());
        Self { catalogue, id, gate }
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut reading = self.catalogue.reading.lock();
        // The map has one, and this is the other.
        if Arc::strong_count(&self.gate) == 2 {
            reading.remove(self.id);
        }
    }
}

impl SessionCatalogue {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            kept_stats: Mutex::default(),
            reading: Mutex::default(),
            names: Mutex::default(),
            #[cfg(test)]
            reads: std::sync::atomic::AtomicUsize::default(),
        }
    }

    /// Current statistics of a session, from its log.
    pub(crate) fn stats(&self, id: &SessionId) -> Result<SessionStats, RegistryError> {
        let length = self.store.log_bytes(id).ok_or_else(|| RegistryError::NoSession(id.to_string()))?;
        self.stats_of(id, length)
    }

    /// The same, for a log that is known to be so long. Only what came on top is read, and once for all who want it now.
    pub(crate) fn stats_of(&self, id: &SessionId, length: u64) -> Result<SessionStats, RegistryError> {
        if let Some(kept) = self.kept_stats.lock().get(id).filter(|kept| kept.at.offset == length) {
            return Ok(SessionStats::clone(kept));
        }
        let reading = Reading::of(self, id);
        let _one = reading.gate.lock();
        let no_session = || RegistryError::NoSession(id.to_string());
        let length = self.store.log_bytes(id).ok_or_else(no_session)?;
        let kept = self.kept_stats.lock().get(id).cloned();
        let mut stats = match kept {
            Some(kept) if kept.at.offset == length => return Ok(SessionStats::clone(&kept)),
            // A log that has become shorter is another one.
            Some(kept) if kept.at.offset < length => SessionStats::clone(&kept),
            _ => SessionStats::default(),
        };
        #[cfg(test)]
        self.reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut follow = self.store.follow(id, stats.at)?;
        stats
            .catch_up(&mut follow)
            .map_err(|error| RegistryError::Store(format!("reading session {id}: {error}")))?;
        self.keep(id, stats.clone());
        Ok(stats)
    }

    /// A place in the log at or before a line, as far as one is known.
    pub(crate) fn mark_before(&self, id: &SessionId, seq: u64) -> LogPosition {
        self.kept_stats.lock().get(id).map(|stats| stats.mark_before(seq)).unwrap_or_default()
    }

    pub(crate) fn keep(&self, id: &SessionId, stats: SessionStats) {
        let mut kept_stats = self.kept_stats.lock();
        if kept_stats.len() >= KEPT && !kept_stats.contains_key(id) {
            // Which one goes hardly matters: lists want the newest, and those come back at once.
            if let Some(any) = kept_stats.keys().next().cloned() {
                kept_stats.remove(&any);
            }
        }
        kept_stats.insert(id.clone(), Arc::new(stats));
        self.names.lock().remove(id);
    }

    pub(crate) fn forget(&self, id: &SessionId) {
        self.kept_stats.lock().remove(id);
        self.names.lock().remove(id);
    }

    /// A session that is open writes its name itself, which takes a moment.
    pub(crate) fn renamed(&self, id: &SessionId, name: String) {
        self.names.lock().insert(id.clone(), name);
    }

    pub(crate) fn name_given(&self, id: &SessionId) -> Option<String> {
        self.names.lock().get(id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::Ordering;

    use super::*;

    const READERS: usize = 8;

    #[test]
    fn a_log_that_many_want_at_once_is_read_once() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(home.path());
        let id: SessionId = "s".parse().unwrap();
        std::fs::create_dir_all(store.session_dir(&id)).unwrap();
        let line =
            r#"{"type":"user.message","data":{"content":"hi"},"id":"i","timestamp":"t","parentId":null}"#;
        std::fs::write(store.session_dir(&id).join("events.jsonl"), format!("{line}\n").repeat(20_000))
            .unwrap();
        let catalogue = SessionCatalogue::new(store);
        let barrier = Barrier::new(READERS);
        std::thread::scope(|scope| {
            for _ in 0..READERS {
                scope.spawn(|| {
                    barrier.wait();
                    assert_eq!(catalogue.stats(&id).unwrap().at.seq, 20_000);
                });
            }
        });
        assert_eq!(catalogue.reads.load(Ordering::Relaxed), 1);
        assert!(catalogue.reading.lock().is_empty());
    }
}
