//! Tests of the scheduler: its order as data, its rules as properties.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod budgets;
mod cost;
mod order;
mod properties;
mod reasons;
mod stage;
