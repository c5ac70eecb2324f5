//! The loop as a whole, on a model and tools that do what the test says.
//!
//! A test is a list of model answers and commands, and the events that must come of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod agent_tools;
mod agents;
mod asking;
mod autopilot;
mod budget;
mod compaction;
mod endings;
mod facts;
mod failures;
mod hooks;
mod just_in_time;
mod pending;
mod permissions;
mod reasoning;
mod repetition;
mod resume;
mod stage;
mod steering;
mod tool_search;
mod turns;
