//! Runs programs that may write in a few directories only and that have no network unless they are given it.
//!
//! A sandbox is put on by a launcher: this very program, started again with [`LAUNCH`], confines itself and then becomes
//! the command. Nothing has to happen between fork and exec, and a command that is killed before it is confined has not run
//! yet. On Linux there are three layers, in [`linux`]: a mount namespace where
//! everything else is read-only, Landlock, and a seccomp filter. The last two are needed; without them nothing runs.
//!
//! What is promised and what is not stands in `docs/sandbox.md`.

mod config;
mod launcher;
#[cfg(target_os = "linux")]
mod linux;
mod policy;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

pub use config::{Filesystem, NetworkRules, Places, SandboxConfig, Unenforceable, UserPolicy};
pub use launcher::{LAUNCH, LaunchError, Launched, TRIAL, launch};
pub use policy::{Feature, Network, Policy};

/// Something that a sandbox on this machine cannot keep commands from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gap {
    /// No mount namespace: the mode, owner, times and attributes of a file can be changed wherever its owner could.
    Metadata,
    /// A kernel before 6.12: processes outside can be sent signals.
    Signals,
}

impl Gap {
    /// For people, as one sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Metadata => {
                "the sandbox cannot keep commands from changing modes, owners and times of your files, because this \
                 machine does not let it make a mount namespace"
            }
            Self::Signals => {
                "the sandbox cannot keep commands from ending your other processes, because this kernel is older than \
                 Linux 6.12"
            }
        }
    }
}

/// Why there is no sandbox. Whoever asked for one does without the command, not without the sandbox.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    #[error("the sandbox needs Linux")]
    System,
    #[error("the sandbox needs Landlock of Linux 6.2 or newer, which this kernel lacks or has switched off")]
    Landlock,
    #[error("the sandbox has no list of system calls for this processor")]
    Processor,
    #[error(
        "the sandbox needs a filter of system calls (seccomp), which this kernel lacks or has switched off"
    )]
    Calls,
    #[error("the sandbox cannot allow {}", path.display())]
    Path { path: PathBuf, source: std::io::Error },
    #[error("the sandbox cannot be put on: {0}")]
    Refused(String),
    #[error("the sandbox cannot name {}, which is not UTF-8", .0.display())]
    Name(PathBuf),
}

/// A sandbox that commands can be started in.
#[derive(Debug, Clone)]
pub struct Sandbox {
    launcher: PathBuf,
    /// As the launcher is given it.
    policy: String,
    network: Network,
}

/// A program, in a sandbox if there is one.
pub fn command(sandbox: Option<&Sandbox>, program: &str) -> Command {
    let Some(sandbox) = sandbox else { return Command::new(program) };
    let (launcher, leading) = sandbox.wrap(program.as_ref());
    let mut command = Command::new(launcher);
    command.args(leading);
    command
}

impl Sandbox {
    /// `launcher` is a program that calls [`launch`] when its first argument is [`LAUNCH`] or [`TRIAL`].
    pub fn new(launcher: PathBuf, policy: &Policy) -> Result<Self, Unavailable> {
        if let Some(path) = policy.paths().find(|path| path.to_str().is_none()) {
            return Err(Unavailable::Name(path.to_owned()));
        }
        let network = policy.network;
        let policy =
            serde_json::to_string(policy).map_err(|error| Unavailable::Refused(error.to_string()))?;
        Ok(Self { launcher, policy, network })
    }

    pub fn network(&self) -> Network {
        self.network
    }

    /// The program to start instead of `program`, and the arguments that go before its own.
    pub fn wrap(&self, program: &OsStr) -> (PathBuf, Vec<OsString>) {
        let leading = vec![LAUNCH.into(), self.policy.clone().into(), program.to_owned()];
        (self.launcher.clone(), leading)
    }

    /// Puts the sandbox on a process that does nothing, to learn whether commands will run and what will be missing.
    pub fn trial(&self) -> Result<Vec<Gap>, Unavailable> {
        let refused = |says: String| Unavailable::Refused(says);
        let output = Command::new(&self.launcher)
            .arg(TRIAL)
            .arg(&self.policy)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| refused(error.to_string()))?;
        if !output.status.success() {
            return Err(refused(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| refused(error.to_string()))
    }
}
