//! The agent session: its state, its decisions, and the driver that carries them out.
//!
//! This crate does no I/O of its own. Models, tools and logs come in through the traits in [`model`], [`tool`] and
//! [`log`]; time and randomness come in with each step.

pub mod agents;
pub mod budget;
pub mod conversation;
pub mod driver;
pub mod entropy;
pub mod features;
pub mod hook;
pub mod interned;
pub mod log;
pub mod model;
pub mod permissions;
pub mod prompt;
pub mod request_proxy;
pub mod retry;
pub mod schema;
pub mod session;
pub mod summary;
mod token_counts;
pub mod tool;
pub mod tool_hooks;
pub mod tool_search;
