//! Records: what workers write into the log of a session beside its events.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::order::OrderId;
use crate::{FleetError, VERSION};

/// A fact about the session in the fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "record")]
pub enum FleetRecord {
    /// A worker owns the log from here on. The sequence of this message is its epoch.
    Claimed {
        worker: String,
        order: OrderId,
        /// Number of the delivery of the order that the claim is for; zero if there was none.
        #[serde(default)]
        delivery: u64,
        #[serde(with = "crate::time")]
        at: Timestamp,
    },
    /// A message was accepted. It waits for a turn of its own.
    Message {
        id: String,
        text: String,
        #[serde(with = "crate::time")]
        at: Timestamp,
    },
    /// The turn of a message begins.
    TurnBegan { message: String },
    /// The turn of a message has ended.
    TurnEnded {
        message: String,
        outcome: FleetTurnEnd,
        #[serde(with = "crate::time")]
        at: Timestamp,
    },
    /// The work of the session is at this commit of the remote.
    Kept { reference: String, commit: String },
    /// The work could not be pushed. It is tried again after the next turn.
    NotKept { why: String },
    /// The agent's own state was on a machine that was lost; it was told what the log says.
    BegunAnew { why: String },
    /// The worker could not begin or continue. The order is tried again.
    Trouble { why: String },
    /// The agent asks a person; `event` is its question. It counts until it is settled, its turn ends or the session moves.
    Asked { id: String, event: serde_json::Value },
    /// A question was answered or withdrawn.
    Settled { id: String },
    /// The worker owns the log no longer.
    Released {
        order: OrderId,
        end: OrderEnd,
        #[serde(with = "crate::time")]
        at: Timestamp,
    },
}

/// End of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "end")]
pub enum FleetTurnEnd {
    Completed,
    /// It was aborted by its user.
    Cancelled,
    Failed {
        message: String,
    },
}

/// End of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "end")]
pub enum OrderEnd {
    /// All its turns have ended.
    Done,
    /// It is given up. Nobody tries it again.
    Parked { why: String },
    /// Another worker continues.
    HandedOver,
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    v: u32,
    #[serde(flatten)]
    record: FleetRecord,
}

impl FleetRecord {
    /// Time at which it was made, if it says so.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            FleetRecord::Claimed { at, .. }
            | FleetRecord::Message { at, .. }
            | FleetRecord::TurnEnded { at, .. }
            | FleetRecord::Released { at, .. } => Some(*at),
            FleetRecord::TurnBegan { .. }
            | FleetRecord::Kept { .. }
            | FleetRecord::NotKept { .. }
            | FleetRecord::BegunAnew { .. }
            | FleetRecord::Trouble { .. }
            | FleetRecord::Asked { .. }
            | FleetRecord::Settled { .. } => None,
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, FleetError> {
        let envelope = Envelope { v: VERSION, record: self.clone() };
        serde_json::to_vec(&envelope).map_err(|error| FleetError::failed("encoding a record", &error))
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FleetError> {
        #[derive(Deserialize)]
        struct Versioned {
            v: u32,
        }
        let bad = |error: serde_json::Error| FleetError::failed("reading a record", &error);
        let Versioned { v } = serde_json::from_slice(bytes).map_err(bad)?;
        if v > VERSION {
            return Err(FleetError::Newer { found: v });
        }
        Ok(serde_json::from_slice::<Envelope>(bytes).map_err(bad)?.record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_a_round_trip() {
        let end = OrderEnd::Parked { why: "it crashed".to_owned() };
        let record = FleetRecord::Released { order: OrderId("o".to_owned()), end, at: Timestamp::UNIX_EPOCH };
        let bytes = record.encode().expect("a record");
        assert!(bytes.starts_with(br#"{"v":2,"record":"released""#), "{}", String::from_utf8_lossy(&bytes));
        assert_eq!(FleetRecord::parse(&bytes).expect("a record"), record);
        assert!(matches!(FleetRecord::parse(br#"{"v":9}"#), Err(FleetError::Newer { found: 9 })));
    }
}
