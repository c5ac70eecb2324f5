//! One suite for all trackers, and what each has of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod files;
mod forges;
mod jira;
mod linear;
mod pulls;
mod suite;
mod symphony;
