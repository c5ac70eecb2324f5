//! Issues of a Gitea or Forgejo repository. The state of an issue is one of its labels.

mod pulls;

use std::sync::Arc;

use futures_util::FutureExt;
use hangar_workflow::config::TrackerConfig;
use serde_json::{Value, json};

use crate::blockers::Blockers;
use crate::error::{TrackerError, TrackerErrorKind};
use crate::http::{Api, Method, Service};
use crate::issue::{Blocker, Comment, Issue, IssueId, number};
use crate::label_states::LabelStates;
use crate::remote::{IssueWords, comment_once, create_once, remote_tracker};
use crate::{LabelChange, NewComment, NewIssue};

pub use pulls::GiteaForge;

/// Largest page of a server with the usual settings.
const LIMIT: usize = 50;
/// Colour of labels that are created.
const COLOR: &str = "#ededed";

#[derive(Clone)]
pub struct GiteaTracker(Arc<Inner>);

struct Inner {
    repository: Repository,
    /// Parameters of the list of issues, such as `labels=bug`.
    query: String,
    states: LabelStates,
    blockers: Blockers,
}

/// A repository, and what issues and pull requests have in common.
struct Repository {
    api: Api,
    owner: String,
    name: String,
}

impl GiteaTracker {
    pub fn new(config: &TrackerConfig) -> Result<Self, TrackerError> {
        let repository = Repository::new("tracker", &config.endpoint, &config.api_key.0, &config.project)?;
        Ok(Self(Arc::new(Inner {
            repository,
            query: config.query_filter.trim_start_matches(['?', '&']).to_owned(),
            states: LabelStates::new(config),
            blockers: Blockers::default(),
        })))
    }
}

fn raw_labels(entry: &Value) -> impl Iterator<Item = (u64, &str)> {
    let labels = entry["labels"].as_array().into_iter().flatten();
    labels.filter_map(|label| Some((label["id"].as_u64()?, label["name"].as_str()?)))
}

impl Repository {
    /// Opens a repository with the settings of a block of the workflow.
    fn new(block: &str, endpoint: &str, key: &str, project: &str) -> Result<Self, TrackerError> {
        let wrong = |kind: TrackerErrorKind, message: String| Err(TrackerError::new(kind, message));
        if key.is_empty() {
            let message = format!("`{block}.api_key` is missing; give it a token, such as `$GITEA_TOKEN`");
            return wrong(TrackerErrorKind::MissingApiKey, message);
        }
        let site = endpoint.trim_end_matches('/').trim_end_matches("/api/v1");
        if site.is_empty() {
            let message = format!("`{block}.endpoint` is missing; it is the address of the server");
            return wrong(TrackerErrorKind::InvalidConfig, message);
        }
        let names = project.split_once('/').filter(|_| crate::github::is_repository(project));
        let Some((owner, name)) = names else {
            let message = format!("`{block}.project` must name the repository as `owner/name`");
            return wrong(TrackerErrorKind::MissingProject, message);
        };
        let service = Service {
            name: "Gitea",
            endpoint: format!("{site}/api/v1"),
            headers: vec![
                ("authorization", format!("token {key}")),
                ("accept", "application/json".to_owned()),
            ],
        };
        Ok(Self { api: Api::new(service)?, owner: owner.to_owned(), name: name.to_owned() })
    }

    fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{}{rest}", self.owner, self.name)
    }

    /// Number of a label of the repository or of its organisation. One that is missing is created.
    async fn label_id(&self, label: &str) -> Result<u64, TrackerError> {
        let of_owner = format!("/orgs/{}/labels?limit={LIMIT}", self.owner);
        for path in [self.path(&format!("/labels?limit={LIMIT}")), of_owner] {
            let known = match self.api.pages(&path).await {
                Ok(known) => known,
                // The owner is a person.
                Err(error) if error.kind == TrackerErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let is_it = |entry: &&Value| {
                entry["name"].as_str().is_some_and(|name| name.to_lowercase() == label.to_lowercase())
            };
            if let Some(id) = known.iter().find(is_it).and_then(|entry| entry["id"].as_u64()) {
                return Ok(id);
            }
        }
        let made = json!({ "name": label, "color": COLOR });
        let made = self.api.send(Method::Post, &self.path("/labels"), Some(&made)).await?;
        let missing = || TrackerError::new(TrackerErrorKind::Payload, "Gitea's answer is no label");
        made["id"].as_u64().ok_or_else(missing)
    }

    /// Changes a label of an issue or a pull request, as it was read.
    async fn relabel(&self, entry: &Value, label: &str, change: LabelChange) -> Result<(), TrackerError> {
        let number = entry["number"].as_u64().unwrap_or_default();
        let path = self.path(&format!("/issues/{number}/labels"));
        let mut known = raw_labels(entry).filter(|(_, name)| name.to_lowercase() == label.to_lowercase());
        match (change, known.next()) {
            (LabelChange::Add, Some(_)) | (LabelChange::Remove, None) => Ok(()),
            (LabelChange::Add, None) => {
                let ids = json!({ "labels": [self.label_id(label).await?] });
                self.api.send(Method::Post, &path, Some(&ids)).await.map(drop)
            }
            (LabelChange::Remove, Some((id, _))) => {
                match self.api.send(Method::Delete, &format!("{path}/{id}"), None).await {
                    // Somebody deleted the label meanwhile.
                    Err(error)
                        if matches!(error.kind, TrackerErrorKind::NotFound | TrackerErrorKind::Payload) =>
                    {
                        Ok(())
                    }
                    done => done.map(drop),
                }
            }
        }
    }

    async fn entry(&self, number: &str) -> Result<Value, TrackerError> {
        Ok(self.api.get(&self.path(&format!("/issues/{number}"))).await?.body)
    }

    /// All comments of an issue or a pull request; this list has no pages.
    async fn comments(&self, number: &str) -> Result<Vec<Comment>, TrackerError> {
        let page = self.api.get(&self.path(&format!("/issues/{number}/comments"))).await?.body;
        let comment = |entry: &Value| {
            Some(Comment {
                id: entry["id"].as_u64()?.to_string(),
                author: entry["user"]["login"].as_str().unwrap_or_default().to_owned(),
                body: entry["body"].as_str().unwrap_or_default().to_owned(),
                created_at: entry["created_at"].as_str().unwrap_or_default().to_owned(),
            })
        };
        Ok(page.as_array().into_iter().flatten().filter_map(comment).collect())
    }

    async fn comment(&self, number: &str, comment: &NewComment) -> Result<(), TrackerError> {
        let known = self.comments(number).await?;
        comment_once(&self.api, &self.path(&format!("/issues/{number}/comments")), &known, comment).await
    }
}

impl Inner {
    /// Normalises an issue. `None` for pull requests.
    fn issue(&self, entry: &Value) -> Option<Issue> {
        if entry.get("pull_request").is_some_and(|pull| !pull.is_null()) {
            return None;
        }
        let number = entry["number"].as_u64()?.to_string();
        let text = |name: &str| entry[name].as_str().map(str::to_owned);
        let labels: Vec<String> = raw_labels(entry).map(|(_, name)| name.to_lowercase()).collect();
        let state = self.states.state_of(&labels, entry["state"] == "closed");
        let mut issue = Issue::new(&number, &number, &text("title")?, &state);
        let repository = entry["repository"]["full_name"].as_str().map(str::to_owned);
        let repository =
            repository.unwrap_or_else(|| format!("{}/{}", self.repository.owner, self.repository.name));
        issue.display_id = format!("{repository}#{number}");
        issue.description = text("body").unwrap_or_default();
        issue.url = text("html_url");
        issue.labels = labels;
        issue.assignee = entry["assignee"]["login"].as_str().map(str::to_owned);
        issue.created_at = text("created_at");
        issue.updated_at = text("updated_at");
        Some(issue)
    }

    /// A blocker, which may be a pull request, or hidden from us; one that is hidden blocks.
    fn blocker(&self, entry: &Value) -> Blocker {
        let number = entry["number"].as_u64().unwrap_or_default();
        let repository = entry["repository"]["full_name"].as_str().unwrap_or_default();
        let labels: Vec<String> = raw_labels(entry).map(|(_, name)| name.to_lowercase()).collect();
        let state = self.states.state_of(&labels, entry["state"] == "closed");
        Blocker { id: number.to_string(), identifier: format!("{repository}#{number}"), state }
    }

    async fn listed(&self, states: &[String]) -> Result<Vec<Issue>, TrackerError> {
        let is_open = |state: &String| !self.states.is_terminal(state);
        let filter = if self.query.is_empty() { String::new() } else { format!("&{}", self.query) };
        let path =
            |of: &str| self.repository.path(&format!("/issues?state={of}&type=issues&limit={LIMIT}{filter}"));
        let mut entries = Vec::new();
        if states.iter().any(is_open) {
            entries.extend(self.repository.api.pages(&path("open")).await?);
        }
        if !states.iter().all(is_open) {
            let page = self.repository.api.get(&path("closed")).await?.body;
            entries.extend(page.as_array().cloned().unwrap_or_default());
        }
        // The list has the newest first.
        entries.sort_by_key(|entry| entry["number"].as_u64());
        let issues = entries.iter().filter_map(|entry| self.issue(entry));
        let mut issues: Vec<Issue> = issues.filter(|issue| issue.is_in(states)).collect();
        self.add_blockers(&mut issues).await?;
        Ok(issues)
    }

    /// Dependencies, which a repository may have switched off.
    async fn add_blockers(&self, issues: &mut [Issue]) -> Result<(), TrackerError> {
        let read = |number: u64| {
            async move {
                let path = self.repository.path(&format!("/issues/{number}/dependencies?limit={LIMIT}"));
                let found = self.repository.api.pages(&path).await?;
                Ok(found.iter().map(|entry| self.blocker(entry)).collect())
            }
            .boxed()
        };
        self.blockers.add(issues.iter_mut(), &self.states, read).await
    }

    async fn one(&self, id: &IssueId) -> Result<Option<Issue>, TrackerError> {
        let Ok(number) = number(id) else { return Ok(None) };
        let entry = match self.repository.entry(number).await {
            Ok(entry) => entry,
            Err(error) if error.kind == TrackerErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(mut issue) = self.issue(&entry) else { return Ok(None) };
        let has_comments = entry["comments"].as_u64().is_none_or(|count| count > 0);
        issue.comments =
            Some(if has_comments { self.repository.comments(number).await? } else { Vec::new() });
        self.add_blockers(std::slice::from_mut(&mut issue)).await?;
        Ok(Some(issue))
    }

    async fn transition(&self, id: &IssueId, state: &str) -> Result<(), TrackerError> {
        let number = number(id)?;
        let entry = self.repository.entry(number).await?;
        let missing = || TrackerError::new(TrackerErrorKind::NotFound, format!("`{id}` is no issue"));
        self.issue(&entry).ok_or_else(missing)?;
        // The new label first: an issue is never without a state.
        self.repository.relabel(&entry, state, LabelChange::Add).await?;
        for (_, other) in raw_labels(&entry).filter(|(_, label)| self.states.is_other(label, state)) {
            self.repository.relabel(&entry, other, LabelChange::Remove).await?;
        }
        let wanted = if self.states.is_terminal(state) { "closed" } else { "open" };
        if entry["state"] == wanted {
            return Ok(());
        }
        let (path, change) = (self.repository.path(&format!("/issues/{number}")), json!({ "state": wanted }));
        self.repository.api.send(Method::Patch, &path, Some(&change)).await.map(drop)
    }

    async fn comment(&self, id: &IssueId, comment: &NewComment) -> Result<(), TrackerError> {
        self.repository.comment(number(id)?, comment).await
    }

    async fn label(&self, id: &IssueId, label: &str, change: LabelChange) -> Result<(), TrackerError> {
        let entry = self.repository.entry(number(id)?).await?;
        self.repository.relabel(&entry, label, change).await
    }

    async fn create(&self, draft: &NewIssue) -> Result<IssueId, TrackerError> {
        let newest = self.repository.path(&format!("/issues?state=all&type=issues&limit={LIMIT}"));
        let words = IssueWords { text: "body", number: "number" };
        let path = self.repository.path("/issues");
        create_once(&self.repository.api, (&newest, &path), &words, draft).await
    }
}

remote_tracker!(GiteaTracker, one_by_one);
