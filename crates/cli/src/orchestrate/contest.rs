//! Effects of contests: the work of each candidate is committed and measured, and that of one is taken over.

use std::path::{Path, PathBuf};

use hangar_orchestrator::contest::{Criterion, RivalResult, is_done, number_of};
use hangar_orchestrator::prompt;
use hangar_orchestrator::record::{IssueFact, SessionEnd};
use hangar_orchestrator::state::{IssueClaim, IssueWorkspace, Phase};
use hangar_trackers::Issue;

use super::effects::{Context, Done, failed};
use super::hooks;
use super::mirror::Mirror;
use super::push::Branch;
use super::workspace::{self, Owner, Ready};

/// Bytes of a command's output that are written down.
const MAX_OUTPUT: usize = 4 << 10;
/// Most retries of a promotion that the criteria decided.
const MAX_PROMOTION_RETRIES: u32 = 8;
/// Most bytes of a diff that is shown.
const MAX_DIFF: usize = 200 << 10;

/// Place of the work on a claim.
pub(super) struct Place {
    /// Name that the directory is named after.
    pub(super) identifier: String,
    pub(super) branch: String,
    /// Branch of the issue, where the work of a candidate begins.
    issue_branch: String,
}

/// Work of a candidate that was taken over.
struct Taken {
    workspace: PathBuf,
    branch: String,
    /// State of the issue.
    state: String,
}

/// Place of the work on an issue. Each candidate has one of its own.
pub(super) fn place(claim: &IssueClaim, identifier: &str, branch: String) -> Place {
    match &claim.role {
        None => Place { identifier: identifier.to_owned(), issue_branch: branch.clone(), branch },
        Some(role) => Place {
            identifier: format!("{identifier}~{}", role.name()),
            branch: format!("{branch}-candidate-{}", role.name()),
            issue_branch: branch,
        },
    }
}

/// Ref of a candidate: its work, or where that began.
fn reference(workflow: &str, path: &Path, what: &str) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("refs/hangar/candidates/{workflow}/{name}/{what}")
}

/// The last bytes of a text.
fn tail(text: &str, limit: usize) -> String {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_owned()
}

/// Files, added and removed lines of `git diff --numstat`.
fn counted(numstat: &str) -> (u64, u64, u64) {
    let (mut files, mut added, mut removed) = (0, 0, 0);
    for line in numstat.lines() {
        let mut columns = line.split('\t');
        // Binary files have no lines.
        let mut next = || columns.next().and_then(|column| column.parse::<u64>().ok()).unwrap_or_default();
        (files, added, removed) = (files + 1, added + next(), removed + next());
    }
    (files, added, removed)
}

impl Context {
    /// Prepares the workspace of a claim.
    pub(super) async fn workspace(&self, claim: &IssueClaim, place: &Place) -> Result<Ready, String> {
        let config = &self.workflow.config;
        let owner = Owner { workflow: self.key.clone(), issue: claim.issue.0.clone() };
        let mirror = self.mirror.as_deref();
        let own = match (mirror, &claim.role) {
            (Some(mirror), Some(_)) => existing(mirror, &place.issue_branch).await,
            _ => None,
        };
        let base = own.as_deref().or(config.workspace.base.as_deref());
        let ready =
            workspace::prepare(config, mirror, &place.identifier, &place.branch, base, &owner).await?;
        if let (Some(mirror), Some(_), true) = (mirror, &claim.role, ready.is_new) {
            let start = reference(&self.key, &ready.path, "base");
            mirror.call(&ready.path, &["update-ref", &start, "HEAD"]).await?;
        }
        Ok(ready)
    }

    /// Commits the work of a candidate, keeps it under a ref, and runs the commands of the judge.
    pub(super) async fn measure(&self, claim: &IssueClaim) -> Done {
        let mut result = RivalResult::default();
        let kept = self.kept(claim, &mut result).await;
        let Phase::Settling { end } = &claim.phase else { return Done::default() };
        match (kept, claim.workspace.as_deref()) {
            (Err(message), _) => result.error = Some(message),
            (Ok(()), Some(path)) if is_done(end) && result.commit.is_some() => {
                self.judged(claim, path, &mut result).await;
            }
            (Ok(()), _) => {}
        }
        IssueFact::RivalDone { issue: claim.issue.clone(), result }.into()
    }

    async fn kept(&self, claim: &IssueClaim, result: &mut RivalResult) -> Result<(), String> {
        // One that was never opened has nothing.
        let (Some(path), Some(name)) = (claim.workspace.as_deref(), claim.branch.as_deref()) else {
            return Ok(());
        };
        let mirror = self.mirror.as_deref().ok_or("the workflow has no repository any more")?;
        let _changes = mirror.changes.lock().await;
        let _held = mirror.held().await?;
        mirror.is_ours(path).await?;
        let judged = reference(&self.key, path, "judged");
        let was_judged = mirror.run(&["rev-parse", "--verify", "--quiet", &judged]).await.ok();
        let mut head = mirror.call(path, &["rev-parse", "--verify", "HEAD"]).await?;
        if was_judged.as_ref() == Some(&head) {
            // What the commands of the judge wrote is not the candidate's work.
            mirror.call(path, &["reset", "--quiet", "--hard"]).await?;
            mirror.call(path, &["clean", "--quiet", "-fd"]).await?;
        } else {
            let message = format!("Work of candidate {} on {}", number_of(claim), claim.identifier);
            Branch { mirror, path, name, base: None }.commit(&message).await?;
            head = mirror.call(path, &["rev-parse", "--verify", "HEAD"]).await?;
        }
        let base = mirror.run(&["rev-parse", "--verify", &reference(&self.key, path, "base")]).await?;
        if head == base {
            return Ok(());
        }
        let kept = reference(&self.key, path, "work");
        mirror.run(&["update-ref", &kept, &head]).await?;
        if matches!(&claim.phase, Phase::Settling { end } if is_done(end)) {
            mirror.run(&["update-ref", &judged, &head]).await?;
        }
        let numstat =
            mirror.run(&["diff", "--numstat", "--no-renames", "--no-ext-diff", &base, &head]).await?;
        (result.files, result.added, result.removed) = counted(&numstat);
        (result.commit, result.reference, result.base) = (Some(head), Some(kept), Some(base));
        Ok(())
    }

    /// Runs the commands of the judge, then that of the score.
    async fn judged(&self, claim: &IssueClaim, path: &Path, result: &mut RivalResult) {
        let judge = &self.workflow.config.judge;
        let issue = self.hook_issue(claim);
        let run = async |command: &str| {
            hooks::run("judge", command, path, &issue, &self.hook_variables, judge.timeout).await
        };
        for command in &judge.commands {
            let ran = run(command).await;
            let passed = ran.is_ok();
            let output = tail(&ran.unwrap_or_else(|message| message), MAX_OUTPUT);
            result.checks.push(Criterion { command: command.clone(), passed, output });
        }
        let Some(command) = judge.score.as_deref().filter(|_| result.checks.iter().all(|check| check.passed))
        else {
            return;
        };
        let score = run(command).await.and_then(|output| {
            let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let number = last.trim().parse::<f64>().ok().filter(|number| number.is_finite());
            number.ok_or_else(|| format!("its last line is no number: {last}"))
        });
        match score {
            Ok(score) => result.score = Some(score),
            Err(message) => result.error = Some(format!("there is no score: {}", tail(&message, MAX_OUTPUT))),
        }
    }

    /// Brings the work of a candidate into the workspace of the issue.
    pub(super) async fn promote(
        &self,
        claim: &IssueClaim,
        candidate: u32,
        winner: Option<&IssueClaim>,
    ) -> Done {
        let issue = claim.issue.clone();
        match self.promoted(claim, winner).await {
            Ok(taken) => {
                let (workspace, branch, state) = (taken.workspace, taken.branch, Some(taken.state));
                IssueFact::Promoted { issue, candidate, workspace, branch, state }.into()
            }
            Err(end) => IssueFact::SessionEnded { issue, end }.into(),
        }
    }

    async fn promoted(&self, claim: &IssueClaim, winner: Option<&IssueClaim>) -> Result<Taken, SessionEnd> {
        // A person who promotes is told at once.
        let retryable = matches!(claim.phase, Phase::Promoting { by_person: false, .. })
            && claim.failures < MAX_PROMOTION_RETRIES;
        let refused = |message: String| SessionEnd::Failed(failed("promotion_failed", message, retryable));
        let issue = self.issue(claim).await.map_err(|error| refused(error.message))?;
        let issue = issue.ok_or(SessionEnd::Gone)?;
        // It may have been closed since its candidates began.
        if !self.workflow.config.tracker.is_active(&issue.state) {
            return Err(SessionEnd::Inactive { state: issue.state });
        }
        let (workspace, branch) = self.taken(claim, winner, &issue).await.map_err(refused)?;
        Ok(Taken { workspace, branch, state: issue.state })
    }

    async fn taken(
        &self,
        claim: &IssueClaim,
        winner: Option<&IssueClaim>,
        issue: &Issue,
    ) -> Result<(PathBuf, String), String> {
        let commit = winner.and_then(|winner| winner.result.as_ref()?.commit.clone());
        let commit = commit.ok_or("the candidate has no work")?;
        let mirror = self.mirror.as_deref().ok_or("the workflow has no repository any more")?;
        let branch = prompt::branch(&self.workflow, issue).map_err(|error| error.to_string())?;
        let place = place(claim, &issue.identifier, branch.clone());
        let ready = self.workspace(claim, &place).await?;
        if ready.is_new {
            let script = self.workflow.config.hooks.after_create.as_deref();
            self.hook("after_create", script, &ready.path, &self.hook_issue(claim)).await?;
        }
        take_over(mirror, &ready.path, &commit).await?;
        ready.finish()?;
        Ok((ready.path, branch))
    }

    /// Removes the branch of a candidate, if its work is kept under a ref.
    pub(super) async fn forget_branch(&self, place: &IssueWorkspace) {
        let (Some(mirror), Some(branch)) = (self.mirror.as_deref(), place.branch.as_deref()) else { return };
        let _changes = mirror.changes.lock().await;
        let Ok(_held) = mirror.held().await else { return };
        let own = format!("refs/heads/{branch}");
        let kept = ["work", "base"].map(|what| reference(&self.key, &place.path, what));
        for kept in &kept {
            if mirror.run(&["merge-base", "--is-ancestor", &own, kept]).await.is_ok() {
                let _ = mirror.run(&["update-ref", "-d", &own]).await;
                return;
            }
        }
    }
}

/// Commit of a branch that is there, here or at the remote.
async fn existing(mirror: &Mirror, branch: &str) -> Option<String> {
    for name in [format!("refs/heads/{branch}"), format!("refs/remotes/origin/{branch}")] {
        if let Ok(commit) = mirror.run(&["rev-parse", "--verify", "--quiet", &name]).await {
            return Some(commit);
        }
    }
    None
}

/// Makes a commit the head of a workspace. Work that it does not have is kept under a ref.
async fn take_over(mirror: &Mirror, path: &Path, commit: &str) -> Result<(), String> {
    mirror.is_ours(path).await?;
    mirror.keep_changes(path).await?;
    let _changes = mirror.changes.lock().await;
    let _held = mirror.held().await?;
    let head = mirror.call(path, &["rev-parse", "--verify", "HEAD"]).await?;
    if mirror.run(&["merge-base", "--is-ancestor", &head, commit]).await.is_err() {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let kept = format!("refs/hangar/kept/{name}/{}", &head[..head.len().min(12)]);
        mirror.run(&["update-ref", &kept, &head]).await?;
    }
    mirror.call(path, &["reset", "--quiet", "--hard", commit]).await.map(drop)
}

/// The changes of a candidate as a unified diff, and whether it is complete.
pub(super) async fn diff(mirror: &Mirror, base: &str, commit: &str) -> Result<(String, bool), String> {
    mirror.start_of(&["diff", "--no-color", "--no-ext-diff", base, commit], MAX_DIFF).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_counted_without_those_of_binary_files() {
        assert_eq!(counted("3\t1\ta.txt\n-\t-\tb.png\n10\t0\tc d.txt\n"), (3, 13, 1));
        assert_eq!(counted(""), (0, 0, 0));
    }

    #[test]
    fn the_end_of_an_output_is_kept() {
        assert_eq!(tail("abc", 2), "bc");
        assert_eq!(tail("äb", 2), "b");
    }
}
