//! Git worktrees for parts of a job: made from what is checked out, and taken away again unless something was changed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hangar_process::{Group, command_in_own_session};

use crate::record::{CrashError, RunId, Worktree};

/// How long one command of git may take; checking out a large tree is slow.
const PATIENCE: Duration = Duration::from_secs(300);

/// Makes a worktree on a branch of its own. What an earlier attempt left at its place was never used and goes.
pub(crate) async fn make(
    scratch: &Path,
    run: &RunId,
    place: &str,
    number: u64,
    from: &Path,
) -> Result<Worktree, CrashError> {
    let name = format!("{}-{number}", plain(place));
    let root = scratch.join("worktrees").join(&name);
    let branch = format!("hangar/{run}/{name}");
    let base = git(from, &["rev-parse", "--verify", "HEAD"]).await?;
    let prefix = git(from, &["rev-parse", "--show-prefix"]).await?;
    let path = root.to_string_lossy().into_owned();
    if root.exists() {
        let _ = git(from, &["worktree", "remove", "--force", &path]).await;
        let _ = std::fs::remove_dir_all(&root);
        let _ = git(from, &["worktree", "prune"]).await;
    }
    // `-B`: an earlier attempt may have left the branch, with nothing on it.
    git(from, &["worktree", "add", "--quiet", "-B", &branch, &path, &base]).await?;
    let directory = if prefix.is_empty() { root.clone() } else { root.join(&prefix) };
    Ok(Worktree { root, directory, branch, base })
}

/// Takes a worktree away if nothing was changed in it. Says whether it is still there.
pub(crate) async fn leave(worktree: &Worktree) -> bool {
    let root = &worktree.root;
    if !root.exists() {
        return false;
    }
    let unchanged = async {
        let clean = git(root, &["status", "--porcelain"]).await?.is_empty();
        let head = git(root, &["rev-parse", "HEAD"]).await?;
        Ok::<bool, CrashError>(clean && head == worktree.base)
    };
    // Whatever cannot be told is kept.
    if !unchanged.await.unwrap_or(false) {
        return true;
    }
    let Ok(main) = git(root, &["rev-parse", "--path-format=absolute", "--git-common-dir"]).await else {
        return true;
    };
    let main = PathBuf::from(main);
    let path = root.to_string_lossy().into_owned();
    if git(&main, &["worktree", "remove", &path]).await.is_err() {
        return true;
    }
    let _ = git(&main, &["branch", "-D", &worktree.branch]).await;
    false
}

fn plain(place: &str) -> String {
    let words: Vec<&str> =
        place.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "work".to_owned() } else { words.join("-") }
}

async fn git(directory: &Path, args: &[&str]) -> Result<String, CrashError> {
    let failed = |why: String| CrashError::new("worktree_failed", format!("`git {}` {why}", args.join(" ")));
    let mark = format!("job:{}", uuid::Uuid::new_v4());
    let mut command = command_in_own_session("git");
    command.args(args).current_dir(directory).env("GIT_TERMINAL_PROMPT", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let (child, mut group) =
        Group::spawn(&mut command, mark).map_err(|error| failed(format!("could not be run: {error}")))?;
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output())
        .await
        .map_err(|_| failed(format!("was not done after {} s", PATIENCE.as_secs())))?
        .map_err(|error| failed(format!("failed: {error}")))?;
    group.leader_ended();
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("failed: {}", why.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("inner")).unwrap();
        std::fs::write(place.path().join("inner/a.txt"), "a\n").unwrap();
        let script = "git init -q . && git add . && \
                      git -c user.name=t -c user.email=t@example.com commit -q -m one";
        let status =
            std::process::Command::new("sh").arg("-c").arg(script).current_dir(place.path()).status();
        assert!(status.unwrap().success());
        place
    }

    fn run() -> RunId {
        RunId("r1".to_owned())
    }

    fn branches(repository: &Path) -> String {
        let mut command = std::process::Command::new("git");
        let output = command.args(["branch", "--list", "hangar/*"]).current_dir(repository).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("+ ").to_owned()
    }

    #[tokio::test]
    async fn a_worktree_without_changes_goes_with_its_branch() {
        let (repository, scratch) = (repository(), tempfile::tempdir().unwrap());
        let inner = repository.path().join("inner");
        let made = make(scratch.path(), &run(), ".works[0].body", 2, &inner).await.unwrap();
        assert!(made.directory.ends_with("worktrees/works-0-body-2/inner"));
        assert!(made.directory.join("a.txt").is_file());
        assert_eq!(branches(repository.path()), "hangar/r1/works-0-body-2");
        assert!(!leave(&made).await);
        assert!(!made.root.exists());
        assert_eq!(branches(repository.path()), "");
    }

    #[tokio::test]
    async fn a_worktree_with_a_new_file_is_kept() {
        let (repository, scratch) = (repository(), tempfile::tempdir().unwrap());
        let made = make(scratch.path(), &run(), "", 0, repository.path()).await.unwrap();
        std::fs::write(made.directory.join("new.txt"), "").unwrap();
        assert!(leave(&made).await);
        assert!(made.root.exists());
    }

    #[tokio::test]
    async fn a_worktree_with_a_commit_is_kept() {
        let (repository, scratch) = (repository(), tempfile::tempdir().unwrap());
        let made = make(scratch.path(), &run(), "", 0, repository.path()).await.unwrap();
        let args = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ];
        git(&made.directory, &args).await.unwrap();
        assert!(leave(&made).await);
    }

    #[tokio::test]
    async fn what_an_interrupted_attempt_left_is_replaced() {
        let (repository, scratch) = (repository(), tempfile::tempdir().unwrap());
        let first = make(scratch.path(), &run(), "", 0, repository.path()).await.unwrap();
        std::fs::write(first.directory.join("half.txt"), "").unwrap();
        let second = make(scratch.path(), &run(), "", 0, repository.path()).await.unwrap();
        assert_eq!(first, second);
        assert!(!second.directory.join("half.txt").exists());
    }

    #[tokio::test]
    async fn a_directory_without_a_repository_is_an_error_that_says_so() {
        let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let error = make(scratch.path(), &run(), "", 0, place.path()).await.unwrap_err();
        assert!(error.message.contains("not a git repository"), "{error}");
    }
}
