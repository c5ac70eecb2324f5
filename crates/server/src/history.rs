//! The latest events of a session, those of the moment included, for clients that read rather than listen.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hangar_protocol::Event;
use serde_json::value::RawValue;

/// What is kept, by count and by size.
const MAX_EVENTS: usize = 2048;
const MAX_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct History(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    events: VecDeque<Recent>,
    bytes: usize,
    /// Number of the next event.
    next: u64,
}

#[derive(Clone)]
pub(crate) struct Recent {
    pub(crate) number: u64,
    pub(crate) about: About,
    pub(crate) event: Box<RawValue>,
}

/// What readers choose events by.
#[derive(Clone)]
pub(crate) struct About {
    pub(crate) kind: String,
    /// The agent that it is about, if not the main one.
    pub(crate) agent: Option<String>,
    pub(crate) is_ephemeral: bool,
}

impl About {
    pub(crate) fn of(event: &Event) -> Self {
        Self {
            kind: event.kind().to_owned(),
            agent: event.agent_id().map(|agent| agent.0.clone()),
            is_ephemeral: event.is_ephemeral(),
        }
    }
}

impl History {
    pub(crate) fn push(&self, event: &Event) {
        let Ok(text) = serde_json::value::to_raw_value(event) else { return };
        let mut kept = self.lock();
        let number = kept.next;
        kept.next += 1;
        kept.bytes += text.get().len();
        kept.events.push_back(Recent { number, about: About::of(event), event: text });
        while kept.events.len() > MAX_EVENTS || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.events.pop_front() else { break };
            kept.bytes -= oldest.event.get().len();
        }
    }

    /// Number of the event that comes next.
    pub(crate) fn end(&self) -> u64 {
        self.lock().next
    }

    /// Number of the oldest event that is kept.
    pub(crate) fn start(&self) -> u64 {
        let kept = self.lock();
        kept.events.front().map_or(kept.next, |oldest| oldest.number)
    }

    /// Events from a number on that are wanted, and whether there are more.
    pub(crate) fn read(&self, from: u64, max: usize, wanted: impl Fn(&About) -> bool) -> (Vec<Recent>, bool) {
        let kept = self.lock();
        let mut found: Vec<Recent> = kept
            .events
            .iter()
            .filter(|recent| recent.number >= from && wanted(&recent.about))
            .take(max + 1)
            .cloned()
            .collect();
        let more = found.len() > max;
        found.truncate(max);
        (found, more)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
