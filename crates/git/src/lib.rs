//! Git, run for ourselves, in repositories that nobody trusts.
//!
//! A repository names programs in many places: hooks, filters, monitors, helpers, transports. None of them runs here. Git
//! sees a short list of variables and settings that go before the repository's; the filters and hooks that its
//! configuration names, which have no switch of their own, are looked up first, by a call that runs nothing, and switched
//! off one by one. Output and time have bounds, and what git started ends with it.

mod environment;
mod overrides;
mod snapshot;

use parking_lot::Mutex;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hangar_process::{Group, command_in_own_session, exit_code};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinSet;

pub use environment::Environment;
pub use overrides::{Filters, Unsafe};
pub use snapshot::{Changes, Snapshot};

/// How long git may take to tell its configuration.
const CONFIG_PATIENCE: Duration = Duration::from_secs(10);
/// How long a configuration may be.
const CONFIG_LIMIT: usize = 1 << 20;
/// How much of git's complaints is kept.
const COMPLAINT_LIMIT: usize = 16 << 10;
/// How long the end of what git prints is waited for once it has ended itself.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// How git is started.
#[derive(Debug, Clone, Default)]
pub struct Git {
    environment: Environment,
    /// A program that starts git in a sandbox, with the arguments before git's own.
    launcher: Option<(PathBuf, Vec<OsString>)>,
}

/// What a call may use up.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub time: Duration,
    /// Git is ended when it prints more.
    pub output: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// As a shell would give it.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// Whether git was ended because it printed more than it may.
    pub cut: bool,
}

impl Answer {
    /// What was printed, without the end of its last line.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git could not be run")]
    Run(#[from] std::io::Error),
    #[error("git was not done after {} s", .0.as_secs())]
    Time(Duration),
    #[error("git cannot tell the configuration of {}: {complaint}", directory.display())]
    Configuration { directory: PathBuf, complaint: String },
    #[error("git is not run in {}: {why}", directory.display())]
    Unsafe { directory: PathBuf, why: Unsafe },
}

impl Git {
    pub fn new(environment: Environment) -> Self {
        Self { environment, launcher: None }
    }

    /// The same, started by a launcher.
    pub fn launched_by(self, launcher: Option<(PathBuf, Vec<OsString>)>) -> Self {
        Self { launcher, ..self }
    }

    /// Gets ready to run git in a directory. What its configuration names is looked up now and holds for all calls: a
    /// place whose configuration may have changed meanwhile is entered anew.
    pub async fn enter(&self, directory: &Path, filters: Filters) -> Result<Place<'_>, GitError> {
        let mut place =
            Place { git: self, directory: directory.to_owned(), settings: Vec::new(), variables: Vec::new() };
        let list = ["config", "--list", "-z", "--show-scope", "--includes"];
        let listing = place.run(&list, Bounds { time: CONFIG_PATIENCE, output: CONFIG_LIMIT }).await?;
        if listing.code != 0 || listing.cut {
            let complaint = if listing.cut { "it is too long" } else { listing.stderr.trim() };
            return Err(GitError::Configuration {
                directory: place.directory,
                complaint: complaint.to_owned(),
            });
        }
        let listing = String::from_utf8_lossy(&listing.stdout);
        match overrides::overrides(&listing, filters) {
            Ok(settings) => place.settings = settings,
            Err(why) => return Err(GitError::Unsafe { directory: place.directory, why }),
        }
        Ok(place)
    }
}

/// A directory that git can be run in.
#[derive(Debug)]
pub struct Place<'a> {
    git: &'a Git,
    directory: PathBuf,
    settings: Vec<String>,
    /// Variables of git itself, which only this crate sets.
    variables: Vec<(OsString, OsString)>,
}

impl Place<'_> {
    fn with_variables(self, variables: Vec<(OsString, OsString)>) -> Self {
        Self { variables, ..self }
    }

    /// Another directory of the same working tree.
    fn at(self, directory: &Path) -> Self {
        Self { directory: directory.to_owned(), ..self }
    }

    /// Runs git and hears it out.
    pub async fn run(&self, args: &[&str], bounds: Bounds) -> Result<Answer, GitError> {
        let mut command = match &self.git.launcher {
            None => command_in_own_session("git"),
            Some((launcher, leading)) => {
                let mut command = command_in_own_session(launcher);
                command.args(leading);
                command
            }
        };
        command.args(["--no-pager", "--no-optional-locks"]);
        // The repository may claim files elsewhere for its own.
        if let Some(root) = self.directory.ancestors().find(|dir| dir.join(".git").exists()) {
            command.arg("--work-tree").arg(root);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command.args(args).current_dir(&self.directory).env_clear().envs(self.git.environment.variables());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mark = format!("git:{}", uuid::Uuid::new_v4());
        let (mut child, mut group) = Group::spawn(&mut command, mark)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let complaints = Arc::new(Mutex::new(Vec::new()));
        // Dropped with its owner, like everything that waits here.
        let mut listener = JoinSet::new();
        listener.spawn(complain(stderr, Arc::clone(&complaints)));
        let hear = async {
            let (stdout, cut) = bounded(stdout, bounds.output).await;
            if cut {
                group.kill();
            }
            let status = child.wait().await?;
            group.leader_ended();
            // A process that git left behind may hold its pipe.
            let _ = tokio::time::timeout(OUTPUT_GRACE, listener.join_next()).await;
            Ok::<_, std::io::Error>((stdout, cut, status))
        };
        let heard = tokio::time::timeout(bounds.time, hear).await;
        let (stdout, cut, status) = heard.map_err(|_| GitError::Time(bounds.time))??;
        let stderr = complaints.lock();
        Ok(Answer {
            code: exit_code(status),
            stdout,
            stderr: String::from_utf8_lossy(&stderr).trim().to_owned(),
            cut,
        })
    }
}

/// All that is read up to a limit, and whether there was more.
async fn bounded(from: Option<impl AsyncRead + Unpin>, limit: usize) -> (Vec<u8>, bool) {
    let mut kept = Vec::new();
    let Some(from) = from else { return (kept, false) };
    // What was read before a pipe broke is all there is.
    let _ = from.take(limit as u64 + 1).read_to_end(&mut kept).await;
    let cut = kept.len() > limit;
    kept.truncate(limit);
    (kept, cut)
}

/// Reads to the end, so that git never waits, and keeps the beginning.
async fn complain(from: Option<impl AsyncRead + Unpin>, kept: Arc<Mutex<Vec<u8>>>) {
    let Some(mut from) = from else { return };
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let mut kept = kept.lock();
        let room = COMPLAINT_LIMIT.saturating_sub(kept.len());
        kept.extend_from_slice(&buffer[..length.min(room)]);
    }
}

#[cfg(test)]
mod tests;
