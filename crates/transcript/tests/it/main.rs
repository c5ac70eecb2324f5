//! The fold held against the logs of the web page, and against properties that hold for any events.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod fixtures;
mod outline;
mod properties;
mod speed;
mod status;
