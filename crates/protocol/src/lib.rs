//! Wire and log types. One event vocabulary serves the log on disk, JSONL on stdout, the SDK server and the portal.
//!
//! This crate knows shapes, not behaviour: no I/O, no clock, no decisions. [`Totals`] is the one fold over events here,
//! because everybody who reads a log counts by it.

pub mod body;
pub mod data;
pub mod event;
pub mod permission;
pub mod result;
pub mod rpc;
pub mod totals;

pub use body::{Body, EventKind};
pub use event::{AgentId, Event, EventId, LogPosition, ParseError};
pub use totals::Totals;
