//! Landlock: which files can be read and written, and that processes outside are left alone.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::mounts::Own;
use crate::{Feature, Network, Policy, Unavailable};

/// Before this one, files that cannot be written could be truncated.
const NEEDED: ABI = ABI::V3;
/// The newest that this was tried on. Kernels that lack some of it put on the rest.
const WANTED: ABI = ABI::V7;
/// The last before processes were kept from signalling others, and the last before TCP was known.
const BEFORE_SCOPES: ABI = ABI::V5;
const BEFORE_NETWORK: ABI = ABI::V3;

/// Where devices are. What disks hold can be read there past all names, and what people type and say.
const ALL_DEVICES: &str = "/dev";
/// Devices that every program may use. None of them keeps anything.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Where terminals are made.
const TERMINALS: [&str; 2] = ["/dev/ptmx", "/dev/pts"];
/// Among the devices, but files in memory.
const MEMORY: &str = "/dev/shm";

pub(super) struct Enforced {
    /// Whether processes outside cannot be signalled.
    pub(super) signals: bool,
}

pub(super) fn confine(policy: &Policy, own: &Own) -> Result<Enforced, Unavailable> {
    if !policy.may_use(Feature::Landlock) || !has(NEEDED) {
        return Err(Unavailable::Landlock);
    }
    let refused = |error: RulesetError| Unavailable::Refused(error.to_string());
    let wanted = newest(policy);
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(wanted)).map_err(refused)?;
    let network = AccessNet::from_all(wanted);
    if policy.network == Network::Closed && !network.is_empty() {
        ruleset = ruleset.handle_access(network).map_err(refused)?;
    }
    let scopes = Scope::from_all(wanted);
    if !scopes.is_empty() {
        ruleset = ruleset.scope(scopes).map_err(refused)?;
    }
    let created = ruleset.create().map_err(refused)?;
    let mut allowed = Allowed { rules: created, handled: AccessFs::from_all(wanted) };
    for path in existing(&policy.writable) {
        allowed = allowed.and(&path, changing())?;
    }
    let terminals = if own.terminals { &TERMINALS[..] } else { &[] };
    for device in existing(&DEVICES).into_iter().chain(existing(terminals)) {
        allowed = allowed.and(&device, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev)?;
    }
    allowed = allowed.and(Path::new(MEMORY), reading())?;
    let mut unreadable = existing(&policy.denied);
    unreadable.push(ALL_DEVICES.into());
    allowed = allowed.and_reading(&unreadable)?;

    let status = allowed.rules.restrict_self().map_err(refused)?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(Unavailable::Landlock);
    }
    Ok(Enforced { signals: !scopes.is_empty() && has_scopes() })
}

fn newest(policy: &Policy) -> ABI {
    if !policy.may_use(Feature::LandlockNetwork) {
        BEFORE_NETWORK
    } else if !policy.may_use(Feature::LandlockScopes) {
        BEFORE_SCOPES
    } else {
        WANTED
    }
}

/// Everything but making devices, which would lead around all that is said about files.
fn changing() -> BitFlags<AccessFs> {
    AccessFs::from_all(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::Execute
}

/// The rules so far.
struct Allowed {
    rules: RulesetCreated,
    /// The accesses that rules are about; no others may be in a rule.
    handled: BitFlags<AccessFs>,
}

impl Allowed {
    /// Lets everything be read but `denied`.
    ///
    /// Landlock can only allow, and what is allowed for a directory is allowed for all beneath it. So the directories
    /// on the way to something denied are not allowed themselves but what they hold is, one by one. Names can be
    /// listed everywhere.
    fn and_reading(self, denied: &[PathBuf]) -> Result<Self, Unavailable> {
        let root = Path::new("/");
        let mut allowed = self.and(root, AccessFs::ReadDir.into())?;
        let mut ways = vec![root.to_owned()];
        while let Some(way) = ways.pop() {
            if !denied.iter().any(|denied| denied.starts_with(&way)) {
                allowed = allowed.and(&way, reading())?;
                continue;
            }
            if denied.contains(&way) {
                continue;
            }
            // A directory that cannot be listed by us holds nothing that the command could read.
            let Ok(entries) = std::fs::read_dir(&way) else { continue };
            // A link is allowed where it leads to, if that is.
            let entries =
                entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
            ways.extend(entries.map(|entry| entry.path()));
        }
        Ok(allowed)
    }

    fn and(self, path: &Path, access: BitFlags<AccessFs>) -> Result<Self, Unavailable> {
        // Gone or out of reach since it was listed.
        let Ok(metadata) = std::fs::metadata(path) else { return Ok(self) };
        let Ok(opened) = PathFd::new(path) else { return Ok(self) };
        // Rights over directories mean nothing for a file, and the kernel would refuse them.
        let access = if metadata.is_dir() { access } else { access & AccessFs::from_file(WANTED) };
        let rule = PathBeneath::new(opened, access & self.handled);
        let rules = self
            .rules
            .add_rule(rule)
            .map_err(|error| Unavailable::Path { path: path.to_owned(), source: io::Error::other(error) })?;
        Ok(Self { rules, ..self })
    }
}

fn existing(paths: &[impl AsRef<Path>]) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| path.as_ref().canonicalize().ok()).collect()
}

/// Whether the kernel has all that a version of Landlock brought for files.
fn has(version: ABI) -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(version))
        .and_then(Ruleset::create)
        .is_ok()
}

fn has_scopes() -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)
        .and_then(Ruleset::create)
        .is_ok()
}
