//! A sandbox that is put on a child between fork and exec: for policies that need no namespaces, which a process can only
//! enter by starting another one. It saves starting the launcher, which takes longer than most commands that only read.

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

    use crate::linux::{Filters, confine_child};

    /// Everything that needs memory or a file is made in the parent; what is left to the child are a few system calls.
    pub struct ChildSandbox {
        pub(crate) rules: OwnedFd,
        pub(crate) filters: Arc<Filters>,
    }

    impl ChildSandbox {
        /// Confines the command when it is spawned. Nothing that is to happen in the child may be added to the command
        /// afterwards: it would be confined, too.
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
