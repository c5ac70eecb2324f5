//! The fleet with real processes: real servers, workers with homes of their own, a real git remote, the scripted model. Faults are
//! signals, kills and cut links; afterwards the checker reads the logs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod faults;
mod jobs;
mod machines;
mod orders;
mod portals;
mod secured;
mod soak;
