//! The criteria that need no model: commands that must succeed and files that must exist.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hangar_process::{ProcessGroup, command_in_own_session, exit_code};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::entry::CommandCheck;
use crate::record::CheckFailure;

const DEFAULT_PATIENCE: Duration = Duration::from_secs(600);
/// Size of the tail of a command's output that is kept.
const KEPT_OUTPUT: usize = 8 << 10;
/// Time that output is still read if a background process of the command holds it open.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

pub(crate) async fn check(
    commands: &[CommandCheck],
    files: &[String],
    directory: &Path,
    environment: &[(OsString, OsString)],
) -> Vec<CheckFailure> {
    let mut failures = Vec::new();
    for path in files {
        if !directory.join(path).exists() {
            failures.push(CheckFailure::File { path: path.clone() });
        }
    }
    // One after the other: they share the working directory, and often a build in it.
    for command in commands {
        if let Err((how, output)) = run(command, directory, environment).await {
            failures.push(CheckFailure::Command { run: command.run.clone(), how, output });
        }
    }
    failures
}

async fn run(
    check: &CommandCheck,
    directory: &Path,
    environment: &[(OsString, OsString)],
) -> Result<(), (String, String)> {
    let broken = |error: std::io::Error| (format!("could not be run: {error}"), String::new());
    let mark = format!("job:{}", uuid::Uuid::new_v4());
    let mut command = command_in_own_session("sh");
    command.arg("-c").arg(format!("exec 2>&1\n{}", check.run)).current_dir(directory);
    command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let (mut child, mut group) = ProcessGroup::spawn(&mut command, mark).map_err(broken)?;
    let mut tail = Tail::default();
    let stdout = child.stdout.take();
    let patience =
        check.timeout_seconds.map_or(DEFAULT_PATIENCE, |seconds| Duration::from_secs(seconds.into()));
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
        tokio::time::timeout(patience, wait).await
    };
    match ended {
        Ok(Ok(status)) => {
            group.leader_ended();
            match exit_code(status) {
                0 => Ok(()),
                code => Err((format!("exited with {code}"), tail.text())),
            }
        }
        Ok(Err(error)) => Err(broken(error)),
        Err(_) => {
            group.kill();
            Err((format!("was not done after {} s", patience.as_secs()), tail.text()))
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn command(run: &str, timeout_seconds: Option<u32>) -> CommandCheck {
        CommandCheck { run: run.to_owned(), timeout_seconds }
    }

    async fn failures(commands: &[CommandCheck], files: &[&str]) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("here.txt"), "").unwrap();
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let found = check(commands, &files, place.path(), &environment).await;
        found
            .iter()
            .map(|failure| match failure {
                CheckFailure::Command { output, .. } => format!("{failure}: {output}"),
                CheckFailure::File { .. } => failure.to_string(),
            })
            .collect()
    }

    #[tokio::test]
    async fn what_is_as_it_should_be_is_not_mentioned() {
        assert!(failures(&[command("test -e here.txt", None)], &["here.txt"]).await.is_empty());
    }

    #[tokio::test]
    async fn a_failure_says_what_was_written() {
        let found = failures(&[command("echo out; echo err >&2; exit 3", None)], &["gone.txt"]).await;
        assert_eq!(
            found,
            ["gone.txt does not exist", "`echo out; echo err >&2; exit 3` exited with 3: out\nerr"]
        );
    }

    #[tokio::test]
    async fn a_command_that_does_not_end_is_ended() {
        let found = failures(&[command("echo begun; sleep 1000", Some(1))], &[]).await;
        assert_eq!(found, ["`echo begun; sleep 1000` was not done after 1 s: begun"]);
    }

    #[tokio::test]
    async fn only_the_end_of_much_output_is_kept() {
        let found = failures(&[command("seq 100000; false", None)], &[]).await;
        assert!(found[0].ends_with("\n100000") && found[0].len() < KEPT_OUTPUT + 100);
    }
}
