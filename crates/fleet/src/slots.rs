//! Slots of the limits that hold for all machines. The state of the scheduler is one fact, which workers replace, each change with the
//! sequence that it follows: the items that have a slot, those that wait for one, and the shares of their projects. Which of them is
//! next, and why the others wait, is decided by the scheduler, as on one machine.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hangar_scheduler::item::{ItemId, OwnerId, WorkItem};
use hangar_scheduler::limits::{Limits, ScopeKind};
use hangar_scheduler::queue::Queue;
use hangar_scheduler::record::{Outcome, QueueFact, QueueRecord};
use hangar_scheduler::state::{ItemStatus, QueueState};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::facts::{FleetFact, FleetSessionState, SessionFact};
use crate::{Broker, FleetError};

/// Attempts to replace the fact while others do.
const ATTEMPTS: u32 = 200;
/// Leases after which a slot is compared with the state of its session, and a session that waits is forgotten.
const DOUBT: u32 = 2;
/// Time after which no slot is kept for a session that waits: workers ask for it every second, unless they have no time for it.
const RECENT: SignedDuration = SignedDuration::from_secs(5);
/// Sessions that wait in the fact, at most, of one project and of all. Later ones are in the queue, and are looked at when a worker asks.
const MOST_OF_PROJECT: usize = 8;
const MOST_WAITING: usize = 400;
/// Owner and host of an item that is not bound to a machine.
const ANYWHERE: &str = "fleet";

/// State of the scheduler that all machines share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlotsFact {
    queue: QueueState,
    /// Time at which a worker last asked for each session.
    asked: BTreeMap<ItemId, AskedAt>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct AskedAt(#[serde(with = "crate::time")] Timestamp);

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

/// The scheduler in the middle of a change of the fact.
struct Change {
    queue: Queue,
    now: Timestamp,
}

impl Change {
    fn of(fact: &SlotsFact, limits: &Limits, now: Timestamp) -> Self {
        let mut change = Self { queue: Queue::new(limits.clone()), now };
        change.apply(QueueFact::Compacted { state: Box::new(fact.queue.clone()) });
        change
    }

    fn apply(&mut self, fact: QueueFact) {
        self.queue.apply(&QueueRecord { at: self.now, fact });
    }

    fn is_running(&self, id: &ItemId) -> bool {
        self.queue.entry(id).is_some_and(|entry| matches!(entry.status, ItemStatus::Running { .. }))
    }

    /// Items that wait beyond the first ones of their projects, and of all.
    fn surplus(&self) -> Vec<ItemId> {
        let entries = self.queue.state().items.values();
        let waiting = entries.filter(|entry| !matches!(entry.status, ItemStatus::Running { .. }));
        let mut waiting: Vec<&WorkItem> = waiting.map(|entry| &entry.item).collect();
        waiting.sort_unstable_by_key(|item| (Reverse(item.priority), item.enqueued, &item.id));
        let (mut of_project, mut kept, mut surplus) = (BTreeMap::<&str, usize>::new(), 0, Vec::new());
        for item in waiting {
            let count = of_project.entry(&item.project).or_default();
            if *count == MOST_OF_PROJECT || kept == MOST_WAITING {
                surplus.push(item.id.clone());
            } else {
                *count += 1;
                kept += 1;
            }
        }
        surplus
    }

    fn waiting(&self) -> Vec<ItemId> {
        let entries = self.queue.state().items.values();
        let waiting = entries.filter(|entry| !matches!(entry.status, ItemStatus::Running { .. }));
        waiting.map(|entry| entry.item.id.clone()).collect()
    }
}

impl SlotsFact {
    /// Asks for a slot for an item. Others that wait may get theirs by it: they are told when their workers ask.
    fn ask(
        &mut self,
        limits: &Limits,
        item: &WorkItem,
        worker: &str,
        now: Timestamp,
        forget: SignedDuration,
    ) -> SlotAnswer {
        let mut change = Change::of(self, limits, now);
        let owner = |name: &str| OwnerId(name.to_owned());
        // Where machines have no limits of their own, an item is the same on all of them.
        let has_hosts = limits.scopes.contains_key(&ScopeKind::Host);
        let host = if has_hosts { item.host.clone() } else { ANYWHERE.to_owned() };
        let item = WorkItem { host, ..item.clone() };
        let known = change.queue.entry(&item.id);
        // A session that goes on elsewhere takes its slot with it, unless the other machine has its own limit.
        let keeps = known.is_some_and(|known| {
            matches!(known.status, ItemStatus::Running { .. }) && known.item.host == item.host
        });
        if !keeps {
            change.apply(QueueFact::Enqueued { item: item.clone(), owner: owner(ANYWHERE) });
        }
        let since =
            |asked: Option<&AskedAt>| asked.map_or(SignedDuration::MAX, |asked| now.duration_since(asked.0));
        if since(self.asked.get(&item.id)) > RECENT / 2 {
            self.asked.insert(item.id.clone(), AskedAt(now));
        }
        for id in change.waiting() {
            let since = since(self.asked.get(&id));
            if since > forget {
                change.apply(QueueFact::Withdrawn { item: id });
            } else if since > RECENT {
                change.apply(QueueFact::Parked { item: id });
            }
        }
        change.queue.next(now);
        let answer = match change.is_running(&item.id) {
            true => {
                change.apply(QueueFact::Counted { item, owner: owner(worker) });
                SlotAnswer::Granted
            }
            false => {
                let reason = change.queue.reason(&item.id, now, &TimeZone::UTC);
                SlotAnswer::Waits(reason.unwrap_or_else(|| "waits for a slot".to_owned()))
            }
        };
        for id in change.surplus() {
            change.apply(QueueFact::Withdrawn { item: id });
        }
        self.keep(&change);
        answer
    }

    /// Takes a slot back, if the worker has it. Whether it had.
    fn give_back(&mut self, item: &ItemId, worker: &str, now: Timestamp) -> bool {
        let known = self.queue.items.get(item);
        if !known.is_some_and(|known| {
            known.owner.0 == worker && matches!(known.status, ItemStatus::Running { .. })
        }) {
            return false;
        }
        self.finish(item.clone(), now);
        true
    }

    /// Takes a slot back, whoever has it, unless somebody asked for it at that time or later. Whether it did.
    fn take_back(&mut self, item: &ItemId, before: Timestamp, now: Timestamp) -> bool {
        let is_left = self.doubtful(before).contains(item);
        if is_left {
            self.finish(item.clone(), now);
        }
        is_left
    }

    fn finish(&mut self, item: ItemId, now: Timestamp) {
        // Limits change nothing about the end of work.
        let mut change = Change::of(self, &Limits::global(u32::MAX), now);
        change.apply(QueueFact::Finished { item, outcome: Outcome::Done });
        self.keep(&change);
    }

    fn keep(&mut self, change: &Change) {
        self.queue = change.queue.compacted();
        let items = &self.queue.items;
        self.asked.retain(|id, _| items.contains_key(id));
    }

    /// Sessions that have had a slot for longer than a time, and for which nobody asked since.
    fn doubtful(&self, before: Timestamp) -> Vec<ItemId> {
        let running =
            self.queue.items.values().filter(|entry| matches!(entry.status, ItemStatus::Running { .. }));
        let old = running.filter(|entry| self.asked.get(&entry.item.id).is_none_or(|asked| asked.0 < before));
        old.map(|entry| entry.item.id.clone()).collect()
    }
}

impl Broker {
    /// Takes a slot for a session, unless limits that hold for all machines are full or others come first. A slot that the session
    /// has is taken over.
    pub async fn take_slot(
        &self,
        limits: &Limits,
        item: &WorkItem,
        worker: &str,
    ) -> Result<SlotAnswer, FleetError> {
        let doubt = self.settings().lease * DOUBT;
        let forget = SignedDuration::try_from(doubt).unwrap_or(SignedDuration::MAX);
        for _ in 0..ATTEMPTS {
            let (known, sequence) = self.fact_now::<SlotsFact>("taken").await?;
            let known = known.unwrap_or_default();
            let (mut slots, now) = (known.clone(), Timestamp::now());
            let mut answer = slots.ask(limits, item, worker, now, forget);
            if answer != SlotAnswer::Granted && self.drop_stale(&mut slots, now, now - doubt).await? {
                answer = slots.ask(limits, item, worker, now, forget);
            }
            if slots == known || self.replace_fact(&slots, sequence).await? {
                return Ok(answer);
            }
        }
        Ok(SlotAnswer::Waits("many workers take slots at once; this one tries again".to_owned()))
    }

    /// Frees the slot of a session, if the worker still has it.
    pub async fn free_slot(&self, session: &str, worker: &str) -> Result<(), FleetError> {
        let item = ItemId(session.to_owned());
        self.change_slots(|slots| slots.give_back(&item, worker, Timestamp::now())).await
    }

    /// Frees the slot of a session that nobody owns, whoever has it. A worker that has asked for it just now claims the session
    /// next, and keeps it.
    pub(crate) async fn free_left_slot(&self, session: &str) -> Result<(), FleetError> {
        let item = ItemId(session.to_owned());
        let fresh = self.settings().lease / 3;
        self.change_slots(|slots| {
            let now = Timestamp::now();
            slots.take_back(&item, now - fresh, now)
        })
        .await
    }

    /// Replaces the fact with what a change makes of it, if it does anything.
    async fn change_slots(&self, change: impl Fn(&mut SlotsFact) -> bool) -> Result<(), FleetError> {
        for _ in 0..ATTEMPTS {
            let (known, sequence) = self.fact_now::<SlotsFact>("taken").await?;
            let mut slots = known.unwrap_or_default();
            if !change(&mut slots) {
                return Ok(());
            }
            if self.replace_fact(&slots, sequence).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Drops slots that were not freed although their sessions do not run. Whether there were any.
    async fn drop_stale(
        &self,
        slots: &mut SlotsFact,
        now: Timestamp,
        doubt: Timestamp,
    ) -> Result<bool, FleetError> {
        let mut dropped = false;
        for item in slots.doubtful(doubt) {
            let fact = self.fact::<SessionFact>(&item.0).await?;
            if fact.is_none_or(|fact| fact.state != FleetSessionState::Running) {
                slots.finish(item, now);
                dropped = true;
            }
        }
        Ok(dropped)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hangar_scheduler::item::WorkKind;

    use super::*;

    const FORGET: SignedDuration = SignedDuration::from_secs(60);

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

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn the_scheduler_says_why_a_session_waits() {
        let limits = Limits::global(3).with(ScopeKind::Project, "a", 1);
        let mut slots = SlotsFact::default();
        let mut take = |id: &str, project: &str| slots.ask(&limits, &item(id, project), "w", at(0), FORGET);
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

    /// Lets sessions of two projects, which always wait, have the one slot after each other, and counts their turns.
    #[track_caller]
    fn check_shares(limits: &Limits, expected: [usize; 2]) {
        let mut slots = SlotsFact::default();
        let names: Vec<(String, &str)> =
            (0..200).map(|n| if n < 150 { (format!("a{n}"), "a") } else { (format!("b{n}"), "b") }).collect();
        let (mut done, mut turns) = (BTreeSet::new(), [0, 0]);
        for second in 0..40 {
            let waiting = names.iter().filter(|(id, _)| !done.contains(id));
            // Each worker asks by itself, and does not know of the others.
            for (id, project) in waiting.clone() {
                slots.ask(limits, &item(id, project), "w", at(second), FORGET);
            }
            let all: Vec<_> =
                waiting.filter(|(id, _)| slots.give_back(&ItemId(id.clone()), "w", at(second))).collect();
            assert_eq!(all.len(), 1, "one has the slot");
            turns[usize::from(all[0].1 == "b")] += 1;
            done.insert(all[0].0.clone());
        }
        assert_eq!(turns, expected);
    }

    #[test]
    fn projects_get_their_shares_however_many_orders_each_has() {
        check_shares(&Limits::global(1), [20, 20]);
        let mut weighted = Limits::global(1);
        weighted.weights.insert("a".to_owned(), 3);
        check_shares(&weighted, [30, 10]);
    }

    #[test]
    fn a_slot_that_was_left_is_taken_back_unless_somebody_asks_for_it() {
        let limits = Limits::global(1);
        let mut slots = SlotsFact::default();
        let left = ItemId("one".to_owned());
        assert!(!slots.take_back(&left, at(0), at(0)), "it has none");
        assert_eq!(slots.ask(&limits, &item("one", "p"), "lost", at(0), FORGET), SlotAnswer::Granted);
        assert_ne!(slots.ask(&limits, &item("two", "p"), "w", at(20), FORGET), SlotAnswer::Granted);
        assert!(!slots.take_back(&ItemId("two".to_owned()), at(30), at(30)), "it waits");
        assert!(!slots.take_back(&left, at(0), at(10)), "it was asked for just now");
        assert!(slots.take_back(&left, at(20), at(30)));
        assert_eq!(slots.ask(&limits, &item("two", "p"), "w", at(30), FORGET), SlotAnswer::Granted);
    }

    #[test]
    fn no_slot_is_kept_for_a_session_that_no_worker_asks_for() {
        let limits = Limits::global(1);
        let mut slots = SlotsFact::default();
        let ask = |slots: &mut SlotsFact, id: &str, second| {
            slots.ask(&limits, &item(id, "p"), "w", at(second), FORGET)
        };
        assert_eq!(ask(&mut slots, "one", 0), SlotAnswer::Granted);
        assert_ne!(ask(&mut slots, "two", 1), SlotAnswer::Granted);
        assert_ne!(ask(&mut slots, "three", 8), SlotAnswer::Granted);
        assert!(slots.give_back(&ItemId("one".to_owned()), "w", at(9)));
        assert_eq!(ask(&mut slots, "three", 10), SlotAnswer::Granted, "the second one is not asked for");
        assert_ne!(ask(&mut slots, "two", 11), SlotAnswer::Granted);
        ask(&mut slots, "three", 100);
        assert!(!slots.queue.items.contains_key(&ItemId("two".to_owned())), "it is forgotten");
    }
}
