//! State of the queue: everything that is known from its records. Serialised, it replaces them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::breaker::Breaker;
use crate::budget::{self, BudgetScope, BudgetState};
use crate::item::{ItemId, OwnerId, WorkItem};
use crate::record::iso;
use crate::retry::AttemptFailure;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueState {
    pub mode: SchedulerMode,
    #[serde(with = "entries")]
    pub items: BTreeMap<ItemId, QueueEntry>,
    /// Breakers that are not closed, by account.
    pub breakers: BTreeMap<String, Breaker>,
    /// Virtual time at which each project's last grant ends. Projects that are not ahead of `virtual_time` are left out.
    pub passes: BTreeMap<String, u64>,
    /// Virtual time of start-time fair queueing.
    pub virtual_time: u64,
    /// Budgets of which something was spent or raised.
    #[serde(default, with = "budget::states", skip_serializing_if = "BTreeMap::is_empty")]
    pub budgets: BTreeMap<BudgetScope, BudgetState>,
    /// How often everything was told to stop.
    pub stops: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SchedulerMode {
    #[default]
    Open,
    Paused,
    Draining,
}

/// An item and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntry {
    pub item: WorkItem,
    pub owner: OwnerId,
    #[serde(flatten)]
    pub status: ItemStatus,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "status")]
pub enum ItemStatus {
    /// Its owner waits for a slot.
    Waiting {
        #[serde(skip_serializing_if = "Option::is_none")]
        delay: Option<Delay>,
    },
    /// Nobody waits for a slot at present.
    Parked {
        #[serde(skip_serializing_if = "Option::is_none")]
        delay: Option<Delay>,
    },
    Running {
        #[serde(with = "iso")]
        since: Timestamp,
        /// Whether it was queued. Other work may pass a limit.
        queued: bool,
        /// Remark of its owner, such as that it makes no progress.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remark: Option<String>,
    },
}

/// Delay before a further attempt.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    #[serde(with = "iso")]
    pub due: Timestamp,
    pub failure: AttemptFailure,
}

/// Items as a list, since each has its id.
mod entries {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::{ItemId, QueueEntry};

    pub(super) fn serialize<S: Serializer>(
        items: &BTreeMap<ItemId, QueueEntry>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(items.values())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<ItemId, QueueEntry>, D::Error> {
        let entries = Vec::<QueueEntry>::deserialize(deserializer)?;
        Ok(entries.into_iter().map(|entry| (entry.item.id.clone(), entry)).collect())
    }
}
