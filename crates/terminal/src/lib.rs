//! Interactive view of a session in a terminal, without I/O: keys and events in, rows and effects out.
//!
//! Rows that nothing can change any more are committed: printed once and left to the terminal. Below them is the tail, which is
//! redrawn: the open row, the composer, dialogs, the status line. Everything else is an overlay on the alternate screen.

mod agent_view;
pub mod ansi;
pub mod arming;
pub mod blocks;
mod calls;
pub mod commands;
mod completing;
pub mod completion;
pub mod composer;
mod context_view;
pub mod dialog;
pub mod diff;
pub mod effect;
mod extensions;
pub mod format;
pub mod fuzzy;
pub mod gate;
pub mod highlight;
pub mod history;
pub mod html;
pub mod input;
pub mod key;
pub mod keymap;
mod keys;
mod limits;
mod local;
pub mod markdown;
pub mod modes;
pub mod overlay;
pub mod printer;
pub mod program;
mod refine;
pub mod row;
mod schedules;
pub mod screen;
mod screens;
pub mod search_prompt;
mod session;
mod shell_lines;
pub mod state;
pub mod status;
pub mod theme;
mod view;
pub mod worktrees;
pub mod wrap;
