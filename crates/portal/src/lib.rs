//! The portal: the registry of sessions over HTTP, and the web UI that is a client of it.
//!
//! [`hangar_registry`] has the sessions and the runs of jobs. [`api`] is that over HTTP, and [`polling`] for clients that poll;
//! [`guard`] stands before it and [`serve`] before that.

pub mod api;
mod assets;
pub mod fleet;
pub mod guard;
pub mod issues;
pub mod memory;
mod metrics;
mod old_addresses;
pub mod polling;
mod problem;
mod roster;
pub mod serve;
pub mod settings;
