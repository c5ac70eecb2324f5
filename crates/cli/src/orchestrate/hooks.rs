//! Hooks: scripts of a workflow around the work on an issue.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hangar_process::{ProcessGroup, command_in_own_session, exit_code};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::review::{self, ReviewStatus};
use crate::settings::Settings;

/// Size of the tail of a hook's output that is kept.
const KEPT_OUTPUT: usize = 8 << 10;
/// Time that output is still read if a background process of the hook holds it open.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);
/// Variables of this process that hooks see, beside those with the prefix.
const ALLOWED: &[&str] =
    &["PATH", "HOME", "SHELL", "TMPDIR", "USER", "LOGNAME", "TERM", "LANG", "LC_ALL", "SSH_AUTH_SOCK"];
const PREFIX: &str = "SORTIE_";

/// Facts about an issue that its hooks see.
#[derive(Debug, Clone)]
pub(super) struct HookIssue {
    pub(super) id: String,
    pub(super) identifier: String,
    pub(super) attempt: u32,
    pub(super) review: ReviewStatus,
}

/// Runs a script in a workspace. The result is the end of its output; the error is a sentence.
pub(super) async fn run(
    name: &str,
    script: &str,
    workspace: &Path,
    issue: &HookIssue,
    variables: &[(OsString, OsString)],
    timeout: Duration,
) -> Result<String, String> {
    let broken = |error: std::io::Error| format!("the hook `{name}` could not be run: {error}");
    let mark = format!("hook:{}", uuid::Uuid::new_v4());
    let mut command = command_in_own_session("sh");
    command.arg("-c").arg(format!("exec 2>&1\n{script}")).current_dir(workspace);
    command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    command.env("SORTIE_ISSUE_ID", &issue.id).env("SORTIE_ISSUE_IDENTIFIER", &issue.identifier);
    command.env("SORTIE_WORKSPACE", workspace).env("SORTIE_ATTEMPT", issue.attempt.to_string());
    command.env("SORTIE_SSH_HOST", "").env("SORTIE_SELF_REVIEW_STATUS", issue.review.as_str());
    if issue.review != ReviewStatus::Disabled {
        command.env("SORTIE_SELF_REVIEW_SUMMARY_PATH", review::summary(workspace));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let (mut child, mut group) = ProcessGroup::spawn(&mut command, mark).map_err(broken)?;
    let mut tail = Tail::default();
    let stdout = child.stdout.take();
    let ended = {
        let read = async {
            if let Some(stdout) = stdout {
                tail.read(stdout).await;
            }
        };
        tokio::pin!(read);
        let wait = async {
            tokio::select! {
                biased;
                () = &mut read => child.wait().await,
                status = child.wait() => {
                    let _ = tokio::time::timeout(OUTPUT_GRACE, &mut read).await;
                    status
                }
            }
        };
        tokio::time::timeout(timeout, wait).await
    };
    match ended {
        Ok(Ok(status)) => {
            group.leader_ended();
            match exit_code(status) {
                0 => Ok(tail.text()),
                code => Err(format!("the hook `{name}` exited with {code}: {}", tail.text())),
            }
        }
        Ok(Err(error)) => Err(broken(error)),
        Err(_) => {
            group.kill();
            Err(format!("the hook `{name}` was not done after {} s: {}", timeout.as_secs_f64(), tail.text()))
        }
    }
}

/// Variables of hooks.
pub(super) fn variables(settings: &Settings) -> Vec<(OsString, OsString)> {
    let seen = |name: &str| ALLOWED.contains(&name) || name.starts_with(PREFIX);
    let seen = settings.variables().filter(|(name, _)| seen(name));
    seen.map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
}

/// The last bytes of a stream.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    async fn read(&mut self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            self.0.extend_from_slice(&buffer[..length]);
            let surplus = self.0.len().saturating_sub(KEPT_OUTPUT);
            self.0.drain(..surplus);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().to_owned()
    }
}
