//! One interface for every agent: ours in this process, those of others behind theirs.
//!
//! An agent is opened with an [`Order`](runtime::Order), says our events, takes [`Command`](runtime::Command)s and ends each
//! turn with a [`TurnOutcome`](outcome::TurnOutcome).

pub mod acp;
pub mod adapter;
pub mod agents;
pub mod capabilities;
pub mod cli_runtime;
pub mod host;
mod inspect;
pub mod invocation;
mod lines;
pub mod login;
pub mod options;
pub mod outcome;
pub mod probe;
mod resolution;
pub mod runtime;
pub mod surroundings;
mod teller;
pub mod translate;
pub mod turn;
pub mod usage;
pub mod waiting;
