//! The scheduler: which of the work that waits starts next.
//!
//! A [`Queue`](queue::Queue) is a fold over durable [`record`]s. [`WorkItem`](item::WorkItem)s wait in it until the
//! [`limits`] have room for them; [`retry`] says whether and when failed work is tried again, [`breaker`] holds all work of
//! an account that refuses; [`reason`] is the sentence that says why an item waits. Pure: no files, no clock, no chance.
//! Times and random numbers are arguments.

pub mod breaker;
pub mod budget;
pub mod cron;
mod index;
pub mod item;
pub mod limits;
pub mod queue;
pub mod reason;
pub mod record;
pub mod retry;
pub mod state;
