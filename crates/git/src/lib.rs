//! Runs git for Hangar itself, in repositories that are not trusted.
//!
//! A repository can name programs in many places: hooks, filters, fsmonitors, credential helpers, transports. None of them
//! runs here. Git gets a short allow-list of environment variables and `-c` settings that override the repository's.
//! Filters and hooks have no global switch, so they are listed first, by a call that executes nothing, and disabled one by
//! one. Output and time are limited, and the process group ends with the call.

mod clone;
mod environment;
mod fingerprint;
mod follower;
mod overrides;
mod snapshot;

use parking_lot::Mutex;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hangar_process::{ProcessGroup, command_in_own_session, exit_code};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinSet;

pub use clone::Revision;
pub use environment::Environment;
pub use fingerprint::fingerprint;
pub use follower::{FileContent, FileDifference, TreeFollower};
pub use overrides::{Filters, Unsafe};
pub use snapshot::{Snapshot, TreeChanges};

/// Timeout of `git config --list`.
const CONFIG_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest configuration that is read, in bytes.
const CONFIG_LIMIT: usize = 1 << 20;
/// Bytes of stderr that are kept.
const STDERR_LIMIT: usize = 16 << 10;
/// Grace period for stderr to close after git has exited: a process that git left behind may hold the pipe.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// Starts git with a fixed environment, optionally through a sandbox launcher.
#[derive(Debug, Clone, Default)]
pub struct Git {
    environment: Environment,
    /// A program that starts git in a sandbox, with the arguments before git's own.
    launcher: Option<(PathBuf, Vec<OsString>)>,
}

/// Time and output limits of one call.
#[derive(Debug, Clone, Copy)]
pub struct CallLimits {
    pub time: Duration,
    /// Git is killed when it prints more.
    pub output: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitOutput {
    /// As a shell would give it.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// Whether git was killed because its output exceeded the limit.
    pub cut: bool,
}

impl GitOutput {
    /// Stdout without trailing white space.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git could not be run")]
    Run(#[from] std::io::Error),
    #[error("the network is not used, since COPILOT_OFFLINE is set")]
    Offline,
    #[error("git took longer than {} s", .0.as_secs())]
    Time(Duration),
    #[error("git cannot read the configuration of {}: {complaint}", directory.display())]
    Configuration { directory: PathBuf, complaint: String },
    #[error("git is not run in {}: {why}", directory.display())]
    Unsafe { directory: PathBuf, why: Unsafe },
}

impl Git {
    pub fn new(environment: Environment) -> Self {
        Self { environment, launcher: None }
    }

    /// Starts git through a sandbox launcher.
    pub fn launched_by(self, launcher: Option<(PathBuf, Vec<OsString>)>) -> Self {
        Self { launcher, ..self }
    }

    /// Prepares a directory for git calls. Its configuration is read now, and the overrides hold for all calls; open it
    /// again when the configuration may have changed.
    pub async fn open(&self, directory: &Path, filters: Filters) -> Result<WorkTree<'_>, GitError> {
        let mut tree = WorkTree {
            git: self,
            directory: directory.to_owned(),
            settings: Vec::new(),
            variables: Vec::new(),
            repository: Repository::Enclosing,
        };
        let list = ["config", "--list", "-z", "--show-scope", "--includes"];
        let listing = tree.run(&list, CallLimits { time: CONFIG_TIMEOUT, output: CONFIG_LIMIT }).await?;
        if listing.code != 0 || listing.cut {
            let complaint = if listing.cut { "it is too long" } else { listing.stderr.trim() };
            return Err(GitError::Configuration {
                directory: tree.directory,
                complaint: complaint.to_owned(),
            });
        }
        let listing = String::from_utf8_lossy(&listing.stdout);
        match overrides::overrides(&listing, filters) {
            Ok(settings) => tree.settings = settings,
            Err(why) => return Err(GitError::Unsafe { directory: tree.directory, why }),
        }
        Ok(tree)
    }
}

/// Protocols of a repository that is fetched from and pushed to.
const PROTOCOLS: &str = "file:git:http:https:ssh";
/// Program that reaches other machines. It never asks.
const SSH: &str = "ssh -o BatchMode=yes";

/// Means by which a repository is reached.
#[derive(Clone, Default)]
pub struct RepositoryAccess {
    /// Socket of the user's ssh agent.
    pub agent_socket: Option<OsString>,
    pub login: Option<HttpLogin>,
}

/// Login at a server that speaks HTTP.
#[derive(Clone)]
pub struct HttpLogin {
    /// Scheme and host, such as `https://github.com/`. Requests to others do not carry the login.
    pub origin: String,
    pub user: String,
    pub password: String,
}

impl HttpLogin {
    fn basic(&self) -> String {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(format!("{}:{}", self.user, self.password))
    }
}

impl Git {
    /// Prepares a directory for fetches and pushes of a repository that is ours, such as a mirror: its configuration was
    /// written by us, so its remote is one that a person named. Other repositories never reach the network.
    pub async fn open_remote(
        &self,
        directory: &Path,
        access: &RepositoryAccess,
    ) -> Result<WorkTree<'_>, GitError> {
        let tree = self.open(directory, Filters::User).await?;
        let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let mut variables = vec![variable("GIT_ALLOW_PROTOCOL", PROTOCOLS), variable("GIT_SSH_COMMAND", SSH)];
        let socket = access.agent_socket.clone();
        variables.extend(socket.map(|socket| (OsString::from("SSH_AUTH_SOCK"), socket)));
        if let Some(login) = &access.login {
            // Variables, since arguments can be seen by other users of the machine.
            let header = format!("Authorization: Basic {}", login.basic());
            variables.push(variable("GIT_CONFIG_COUNT", "1"));
            variables.push(variable("GIT_CONFIG_KEY_0", &format!("http.{}.extraHeader", login.origin)));
            variables.push(variable("GIT_CONFIG_VALUE_0", &header));
        }
        Ok(tree.with_variables(variables))
    }
}

/// A directory in which git can be run, with the overrides for its configuration.
#[derive(Debug)]
pub struct WorkTree<'a> {
    git: &'a Git,
    directory: PathBuf,
    settings: Vec<String>,
    /// Variables of git itself, which only this crate sets.
    variables: Vec<(OsString, OsString)>,
    repository: Repository,
}

/// The repository that a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repository {
    /// The one that encloses the directory.
    Enclosing,
    /// None: a clone makes one.
    New,
}

impl WorkTree<'_> {
    fn with_variables(self, variables: Vec<(OsString, OsString)>) -> Self {
        Self { variables, ..self }
    }

    /// The same tree with an index of its own, so that the one of the repository stays as it is.
    pub fn with_index(mut self, index: &Path) -> Self {
        self.variables.push(("GIT_INDEX_FILE".into(), index.into()));
        self
    }

    /// Another directory of the same working tree.
    fn at(self, directory: &Path) -> Self {
        Self { directory: directory.to_owned(), ..self }
    }

    /// Runs git to its end.
    pub async fn run(&self, args: &[&str], limits: CallLimits) -> Result<GitOutput, GitError> {
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
        let root = match self.repository {
            Repository::Enclosing => self.directory.ancestors().find(|dir| dir.join(".git").exists()),
            Repository::New => None,
        };
        if let Some(root) = root {
            command.arg("--work-tree").arg(root);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let variables = self.git.environment.variables_in(root.unwrap_or(&self.directory));
        command.args(args).current_dir(&self.directory).env_clear().envs(variables);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mark = format!("git:{}", uuid::Uuid::new_v4());
        let (mut child, mut group) = ProcessGroup::spawn(&mut command, mark)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let errors = Arc::new(Mutex::new(Vec::new()));
        // Aborted when the call is dropped.
        let mut stderr_reader = JoinSet::new();
        stderr_reader.spawn(read_stderr(stderr, Arc::clone(&errors)));
        let finish = async {
            let (stdout, cut) = bounded(stdout, limits.output).await;
            if cut {
                group.kill();
            }
            let status = child.wait().await?;
            group.leader_ended();
            // A process that git left behind may hold its pipe.
            let _ = tokio::time::timeout(OUTPUT_GRACE, stderr_reader.join_next()).await;
            Ok::<_, std::io::Error>((stdout, cut, status))
        };
        let finished = tokio::time::timeout(limits.time, finish).await;
        let (stdout, cut, status) = finished.map_err(|_| GitError::Time(limits.time))??;
        let stderr = errors.lock();
        Ok(GitOutput {
            code: exit_code(status),
            stdout,
            stderr: String::from_utf8_lossy(&stderr).trim().to_owned(),
            cut,
        })
    }
}

/// Reads up to `limit` bytes; also returns whether there were more.
async fn bounded(from: Option<impl AsyncRead + Unpin>, limit: usize) -> (Vec<u8>, bool) {
    let mut kept = Vec::new();
    let Some(from) = from else { return (kept, false) };
    // Bytes that were read before the pipe broke are the result.
    let _ = from.take(limit as u64 + 1).read_to_end(&mut kept).await;
    let cut = kept.len() > limit;
    kept.truncate(limit);
    (kept, cut)
}

/// Drains stderr so that git never blocks on it; keeps the beginning.
async fn read_stderr(from: Option<impl AsyncRead + Unpin>, kept: Arc<Mutex<Vec<u8>>>) {
    let Some(mut from) = from else { return };
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let mut kept = kept.lock();
        let room = STDERR_LIMIT.saturating_sub(kept.len());
        kept.extend_from_slice(&buffer[..length.min(room)]);
    }
}

#[cfg(test)]
mod tests;
