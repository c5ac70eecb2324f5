//! The criteria that need no model: commands that must succeed and files that must exist.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use hangar_process::{ScriptFailure, run_script};

use crate::entry::CommandCheck;
use crate::record::CheckFailure;

const DEFAULT_LIMIT: Duration = Duration::from_secs(600);

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
    let limit = check.timeout_seconds.map_or(DEFAULT_LIMIT, |seconds| Duration::from_secs(seconds.into()));
    let variables = environment.iter().map(|(name, value)| (name, value));
    run_script(&check.run, directory, variables, limit).await.map(drop).map_err(|failure| match failure {
        ScriptFailure::Broken(error) => (format!("could not be run: {error}"), String::new()),
        ScriptFailure::Exited { code, output } => (format!("exited with {code}"), output),
        ScriptFailure::TimedOut { output } => (format!("was not done after {} s", limit.as_secs()), output),
    })
}

#[cfg(test)]
mod tests {
    use hangar_process::KEPT_OUTPUT;

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
