//! Connections that have not shown yet who they are. There is no telling a slow client from one that wants to keep
//! others out, so a new connection takes the place of the oldest.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

/// A bounded registry of connections that are not admitted yet.
#[derive(Clone)]
pub struct PendingConnections(Arc<Registry>);

struct Registry {
    most: usize,
    /// The oldest first.
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next_id: u64,
    connections: VecDeque<(u64, CancellationToken)>,
}

impl PendingConnections {
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Registry { most, waiting: Mutex::default() }))
    }

    /// Registers a connection. The oldest is evicted if there are too many.
    pub fn register(&self) -> PendingConnection {
        let evicted = CancellationToken::new();
        let mut waiting = self.0.waiting();
        let id = waiting.next_id;
        waiting.next_id += 1;
        if waiting.connections.len() >= self.0.most
            && let Some((_, oldest)) = waiting.connections.pop_front()
        {
            oldest.cancel();
        }
        waiting.connections.push_back((id, evicted.clone()));
        drop(waiting);
        PendingConnection { id, evicted, registry: Arc::clone(&self.0) }
    }
}

impl Registry {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }
}

/// A connection's place in the registry, until it is admitted or dropped.
pub struct PendingConnection {
    id: u64,
    evicted: CancellationToken,
    registry: Arc<Registry>,
}

impl PendingConnection {
    /// Takes the connection out of the registry: it is not evicted any more.
    pub fn admit(&self) {
        self.registry.waiting().connections.retain(|(id, _)| *id != self.id);
    }

    /// Waits until the connection has to make room for another.
    pub async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        self.admit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evicted connections of three in a registry for two, after the first was treated in some way.
    #[track_caller]
    fn check(treat: impl FnOnce(PendingConnection) -> Option<PendingConnection>, expected: [bool; 3]) {
        let registry = PendingConnections::new(2);
        let first = registry.register();
        let second = registry.register();
        let first = treat(first);
        let third = registry.register();
        let is_evicted = |connection: &PendingConnection| connection.evicted.is_cancelled();
        let evicted = [first.as_ref().is_some_and(is_evicted), is_evicted(&second), is_evicted(&third)];
        assert_eq!(evicted, expected);
    }

    #[test]
    fn a_new_connection_takes_the_place_of_the_oldest() {
        check(Some, [true, false, false]);
    }

    #[test]
    fn one_that_was_admitted_or_has_ended_needs_no_place() {
        let admit = |connection: PendingConnection| {
            connection.admit();
            Some(connection)
        };
        check(admit, [false; 3]);
        check(|_| None, [false; 3]);
    }
}
