//! Recent events of a session, ephemeral ones included, for clients that poll.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;

use hangar_protocol::Event;
use serde_json::value::RawValue;

/// Retention limits, by count and by size.
const MAX_EVENTS: usize = 2048;
const MAX_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct RecentEvents(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    events: VecDeque<RecentEvent>,
    bytes: usize,
    /// Number of the next event.
    next: u64,
}

#[derive(Clone)]
pub(crate) struct RecentEvent {
    pub(crate) number: u64,
    pub(crate) about: EventFacts,
    pub(crate) event: Box<RawValue>,
}

/// Properties of an event that readers filter by.
#[derive(Clone)]
pub(crate) struct EventFacts {
    pub(crate) kind: String,
    /// The agent that it is about, if not the main one.
    pub(crate) agent: Option<String>,
    pub(crate) is_ephemeral: bool,
}

impl EventFacts {
    pub(crate) fn of(event: &Event) -> Self {
        Self {
            kind: event.kind().to_owned(),
            agent: event.agent_id().map(|agent| agent.0.clone()),
            is_ephemeral: event.is_ephemeral(),
        }
    }
}

/// Result of one read of the events.
pub(crate) struct EventPage {
    pub(crate) events: Vec<RecentEvent>,
    /// Whether there are more events after these.
    pub(crate) more: bool,
    /// Number of the first event that was not read.
    pub(crate) next: u64,
    /// Whether the requested position is no longer kept, or never existed.
    pub(crate) expired: bool,
}

impl RecentEvents {
    pub(crate) fn push(&self, event: &Event) {
        let Ok(text) = serde_json::value::to_raw_value(event) else { return };
        let mut kept = self.lock();
        let number = kept.next;
        kept.next += 1;
        kept.bytes += text.get().len();
        kept.events.push_back(RecentEvent { number, about: EventFacts::of(event), event: text });
        while kept.events.len() > MAX_EVENTS || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.events.pop_front() else { break };
            kept.bytes -= oldest.event.get().len();
        }
    }

    /// Number of the next event.
    pub(crate) fn end(&self) -> u64 {
        self.lock().next
    }

    /// Events from a number on that are wanted, or from the oldest on.
    pub(crate) fn read(
        &self,
        from: Option<u64>,
        max: usize,
        wanted: impl Fn(&EventFacts) -> bool,
    ) -> EventPage {
        let kept = self.lock();
        let start = kept.events.front().map_or(kept.next, |oldest| oldest.number);
        let expired = from.is_some_and(|from| !(start..=kept.next).contains(&from));
        let from = from.filter(|_| !expired).unwrap_or(start);
        let mut events: Vec<RecentEvent> = kept
            .events
            .iter()
            .filter(|recent| recent.number >= from && wanted(&recent.about))
            .take(max + 1)
            .cloned()
            .collect();
        let more = events.len() > max;
        events.truncate(max);
        let next = if more { events.last().map_or(kept.next, |last| last.number + 1) } else { kept.next };
        EventPage { events, more, next, expired }
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str) -> Event {
        let line = format!(r#"{{"type":"{kind}","data":{{}},"id":"i","timestamp":"t","parentId":null}}"#);
        Event::parse(&line).expect("an event")
    }

    #[test]
    fn a_look_goes_on_where_the_last_one_ended() {
        let history = RecentEvents::default();
        ["a", "b", "a", "b"].iter().for_each(|kind| history.push(&event(kind)));
        let look = |from, max| {
            let found = history.read(from, max, |about| about.kind == "a");
            let numbers: Vec<u64> = found.events.iter().map(|recent| recent.number).collect();
            (numbers, found.more, found.next, found.expired)
        };
        assert_eq!(look(None, 1), (vec![0], true, 1, false));
        assert_eq!(look(Some(1), 1), (vec![2], false, 4, false), "what is not wanted is not looked at again");
        assert_eq!(look(Some(4), 1), (vec![], false, 4, false));
        history.push(&event("a"));
        assert_eq!(
            look(Some(4), 1),
            (vec![4], false, 5, false),
            "what comes after a look is found by the next"
        );
        assert_eq!(look(Some(6), 9), (vec![0, 2, 4], false, 5, true));
    }
}
