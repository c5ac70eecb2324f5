//! Lock per session id: opening a session waits only for those who open the same one.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

#[derive(Default)]
pub(crate) struct OpenLocks(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

/// Guard of a session id that is being opened. Dropping it lets the next caller in.
pub(crate) struct OpenGuard<'a> {
    locks: &'a OpenLocks,
    id: String,
    guard: Option<OwnedMutexGuard<()>>,
}

impl OpenLocks {
    /// Acquires the lock of a session id.
    pub(crate) async fn lock(&self, id: &str) -> OpenGuard<'_> {
        // Created before the wait, so that a dropped wait is cleaned up too.
        let mut open = OpenGuard { locks: self, id: id.to_owned(), guard: None };
        let lock = Arc::clone(self.0.lock().entry(id.to_owned()).or_default());
        open.guard = Some(lock.lock_owned().await);
        open
    }
}

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        let mut locks = self.locks.0.lock();
        self.guard = None;
        // Those who wait hold the lock too.
        if locks.get(&self.id).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn only_those_who_open_the_same_session_wait() {
        let locks = OpenLocks::default();
        let first = locks.lock("a").await;
        assert!(locks.lock("b").now_or_never().is_some());
        let mut second = Box::pin(locks.lock("a"));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        drop(second.await);
        assert!(locks.0.lock().is_empty());
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_leaves_nothing_behind() {
        let locks = OpenLocks::default();
        let first = locks.lock("a").await;
        assert!(locks.lock("a").now_or_never().is_none());
        drop(first);
        assert!(locks.0.lock().is_empty());
    }
}
