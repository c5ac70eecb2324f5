//! Namespaces of mounts, processes and IPC.
//!
//! In a process namespace a command sees only its own processes, and all of them end with process 1. That is not the
//! command but [`init`]: the kernel drops most signals to process 1, which a command would notice.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getegid, geteuid};

/// The namespaces that were entered; that of processes holds for children.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entered {
    pub(super) mounts: bool,
    pub(super) ipc: bool,
    pub(super) processes: bool,
}

/// Enters as many namespaces as the machine allows.
pub(super) fn enter() -> Entered {
    let all = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWPID;
    if enter_these(all).is_ok() {
        return Entered { mounts: true, ipc: true, processes: true };
    }
    let mounts = enter_these(CloneFlags::CLONE_NEWNS).is_ok();
    let ipc = mounts && unshare(CloneFlags::CLONE_NEWIPC).is_ok();
    Entered { mounts, ipc, processes: false }
}

/// Enters namespaces, through a user namespace where this process lacks the privilege.
fn enter_these(flags: CloneFlags) -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    if user.is_root() && unshare(flags).is_ok() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWUSER | flags)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Signals meant for the command. The processes that wait for it ignore them.
const FOR_THE_COMMAND: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];

/// The pipe through which process 1 reports the exit code to the process outside.
pub(super) struct Init(PipeWriter);

/// Forks: the child goes on as process 1 of the namespace, the parent waits outside and exits as the command does.
pub(super) fn split(absent: &[PathBuf]) -> io::Result<Init> {
    let (reader, writer) = io::pipe()?;
    match forked()? {
        ForkResult::Parent { child } => {
            drop(writer);
            let code = outside(child, reader);
            // A file only, and nothing that a link leads to.
            absent.iter().for_each(|path| drop(std::fs::remove_file(path)));
            end(code)
        }
        ForkResult::Child => Ok(Init(writer)),
    }
}

impl Init {
    /// Forks: the child goes on as the command, the parent reaps orphans until none is left.
    pub(super) fn start(self) -> io::Result<()> {
        match forked()? {
            ForkResult::Parent { child } => end(reap(child, self.0)),
            ForkResult::Child => Ok(()),
        }
    }
}

#[expect(unsafe_code, reason = "no library offers a safe fork")]
fn forked() -> io::Result<ForkResult> {
    // SAFETY: a launcher has no other thread, see `launch`, so the child may do whatever the parent may.
    Ok(unsafe { fork() }?)
}

/// Ends at once: there is nothing to flush, and destructors belong to one process only.
#[expect(unsafe_code, reason = "the standard library ends a process only with its exit handlers")]
fn end(code: i32) -> ! {
    // SAFETY: the call takes no pointers and does not return.
    unsafe { libc::_exit(code) }
}

/// Waits for the command, from outside of its namespace.
fn outside(init: Pid, mut told: PipeReader) -> i32 {
    ignore_endings();
    let mut code = [0; 4];
    match told.read_exact(&mut code) {
        // The command has exited. Init may live on to reap its background processes.
        Ok(()) => i32::from_ne_bytes(code),
        Err(_) => match waitpid(init, None) {
            Ok(status) => code_of(status),
            Err(_) => UNKNOWN,
        },
    }
}

/// The life of the first process of a namespace. The others end with it.
fn reap(command: Pid, mut outside: PipeWriter) -> i32 {
    let mut code = UNKNOWN;
    let mut waiting = true;
    loop {
        match waitpid(None, None) {
            Ok(status) if waiting && status.pid() == Some(command) => {
                code = code_of(status);
                waiting = false;
                match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                    Err(_) => return code,
                    Ok(_) => {
                        // The process that waits outside may be gone by now.
                        let _ = outside.write_all(&code.to_ne_bytes());
                        release_streams();
                    }
                }
            }
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return code,
        }
    }
}

/// Lets go of the streams that the command was given, so that they end with those who use them.
fn release_streams() {
    let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") else { return };
    for stream in 0..3 {
        #[expect(unsafe_code, reason = "no library in use offers the call")]
        // SAFETY: both are descriptors, and nothing in this process owns the streams.
        unsafe {
            libc::dup2(nothing.as_raw_fd(), stream)
        };
    }
}

#[expect(
    unsafe_code,
    reason = "handlers are set by an unsafe function, for the sake of handlers that are code"
)]
fn ignore_endings() {
    for ending in FOR_THE_COMMAND {
        // SAFETY: ignoring a signal runs no code.
        let _ = unsafe { signal(ending, SigHandler::SigIgn) };
    }
}

/// Exit code of a command whose end was not observed.
const UNKNOWN: i32 = 1;

fn code_of(status: WaitStatus) -> i32 {
    match status {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => 128 + signal as i32,
        _ => UNKNOWN,
    }
}
