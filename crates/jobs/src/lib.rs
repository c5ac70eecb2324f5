//! Jobs: trees of tasks for agents, run to their end and put on record.
//!
//! An [`entry`] is what people write; [`validate`] makes sure of it. A run of a job is a log of [`record`]s. [`state`] is the
//! fold over them and says what is next, [`task`] and [`progress`] are its parts; [`driver`] does it, on any
//! [`Runtime`](hangar_runtimes::runtime::Runtime), and [`store`] keeps it. Sessions are
//! opened only with a slot ([`slots`]). Facts are written before anything follows from
//! them, so a run whose process was killed goes on from its log.

pub mod chart;
mod check;
pub mod decision;
pub mod driver;
pub mod entry;
pub mod mcp;
mod progress;
pub mod prompt;
pub mod prompt_run;
pub mod read;
pub mod record;
pub mod retry;
pub mod slots;
pub mod state;
pub mod store;
pub mod task;
mod task_session;
pub mod tools;
pub mod validate;
mod work;
mod worktree;
