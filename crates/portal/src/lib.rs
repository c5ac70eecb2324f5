//! The portal: sessions, runs of jobs, agents and approvals over HTTP, and the web UI that is a client of it.
pub mod seed;
