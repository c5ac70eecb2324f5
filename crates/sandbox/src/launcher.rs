//! The launcher: this program, started again, confines itself and execs the command.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::{Gap, SandboxPolicy, Unavailable};

/// First argument of a launcher; the policy, the program and its arguments follow.
pub const LAUNCH: &str = "--sandbox-launch";
/// First argument of a launcher that is only to say whether it could; the policy follows.
pub const TRIAL: &str = "--sandbox-trial";

/// Exit codes of shells for a command that cannot be executed, and for one that is not found.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("the launcher needs a policy and a program")]
    Usage,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("cannot run {}", program.display())]
    Program { program: PathBuf, source: io::Error },
}

impl LaunchError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => NOT_FOUND,
            Self::Usage | Self::Unavailable(_) | Self::Program { .. } => CANNOT_RUN,
        }
    }
}

/// Result of a launcher that did not exec.
pub enum Launched {
    /// A trial, with the gaps it found.
    Trial(Vec<Gap>),
}

/// Runs the launcher; `rest` are the arguments after the first. Call it before any thread is started: a sandbox applies to
/// the calling thread.
pub fn launch(first: &str, mut rest: impl Iterator<Item = OsString>) -> Result<Launched, LaunchError> {
    let policy = rest.next().and_then(|policy| policy.into_string().ok()).ok_or(LaunchError::Usage)?;
    let policy: SandboxPolicy = serde_json::from_str(&policy).map_err(|_| LaunchError::Usage)?;
    if first == TRIAL {
        return Ok(Launched::Trial(confine(&policy)?));
    }
    let program = rest.next().ok_or(LaunchError::Usage)?;
    confine(&policy)?;
    match become_program(program, rest)? {}
}

#[cfg(target_os = "linux")]
fn confine(policy: &SandboxPolicy) -> Result<Vec<Gap>, Unavailable> {
    crate::linux::confine(policy)
}

#[cfg(not(target_os = "linux"))]
fn confine(_policy: &SandboxPolicy) -> Result<Vec<Gap>, Unavailable> {
    Err(Unavailable::System)
}

#[cfg(unix)]
fn become_program(
    program: OsString,
    arguments: impl Iterator<Item = OsString>,
) -> Result<Infallible, LaunchError> {
    use std::os::unix::process::CommandExt;
    let source = std::process::Command::new(&program).args(arguments).exec();
    Err(LaunchError::Program { program: program.into(), source })
}

#[cfg(not(unix))]
fn become_program(
    _program: OsString,
    _arguments: impl Iterator<Item = OsString>,
) -> Result<Infallible, LaunchError> {
    Err(Unavailable::System.into())
}
