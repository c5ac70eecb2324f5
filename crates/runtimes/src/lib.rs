//! One interface for every agent: ours in this process, those of others behind theirs.
//!
//! An agent is opened with an [`AgentOrder`](runtime::AgentOrder), says our events, takes [`SessionCommand`](runtime::SessionCommand)s and ends each
//! turn with a [`TurnOutcome`](outcome::TurnOutcome).

pub mod acp;
pub mod adapter;
pub mod agents;
pub mod capabilities;
pub mod cli_runtime;
pub mod environment;
mod event_emitter;
mod fallback;
pub mod host;
pub mod invocation;
pub mod login;
pub mod named;
pub mod options;
pub mod outcome;
pub mod probe;
mod program_query;
pub mod prompt_queue;
mod resolution;
pub mod runtime;
mod stderr_buffer;
pub mod translate;
pub mod turn;
mod unattended;
pub mod usage;
pub mod watch;
