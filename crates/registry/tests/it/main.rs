//! Sessions and runs on agents that follow a script, without HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod approvals;
mod fake;
mod leases;
mod ledger;
mod numbers;
mod queue;
mod resuming;
mod stage;
