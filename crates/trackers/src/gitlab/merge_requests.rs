//! Merge requests of a GitLab project: jobs of their pipelines, discussions and approvals.

use std::sync::Arc;

use hangar_workflow::reactions::{MergeMethod, PullConfig};
use serde_json::{Value, json};

use super::{is_project, label_change, project_path, raw_labels, service};
use crate::error::{TrackerError, TrackerErrorKind};
use crate::forge::{
    Check, CheckStatus, MergeOrder, PullDraft, PullName, PullRequest, PullState, Review, ReviewVerdict,
    Thread, ThreadAnswer, ThreadComment, tail,
};
use crate::http::{Api, Method, encoded, text};
use crate::remote::remote_forge;
use crate::{LabelChange, NewComment};

const PER_PAGE: usize = 100;

#[derive(Clone)]
pub struct GitLabForge(Arc<Inner>);

struct Inner {
    api: Api,
    project: String,
}

impl GitLabForge {
    pub fn new(config: &PullConfig) -> Result<Self, TrackerError> {
        if config.api_key.0.is_empty() {
            let message = "`pull_requests.api_key` is missing; give it a token, such as `$GITLAB_TOKEN`";
            return Err(TrackerError::new(TrackerErrorKind::MissingApiKey, message));
        }
        if !is_project(&config.project) {
            let message = "`pull_requests.project` must be the path of a project, such as `group/name`";
            return Err(TrackerError::new(TrackerErrorKind::MissingProject, message));
        }
        let api = Api::new(service(&config.endpoint, &config.api_key.0))?;
        Ok(Self(Arc::new(Inner { api, project: config.project.clone() })))
    }
}

fn no_pull() -> TrackerError {
    TrackerError::new(TrackerErrorKind::Payload, "GitLab's answer is no merge request")
}

fn named(entry: &Value) -> Option<PullName> {
    let (url, base) = (text(entry, "web_url"), text(entry, "target_branch"));
    Some(PullName { number: entry["iid"].as_u64()?, url, base })
}

/// Whether a user is a bot. Those of projects and groups have names that say so.
fn is_bot(user: &Value) -> bool {
    let name = text(user, "username").to_lowercase();
    let is_of_project = (name.starts_with("project_") || name.starts_with("group_")) && name.contains("_bot");
    is_of_project || name.ends_with("[bot]") || name.contains("gitlabduo") || name.contains("gitlab-duo")
}

impl Inner {
    fn path(&self, rest: &str) -> String {
        project_path(&self.project, rest)
    }

    fn pull_path(&self, number: u64, rest: &str) -> String {
        self.path(&format!("/merge_requests/{number}{rest}"))
    }

    /// The open merge request of a branch.
    async fn found(&self, branch: &str) -> Result<Option<PullName>, TrackerError> {
        let query = format!("/merge_requests?state=opened&source_branch={}&per_page=10", encoded(branch));
        let list = self.api.pages(&self.path(&query)).await?;
        Ok(list.iter().find(|entry| entry["source_branch"] == *branch).and_then(named))
    }

    async fn publish(&self, draft: PullDraft) -> Result<PullName, TrackerError> {
        let pull = match self.found(&draft.branch).await? {
            Some(found) => found,
            None => self.created(&draft).await?,
        };
        if !draft.labels.is_empty() {
            let change = json!({ "add_labels": draft.labels.join(",") });
            self.api.send(Method::Put, &self.pull_path(pull.number, ""), Some(&change)).await?;
        }
        Ok(pull)
    }

    async fn created(&self, draft: &PullDraft) -> Result<PullName, TrackerError> {
        let base = match &draft.base {
            Some(base) => base.clone(),
            None => text(&self.api.get(&self.path("")).await?.body, "default_branch"),
        };
        // GitLab opens merge requests without commits.
        let range = format!("/repository/compare?from={}&to={}", encoded(&base), encoded(&draft.branch));
        let compared = self.api.get(&self.path(&range)).await?.body;
        if compared["commits"].as_array().is_some_and(Vec::is_empty) {
            let message = format!("`{}` has no commits that `{base}` lacks", draft.branch);
            return Err(TrackerError::new(TrackerErrorKind::NothingToMerge, message));
        }
        let title = if draft.draft { format!("Draft: {}", draft.title) } else { draft.title.clone() };
        let body = json!({
            "title": title, "source_branch": draft.branch, "target_branch": base,
            "description": draft.body, "reviewer_ids": self.users(&draft.reviewers).await?,
        });
        match self.api.send(Method::Post, &self.path("/merge_requests"), Some(&body)).await {
            Ok(made) => named(&made).ok_or_else(no_pull),
            // It was made by a request whose answer was lost.
            Err(error) if error.message.contains("already exists") => {
                self.found(&draft.branch).await?.ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Numbers of users. A name that GitLab does not know is no reason to lose the merge request.
    async fn users(&self, names: &[String]) -> Result<Vec<u64>, TrackerError> {
        let mut ids = Vec::new();
        for name in names {
            let found = self.api.get(&format!("/users?username={}", encoded(name))).await?.body;
            ids.extend(found[0]["id"].as_u64());
        }
        Ok(ids)
    }

    async fn look(&self, number: u64, log_lines: u32) -> Result<PullRequest, TrackerError> {
        let entry = self.api.get(&self.pull_path(number, "")).await?.body;
        let state = match entry["state"].as_str().ok_or_else(no_pull)? {
            "merged" => PullState::Merged,
            "closed" => PullState::Closed,
            _ => PullState::Open,
        };
        let mut pull = PullRequest {
            number,
            url: text(&entry, "web_url"),
            state,
            is_draft: entry["draft"] == true,
            base: text(&entry, "target_branch"),
            mergeable: mergeable(&entry),
            labels: raw_labels(&entry).map(str::to_lowercase).collect(),
            checks: Vec::new(),
            log_excerpt: String::new(),
            threads: Vec::new(),
            reviews: Vec::new(),
            head: text(&entry, "sha"),
        };
        if state != PullState::Open {
            return Ok(pull);
        }
        self.read_checks(&mut pull, log_lines).await?;
        let discussions = self.discussions(number).await?;
        pull.threads = discussions.iter().filter_map(thread).collect();
        pull.reviews = self.reviews(number, &discussions).await?;
        Ok(pull)
    }

    async fn discussions(&self, number: u64) -> Result<Vec<Value>, TrackerError> {
        let path = self.pull_path(number, &format!("/discussions?per_page={PER_PAGE}"));
        self.api.pages(&path).await
    }

    /// Jobs of the pipelines of the head and statuses of other services, which one list has.
    async fn read_checks(&self, pull: &mut PullRequest, log_lines: u32) -> Result<(), TrackerError> {
        let path = self.path(&format!("/repository/commits/{}/statuses?per_page={PER_PAGE}", pull.head));
        let statuses = self.api.pages(&path).await?;
        pull.checks = statuses.iter().map(check).collect();
        let failed = statuses.iter().find(|status| check(status).status == CheckStatus::Failing);
        let Some(failed) = failed.filter(|_| log_lines > 0) else { return Ok(()) };
        let job = failed["id"].as_u64().unwrap_or_default();
        let log = match self.api.text(&self.path(&format!("/jobs/{job}/trace"))).await {
            Ok(log) => plain(&log),
            // The status is of another service, the log is gone, or the token may not read it.
            Err(error) if matches!(error.kind, TrackerErrorKind::NotFound | TrackerErrorKind::Auth) => {
                text(failed, "description")
            }
            Err(error) => return Err(error),
        };
        pull.log_excerpt = tail(&log, log_lines);
        Ok(())
    }

    async fn reviews(&self, number: u64, discussions: &[Value]) -> Result<Vec<Review>, TrackerError> {
        let approvals = self.api.get(&self.pull_path(number, "/approvals")).await?.body;
        let approved = approvals["approved_by"].as_array().into_iter().flatten();
        let mut reviews: Vec<Review> =
            approved.map(|entry| review(&entry["user"], ReviewVerdict::Approved)).collect();
        let reviewers = match self.api.get(&self.pull_path(number, "/reviewers")).await {
            Ok(page) => page.body,
            // An older GitLab.
            Err(error) if error.kind == TrackerErrorKind::NotFound => Value::Null,
            Err(error) => return Err(error),
        };
        let reviewers = reviewers.as_array().into_iter().flatten();
        for entry in reviewers.filter(|entry| entry["state"] == "requested_changes") {
            let mut asked = review(&entry["user"], ReviewVerdict::ChangesRequested);
            // The text of a review is a comment of its own.
            let said = discussions.iter().filter(|entry| entry["individual_note"] == true);
            let mut said = said.filter_map(|entry| entry["notes"].get(0));
            let own =
                |note: &&Value| note["system"] != true && note["author"]["username"] == asked.author.as_str();
            if let Some(note) = said.rfind(own) {
                (asked.body, asked.submitted_at) = (text(note, "body"), text(note, "created_at"));
                asked.id = note["id"].as_u64().unwrap_or_default().to_string();
            }
            reviews.push(asked);
        }
        Ok(reviews)
    }

    async fn answer(
        &self,
        number: u64,
        thread: Option<ThreadAnswer>,
        comment: NewComment,
    ) -> Result<(), TrackerError> {
        let (mark, body) = (comment.mark(), json!({ "body": comment.text() }));
        let has_mark = |entry: &Value| {
            let mut notes = entry["notes"].as_array().into_iter().flatten();
            notes.any(|note| text(note, "body").contains(&mark))
        };
        let is_written = self.discussions(number).await?.iter().any(has_mark);
        let Some(thread) = thread else {
            if is_written {
                return Ok(());
            }
            return self
                .api
                .send(Method::Post, &self.pull_path(number, "/notes"), Some(&body))
                .await
                .map(drop);
        };
        let path = self.pull_path(number, &format!("/discussions/{}", encoded(&thread.thread)));
        if !is_written {
            self.api.send(Method::Post, &format!("{path}/notes"), Some(&body)).await?;
        }
        if thread.resolve {
            self.api.send(Method::Put, &path, Some(&json!({ "resolved": true }))).await?;
        }
        Ok(())
    }

    async fn merge(&self, order: MergeOrder) -> Result<(), TrackerError> {
        let path = self.pull_path(order.number, "");
        let body = json!({
            "sha": order.head, "squash": order.method == MergeMethod::Squash,
            "should_remove_source_branch": order.delete.is_some(),
        });
        let refused = match self.api.send(Method::Put, &format!("{path}/merge"), Some(&body)).await {
            // A branch that cannot be merged is refused as a wrong request.
            Err(error)
                if matches!(error.kind, TrackerErrorKind::NotMergeable | TrackerErrorKind::Payload) =>
            {
                TrackerError { kind: TrackerErrorKind::NotMergeable, ..error }
            }
            done => return done.map(drop),
        };
        // It was merged by a request whose answer was lost.
        if self.api.get(&path).await?.body["state"] != "merged" {
            return Err(refused);
        }
        let Some(branch) = order.delete else { return Ok(()) };
        let path = self.path(&format!("/repository/branches/{}", encoded(&branch)));
        match self.api.send(Method::Delete, &path, None).await {
            Err(error) if error.kind == TrackerErrorKind::NotFound => Ok(()),
            done => done.map(drop),
        }
    }

    async fn label(&self, number: u64, label: &str, change: LabelChange) -> Result<(), TrackerError> {
        let path = self.pull_path(number, "");
        let entry = self.api.get(&path).await?.body;
        match label_change(&entry, label, change) {
            Some(change) => self.api.send(Method::Put, &path, Some(&change)).await.map(drop),
            None => Ok(()),
        }
    }
}

/// Whether a merge request can be merged. `None` while GitLab finds out, or waits for something that a rule asks for.
fn mergeable(entry: &Value) -> Option<bool> {
    match (entry["detailed_merge_status"].as_str(), entry["merge_status"].as_str()) {
        (Some("mergeable"), _) => Some(true),
        (Some("conflict" | "need_rebase" | "broken_status"), _) => Some(false),
        (Some(_), _) => None,
        // Before version 15.6.
        (None, Some("can_be_merged")) => Some(true),
        (None, Some("cannot_be_merged")) => Some(false),
        (None, _) => None,
    }
}

fn check(entry: &Value) -> Check {
    let conclusion = text(entry, "status");
    let status = match conclusion.as_str() {
        "success" | "skipped" => CheckStatus::Passing,
        "failed" | "canceled" | "manual" if entry["allow_failure"] == true => CheckStatus::Passing,
        "failed" | "canceled" => CheckStatus::Failing,
        _ => CheckStatus::Pending,
    };
    Check { name: text(entry, "name"), status, conclusion, details_url: text(entry, "target_url") }
}

fn review(user: &Value, verdict: ReviewVerdict) -> Review {
    let author = text(user, "username");
    let id = format!("{}-{author}", if verdict == ReviewVerdict::Approved { "approval" } else { "changes" });
    let (body, submitted_at) = (String::new(), String::new());
    Review { id, is_bot: is_bot(user), author, verdict, body, submitted_at }
}

/// A discussion that can be resolved.
fn thread(entry: &Value) -> Option<Thread> {
    let notes = entry["notes"].as_array()?;
    let first = notes.first().filter(|first| first["resolvable"] == true)?;
    let comment = |note: &Value| {
        Some(ThreadComment {
            id: note["id"].as_u64()?.to_string(),
            author: text(&note["author"], "username"),
            is_bot: is_bot(&note["author"]),
            body: text(note, "body"),
            created_at: text(note, "created_at"),
        })
    };
    let position = &first["position"];
    let line = |of: &Value| of["new_line"].as_u64().or(of["old_line"].as_u64());
    Some(Thread {
        id: entry["id"].as_str()?.to_owned(),
        is_resolved: first["resolved"] == true,
        // GitLab does not say so.
        is_outdated: false,
        file: position["new_path"].as_str().or(position["old_path"].as_str()).unwrap_or_default().to_owned(),
        start_line: line(&position["line_range"]["start"]),
        end_line: line(position),
        comments: notes.iter().filter(|note| note["system"] != true).filter_map(comment).collect(),
    })
}

/// A log of a job without colours and the marks of its sections.
fn plain(log: &str) -> String {
    let mut text = String::with_capacity(log.len());
    for line in log.lines() {
        // A carriage return begins the line anew.
        let line = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            text.push_str(before);
            let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |end| end + 1);
            rest = &after[end..];
        }
        text.push_str(rest);
        text.push('\n');
    }
    text
}

remote_forge!(GitLabForge);
