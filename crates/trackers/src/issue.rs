//! Issues as the orchestrator sees them, whichever tracker they come from.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{TrackerError, TrackerErrorKind};

/// Stable key of an issue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IssueId(pub String);

impl fmt::Display for IssueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Number of an issue as it is written in paths of forges. An id of another tracker is none.
pub(crate) fn number(id: &IssueId) -> Result<&str, TrackerError> {
    let plain = !id.0.is_empty() && id.0.len() <= 12 && id.0.bytes().all(|byte| byte.is_ascii_digit());
    let missing =
        || TrackerError::new(TrackerErrorKind::NotFound, format!("`{id}` is no number of an issue"));
    plain.then_some(id.0.as_str()).ok_or_else(missing)
}

/// An issue. Serialised, it is the variable `issue` of prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
    pub id: IssueId,
    /// Key that people use, such as `PROJ-1`.
    pub identifier: String,
    /// Longer name where the tracker has one, such as `owner/repo#12`.
    pub display_id: String,
    pub title: String,
    pub description: String,
    /// Lower is more urgent.
    pub priority: Option<i64>,
    /// In the tracker's letters; compared without regard to case.
    pub state: String,
    pub branch_name: Option<String>,
    pub url: Option<String>,
    /// In lower case.
    pub labels: Vec<String>,
    pub assignee: Option<String>,
    pub issue_type: Option<String>,
    pub parent: Option<Parent>,
    /// `None` if they were not read.
    pub comments: Option<Vec<Comment>>,
    pub blocked_by: Vec<Blocker>,
    /// Whether the tracker's own rules let the issue be worked on.
    pub dispatchable: bool,
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
}

/// Beginning of the markers of comments that are written for a person.
pub const PERSON: &str = "person-";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub id: String,
    pub identifier: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    pub id: String,
    #[serde(default)]
    pub author: String,
    pub body: String,
    #[serde(default)]
    pub created_at: String,
}

impl Comment {
    /// Whether the orchestrator wrote it for itself. What it wrote for a person is the person's.
    pub fn is_ours(&self) -> bool {
        let id = self.id.strip_prefix("hangar-").is_some_and(|marker| !marker.starts_with(PERSON));
        let mut marks = self.body.split("<!-- hangar:").skip(1);
        id || marks.any(|mark| !mark.starts_with(PERSON))
    }
}

/// An issue that has to be finished first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    #[serde(default)]
    pub id: String,
    #[serde(default)]
    pub identifier: String,
    /// Empty if it is not known, and then it blocks.
    #[serde(default)]
    pub state: String,
}

impl Issue {
    /// An issue with the fields that all have.
    pub fn new(id: &str, identifier: &str, title: &str, state: &str) -> Self {
        Self {
            id: IssueId(id.to_owned()),
            identifier: identifier.to_owned(),
            display_id: identifier.to_owned(),
            title: title.to_owned(),
            description: String::new(),
            priority: None,
            state: state.to_owned(),
            branch_name: None,
            url: None,
            labels: Vec::new(),
            assignee: None,
            issue_type: None,
            parent: None,
            comments: None,
            blocked_by: Vec::new(),
            dispatchable: true,
            created_at: None,
            updated_at: None,
        }
    }

    pub fn is_in(&self, states: &[String]) -> bool {
        let state = self.state.to_lowercase();
        states.iter().any(|known| known.to_lowercase() == state)
    }
}
