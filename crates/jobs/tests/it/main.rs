//! Entries, tasks, jobs and their logs, on agents that follow a script.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod crash;
mod entries;
mod fake;
mod jobs;
mod slots;
mod stage;
mod stops;
mod tasks;
mod worktrees;
