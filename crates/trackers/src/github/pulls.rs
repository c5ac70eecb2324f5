//! Pull requests of a GitHub repository: checks and reviews by REST, review threads by GraphQL.

use std::sync::Arc;
use std::time::Duration;

use hangar_workflow::reactions::PullConfig;
use serde_json::{Value, json};

use super::is_repository;
use crate::error::{TrackerError, TrackerErrorKind};
use crate::forge::{
    Check, CheckStatus, MergeOrder, PullDraft, PullName, PullRequest, PullState, Review, ReviewVerdict,
    Thread, ThreadAnswer, ThreadComment, tail,
};
use crate::http::{Api, Method, encoded, text};
use crate::kept::Kept;
use crate::remote::remote_forge;
use crate::{LabelChange, NewComment};

/// Largest page.
const PER_PAGE: usize = 100;
/// Most threads that are read, in pages of 100.
const MAX_THREAD_PAGES: usize = 10;
/// Time after which open threads are read again.
const THREADS_FRESH: Duration = Duration::from_secs(600);

const THREADS: &str = "query($owner: String!, $name: String!, $number: Int!, $after: String) { \
repository(owner: $owner, name: $name) { pullRequest(number: $number) { \
reviewThreads(first: 100, after: $after) { pageInfo { hasNextPage endCursor } \
nodes { id isResolved isOutdated path startLine line \
comments(first: 100) { nodes { databaseId body createdAt author { __typename login } } } } } } } }";

const RESOLVE: &str = "mutation($thread: ID!) { resolveReviewThread(input: { threadId: $thread }) { thread { id isResolved } } }";

#[derive(Clone)]
pub struct GitHubForge(Arc<Inner>);

struct Inner {
    api: Api,
    owner: String,
    name: String,
    /// Threads as they were when the pull request last changed.
    threads: Kept<Vec<Thread>>,
}

impl GitHubForge {
    pub fn new(config: &PullConfig) -> Result<Self, TrackerError> {
        if config.api_key.0.is_empty() && config.app.is_none() {
            let message = "`pull_requests.api_key` is missing; give it a token, such as `$GITHUB_TOKEN`";
            return Err(TrackerError::new(TrackerErrorKind::MissingApiKey, message));
        }
        let names = config.project.split_once('/').filter(|_| is_repository(&config.project));
        let Some((owner, name)) = names else {
            let message = "`pull_requests.project` must name the repository as `owner/name`";
            return Err(TrackerError::new(TrackerErrorKind::MissingProject, message));
        };
        Ok(Self(Arc::new(Inner {
            api: super::api(&config.endpoint, &config.api_key, config.app.as_ref(), &config.project)?,
            owner: owner.to_owned(),
            name: name.to_owned(),
            threads: Kept::default(),
        })))
    }
}

fn is_bot(user: &Value) -> bool {
    user["type"] == "Bot" || user["__typename"] == "Bot" || text(user, "login").ends_with("[bot]")
}

fn named(entry: &Value) -> Option<PullName> {
    let base = entry["base"]["ref"].as_str()?.to_owned();
    Some(PullName { number: entry["number"].as_u64()?, url: text(entry, "html_url"), base })
}

fn no_pull() -> TrackerError {
    TrackerError::new(TrackerErrorKind::Payload, "GitHub's answer is no pull request")
}

impl Inner {
    fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{}{rest}", self.owner, self.name)
    }

    /// The open pull request of a branch.
    async fn found(&self, branch: &str) -> Result<Option<PullName>, TrackerError> {
        let head = encoded(&format!("{}:{branch}", self.owner));
        let list = self.api.pages(&self.path(&format!("/pulls?state=open&head={head}&per_page=10"))).await?;
        Ok(list.iter().find(|entry| entry["head"]["ref"] == *branch).and_then(named))
    }

    async fn publish(&self, draft: PullDraft) -> Result<PullName, TrackerError> {
        let pull = match self.found(&draft.branch).await? {
            Some(found) => found,
            None => self.created(&draft).await?,
        };
        if !draft.labels.is_empty() {
            let path = self.path(&format!("/issues/{}/labels", pull.number));
            self.api.send(Method::Post, &path, Some(&json!({ "labels": draft.labels }))).await?;
        }
        Ok(pull)
    }

    async fn created(&self, draft: &PullDraft) -> Result<PullName, TrackerError> {
        let base = match &draft.base {
            Some(base) => base.clone(),
            None => text(&self.api.get(&self.path("")).await?.body, "default_branch"),
        };
        let body = json!({
            "title": draft.title, "head": draft.branch, "base": base, "body": draft.body, "draft": draft.draft,
        });
        let pull = match self.api.send(Method::Post, &self.path("/pulls"), Some(&body)).await {
            Ok(made) => named(&made).ok_or_else(no_pull)?,
            Err(error) if error.message.contains("No commits between") => {
                return Err(TrackerError::new(TrackerErrorKind::NothingToMerge, error.message));
            }
            // It was made by a request whose answer was lost.
            Err(error) if error.message.contains("already exists") => {
                return self.found(&draft.branch).await?.ok_or(error);
            }
            Err(error) => return Err(error),
        };
        if !draft.reviewers.is_empty() {
            let path = self.path(&format!("/pulls/{}/requested_reviewers", pull.number));
            let asked = json!({ "reviewers": draft.reviewers });
            // A name that GitHub does not know is no reason to lose the pull request.
            if let Err(error) = self.api.send(Method::Post, &path, Some(&asked)).await
                && error.kind != TrackerErrorKind::Payload
            {
                return Err(error);
            }
        }
        Ok(pull)
    }

    async fn look(&self, number: u64, log_lines: u32) -> Result<PullRequest, TrackerError> {
        let entry = self.api.get(&self.path(&format!("/pulls/{number}"))).await?.body;
        let head = entry["head"]["sha"].as_str().ok_or_else(no_pull)?.to_owned();
        let state = match entry["state"].as_str() {
            _ if entry["merged"] == true => PullState::Merged,
            Some("closed") => PullState::Closed,
            _ => PullState::Open,
        };
        let labels = entry["labels"].as_array().into_iter().flatten();
        let mut pull = PullRequest {
            number,
            url: text(&entry, "html_url"),
            state,
            is_draft: entry["draft"] == true,
            base: text(&entry["base"], "ref"),
            mergeable: entry["mergeable"].as_bool(),
            labels: labels.map(|label| text(label, "name").to_lowercase()).collect(),
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
        let reviews = self.path(&format!("/pulls/{number}/reviews?per_page={PER_PAGE}"));
        pull.reviews = self.api.pages(&reviews).await?.iter().filter_map(review).collect();
        pull.threads = self.threads(number, &text(&entry, "updated_at")).await?;
        Ok(pull)
    }

    async fn read_checks(&self, pull: &mut PullRequest, log_lines: u32) -> Result<(), TrackerError> {
        let commit = self.path(&format!("/commits/{}", pull.head));
        let runs = self.api.pages(&format!("{commit}/check-runs?per_page={PER_PAGE}")).await?;
        let statuses = self.api.pages(&format!("{commit}/status?per_page={PER_PAGE}")).await?;
        pull.checks = runs.iter().map(check_run).chain(statuses.iter().map(status)).collect();
        let failed = runs.iter().find(|run| check_run(run).status == CheckStatus::Failing);
        if let Some(failed) = failed.filter(|_| log_lines > 0) {
            pull.log_excerpt = tail(&self.log(failed).await?, log_lines);
        }
        Ok(())
    }

    /// Log of a check. Only those of GitHub Actions have one; others have a summary.
    async fn log(&self, run: &Value) -> Result<String, TrackerError> {
        let address = text(run, "details_url");
        let job = address.rsplit_once("/job/").map(|(_, job)| job.split(['/', '?']).next().unwrap_or(job));
        if let Some(job) = job.filter(|job| !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit()))
        {
            match self.api.text(&self.path(&format!("/actions/jobs/{job}/logs"))).await {
                // Old logs are gone, and a token may not be allowed to read them.
                Err(error) if matches!(error.kind, TrackerErrorKind::NotFound | TrackerErrorKind::Auth) => {}
                read => return read,
            }
        }
        let parts = ["title", "summary", "text"].map(|name| text(&run["output"], name));
        Ok(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
    }

    async fn threads(&self, number: u64, updated: &str) -> Result<Vec<Thread>, TrackerError> {
        // A person who resolves a thread does not change the date of the pull request.
        let fresh = |known: &Vec<Thread>| match known.iter().all(|thread| thread.is_resolved) {
            true => Duration::MAX,
            false => THREADS_FRESH,
        };
        if let Some(known) = self.threads.get(number, updated, fresh) {
            return Ok(known);
        }
        let (mut threads, mut after) = (Vec::new(), Value::Null);
        for _ in 0..MAX_THREAD_PAGES {
            let variables =
                json!({ "owner": self.owner, "name": self.name, "number": number, "after": after });
            let data = self.api.graphql(THREADS, variables).await?;
            let page = &data["repository"]["pullRequest"]["reviewThreads"];
            let nodes = page["nodes"].as_array().ok_or_else(no_pull)?;
            threads.extend(nodes.iter().filter_map(thread));
            if page["pageInfo"]["hasNextPage"] != true {
                break;
            }
            after = page["pageInfo"]["endCursor"].clone();
        }
        self.threads.put(number, updated, threads.clone());
        Ok(threads)
    }

    async fn answer(
        &self,
        number: u64,
        thread: Option<ThreadAnswer>,
        comment: NewComment,
    ) -> Result<(), TrackerError> {
        let (mark, body) = (comment.mark(), json!({ "body": comment.text() }));
        let has_mark = |entries: &[Value]| entries.iter().any(|entry| text(entry, "body").contains(&mark));
        self.threads.remove(number);
        let Some(thread) = thread else {
            let path = self.path(&format!("/issues/{number}/comments"));
            if has_mark(&self.api.pages(&format!("{path}?per_page={PER_PAGE}")).await?) {
                return Ok(());
            }
            return self.api.send(Method::Post, &path, Some(&body)).await.map(drop);
        };
        let path = self.path(&format!("/pulls/{number}/comments"));
        if !has_mark(&self.api.pages(&format!("{path}?per_page={PER_PAGE}")).await?) {
            self.api.send(Method::Post, &format!("{path}/{}/replies", thread.comment), Some(&body)).await?;
        }
        if thread.resolve {
            self.api.graphql(RESOLVE, json!({ "thread": thread.thread })).await?;
        }
        Ok(())
    }

    async fn merge(&self, order: MergeOrder) -> Result<(), TrackerError> {
        let path = self.path(&format!("/pulls/{}", order.number));
        let body = json!({ "sha": order.head, "merge_method": order.method.as_str() });
        match self.api.send(Method::Put, &format!("{path}/merge"), Some(&body)).await {
            // It was merged by a request whose answer was lost.
            Err(error) if error.kind == TrackerErrorKind::NotMergeable => {
                if self.api.get(&path).await?.body["merged"] != true {
                    return Err(error);
                }
            }
            done => drop(done?),
        }
        let Some(branch) = order.delete else { return Ok(()) };
        let reference = self.path(&format!(
            "/git/refs/heads/{}",
            branch.split('/').map(encoded).collect::<Vec<_>>().join("/")
        ));
        match self.api.send(Method::Delete, &reference, None).await {
            // The repository deletes merged branches itself.
            Err(error) if matches!(error.kind, TrackerErrorKind::Payload | TrackerErrorKind::NotFound) => {
                Ok(())
            }
            done => done.map(drop),
        }
    }

    async fn label(&self, number: u64, label: &str, change: LabelChange) -> Result<(), TrackerError> {
        let path = self.path(&format!("/issues/{number}/labels"));
        let done = match change {
            LabelChange::Add => self.api.send(Method::Post, &path, Some(&json!({ "labels": [label] }))).await,
            LabelChange::Remove => {
                self.api.send(Method::Delete, &format!("{path}/{}", encoded(label)), None).await
            }
        };
        match done {
            Err(error) if error.kind == TrackerErrorKind::NotFound && change == LabelChange::Remove => Ok(()),
            done => done.map(drop),
        }
    }
}

fn check_run(run: &Value) -> Check {
    let conclusion = text(run, "conclusion");
    let status = match (run["status"].as_str(), conclusion.as_str()) {
        (Some("completed"), "success" | "neutral" | "skipped") => CheckStatus::Passing,
        // A result for an older commit says nothing about this one.
        (Some("completed"), "stale") => CheckStatus::Pending,
        (Some("completed"), _) => CheckStatus::Failing,
        _ => CheckStatus::Pending,
    };
    Check { name: text(run, "name"), status, conclusion, details_url: text(run, "details_url") }
}

fn status(entry: &Value) -> Check {
    let conclusion = text(entry, "state");
    let status = match conclusion.as_str() {
        "success" => CheckStatus::Passing,
        "pending" => CheckStatus::Pending,
        _ => CheckStatus::Failing,
    };
    Check { name: text(entry, "context"), status, conclusion, details_url: text(entry, "target_url") }
}

fn review(entry: &Value) -> Option<Review> {
    let verdict = match entry["state"].as_str()? {
        "APPROVED" => ReviewVerdict::Approved,
        "CHANGES_REQUESTED" => ReviewVerdict::ChangesRequested,
        "COMMENTED" => ReviewVerdict::Commented,
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

fn thread(entry: &Value) -> Option<Thread> {
    let comments = entry["comments"]["nodes"].as_array()?.iter();
    let comment = |comment: &Value| {
        Some(ThreadComment {
            id: comment["databaseId"].as_u64()?.to_string(),
            author: text(&comment["author"], "login"),
            is_bot: is_bot(&comment["author"]),
            body: text(comment, "body"),
            created_at: text(comment, "createdAt"),
        })
    };
    Some(Thread {
        id: entry["id"].as_str()?.to_owned(),
        is_resolved: entry["isResolved"] == true,
        is_outdated: entry["isOutdated"] == true,
        file: text(entry, "path"),
        start_line: entry["startLine"].as_u64(),
        end_line: entry["line"].as_u64(),
        comments: comments.filter_map(comment).collect(),
    })
}

remote_forge!(GitHubForge);
