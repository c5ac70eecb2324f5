//! A provider's rate limit, shared: when it sends one lane away, all lanes that ask it hold back, and come again one
//! after the other.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::ModelProvider;

/// The distance between two calls that were held back together.
const SPACING: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(super) struct Pace {
    held: Vec<Held>,
}

struct Held {
    provider: Arc<dyn ModelProvider>,
    /// When the next call may be made.
    next: Instant,
}

impl Pace {
    /// The provider wants to be left alone for that long.
    pub(super) fn hold(&mut self, provider: &Arc<dyn ModelProvider>, wait: Duration, now: Instant) {
        let next = now + wait;
        match self.held.iter_mut().find(|held| Arc::ptr_eq(&held.provider, provider)) {
            Some(held) => held.next = held.next.max(next),
            None => self.held.push(Held { provider: Arc::clone(provider), next }),
        }
    }

    /// When a call may be made, if not at once. Each that asks has a time of its own.
    pub(super) fn slot(&mut self, provider: &Arc<dyn ModelProvider>, now: Instant) -> Option<Instant> {
        self.held.retain(|held| held.next > now);
        let held = self.held.iter_mut().find(|held| Arc::ptr_eq(&held.provider, provider))?;
        let slot = held.next;
        held.next += SPACING;
        Some(slot)
    }
}
