//! Landlock: which files can be read and written, and that processes outside are left alone.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::{Network, Policy, Unavailable};

/// Before this one, files that cannot be written could be truncated.
const NEEDED: ABI = ABI::V3;
/// The newest that this was tried on. Kernels that lack some of it put on the rest.
const WANTED: ABI = ABI::V7;

/// Devices that every program may use. None of them keeps anything.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

pub(super) struct Enforced {
    /// Whether processes outside cannot be signalled.
    pub(super) signals: bool,
}

pub(super) fn confine(policy: &Policy) -> Result<Enforced, Unavailable> {
    if !has(NEEDED) {
        return Err(Unavailable::Landlock);
    }
    let refused = |error: RulesetError| Unavailable::Refused(error.to_string());
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(WANTED)).map_err(refused)?;
    if policy.network == Network::Closed {
        ruleset = ruleset.handle_access(AccessNet::from_all(WANTED)).map_err(refused)?;
    }
    let mut rules = ruleset.scope(Scope::from_all(WANTED)).and_then(Ruleset::create).map_err(refused)?;

    for path in existing(&policy.writable) {
        rules = allow(rules, &path, changing())?;
    }
    for device in existing(&DEVICES) {
        rules = allow(rules, &device, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev)?;
    }
    rules = allow_reading(rules, &existing(&policy.denied))?;

    let status = rules.restrict_self().map_err(refused)?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(Unavailable::Landlock);
    }
    Ok(Enforced { signals: has_scopes() })
}

/// Everything but making devices, which would lead around all that is said about files.
fn changing() -> BitFlags<AccessFs> {
    AccessFs::from_all(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::Execute
}

/// Lets everything be read but `denied`.
///
/// Landlock can only allow, and what is allowed for a directory is allowed for all beneath it. So the directories on
/// the way to something denied are not allowed themselves but what they hold is, one by one. Names can be listed
/// everywhere.
fn allow_reading(rules: RulesetCreated, denied: &[PathBuf]) -> Result<RulesetCreated, Unavailable> {
    let root = Path::new("/");
    let mut rules = allow(rules, root, AccessFs::ReadDir.into())?;
    let mut ways = vec![root.to_owned()];
    while let Some(way) = ways.pop() {
        if !denied.iter().any(|denied| denied.starts_with(&way)) {
            rules = allow(rules, &way, reading())?;
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
    Ok(rules)
}

fn existing(paths: &[impl AsRef<Path>]) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| path.as_ref().canonicalize().ok()).collect()
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Unavailable> {
    let failed = |source: io::Error| Unavailable::Path { path: path.to_owned(), source };
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        // Gone or out of reach since it was listed.
        Err(_) => return Ok(rules),
    };
    let Ok(opened) = PathFd::new(path) else { return Ok(rules) };
    // Rights over directories mean nothing for a file, and the kernel would refuse them.
    let access = if metadata.is_dir() { access } else { access & AccessFs::from_file(WANTED) };
    rules.add_rule(PathBeneath::new(opened, access)).map_err(|error| failed(io::Error::other(error)))
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
