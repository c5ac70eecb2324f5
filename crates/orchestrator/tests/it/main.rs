//! The decisions of the orchestrator, as data: a world of issues in which sessions end as a script says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod candidates;
mod contest;
mod property;
mod pulls;
mod quota;
mod scale;
mod sessions;
mod stages;
mod symphony;
mod timing;
mod world;
