//! Recorded output of real agents, told again in our events, and real processes that stand in for agents.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod acp;
mod captures;
mod fuzz;
mod processes;
