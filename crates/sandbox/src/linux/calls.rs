//! The filter of system calls: no network, no sockets to services of this machine, and nothing about the machine itself.
//!
//! It denies by name instead of allowing by name: what programs need to build and test software has no end, and files are
//! guarded elsewhere. What is denied leads around the other layers or widens what the kernel exposes.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::mounts::Own;
use crate::{Network, Unavailable};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Denied whatever their arguments are.
const DENIED: &[i64] = &[
    // Other views of the file system, or ways into it that pass no path.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
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

/// Answered as by a kernel that has not heard of them: programs then use the older call, whose arguments can be seen.
const UNKNOWN: &[i64] = &[libc::SYS_clone3];

/// Namespaces that a new process could be put into. The one of clocks is not for clone(2) to make.
const NAMESPACES: [u64; 7] = [
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWCGROUP as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWNET as u64,
];

/// Requests to a terminal that type on behalf of its user.
const TYPING: [u64; 2] = [0x5412 /* TIOCSTI */, 0x541C /* TIOCLINUX */];

/// Where the type of a socket is, apart from its flags.
const SOCKET_TYPE: u64 = 0xf;
/// Types of which a pair is joined at both ends. All others are datagrams to the kernel, whatever they are called, and a
/// datagram can be sent elsewhere.
const JOINED: [u64; 2] = [libc::SOCK_STREAM as u64, libc::SOCK_SEQPACKET as u64];

/// Memory, semaphores and queues that processes of one user share by number or name.
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

pub(super) fn confine(network: Network, own: &Own) -> Result<(), Unavailable> {
    let refused = |error: seccompiler::Error| Unavailable::Refused(error.to_string());
    let processor = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| Unavailable::Processor)?;
    let unknown: Rules = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
    let filters = [
        compile(unknown, libc::ENOSYS, processor),
        denials(network, own).and_then(|rules| compile(rules, libc::EPERM, processor)),
    ];
    for filter in filters {
        seccompiler::apply_filter(&filter.map_err(|error| refused(error.into()))?).map_err(refused)?;
    }
    Ok(())
}

fn denials(network: Network, own: &Own) -> Result<Rules, BackendError> {
    // What everybody shares is not for a command; what it has to itself is.
    let shared = if own.ipc { &[][..] } else { SHARED };
    let mut rules: Rules = DENIED.iter().chain(shared).map(|call| (*call, Vec::new())).collect();
    let namespaces = NAMESPACES.iter().map(|flag| rule(&[(0, SeccompCmpOp::MaskedEq(*flag), *flag)]));
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    let typing = TYPING.iter().map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);
    let datagrams = (0..=SOCKET_TYPE).filter(|kind| !JOINED.contains(kind));
    let datagrams = datagrams.map(|kind| rule(&[(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind)]));
    rules.insert(libc::SYS_socketpair, datagrams.collect::<Result<_, _>>()?);
    // The limits of a process can be set by all processes of its user, and end it.
    rules.insert(libc::SYS_prlimit64, vec![rule(&[(0, SeccompCmpOp::Ne, 0)])?]);
    // Sockets with a path lead to services that act for the user (containers, agents with keys), so they are no part
    // of an open network either.
    let sockets = match network {
        Network::Closed => Vec::new(),
        Network::Open => vec![rule(&[
            (0, SeccompCmpOp::Ne, libc::AF_INET as u64),
            (0, SeccompCmpOp::Ne, libc::AF_INET6 as u64),
            (0, SeccompCmpOp::Ne, libc::AF_NETLINK as u64),
        ])?],
    };
    rules.insert(libc::SYS_socket, sockets);
    Ok(rules)
}

/// A rule that all conditions have to meet: the number of an argument, how it is compared, and with what.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions
        .iter()
        .map(|(argument, comparison, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, comparison.clone(), *value)
        })
        .collect::<Result<_, _>>()?;
    SeccompRule::new(conditions)
}

/// Calls of another processor's kind (32-bit programs) end the program: their numbers mean something else.
fn compile(mut rules: Rules, answer: i32, processor: TargetArch) -> Result<BpfProgram, BackendError> {
    if cfg!(target_arch = "x86_64") {
        rules.extend(twins(&rules));
    }
    let answer = SeccompAction::Errno(answer.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, answer, processor)?.try_into()
}

/// The same calls under the numbers that they have for programs with short pointers (x32).
fn twins(rules: &Rules) -> Rules {
    const SHORT_POINTERS: i64 = 0x4000_0000;
    // Some have another number there.
    const RENUMBERED: [(i64, i64); 4] = [(246, 528), (310, 539), (311, 540), (16, 514)];
    let other = |call: i64| RENUMBERED.iter().find(|(long, _)| *long == call).map(|(_, short)| *short);
    rules
        .iter()
        .flat_map(|(call, chain)| {
            [Some(*call), other(*call)]
                .into_iter()
                .flatten()
                .map(|call| (call | SHORT_POINTERS, chain.clone()))
        })
        .collect()
}
