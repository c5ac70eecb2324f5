//! The store as its users see it: through its API and through the files it leaves.
#![expect(clippy::unwrap_used, reason = "a step that fails must fail the test")]

mod crash;
mod export;
mod home;
mod sessions;
