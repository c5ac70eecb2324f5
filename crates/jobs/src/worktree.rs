//! Git worktrees for parts of a job: made from what is checked out, and taken away again unless something was changed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_git::{CallLimits, Filters, Git};

use crate::record::{CrashError, RunId, Worktree};

/// Timeout of one git command; checking out a large tree is slow.
const PATIENCE: Duration = Duration::from_secs(300);
/// Maximum output of one git command. A longer one means that something changed.
const MAX_OUTPUT: usize = 1 << 20;

/// Makes a worktree on a branch of its own. What an earlier attempt left at its place was never used and goes.
pub(crate) async fn make(
    git: &Git,
    scratch: &Path,
    run: &RunId,
    place: &str,
    number: u64,
    from: &Path,
) -> Result<Worktree, CrashError> {
    let name = format!("{}-{number}", plain(place));
    let root = scratch.join("worktrees").join(&name);
    let branch = format!("hangar/{run}/{name}");
    let main = Checkout { git, directory: from };
    let base = main.run(&["rev-parse", "--verify", "HEAD"]).await?;
    let prefix = main.run(&["rev-parse", "--show-prefix"]).await?;
    let path = root.to_string_lossy().into_owned();
    if root.exists() {
        let _ = main.run(&["worktree", "remove", "--force", &path]).await;
        let _ = std::fs::remove_dir_all(&root);
        let _ = main.run(&["worktree", "prune"]).await;
    }
    // `-B`: an earlier attempt may have left the branch, with nothing on it. Nothing is checked out yet: a configuration may
    // hold for the new worktree or its branch alone, and is looked at there.
    main.run(&["worktree", "add", "--quiet", "--no-checkout", "-B", &branch, &path, &base]).await?;
    Checkout { git, directory: &root }.run(&["reset", "--quiet", "--hard", &base]).await?;
    let directory = if prefix.is_empty() { root.clone() } else { root.join(&prefix) };
    Ok(Worktree { root, directory, branch, base })
}

/// Takes a worktree away if nothing was changed in it. Says whether it is still there.
pub(crate) async fn leave(git: &Git, worktree: &Worktree) -> bool {
    let root = &worktree.root;
    if !root.exists() {
        return false;
    }
    let checkout = Checkout { git, directory: root };
    let unchanged = async {
        // A submodule has a configuration of its own, and is not looked into.
        let status = ["status", "--porcelain", "--ignore-submodules=dirty"];
        let clean = checkout.run(&status).await?.is_empty() && !root.join(".gitmodules").exists();
        let head = checkout.run(&["rev-parse", "HEAD"]).await?;
        Ok::<bool, CrashError>(clean && head == worktree.base)
    };
    // A worktree of unknown state is kept.
    if !unchanged.await.unwrap_or(false) {
        return true;
    }
    let common = checkout.run(&["rev-parse", "--path-format=absolute", "--git-common-dir"]).await;
    let Ok(common) = common.map(PathBuf::from) else { return true };
    let Some(main) = common.parent() else { return true };
    let (path, common) = (root.to_string_lossy().into_owned(), common.to_string_lossy().into_owned());
    let main = Checkout { git, directory: main };
    let of_main = ["--git-dir", common.as_str()];
    // By force: git would look again whether it is clean, without what was learnt of its configuration.
    if main.run(&[&of_main[..], &["worktree", "remove", "--force", &path]].concat()).await.is_err() {
        return true;
    }
    let _ = main.run(&[&of_main[..], &["branch", "-D", &worktree.branch]].concat()).await;
    false
}

fn plain(place: &str) -> String {
    let words: Vec<&str> =
        place.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "work".to_owned() } else { words.join("-") }
}

/// A place where git works for a job. Files of a job are the user's to work with, so the user's own filters stay.
struct Checkout<'a> {
    git: &'a Git,
    directory: &'a Path,
}

impl Checkout<'_> {
    async fn run(&self, args: &[&str]) -> Result<String, CrashError> {
        let failed = |why: String| {
            CrashError::new("worktree_failed", format!("`git {}` failed: {why}", args.join(" ")))
        };
        let bounds = CallLimits { time: PATIENCE, output: MAX_OUTPUT };
        let answer = async { self.git.open(self.directory, Filters::User).await?.run(args, bounds).await };
        let answer = answer.await.map_err(|error| failed(error.to_string()))?;
        // Git was killed if it printed too much; the output up to there is used.
        match answer.code == 0 || answer.cut {
            true => Ok(answer.text()),
            false => Err(failed(answer.stderr)),
        }
    }
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

    fn git() -> Git {
        Git::new(hangar_git::Environment::of(std::env::vars_os()))
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
        let made = make(&git(), scratch.path(), &run(), ".works[0].body", 2, &inner).await.unwrap();
        assert!(made.directory.ends_with("worktrees/works-0-body-2/inner"));
        assert!(made.directory.join("a.txt").is_file());
        assert_eq!(branches(repository.path()), "hangar/r1/works-0-body-2");
        assert!(!leave(&git(), &made).await);
        assert!(!made.root.exists());
        assert_eq!(branches(repository.path()), "");
    }

    #[tokio::test]
    async fn a_worktree_with_a_new_file_is_kept() {
        let (repository, scratch) = (repository(), tempfile::tempdir().unwrap());
        let made = make(&git(), scratch.path(), &run(), "", 0, repository.path()).await.unwrap();
        std::fs::write(made.directory.join("new.txt"), "").unwrap();
        assert!(leave(&git(), &made).await);
        assert!(made.root.exists());
    }

    #[tokio::test]
    async fn a_worktree_with_a_commit_is_kept() {
        let (repository, scratch) = (repository(), tempfile::tempdir().unwrap());
        let made = make(&git(), scratch.path(), &run(), "", 0, repository.path()).await.unwrap();
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
        let git = git();
        Checkout { git: &git, directory: &made.directory }.run(&args).await.unwrap();
        assert!(leave(&git, &made).await);
    }

    #[tokio::test]
    async fn what_an_interrupted_attempt_left_is_replaced() {
        let (repository, scratch) = (repository(), tempfile::tempdir().unwrap());
        let first = make(&git(), scratch.path(), &run(), "", 0, repository.path()).await.unwrap();
        std::fs::write(first.directory.join("half.txt"), "").unwrap();
        let second = make(&git(), scratch.path(), &run(), "", 0, repository.path()).await.unwrap();
        assert_eq!(first, second);
        assert!(!second.directory.join("half.txt").exists());
    }

    #[tokio::test]
    async fn a_directory_without_a_repository_is_an_error_that_says_so() {
        let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let error = make(&git(), scratch.path(), &run(), "", 0, place.path()).await.unwrap_err();
        assert!(error.message.contains("not a git repository"), "{error}");
    }
}
