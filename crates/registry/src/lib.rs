//! The registry of sessions: which are open here, which are on disk, and who reads them from where.
//!
//! The [`hub`] has the sessions: those that are open here, with their agents, and all others of the home as their logs tell
//! them. A [`subscription`] reads one from any event on, [`page`] a piece of its past, [`search`] finds some of them;
//! [`approvals`] are what agents ask, and [`runs`] carry jobs out with sessions of the hub,
//! each of which has a slot of the [`queue`]; the [`ledger`] has the costs of all. How agents are configured and
//! where logs are kept is handed in as a [`host`]. Nothing here knows HTTP: the portal is one front end, and the command
//! line another.

pub mod approvals;
pub mod canvas;
mod catalogue;
pub mod changes;
pub mod directory_lock;
pub mod error;
pub mod frame;
pub mod host;
pub mod hub;
pub mod ledger;
mod live;
pub mod notice;
pub mod page;
pub mod queue;
pub mod resource;
pub mod runs;
pub mod search;
pub mod session_stats;
pub mod subscription;
pub mod transcripts;

pub use live::{SessionListener, SessionUpdate};
