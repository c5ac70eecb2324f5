//! The tools as the loop uses them: inspected, then run.

#![expect(clippy::unwrap_used, reason = "a failed step of the set-up is a failed test")]

mod bench;
mod edits;
mod patches;
mod searches;
mod sql;
mod views;
mod web;
