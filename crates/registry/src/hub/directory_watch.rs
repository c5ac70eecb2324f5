//! Sessions that other processes begin and delete, for those who watch lists.
//!
//! The directory of all sessions changes when one comes or goes, so one look at it tells whether anything has to be done.
//! It is taken only while somebody listens.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hangar_store::{SessionId, Store, StoreError};
use serde::Serialize;
use tokio::sync::broadcast;

use super::Hub;

/// Interval between two scans of the directory.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Scans without a change after which a session of another process is no longer watched.
const PATIENCE: u32 = 30;
/// Maximum number of new sessions that are watched at once.
const MOST_YOUNG: usize = 256;

/// The sessions that were there at the last look.
pub(super) struct DirectoryWatch {
    known: HashSet<SessionId>,
    /// Sessions that were created since, each with the last seen state of its log. They are likely to grow.
    young: HashMap<SessionId, Young>,
    /// When the directory had changed by then.
    changed: Option<SystemTime>,
    /// Whether the log was unchanged at the scan before. A file that has just changed may change again within the
    /// resolution of its timestamp.
    settled: bool,
}

#[derive(Debug, Default)]
struct Young {
    /// Length of its log, once there is one.
    length: Option<u64>,
    /// Scans since its last change.
    quiet: u32,
}

/// Differences since the last scan.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    gone: Vec<SessionId>,
    /// New ones, and new ones that have grown.
    grown: Vec<SessionId>,
}

impl DirectoryWatch {
    fn take(store: &Store) -> Self {
        // First the time: what changes meanwhile is seen at the next look.
        let changed = changed(store);
        let known = store.ids().unwrap_or_default().into_iter().collect();
        Self { known, young: HashMap::new(), changed, settled: false }
    }

    /// Scans again. Sessions that are open here report their changes themselves.
    fn look(&mut self, store: &Store, is_open: impl Fn(&SessionId) -> bool) -> Changes {
        let changed = changed(store);
        let same = changed == self.changed;
        let mut changes = Changes::default();
        if !(same && self.settled)
            && let Ok(ids) = store.ids()
        {
            let now: HashSet<SessionId> = ids.into_iter().collect();
            changes.gone = self.known.difference(&now).cloned().collect();
            let came = now.difference(&self.known).filter(|id| !is_open(id));
            let room = MOST_YOUNG.saturating_sub(self.young.len());
            self.young.extend(came.take(room).map(|id| (id.clone(), Young::default())));
            self.known = now;
        }
        (self.changed, self.settled) = (changed, same);
        let known = &self.known;
        self.young.retain(|id, young| {
            if !known.contains(id) || is_open(id) {
                return false;
            }
            let length = store.log_bytes(id);
            if length == young.length {
                young.quiet += 1;
            } else {
                *young = Young { length, quiet: 0 };
                changes.grown.push(id.clone());
            }
            young.quiet < PATIENCE
        });
        changes
    }
}

fn changed(store: &Store) -> Option<SystemTime> {
    std::fs::metadata(store.root()).and_then(|metadata| metadata.modified()).ok()
}

#[derive(Serialize)]
struct Gone {
    kind: &'static str,
    id: String,
}

impl Hub {
    /// News of all resources, each a message for a stream. No session that is deleted from now on is missed.
    pub async fn feed(&self) -> broadcast::Receiver<Bytes> {
        let feed = self.0.feed.subscribe();
        let hub = self.clone();
        // Directories may be large.
        let begun = tokio::task::spawn_blocking(move || hub.begin_watch()).await;
        if begun.unwrap_or(false) {
            self.spawn(self.clone().keep_watch());
        }
        feed
    }

    fn begin_watch(&self) -> bool {
        let mut watch = self.0.directory_watch.lock();
        let begins = watch.is_none();
        if begins {
            *watch = Some(DirectoryWatch::take(self.store()));
        }
        begins
    }

    async fn keep_watch(self) {
        loop {
            self.meet_all().await;
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.stopping().cancelled() => return,
            }
            let hub = self.clone();
            let looked = tokio::task::spawn_blocking(move || hub.look_round()).await;
            let Ok(Some(changes)) = looked else { return };
            changes.gone.iter().for_each(|id| self.gone(id));
            for session in changes.grown.iter().filter_map(|id| self.session(id)) {
                self.announce("session", &session);
            }
        }
    }

    /// Scans the directory. `None` once there is no subscriber.
    fn look_round(&self) -> Option<Changes> {
        let mut watch = self.0.directory_watch.lock();
        if !self.is_heard() {
            *watch = None;
        }
        Some(watch.as_mut()?.look(self.store(), |id| self.live(id).is_some()))
    }

    /// Removes the files of a session. No scan runs between the removal and its record, so it is reported once.
    pub(super) fn erase(&self, id: &SessionId) -> Result<(), StoreError> {
        let mut watch = self.0.directory_watch.lock();
        self.store().delete(id)?;
        if let Some(watch) = watch.as_mut() {
            watch.known.remove(id);
        }
        Ok(())
    }

    /// Publishes that a session was deleted, by any process.
    pub(super) fn gone(&self, id: &SessionId) {
        if let Some(live) = self.live(id) {
            live.end_now();
        }
        self.0.catalogue.forget(id);
        self.announce("gone", &Gone { kind: "session", id: id.to_string() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        text.parse().unwrap()
    }

    fn write(store: &Store, name: &str, log: &str) {
        std::fs::create_dir_all(store.session_dir(&id(name))).unwrap();
        std::fs::write(store.session_dir(&id(name)).join("events.jsonl"), log).unwrap();
    }

    /// Result of a scan: `+a` for a session that was created or grew, `-a` for one that was deleted.
    fn look(watch: &mut DirectoryWatch, store: &Store) -> String {
        let Changes { gone, grown } = watch.look(store, |_| false);
        let gone = gone.iter().map(|id| format!("-{id}"));
        let mut found: Vec<String> = gone.chain(grown.iter().map(|id| format!("+{id}"))).collect();
        found.sort();
        found.join(" ")
    }

    #[test]
    fn who_comes_and_goes_is_told_once() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(home.path());
        let mut watch = DirectoryWatch::take(&store);
        assert_eq!(look(&mut watch, &store), "", "there need not be a directory yet");
        write(&store, "a", "");
        write(&store, "b", "");
        assert_eq!(look(&mut watch, &store), "+a +b");
        assert_eq!(look(&mut watch, &store), "");
        store.delete(&id("a")).unwrap();
        assert_eq!(look(&mut watch, &store), "-a");
        for _ in 0..3 {
            assert_eq!(look(&mut watch, &store), "");
        }
    }

    #[test]
    fn who_has_come_is_told_again_while_it_grows() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(home.path());
        write(&store, "old", "");
        let mut watch = DirectoryWatch::take(&store);
        std::fs::create_dir(store.session_dir(&id("new"))).unwrap();
        assert_eq!(look(&mut watch, &store), "", "it has no log yet");
        for log in ["", "1\n", "1\n2\n"] {
            write(&store, "new", log);
            write(&store, "old", log);
            assert_eq!(look(&mut watch, &store), "+new");
            assert_eq!(look(&mut watch, &store), "");
        }
        for _ in 0..PATIENCE {
            assert_eq!(look(&mut watch, &store), "");
        }
        assert!(watch.young.is_empty());
    }

    /// Two changes within the grain of the clock look like one.
    #[test]
    fn a_change_that_the_clock_hides_is_seen_at_the_next_look() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(home.path());
        write(&store, "a", "");
        let mut watch = DirectoryWatch::take(&store);
        write(&store, "b", "");
        assert_eq!(look(&mut watch, &store), "+b");
        write(&store, "c", "");
        watch.changed = changed(&store);
        assert_eq!(look(&mut watch, &store), "+c");
    }
}
