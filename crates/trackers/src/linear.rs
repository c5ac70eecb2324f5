//! Issues of a Linear project, by its GraphQL API.
//!
//! Comments and issues of ours have ids that follow from their markers, so that none is created twice.

use std::sync::Arc;

use hangar_workflow::config::TrackerConfig;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{TrackerError, TrackerErrorKind};
use crate::http::{Api, Service};
use crate::issue::{Blocker, Comment, Issue, IssueId, PERSON, Parent};
use crate::remote::remote_tracker;
use crate::{LabelChange, NewComment, NewIssue};

const ENDPOINT: &str = "https://api.linear.app";
/// Most pages of one list.
const MAX_PAGES: usize = 200;
/// Ids in one query.
const MAX_IDS: usize = 50;

const FIELDS: &str = "id identifier title description priority branchName url createdAt updatedAt \
state { name } assignee { name } parent { id identifier } labels(first: 50) { nodes { id name } } \
inverseRelations(first: 50) { nodes { type issue { id identifier state { name } } } }";
const COMMENTS: &str = "comments(first: 100) { nodes { id body createdAt user { name isMe } } }";
const STATES: &str = "query($ids: IssueFilter) { issues(filter: $ids, first: 1) { nodes { id state { name } team { id states(first: 100) { nodes { id name } } } } } }";
const MOVE: &str = "mutation($id: String!, $state: String!) { issueUpdate(id: $id, input: { stateId: $state }) { success } }";
const LABELS: &str =
    "query($filter: IssueLabelFilter) { issueLabels(filter: $filter, first: 50) { nodes { id name } } }";
const NEW_LABEL: &str =
    "mutation($name: String!) { issueLabelCreate(input: { name: $name }) { issueLabel { id } } }";
const ADD_LABEL: &str =
    "mutation($id: String!, $label: String!) { issueAddLabel(id: $id, labelId: $label) { success } }";
const REMOVE_LABEL: &str =
    "mutation($id: String!, $label: String!) { issueRemoveLabel(id: $id, labelId: $label) { success } }";
const COMMENT: &str = "mutation($id: String!, $issue: String!, $body: String!) { commentCreate(input: { id: $id, issueId: $issue, body: $body }) { success } }";
const PROJECT: &str = "query($filter: ProjectFilter) { projects(filter: $filter, first: 1) { nodes { id teams(first: 1) { nodes { id } } } } }";
const CREATE: &str = "mutation($id: String!, $title: String!, $description: String!, $team: String!, $project: String!) { issueCreate(input: { id: $id, title: $title, description: $description, teamId: $team, projectId: $project }) { success } }";

#[derive(Clone)]
pub struct LinearTracker(Arc<Inner>);

struct Inner {
    api: Api,
    /// Slug of the project.
    project: String,
}

impl LinearTracker {
    pub fn new(config: &TrackerConfig) -> Result<Self, TrackerError> {
        if config.api_key.0.is_empty() {
            let message = "`tracker.api_key` is missing; give it a key, such as `$LINEAR_API_KEY`";
            return Err(TrackerError::new(TrackerErrorKind::MissingApiKey, message));
        }
        let slug = config.settings.get("project_slug").and_then(Value::as_str);
        let project = slug.unwrap_or(&config.project).to_owned();
        if project.is_empty() {
            let message = "`tracker.project` is missing; it is the slug of a project";
            return Err(TrackerError::new(TrackerErrorKind::MissingProject, message));
        }
        let endpoint = config.endpoint.trim_end_matches('/').trim_end_matches("/graphql");
        let service = Service {
            name: "Linear",
            endpoint: if endpoint.is_empty() { ENDPOINT.to_owned() } else { endpoint.to_owned() },
            headers: vec![("authorization", config.api_key.0.clone())],
        };
        Ok(Self(Arc::new(Inner { api: Api::new(service)?, project })))
    }
}

/// An id of ours: a UUID that follows from a marker.
fn own_id(scope: &str, marker: &str) -> String {
    let mut bytes: Vec<u8> =
        Sha256::digest(format!("{scope}\n{marker}").as_bytes()).iter().copied().take(16).collect();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn nodes(value: &Value) -> impl Iterator<Item = &Value> {
    value["nodes"].as_array().into_iter().flatten()
}

fn gone(id: &IssueId) -> TrackerError {
    TrackerError::new(TrackerErrorKind::NotFound, format!("Linear has no issue `{id}` in the project"))
}

impl Inner {
    async fn listed(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        let one = |state: &String| json!({ "state": { "name": { "eqIgnoreCase": state } } });
        self.issues(json!({ "or": states.iter().map(one).collect::<Vec<_>>() }), "").await
    }

    async fn with_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
        let mut issues = Vec::new();
        for part in ids.chunks(MAX_IDS) {
            issues.extend(self.issues(json!({ "id": { "in": part } }), COMMENTS).await?);
        }
        Ok(issues)
    }

    async fn comment(&self, id: &IssueId, comment: &NewComment) -> Result<(), TrackerError> {
        let own = own_id(&id.0, &comment.marker);
        let known = self.one(id).await?.comments.unwrap_or_default();
        if known.iter().any(|known| known.id.ends_with(&own)) {
            return Ok(());
        }
        let text = match comment.marker.starts_with(PERSON) {
            // All that we write is ours here, unless it says otherwise.
            true => comment.text(),
            false => comment.body.trim_end().to_owned(),
        };
        let body = json!({ "id": own, "issue": id, "body": text });
        self.api.graphql(COMMENT, body).await.map(drop)
    }

    /// Issues that a filter finds in the project.
    async fn issues(&self, filter: Value, more: &str) -> Result<Vec<Issue>, TrackerError> {
        let query = format!(
            "query($filter: IssueFilter, $after: String) {{ issues(filter: $filter, first: 50, after: $after) {{ \
            pageInfo {{ hasNextPage endCursor }} nodes {{ {FIELDS} {more} }} }} }}"
        );
        let (mut issues, mut after) = (Vec::new(), Value::Null);
        for _ in 0..MAX_PAGES {
            let data =
                self.api.graphql(&query, json!({ "filter": self.within(&filter), "after": after })).await?;
            let page = &data["issues"];
            if !page["nodes"].is_array() {
                return Err(TrackerError::new(TrackerErrorKind::Payload, "Linear's answer has no issues"));
            }
            issues.extend(nodes(page).filter_map(issue));
            if page["pageInfo"]["hasNextPage"] != true {
                break;
            }
            after = page["pageInfo"]["endCursor"].clone();
            if after.is_null() {
                let message = "Linear says that there is another page, and not which";
                return Err(TrackerError::new(TrackerErrorKind::MissingEndCursor, message));
            }
        }
        Ok(issues)
    }

    /// A filter, for this project alone.
    fn within(&self, filter: &Value) -> Value {
        json!({ "and": [{ "project": { "slugId": { "eq": self.project } } }, filter] })
    }

    async fn one(&self, id: &IssueId) -> Result<Issue, TrackerError> {
        let found = self.issues(json!({ "id": { "in": [id] } }), COMMENTS).await?;
        found.into_iter().next().ok_or_else(|| gone(id))
    }

    async fn transition(&self, id: &IssueId, state: &str) -> Result<(), TrackerError> {
        let filter = self.within(&json!({ "id": { "in": [id] } }));
        let data = self.api.graphql(STATES, json!({ "ids": filter })).await?;
        let found = nodes(&data["issues"]).next().ok_or_else(|| gone(id))?;
        let is_it =
            |name: &Value| name.as_str().is_some_and(|name| name.to_lowercase() == state.to_lowercase());
        if is_it(&found["state"]["name"]) {
            return Ok(());
        }
        let Some(target) = nodes(&found["team"]["states"]).find(|known| is_it(&known["name"])) else {
            let message = format!("the team of the issue has no state `{state}`");
            return Err(TrackerError::new(TrackerErrorKind::Payload, message));
        };
        self.api.graphql(MOVE, json!({ "id": id, "state": target["id"] })).await.map(drop)
    }

    async fn label(&self, id: &IssueId, label: &str, change: LabelChange) -> Result<(), TrackerError> {
        let label = label.to_lowercase();
        let has = self.one(id).await?.labels.contains(&label);
        if has == (change == LabelChange::Add) {
            return Ok(());
        }
        let filter = json!({ "name": { "eqIgnoreCase": label } });
        let known = self.api.graphql(LABELS, json!({ "filter": filter })).await?;
        let found = nodes(&known["issueLabels"]).next().map(|found| found["id"].clone());
        let label_id = match found {
            Some(found) => found,
            None => {
                self.api.graphql(NEW_LABEL, json!({ "name": label })).await?["issueLabelCreate"]["issueLabel"]
                    ["id"]
                    .clone()
            }
        };
        let query = if change == LabelChange::Add { ADD_LABEL } else { REMOVE_LABEL };
        self.api.graphql(query, json!({ "id": id, "label": label_id })).await.map(drop)
    }

    async fn create(&self, draft: &NewIssue) -> Result<IssueId, TrackerError> {
        let id = IssueId(own_id(&self.project, &draft.marker));
        if self.one(&id).await.is_ok() {
            return Ok(id);
        }
        let filter = json!({ "slugId": { "eq": self.project } });
        let data = self.api.graphql(PROJECT, json!({ "filter": filter })).await?;
        let missing = || TrackerError::new(TrackerErrorKind::NotFound, "Linear has no such project");
        let project = nodes(&data["projects"]).next().ok_or_else(missing)?;
        let team = nodes(&project["teams"]).next().map(|team| team["id"].clone()).unwrap_or_default();
        let made = json!({
            "id": id, "title": draft.title, "description": draft.description, "team": team, "project": project["id"],
        });
        self.api.graphql(CREATE, made).await?;
        Ok(id)
    }
}

/// Normalises an issue. One without the fields that all have is left out.
fn issue(entry: &Value) -> Option<Issue> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (id, identifier) = (entry["id"].as_str()?, entry["identifier"].as_str()?);
    let mut issue = Issue::new(id, identifier, entry["title"].as_str()?, entry["state"]["name"].as_str()?);
    issue.description = text(&entry["description"]).unwrap_or_default();
    // 0 is no priority.
    issue.priority =
        entry["priority"].as_f64().map(|priority| priority as i64).filter(|priority| *priority > 0);
    issue.branch_name = text(&entry["branchName"]);
    issue.url = text(&entry["url"]);
    issue.labels = nodes(&entry["labels"])
        .filter_map(|label| text(&label["name"]))
        .map(|name| name.to_lowercase())
        .collect();
    issue.assignee = text(&entry["assignee"]["name"]);
    let parent = &entry["parent"];
    issue.parent = text(&parent["id"])
        .zip(text(&parent["identifier"]))
        .map(|(id, identifier)| Parent { id, identifier });
    issue.blocked_by = nodes(&entry["inverseRelations"])
        .filter(|relation| relation["type"] == "blocks")
        .filter_map(|relation| {
            let other = &relation["issue"];
            let state = text(&other["state"]["name"]).unwrap_or_default();
            Some(Blocker { id: text(&other["id"])?, identifier: text(&other["identifier"])?, state })
        })
        .collect();
    issue.comments =
        entry["comments"].is_object().then(|| nodes(&entry["comments"]).filter_map(comment).collect());
    issue.created_at = text(&entry["createdAt"]);
    issue.updated_at = text(&entry["updatedAt"]);
    Some(issue)
}

fn comment(entry: &Value) -> Option<Comment> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let id = entry["id"].as_str()?;
    let mark = format!("<!-- hangar:{PERSON}");
    let for_person = entry["body"].as_str().is_some_and(|body| body.contains(&mark));
    let is_ours = entry["user"]["isMe"] == true && !for_person;
    Some(Comment {
        id: if is_ours { format!("hangar-{id}") } else { id.to_owned() },
        author: text(&entry["user"]["name"]),
        body: text(&entry["body"]),
        created_at: text(&entry["createdAt"]),
    })
}

remote_tracker!(LinearTracker);
