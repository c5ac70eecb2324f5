//! Issues of a GitHub repository. The state of an issue is one of its labels, or a field of a project.

mod app;
mod board;
mod pulls;

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::FutureExt;
use hangar_workflow::config::{AppConfig, TrackerConfig, WorkflowSecret};
use serde_json::{Value, json};

use self::board::Board;
use crate::blockers::Blockers;
use crate::error::{TrackerError, TrackerErrorKind};
use crate::http::{Api, Method, Service, encoded};
use crate::issue::{Blocker, Comment, Issue, IssueId, number};
use crate::label_states::LabelStates;
use crate::remote::{IssueWords, comment_once, create_once, remote_tracker};
use crate::{LabelChange, NewComment, NewIssue};

pub use app::AppTokens;
pub use pulls::GitHubForge;

const VERSION: &str = "2022-11-28";
const ENDPOINT: &str = "https://api.github.com";
const PER_PAGE: usize = 50;

#[derive(Clone)]
pub struct GitHubTracker(Arc<Inner>);

struct Inner {
    api: Api,
    /// `owner/name`.
    repository: String,
    query: String,
    states: LabelStates,
    blockers: Blockers,
    /// Project whose field is the state, instead of labels.
    board: Option<Board>,
}

impl GitHubTracker {
    pub fn new(config: &TrackerConfig) -> Result<Self, TrackerError> {
        if config.api_key.0.is_empty() && config.app.is_none() {
            let message = "`tracker.api_key` is missing; give it a token, such as `$GITHUB_TOKEN`, or set `tracker.app`";
            return Err(TrackerError::new(TrackerErrorKind::MissingApiKey, message));
        }
        if !is_repository(&config.project) {
            let message = "`tracker.project` must name the repository as `owner/name`";
            return Err(TrackerError::new(TrackerErrorKind::MissingProject, message));
        }
        Ok(Self(Arc::new(Inner {
            api: api(&config.endpoint, &config.api_key, config.app.as_ref(), &config.project)?,
            repository: config.project.clone(),
            query: config.query_filter.clone(),
            states: LabelStates::new(config),
            blockers: Blockers::default(),
            board: Board::of(config)?,
        })))
    }
}

/// Whether a text has the form `owner/name`.
pub(crate) fn is_repository(project: &str) -> bool {
    let is_name = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !part.is_empty() && !part.starts_with('.') && part.chars().all(plain)
    };
    project.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name))
}

/// The API with a token, or with those of an app.
fn api(
    endpoint: &str,
    key: &WorkflowSecret,
    app: Option<&AppConfig>,
    repository: &str,
) -> Result<Api, TrackerError> {
    match app.filter(|_| key.0.is_empty()) {
        Some(app) => {
            let tokens = AppTokens::new(app, endpoint, repository)?;
            Api::with(service(endpoint, None), Some(Arc::new(tokens)))
        }
        None => Api::new(service(endpoint, Some(&key.0))),
    }
}

fn service(endpoint: &str, token: Option<&str>) -> Service {
    let endpoint = if endpoint.is_empty() { ENDPOINT } else { endpoint.trim_end_matches('/') };
    let mut headers = vec![
        ("accept", "application/vnd.github+json".to_owned()),
        ("x-github-api-version", VERSION.to_owned()),
    ];
    headers.extend(token.map(|token| ("authorization", format!("Bearer {token}"))));
    Service { name: "GitHub", endpoint: endpoint.to_owned(), headers }
}

impl Inner {
    fn path(&self, rest: &str) -> String {
        format!("/repos/{}/issues{rest}", self.repository)
    }

    /// Normalises an issue. `None` for pull requests, which the same lists contain.
    fn issue(&self, entry: &Value) -> Option<Issue> {
        if entry.get("pull_request").is_some_and(|pull| !pull.is_null()) {
            return None;
        }
        let number = entry["number"].as_u64()?.to_string();
        let text = |name: &str| entry[name].as_str().map(str::to_owned);
        let labels: Vec<String> = entry["labels"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|label| label["name"].as_str().or(label.as_str()))
            .map(str::to_lowercase)
            .collect();
        let state = self.states.state_of(&labels, entry["state"] == "closed");
        let mut issue = Issue::new(&number, &number, &text("title")?, &state);
        issue.display_id = format!("{}#{number}", self.repository);
        issue.description = text("body").unwrap_or_default();
        issue.url = text("html_url");
        issue.labels = labels;
        issue.assignee = entry["assignee"]["login"].as_str().map(str::to_owned);
        issue.issue_type = entry["type"]["name"].as_str().map(str::to_owned);
        issue.created_at = text("created_at");
        issue.updated_at = text("updated_at");
        Some(issue)
    }

    /// Issues of a list in some states, with their blockers. The list says which have any.
    async fn with_blockers(
        &self,
        entries: &[Value],
        wanted: Option<&[String]>,
    ) -> Result<Vec<Issue>, TrackerError> {
        let count = |entry: &Value, block: &str, name: &str| entry[block][name].as_u64().unwrap_or(0);
        let has_any = |entry: &&Value| {
            count(entry, "issue_dependencies_summary", "blocked_by") > 0
                || count(entry, "sub_issues_summary", "total")
                    > count(entry, "sub_issues_summary", "completed")
        };
        let blocked: HashSet<String> =
            entries.iter().filter(has_any).map(|entry| entry["number"].to_string()).collect();
        let statuses = match (&self.board, wanted, entries) {
            (None, _, _) => None,
            (Some(board), Some(_), _) => Some(board.statuses(&self.api).await?),
            (Some(board), None, entries) => {
                let number = entries.first().and_then(|entry| entry["number"].as_u64()).unwrap_or_default();
                let status = board.status(&self.api, number).await?;
                Some(status.map(|status| (number, status)).into_iter().collect())
            }
        };
        let issues = entries.iter().filter_map(|entry| {
            let mut issue = self.issue(entry)?;
            if let Some(statuses) = &statuses {
                let status = entry["number"].as_u64().and_then(|number| statuses.get(&number));
                issue.state = self.states.known(status.map(String::as_str), entry["state"] == "closed");
            }
            Some(issue)
        });
        let mut issues: Vec<Issue> =
            issues.filter(|issue| wanted.is_none_or(|states| issue.is_in(states))).collect();
        let read = |number: u64| self.blockers_of(number).boxed();
        let having = issues.iter_mut().filter(|issue| blocked.contains(&issue.id.0));
        self.blockers.add(having, &self.states, read).await?;
        // Blockers on the board have its states too.
        for blocker in issues.iter_mut().flat_map(|issue| &mut issue.blocked_by) {
            let is_ours = blocker.identifier == format!("{}#{}", self.repository, blocker.id);
            let status = statuses.as_ref().filter(|_| is_ours && !self.states.is_terminal(&blocker.state));
            if let Some(status) = status.and_then(|known| known.get(&blocker.id.parse().ok()?)) {
                blocker.state.clone_from(status);
            }
        }
        Ok(issues)
    }

    /// Issues that an issue is marked as blocked by, and its open sub-issues.
    async fn blockers_of(&self, number: u64) -> Result<Vec<Blocker>, TrackerError> {
        let mut found = Vec::new();
        for of in ["dependencies/blocked_by", "sub_issues"] {
            let path = self.path(&format!("/{number}/{of}?per_page={PER_PAGE}"));
            match self.api.pages(&path).await {
                Ok(entries) => found.extend(entries),
                // A server of one's own may be too old.
                Err(error) if error.kind == TrackerErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let blocker = |entry: &Value| {
            let issue = self.issue(entry)?;
            // One in another repository has an address elsewhere.
            let other = issue.url.as_deref().and_then(|url| url.split("/issues/").next()).map(|site| {
                let mut parts = site.rsplit('/');
                let name = parts.next().unwrap_or_default();
                format!("{}/{name}#{}", parts.next().unwrap_or_default(), issue.id)
            });
            let identifier = other.unwrap_or(issue.display_id);
            Some(Blocker { id: issue.id.0, identifier, state: issue.state })
        };
        Ok(found.iter().filter_map(blocker).collect())
    }

    async fn open_issues(&self) -> Result<Vec<Value>, TrackerError> {
        if self.query.is_empty() {
            let path = format!("?state=open&sort=created&direction=asc&per_page={PER_PAGE}");
            return self.api.pages(&self.path(&path)).await;
        }
        let query = format!("repo:{} is:issue is:open {}", self.repository, self.query);
        let query = encoded(&query);
        self.api.pages(&format!("/search/issues?q={query}&sort=created&order=asc&per_page={PER_PAGE}")).await
    }

    async fn closed_issues(&self) -> Result<Vec<Value>, TrackerError> {
        let path = format!("?state=closed&sort=updated&direction=desc&per_page={PER_PAGE}");
        Ok(self.api.get(&self.path(&path)).await?.body.as_array().cloned().unwrap_or_default())
    }

    async fn comments(&self, number: &str) -> Result<Vec<Comment>, TrackerError> {
        let entries = self.api.pages(&self.path(&format!("/{number}/comments?per_page={PER_PAGE}"))).await?;
        let comment = |entry: &Value| {
            Some(Comment {
                id: entry["id"].as_u64()?.to_string(),
                author: entry["user"]["login"].as_str().unwrap_or_default().to_owned(),
                body: entry["body"].as_str().unwrap_or_default().to_owned(),
                created_at: entry["created_at"].as_str().unwrap_or_default().to_owned(),
            })
        };
        Ok(entries.iter().filter_map(comment).collect())
    }

    async fn one(&self, id: &IssueId) -> Result<Option<Issue>, TrackerError> {
        let Ok(number) = number(id) else { return Ok(None) };
        let entry = match self.api.get(&self.path(&format!("/{number}"))).await {
            Ok(page) => page.body,
            Err(error) if error.kind == TrackerErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = self.with_blockers(std::slice::from_ref(&entry), None).await?;
        let Some(issue) = found.into_iter().next() else { return Ok(None) };
        let has_comments = entry["comments"].as_u64().is_none_or(|count| count > 0);
        let comments = if has_comments { self.comments(number).await? } else { Vec::new() };
        Ok(Some(Issue { comments: Some(comments), ..issue }))
    }

    async fn remove_label(&self, number: &str, label: &str) -> Result<(), TrackerError> {
        let path = self.path(&format!("/{number}/labels/{}", encoded(label)));
        match self.api.send(Method::Delete, &path, None).await {
            Err(error) if error.kind == TrackerErrorKind::NotFound => Ok(()),
            done => done.map(drop),
        }
    }

    async fn add_label(&self, number: &str, label: &str) -> Result<(), TrackerError> {
        let body = json!({ "labels": [label] });
        self.api.send(Method::Post, &self.path(&format!("/{number}/labels")), Some(&body)).await.map(drop)
    }

    /// Makes a state the only one among the labels.
    async fn relabel(&self, issue: &Issue, number: &str, state: &str) -> Result<(), TrackerError> {
        // The new label first: an issue is never without a state.
        if !issue.labels.contains(&state.to_lowercase()) {
            self.add_label(number, state).await?;
        }
        for old in issue.labels.iter().filter(|label| self.states.is_other(label, state)) {
            self.remove_label(number, old).await?;
        }
        Ok(())
    }

    async fn transition(&self, id: &IssueId, state: &str) -> Result<(), TrackerError> {
        let number = number(id)?;
        let entry = self.api.get(&self.path(&format!("/{number}"))).await?.body;
        let missing = || TrackerError::new(TrackerErrorKind::NotFound, format!("`{id}` is no issue"));
        let issue = self.issue(&entry).ok_or_else(missing)?;
        match &self.board {
            Some(board) => board.set(&self.api, number.parse().unwrap_or_default(), state).await?,
            None => self.relabel(&issue, number, state).await?,
        }
        let open = if self.states.is_terminal(state) { "closed" } else { "open" };
        if entry["state"] == open {
            return Ok(());
        }
        let (path, change) = (self.path(&format!("/{number}")), json!({ "state": open }));
        self.api.send(Method::Patch, &path, Some(&change)).await.map(drop)
    }

    async fn listed(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        let is_open = |state: &String| !self.states.is_terminal(state);
        let mut entries = if states.iter().any(is_open) { self.open_issues().await? } else { Vec::new() };
        if !states.iter().all(is_open) {
            entries.extend(self.closed_issues().await?);
        }
        self.with_blockers(&entries, Some(states)).await
    }

    async fn comment(&self, id: &IssueId, comment: &NewComment) -> Result<(), TrackerError> {
        let number = number(id)?;
        let known = self.comments(number).await?;
        comment_once(&self.api, &self.path(&format!("/{number}/comments")), &known, comment).await
    }

    async fn label(&self, id: &IssueId, label: &str, change: LabelChange) -> Result<(), TrackerError> {
        let (number, label) = (number(id)?, label.to_lowercase());
        match change {
            LabelChange::Add => self.add_label(number, &label).await,
            LabelChange::Remove => self.remove_label(number, &label).await,
        }
    }

    async fn create(&self, draft: &NewIssue) -> Result<IssueId, TrackerError> {
        let newest = self.path(&format!("?state=all&sort=created&direction=desc&per_page={PER_PAGE}"));
        let words = IssueWords { text: "body", number: "number" };
        create_once(&self.api, (&newest, &self.path("")), &words, draft).await
    }
}

remote_tracker!(GitHubTracker, one_by_one);
