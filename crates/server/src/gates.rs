//! Lock per session id: opening a session waits only for those who open the same one.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

#[derive(Default)]
pub(crate) struct Gates(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

/// Leave to open a session. Dropping it lets the next one in.
pub(crate) struct Pass<'a> {
    gates: &'a Gates,
    id: String,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Gates {
    /// Acquires the lock of a session id.
    pub(crate) async fn pass(&self, id: &str) -> Pass<'_> {
        // Made before the wait, so that one that is given up is cleared away too.
        let mut pass = Pass { gates: self, id: id.to_owned(), guard: None };
        let gate = Arc::clone(self.0.lock().entry(id.to_owned()).or_default());
        pass.guard = Some(gate.lock_owned().await);
        pass
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut gates = self.gates.0.lock();
        self.guard = None;
        // Those who wait hold the gate too.
        if gates.get(&self.id).is_some_and(|gate| Arc::strong_count(gate) == 1) {
            gates.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn only_those_who_open_the_same_session_wait() {
        let gates = Gates::default();
        let first = gates.pass("a").await;
        assert!(gates.pass("b").now_or_never().is_some());
        let mut second = Box::pin(gates.pass("a"));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        drop(second.await);
        assert!(gates.0.lock().is_empty());
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_leaves_nothing_behind() {
        let gates = Gates::default();
        let first = gates.pass("a").await;
        assert!(gates.pass("a").now_or_never().is_none());
        drop(first);
        assert!(gates.0.lock().is_empty());
    }
}
