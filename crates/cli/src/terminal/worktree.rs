//! Working trees that sessions of the terminal continue in, beside the repository: `/worktree` and `/move`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::FutureExt;
use hangar_git::{CallLimits, Filters, Git, GitOutput};
use hangar_terminal::effect::CallId;
use hangar_terminal::input::Input;
use hangar_terminal::worktrees::Uncommitted;
use serde_json::{Value, json};

use super::app::App;
use crate::credentials;

/// Limits of a git call: a checkout of a large repository takes a while.
const LIMITS: CallLimits = CallLimits { time: Duration::from_secs(120), output: 1 << 20 };

impl App {
    /// Makes a working tree in the background and replies with its path.
    pub(super) fn make_worktree(&self, call: CallId, branch: Option<String>, uncommitted: Uncommitted) {
        let (inbox, directory) = (self.inbox(), self.directory.clone());
        let branch = branch.unwrap_or_else(|| {
            let word = if uncommitted == Uncommitted::Move { "move" } else { "worktree" };
            jiff::Zoned::now().strftime(&format!("{word}-%Y%m%d-%H%M%S")).to_string()
        });
        tokio::spawn(FutureExt::boxed(async move {
            let git = credentials::git();
            let made = make(&git, &directory, &branch, uncommitted).await;
            let result = made.map_err(|error| format!("the working tree was not made: {error:#}"));
            // A view that has ended needs no result.
            let _ = inbox.send(Input::Reply { call, result }).await;
        }));
    }
}

/// Makes a working tree for a branch, a new one if there is none of that name.
async fn make(git: &Git, directory: &Path, branch: &str, uncommitted: Uncommitted) -> Result<Value> {
    let listed = run(git, directory, &["worktree", "list", "--porcelain", "-z"]).await;
    let listed = listed.context("the session works in no git repository")?;
    let main = listed.split('\0').find_map(|field| field.strip_prefix("worktree "));
    let main = main.context("the repository has no working tree")?;
    let top = PathBuf::from(run(git, directory, &["rev-parse", "--show-toplevel"]).await?);
    run(git, directory, &["check-ref-format", "--branch", branch])
        .await
        .with_context(|| format!("`{branch}` cannot be the name of a branch"))?;
    let is_dirty = !run(git, directory, &["status", "--porcelain"]).await?.is_empty();
    let path = PathBuf::from(format!("{main}.worktrees")).join(branch.replace('/', "-"));
    if path.exists() {
        bail!("{} is there already; name another branch", path.display());
    }
    let place = path.to_str().context("its path is not UTF-8")?;
    let reference = format!("refs/heads/{branch}");
    let exists = run(git, directory, &["show-ref", "--verify", &reference]).await.is_ok();
    match exists {
        true => run(git, directory, &["worktree", "add", place, branch]).await?,
        false => run(git, directory, &["worktree", "add", "-b", branch, place, "HEAD"]).await?,
    };
    let is_moved = is_dirty && uncommitted == Uncommitted::Move;
    if is_moved && let Err(error) = carry(git, &top, &path).await {
        let _ = run(git, directory, &["worktree", "remove", "--force", place]).await;
        if !exists {
            let _ = run(git, directory, &["branch", "-D", branch]).await;
        }
        return Err(error);
    }
    // The session stays as deep in the tree as it was.
    let below = directory.strip_prefix(&top).ok().filter(|below| !below.as_os_str().is_empty());
    let path = below.map(|below| path.join(below)).filter(|inside| inside.is_dir()).unwrap_or(path);
    Ok(json!({
        "path": path,
        "branch": branch,
        "isDirty": is_dirty,
        "isMoved": is_moved,
        "source": top,
    }))
}

/// Moves what is not committed, untracked files too, from one working tree to another. If that fails, it is where it was.
async fn carry(git: &Git, from: &Path, to: &Path) -> Result<()> {
    let stash =
        ["stash", "push", "--include-untracked", "--quiet", "--message", "moved to another working tree"];
    run(git, from, &stash).await.context("the changes cannot be put aside")?;
    if let Err(error) = run(git, to, &["stash", "pop", "--index", "--quiet"]).await {
        run(git, from, &["stash", "pop", "--index", "--quiet"])
            .await
            .context("the changes are in `git stash list`, since they fit neither working tree")?;
        return Err(error.context("the changes do not fit the branch, and stayed where they were"));
    }
    Ok(())
}

/// Output of a git command that succeeded.
async fn run(git: &Git, directory: &Path, args: &[&str]) -> Result<String> {
    let tree = git.open(directory, Filters::User).await?;
    let output: GitOutput = tree.run(args, LIMITS).await?;
    if output.code != 0 {
        let complaint = output.stderr.trim().trim_start_matches("fatal: ");
        bail!("{}", complaint.lines().last().unwrap_or("git failed"));
    }
    Ok(output.text())
}
