//! Runs one hook command: payload in, one document out, no process left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hangar_process::{ProcessGroup, command_in_own_session};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::HookEnvironment;

/// The most that a hook may print.
const OUTPUT_LIMIT: usize = 10 << 20;
/// Maximum size of the stderr that is kept.
const COMPLAINTS_LIMIT: usize = 64 << 10;
/// The longest line that may be a word on progress.
const PROGRESS_LIMIT: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct CommandHook {
    pub(super) script: String,
    pub(super) cwd: Option<PathBuf>,
    pub(super) env: BTreeMap<String, String>,
}

/// Exit of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommandExit {
    Exited { code: Option<i32>, stdout: String, stderr: String },
    TimedOut,
    TooLoud,
    NotStarted(String),
}

impl CommandHook {
    /// Runs a command. Dropping the future kills the command and its children.
    pub(super) async fn run(
        &self,
        id: &str,
        payload: &str,
        cwd: &Path,
        timeout: Duration,
        environment: &HookEnvironment,
        progress: impl Fn(String),
    ) -> CommandExit {
        let cwd = match &self.cwd {
            Some(dir) => cwd.join(dir),
            None => cwd.to_path_buf(),
        };
        let mark = format!("hook-{id}");
        let mut command = command_in_own_session(&environment.shell);
        command
            .arg("-c")
            .arg(&self.script)
            .current_dir(cwd)
            .env_clear()
            .envs(&environment.env)
            .envs(&self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let (mut child, mut group) = match ProcessGroup::spawn(&mut command, mark) {
            Ok(started) => started,
            Err(error) => return CommandExit::NotStarted(error.to_string()),
        };
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A command need not listen.
                let _ = stdin.write_all(payload.as_bytes()).await;
                let _ = stdin.shutdown().await;
            }
        };
        let exit = async {
            let status = child.wait().await;
            // Processes that it left running would hold its output open.
            group.leader_ended();
            drop(group);
            status.ok().and_then(|status| status.code())
        };
        let out = async {
            match stdout {
                Some(stdout) => document(stdout, progress).await,
                None => Some(Vec::new()),
            }
        };
        let err = async {
            match stderr {
                Some(stderr) => complaints(stderr).await,
                None => Vec::new(),
            }
        };
        let all = async { tokio::join!(feed, exit, out, err) };
        match tokio::time::timeout(timeout, all).await {
            Err(_) => CommandExit::TimedOut,
            Ok(((), _, None, _)) => CommandExit::TooLoud,
            Ok(((), code, Some(stdout), stderr)) => CommandExit::Exited {
                code,
                stdout: String::from_utf8_lossy(&stdout).into_owned(),
                stderr: String::from_utf8_lossy(&stderr).into_owned(),
            },
        }
    }
}

/// All output but the lines about progress; `None` if it is too much.
async fn document(mut from: impl AsyncRead + Unpin, progress: impl Fn(String)) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    let mut total = 0;
    // Where the line begins that is not complete yet, and how far it was looked through for its end.
    let (mut line, mut seen) = (0, 0);
    let mut chunk = vec![0; 16 << 10];
    loop {
        let count = from.read(&mut chunk).await.unwrap_or(0);
        if count == 0 {
            break;
        }
        total += count;
        if total > OUTPUT_LIMIT {
            return None;
        }
        kept.extend_from_slice(&chunk[..count]);
        while let Some(length) = kept[seen..].iter().position(|byte| *byte == b'\n') {
            let end = seen + length + 1;
            match progress_of(&kept[line..end]) {
                Some(message) => {
                    progress(message);
                    kept.drain(line..end);
                }
                None => line = end,
            }
            seen = line;
        }
        seen = kept.len();
    }
    if let Some(message) = progress_of(&kept[line..]) {
        progress(message);
        kept.truncate(line);
    }
    Some(kept)
}

fn progress_of(line: &[u8]) -> Option<String> {
    if line.len() > PROGRESS_LIMIT || !line.starts_with(b"{") {
        return None;
    }
    let said: serde_json::Value = serde_json::from_slice(line).ok()?;
    (said["type"] == "progress").then(|| said["message"].as_str().unwrap_or_default().to_owned())
}

async fn complaints(mut from: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = vec![0; 4 << 10];
    loop {
        let count = from.read(&mut chunk).await.unwrap_or(0);
        if count == 0 {
            return kept;
        }
        let room = COMPLAINTS_LIMIT.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&chunk[..room]);
    }
}
