//! Sessions that this worker is carrying out: one attempt at each, so that none finds the agents of an earlier one in its worktree.

use std::collections::HashSet;
use std::sync::Arc;

use hangar_store::SessionId;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Sessions with an attempt under way. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct AtWork(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    sessions: Mutex<HashSet<SessionId>>,
    left: Notify,
}

/// The attempt at a session; others wait until it is dropped.
#[derive(Debug)]
pub(super) struct Attempt {
    at_work: AtWork,
    session: SessionId,
}

impl AtWork {
    /// Begins an attempt, once the earlier one is over.
    pub(super) async fn enter(&self, session: &SessionId) -> Attempt {
        loop {
            let left = self.0.left.notified();
            if let Some(attempt) = self.try_enter(session) {
                return attempt;
            }
            left.await;
        }
    }

    /// The same, unless there is an earlier one.
    pub(super) fn try_enter(&self, session: &SessionId) -> Option<Attempt> {
        let is_first = self.0.sessions.lock().insert(session.clone());
        is_first.then(|| Attempt { at_work: self.clone(), session: session.clone() })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.at_work.0.sessions.lock().remove(&self.session);
        self.at_work.0.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_attempt_waits_for_the_one_before() {
        let at_work = AtWork::default();
        let session = |digit: char| {
            let text = "00000000-0000-4000-8000-00000000000X".replace('X', &digit.to_string());
            text.parse::<SessionId>().expect("an id")
        };
        let first = at_work.enter(&session('1')).await;
        assert!(at_work.try_enter(&session('1')).is_none());
        let other = at_work.try_enter(&session('2'));
        assert!(other.is_some(), "other sessions do not wait");
        let waiting = tokio::spawn({
            let (at_work, session) = (at_work.clone(), session('1'));
            async move { at_work.enter(&session).await }
        });
        drop(other);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        let second = waiting.await.expect("its turn");
        assert!(at_work.try_enter(&session('1')).is_none());
        drop(second);
        assert!(at_work.try_enter(&session('1')).is_some());
    }
}
