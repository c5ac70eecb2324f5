//! The loop as a whole, on a model and tools that do what the test says.
//!
//! A test is a list of model answers and commands, and the events that must come of them.

mod autopilot;
mod failures;
mod permissions;
mod resume;
mod stage;
mod steering;
mod turns;
