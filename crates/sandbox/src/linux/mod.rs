//! The layers of a sandbox on Linux; each enforces what the others cannot.
//!
//! Order matters: mounts need privileges that the next layers drop, and the seccomp filter denies calls that the layers
//! before it make.

mod calls;
mod capabilities;
mod descriptors;
mod exact;
mod files;
mod mounts;
mod namespaces;

use std::io;
use std::os::fd::OwnedFd;

use crate::{Gap, KernelFeature, Metadata, SandboxPolicy, Unavailable};
use calls::SignalScope;
use mounts::Isolation;
use namespaces::Entered;

pub(crate) use calls::SyscallFilters;
pub(crate) use files::available;

/// Confines the calling process, and with it all that it starts. Where namespaces can be had it returns in another
/// process than the one that called: that one waits for the command and ends as it does.
pub(crate) fn confine(policy: &SandboxPolicy) -> Result<Vec<Gap>, Unavailable> {
    let refused = |error: io::Error| Unavailable::Refused(format!("no process can be started: {error}"));
    let mut gaps = Vec::new();
    let scoped = files::keeps_signals(policy);
    let needless = !needs_namespaces(policy, scoped);
    let entered = match policy.may_use(KernelFeature::Namespaces) && !needless {
        true => namespaces::enter(),
        false => Entered::default(),
    };
    let init = entered.processes.then(|| namespaces::split(&policy.absent)).transpose().map_err(refused)?;
    let isolation = mounts::confine(policy, entered)?;
    if !isolation.metadata && policy.metadata == Metadata::Mounts {
        gaps.push(Gap::Metadata);
    }
    if !isolation.processes && !needless {
        gaps.push(Gap::Processes);
    }
    if let Some(init) = init {
        init.start().map_err(refused)?;
    }
    capabilities::confine();
    descriptors::confine().map_err(|error| {
        Unavailable::Refused(format!("files that are open cannot be kept from it: {error}"))
    })?;
    files::confine(policy, &isolation)?;
    if !policy.may_use(KernelFeature::Seccomp) {
        return Err(Unavailable::Calls);
    }
    let signals = match scoped || entered.processes {
        true => SignalScope::Own,
        // Commands that only read need no signals.
        false if policy.metadata == Metadata::Frozen => SignalScope::None,
        false => {
            gaps.push(Gap::Signals);
            SignalScope::Any
        }
    };
    let filters = SyscallFilters::new(policy, &isolation, signals)?;
    filters.apply().map_err(|error| Unavailable::Refused(error.to_string()))?;
    Ok(gaps)
}

/// Returns whether a policy needs namespaces. For commands that only read, the other layers enforce the same limits in a
/// third of the time.
fn needs_namespaces(policy: &SandboxPolicy, scoped: bool) -> bool {
    policy.metadata != Metadata::Frozen || !scoped
}

/// Compiles the filters of a policy that can be applied between fork and exec; `None` if it needs the launcher.
pub(crate) fn filters_of_child(policy: &SandboxPolicy) -> Result<Option<SyscallFilters>, Unavailable> {
    let has_all = policy.may_use(KernelFeature::Landlock) && policy.may_use(KernelFeature::Seccomp);
    if !has_all || needs_namespaces(policy, files::keeps_signals(policy)) {
        return Ok(None);
    }
    SyscallFilters::new(policy, &Isolation::default(), SignalScope::Own).map(Some)
}

/// Makes the Landlock ruleset from the paths as they are now. Spawn the command at once: a path may be replaced later.
pub(crate) fn rules_of_child(policy: &SandboxPolicy) -> Result<OwnedFd, Unavailable> {
    files::descriptor(policy, &Isolation::default())
}

/// Confines the calling process between fork and exec: nothing here allocates or takes a lock.
pub(crate) fn confine_child(rules: &OwnedFd, filters: &SyscallFilters) -> io::Result<()> {
    capabilities::confine();
    descriptors::confine()?;
    files::restrict_child(rules)?;
    filters.apply()
}
