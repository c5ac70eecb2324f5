//! Limits of a command on this machine: a sandbox, an environment, and the paths out of reach.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_agent::permissions::{CommandLimits, GitWrites, Writes};
use hangar_sandbox::{
    KernelFeature, Metadata, Network, Readable, Sandbox, SandboxPolicy, Unavailable, deepest, system,
};

/// Sandboxes of different limits that are kept. A session has few.
const KEPT: usize = 16;

/// Sandbox options of commands with limits. Paths are absolute, links resolved.
#[derive(Debug, Clone, Default)]
pub struct Confinement {
    /// The program that puts a sandbox on.
    pub launcher: PathBuf,
    /// A directory of commands' own, made when the first needs it. Nothing that Hangar itself writes is in it.
    pub scratch: PathBuf,
    /// Installed programs outside of the system's directories, which may be read and run.
    pub programs: Vec<PathBuf>,
    /// Paths that must not be read wherever they are: credentials, Hangar's home.
    pub private: Vec<PathBuf>,
    /// Paths that commands allowed by a rule may read besides: the user's Git settings, package caches.
    pub settings_and_caches: Vec<PathBuf>,
    /// Directories that Git keeps of the repository of the working directory.
    pub git_dirs: Vec<PathBuf>,
    /// The session's own directory: Hangar writes there, commands do not.
    pub session_dir: Option<PathBuf>,
    /// Paths that the user's sandbox settings allow besides.
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// Whether the network is open to any command at all.
    pub network: bool,
    /// Kernel features to do without, for tests.
    pub without: Vec<KernelFeature>,
}

/// A sandbox with its limits.
#[derive(Debug)]
pub(super) struct LimitedSandbox {
    pub(super) sandbox: Sandbox,
    policy: SandboxPolicy,
}

/// Cache of a session's sandboxes by their limits.
#[derive(Debug, Default)]
pub(super) struct SandboxCache {
    made: Mutex<HashMap<CommandLimits, Arc<LimitedSandbox>>>,
}

impl SandboxCache {
    /// The sandbox for limits. The scratch directory is there afterwards.
    pub(super) fn of(
        &self,
        place: &Confinement,
        limits: &CommandLimits,
    ) -> Result<Arc<LimitedSandbox>, Unavailable> {
        let mut made = self.made.lock();
        make_scratch(&place.scratch)?;
        make_files(&limits.writes);
        if let Some(confined) = made.get(limits) {
            return Ok(Arc::clone(confined));
        }
        let policy = place.policy(limits);
        let sandbox = Sandbox::new(place.launcher.clone(), &policy)?;
        let confined = Arc::new(LimitedSandbox { sandbox, policy });
        if made.len() == KEPT {
            made.clear();
        }
        made.insert(limits.clone(), Arc::clone(&confined));
        Ok(confined)
    }
}

/// Makes the files that a command may write and that are not there: a rule is for a file, and not for its directory.
fn make_files(writes: &Writes) {
    let Writes::Within(paths) = writes else { return };
    for path in paths.iter().filter(|path| path.symlink_metadata().is_err()) {
        // Where it cannot be made, the command says so.
        let _ = std::fs::File::create_new(path);
    }
}

/// Makes the directories of a repository that it usually has: what is not there cannot be protected.
fn make_protectable(git_dir: &Path) {
    // A worktree's own directory has none of them.
    if git_dir.join("objects").is_dir() {
        for name in ["hooks", "info"] {
            // Where it cannot be made by us, it cannot be made by a command either.
            let _ = std::fs::create_dir(git_dir.join(name));
        }
    }
}

fn make_scratch(path: &Path) -> Result<(), Unavailable> {
    use std::os::unix::fs::DirBuilderExt;
    let failed = |source| Unavailable::Path { path: path.to_owned(), source };
    match std::fs::DirBuilder::new().mode(0o700).recursive(true).create(path) {
        Ok(()) => {}
        Err(error) => return Err(failed(error)),
    }
    let kind = path.symlink_metadata().map_err(failed)?;
    if !kind.is_dir() {
        return Err(failed(std::io::Error::other("not a directory")));
    }
    Ok(())
}

impl Confinement {
    fn policy(&self, limits: &CommandLimits) -> SandboxPolicy {
        let CommandLimits { directories, writes, git, network } = limits;
        let mut writable = match writes {
            Writes::Nothing => Vec::new(),
            Writes::Within(directories) => directories.clone(),
            Writes::Anywhere => vec![PathBuf::from("/")],
        };
        if let Some(session_dir) = &self.session_dir {
            writable.retain(|dir| !dir.starts_with(session_dir));
        }
        let reads_only = writable.is_empty();
        if !reads_only {
            writable.extend(self.writable.iter().cloned());
        }
        let protected = if reads_only { Vec::new() } else { self.protected(*git, &mut writable) };
        writable.push(self.scratch.clone());
        let readable = match directories {
            None => Readable::Everything,
            Some(directories) => {
                let settings = if reads_only { &[][..] } else { &self.settings_and_caches };
                let lists = [directories, &self.programs, &self.git_dirs, &self.readable, settings];
                Readable::Only(outermost(lists.into_iter().flatten()))
            }
        };
        // Unreachable paths need not be denied.
        let is_reached = |path: &&PathBuf| match &readable {
            Readable::Everything => true,
            Readable::Only(paths) => paths.iter().chain(&writable).any(|dir| path.starts_with(dir)),
        };
        let is_allowed = |path: &&PathBuf| self.readable.iter().any(|dir| path.starts_with(dir));
        let denied =
            self.private.iter().filter(|path| is_reached(path) && !is_allowed(path)).cloned().collect();
        SandboxPolicy {
            readable,
            writable,
            protected,
            denied,
            network: if *network && self.network { Network::Open } else { Network::Closed },
            metadata: if reads_only { Metadata::Frozen } else { Metadata::Mounts },
            absent: self.absent(*git),
            without: self.without.clone(),
        }
    }

    /// Files that would give a repository other settings, where they are not there.
    fn absent(&self, git: GitWrites) -> Vec<PathBuf> {
        if git == GitWrites::Nothing {
            return Vec::new();
        }
        let names = ["commondir", "config.worktree"];
        let all = self.git_dirs.iter().flat_map(|dir| names.map(|name| dir.join(name)));
        all.filter(|path| path.symlink_metadata().is_err()).collect()
    }

    /// Paths of the repository that stay read-only; writable ones outside of the directories are added to them.
    fn protected(&self, git: GitWrites, writable: &mut Vec<PathBuf>) -> Vec<PathBuf> {
        if git != GitWrites::Nothing {
            self.git_dirs.iter().for_each(|dir| make_protectable(dir));
        }
        let settings = |dir: &PathBuf| {
            ["config", "config.worktree", "hooks", "info", "modules"].map(|name| dir.join(name))
        };
        let mut protected: Vec<PathBuf> = self.session_dir.iter().cloned().collect();
        match git {
            GitWrites::Nothing => protected.extend(self.git_dirs.iter().cloned()),
            GitWrites::Content => {
                writable.extend(self.git_dirs.iter().cloned());
                protected.extend(self.git_dirs.iter().flat_map(settings));
            }
            GitWrites::Settings => {
                writable.extend(self.git_dirs.iter().cloned());
                let names = ["hooks", "info", "modules"];
                protected.extend(self.git_dirs.iter().flat_map(|dir| names.map(|name| dir.join(name))));
            }
        }
        protected
    }
}

impl LimitedSandbox {
    pub(super) fn may_read(&self, path: &Path) -> bool {
        let readable = match &self.policy.readable {
            Readable::Everything => Some(0),
            Readable::Only(paths) => deepest(paths, path).or(is_of_the_system(path).then_some(1)),
        };
        // A path that is allowed within a denied one counts, and the other way round.
        readable.max(deepest(&self.policy.writable, path)) > deepest(&self.policy.denied, path)
    }

    pub(super) fn may_write(&self, path: &Path) -> bool {
        deepest(&self.policy.writable, path) > deepest(&self.policy.protected, path)
    }

    pub(super) fn reads_only(&self) -> bool {
        self.policy.metadata == Metadata::Frozen
    }

    pub(super) fn has_network(&self) -> bool {
        self.policy.network == Network::Open
    }
}

/// The paths that exist, links resolved, without those that lie in others or in the system's: each costs every command
/// something.
fn outermost<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let of_system = |path: &PathBuf| system::PROGRAMS.iter().any(|dir| path.starts_with(dir));
    let mut paths: Vec<PathBuf> =
        paths.filter_map(|path| path.canonicalize().ok()).filter(|path| !of_system(path)).collect();
    paths.sort();
    paths.dedup_by(|path, outer| path.starts_with(outer));
    paths
}

fn is_of_the_system(path: &Path) -> bool {
    [system::PROGRAMS, system::SETTINGS, system::MACHINE]
        .iter()
        .any(|paths| paths.iter().any(|dir| path.starts_with(dir)))
        || path.starts_with("/proc")
        || path.starts_with("/dev")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(git: GitWrites, directory: &Path) -> CommandLimits {
        let directories = vec![directory.to_owned()];
        CommandLimits {
            directories: Some(directories.clone()),
            writes: Writes::Within(directories),
            git,
            network: false,
        }
    }

    #[test]
    fn what_a_repository_lacks_of_hooks_is_made_so_that_it_can_be_protected() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().canonicalize().unwrap();
        let git_dir = work.join(".git");
        std::fs::create_dir_all(git_dir.join("objects")).unwrap();
        let place = Confinement { git_dirs: vec![git_dir.clone()], ..Confinement::default() };
        let policy = place.policy(&limits(GitWrites::Content, &work));
        for name in ["hooks", "info", "config"] {
            assert!(policy.protected.contains(&git_dir.join(name)), "{name}");
        }
        assert!(git_dir.join("hooks").is_dir() && git_dir.join("info").is_dir());
        assert!(policy.absent.contains(&git_dir.join("commondir")));
        let policy = place.policy(&limits(GitWrites::Nothing, &work));
        assert!(policy.protected.contains(&git_dir) && policy.absent.is_empty());
    }

    #[test]
    fn the_folder_of_the_session_is_no_place_to_write() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().canonicalize().unwrap();
        let session_dir = work.join("session");
        let scratch = session_dir.join("scratch");
        let place = Confinement {
            session_dir: Some(session_dir.clone()),
            scratch: scratch.clone(),
            ..Confinement::default()
        };
        let all = CommandLimits {
            writes: Writes::Within(vec![work.clone(), session_dir.clone()]),
            ..limits(GitWrites::Nothing, &work)
        };
        let policy = place.policy(&all);
        assert!(!policy.writable.contains(&session_dir) && policy.writable.contains(&scratch));
        assert!(policy.protected.contains(&session_dir));
    }
}
