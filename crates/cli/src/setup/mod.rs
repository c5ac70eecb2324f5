//! Setting a provider and its model up, step by step: which provider, by which key, which model, and whether that works.
//!
//! `flow.rs` decides what is asked next and does nothing itself; `work.rs` asks providers; `config_file.rs` writes the result.
//! The terminal shows the questions (`terminal/login.rs`).

mod config_file;
mod draft;
mod flow;
mod offers;
mod work;

pub(crate) use config_file::{configured_providers, remove, write};
pub(crate) use draft::{Draft, KeyKind};
pub(crate) use flow::{Next, Outcome, Setup};
pub(crate) use offers::{Offers, with_account};
pub(crate) use work::{Work, WorkDone};
