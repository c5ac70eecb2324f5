//! Sandboxes of a session, from the flags, `config.toml` or a client, and from the directories of the session.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use hangar_sandbox::{
    Gap, KernelFeature, LAUNCH, Launched, Places, Sandbox, SandboxConfig, SandboxPolicy, TRIAL, Unavailable,
};

use hangar_tools::shell::Confinement;

use crate::args::RunArgs;
use crate::compose::{SessionPaths, real};
use crate::output::remark;
use crate::settings::Settings;

/// This program, even if its file was replaced after the start.
const OURSELVES: &str = "/proc/self/exe";
/// Directory of shared memory, which holds temporary files too.
const SHARED_MEMORY: &str = "/dev/shm";
/// Largest file that is read to find a repository's directories.
const POINTER_LIMIT: u64 = 4096;

/// The part of `config.toml` about sandboxes.
#[derive(serde::Deserialize)]
struct SandboxPreferences {
    sandbox: Option<SandboxConfig>,
}

/// Runs the launcher of a confined command, if the process was started as one.
pub(crate) fn launcher(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let first = arguments.next()?;
    let first = first.to_str().filter(|first| [LAUNCH, TRIAL].contains(first))?;
    Some(match hangar_sandbox::launch(first, arguments) {
        Ok(Launched::Trial(gaps)) => {
            let gaps = serde_json::to_string(&gaps).unwrap_or_default();
            match crate::commands::print_line(&gaps) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        Err(error) => {
            let code = ExitCode::from(error.exit_code());
            remark(&format!("hangar: {:#}", anyhow::Error::from(error)));
            code
        }
    })
}

/// Settings of the flags and of `config.toml`.
pub(crate) fn wanted(settings: &Settings, args: &RunArgs) -> Result<SandboxConfig> {
    let text = settings.config_text()?;
    // Most files do not mention it, and every run would parse them for nothing.
    let configured = if text.contains("sandbox") {
        settings.parse_config::<SandboxPreferences>(&text)?.sandbox
    } else {
        None
    };
    let mut config = configured.unwrap_or_default();
    config.enabled = (config.enabled || args.confinement.sandbox) && !args.confinement.no_sandbox;
    if args.confinement.sandbox_network {
        config.user_policy.network.allow_outbound = Some(true);
    }
    Ok(config)
}

/// Layers that a sandbox on this machine lacks.
pub(crate) fn gaps(settings: &Settings) -> Result<Vec<Gap>, Unavailable> {
    let policy = SandboxPolicy { without: without(settings), ..SandboxPolicy::default() };
    Sandbox::new(OURSELVES.into(), &policy)?.trial()
}

/// A sandbox that was tried, and the policy that it keeps.
pub(crate) struct Ready {
    pub(crate) sandbox: Sandbox,
    pub(crate) policy: SandboxPolicy,
}

/// A sandbox for programs of a session, tried.
pub(crate) fn ready(settings: &Settings, config: &SandboxConfig, session: &SessionPaths) -> Result<Ready> {
    let cwd = real(&session.cwd);
    let own = session.own_dir();
    // The working directory is added by the settings, or not.
    let mut writable: Vec<PathBuf> = session.directories();
    writable.retain(|root| *root != cwd && Some(root) != own.as_ref());
    writable.extend(repository(&cwd));
    if session.temp_dir {
        writable.push(SHARED_MEMORY.into());
    }
    if session.is_local {
        writable.push(session.scratch());
    }
    let places = Places {
        cwd,
        writable,
        protected: own.into_iter().collect(),
        home: settings.var("HOME").map(PathBuf::from),
        private: vec![settings.home.clone()],
    };
    let policy = config.policy(places)?;
    let policy = SandboxPolicy { without: without(settings), ..policy };
    let sandbox = Sandbox::new(OURSELVES.into(), &policy)?;
    let gaps =
        sandbox.trial().context("the sandbox cannot be used (--no-sandbox runs commands without it)")?;
    for gap in gaps {
        remark(&format!("note: {}", gap.sentence()));
    }
    Ok(Ready { sandbox, policy })
}

/// Sandbox of the MCP servers that a project configures, if the settings request one.
pub(crate) fn of_project_servers(
    settings: &Settings,
    config: &SandboxConfig,
    session: &SessionPaths,
) -> Result<Option<Sandbox>> {
    let config = config.for_project_servers();
    config.map(|config| Ok(ready(settings, &config, session)?.sandbox)).transpose()
}

/// Layers that tests disable.
fn without(settings: &Settings) -> Vec<KernelFeature> {
    let listed = settings.var("HANGAR_SANDBOX_WITHOUT").unwrap_or_default();
    listed.split(',').filter_map(KernelFeature::named).collect()
}

/// Directories below the home that hold installed programs and nothing private.
const INSTALLED: [&str; 30] = [
    ".asdf",
    ".bun/bin",
    ".bun/install",
    ".cargo/bin",
    ".deno/bin",
    ".dotnet",
    ".fnm",
    ".ghcup",
    ".goenv",
    ".jenv",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".nodenv",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "anaconda3",
    "go/bin",
    "miniconda3",
];

/// Settings of Git and packages that were fetched, below the home, which commands under rules may read.
const SETTINGS_AND_CACHES: [&str; 17] = [
    ".cache/go-build",
    ".cache/pip",
    ".cache/pnpm",
    ".cache/uv",
    ".cache/yarn",
    ".cargo/.package-cache",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/git",
    ".cargo/registry",
    ".config/git/attributes",
    ".config/git/config",
    ".config/git/ignore",
    ".gitconfig",
    ".m2/repository",
    ".npm",
    "go/pkg",
];

/// Variables that name where programs are installed.
const INSTALLED_AT: [&str; 8] = [
    "CARGO_HOME",
    "CONDA_PREFIX",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "VIRTUAL_ENV",
];

/// Sandbox of commands with limits; `None` where this kernel cannot confine them.
pub(crate) fn limited(
    settings: &Settings,
    config: &SandboxConfig,
    session: &SessionPaths,
) -> Option<Confinement> {
    let without = without(settings);
    let needed = [KernelFeature::Landlock, KernelFeature::Seccomp];
    if hangar_sandbox::available().is_err() || needed.iter().any(|feature| without.contains(feature)) {
        return None;
    }
    let cwd = real(&session.cwd);
    let home = settings.var("HOME").map(|home| real(Path::new(&home)));
    let below_home = |paths: &[&str]| -> Vec<PathBuf> {
        home.iter().flat_map(|home| paths.iter().map(move |path| home.join(path))).collect()
    };
    let path = settings.var("PATH").unwrap_or_default();
    let roots = session.directories();
    let named = std::env::split_paths(&path)
        .chain(INSTALLED_AT.iter().filter_map(|name| settings.var(name).map(PathBuf::from)));
    // A directory that holds the home or the project would open both. What lies in a directory that commands may write to may be a link
    // to anywhere by now, and can be read as it is.
    let is_apart = |dir: &PathBuf| !roots.iter().any(|root| dir.starts_with(root));
    let mut programs: Vec<PathBuf> = below_home(&INSTALLED).into_iter().filter(is_apart).collect();
    programs.extend(named.filter(|dir| dir.is_absolute() && is_apart(dir)).map(|dir| real(&dir)).filter(
        |dir| {
            is_apart(dir) && !cwd.starts_with(dir) && !home.as_ref().is_some_and(|home| home.starts_with(dir))
        },
    ));
    let mut private: Vec<PathBuf> = home.iter().flat_map(|home| hangar_sandbox::credentials(home)).collect();
    private.push(real(&settings.home));
    let cargo = settings.var("CARGO_HOME").map(PathBuf::from);
    private.extend(
        cargo.iter().flat_map(|home| ["credentials", "credentials.toml"].map(|file| home.join(file))),
    );
    let allowed = &config.user_policy.filesystem;
    let expanded = |paths: &[PathBuf]| -> Vec<PathBuf> {
        paths.iter().map(|path| hangar_sandbox::expand(path, &cwd, home.as_deref())).collect()
    };
    private.extend(expanded(&allowed.denied_paths));
    let network = !config.enabled || config.user_policy.network.allow_outbound == Some(true);
    Some(Confinement {
        launcher: OURSELVES.into(),
        scratch: session.scratch(),
        programs,
        private,
        settings_and_caches: below_home(&SETTINGS_AND_CACHES).into_iter().filter(is_apart).collect(),
        git_dirs: git_dirs(&session.directories(), &cwd),
        session_dir: session.own_dir(),
        readable: expanded(&allowed.readonly_paths),
        writable: {
            let mut writable = expanded(&allowed.readwrite_paths);
            // Memory that processes share by name is made of temporary files.
            writable.extend(session.temp_dir.then(|| real(Path::new(SHARED_MEMORY))));
            writable
        },
        network,
        without,
    })
}

/// Git directories of the repositories that commands may touch.
fn git_dirs(roots: &[PathBuf], cwd: &Path) -> Vec<PathBuf> {
    let within = roots.iter().map(|root| root.join(".git")).filter(|dir| dir.is_dir() && !dir.is_symlink());
    within.chain(repository(cwd)).collect()
}

/// Directories of the Git repository that lie outside of the working directory, without which nothing can be committed.
///
/// Commands may have written the `.git` file, so its target is believed only if it points back.
fn repository(cwd: &Path) -> Vec<PathBuf> {
    let Some(root) = cwd.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok()) else {
        return Vec::new();
    };
    let dot_git = root.join(".git");
    let Ok(metadata) = dot_git.symlink_metadata() else { return Vec::new() };
    if metadata.is_dir() {
        return if root == cwd { Vec::new() } else { vec![dot_git] };
    }
    let linked = || {
        let own = root.join(pointer(&dot_git)?.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
        let back = own.join(pointer(&own.join("gitdir"))?.trim()).canonicalize().ok()?;
        if metadata.is_symlink() || back != dot_git.canonicalize().ok()? {
            return None;
        }
        let shared = own.join(pointer(&own.join("commondir"))?.trim()).canonicalize().ok()?;
        // Both ends come from the author of the first one; directories that Git creates are inside of others, and hold no project.
        let is_worktree = own.parent() == Some(&shared.join("worktrees"));
        let is_git_dir =
            shared.join("HEAD").is_file() && shared.join("objects").is_dir() && shared.join("refs").is_dir();
        (is_worktree && is_git_dir && !cwd.starts_with(&shared)).then(|| vec![own, shared])
    };
    linked().unwrap_or_default()
}

fn pointer(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(POINTER_LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}
