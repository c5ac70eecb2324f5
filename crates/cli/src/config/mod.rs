//! `config.toml`: its definition, its errors, and `hangar config`.

mod check;
pub(crate) mod commands;
mod definition;
mod edit;
pub(crate) mod live;
mod schema;

pub(crate) use check::{Problem, located, problems};
pub(crate) use edit::{ConfigEdit, EditError, KeyPath, apply, shown};
pub(crate) use schema::Schema;
