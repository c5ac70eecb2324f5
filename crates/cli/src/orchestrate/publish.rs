//! Effects on pull requests: work is published, remarks are answered, and merges are made.

use std::path::Path;
use std::time::Duration;

use hangar_git::{HttpLogin, RepositoryAccess};
use hangar_orchestrator::prompt;
use hangar_orchestrator::pulls::{LABEL_ANSWER, Publication, Pull, Reaction, Remark};
use hangar_orchestrator::record::IssueFact;
use hangar_orchestrator::state::IssueClaim;
use hangar_trackers::forge::{MergeOrder, PullDraft, PullName, ThreadAnswer};
use hangar_trackers::{LabelChange, NewComment, TrackerErrorKind};
use hangar_workflow::Config;
use hangar_workflow::reactions::PullMode;
use jiff::Timestamp;
use serde::Deserialize;

use super::effects::{Context, Done, failed, patiently};
use super::push::{Branch, Conflict, Pushed};
use super::workspace::SIDE;

/// Attempts to push, with a delay that doubles between them.
const PUSH_ATTEMPTS: u32 = 5;
const PUSH_DELAY: Duration = Duration::from_secs(2);
/// Largest file that an agent writes for us.
const MAX_SIDE_FILE: u64 = 64 << 10;
const SCM: &str = "scm.json";
const REPLIES: &str = "replies.json";
/// Sites of forges that need no address.
const GITHUB: &str = "https://github.com/";
const GITLAB: &str = "https://gitlab.com/";

/// A pull request that an agent or a hook opened.
#[derive(Debug, Deserialize)]
struct Adopted {
    #[serde(default)]
    sha: String,
    #[serde(default)]
    pr_number: u64,
}

/// Address of the site that a forge's API belongs to, with a slash at its end.
fn site(provider: &str, endpoint: &str) -> String {
    match (provider, endpoint.trim_end_matches('/')) {
        ("gitlab", "") => GITLAB.to_owned(),
        (_, "" | "https://api.github.com") => GITHUB.to_owned(),
        (_, other) => format!(
            "{}/",
            other.trim_end_matches("/api/v3").trim_end_matches("/api/v4").trim_end_matches("/api/v1")
        ),
    }
}

/// Repository of the workspaces: the one that the workflow names, or that of its pull requests.
pub(super) fn repository(config: &Config) -> Option<String> {
    let pulls = &config.pulls;
    let of_forge = || format!("{}{}.git", site(&pulls.provider, &pulls.endpoint), pulls.project);
    let named = config.workspace.repository.clone();
    named.or_else(|| (pulls.mode == PullMode::Open && !pulls.project.is_empty()).then(of_forge))
}

/// Means to reach the repository: the token of the forge, if the repository is on its site.
pub(super) fn access(
    config: &Config,
    url: &str,
    agent_socket: Option<std::ffi::OsString>,
) -> RepositoryAccess {
    let pulls = &config.pulls;
    let origin = site(&pulls.provider, &pulls.endpoint);
    let is_there = pulls.mode == PullMode::Open && url.starts_with(&origin);
    let has_password = !pulls.api_key.0.is_empty() || pulls.app.is_some();
    let login = (is_there && has_password).then(|| HttpLogin {
        origin,
        user: "x-access-token".to_owned(),
        password: pulls.api_key.0.clone(),
    });
    RepositoryAccess { agent_socket, login }
}

/// A file beside the work, as JSON. One that is missing, too large or a link is none.
pub(super) fn side_file<T: serde::de::DeserializeOwned>(workspace: &Path, name: &str) -> Option<T> {
    let path = workspace.join(SIDE).join(name);
    let found = std::fs::symlink_metadata(&path).ok()?;
    if !found.is_file() || found.len() > MAX_SIDE_FILE {
        return None;
    }
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Removes answers of an earlier session.
pub(super) fn clear(workspace: &Path) {
    let _ = std::fs::remove_file(workspace.join(SIDE).join(REPLIES));
}

impl Context {
    fn branch<'a>(&'a self, claim: &'a IssueClaim) -> Option<Branch<'a>> {
        let (mirror, path) = (self.mirror.as_deref()?, claim.workspace.as_deref()?);
        let base =
            self.workflow.config.pulls.base.as_deref().or(self.workflow.config.workspace.base.as_deref());
        Some(Branch { mirror, path, name: claim.branch.as_deref()?, base })
    }

    /// Brings the workspace of a claim with a pull request up to date.
    pub(super) async fn catch_up(&self, claim: &IssueClaim, path: &Path, branch: &str) -> Result<(), String> {
        let (Some(mirror), Some(pull)) = (self.mirror.as_deref(), &claim.pull) else { return Ok(()) };
        if self.workflow.config.pulls.mode != PullMode::Open {
            return Ok(());
        }
        let conflict = match &claim.reaction {
            Some(Reaction::Conflict { .. }) => Some(Conflict::Base(&pull.base)),
            Some(Reaction::Diverged) => Some(Conflict::Branch),
            _ => None,
        };
        let base = self.workflow.config.pulls.base.as_deref();
        Branch { mirror, path, name: branch, base }.prepare(conflict.as_ref()).await
    }

    /// Publishes the work of a session.
    pub(super) async fn publish(&self, claim: &IssueClaim) -> Done {
        let issue = claim.issue.clone();
        let outcome = match self.workflow.config.pulls.mode {
            PullMode::Open => self.opened_pull(claim).await,
            PullMode::Adopt | PullMode::Off => self.adopted(claim).await,
        };
        match outcome {
            Ok((pull, head)) => {
                let changed = claim.pull.as_ref().is_none_or(|pull| pull.head() != head);
                let PullName { number, url, base } = pull;
                IssueFact::Published { issue, number, url, base, head, changed }.into()
            }
            Err(outcome) => IssueFact::Unpublished { issue, outcome }.into(),
        }
    }

    async fn opened_pull(&self, claim: &IssueClaim) -> Result<(PullName, String), Publication> {
        let stuck = |kind: &str, message: String| Publication::Failed(failed(kind, message, false));
        let (Some(branch), Some(forge)) = (self.branch(claim), &self.forge) else {
            let message = "there is no repository to open pull requests for; set `workspace.repository`";
            return Err(stuck("scm_not_found", message.to_owned()));
        };
        let issue = self.issue(claim).await;
        let issue = issue.map_err(|error| stuck(error.kind.as_str(), error.message))?;
        let Some(issue) = issue else { return Err(Publication::Absent) };
        let (title, body) = prompt::pull_request(&self.workflow, &issue)
            .map_err(|error| stuck("template_render_error", error.to_string()))?;
        let known = claim.pull.as_ref().map(Pull::head);
        let mut attempt = 1;
        let pushed = loop {
            match branch.publish(&title, known).await {
                Ok(pushed) => break pushed,
                Err(error) if attempt < PUSH_ATTEMPTS && !error.contains("conflict markers") => {
                    tracing::warn!(issue = %claim.identifier, %error, "the push is tried again");
                    tokio::time::sleep(PUSH_DELAY * (1 << attempt)).await;
                    attempt += 1;
                }
                Err(error) => return Err(stuck("scm_push_failed", error)),
            }
        };
        let head = match pushed {
            Pushed::Nothing => return Err(Publication::Unchanged),
            Pushed::Diverged => return Err(Publication::Diverged),
            Pushed::Head(head) => head,
        };
        let pulls = &self.workflow.config.pulls;
        let draft = PullDraft {
            branch: branch.name.to_owned(),
            base: pulls.base.clone(),
            title,
            body,
            draft: pulls.draft,
            labels: pulls.labels.clone(),
            reviewers: pulls.reviewers.clone(),
        };
        match patiently(|| forge.publish(draft.clone())).await {
            Ok(pull) => Ok((pull, head)),
            Err(error) if error.kind == TrackerErrorKind::NothingToMerge => Err(Publication::Unchanged),
            Err(error) => Err(stuck(error.kind.as_str(), error.message)),
        }
    }

    /// The pull request that the agent or a hook opened.
    async fn adopted(&self, claim: &IssueClaim) -> Result<(PullName, String), Publication> {
        let adopted: Option<Adopted> = claim.workspace.as_deref().and_then(|path| side_file(path, SCM));
        let adopted = adopted.filter(|adopted| adopted.pr_number > 0);
        let (Some(adopted), Some(forge)) = (adopted, &self.forge) else { return Err(Publication::Absent) };
        let pull = patiently(|| forge.look(adopted.pr_number, 0))
            .await
            .map_err(|error| Publication::Failed(failed(error.kind.as_str(), error.message, false)))?;
        let head = if adopted.sha.is_empty() { pull.head } else { adopted.sha };
        Ok((PullName { number: pull.number, url: pull.url, base: pull.base }, head))
    }

    /// Answers one remark of a reaction, in the agent's words if it left some.
    pub(super) async fn answer(&self, claim: &IssueClaim, remark: String) -> Done {
        let done =
            |error| IssueFact::Answered { issue: claim.issue.clone(), remark: remark.clone(), error }.into();
        let (Some(forge), Some(pull), Some(reaction)) = (&self.forge, &claim.pull, &claim.reaction) else {
            return done(None);
        };
        let written = match (reaction, reaction.remarks().iter().find(|known| known.id == remark)) {
            (Reaction::Label { label }, _) if remark == LABEL_ANSWER => {
                patiently(|| forge.label_pull(pull.number, label, LabelChange::Remove)).await
            }
            (_, Some(found)) => {
                let marker = format!("answer-{}-{remark}", claim.number);
                let comment = NewComment { marker, body: self.reply(claim, found), at: Timestamp::now() };
                let thread = found.thread.clone().zip(found.first.clone());
                // A thread that led to no change is left to its reviewer.
                let thread =
                    thread.map(|(thread, comment)| ThreadAnswer { thread, comment, resolve: claim.changed });
                patiently(|| forge.answer(pull.number, thread.clone(), comment.clone())).await
            }
            (_, None) => Ok(()),
        };
        done(written.err().map(|error| error.message))
    }

    fn reply(&self, claim: &IssueClaim, remark: &Remark) -> String {
        let replies = claim
            .workspace
            .as_deref()
            .and_then(|path| side_file::<std::collections::HashMap<String, String>>(path, REPLIES));
        let own =
            replies.and_then(|mut replies| replies.remove(&remark.id)).filter(|text| !text.trim().is_empty());
        let head = claim.pull.as_ref().map(Pull::head).unwrap_or_default();
        let what = match claim.changed {
            true => format!("Addressed in {head}."),
            false => "The agent looked at this and made no change.".to_owned(),
        };
        let quote = match (&remark.thread, own) {
            (_, Some(own)) => own,
            (Some(_), None) => what,
            (None, None) => format!("@{}: {what}", remark.reviewer),
        };
        quote.chars().take(4000).collect()
    }

    pub(super) async fn merge(&self, claim: &IssueClaim, head: String) -> Done {
        let issue = claim.issue.clone();
        let (Some(forge), Some(pull)) = (&self.forge, &claim.pull) else { return Done::default() };
        let rule = &self.workflow.config.pulls.auto_merge;
        let delete = claim.branch.clone().filter(|_| rule.delete_branch);
        let order = MergeOrder { number: pull.number, head: head.clone(), method: rule.method, delete };
        let merged = patiently(|| forge.merge(order.clone())).await;
        IssueFact::Merged { issue, head, error: merged.err().map(|error| error.message) }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_of_a_forge_follows_from_its_api() {
        for (provider, endpoint, expected) in [
            ("github", "", "https://github.com/"),
            ("github", "https://api.github.com/", "https://github.com/"),
            ("github", "https://git.example.com/api/v3", "https://git.example.com/"),
            ("github", "http://127.0.0.1:80", "http://127.0.0.1:80/"),
            ("gitlab", "", "https://gitlab.com/"),
            ("gitlab", "https://git.example.com/api/v4", "https://git.example.com/"),
            ("gitea", "https://git.example.com/api/v1/", "https://git.example.com/"),
        ] {
            assert_eq!(site(provider, endpoint), expected, "{provider} {endpoint}");
        }
    }
}
