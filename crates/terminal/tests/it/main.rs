//! The view against a terminal emulator: keys and events in, the screen out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod attacks;
mod commands;
mod dialogs;
mod forms;
mod host;
mod keys;
mod pager;
mod permissions;
mod picker_search;
mod pickers;
mod prompts;
mod property;
mod replay;
mod script;
mod session;
mod sizes;
mod transcript;
mod upkeep;
mod work_pickers;
