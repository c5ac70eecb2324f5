//! The seccomp filter: no network, no sockets to services of this machine, no administration of the machine.
//!
//! It is a deny-list: programs that build and test software need too many calls for an allow-list, and files are guarded by
//! Landlock. Denied are calls that bypass the other layers or widen the attack surface of the kernel.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::mounts::Isolation;
use crate::{Metadata, Network, SandboxPolicy, Unavailable};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Denied regardless of arguments.
const DENIED: &[i64] = &[
    // Other views of the file system, or ways into it that pass no path.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    // open_tree_attr, newer than its name in the library.
    467,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    // Other namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Work that the kernel does past this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes. Debugging one's own goes on; Landlock knows whose they are.
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Secrets that the kernel keeps.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Much code of the kernel for little use.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Answered with ENOSYS: programs then fall back to the older call, whose arguments a filter can inspect.
const UNKNOWN: &[i64] = &[libc::SYS_clone3];

/// Namespace flags of clone(2). The time namespace is not among its flags.
const NAMESPACES: [u64; 7] = [
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWCGROUP as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWNET as u64,
];

/// ioctl requests that inject input into a terminal.
const TYPING: [u64; 2] = [0x5412 /* TIOCSTI */, 0x541C /* TIOCLINUX */];

/// ioctl types of file systems: `FS_IOC_SETFLAGS` and verity, `FS_IOC_SETVERSION`, `FS_IOC_FSSETXATTR`, btrfs. Many of their
/// requests change a file through a descriptor that is open for reading.
const FILE_SYSTEM_TYPES: [u64; 4] = [b'f' as u64, b'v' as u64, b'X' as u64, 0x94];
/// Bit of ioctl requests that pass data to the kernel. Requests that only read (`lsattr`) go on.
const IOCTL_WRITE: u64 = 0x4000_0000;
/// ioctl requests that choose who gets a signal about a descriptor: `FIOSETOWN`, `SIOCSPGRP`.
const DESCRIPTOR_OWNERS: [u64; 2] = [0x8901, 0x8902];

/// fcntl commands that the library does not name on every target.
const F_SETSIG: libc::c_int = 10;
const F_SETOWN_EX: libc::c_int = 15;

/// Mask of the socket type, without its flags.
const SOCKET_TYPE: u64 = 0xf;
/// Socket types whose pairs are connected. The kernel treats all others as datagrams, and a datagram can be sent to any
/// address.
const JOINED: [u64; 2] = [libc::SOCK_STREAM as u64, libc::SOCK_SEQPACKET as u64];

/// System V and POSIX IPC, which processes of one user share by number or name.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Modes, owners, times and attributes of files.
const METADATA: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // setxattrat, removexattrat, file_setattr: newer than their names in the library.
    463,
    466,
    469,
    // Names that appear in directories that cannot be listed.
    libc::SYS_inotify_add_watch,
];

/// Scheduling calls, with the index of the argument that names the process.
const PRIORITIES: &[(i64, u8)] = &[
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
];

/// Signals to other processes.
const SIGNALS: &[i64] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// Processes that a command may signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalScope {
    /// Its own; Landlock or the process namespace enforces it.
    Own,
    /// All that the user may; no layer can restrict it on this kernel.
    Any,
    None,
}

/// Filters of system calls, compiled.
#[derive(Debug)]
pub(crate) struct SyscallFilters([BpfProgram; 2]);

impl SyscallFilters {
    pub(super) fn new(
        policy: &SandboxPolicy,
        isolation: &Isolation,
        signals: SignalScope,
    ) -> Result<Self, Unavailable> {
        let processor = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| Unavailable::Processor)?;
        let by_argument = by_argument(policy)
            .and_then(|rules| compile(rules, processor))
            .map_err(|error| Unavailable::Refused(error.to_string()))?;
        Ok(Self([by_number(&denied(policy, isolation, signals)), by_argument]))
    }

    /// Filters the calls of this thread and all that it starts. Safe to call between fork and exec.
    pub(super) fn apply(&self) -> io::Result<()> {
        for filter in &self.0 {
            seccompiler::apply_filter(filter).map_err(|error| match error {
                seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error) => error,
                // None of the others is about a filter that has been compiled.
                _ => io::Error::from_raw_os_error(libc::EINVAL),
            })?;
        }
        Ok(())
    }
}

/// The calls that are denied regardless of arguments, sorted.
fn denied(policy: &SandboxPolicy, isolation: &Isolation, signals: SignalScope) -> Vec<i64> {
    let when = |denied: bool, calls: &'static [i64]| if denied { calls } else { &[] };
    let lists = [
        DENIED,
        // IPC objects are shared by all processes of the user unless the command has its own namespace.
        when(!isolation.ipc, SHARED),
        when(policy.metadata == Metadata::Frozen, METADATA),
        when(signals == SignalScope::None, SIGNALS),
        when(policy.network == Network::Closed, &[libc::SYS_socket]),
    ];
    let mut calls: Vec<i64> = lists.into_iter().flatten().copied().collect();
    calls.sort_unstable();
    calls.dedup();
    calls
}

/// The calls that are denied for certain arguments.
fn by_argument(policy: &SandboxPolicy) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    let namespaces = NAMESPACES.iter().map(|flag| rule(&[(0, SeccompCmpOp::MaskedEq(*flag), *flag)]));
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    let frozen = policy.metadata == Metadata::Frozen;
    let owners = if frozen { &DESCRIPTOR_OWNERS[..] } else { &[] };
    let requests = TYPING.iter().chain(owners).map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]));
    let types = if frozen { &FILE_SYSTEM_TYPES[..] } else { &[] };
    let of_files = types.iter().map(|kind| {
        let mask = IOCTL_WRITE | 0xff00;
        rule(&[(1, SeccompCmpOp::MaskedEq(mask), IOCTL_WRITE | kind << 8)])
    });
    rules.insert(libc::SYS_ioctl, requests.chain(of_files).collect::<Result<_, _>>()?);
    let datagrams = (0..=SOCKET_TYPE).filter(|kind| !JOINED.contains(kind));
    let datagrams = datagrams.map(|kind| rule(&[(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind)]));
    rules.insert(libc::SYS_socketpair, datagrams.collect::<Result<_, _>>()?);
    // The limits of a process can be set by all processes of its user, and end it; and one limit tells whose it is.
    let tag = u64::from(libc::RLIMIT_RTTIME);
    let others = rule(&[(0, SeccompCmpOp::Ne, 0)])?;
    let sheds = SeccompRule::new(vec![
        SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, tag)?,
        // A pointer: none where the limit is only asked for.
        SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?,
    ])?;
    rules.insert(libc::SYS_prlimit64, vec![others, sheds]);
    rules.insert(libc::SYS_setrlimit, vec![rule(&[(0, SeccompCmpOp::Eq, tag)])?]);
    // Priorities and processors of other processes; zero is the caller.
    for (call, process) in PRIORITIES {
        rules.insert(*call, vec![rule(&[(*process, SeccompCmpOp::Ne, 0)])?]);
    }
    // These are about all processes of a user or a group, too.
    for (call, alone) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        rules.entry(call).or_default().push(rule(&[(0, SeccompCmpOp::Ne, alone)])?);
    }
    // A lease reports who opens the file. The owner of a descriptor gets a signal of the command's choice, which no layer
    // restricts on kernels without scopes.
    let mut file_commands = vec![libc::F_SETLEASE];
    if frozen {
        file_commands.extend([libc::F_SETOWN, F_SETOWN_EX, F_SETSIG]);
    }
    let file_commands =
        file_commands.iter().map(|command| rule(&[(1, SeccompCmpOp::Eq, command.unsigned_abs().into())]));
    rules.insert(libc::SYS_fcntl, file_commands.collect::<Result<_, _>>()?);
    // Sockets with a path lead to services that act for the user (containers, agents with keys), so they are no part
    // of an open network either.
    if policy.network == Network::Open {
        let other = rule(&[
            (0, SeccompCmpOp::Ne, libc::AF_INET as u64),
            (0, SeccompCmpOp::Ne, libc::AF_INET6 as u64),
            (0, SeccompCmpOp::Ne, libc::AF_NETLINK as u64),
        ])?;
        rules.insert(libc::SYS_socket, vec![other]);
    }
    Ok(rules)
}

/// A rule whose conditions must all hold: argument index, comparison, value.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions
        .iter()
        .map(|(argument, comparison, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, comparison.clone(), *value)
        })
        .collect::<Result<_, _>>()?;
    SeccompRule::new(conditions)
}

/// Compiles rules. A call of another architecture (a 32-bit program) kills the process: its numbers mean other calls.
fn compile(rules: Rules, processor: TargetArch) -> Result<BpfProgram, BackendError> {
    let answer = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, answer, processor)?.try_into()
}

/// Bit that marks x32 calls on x86-64. Nobody has such programs, so all of them are denied.
const SHORT_POINTERS: u32 = 0x4000_0000;

/// Calls that a leaf of the binary search compares one by one.
const LEAF: usize = 4;

/// A filter that denies calls by number with a binary search: the kernel evaluates a new filter for every call number, and
/// a linear list of a hundred comparisons makes that slow.
fn by_number(denied: &[i64]) -> BpfProgram {
    let errno = |error: i32| ret(libc::SECCOMP_RET_ERRNO | error.unsigned_abs());
    // The number of the call is the first field of what a filter is given.
    let mut filter = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    if cfg!(target_arch = "x86_64") {
        filter.push(jump(libc::BPF_JSET, SHORT_POINTERS, 0, 1));
        filter.push(errno(libc::ENOSYS));
    }
    for call in UNKNOWN {
        filter.push(jump(libc::BPF_JEQ, number(*call), 0, 1));
        filter.push(errno(libc::ENOSYS));
    }
    filter.extend(search(denied));
    filter
}

fn search(denied: &[i64]) -> Vec<sock_filter> {
    if denied.len() <= LEAF {
        let mut leaf: Vec<sock_filter> = Vec::with_capacity(LEAF + 2);
        for (at, call) in denied.iter().enumerate() {
            // Past the comparisons that are left and the answer to all other calls.
            leaf.push(jump(libc::BPF_JEQ, number(*call), offset(denied.len() - at), 0));
        }
        leaf.push(ret(libc::SECCOMP_RET_ALLOW));
        leaf.push(ret(libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()));
        return leaf;
    }
    let (low, high) = denied.split_at(denied.len() / 2);
    let (left, right) = (search(low), search(high));
    let mut found = vec![jump(libc::BPF_JGE, number(high[0]), offset(left.len()), 0)];
    found.extend(left);
    found.extend(right);
    found
}

/// Jump offset. The lists here are far shorter than its maximum.
fn offset(instructions: usize) -> u8 {
    u8::try_from(instructions).unwrap_or(u8::MAX)
}

fn number(call: i64) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

fn jump(comparison: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    instruction(libc::BPF_JMP | comparison | libc::BPF_K, jt, jf, k)
}

fn ret(k: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, k)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets a filter for a call number, as the kernel does.
    fn answer(filter: &[sock_filter], call: u32) -> u32 {
        let mut at = 0;
        loop {
            let sock_filter { code, jt, jf, k } = filter[at].clone();
            let taken = match u32::from(code) & 0xf7 {
                code if code == libc::BPF_JMP | libc::BPF_JEQ => call == k,
                code if code == libc::BPF_JMP | libc::BPF_JGE => call >= k,
                code if code == libc::BPF_JMP | libc::BPF_JSET => call & k != 0,
                code if code == libc::BPF_RET => return k,
                _ => false,
            };
            at += 1 + usize::from(if taken { jt } else { jf });
        }
    }

    #[test]
    fn every_listed_call_is_denied_and_no_other() {
        let policy = SandboxPolicy { metadata: Metadata::Frozen, ..SandboxPolicy::default() };
        let denied = denied(&policy, &Isolation::default(), SignalScope::None);
        let filter = by_number(&denied);
        for call in 0..600 {
            let expected = match i64::from(call) {
                call if UNKNOWN.contains(&call) => libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
                call if denied.contains(&call) => libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs(),
                _ => libc::SECCOMP_RET_ALLOW,
            };
            assert_eq!(answer(&filter, call), expected, "{call}");
        }
        assert_ne!(answer(&filter, SHORT_POINTERS | 1), libc::SECCOMP_RET_ALLOW);
    }
}
