//! Whether commands are confined, and to what: from the flags, `config.toml` or a client, and from where a session is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use hangar_sandbox::{Gap, LAUNCH, Launched, Places, Policy, Sandbox, SandboxConfig, TRIAL, Unavailable};

use crate::args::RunArgs;
use crate::output::remark;
use crate::settings::Settings;

/// This program, even if its file has been replaced since it was started.
const OURSELVES: &str = "/proc/self/exe";
/// Shared memory is a place for temporary files under another name.
const SHARED_MEMORY: &str = "/dev/shm";
/// Largest file that is read to find a repository's directories.
const POINTER_LIMIT: u64 = 4096;

/// `config.toml`, as far as it is about this.
#[derive(serde::Deserialize)]
struct Preferences {
    sandbox: Option<SandboxConfig>,
}

/// The life of this program as a launcher of commands, if that is what it was started for.
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

/// What was typed and configured.
pub(crate) fn wanted(settings: &Settings, args: &RunArgs) -> Result<SandboxConfig> {
    let text = settings.config_text()?;
    // Most files do not mention it, and every run would parse them for nothing.
    let configured =
        if text.contains("sandbox") { settings.parse_config::<Preferences>(&text)?.sandbox } else { None };
    let mut config = configured.unwrap_or_default();
    config.enabled = (config.enabled || args.sandbox) && !args.no_sandbox;
    if args.sandbox_network {
        config.user_policy.network.allow_outbound = Some(true);
    }
    Ok(config)
}

/// What a sandbox on this machine would lack.
pub(crate) fn gaps() -> Result<Vec<Gap>, Unavailable> {
    Sandbox::new(OURSELVES.into(), &Policy::default())?.trial()
}

/// Where a session is, as far as its sandbox has to know.
pub(crate) struct Session<'a> {
    pub(crate) cwd: &'a Path,
    /// All directories that tools may touch.
    pub(crate) roots: &'a [PathBuf],
    pub(crate) temp_dir: bool,
    /// Files that commands must leave alone although they may write beside them.
    pub(crate) protected: Vec<PathBuf>,
}

/// A sandbox that was tried, and the policy that it keeps.
pub(crate) struct Ready {
    pub(crate) sandbox: Sandbox,
    pub(crate) policy: Policy,
}

/// Makes the sandbox and tries it: it is better to say now than at the first command that none can be had.
pub(crate) fn ready(settings: &Settings, config: &SandboxConfig, session: Session<'_>) -> Result<Ready> {
    let Session { cwd, roots, temp_dir, protected } = session;
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    // The working directory is added by the settings, or not.
    let mut writable: Vec<PathBuf> = roots.iter().filter(|root| **root != cwd).cloned().collect();
    writable.extend(repository(&cwd));
    if temp_dir {
        writable.push(SHARED_MEMORY.into());
    }
    let places = Places {
        cwd,
        writable,
        protected,
        home: settings.var("HOME").map(PathBuf::from),
        private: vec![settings.home.clone()],
    };
    let policy = config.policy(places)?;
    let sandbox = Sandbox::new(OURSELVES.into(), &policy)?;
    let gaps =
        sandbox.trial().context("commands were to run in a sandbox (--no-sandbox runs them without)")?;
    for gap in gaps {
        remark(&format!("note: {}", gap.sentence()));
    }
    Ok(Ready { sandbox, policy })
}

/// Directories of the Git repository that lie outside of the working directory, without which nothing can be committed.
///
/// A `.git` file can be written by whoever works here, so where it points is only believed if something over there
/// points back.
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
        Some(vec![own, shared])
    };
    linked().unwrap_or_default()
}

fn pointer(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(POINTER_LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}
