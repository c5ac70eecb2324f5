//! Issues of a GitHub repository. The state of an issue is the one of its labels that the workflow names as a state, or else
//! `open` or `closed`.

mod pulls;

use std::sync::Arc;

use hangar_workflow::config::TrackerConfig;
use serde_json::{Value, json};

use crate::error::{TrackerError, TrackerErrorKind};
use crate::http::{Api, Method, Service};
use crate::issue::{Comment, Issue, IssueId};
use crate::{IssueReader, IssueWriter, LabelChange, NewComment, NewIssue, Reading};

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
    /// Labels that are states.
    states: Vec<String>,
    terminal: Vec<String>,
}

impl GitHubTracker {
    pub fn new(config: &TrackerConfig) -> Result<Self, TrackerError> {
        if config.api_key.0.is_empty() {
            let message = "`tracker.api_key` is missing; give it a token, such as `$GITHUB_TOKEN`";
            return Err(TrackerError::new(TrackerErrorKind::MissingApiKey, message));
        }
        if !is_repository(&config.project) {
            let message = "`tracker.project` must name the repository as `owner/name`";
            return Err(TrackerError::new(TrackerErrorKind::MissingProject, message));
        }
        let named = config.active_states.iter().chain(&config.terminal_states).chain(&config.handoff_state);
        Ok(Self(Arc::new(Inner {
            api: Api::new(service(&config.endpoint, &config.api_key.0))?,
            repository: config.project.clone(),
            query: config.query_filter.clone(),
            states: named.cloned().collect(),
            terminal: config.terminal_states.clone(),
        })))
    }
}

/// Whether a text has the form `owner/name`.
fn is_repository(project: &str) -> bool {
    let is_name = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !part.is_empty() && !part.starts_with('.') && part.chars().all(plain)
    };
    project.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name))
}

fn service(endpoint: &str, token: &str) -> Service {
    let endpoint = if endpoint.is_empty() { ENDPOINT } else { endpoint.trim_end_matches('/') };
    Service {
        name: "GitHub",
        endpoint: endpoint.to_owned(),
        headers: vec![
            ("authorization", format!("Bearer {token}")),
            ("accept", "application/vnd.github+json".to_owned()),
            ("x-github-api-version", VERSION.to_owned()),
        ],
    }
}

/// Number of an issue as it is written in paths. An id of another tracker is none.
fn number(id: &IssueId) -> Result<&str, TrackerError> {
    let plain = !id.0.is_empty() && id.0.len() <= 12 && id.0.bytes().all(|byte| byte.is_ascii_digit());
    let missing =
        || TrackerError::new(TrackerErrorKind::NotFound, format!("`{id}` is no number of an issue"));
    plain.then_some(id.0.as_str()).ok_or_else(missing)
}

impl Inner {
    fn path(&self, rest: &str) -> String {
        format!("/repos/{}/issues{rest}", self.repository)
    }

    fn is_terminal(&self, state: &str) -> bool {
        self.terminal.iter().any(|known| known.eq_ignore_ascii_case(state))
    }

    fn state_of(&self, labels: &[String], state: &str) -> String {
        let named = self.states.iter().find(|known| labels.contains(&known.to_lowercase()));
        match named {
            // A closed issue is over, whichever label was left on it.
            Some(named) if state != "closed" || self.is_terminal(named) => named.clone(),
            _ if state == "closed" => self.terminal.first().cloned().unwrap_or_else(|| "closed".to_owned()),
            _ => "open".to_owned(),
        }
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
        let state = self.state_of(&labels, entry["state"].as_str().unwrap_or("open"));
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

    async fn open_issues(&self) -> Result<Vec<Value>, TrackerError> {
        if self.query.is_empty() {
            let path = format!("?state=open&sort=created&direction=asc&per_page={PER_PAGE}");
            return self.api.pages(&self.path(&path)).await;
        }
        let query = format!("repo:{} is:issue is:open {}", self.repository, self.query);
        let query = percent_encoding::utf8_percent_encode(&query, percent_encoding::NON_ALPHANUMERIC);
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
        let Some(issue) = self.issue(&entry) else { return Ok(None) };
        let has_comments = entry["comments"].as_u64().is_none_or(|count| count > 0);
        let comments = if has_comments { self.comments(number).await? } else { Vec::new() };
        Ok(Some(Issue { comments: Some(comments), ..issue }))
    }

    async fn remove_label(&self, number: &str, label: &str) -> Result<(), TrackerError> {
        let label = percent_encoding::utf8_percent_encode(label, percent_encoding::NON_ALPHANUMERIC);
        let path = self.path(&format!("/{number}/labels/{label}"));
        match self.api.send(Method::Delete, &path, None).await {
            Err(error) if error.kind == TrackerErrorKind::NotFound => Ok(()),
            done => done.map(drop),
        }
    }

    async fn add_label(&self, number: &str, label: &str) -> Result<(), TrackerError> {
        let body = json!({ "labels": [label] });
        self.api.send(Method::Post, &self.path(&format!("/{number}/labels")), Some(&body)).await.map(drop)
    }

    async fn transition(&self, id: &IssueId, state: &str) -> Result<(), TrackerError> {
        let number = number(id)?;
        let entry = self.api.get(&self.path(&format!("/{number}"))).await?.body;
        let missing = || TrackerError::new(TrackerErrorKind::NotFound, format!("`{id}` is no issue"));
        let issue = self.issue(&entry).ok_or_else(missing)?;
        let wanted = state.to_lowercase();
        // The new label first: an issue is never without a state.
        if !issue.labels.contains(&wanted) {
            self.add_label(number, state).await?;
        }
        for old in self.states.iter().map(|known| known.to_lowercase()) {
            if old != wanted && issue.labels.contains(&old) {
                self.remove_label(number, &old).await?;
            }
        }
        let open = if self.is_terminal(state) { "closed" } else { "open" };
        if entry["state"] == open {
            return Ok(());
        }
        let (path, change) = (self.path(&format!("/{number}")), json!({ "state": open }));
        self.api.send(Method::Patch, &path, Some(&change)).await.map(drop)
    }
}

impl IssueReader for GitHubTracker {
    fn by_states(&self, states: &[String]) -> Reading<Vec<Issue>> {
        let (inner, states) = (Arc::clone(&self.0), states.to_vec());
        Box::pin(async move {
            if states.is_empty() {
                return Ok(Vec::new());
            }
            let is_open = |state: &String| !inner.is_terminal(state);
            let mut entries =
                if states.iter().any(is_open) { inner.open_issues().await? } else { Vec::new() };
            if !states.iter().all(is_open) {
                entries.extend(inner.closed_issues().await?);
            }
            let issues = entries.iter().filter_map(|entry| inner.issue(entry));
            Ok(issues.filter(|issue| issue.is_in(&states)).collect())
        })
    }

    fn by_ids(&self, ids: &[IssueId]) -> Reading<Vec<Issue>> {
        let (inner, ids) = (Arc::clone(&self.0), ids.to_vec());
        Box::pin(async move {
            let mut issues = Vec::new();
            for id in &ids {
                issues.extend(inner.one(id).await?);
            }
            Ok(issues)
        })
    }
}

impl IssueWriter for GitHubTracker {
    fn transition(&self, id: &IssueId, state: &str) -> Reading<()> {
        let (inner, id, state) = (Arc::clone(&self.0), id.clone(), state.to_owned());
        Box::pin(async move { inner.transition(&id, &state).await })
    }

    fn comment(&self, id: &IssueId, comment: NewComment) -> Reading<()> {
        let (inner, id) = (Arc::clone(&self.0), id.clone());
        Box::pin(async move {
            let number = number(&id)?;
            let mark = comment.mark();
            if inner.comments(number).await?.iter().any(|known| known.body.contains(&mark)) {
                return Ok(());
            }
            let path = inner.path(&format!("/{number}/comments"));
            inner.api.send(Method::Post, &path, Some(&json!({ "body": comment.text() }))).await.map(drop)
        })
    }

    fn label(&self, id: &IssueId, label: &str, change: LabelChange) -> Reading<()> {
        let (inner, id, label) = (Arc::clone(&self.0), id.clone(), label.to_lowercase());
        Box::pin(async move {
            let number = number(&id)?;
            match change {
                LabelChange::Add => inner.add_label(number, &label).await,
                LabelChange::Remove => inner.remove_label(number, &label).await,
            }
        })
    }

    fn create(&self, draft: NewIssue) -> Reading<IssueId> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let mark = format!("<!-- hangar:{} -->", draft.marker);
            let recent = inner.path(&format!("?state=all&sort=created&direction=desc&per_page={PER_PAGE}"));
            let known = inner.api.get(&recent).await?.body;
            let has_mark = |entry: &&Value| entry["body"].as_str().is_some_and(|body| body.contains(&mark));
            let found = known.as_array().into_iter().flatten().find(has_mark).cloned();
            let made = match found {
                Some(found) => found,
                None => {
                    let body = format!("{}\n\n{mark}", draft.description);
                    let body = json!({ "title": draft.title, "body": body });
                    inner.api.send(Method::Post, &inner.path(""), Some(&body)).await?
                }
            };
            let number = made["number"].as_u64();
            let missing = || TrackerError::new(TrackerErrorKind::Payload, "GitHub's answer is no issue");
            number.map(|number| IssueId(number.to_string())).ok_or_else(missing)
        })
    }
}
