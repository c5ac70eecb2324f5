//! A sandbox that is applied in the child between fork and exec, for policies that need no namespaces. It saves the start of
//! the launcher, which takes longer than most commands that only read.

#[cfg(target_os = "linux")]
pub use linux::ChildSandbox;

/// There is none on this system.
#[cfg(not(target_os = "linux"))]
pub enum ChildSandbox {}

#[cfg(not(target_os = "linux"))]
impl ChildSandbox {
    pub fn put_on(self, _command: &mut std::process::Command) {
        match self {}
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::OwnedFd;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::Arc;

    use crate::linux::{SyscallFilters, confine_child};

    /// Ruleset and filters are made in the parent; the child only makes system calls.
    pub struct ChildSandbox {
        pub(crate) rules: OwnedFd,
        pub(crate) filters: Arc<SyscallFilters>,
    }

    impl ChildSandbox {
        /// Confines the command when it is spawned. Call it after every other `pre_exec`, which would be confined, too.
        #[expect(
            unsafe_code,
            reason = "the standard library has no other way to a process before it is the command"
        )]
        pub fn put_on(self, command: &mut Command) {
            let Self { rules, filters } = self;
            // SAFETY: the closure runs in the child between fork and exec; `confine_child` makes system calls only.
            unsafe { command.pre_exec(move || confine_child(&rules, &filters)) };
        }
    }
}
