//! Records of the queue: what is written down, in the order in which it happened.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::budget::{BudgetScope, Day};
use crate::item::{ItemId, OwnerId, WorkItem};
use crate::retry::AttemptFailure;
use crate::state::QueueState;

/// A line of the queue's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueRecord {
    #[serde(with = "iso")]
    pub at: Timestamp,
    #[serde(flatten)]
    pub fact: QueueFact,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum QueueFact {
    /// An owner wants a slot for an item. One that is there already keeps its place and its delay.
    Enqueued {
        item: WorkItem,
        owner: OwnerId,
    },
    /// An item has a slot.
    Granted {
        item: ItemId,
    },
    /// Work that is not queued, such as a session that a person opened. It counts nevertheless.
    Counted {
        item: WorkItem,
        owner: OwnerId,
    },
    /// The work has ended, and the slot is free.
    Finished {
        item: ItemId,
        outcome: Outcome,
    },
    /// An attempt failed, and the slot is free. The item keeps its place and waits until its owner enqueues it again, and at
    /// least until `due`.
    RetryAt {
        item: ItemId,
        #[serde(with = "iso")]
        due: Timestamp,
        failure: AttemptFailure,
    },
    /// A remark on work that runs, such as that it makes no progress; `None` takes the last one back.
    Remarked {
        item: ItemId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remark: Option<String>,
    },
    /// Its owner does not wait for it at present, and may come back.
    Parked {
        item: ItemId,
    },
    /// Nobody wants the item any more.
    Withdrawn {
        item: ItemId,
    },
    /// All items of a process that has ended are parked.
    OwnerGone {
        owner: OwnerId,
    },
    /// Nothing is granted until the queue is resumed.
    Paused,
    Resumed,
    /// Nothing more is granted; the work that runs is finished.
    Drained,
    /// All running work is to be stopped.
    Stopped,
    BreakerOpened {
        account: String,
        #[serde(with = "iso")]
        until: Timestamp,
        failure: AttemptFailure,
    },
    /// One item tries the account.
    BreakerHalfOpen {
        account: String,
        item: ItemId,
    },
    BreakerClosed {
        account: String,
    },
    /// Known cost of the work of a budget so far, in US dollars: of the day, or of the run. The figure replaces the last one
    /// of the same day.
    Spent {
        budget: BudgetScope,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        day: Option<Day>,
        usd: f64,
        /// Calls whose cost is not known.
        #[serde(default)]
        unpriced: u64,
    },
    /// A person has raised a budget: of the day, or of the run.
    BudgetRaised {
        budget: BudgetScope,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        day: Option<Day>,
        usd: f64,
    },
    /// The state after all records before this one, which a compaction removed.
    Compacted {
        state: Box<QueueState>,
    },
    /// A fact of a later version.
    #[serde(other)]
    Unknown,
}

impl QueueFact {
    /// Whether the fact has to survive a power cut: people and providers would have to tell it again. All others are told
    /// again by the logs of the work itself.
    pub fn is_milestone(&self) -> bool {
        match self {
            QueueFact::RetryAt { .. }
            | QueueFact::Paused
            | QueueFact::Resumed
            | QueueFact::Drained
            | QueueFact::Stopped
            | QueueFact::BreakerOpened { .. }
            | QueueFact::BreakerClosed { .. }
            | QueueFact::BudgetRaised { .. }
            | QueueFact::Compacted { .. } => true,
            QueueFact::Enqueued { .. }
            | QueueFact::Granted { .. }
            | QueueFact::Counted { .. }
            | QueueFact::Finished { .. }
            | QueueFact::Remarked { .. }
            | QueueFact::Parked { .. }
            | QueueFact::Withdrawn { .. }
            | QueueFact::OwnerGone { .. }
            | QueueFact::BreakerHalfOpen { .. }
            | QueueFact::Spent { .. }
            | QueueFact::Unknown => false,
        }
    }
}

/// How the work of an item ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum Outcome {
    Done,
    Failed { failure: AttemptFailure },
}

/// Times with milliseconds, as all our logs have them.
pub mod iso {
    use jiff::Timestamp;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{at:.3}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
