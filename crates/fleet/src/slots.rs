//! Slots of the limits that hold for all machines: who has one is a fact that workers replace, each change with the sequence that it
//! follows. Whether there is a slot for a session, and why not, is decided by the scheduler.

use std::collections::BTreeMap;

use hangar_scheduler::item::{OwnerId, WorkItem};
use hangar_scheduler::limits::Limits;
use hangar_scheduler::queue::Queue;
use hangar_scheduler::record::{QueueFact, QueueRecord};
use hangar_scheduler::state::ItemStatus;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::facts::{FleetFact, FleetSessionState, SessionFact};
use crate::{Broker, FleetError};

/// Attempts to replace the fact while others do.
const ATTEMPTS: u32 = 200;
/// Leases after which a slot is compared with the state of its session.
const DOUBT: i32 = 2;

/// Slots that are taken, by session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotsFact {
    taken: BTreeMap<String, TakenSlot>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TakenSlot {
    worker: String,
    item: WorkItem,
    #[serde(with = "crate::time")]
    at: Timestamp,
}

impl FleetFact for SlotsFact {
    const KIND: &'static str = "slots";

    fn id(&self) -> &str {
        "taken"
    }
}

/// Whether a session may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotAnswer {
    Granted,
    /// The sentence of the scheduler.
    Waits(String),
}

impl SlotsFact {
    /// The scheduler's answer for an item beside the slots of other sessions.
    fn answer(&self, limits: &Limits, item: &WorkItem, now: Timestamp) -> SlotAnswer {
        let mut queue = Queue::new(limits.clone());
        let mut apply = |fact| queue.apply(&QueueRecord { at: now, fact });
        for slot in self.taken.values().filter(|slot| slot.item.id != item.id) {
            apply(QueueFact::Counted { item: slot.item.clone(), owner: OwnerId(slot.worker.clone()) });
        }
        apply(QueueFact::Enqueued { item: item.clone(), owner: OwnerId("fleet".to_owned()) });
        queue.next(now);
        match queue.entry(&item.id).map(|entry| &entry.status) {
            Some(ItemStatus::Running { .. }) => SlotAnswer::Granted,
            _ => {
                let reason = queue.reason(&item.id, now, &TimeZone::UTC);
                SlotAnswer::Waits(reason.unwrap_or_else(|| "waits for a slot".to_owned()))
            }
        }
    }
}

impl Broker {
    /// Takes a slot for a session, unless limits that hold for all machines are full. A slot that the session has is taken over.
    pub async fn take_slot(
        &self,
        limits: &Limits,
        item: &WorkItem,
        worker: &str,
    ) -> Result<SlotAnswer, FleetError> {
        for _ in 0..ATTEMPTS {
            let (known, sequence) = self.fact_now::<SlotsFact>("taken").await?;
            let mut slots = known.unwrap_or_default();
            let now = Timestamp::now();
            let mut answer = slots.answer(limits, item, now);
            if answer != SlotAnswer::Granted && self.drop_stale(&mut slots, now).await? {
                answer = slots.answer(limits, item, now);
            }
            if answer != SlotAnswer::Granted {
                return Ok(answer);
            }
            let slot = TakenSlot { worker: worker.to_owned(), item: item.clone(), at: now };
            slots.taken.insert(item.id.0.clone(), slot);
            if self.replace_fact(&slots, sequence).await? {
                return Ok(SlotAnswer::Granted);
            }
        }
        Ok(SlotAnswer::Waits("many workers take slots at once; this one tries again".to_owned()))
    }

    /// Frees the slot of a session, if the worker still has it.
    pub async fn free_slot(&self, session: &str, worker: &str) -> Result<(), FleetError> {
        for _ in 0..ATTEMPTS {
            let (known, sequence) = self.fact_now::<SlotsFact>("taken").await?;
            let mut slots = known.unwrap_or_default();
            if slots.taken.get(session).is_none_or(|slot| slot.worker != worker) {
                return Ok(());
            }
            slots.taken.remove(session);
            if self.replace_fact(&slots, sequence).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Drops slots that were not freed although their sessions do not run. Whether there were any.
    async fn drop_stale(&self, slots: &mut SlotsFact, now: Timestamp) -> Result<bool, FleetError> {
        let before = slots.taken.len();
        let doubt = now - self.settings().lease * u32::try_from(DOUBT).unwrap_or(1);
        let doubtful: Vec<String> = slots
            .taken
            .iter()
            .filter(|(_, slot)| slot.at < doubt)
            .map(|(session, _)| session.clone())
            .collect();
        for session in doubtful {
            let fact = self.fact::<SessionFact>(&session).await?;
            if fact.is_none_or(|fact| fact.state != FleetSessionState::Running) {
                slots.taken.remove(&session);
            }
        }
        Ok(slots.taken.len() < before)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hangar_scheduler::item::{ItemId, WorkKind};
    use hangar_scheduler::limits::ScopeKind;

    use super::*;

    fn item(id: &str, project: &str) -> WorkItem {
        WorkItem {
            id: ItemId(id.to_owned()),
            kind: WorkKind::Turn,
            project: project.to_owned(),
            runtime: "native".to_owned(),
            agent: None,
            account: "openai".to_owned(),
            host: "w1".to_owned(),
            job: None,
            run: None,
            labels: BTreeSet::new(),
            priority: 0,
            enqueued: Timestamp::UNIX_EPOCH,
            attempt: 1,
        }
    }

    #[test]
    fn the_scheduler_says_why_a_session_waits() {
        let limits = Limits::global(3).with(ScopeKind::Project, "a", 1);
        let mut slots = SlotsFact::default();
        let now = Timestamp::UNIX_EPOCH;
        let mut take = |id: &str, project: &str| {
            let item = item(id, project);
            let answer = slots.answer(&limits, &item, now);
            if answer == SlotAnswer::Granted {
                slots.taken.insert(id.to_owned(), TakenSlot { worker: "w".to_owned(), item, at: now });
            }
            answer
        };
        assert_eq!(take("one", "a"), SlotAnswer::Granted);
        assert_eq!(
            take("two", "a"),
            SlotAnswer::Waits("1 of 1 slots of project a are taken; first in line".to_owned())
        );
        // The same session, on another worker.
        assert_eq!(take("one", "a"), SlotAnswer::Granted);
        assert_eq!(take("three", "b"), SlotAnswer::Granted);
        assert_eq!(take("four", "c"), SlotAnswer::Granted);
        let full = SlotAnswer::Waits("3 of 3 slots are taken; first in line".to_owned());
        assert_eq!(take("five", "d"), full);
    }
}
