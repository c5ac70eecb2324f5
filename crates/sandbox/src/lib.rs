//! Runs programs that may write in a few directories only and that have no network unless they are given it.
//!
//! A sandbox is put on by a launcher: this very program, started again with [`LAUNCH`], confines itself and then becomes
//! the command. A command that is killed before it is confined has not run yet. Policies that need no namespaces do
//! without the launcher ([`ChildSandbox`]). On Linux there are three layers, in [`linux`]: a mount namespace where
//! everything else is read-only, Landlock, and a seccomp filter. The last two are needed; without them nothing runs.
//!
//! `docs/sandbox.md` says what is promised and what is not.

mod child;
mod config;
mod launcher;
#[cfg(target_os = "linux")]
mod linux;
mod policy;
pub mod system;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

pub use child::ChildSandbox;
pub use config::{
    Filesystem, NetworkRules, Places, SandboxConfig, Unenforceable, UserPolicy, credentials, expand,
};
pub use launcher::{LAUNCH, LaunchError, Launched, TRIAL, launch};
pub use policy::{KernelFeature, Metadata, Network, Readable, SandboxPolicy, deepest};

/// A restriction that this machine cannot enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gap {
    /// No mount namespace: the mode, owner, times and attributes of a file can be changed wherever its owner could.
    Metadata,
    /// A kernel before 6.12, and no process namespace: processes outside can be sent signals.
    Signals,
    /// No process namespace: a process that a command leaves behind is found by its marks alone.
    Processes,
}

impl Gap {
    /// For people, as one sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Metadata => {
                "commands that may write somewhere can change modes, owners and times of your files elsewhere, and the \
                 settings of Git here, because this machine does not let the sandbox make a mount namespace"
            }
            Self::Signals => {
                "the sandbox cannot keep commands from ending your other processes, because this kernel is older than \
                 Linux 6.12"
            }
            Self::Processes => {
                "commands that may write somewhere can see your other processes, because this machine does not let the \
                 sandbox make a process namespace"
            }
        }
    }
}

/// Reason why there is no sandbox. The command is then refused, not run without it.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    #[error("the sandbox needs Linux")]
    System,
    #[error("the sandbox needs Landlock of Linux 6.2 or newer, which this kernel lacks or has disabled")]
    Landlock,
    #[error("the sandbox has no list of system calls for this processor")]
    Processor,
    #[error("the sandbox needs a filter of system calls (seccomp), which this kernel lacks or has disabled")]
    Calls,
    #[error("the sandbox cannot allow {}", path.display())]
    Path { path: PathBuf, source: std::io::Error },
    #[error("{} has become a link since the session began, so no command is started with it", .0.display())]
    Changed(PathBuf),
    #[error("the sandbox cannot be applied: {0}")]
    Refused(String),
    #[error("the sandbox cannot name {}, which is not UTF-8", .0.display())]
    Name(PathBuf),
}

/// Checks that this machine can confine commands: two system calls, no process.
pub fn available() -> Result<(), Unavailable> {
    #[cfg(target_os = "linux")]
    return linux::available();
    #[cfg(not(target_os = "linux"))]
    Err(Unavailable::System)
}

/// A sandbox that commands can be started in.
#[derive(Debug, Clone)]
pub struct Sandbox {
    launcher: PathBuf,
    policy: Arc<SandboxPolicy>,
    /// The policy as the launcher is given it.
    text: String,
    /// The filters of system calls for [`Self::for_child`], compiled when they are first needed; `None` if the policy
    /// needs the launcher.
    #[cfg(target_os = "linux")]
    filters: Arc<OnceLock<Option<Arc<linux::SyscallFilters>>>>,
}

impl Sandbox {
    /// `launcher` is a program that calls [`launch`] when its first argument is [`LAUNCH`] or [`TRIAL`].
    pub fn new(launcher: PathBuf, policy: &SandboxPolicy) -> Result<Self, Unavailable> {
        if let Some(path) = policy.paths().find(|path| path.to_str().is_none()) {
            return Err(Unavailable::Name(path.to_owned()));
        }
        let text = serde_json::to_string(policy).map_err(|error| Unavailable::Refused(error.to_string()))?;
        Ok(Self {
            launcher,
            policy: Arc::new(policy.clone()),
            text,
            #[cfg(target_os = "linux")]
            filters: Arc::default(),
        })
    }

    pub fn network(&self) -> Network {
        self.policy.network
    }

    /// The sandbox for a child that is spawned at once; `None` where it takes the launcher, see [`Self::wrap`].
    #[cfg(target_os = "linux")]
    pub fn for_child(&self) -> Result<Option<ChildSandbox>, Unavailable> {
        let filters = match self.filters.get() {
            Some(filters) => filters,
            None => {
                let compiled = linux::filters_of_child(&self.policy)?;
                self.filters.get_or_init(|| compiled.map(Arc::new))
            }
        };
        let Some(filters) = filters else { return Ok(None) };
        let rules = linux::rules_of_child(&self.policy)?;
        Ok(Some(ChildSandbox { rules, filters: Arc::clone(filters) }))
    }

    #[cfg(not(target_os = "linux"))]
    pub fn for_child(&self) -> Result<Option<ChildSandbox>, Unavailable> {
        Ok(None)
    }

    /// The program to start instead of `program`, and the arguments that go before its own.
    pub fn wrap(&self, program: &OsStr) -> (PathBuf, Vec<OsString>) {
        let leading = vec![LAUNCH.into(), self.text.clone().into(), program.to_owned()];
        (self.launcher.clone(), leading)
    }

    /// Applies the sandbox to a process that does nothing, to learn whether commands will run and which gaps there are.
    pub fn trial(&self) -> Result<Vec<Gap>, Unavailable> {
        let refused = |says: String| Unavailable::Refused(says);
        let output = Command::new(&self.launcher)
            .arg(TRIAL)
            .arg(&self.text)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| refused(error.to_string()))?;
        if !output.status.success() {
            return Err(refused(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| refused(error.to_string()))
    }
}
