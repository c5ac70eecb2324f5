//! Children of Hangar: each in a group of its own that its owner ends, and that ends with us even if we are killed.

pub mod credentials;
mod files;
mod group;
mod script;
mod signal;
mod tag;
mod watchdog;

pub use files::allow_many_files;
pub use group::{
    MARK, ProcessGroup, command_in_own_session, exit_code, kill_marked, mark_command, unique_mark,
};
pub use script::{KEPT_OUTPUT, ScriptFailure, run_script};
pub use signal::signal_name;
