//! Landlock: the files that can be read and written, and no signals to processes outside.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use seccompiler::TargetArch;

use super::exact::open_exactly;
use super::mounts::Isolation;
use crate::{KernelFeature, Network, Readable, SandboxPolicy, Unavailable, system};

/// Older versions do not restrict truncation.
const NEEDED: ABI = ABI::V3;
/// The newest version that was tested. Older kernels apply the part that they know.
const WANTED: ABI = ABI::V7;
/// The last version without signal scopes, and the last without TCP rules.
const BEFORE_SCOPES: ABI = ABI::V5;
const BEFORE_NETWORK: ABI = ABI::V3;

/// Devices expose raw disks, keyboards and microphones.
const ALL_DEVICES: &str = "/dev";
/// Devices that every program may use. None of them stores anything.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Where terminals are made.
const TERMINALS: [&str; 2] = ["/dev/ptmx", "/dev/pts"];
/// Among the devices, but files in memory.
const MEMORY: &str = "/dev/shm";

/// Restricts the calling thread and all that it starts.
pub(super) fn confine(policy: &SandboxPolicy, isolation: &Isolation) -> Result<(), Unavailable> {
    let status = ruleset(policy, isolation)?.restrict_self().map_err(refused)?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(Unavailable::Landlock);
    }
    Ok(())
}

/// The same rules as a descriptor, for [`restrict_child`].
pub(super) fn descriptor(policy: &SandboxPolicy, isolation: &Isolation) -> Result<OwnedFd, Unavailable> {
    Option::from(ruleset(policy, isolation)?).ok_or(Unavailable::Landlock)
}

/// Restricts the calling thread by rules that were made before. Safe to call between fork and exec.
#[expect(unsafe_code, reason = "the library's own function may allocate, which a child must not before exec")]
pub(super) fn restrict_child(rules: &OwnedFd) -> io::Result<()> {
    // SAFETY: both calls take numbers only; the descriptor is open as long as it is borrowed.
    let restricted = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) == 0
    };
    if restricted { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn refused(error: RulesetError) -> Unavailable {
    Unavailable::Refused(error.to_string())
}

fn ruleset(policy: &SandboxPolicy, isolation: &Isolation) -> Result<RulesetCreated, Unavailable> {
    if !policy.may_use(KernelFeature::Landlock) || !has(NEEDED) {
        return Err(Unavailable::Landlock);
    }
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
    let denied = existing(&policy.denied);
    // Mounts have hidden these already.
    let unwritable = if isolation.metadata { &[][..] } else { &denied };
    for path in &policy.writable {
        allowed = allowed.and_below(path, changing(), unwritable)?;
    }
    let terminals = if isolation.terminals { &TERMINALS[..] } else { &[] };
    for device in existing(&DEVICES).into_iter().chain(existing(terminals)) {
        allowed = allowed.and(&device, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev)?;
    }
    allowed = match &policy.readable {
        Readable::Everything => allowed.and_everything(denied)?,
        Readable::Only(paths) => allowed.and_only(paths, policy.network, isolation, &denied)?,
    };
    Ok(allowed.rules)
}

fn newest(policy: &SandboxPolicy) -> ABI {
    if !policy.may_use(KernelFeature::LandlockNetwork) {
        BEFORE_NETWORK
    } else if !policy.may_use(KernelFeature::LandlockScopes) {
        BEFORE_SCOPES
    } else {
        WANTED
    }
}

/// All rights but making devices, which would bypass every other rule.
fn changing() -> BitFlags<AccessFs> {
    AccessFs::from_all(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::Execute
}

/// A ruleset under construction.
struct Allowed {
    rules: RulesetCreated,
    /// The rights that the ruleset handles; a rule may name no others.
    handled: BitFlags<AccessFs>,
}

impl Allowed {
    /// Allows reading everything but `denied`. Directories can be listed everywhere.
    fn and_everything(self, mut denied: Vec<PathBuf>) -> Result<Self, Unavailable> {
        let root = Path::new("/");
        denied.push(ALL_DEVICES.into());
        self.and(Path::new(MEMORY), reading())?.and(root, AccessFs::ReadDir.into())?.and_below(
            root,
            reading(),
            &denied,
        )
    }

    /// Allows reading these paths and what programs need to run, but nothing that is denied.
    fn and_only(
        self,
        paths: &[PathBuf],
        network: Network,
        isolation: &Isolation,
        denied: &[PathBuf],
    ) -> Result<Self, Unavailable> {
        let listing = reading() | AccessFs::ReadDir;
        let needed: &[&[&str]] = match network {
            Network::Closed => &[system::PROGRAMS, system::SETTINGS, system::MACHINE],
            Network::Open => &[system::PROGRAMS, system::SETTINGS, system::MACHINE, system::NETWORK],
        };
        let processes = if isolation.processes { &["/proc"][..] } else { system::PROC };
        let mut allowed = self;
        for path in processes {
            allowed = allowed.and(Path::new(path), AccessFs::ReadFile | AccessFs::ReadDir)?;
        }
        for path in needed.iter().copied().flatten() {
            allowed = allowed.and(Path::new(path), listing)?;
        }
        for path in paths {
            allowed = allowed.and_below(path, listing, denied)?;
        }
        Ok(allowed)
    }

    /// Allows something for a directory and all beneath it, except for some paths.
    ///
    /// Landlock can only allow, and what is allowed for a directory is allowed for all beneath it. So the directories
    /// on the way to an exception are not allowed themselves but what they hold is, one by one.
    fn and_below(
        self,
        top: &Path,
        access: BitFlags<AccessFs>,
        except: &[PathBuf],
    ) -> Result<Self, Unavailable> {
        let mut allowed = self;
        let mut ways = vec![top.to_owned()];
        while let Some(way) = ways.pop() {
            if !except.iter().any(|except| except.starts_with(&way)) {
                allowed = allowed.and_exactly(&way, access)?;
                continue;
            }
            if except.contains(&way) {
                continue;
            }
            // Its names are no secret.
            allowed = allowed.and_exactly(&way, access & AccessFs::ReadDir)?;
            // A directory that cannot be listed by us holds nothing that the command could read.
            let Ok(entries) = std::fs::read_dir(&way) else { continue };
            // A link is allowed where it leads to, if that is.
            let entries =
                entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
            ways.extend(entries.map(|entry| entry.path()));
        }
        Ok(allowed)
    }

    /// Allows a path that a command may have replaced by a link; such a link is an error.
    fn and_exactly(self, path: &Path, access: BitFlags<AccessFs>) -> Result<Self, Unavailable> {
        if access.is_empty() {
            return Ok(self);
        }
        match open_exactly(path)? {
            Some(opened) => self.and_opened(path, opened, access),
            None => Ok(self),
        }
    }

    fn and(self, path: &Path, access: BitFlags<AccessFs>) -> Result<Self, Unavailable> {
        if access.is_empty() {
            return Ok(self);
        }
        // Gone, never there or out of reach. Rights over directories, which mean nothing for a file, are left out of its
        // rule by the library.
        let Ok(opened) = PathFd::new(path) else { return Ok(self) };
        self.and_opened(path, opened, access)
    }

    fn and_opened(
        self,
        path: &Path,
        opened: impl AsFd,
        access: BitFlags<AccessFs>,
    ) -> Result<Self, Unavailable> {
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

/// Returns whether Landlock restricts signals to the command's own processes.
pub(super) fn keeps_signals(policy: &SandboxPolicy) -> bool {
    !Scope::from_all(newest(policy)).is_empty() && has_scopes()
}

/// Checks that this kernel can confine commands at all.
pub(crate) fn available() -> Result<(), Unavailable> {
    if !has(NEEDED) {
        return Err(Unavailable::Landlock);
    }
    TargetArch::try_from(std::env::consts::ARCH).map_err(|_| Unavailable::Processor)?;
    // SAFETY: reads a setting of the calling thread.
    #[expect(unsafe_code, reason = "no library in use offers the call")]
    let filter = unsafe { libc::prctl(libc::PR_GET_SECCOMP) };
    if filter < 0 { Err(Unavailable::Calls) } else { Ok(()) }
}

/// Returns whether the kernel has all file rights of a Landlock version.
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
