//! Forges: pull requests with their checks and reviews, behind one trait.
//!
//! [`PullRequest`] is the shape that all forges normalise to. Writes are idempotent: a branch has one open pull request, a
//! reply carries a marker by which it is found, and a merge names the commit that it is about.

use hangar_workflow::reactions::MergeMethod;
use serde::{Deserialize, Serialize};

use crate::{LabelChange, NewComment, Reading};

/// A forge with pull requests. One instance serves any number of callers at once.
pub trait Forge: Send + Sync {
    /// Opens the pull request of a branch, or finds the one that is open. Fails with [`NothingToMerge`] for a branch without
    /// commits of its own.
    ///
    /// [`NothingToMerge`]: crate::TrackerErrorKind::NothingToMerge
    fn publish(&self, draft: PullDraft) -> Reading<PullName>;

    /// Reads a pull request, with the last lines of the log of its first failed check.
    fn look(&self, number: u64, log_lines: u32) -> Reading<PullRequest>;

    /// Answers a thread or, without one, the pull request, unless an answer has the marker.
    fn answer(&self, number: u64, thread: Option<ThreadAnswer>, comment: NewComment) -> Reading<()>;

    /// Merges a commit. One that is no longer the head is refused, and one that is merged already stays so.
    fn merge(&self, order: MergeOrder) -> Reading<()>;

    /// Adds or removes a label of a pull request.
    fn label_pull(&self, number: u64, label: &str, change: LabelChange) -> Reading<()>;
}

/// A pull request to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullDraft {
    pub branch: String,
    pub base: Option<String>,
    pub title: String,
    pub body: String,
    pub draft: bool,
    pub labels: Vec<String>,
    pub reviewers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullName {
    pub number: u64,
    pub url: String,
    pub base: String,
}

/// A thread that is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadAnswer {
    pub thread: String,
    /// First comment of the thread.
    pub comment: String,
    /// Whether the thread is resolved afterwards.
    pub resolve: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeOrder {
    pub number: u64,
    pub head: String,
    pub method: MergeMethod,
    /// Branch that is deleted afterwards.
    pub delete: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    pub url: String,
    pub state: PullState,
    pub is_draft: bool,
    /// Commit at its head.
    pub head: String,
    pub base: String,
    /// `None` while the forge finds out.
    pub mergeable: Option<bool>,
    /// In lower case.
    pub labels: Vec<String>,
    pub checks: Vec<Check>,
    /// Last lines of the log of the first check that failed.
    pub log_excerpt: String,
    pub threads: Vec<Thread>,
    pub reviews: Vec<Review>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullState {
    Open,
    Closed,
    Merged,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub status: CheckStatus,
    /// Word of the forge, such as `timed_out`.
    pub conclusion: String,
    pub details_url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Pending,
    Passing,
    Failing,
}

impl CheckStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            CheckStatus::Pending => "pending",
            CheckStatus::Passing => "passing",
            CheckStatus::Failing => "failing",
        }
    }
}

/// A thread of comments on lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    pub id: String,
    pub is_resolved: bool,
    /// Whether the lines have changed since.
    pub is_outdated: bool,
    pub file: String,
    pub start_line: Option<u64>,
    pub end_line: Option<u64>,
    /// Oldest first.
    pub comments: Vec<ThreadComment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadComment {
    pub id: String,
    pub author: String,
    pub is_bot: bool,
    pub body: String,
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    pub id: String,
    pub author: String,
    pub is_bot: bool,
    pub verdict: ReviewVerdict,
    pub body: String,
    pub submitted_at: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVerdict {
    Approved,
    ChangesRequested,
    Commented,
    /// Withdrawn, or not submitted yet.
    Void,
}

impl PullRequest {
    /// Result of all checks together. `None` without any.
    pub fn checks_status(&self) -> Option<CheckStatus> {
        let any = |status| self.checks.iter().any(|check| check.status == status);
        match () {
            () if self.checks.is_empty() => None,
            () if any(CheckStatus::Failing) => Some(CheckStatus::Failing),
            () if any(CheckStatus::Pending) => Some(CheckStatus::Pending),
            () => Some(CheckStatus::Passing),
        }
    }

    /// The last verdict of each person. A comment is none.
    fn verdicts(&self) -> impl Iterator<Item = ReviewVerdict> {
        let counts = |review: &&Review| review.verdict != ReviewVerdict::Commented;
        let is_last = move |review: &Review, at: usize| {
            !self.reviews[at + 1..].iter().any(|later| later.author == review.author && counts(&later))
        };
        let last = self.reviews.iter().enumerate().filter(move |(at, review)| is_last(review, *at));
        last.map(|(_, review)| review).filter(counts).map(|review| review.verdict)
    }

    pub fn is_approved(&self) -> bool {
        self.verdicts().any(|verdict| verdict == ReviewVerdict::Approved) && !self.has_changes_requested()
    }

    pub fn has_changes_requested(&self) -> bool {
        self.verdicts().any(|verdict| verdict == ReviewVerdict::ChangesRequested)
    }
}

/// The last lines of a log, within a number of bytes.
pub(crate) fn tail(log: &str, lines: u32) -> String {
    const MAX_BYTES: usize = 16 << 10;
    let all: Vec<&str> = log.lines().collect();
    let text = all[all.len().saturating_sub(lines as usize)..].join("\n");
    let mut start = text.len().saturating_sub(MAX_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_owned()
}
