//! The built-in tools.

pub mod files;
pub mod search;
pub mod shell;
pub mod spill;
pub mod sql;
pub mod web;
