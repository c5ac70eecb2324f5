//! What a command that runs as root may not do although it is root.

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

/// What building and installing needs. All else is about the machine.
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

/// Takes effect when the command is run. Safe to call between fork and exec. Refused to those who are not root, and who have nothing to lose.
pub(super) fn confine() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
}
