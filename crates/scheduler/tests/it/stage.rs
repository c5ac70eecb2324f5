//! A queue with a clock, and a log of what was recorded.

use std::collections::BTreeSet;
use std::time::Duration;

use hangar_scheduler::item::{ItemId, OwnerId, WorkItem, WorkKind};
use hangar_scheduler::limits::Limits;
use hangar_scheduler::queue::{Queue, QueueDecision};
use hangar_scheduler::record::{QueueFact, QueueRecord};
use hangar_scheduler::retry::{AttemptFailure, AttemptFailureKind, RetryPolicy};
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) struct Stage {
    pub(crate) queue: Queue,
    pub(crate) log: Vec<QueueRecord>,
    pub(crate) now: Timestamp,
    pub(crate) policy: RetryPolicy,
}

/// An item from words such as `a project=p runtime=codex priority=1`.
pub(crate) fn item(text: &str) -> WorkItem {
    let mut words = text.split_whitespace();
    let id = words.next().unwrap_or_default().to_owned();
    let mut item = WorkItem {
        id: ItemId(id.clone()),
        kind: WorkKind::Task,
        project: "p".to_owned(),
        runtime: "claude".to_owned(),
        agent: None,
        account: "claude".to_owned(),
        host: "local".to_owned(),
        job: None,
        run: Some(id),
        labels: BTreeSet::new(),
        priority: 0,
        enqueued: Timestamp::UNIX_EPOCH,
        attempt: 1,
    };
    for word in words {
        let (key, value) = word.split_once('=').expect(word);
        let value = value.to_owned();
        match key {
            "project" => item.project = value,
            "runtime" => item.runtime = value,
            "agent" => item.agent = Some(value),
            "account" => item.account = value,
            "host" => item.host = value,
            "job" => item.job = Some(value),
            "run" => item.run = Some(value),
            "label" => drop(item.labels.insert(value)),
            "priority" => item.priority = value.parse().expect("a number"),
            _ => panic!("{key}"),
        }
    }
    item
}

pub(crate) fn owner() -> OwnerId {
    OwnerId("o".to_owned())
}

impl Stage {
    pub(crate) fn new(limits: Limits) -> Self {
        let policy = RetryPolicy { jitter: 0.0, ..RetryPolicy::default() };
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        Self { queue: Queue::new(limits), log: Vec::new(), now, policy }
    }

    pub(crate) fn note(&mut self, fact: QueueFact) {
        let record = QueueRecord { at: self.now, fact };
        self.queue.apply(&record);
        self.log.push(record);
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    /// Enqueues an item a second after the one before.
    pub(crate) fn enqueue(&mut self, text: &str) {
        self.pass(1);
        let item = WorkItem { enqueued: self.now, ..item(text) };
        self.note(QueueFact::Enqueued { item, owner: owner() });
    }

    /// The items that are granted, in order.
    pub(crate) fn next(&mut self) -> String {
        let decisions = self.queue.next(self.now);
        for fact in decisions.iter().flat_map(QueueDecision::facts) {
            self.log.push(QueueRecord { at: self.now, fact });
        }
        let names = decisions.iter().map(|decision| match &decision.probes {
            Some(account) => format!("{} (tries {account})", decision.item),
            None => decision.item.to_string(),
        });
        names.collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn finish(&mut self, id: &str) {
        for fact in self.queue.succeeded(&ItemId(id.to_owned())) {
            self.note(fact);
        }
    }

    pub(crate) fn fail(&mut self, id: &str, kind: AttemptFailureKind) {
        let failure = AttemptFailure::new(kind, "it broke");
        for fact in self.queue.failed(&ItemId(id.to_owned()), &failure, &self.policy, self.now, 0.0) {
            self.note(fact);
        }
    }

    pub(crate) fn reason(&self, id: &str) -> String {
        self.queue.reason(&ItemId(id.to_owned()), self.now, &TimeZone::UTC).unwrap_or_default()
    }
}
