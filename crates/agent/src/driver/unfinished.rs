//! Answers that are arriving, stored beside the log at intervals: a process that is killed loses at most the last interval
//! of what was said. With each goes an estimate of what its call has used, unless a reservation in the log says it. Nothing is
//! stored while no call is in flight.

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_protocol::{Body, Event, EventId};
use tokio::time::Instant;

use super::Driver;
use super::lane::LaneId;
use crate::session::iso;

/// Time between two stores. Answers that take less are never stored.
const STORE_INTERVAL: Duration = Duration::from_millis(500);
/// Agents whose answers are stored at the same time.
const MAX_ANSWERS: usize = 32;

#[derive(Debug, Default)]
pub(super) struct UnfinishedAnswers {
    /// Bytes that have arrived, by lane.
    arrived: BTreeMap<LaneId, usize>,
    /// Whether some are stored.
    stored: bool,
    /// Time of the next store.
    due: Option<Instant>,
}

impl UnfinishedAnswers {
    /// Completes when the answers are to be stored.
    pub(super) async fn is_due(&self) {
        match self.due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }
}

impl Driver {
    /// Takes note of what has arrived in a lane. Answers that have ended are in the log by now.
    pub(super) fn note_arrived(&mut self, id: LaneId) {
        let bytes = self.lanes.get(&id).map_or(0, |lane| lane.session.arrived_bytes());
        let unfinished = &mut self.unfinished;
        let changed = match bytes {
            0 => unfinished.arrived.remove(&id).is_some(),
            bytes => unfinished.arrived.insert(id, bytes) != Some(bytes),
        };
        if !changed {
            return;
        }
        if unfinished.arrived.is_empty() {
            self.forget_unfinished();
        } else {
            unfinished.due.get_or_insert_with(|| Instant::now() + STORE_INTERVAL);
        }
    }

    /// Stores the answers that are arriving.
    pub(super) fn keep_unfinished(&mut self) {
        self.unfinished.due = None;
        let timestamp = iso((self.host.now)());
        let is_reserved = !self.host.ledger.budget().is_unlimited();
        let mut events = Vec::new();
        for id in self.unfinished.arrived.keys().take(MAX_ANSWERS) {
            let Some(lane) = self.lanes.get(id) else { continue };
            let agent = lane.agent.as_ref().map(|agent| agent.id.clone());
            let answer = lane.session.arriving_answer().map(Body::from);
            let usage = lane.session.usage_so_far().filter(|_| !is_reserved).map(Body::from);
            for body in answer.into_iter().chain(usage) {
                let id = EventId(self.host.entropy.uuid());
                events.push(Event::new(id, timestamp.clone(), self.parent.clone(), agent.clone(), body));
            }
        }
        self.unfinished.stored |= !events.is_empty();
        self.host.log.keep_unfinished(&events);
    }

    fn forget_unfinished(&mut self) {
        self.unfinished.due = None;
        if std::mem::take(&mut self.unfinished.stored) {
            self.host.log.keep_unfinished(&[]);
        }
    }
}
