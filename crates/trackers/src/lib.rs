//! Issue trackers behind one trait: read issues, and write a state, a comment or a label. [`forge`] is the trait of those
//! that have pull requests.
//!
//! [`issue`] is the shape that all trackers normalise to. Writes are idempotent, so that one that may have happened before a
//! crash can be made again: a state and a label are set, a comment carries a marker by which it is found.

mod blockers;
pub mod error;
pub mod file;
pub mod forge;
pub mod gitea;
pub mod github;
pub mod gitlab;
mod http;
pub mod issue;
pub mod jira;
mod kept;
mod label_states;
pub mod linear;
pub mod markdown;
mod open;
mod remote;
mod shared_file;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

pub use error::{TrackerError, TrackerErrorKind};
pub use forge::Forge;
pub use http::Credentials;
pub use issue::{Issue, IssueId};
pub use open::{KINDS, open, open_forge, open_tokens};

pub type Reading<T> = BoxFuture<'static, Result<T, TrackerError>>;

/// A tracker of issues. One instance serves any number of callers at once.
pub trait Tracker: IssueReader + IssueWriter {}

impl<T: IssueReader + IssueWriter> Tracker for T {}

/// Reads of a tracker.
pub trait IssueReader: Send + Sync {
    /// Issues in the given states, in a stable order. None for no states, without a request.
    fn by_states(&self, states: &[String]) -> Reading<Vec<Issue>>;

    /// Issues by their ids, with their comments. One that is missing in the result no longer exists.
    fn by_ids(&self, ids: &[IssueId]) -> Reading<Vec<Issue>>;
}

/// Writes of a tracker.
pub trait IssueWriter: Send + Sync {
    /// Moves an issue to a state. One that is there already stays.
    fn transition(&self, id: &IssueId, state: &str) -> Reading<()>;

    /// Adds a comment, unless the issue has one with the marker.
    fn comment(&self, id: &IssueId, comment: NewComment) -> Reading<()>;

    /// Adds or removes a label.
    fn label(&self, id: &IssueId, label: &str, change: LabelChange) -> Reading<()>;

    /// Creates an issue that nobody works on before a person has looked at it, unless there is one with the marker.
    fn create(&self, draft: NewIssue) -> Reading<IssueId>;
}

/// An issue to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIssue {
    /// One word that no other issue has.
    pub marker: String,
    pub title: String,
    pub description: String,
}

impl NewIssue {
    /// The marker as it is written in Markdown.
    pub(crate) fn mark(&self) -> String {
        format!("<!-- hangar:{} -->", self.marker)
    }

    pub(crate) fn text(&self) -> String {
        format!("{}\n\n{}", self.description, self.mark())
    }
}

/// State of a new issue in trackers that have no other word for it.
pub(crate) const NEW_STATE: &str = "Triage";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewComment {
    /// One word that no other comment of the issue has. It is written with the comment, invisibly where that is possible.
    pub marker: String,
    pub body: String,
    pub at: Timestamp,
}

impl NewComment {
    /// The marker as it is written in Markdown.
    pub fn mark(&self) -> String {
        format!("<!-- hangar:{} -->", self.marker)
    }

    pub fn text(&self) -> String {
        format!("{}\n{}", self.body.trim_end(), self.mark())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelChange {
    Add,
    Remove,
}
