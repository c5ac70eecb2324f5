//! Processes that the view starts: subcommands of the program for slash commands, and the user's command for the status line.

use std::process::Stdio;
use std::time::Duration;

use futures_util::FutureExt;
use hangar_terminal::effect::CallId;
use hangar_terminal::input::Input;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::app::App;

/// Timeout of a subcommand: an installation downloads a repository.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Bytes of its output that are shown.
const MAX_OUTPUT: u64 = 256 * 1024;
/// Timeout of the command for the status line.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

impl App {
    /// Runs a subcommand in the session's directory and replies with its output.
    pub(super) fn run_subcommand(&self, call: CallId, arguments: Vec<String>) {
        let (inbox, directory, home) = (self.inbox(), self.directory.clone(), self.settings.home.clone());
        tokio::spawn(FutureExt::boxed(async move {
            let run = async {
                let program = std::env::current_exe()?;
                let mut child = Command::new(program)
                    .args(&arguments)
                    .current_dir(directory)
                    .env("HANGAR_HOME", home)
                    .env("NO_COLOR", "1")
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .kill_on_drop(true)
                    .spawn()?;
                let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
                let (stdout, stderr, status) = tokio::join!(text(stdout), text(stderr), child.wait());
                Ok::<Value, std::io::Error>(
                    json!({ "output": stdout? + &stderr?, "success": status?.success() }),
                )
            };
            let result = match tokio::time::timeout(TIMEOUT, run).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(error)) => Err(format!("`{}` cannot be run: {error}", arguments.join(" "))),
                Err(_) => Err(format!(
                    "`{}` took longer than {} s and was stopped",
                    arguments.join(" "),
                    TIMEOUT.as_secs()
                )),
            };
            // A view that has ended needs no result.
            let _ = inbox.send(Input::Reply { call, result }).await;
        }));
    }

    /// Runs the user's command for the status line and takes the first line that it prints.
    pub(super) fn run_status_command(&self, command: String, input: Value) {
        let (inbox, directory) = (self.inbox(), self.directory.clone());
        tokio::spawn(FutureExt::boxed(async move {
            let run = async {
                let mut child = Command::new("/bin/sh")
                    .args(["-c", &command])
                    .current_dir(directory)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .kill_on_drop(true)
                    .spawn()?;
                if let Some(mut stdin) = child.stdin.take() {
                    // A command that does not read its input is fine.
                    let _ = stdin.write_all(input.to_string().as_bytes()).await;
                }
                let output = text(child.stdout.take()).await?;
                child.wait().await?;
                Ok::<String, std::io::Error>(output)
            };
            let output = tokio::time::timeout(STATUS_TIMEOUT, run).await;
            let output = output.map_err(std::io::Error::other).flatten();
            if let Err(error) = &output {
                tracing::warn!(%error, "the command for the status line failed");
            }
            let line = output.ok().and_then(|output| output.lines().next().map(str::to_owned));
            let _ = inbox.send(Input::StatusText(line)).await;
        }));
    }
}

/// The output of a process, as far as it is shown. The rest is read too, so that the process can end.
async fn text(pipe: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(mut pipe) = pipe else { return Ok(String::new()) };
    let mut bytes = Vec::new();
    (&mut pipe).take(MAX_OUTPUT).read_to_end(&mut bytes).await?;
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
