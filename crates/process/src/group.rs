//! Starting a command in a session of its own, and ending everything it started.

use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::process::ExitStatus;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};

use crate::tag::ProcessTag;
use crate::watchdog::{self, WatchdogGuard};

/// Environment variable that marks the processes of a command, to find those that left its group.
pub const MARK: &str = "HANGAR_SHELL";

/// The beginning of marks that nobody else uses: two servers may have a session of the same id, and each ends its own. A
/// process id is not enough, since a container has the same ones and its processes may be seen from outside.
pub fn unique_mark(name: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    static NONCE: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
    format!("{name}:{}-{:x}-{}:", std::process::id(), *NONCE, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Exit code of a command whose end is not known.
const UNKNOWN_EXIT: i32 = 1;

/// A command that starts outside of our session: it has no terminal to ask questions on, and signals typed at ours do
/// not reach it. Its process is the leader of a new group that everything it starts belongs to.
pub fn command_in_own_session(program: impl AsRef<OsStr>) -> Command {
    Command::from(std_command_in_own_session(program))
}

#[expect(unsafe_code, reason = "the standard library has no stable way to call setsid in the child")]
pub(crate) fn std_command_in_own_session(program: impl AsRef<OsStr>) -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(program);
    // SAFETY: the closure runs in the child between fork and exec, where only async-signal-safe functions may be
    // called. setsid(2) is one; the wrapper around it neither allocates nor takes a lock, and it captures nothing.
    unsafe {
        command.pre_exec(|| match rustix::process::setsid() {
            Ok(_) => Ok(()),
            Err(error) => Err(io::Error::from_raw_os_error(error.raw_os_error())),
        });
    }
    command
}

/// Marks a command, in its environment and by its [`ProcessTag`].
#[expect(unsafe_code, reason = "the standard library has no way to set a limit in the child")]
pub fn mark_command<'a>(command: &'a mut Command, mark: &str) -> &'a mut Command {
    let tag = ProcessTag::of(mark);
    // SAFETY: the closure runs between fork and exec; it calls getrlimit(2) and setrlimit(2), which may be called there, and
    // captures a number.
    unsafe { command.env(MARK, mark).pre_exec(move || tag.put_on()) }
}

/// The processes of one command. Dropping it kills them.
pub struct ProcessGroup {
    leader: Pid,
    /// The value of [`MARK`] in their environment.
    mark: String,
    state: GroupState,
    /// Ends them if we are killed before we can.
    guard: Option<WatchdogGuard>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupState {
    /// The leader has not been waited for, so its number cannot be another group's yet.
    Led,
    /// The leader is gone, but others of the group may be there.
    Leaderless,
    Gone,
}

impl ProcessGroup {
    /// Starts a command that ends with us, however we end. A mark is one word, see [`unique_mark`].
    pub fn spawn(command: &mut Command, mark: String) -> io::Result<(Child, Self)> {
        mark_command(command, &mark);
        Self::spawn_marked(command, mark)
    }

    /// The same for a command that [`mark_command`] has marked already.
    pub fn spawn_marked(command: &mut Command, mark: String) -> io::Result<(Child, Self)> {
        // Before the command: we may be killed after it started and before its id is recorded.
        let guard = watchdog::guard(&mark);
        let child = command.spawn()?;
        let mut group = Self::of(&child, mark).ok_or_else(|| io::Error::other("the process has no id"))?;
        guard.name(group.id());
        group.guard = Some(guard);
        Ok((child, group))
    }

    /// The group of a child that may outlive us. `None` when the child has been waited for already.
    pub fn of(child: &Child, mark: String) -> Option<Self> {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)?;
        Some(Self { leader, mark, state: GroupState::Led, guard: None })
    }

    pub fn id(&self) -> i32 {
        self.leader.as_raw_nonzero().get()
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Notes that the leader has been waited for.
    pub fn leader_ended(&mut self) {
        if self.state == GroupState::Led {
            let others = rustix::process::test_kill_process_group(self.leader);
            self.state = if others.is_err() { GroupState::Gone } else { GroupState::Leaderless };
        }
    }

    pub fn is_gone(&self) -> bool {
        self.state == GroupState::Gone
    }

    /// Ends what is left, in the group and outside of it.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        kill_marked(&self.mark);
        self.state = GroupState::Gone;
    }

    fn signal(&self, signal: Signal) {
        // A group that ended by itself in this moment cannot be signalled, and need not be.
        match self.state {
            GroupState::Led => drop(rustix::process::kill_process_group(self.leader, signal)),
            // The number may belong to another group by now. Only members known by their mark are safe
            // to signal where they can be known; elsewhere a number in use again so soon is the lesser risk.
            GroupState::Leaderless if cfg!(target_os = "linux") => {}
            GroupState::Leaderless => drop(rustix::process::kill_process_group(self.leader, signal)),
            GroupState::Gone => {}
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.is_gone() {
            self.kill();
        }
        // Only now: until here the watchdog would have had to do it.
        self.guard = None;
    }
}

/// Kills every process whose environment carries a mark that starts with `mark`, or whose limits carry its tag.
#[cfg(target_os = "linux")]
pub fn kill_marked(mark: &str) {
    // One may be started while the others are looked for; who starts faster than this for ever is not kept up with.
    for _ in 0..PASSES {
        if !kill_found(mark) {
            return;
        }
    }
}

/// One pass over `/proc`; returns whether a process was found.
#[cfg(target_os = "linux")]
fn kill_found(mark: &str) -> bool {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    let wanted = format!("{MARK}={mark}");
    let tag = ProcessTag::of(mark);
    let all_of_session = mark.ends_with(':');
    let mut found = false;
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        // Opened before looking: the signal then goes to the process that was looked at, or to none.
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_marked =
            environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(wanted.as_bytes()));
        let limits = || std::fs::read_to_string(entry.path().join("limits")).unwrap_or_default();
        if is_marked || tag.is_on(&limits(), all_of_session) {
            // Gone by itself, or not ours to kill: nothing more can be done.
            found |= pidfd_send_signal(process, Signal::KILL).is_ok();
        }
    }
    found
}

/// Most passes over `/proc`, to catch processes that were started during the pass before.
#[cfg(target_os = "linux")]
const PASSES: usize = 64;

#[cfg(not(target_os = "linux"))]
pub fn kill_marked(_mark: &str) {}

/// The code of an ended command as a shell would give it: 128 and the number for a signal.
pub fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => UNKNOWN_EXIT,
    }
}
