//! Capabilities that a command loses even if it runs as root.

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

/// Capabilities that builds and installations need. The others administer the machine.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_NICE);

/// Drops capabilities when the command is run. Safe to call between fork and exec. Dropping from the bounding set is refused
/// to those who are not root, and who have none but ambient ones to lose.
pub(super) fn confine() {
    // Kernels before 4.3 have no ambient capabilities.
    let _ = rustix::thread::clear_ambient_capability_set();
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
}
