//! The process of one extension, with the tail of its stderr.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hangar_process::{ProcessGroup, command_in_own_session, unique_mark};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::host::LaunchPlan;

/// Grace period of a program after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// Size of the stderr that is kept.
const TAIL: usize = 16 << 10;

/// A started program. Dropping it ends the program.
pub(super) struct ExtensionProcess {
    child: Child,
    group: ProcessGroup,
}

/// Tail of a program's stderr.
#[derive(Debug, Clone, Default)]
pub(super) struct StderrTail(Arc<Mutex<Vec<u8>>>);

impl ExtensionProcess {
    pub(super) fn spawn(
        plan: &LaunchPlan,
        directory: &Path,
        stderr: &StderrTail,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let mut command = match &plan.sandbox {
            None => command_in_own_session(&plan.program),
            Some(sandbox) => {
                let (launcher, leading) = sandbox.wrap(&plan.program);
                let mut command = command_in_own_session(launcher);
                command.args(leading);
                command
            }
        };
        command
            .args(&plan.args)
            .current_dir(directory)
            .env_clear()
            .envs(plan.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (mut child, group) = ProcessGroup::spawn(&mut command, unique_mark("extension"))?;
        let no_pipe = || io::Error::other("the process has no pipes");
        let stdin = child.stdin.take().ok_or_else(no_pipe)?;
        let stdout = child.stdout.take().ok_or_else(no_pipe)?;
        if let Some(said) = child.stderr.take() {
            tokio::spawn(FutureExt::boxed(stderr.clone().listen(said)));
        }
        Ok((Self { child, group }, stdin, stdout))
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the program ends by itself, and describes how it did.
    pub(super) async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => {
                self.group.leader_ended();
                let code = hangar_process::exit_code(status);
                format!("its process ended with exit code {code}")
            }
            Err(error) => format!("its process cannot be waited for: {error}"),
        }
    }

    /// Ends the program: SIGTERM first, then SIGKILL.
    pub(super) async fn stop(mut self) {
        self.group.terminate();
        if tokio::time::timeout(GRACE, self.child.wait()).await.is_ok() {
            self.group.leader_ended();
        }
        self.group.kill();
    }
}

impl StderrTail {
    async fn listen(self, mut stderr: impl AsyncRead + Unpin) {
        let mut buffer = [0; 4096];
        while let Ok(count) = stderr.read(&mut buffer).await {
            if count == 0 {
                return;
            }
            let mut tail = self.0.lock();
            tail.extend_from_slice(&buffer[..count]);
            let excess = tail.len().saturating_sub(TAIL);
            tail.drain(..excess);
        }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).trim().to_owned()
    }

    /// Its last line, for a message.
    pub(super) fn last_line(&self) -> Option<String> {
        let text = self.text();
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(line.chars().take(300).collect())
    }

    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}
