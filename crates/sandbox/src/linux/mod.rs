//! The layers of a sandbox on Linux, each putting on what the others cannot.
//!
//! Order matters: mounts need privileges that the next layers take away, and the filter of system calls would forbid
//! the calls of the layers before it.

mod calls;
mod capabilities;
mod files;
mod mounts;

use crate::{Feature, Gap, Policy, Unavailable};

/// Confines the calling thread, and with it all that it starts.
pub(crate) fn confine(policy: &Policy) -> Result<Vec<Gap>, Unavailable> {
    let mut gaps = Vec::new();
    if !policy.may_use(Feature::MountNamespace) || mounts::confine(policy).is_err() {
        gaps.push(Gap::Metadata);
    }
    capabilities::confine();
    if !files::confine(policy)?.signals {
        gaps.push(Gap::Signals);
    }
    if !policy.may_use(Feature::Seccomp) {
        return Err(Unavailable::Calls);
    }
    calls::confine(policy.network)?;
    Ok(gaps)
}
