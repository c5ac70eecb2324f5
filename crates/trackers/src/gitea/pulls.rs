//! Pull requests of a Gitea or Forgejo repository: commit statuses, logs of actions, and threads, which are comments of reviews
//! on the same line.

use std::collections::HashMap;
use std::sync::Arc;

use hangar_workflow::reactions::PullConfig;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{LIMIT, Repository, raw_labels};
use crate::error::{TrackerError, TrackerErrorKind};
use crate::forge::{
    Check, CheckStatus, MergeOrder, PullDraft, PullName, PullRequest, PullState, Review, ReviewVerdict,
    Thread, ThreadAnswer, ThreadComment, tail,
};
use crate::http::{Method, encoded, text};
use crate::remote::remote_forge;
use crate::{LabelChange, NewComment};

/// Mark of an answer after which a thread counts as resolved, on servers that cannot resolve threads.
const RESOLVED: &str = "<!-- hangar:resolved -->";
/// Most pull requests that are remembered as not mergeable.
const MAX_DOUBTS: usize = 1000;

#[derive(Clone)]
pub struct GiteaForge(Arc<Inner>);

struct Inner {
    repository: Repository,
    /// Head and base of pull requests that could not be merged when they were last read.
    doubts: Mutex<HashMap<u64, String>>,
}

impl GiteaForge {
    pub fn new(config: &PullConfig) -> Result<Self, TrackerError> {
        let block = "pull_requests";
        let repository = Repository::new(block, &config.endpoint, &config.api_key.0, &config.project)?;
        Ok(Self(Arc::new(Inner { repository, doubts: Mutex::default() })))
    }
}

fn no_pull() -> TrackerError {
    TrackerError::new(TrackerErrorKind::Payload, "Gitea's answer is no pull request")
}

fn named(entry: &Value) -> Option<PullName> {
    let base = entry["base"]["ref"].as_str()?.to_owned();
    Some(PullName { number: entry["number"].as_u64()?, url: text(entry, "html_url"), base })
}

fn is_bot(user: &Value) -> bool {
    let name = text(user, "login").to_lowercase();
    name.ends_with("[bot]") || ["gitea-actions", "forgejo-actions"].contains(&name.as_str())
}

/// Whether a server does not know a path.
fn is_unknown(error: &TrackerError) -> bool {
    matches!(error.kind, TrackerErrorKind::NotFound | TrackerErrorKind::NotMergeable)
}

/// A branch in a path.
fn branch_path(branch: &str) -> String {
    branch.split('/').map(encoded).collect::<Vec<_>>().join("/")
}

/// Comments on one line, oldest first.
struct Conversation {
    comments: Vec<Value>,
}

impl Conversation {
    fn first(&self) -> &Value {
        &self.comments[0]
    }

    fn is_resolved(&self) -> bool {
        let last = self.comments.last();
        !self.first()["resolver"].is_null() || last.is_some_and(|last| text(last, "body").contains(RESOLVED))
    }

    /// Whether a comment is a part of it: it is about the same line, and does not begin anew after the end.
    fn takes(&self, comment: &Value) -> bool {
        let place =
            |of: &Value| (of["path"].clone(), of["position"].clone(), of["original_position"].clone());
        let review = |of: &Value| of["pull_request_review_id"].clone();
        let is_known = self.comments.iter().any(|known| review(known) == review(comment));
        place(self.first()) == place(comment) && (is_known || !self.is_resolved())
    }
}

impl Inner {
    fn path(&self, rest: &str) -> String {
        self.repository.path(rest)
    }

    async fn get(&self, rest: &str) -> Result<Value, TrackerError> {
        Ok(self.repository.api.get(&self.path(rest)).await?.body)
    }

    async fn post(&self, rest: &str, body: &Value) -> Result<Value, TrackerError> {
        self.repository.api.send(Method::Post, &self.path(rest), Some(body)).await
    }

    /// The open pull request of a branch.
    async fn found(&self, branch: &str) -> Result<Option<PullName>, TrackerError> {
        let list = self.repository.api.pages(&self.path(&format!("/pulls?state=open&limit={LIMIT}"))).await?;
        Ok(list.iter().find(|entry| entry["head"]["ref"] == *branch).and_then(named))
    }

    async fn publish(&self, draft: PullDraft) -> Result<PullName, TrackerError> {
        let pull = match self.found(&draft.branch).await? {
            Some(found) => found,
            None => self.created(&draft).await?,
        };
        for label in &draft.labels {
            self.label(pull.number, label, LabelChange::Add).await?;
        }
        Ok(pull)
    }

    async fn created(&self, draft: &PullDraft) -> Result<PullName, TrackerError> {
        let base = match &draft.base {
            Some(base) => base.clone(),
            None => text(&self.get("").await?, "default_branch"),
        };
        let nothing = |message: String| TrackerError::new(TrackerErrorKind::NothingToMerge, message);
        // Some versions open pull requests without commits.
        let range = format!("/compare/{}...{}", branch_path(&base), branch_path(&draft.branch));
        match self.get(&range).await {
            Ok(compared) if compared["total_commits"] == 0 => {
                return Err(nothing(format!("`{}` has no commits that `{base}` lacks", draft.branch)));
            }
            Err(error) if !is_unknown(&error) => return Err(error),
            _ => {}
        }
        let title = if draft.draft { format!("WIP: {}", draft.title) } else { draft.title.clone() };
        let body = json!({ "title": title, "head": draft.branch, "base": base, "body": draft.body });
        let pull = match self.post("/pulls", &body).await {
            Ok(made) => named(&made).ok_or_else(no_pull)?,
            Err(error) if error.message.contains("no changes between") => return Err(nothing(error.message)),
            // It was made by a request whose answer was lost.
            Err(error) if error.message.contains("already exists") => {
                return self.found(&draft.branch).await?.ok_or(error);
            }
            Err(error) => return Err(error),
        };
        if !draft.reviewers.is_empty() {
            let asked = json!({ "reviewers": draft.reviewers });
            // A name that the server does not know is no reason to lose the pull request.
            if let Err(error) =
                self.post(&format!("/pulls/{}/requested_reviewers", pull.number), &asked).await
                && !is_unknown(&error)
                && error.kind != TrackerErrorKind::Payload
            {
                return Err(error);
            }
        }
        Ok(pull)
    }

    async fn look(&self, number: u64, log_lines: u32) -> Result<PullRequest, TrackerError> {
        let entry = self.get(&format!("/pulls/{number}")).await?;
        let head = entry["head"]["sha"].as_str().ok_or_else(no_pull)?.to_owned();
        let state = match entry["state"].as_str() {
            _ if entry["merged"] == true => PullState::Merged,
            Some("closed") => PullState::Closed,
            _ => PullState::Open,
        };
        let mut pull = PullRequest {
            number,
            url: text(&entry, "html_url"),
            state,
            is_draft: entry["draft"] == true,
            base: text(&entry["base"], "ref"),
            mergeable: self.mergeable(number, &entry),
            labels: raw_labels(&entry).map(|(_, name)| name.to_lowercase()).collect(),
            checks: Vec::new(),
            log_excerpt: String::new(),
            threads: Vec::new(),
            reviews: Vec::new(),
            head,
        };
        if state != PullState::Open {
            return Ok(pull);
        }
        self.read_checks(&mut pull, log_lines).await?;
        let reviews = self.reviews(number).await?;
        pull.reviews = reviews.iter().filter_map(review).collect();
        pull.threads = self.conversations(number, &reviews).await?.iter().filter_map(thread).collect();
        Ok(pull)
    }

    /// Whether a pull request can be merged. The answer of the server is no while it finds out, and counts when it is repeated.
    fn mergeable(&self, number: u64, entry: &Value) -> Option<bool> {
        let mut doubts = self.doubts.lock();
        if entry["mergeable"] == true {
            doubts.remove(&number);
            return Some(true);
        }
        // One that is not ready is never mergeable.
        if entry["draft"] == true {
            return None;
        }
        let key = format!("{} {}", text(&entry["head"], "sha"), text(&entry["base"], "sha"));
        if doubts.len() >= MAX_DOUBTS {
            doubts.clear();
        }
        let before = doubts.insert(number, key.clone());
        (before == Some(key)).then_some(false)
    }

    async fn read_checks(&self, pull: &mut PullRequest, log_lines: u32) -> Result<(), TrackerError> {
        let path = self.path(&format!("/commits/{}/status?limit={LIMIT}", pull.head));
        let statuses = self.repository.api.pages(&path).await?;
        pull.checks = statuses.iter().map(check).collect();
        let failed = statuses.iter().find(|status| check(status).status == CheckStatus::Failing);
        if let Some(failed) = failed.filter(|_| log_lines > 0) {
            let log = match self.log(&pull.head).await {
                Ok(log) => log,
                Err(error) if is_unknown(&error) || error.kind == TrackerErrorKind::Auth => None,
                Err(error) => return Err(error),
            };
            pull.log_excerpt = tail(&log.unwrap_or_else(|| text(failed, "description")), log_lines);
        }
        Ok(())
    }

    /// Log of the first failed job of the actions of a commit. Servers before Gitea 1.24 have none, and Forgejo has none.
    async fn log(&self, commit: &str) -> Result<Option<String>, TrackerError> {
        let api = &self.repository.api;
        let runs = api.pages(&self.path(&format!("/actions/runs?head_sha={commit}&limit={LIMIT}"))).await?;
        for run in runs.iter().filter_map(|run| run["id"].as_u64()) {
            let jobs = api.pages(&self.path(&format!("/actions/runs/{run}/jobs?limit={LIMIT}"))).await?;
            let failed = jobs.iter().find(|job| job["conclusion"] == "failure");
            if let Some(job) = failed.and_then(|job| job["id"].as_u64()) {
                return api.text(&self.path(&format!("/actions/jobs/{job}/logs"))).await.map(Some);
            }
        }
        Ok(None)
    }

    async fn reviews(&self, number: u64) -> Result<Vec<Value>, TrackerError> {
        self.repository.api.pages(&self.path(&format!("/pulls/{number}/reviews?limit={LIMIT}"))).await
    }

    async fn conversations(&self, number: u64, reviews: &[Value]) -> Result<Vec<Conversation>, TrackerError> {
        let mut comments = Vec::new();
        for review in reviews.iter().filter(|review| review["comments_count"] != 0) {
            let id = review["id"].as_u64().unwrap_or_default();
            let found = self.get(&format!("/pulls/{number}/reviews/{id}/comments")).await?;
            comments.extend(found.as_array().cloned().unwrap_or_default());
        }
        comments.sort_by_key(|comment| comment["id"].as_u64());
        let mut all: Vec<Conversation> = Vec::new();
        for comment in comments {
            match all.iter_mut().rev().find(|known| known.takes(&comment)) {
                Some(known) => known.comments.push(comment),
                None => all.push(Conversation { comments: vec![comment] }),
            }
        }
        Ok(all)
    }

    async fn answer(
        &self,
        number: u64,
        thread: Option<ThreadAnswer>,
        comment: NewComment,
    ) -> Result<(), TrackerError> {
        let Some(thread) = thread else {
            return self.repository.comment(&number.to_string(), &comment).await;
        };
        let reviews = self.reviews(number).await?;
        let all = self.conversations(number, &reviews).await?;
        let is_it = |known: &&Conversation| known.first()["id"].as_u64() == thread.comment.parse().ok();
        let Some(found) = all.iter().find(is_it) else { return Ok(()) };
        let first = found.first();
        let mut body = comment.text();
        if thread.resolve {
            match self.post(&format!("/pulls/comments/{}/resolve", thread.comment), &json!({})).await {
                Err(error) if is_unknown(&error) => body = format!("{body}\n{RESOLVED}"),
                done => drop(done?),
            }
        }
        let mark = comment.mark();
        if found.comments.iter().any(|known| text(known, "body").contains(&mark)) {
            return Ok(());
        }
        let replied = self
            .post(&format!("/pulls/{number}/comments/{}/replies", thread.comment), &json!({ "body": body }))
            .await;
        match replied {
            // An older server: another comment on the same line.
            Err(error) if is_unknown(&error) => {
                let comment = json!({
                    "path": first["path"], "body": body, "new_position": first["position"],
                    "old_position": first["original_position"],
                });
                let review = json!({ "event": "COMMENT", "body": "", "comments": [comment] });
                self.post(&format!("/pulls/{number}/reviews"), &review).await.map(drop)
            }
            done => done.map(drop),
        }
    }

    async fn merge(&self, order: MergeOrder) -> Result<(), TrackerError> {
        let path = format!("/pulls/{}", order.number);
        let body = json!({
            "Do": order.method.as_str(), "head_commit_id": order.head,
            "delete_branch_after_merge": order.delete.is_some(),
        });
        let refused = match self.post(&format!("{path}/merge"), &body).await {
            Err(error) if error.kind == TrackerErrorKind::NotMergeable => error,
            done => return done.map(drop),
        };
        // It was merged by a request whose answer was lost.
        if self.get(&path).await?["merged"] != true {
            return Err(refused);
        }
        let Some(branch) = order.delete else { return Ok(()) };
        let path = self.path(&format!("/branches/{}", branch_path(&branch)));
        match self.repository.api.send(Method::Delete, &path, None).await {
            Err(error) if error.kind == TrackerErrorKind::NotFound => Ok(()),
            done => done.map(drop),
        }
    }

    async fn label(&self, number: u64, label: &str, change: LabelChange) -> Result<(), TrackerError> {
        let entry = self.repository.entry(&number.to_string()).await?;
        self.repository.relabel(&entry, label, change).await
    }
}

fn check(entry: &Value) -> Check {
    let conclusion = text(entry, "status");
    let status = match conclusion.as_str() {
        "success" | "warning" | "skipped" => CheckStatus::Passing,
        "failure" | "error" => CheckStatus::Failing,
        _ => CheckStatus::Pending,
    };
    Check { name: text(entry, "context"), status, conclusion, details_url: text(entry, "target_url") }
}

fn review(entry: &Value) -> Option<Review> {
    let verdict = match entry["state"].as_str()? {
        _ if entry["dismissed"] == true => ReviewVerdict::Void,
        "APPROVED" => ReviewVerdict::Approved,
        "REQUEST_CHANGES" => ReviewVerdict::ChangesRequested,
        "COMMENT" => ReviewVerdict::Commented,
        _ => ReviewVerdict::Void,
    };
    Some(Review {
        id: entry["id"].as_u64()?.to_string(),
        author: text(&entry["user"], "login"),
        is_bot: is_bot(&entry["user"]),
        verdict,
        body: text(entry, "body"),
        submitted_at: text(entry, "submitted_at"),
    })
}

fn thread(found: &Conversation) -> Option<Thread> {
    let first = found.first();
    let comment = |entry: &Value| {
        Some(ThreadComment {
            id: entry["id"].as_u64()?.to_string(),
            author: text(&entry["user"], "login"),
            is_bot: is_bot(&entry["user"]),
            body: text(entry, "body"),
            created_at: text(entry, "created_at"),
        })
    };
    let line = |name: &str| first[name].as_u64().filter(|line| *line > 0);
    Some(Thread {
        id: first["id"].as_u64()?.to_string(),
        is_resolved: found.is_resolved(),
        // The API does not say so.
        is_outdated: false,
        file: text(first, "path"),
        start_line: None,
        end_line: line("position").or_else(|| line("original_position")),
        comments: found.comments.iter().filter_map(comment).collect(),
    })
}

remote_forge!(GiteaForge);
