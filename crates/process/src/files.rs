//! The limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than a server needs; programs that it starts inherit the limit, and some look through all of it.
const ENOUGH: u64 = 16 << 10;

/// Raises the limit as far as the system allows, up to what is enough. A server of a thousand sessions needs a few thousand; the usual limit is
/// meant for programs that take numbers of files for positions in a bit set, which none of ours do.
pub fn allow_many_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Absent is without a limit.
    let wanted = maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if current.is_some_and(|current| current < wanted) {
        // Where it cannot be raised the server does with what there is.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}
