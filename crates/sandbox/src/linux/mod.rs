//! The layers of a sandbox on Linux, each putting on what the others cannot.
//!
//! Order matters: mounts need privileges that the next layers take away, and the filter of system calls would forbid
//! the calls of the layers before it.

mod calls;
mod capabilities;
mod descriptors;
mod exact;
mod files;
mod mounts;
mod namespaces;

use std::io;
use std::os::fd::OwnedFd;

use crate::{Feature, Gap, Metadata, Policy, Unavailable};
use calls::Signals;
use mounts::Own;
use namespaces::Apart;

pub(crate) use calls::Filters;
pub(crate) use files::available;

/// Confines the calling process, and with it all that it starts. Where namespaces can be had it returns in another
/// process than the one that called: that one waits for the command and ends as it does.
pub(crate) fn confine(policy: &Policy) -> Result<Vec<Gap>, Unavailable> {
    let refused = |error: io::Error| Unavailable::Refused(format!("no process can be started: {error}"));
    let mut gaps = Vec::new();
    let scoped = files::keeps_signals(policy);
    let needless = !needs_namespaces(policy, scoped);
    let apart = match policy.may_use(Feature::Namespaces) && !needless {
        true => namespaces::enter(),
        false => Apart::default(),
    };
    let init = apart.processes.then(|| namespaces::split(&policy.absent)).transpose().map_err(refused)?;
    let own = mounts::confine(policy, apart)?;
    if !own.metadata && policy.metadata == Metadata::Mounts {
        gaps.push(Gap::Metadata);
    }
    if !own.processes && !needless {
        gaps.push(Gap::Processes);
    }
    if let Some(init) = init {
        init.start().map_err(refused)?;
    }
    capabilities::confine();
    descriptors::confine().map_err(|error| {
        Unavailable::Refused(format!("files that are open cannot be kept from it: {error}"))
    })?;
    files::confine(policy, &own)?;
    if !policy.may_use(Feature::Seccomp) {
        return Err(Unavailable::Calls);
    }
    let signals = match scoped || apart.processes {
        true => Signals::Own,
        // Whoever only reads can do without.
        false if policy.metadata == Metadata::Frozen => Signals::None,
        false => {
            gaps.push(Gap::Signals);
            Signals::Any
        }
    };
    let filters = Filters::new(policy, &own, signals)?;
    filters.apply().map_err(|error| Unavailable::Refused(error.to_string()))?;
    Ok(gaps)
}

/// Whether commands of a policy need namespaces. Those that only read are kept by the other layers from all that
/// namespaces would keep them from, in a third of the time.
fn needs_namespaces(policy: &Policy, scoped: bool) -> bool {
    policy.metadata != Metadata::Frozen || !scoped
}

/// The filters of a policy whose sandbox can be put on between fork and exec; `None` if it takes a launcher.
pub(crate) fn filters_of_child(policy: &Policy) -> Result<Option<Filters>, Unavailable> {
    let has_all = policy.may_use(Feature::Landlock) && policy.may_use(Feature::Seccomp);
    if !has_all || needs_namespaces(policy, files::keeps_signals(policy)) {
        return Ok(None);
    }
    Filters::new(policy, &Own::default(), Signals::Own).map(Some)
}

/// The files that a command may use, as they are now. The command is started at once: what the policy names may be
/// replaced by another.
pub(crate) fn rules_of_child(policy: &Policy) -> Result<OwnedFd, Unavailable> {
    files::descriptor(policy, &Own::default())
}

/// Confines the calling process between fork and exec: nothing here allocates or takes a lock.
pub(crate) fn confine_child(rules: &OwnedFd, filters: &Filters) -> io::Result<()> {
    capabilities::confine();
    descriptors::confine()?;
    files::restrict_child(rules)?;
    filters.apply()
}
