//! Issues of a Jira project, in Cloud (REST version 3) and Data Center (version 2, `tracker.api_version: "2"`).
//!
//! Comments of ours carry their marker as a property, which people do not see.

mod document;

use std::sync::Arc;

use base64::Engine;
use hangar_workflow::config::TrackerConfig;
use serde_json::{Value, json};

use crate::error::{TrackerError, TrackerErrorKind};
use crate::http::{Api, Method, Service};
use crate::issue::{Blocker, Comment, Issue, IssueId, Parent};
use crate::remote::remote_tracker;
use crate::{LabelChange, NewComment, NewIssue};

const FIELDS: &str =
    "summary,status,priority,labels,assignee,issuetype,parent,issuelinks,created,updated,description";
const PER_PAGE: usize = 50;
/// Most pages of one list.
const MAX_PAGES: usize = 200;
/// Ids in one query.
const MAX_IDS: usize = 40;
/// Property of comments and issues of ours.
const PROPERTY: &str = "hangar";
/// Label of issues of ours, since issues cannot be found by a property.
const LABEL_PREFIX: &str = "hangar-";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edition {
    Cloud,
    DataCenter,
}

#[derive(Clone)]
pub struct JiraTracker(Arc<Inner>);

struct Inner {
    api: Api,
    edition: Edition,
    project: String,
    query: String,
}

impl JiraTracker {
    pub fn new(config: &TrackerConfig) -> Result<Self, TrackerError> {
        let missing = |kind: TrackerErrorKind, message: &str| Err(TrackerError::new(kind, message));
        let key = &config.api_key.0;
        if key.is_empty() {
            let message = "`tracker.api_key` is missing; give it `email:token`, or a personal access token";
            return missing(TrackerErrorKind::MissingApiKey, message);
        }
        if config.endpoint.is_empty() {
            let message = "`tracker.endpoint` is missing; it is the address of Jira";
            return missing(TrackerErrorKind::InvalidConfig, message);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if config.project.is_empty() || !config.project.chars().all(plain) {
            let message = "`tracker.project` must be the key of a project, such as `PROJ`";
            return missing(TrackerErrorKind::MissingProject, message);
        }
        let version = config.settings.get("api_version").and_then(Value::as_str);
        let edition = if version == Some("2") { Edition::DataCenter } else { Edition::Cloud };
        let authorization = match key.contains(':') {
            true => format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(key)),
            false => format!("Bearer {key}"),
        };
        let service = Service {
            name: "Jira",
            endpoint: config.endpoint.trim_end_matches('/').to_owned(),
            headers: vec![("authorization", authorization), ("accept", "application/json".to_owned())],
        };
        let (project, query) = (config.project.clone(), config.query_filter.clone());
        Ok(Self(Arc::new(Inner { api: Api::new(service)?, edition, project, query })))
    }
}

/// A value as a word of Jira's query language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Id of an issue as it is written in paths.
fn number(id: &IssueId) -> Result<&str, TrackerError> {
    let plain = !id.0.is_empty() && id.0.len() <= 20 && id.0.bytes().all(|byte| byte.is_ascii_digit());
    let missing = || TrackerError::new(TrackerErrorKind::NotFound, format!("`{id}` is no id of an issue"));
    plain.then_some(id.0.as_str()).ok_or_else(missing)
}

impl Inner {
    fn path(&self, rest: &str) -> String {
        let version = if self.edition == Edition::Cloud { 3 } else { 2 };
        format!("/rest/api/{version}{rest}")
    }

    fn body(&self, text: &str) -> Value {
        if self.edition == Edition::Cloud { document::document(text) } else { json!(text) }
    }

    async fn listed(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        let names: Vec<String> = states.iter().map(|state| quoted(state)).collect();
        let filter = if self.query.is_empty() { String::new() } else { format!(" AND ({})", self.query) };
        let jql = format!(
            "project = {} AND status IN ({}){filter} ORDER BY priority ASC, created ASC",
            quoted(&self.project),
            names.join(", ")
        );
        self.search(&jql).await
    }

    /// All issues that a query finds.
    async fn search(&self, jql: &str) -> Result<Vec<Issue>, TrackerError> {
        let (mut issues, mut next) = (Vec::new(), String::new());
        for _ in 0..MAX_PAGES {
            let place = if self.edition == Edition::Cloud { "/search/jql" } else { "/search" };
            let path = format!(
                "{}?jql={}&fields={}&maxResults={PER_PAGE}{next}",
                self.path(place),
                encoded(jql),
                encoded(FIELDS)
            );
            let page = self.api.get(&path).await?.body;
            let Some(entries) = page["issues"].as_array() else {
                return Err(TrackerError::new(TrackerErrorKind::Payload, "Jira's answer has no issues"));
            };
            issues.extend(entries.iter().filter_map(|entry| self.issue(entry)));
            next = match (self.edition, page["nextPageToken"].as_str()) {
                (Edition::Cloud, Some(token)) => format!("&nextPageToken={}", encoded(token)),
                (Edition::Cloud, None) if page["isLast"] == false => {
                    let message = "Jira says that there is another page, and not which";
                    return Err(TrackerError::new(TrackerErrorKind::MissingEndCursor, message));
                }
                (Edition::Cloud, None) => return Ok(issues),
                (Edition::DataCenter, _) => {
                    let start = page["startAt"].as_u64().unwrap_or(0) + entries.len() as u64;
                    if entries.is_empty() || start >= page["total"].as_u64().unwrap_or(0) {
                        return Ok(issues);
                    }
                    format!("&startAt={start}")
                }
            };
        }
        Ok(issues)
    }

    /// Normalises an issue. One without the fields that all have is left out.
    fn issue(&self, entry: &Value) -> Option<Issue> {
        let fields = &entry["fields"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (id, key) = (entry["id"].as_str()?, entry["key"].as_str()?);
        let state = fields["status"]["name"].as_str()?;
        let mut issue = Issue::new(id, key, fields["summary"].as_str()?, state);
        issue.description = document::text(&fields["description"]);
        issue.priority = fields["priority"]["id"].as_str().and_then(|id| id.parse().ok());
        let labels = fields["labels"].as_array().into_iter().flatten().filter_map(Value::as_str);
        issue.labels = labels.map(str::to_lowercase).collect();
        issue.assignee = text(&fields["assignee"]["displayName"]);
        issue.issue_type = text(&fields["issuetype"]["name"]);
        issue.url = entry["self"]
            .as_str()
            .and_then(|own| own.split_once("/rest/"))
            .map(|(site, _)| format!("{site}/browse/{key}"));
        let parent = &fields["parent"];
        issue.parent =
            text(&parent["id"]).zip(text(&parent["key"])).map(|(id, identifier)| Parent { id, identifier });
        issue.blocked_by =
            fields["issuelinks"].as_array().into_iter().flatten().filter_map(blocker).collect();
        issue.created_at = date(&fields["created"]);
        issue.updated_at = date(&fields["updated"]);
        Some(issue)
    }

    async fn comments(&self, number: &str) -> Result<Vec<Comment>, TrackerError> {
        let mut comments: Vec<Comment> = Vec::new();
        for _ in 0..MAX_PAGES {
            let path = self.path(&format!(
                "/issue/{number}/comment?expand=properties&maxResults={PER_PAGE}&startAt={}",
                comments.len()
            ));
            let page = self.api.get(&path).await?.body;
            let entries = page["comments"].as_array().map(Vec::as_slice).unwrap_or_default();
            comments.extend(entries.iter().map(comment));
            if entries.is_empty() || comments.len() as u64 >= page["total"].as_u64().unwrap_or(0) {
                break;
            }
        }
        Ok(comments)
    }

    async fn with_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let known: Vec<&str> = ids.iter().filter_map(|id| number(id).ok()).collect();
        let mut issues = Vec::new();
        for part in known.chunks(MAX_IDS) {
            // A query that names an issue that is gone may be refused as a whole; then each is read by itself.
            let jql = format!(
                "project = {} AND id in ({}) ORDER BY key ASC",
                quoted(&self.project),
                part.join(",")
            );
            match self.search(&jql).await {
                Ok(found) => issues.extend(found),
                Err(error) if error.kind == TrackerErrorKind::Payload => {
                    for id in part {
                        issues.extend(self.one(id).await?);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        for issue in &mut issues {
            issue.comments = Some(self.comments(&issue.id.0).await?);
        }
        Ok(issues)
    }

    async fn one(&self, number: &str) -> Result<Option<Issue>, TrackerError> {
        match self.api.get(&self.path(&format!("/issue/{number}?fields={}", encoded(FIELDS)))).await {
            Ok(page) => Ok(self.issue(&page.body)),
            Err(error) if error.kind == TrackerErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn transition(&self, id: &IssueId, state: &str) -> Result<(), TrackerError> {
        let number = number(id)?;
        let missing = || TrackerError::new(TrackerErrorKind::NotFound, format!("Jira has no issue {number}"));
        let issue = self.one(number).await?.ok_or_else(missing)?;
        if issue.state.to_lowercase() == state.to_lowercase() {
            return Ok(());
        }
        let path = self.path(&format!("/issue/{number}/transitions"));
        let offered = self.api.get(&path).await?.body;
        let is_it = |entry: &&Value| {
            entry["to"]["name"].as_str().is_some_and(|name| name.to_lowercase() == state.to_lowercase())
        };
        let found = offered["transitions"].as_array().into_iter().flatten().find(is_it);
        let Some(found) = found else {
            let message = format!(
                "the workflow of Jira has no transition of {} from `{}` to `{state}`",
                issue.identifier, issue.state
            );
            return Err(TrackerError::new(TrackerErrorKind::Payload, message));
        };
        let body = json!({ "transition": { "id": found["id"] } });
        self.api.send(Method::Post, &path, Some(&body)).await.map(drop)
    }

    async fn comment(&self, id: &IssueId, comment: &NewComment) -> Result<(), TrackerError> {
        let number = number(id)?;
        let own = format!("hangar-{}", comment.marker);
        if self.comments(number).await?.iter().any(|known| known.id == own) {
            return Ok(());
        }
        let property = json!({ "key": PROPERTY, "value": { "marker": comment.marker } });
        let body = json!({ "body": self.body(comment.body.trim_end()), "properties": [property] });
        let path = self.path(&format!("/issue/{number}/comment"));
        self.api.send(Method::Post, &path, Some(&body)).await.map(drop)
    }

    async fn label(&self, id: &IssueId, label: &str, change: LabelChange) -> Result<(), TrackerError> {
        // Labels of Jira have no spaces.
        let label = label.to_lowercase().replace(' ', "-");
        let path = self.path(&format!("/issue/{}", number(id)?));
        // Letters count in labels of Jira, and not in ours.
        let entry = self.api.get(&format!("{path}?fields=labels")).await?.body;
        let known = entry["fields"]["labels"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let known: Vec<&str> = known.filter(|known| known.to_lowercase() == label).collect();
        let changes: Vec<Value> = match change {
            LabelChange::Add if known.is_empty() => vec![json!({ "add": label })],
            LabelChange::Add => Vec::new(),
            LabelChange::Remove => known.iter().map(|known| json!({ "remove": known })).collect(),
        };
        if changes.is_empty() {
            return Ok(());
        }
        let body = json!({ "update": { "labels": changes } });
        self.api.send(Method::Put, &path, Some(&body)).await.map(drop)
    }

    async fn create(&self, draft: &NewIssue) -> Result<IssueId, TrackerError> {
        let label = format!("{LABEL_PREFIX}{}", draft.marker);
        let jql = format!("project = {} AND labels = {}", quoted(&self.project), quoted(&label));
        if let Some(found) = self.search(&jql).await?.into_iter().next() {
            return Ok(found.id);
        }
        let fields = json!({
            "project": { "key": self.project }, "summary": draft.title, "issuetype": { "name": "Task" },
            "description": self.body(&draft.description), "labels": [label],
        });
        let made =
            self.api.send(Method::Post, &self.path("/issue"), Some(&json!({ "fields": fields }))).await?;
        let missing = || TrackerError::new(TrackerErrorKind::Payload, "Jira's answer is no issue");
        made["id"].as_str().map(|id| IssueId(id.to_owned())).ok_or_else(missing)
    }
}

/// The issue that a link says has to be finished first.
fn blocker(link: &Value) -> Option<Blocker> {
    let is_block =
        link["type"]["inward"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("is blocked by"));
    let other = link.get("inwardIssue").filter(|_| is_block)?;
    Some(Blocker {
        id: other["id"].as_str().unwrap_or_default().to_owned(),
        identifier: other["key"].as_str()?.to_owned(),
        state: other["fields"]["status"]["name"].as_str().unwrap_or_default().to_owned(),
    })
}

fn comment(entry: &Value) -> Comment {
    let mut properties = entry["properties"].as_array().into_iter().flatten();
    let ours = properties.find(|property| property["key"] == PROPERTY);
    let marker = ours.and_then(|property| property["value"]["marker"].as_str());
    Comment {
        id: match marker {
            Some(marker) => format!("hangar-{marker}"),
            None => entry["id"].as_str().unwrap_or_default().to_owned(),
        },
        author: entry["author"]["displayName"].as_str().unwrap_or_default().to_owned(),
        body: document::text(&entry["body"]),
        created_at: date(&entry["created"]).unwrap_or_default(),
    }
}

/// A time with a colon in its offset, which Jira leaves out.
fn date(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let at = text.len().checked_sub(5).filter(|at| text.is_char_boundary(*at))?;
    let (time, offset) = text.split_at(at);
    match offset.starts_with(['+', '-']) && offset[1..].bytes().all(|byte| byte.is_ascii_digit()) {
        true => Some(format!("{time}{}:{}", &offset[..3], &offset[3..])),
        false => Some(text.to_owned()),
    }
}

remote_tracker!(JiraTracker);
