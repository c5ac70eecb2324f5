//! Circuit breaker of a provider account: it holds all work of the account, lets one item try, and closes when that works.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::item::ItemId;
use crate::record::iso;
use crate::retry::AttemptFailure;

/// A breaker that is not closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Breaker {
    /// The failure that opened it.
    pub failure: AttemptFailure,
    /// When one item may try.
    #[serde(with = "iso")]
    pub until: Timestamp,
    /// How often it opened in a row.
    pub openings: u32,
    /// The item that tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ItemId>,
}

impl Breaker {
    /// Whether an item may try now.
    pub fn admits_probe(&self, now: Timestamp) -> bool {
        self.probe.is_none() && self.until <= now
    }
}
