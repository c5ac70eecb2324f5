//! The portal: sessions, runs of jobs, agents and approvals over HTTP, and the web UI that is a client of it.
//!
//! The [`hub`] has the sessions: those that are open here, with their agents, and all others of the home as their logs tell
//! them. [`api`] is the hub over HTTP, and [`seed`] for clients that poll; [`guard`] stands before it and [`serve`] before that. How agents are configured and
//! where logs are kept is handed in as a [`house`].

pub mod api;
pub mod approvals;
mod assets;
mod catalogue;
pub mod digest;
pub mod frame;
pub mod guard;
pub mod house;
pub mod hub;
mod live;
mod old_addresses;
pub mod page;
mod problem;
pub mod resource;
mod roster;
pub mod runs;
pub mod search;
pub mod seed;
pub mod serve;
pub mod subscription;
pub mod trouble;
