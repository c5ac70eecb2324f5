//! Issues of a GitLab project. The state of an issue is one of its labels.

mod merge_requests;

use std::sync::Arc;

use futures_util::FutureExt;
use hangar_workflow::config::TrackerConfig;
use serde_json::{Value, json};

use crate::blockers::Blockers;
use crate::error::{TrackerError, TrackerErrorKind};
use crate::http::{Api, Method, Service, encoded};
use crate::issue::{Blocker, Comment, Issue, IssueId, number};
use crate::label_states::LabelStates;
use crate::remote::{IssueWords, comment_once, create_once, remote_tracker};
use crate::{LabelChange, NewComment, NewIssue};

pub use merge_requests::GitLabForge;

const SITE: &str = "https://gitlab.com";
const PER_PAGE: usize = 100;

#[derive(Clone)]
pub struct GitLabTracker(Arc<Inner>);

struct Inner {
    api: Api,
    /// Path of the project, such as `group/name`, or its number.
    project: String,
    /// Parameters of the list of issues, such as `labels=bug`.
    query: String,
    states: LabelStates,
    blockers: Blockers,
}

impl GitLabTracker {
    pub fn new(config: &TrackerConfig) -> Result<Self, TrackerError> {
        if config.api_key.0.is_empty() {
            let message = "`tracker.api_key` is missing; give it a token, such as `$GITLAB_TOKEN`";
            return Err(TrackerError::new(TrackerErrorKind::MissingApiKey, message));
        }
        if !is_project(&config.project) {
            let message = "`tracker.project` must be the path of a project, such as `group/name`";
            return Err(TrackerError::new(TrackerErrorKind::MissingProject, message));
        }
        Ok(Self(Arc::new(Inner {
            api: Api::new(service(&config.endpoint, &config.api_key.0))?,
            project: config.project.clone(),
            query: config.query_filter.trim_start_matches(['?', '&']).to_owned(),
            states: LabelStates::new(config),
            blockers: Blockers::default(),
        })))
    }
}

/// Whether a text is the path of a project in a group, or its number.
fn is_project(project: &str) -> bool {
    let is_name = |part: &str| {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
        !part.is_empty() && !part.starts_with('.') && part.chars().all(plain)
    };
    let is_number = !project.is_empty() && project.bytes().all(|byte| byte.is_ascii_digit());
    is_number || (project.contains('/') && project.split('/').all(is_name))
}

fn service(endpoint: &str, token: &str) -> Service {
    let site = endpoint.trim_end_matches('/').trim_end_matches("/api/v4");
    let site = if site.is_empty() { SITE } else { site };
    Service {
        name: "GitLab",
        endpoint: format!("{site}/api/v4"),
        headers: vec![("private-token", token.to_owned()), ("accept", "application/json".to_owned())],
    }
}

fn project_path(project: &str, rest: &str) -> String {
    format!("/projects/{}{rest}", encoded(project))
}

fn raw_labels(entry: &Value) -> impl Iterator<Item = &str> {
    entry["labels"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Labels of an entry that are the same in other letters, separated by commas. Letters count on GitLab, and not in workflows.
fn spelled<'a>(entry: &'a Value, is_meant: impl Fn(&str) -> bool + 'a) -> String {
    raw_labels(entry).filter(|label| is_meant(label)).collect::<Vec<_>>().join(",")
}

/// The change of a label, if one is needed.
fn label_change(entry: &Value, label: &str, change: LabelChange) -> Option<Value> {
    let wanted = label.to_lowercase();
    let known = spelled(entry, |known| known.to_lowercase() == wanted);
    match change {
        LabelChange::Add => known.is_empty().then(|| json!({ "add_labels": label })),
        LabelChange::Remove => (!known.is_empty()).then(|| json!({ "remove_labels": known })),
    }
}

impl Inner {
    fn path(&self, rest: &str) -> String {
        project_path(&self.project, &format!("/issues{rest}"))
    }

    fn issue(&self, entry: &Value) -> Option<Issue> {
        let number = entry["iid"].as_u64()?.to_string();
        let text = |name: &str| entry[name].as_str().map(str::to_owned);
        let labels: Vec<String> = raw_labels(entry).map(str::to_lowercase).collect();
        let state = self.states.state_of(&labels, entry["state"] == "closed");
        let mut issue = Issue::new(&number, &number, &text("title")?, &state);
        let full = entry["references"]["full"].as_str().map(str::to_owned);
        issue.display_id = full.unwrap_or_else(|| format!("{}#{number}", self.project));
        issue.description = text("description").unwrap_or_default();
        issue.url = text("web_url");
        issue.labels = labels;
        issue.assignee = entry["assignees"][0]["username"].as_str().map(str::to_owned);
        issue.issue_type = text("issue_type");
        issue.created_at = text("created_at");
        issue.updated_at = text("updated_at");
        Some(issue)
    }

    async fn listed(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        let is_open = |state: &String| !self.states.is_terminal(state);
        let mut entries = Vec::new();
        let filter = if self.query.is_empty() { String::new() } else { format!("&{}", self.query) };
        if states.iter().any(is_open) {
            let query =
                format!("?state=opened&order_by=created_at&sort=asc&per_page={PER_PAGE}&scope=all{filter}");
            entries.extend(self.api.pages(&self.path(&query)).await?);
        }
        if !states.iter().all(is_open) {
            let query =
                format!("?state=closed&order_by=updated_at&sort=desc&per_page={PER_PAGE}&scope=all{filter}");
            let page = self.api.get(&self.path(&query)).await?.body;
            entries.extend(page.as_array().cloned().unwrap_or_default());
        }
        let issues = entries.iter().filter_map(|entry| self.issue(entry));
        let mut issues: Vec<Issue> = issues.filter(|issue| issue.is_in(states)).collect();
        self.add_blockers(&mut issues).await?;
        Ok(issues)
    }

    /// Links "is blocked by", which only some editions of GitLab have.
    async fn add_blockers(&self, issues: &mut [Issue]) -> Result<(), TrackerError> {
        let read = |number: u64| {
            async move {
                let path = self.path(&format!("/{number}/links?per_page={PER_PAGE}"));
                let links = self.api.pages(&path).await?;
                let blocks = links.iter().filter(|link| link["link_type"] == "is_blocked_by");
                let blocker = |issue: Issue| Blocker {
                    id: issue.id.0,
                    identifier: issue.display_id,
                    state: issue.state,
                };
                Ok(blocks.filter_map(|link| self.issue(link)).map(blocker).collect())
            }
            .boxed()
        };
        self.blockers.add(issues.iter_mut(), &self.states, read).await
    }

    async fn comments(&self, number: &str) -> Result<Vec<Comment>, TrackerError> {
        let query = format!("/{number}/notes?sort=asc&order_by=created_at&per_page={PER_PAGE}");
        let entries = self.api.pages(&self.path(&query)).await?;
        let comment = |entry: &Value| {
            Some(Comment {
                id: entry["id"].as_u64()?.to_string(),
                author: entry["author"]["username"].as_str().unwrap_or_default().to_owned(),
                body: entry["body"].as_str().unwrap_or_default().to_owned(),
                created_at: entry["created_at"].as_str().unwrap_or_default().to_owned(),
            })
        };
        Ok(entries.iter().filter(|entry| entry["system"] != true).filter_map(comment).collect())
    }

    async fn one(&self, id: &IssueId) -> Result<Option<Issue>, TrackerError> {
        let Ok(number) = number(id) else { return Ok(None) };
        let entry = match self.api.get(&self.path(&format!("/{number}"))).await {
            Ok(page) => page.body,
            Err(error) if error.kind == TrackerErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(mut issue) = self.issue(&entry) else { return Ok(None) };
        let has_comments = entry["user_notes_count"].as_u64().is_none_or(|count| count > 0);
        let comments = if has_comments { self.comments(number).await? } else { Vec::new() };
        issue.comments = Some(comments);
        self.add_blockers(std::slice::from_mut(&mut issue)).await?;
        Ok(Some(issue))
    }

    async fn transition(&self, id: &IssueId, state: &str) -> Result<(), TrackerError> {
        let path = self.path(&format!("/{}", number(id)?));
        let entry = self.api.get(&path).await?.body;
        let mut change = json!({});
        if let Some(added) = label_change(&entry, state, LabelChange::Add) {
            change["add_labels"] = added["add_labels"].clone();
        }
        let others = spelled(&entry, |label| self.states.is_other(label, state));
        if !others.is_empty() {
            change["remove_labels"] = json!(others);
        }
        let (wanted, event) =
            if self.states.is_terminal(state) { ("closed", "close") } else { ("opened", "reopen") };
        if entry["state"] != wanted {
            change["state_event"] = json!(event);
        }
        if change == json!({}) {
            return Ok(());
        }
        self.api.send(Method::Put, &path, Some(&change)).await.map(drop)
    }

    async fn comment(&self, id: &IssueId, comment: &NewComment) -> Result<(), TrackerError> {
        let number = number(id)?;
        let known = self.comments(number).await?;
        comment_once(&self.api, &self.path(&format!("/{number}/notes")), &known, comment).await
    }

    async fn label(&self, id: &IssueId, label: &str, change: LabelChange) -> Result<(), TrackerError> {
        let path = self.path(&format!("/{}", number(id)?));
        let entry = self.api.get(&path).await?.body;
        match label_change(&entry, label, change) {
            Some(change) => self.api.send(Method::Put, &path, Some(&change)).await.map(drop),
            None => Ok(()),
        }
    }

    async fn create(&self, draft: &NewIssue) -> Result<IssueId, TrackerError> {
        let newest =
            self.path(&format!("?state=all&order_by=created_at&sort=desc&per_page={PER_PAGE}&scope=all"));
        let words = IssueWords { text: "description", number: "iid" };
        create_once(&self.api, (&newest, &self.path("")), &words, draft).await
    }
}

remote_tracker!(GitLabTracker, one_by_one);
