//! Values that belong to an issue or a pull request and are read again when that has changed, or after a time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// Age of a change from which its date tells it from later ones, also if the clocks differ: dates have seconds.
const DATES_SETTLE: SignedDuration = SignedDuration::from_secs(60);
/// Most values that are kept.
const MAX_KEPT: usize = 10_000;

pub(crate) struct Kept<T>(Mutex<HashMap<u64, Entry<T>>>);

struct Entry<T> {
    updated: String,
    at: Instant,
    value: T,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Kept<T> {
    /// The value as of a change, if it is not older than it may be.
    pub(crate) fn get(&self, number: u64, updated: &str, fresh: impl Fn(&T) -> Duration) -> Option<T> {
        let all = self.0.lock();
        let entry = all.get(&number).filter(|entry| entry.updated == updated)?;
        (entry.at.elapsed() < fresh(&entry.value)).then(|| entry.value.clone())
    }

    pub(crate) fn put(&self, number: u64, updated: &str, value: T) {
        let age = updated.parse::<Timestamp>().map(|updated| Timestamp::now().duration_since(updated));
        if !age.is_ok_and(|age| age > DATES_SETTLE) {
            return;
        }
        let mut all = self.0.lock();
        if all.len() >= MAX_KEPT {
            all.clear();
        }
        all.insert(number, Entry { updated: updated.to_owned(), at: Instant::now(), value });
    }

    pub(crate) fn remove(&self, number: u64) {
        self.0.lock().remove(&number);
    }
}
