//! Starts the programs of servers, and ends them with everything they started.

use futures_util::FutureExt;
use parking_lot::Mutex;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hangar_process::{ProcessGroup, command_in_own_session, unique_mark};
use hangar_sandbox::Sandbox;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::config::{ConfigSource, Program};

/// Grace period of a program after SIGTERM.
const GRACE: Duration = Duration::from_millis(300);
/// Time that closing waits for programs after SIGKILL.
const CLOSING_LIMIT: Duration = Duration::from_secs(5);
/// Size of the stderr that is kept for the error message.
const COMPLAINT: usize = 2 * 1024;

/// Environment and limits of every program.
pub(crate) struct Launcher {
    /// The environment; nothing else is inherited.
    env: Vec<(OsString, OsString)>,
    sandboxes: Sandboxes,
    /// Base of relative directories, and the default working directory of programs.
    cwd: PathBuf,
    /// Mark that distinguishes the processes of this host from those of others.
    mark: String,
    next: AtomicU64,
    keepers: TaskTracker,
    closing: CancellationToken,
}

/// Sandboxes of the servers' programs, if any.
#[derive(Debug, Clone, Default)]
pub struct Sandboxes {
    pub all: Option<Sandbox>,
    /// For servers that a project configures, instead of the other.
    pub of_projects: Option<Sandbox>,
}

impl Sandboxes {
    fn of(&self, source: ConfigSource) -> Option<&Sandbox> {
        match source {
            ConfigSource::Workspace => self.of_projects.as_ref().or(self.all.as_ref()),
            ConfigSource::User | ConfigSource::Plugin | ConfigSource::Builtin => self.all.as_ref(),
        }
    }
}

/// A running program. Dropping it ends the program.
pub(crate) struct RunningServer {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) complaint: StderrTail,
    pub(crate) life: DropGuard,
}

/// Tail of a program's stderr.
#[derive(Debug, Clone, Default)]
pub(crate) struct StderrTail(Arc<Mutex<Vec<u8>>>);

impl Launcher {
    pub(crate) fn new(
        env: Vec<(OsString, OsString)>,
        secrets: &[String],
        cwd: PathBuf,
        sandboxes: Sandboxes,
    ) -> Self {
        let is_secret = |name: &OsString| secrets.iter().any(|secret| name == secret.as_str());
        Self {
            env: env.into_iter().filter(|(name, _)| !is_secret(name)).collect(),
            sandboxes,
            cwd,
            mark: unique_mark("mcp"),
            next: AtomicU64::new(1),
            keepers: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let found = self.env.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    }

    /// Starts a program. This is the only place where one is started.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        program: &Program,
        source: ConfigSource,
    ) -> io::Result<RunningServer> {
        if self.closing.is_cancelled() {
            return Err(io::Error::other("the session is closing"));
        }
        let mark = format!("{}{}.", self.mark, self.next.fetch_add(1, Ordering::Relaxed));
        let cwd = program.cwd.as_ref().map_or_else(|| self.cwd.clone(), |cwd| self.cwd.join(cwd));
        let mut command = match self.sandboxes.of(source) {
            None => command_in_own_session(&program.command),
            Some(sandbox) => {
                let (launcher, leading) = sandbox.wrap(program.command.as_ref());
                let mut command = command_in_own_session(launcher);
                command.args(leading);
                command
            }
        };
        command
            .args(&program.args)
            .current_dir(cwd)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .envs(&program.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (mut child, group) = ProcessGroup::spawn(&mut command, mark)?;
        let no_pipe = || io::Error::other("the process has no pipes");
        let stdin = child.stdin.take().ok_or_else(no_pipe)?;
        let stdout = child.stdout.take().ok_or_else(no_pipe)?;
        let complaint = StderrTail::default();
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(FutureExt::boxed(complaint.clone().listen(stderr)));
        }
        let life = self.closing.child_token();
        self.keepers.spawn(FutureExt::boxed(keep(child, group, life.clone())));
        Ok(RunningServer { stdin, stdout, complaint, life: life.drop_guard() })
    }

    /// Ends every program and waits until it is gone. None can be started afterwards.
    pub(crate) async fn shutdown(&self) {
        self.closing.cancel();
        self.keepers.close();
        // A process that the kernel cannot end must not keep us from ending.
        let _ = tokio::time::timeout(CLOSING_LIMIT, self.keepers.wait()).await;
    }
}

/// Waits for the end of a program, or brings it about.
async fn keep(mut child: Child, mut group: ProcessGroup, life: CancellationToken) {
    let mut waited = tokio::select! {
        _ = child.wait() => true,
        () = life.cancelled() => false,
    };
    if !waited {
        group.terminate();
        waited = tokio::time::timeout(GRACE, child.wait()).await.is_ok();
    }
    if waited {
        group.leader_ended();
    }
    group.kill();
    if !waited {
        let _ = child.wait().await;
    }
}

impl StderrTail {
    /// Reads on to the end, so that a chatty program is not stuck on a full pipe.
    async fn listen(self, mut stderr: impl AsyncRead + Unpin) {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
            self.keep(&buffer[..length]);
        }
    }

    /// Adds a line of ours.
    pub(crate) fn add(&self, line: &str) {
        self.keep(format!("\n{line}\n").as_bytes());
    }

    fn keep(&self, piece: &[u8]) {
        let mut kept = self.0.lock();
        kept.extend_from_slice(piece);
        let surplus = kept.len().saturating_sub(COMPLAINT);
        kept.drain(..surplus);
    }

    /// The last line, if there is one.
    pub(crate) fn last_line(&self) -> Option<String> {
        let kept = self.0.lock();
        let text = String::from_utf8_lossy(&kept);
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }
}
