//! The layers of a sandbox on Linux, each putting on what the others cannot.
//!
//! Order matters: mounts need privileges that the next layers take away, and the filter of system calls would forbid
//! the calls of the layers before it.

mod calls;
mod capabilities;
mod descriptors;
mod files;
mod mounts;

use crate::{Feature, Gap, Policy, Unavailable};
use mounts::Own;

/// Confines the calling thread, and with it all that it starts.
pub(crate) fn confine(policy: &Policy) -> Result<Vec<Gap>, Unavailable> {
    let mut gaps = Vec::new();
    let own = if policy.may_use(Feature::MountNamespace) { mounts::confine(policy) } else { Own::default() };
    if !own.metadata {
        gaps.push(Gap::Metadata);
    }
    capabilities::confine();
    descriptors::confine()?;
    if !files::confine(policy, &own)?.signals {
        gaps.push(Gap::Signals);
    }
    if !policy.may_use(Feature::Seccomp) {
        return Err(Unavailable::Calls);
    }
    calls::confine(policy.network, &own)?;
    Ok(gaps)
}
