//! Work of sessions that several machines share: kept after every turn as a commit under `refs/hangar/`, on the remote.
//!
//! The commit has the files as they are, untracked ones too, and names the commit that was checked out. The user's branches and
//! the index stay as they are.

use std::fs;
use std::path::Path;

use hangar_git::CallLimits;

use super::{IDENTITY, MAX_OUTPUT, Mirror, PATIENCE};

/// Trailer with the commit that was checked out.
const HEAD: &str = "Hangar-Head";

/// Ref of the work of a session.
fn reference(session: &str) -> String {
    format!("refs/hangar/{session}")
}

/// Work that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptWork {
    pub(crate) reference: String,
    pub(crate) commit: String,
}

impl Mirror {
    /// Checks a session's work out: as it was kept, or from the base.
    pub(crate) async fn check_out_session(
        &self,
        path: &Path,
        session: &str,
        base: Option<&str>,
    ) -> Result<Option<KeptWork>, String> {
        let _changes = self.changes.lock().await;
        let _held = self.held().await?;
        self.fetch().await?;
        let reference = reference(session);
        let listed = self.run(&["ls-remote", "origin", &reference]).await?;
        let kept = listed.split_whitespace().next().map(str::to_owned);
        let place = path.to_string_lossy().into_owned();
        // What an earlier attempt left here may be older than what was kept.
        self.drop_worktree(path, &place).await;
        self.run(&["worktree", "prune"]).await?;
        let start = match &kept {
            Some(commit) => {
                let spec = format!("+{reference}:{reference}");
                self.run(&["fetch", "--quiet", "--no-tags", "origin", &spec]).await?;
                commit.clone()
            }
            None => {
                // A ref that was never pushed is of a session that another machine has begun anew.
                let _ = self.run(&["update-ref", "-d", &reference]).await;
                if let Some(kept) = base.filter(|base| base.starts_with("refs/hangar/")) {
                    // It goes on with the work of another session.
                    let spec = format!("+{kept}:{kept}");
                    self.run(&["fetch", "--quiet", "--no-tags", "origin", &spec]).await?;
                }
                self.base(base).await?
            }
        };
        self.run(&["worktree", "add", "--quiet", "--no-checkout", "--detach", &place, &start]).await?;
        self.call(path, &["reset", "--quiet", "--hard", "HEAD"]).await?;
        let Some(commit) = kept else { return Ok(None) };
        let format = format!("--format=%(trailers:key={HEAD},valueonly)");
        let head = self.run(&["log", "-1", &format, &commit]).await?;
        if !head.trim().is_empty() {
            self.call(path, &["reset", "--quiet", "--mixed", head.trim()]).await?;
        }
        Ok(Some(KeptWork { reference, commit }))
    }

    /// Commits the files of a session as they are, and pushes the commit. `None` if nothing changed since the last time.
    pub(crate) async fn keep_session(&self, path: &Path, session: &str) -> Result<Option<KeptWork>, String> {
        let _changes = self.changes.lock().await;
        let _held = self.held().await?;
        let reference = reference(session);
        let head = self.call(path, &["rev-parse", "HEAD"]).await?;
        let tree = self.tree_of(path).await?;
        let parse = async |name: String| self.run(&["rev-parse", "--verify", "--quiet", &name]).await.ok();
        let before = parse(reference.clone()).await;
        let known = match &before {
            Some(before) => {
                let format = format!("--format=%(trailers:key={HEAD},valueonly)");
                let told = self.run(&["log", "-1", &format, before]).await?;
                (parse(format!("{before}^{{tree}}")).await, Some(told.trim().to_owned()))
            }
            None => (parse(format!("{head}^{{tree}}")).await, Some(head.clone())),
        };
        let is_new = known != (Some(tree.clone()), Some(head.clone()));
        let commit = match (is_new, &before) {
            (false, None) => return Ok(None),
            (false, Some(before)) => before.clone(),
            (true, _) => {
                let message = format!("Work of session {session}\n\n{HEAD}: {head}\n");
                let mut args = [&IDENTITY[..], &["commit-tree", &tree, "-m", &message]].concat();
                for parent in before.iter().chain([&head]) {
                    args.extend(["-p", parent]);
                }
                let commit = self.run(&args).await?;
                self.run(&["update-ref", &reference, &commit]).await?;
                commit
            }
        };
        // Not forced: a machine that has lost the session must not replace what its successor keeps.
        self.run(&["push", "--quiet", "origin", &format!("{reference}:{reference}")]).await?;
        Ok(is_new.then_some(KeptWork { reference, commit }))
    }

    /// The files of a worktree as a tree, made with an index of its own.
    async fn tree_of(&self, path: &Path) -> Result<String, String> {
        let index = self.call(path, &["rev-parse", "--path-format=absolute", "--git-path", "index"]).await?;
        let ours = Path::new(&index).with_file_name("hangar-index");
        let copied = fs::copy(&index, &ours).map_err(|error| format!("copying {index}: {error}"));
        let made = async {
            copied?;
            let limits = CallLimits { time: PATIENCE, output: MAX_OUTPUT };
            let mut text = String::new();
            for args in [&["add", "--all", "--ignore-errors"][..], &["write-tree"]] {
                let tree = self.git.open_remote(path, &self.access).await;
                let tree = tree.map_err(|error| error.to_string())?.with_index(&ours);
                let answer = tree.run(args, limits).await.map_err(|error| error.to_string())?;
                if answer.code != 0 {
                    return Err(format!("`git {}` failed: {}", args.join(" "), answer.stderr));
                }
                text = answer.text();
            }
            Ok(text)
        };
        let made = made.await;
        let _ = fs::remove_file(&ours);
        made
    }
}
