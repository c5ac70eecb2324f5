//! Work of an agent in a worktree as commits on the branch of a remote: committed, brought together with what others
//! pushed, and pushed.

use std::path::Path;

use super::mirror::{IDENTITY, Mirror};

/// Result of a push.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The remote branch is at this commit.
    Head(String),
    /// The branch has no commits that its base lacks.
    Nothing,
    /// Others pushed, and both changed the same lines.
    Diverged,
}

/// A branch in a worktree.
pub(super) struct Branch<'a> {
    pub(super) mirror: &'a Mirror,
    pub(super) path: &'a Path,
    pub(super) name: &'a str,
    /// Branch that it will be merged into, or a commit.
    pub(super) base: Option<&'a str>,
}

impl Branch<'_> {
    async fn git(&self, args: &[&str]) -> Result<String, String> {
        self.mirror.call(self.path, args).await
    }

    async fn is(&self, args: &[&str]) -> bool {
        self.git(args).await.is_ok()
    }

    async fn head(&self) -> Result<String, String> {
        self.git(&["rev-parse", "--verify", "HEAD"]).await
    }

    /// Commits what the agent left, also a merge that it has completed.
    pub(super) async fn commit(&self, message: &str) -> Result<(), String> {
        let is_merge = self.is(&["rev-parse", "--verify", "--quiet", "MERGE_HEAD"]).await;
        let is_clean = self.git(&["status", "--porcelain", "--ignore-submodules=dirty"]).await?.is_empty();
        if is_clean && !is_merge {
            return Ok(());
        }
        if is_merge {
            let open = self.git(&["diff", "--name-only", "--diff-filter=U"]).await?;
            for file in open.lines() {
                let text = std::fs::read_to_string(self.path.join(file)).unwrap_or_default();
                if text.lines().any(|line| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ")) {
                    return Err(format!("the file {file} still has conflict markers"));
                }
            }
        }
        self.git(&["add", "--all"]).await?;
        let commit = [&IDENTITY[..], &["commit", "--quiet", "--no-verify", "-m", message]].concat();
        self.git(&commit).await.map(drop)
    }

    /// Commits and pushes. `known` is the head that we pushed last.
    pub(super) async fn publish(&self, message: &str, known: Option<&str>) -> Result<Pushed, String> {
        let _changes = self.mirror.changes.lock().await;
        let _held = self.mirror.held().await?;
        self.mirror.is_ours(self.path).await?;
        self.commit(message).await?;
        self.mirror.fetch().await?;
        let (theirs, mut head) = (format!("refs/remotes/origin/{}", self.name), self.head().await?);
        let remote = self.git(&["rev-parse", "--verify", "--quiet", &theirs]).await.ok();
        let Some(remote) = remote else {
            let base = self.mirror.base(self.base).await?;
            if self.is(&["merge-base", "--is-ancestor", "HEAD", &base]).await {
                return Ok(Pushed::Nothing);
            }
            self.push(None).await?;
            return Ok(Pushed::Head(head));
        };
        if remote == head {
            return Ok(Pushed::Head(head));
        }
        let follows = self.is(&["merge-base", "--is-ancestor", &remote, "HEAD"]).await;
        // A head of ours may be replaced: the agent has rewritten its own commits.
        if !follows && known != Some(&remote) {
            if !self.merged(&theirs).await? {
                return Ok(Pushed::Diverged);
            }
            head = self.head().await?;
        }
        self.push(Some(&remote)).await?;
        Ok(Pushed::Head(head))
    }

    /// Pushes, if the remote branch is where it was.
    async fn push(&self, expected: Option<&str>) -> Result<(), String> {
        let reference = format!("refs/heads/{}", self.name);
        let lease = format!("--force-with-lease={reference}:{}", expected.unwrap_or_default());
        let refspec = format!("HEAD:{reference}");
        self.git(&["push", "--quiet", "--no-verify", &lease, "origin", &refspec]).await?;
        let tracking = format!("refs/remotes/origin/{}", self.name);
        self.git(&["update-ref", &tracking, "HEAD"]).await.map(drop)
    }

    /// Merges a commit. One that conflicts leaves everything as it was.
    async fn merged(&self, other: &str) -> Result<bool, String> {
        let merge = [&IDENTITY[..], &["merge", "--quiet", "--no-edit", "--no-verify", other]].concat();
        match self.git(&merge).await {
            Ok(_) => Ok(true),
            Err(why) => {
                self.git(&["merge", "--abort"]).await.map_err(|_| why)?;
                Ok(false)
            }
        }
    }

    /// Brings the worktree up to date before a session: with what others pushed to the branch, and, for a conflict, with the
    /// other side of it. The agent finds the markers of conflicts in the files.
    pub(super) async fn prepare(&self, conflict: Option<&Conflict<'_>>) -> Result<(), String> {
        let _changes = self.mirror.changes.lock().await;
        let _held = self.mirror.held().await?;
        self.mirror.is_ours(self.path).await?;
        self.mirror.fetch().await?;
        if self.is(&["rev-parse", "--verify", "--quiet", "MERGE_HEAD"]).await {
            return Ok(());
        }
        let theirs = format!("refs/remotes/origin/{}", self.name);
        let other = match conflict {
            Some(Conflict::Base(base)) => format!("refs/remotes/origin/{base}"),
            Some(Conflict::Branch) => theirs,
            None => {
                // Nothing is lost: a tree with changes, or with other commits, stays as it is until it is published.
                if self.is(&["rev-parse", "--verify", "--quiet", &theirs]).await {
                    let _ = self.git(&["merge", "--quiet", "--ff-only", &theirs]).await;
                }
                return Ok(());
            }
        };
        self.commit("Work in progress").await?;
        let merge = [&IDENTITY[..], &["merge", "--quiet", "--no-edit", "--no-verify", &other]].concat();
        let merged = self.git(&merge).await;
        let is_open = self.is(&["rev-parse", "--verify", "--quiet", "MERGE_HEAD"]).await;
        if is_open { Ok(()) } else { merged.map(drop) }
    }
}

/// Other side of a conflict that an agent solves.
pub(super) enum Conflict<'a> {
    Base(&'a str),
    /// Commits of others on the branch itself.
    Branch,
}
