//! Trackers and forges on a server: handles that share what makes the requests, and the writes that are made once.

use serde_json::{Value, json};

use crate::error::{TrackerError, TrackerErrorKind};
use crate::http::{Api, Method};
use crate::issue::{Comment, IssueId};
use crate::{NewComment, NewIssue};

/// Implements the traits of trackers for a handle by the `async fn`s of what it shares: `listed` (never without states),
/// `with_ids`, `transition`, `comment`, `label` and `create`. With `one_by_one`, `one` is in the place of `with_ids`.
macro_rules! remote_tracker {
    ($handle:ty, one_by_one) => {
        impl Inner {
            async fn with_ids(&self, ids: &[IssueId]) -> Result<Vec<Issue>, TrackerError> {
                let mut issues = Vec::new();
                for id in ids {
                    issues.extend(self.one(id).await?);
                }
                Ok(issues)
            }
        }

        $crate::remote::remote_tracker!($handle);
    };
    ($handle:ty) => {
        impl $crate::IssueReader for $handle {
            fn by_states(&self, states: &[String]) -> $crate::Reading<Vec<Issue>> {
                let (inner, states) = (Arc::clone(&self.0), states.to_vec());
                Box::pin(async move {
                    if states.is_empty() { Ok(Vec::new()) } else { inner.listed(&states).await }
                })
            }

            fn by_ids(&self, ids: &[IssueId]) -> $crate::Reading<Vec<Issue>> {
                let (inner, ids) = (Arc::clone(&self.0), ids.to_vec());
                Box::pin(async move { inner.with_ids(&ids).await })
            }
        }

        impl $crate::IssueWriter for $handle {
            fn transition(&self, id: &IssueId, state: &str) -> $crate::Reading<()> {
                let (inner, id, state) = (Arc::clone(&self.0), id.clone(), state.to_owned());
                Box::pin(async move { inner.transition(&id, &state).await })
            }

            fn comment(&self, id: &IssueId, comment: NewComment) -> $crate::Reading<()> {
                let (inner, id) = (Arc::clone(&self.0), id.clone());
                Box::pin(async move { inner.comment(&id, &comment).await })
            }

            fn label(&self, id: &IssueId, label: &str, change: LabelChange) -> $crate::Reading<()> {
                let (inner, id, label) = (Arc::clone(&self.0), id.clone(), label.to_owned());
                Box::pin(async move { inner.label(&id, &label, change).await })
            }

            fn create(&self, draft: NewIssue) -> $crate::Reading<IssueId> {
                let inner = Arc::clone(&self.0);
                Box::pin(async move { inner.create(&draft).await })
            }
        }
    };
}

/// Implements the trait of forges for a handle by the `async fn`s of what it shares.
macro_rules! remote_forge {
    ($handle:ty) => {
        impl $crate::Forge for $handle {
            fn publish(&self, draft: PullDraft) -> $crate::Reading<PullName> {
                let inner = Arc::clone(&self.0);
                Box::pin(async move { inner.publish(draft).await })
            }

            fn look(&self, number: u64, log_lines: u32) -> $crate::Reading<PullRequest> {
                let inner = Arc::clone(&self.0);
                Box::pin(async move { inner.look(number, log_lines).await })
            }

            fn answer(
                &self,
                number: u64,
                thread: Option<ThreadAnswer>,
                comment: NewComment,
            ) -> $crate::Reading<()> {
                let inner = Arc::clone(&self.0);
                Box::pin(async move { inner.answer(number, thread, comment).await })
            }

            fn merge(&self, order: MergeOrder) -> $crate::Reading<()> {
                let inner = Arc::clone(&self.0);
                Box::pin(async move { inner.merge(order).await })
            }

            fn label_pull(&self, number: u64, label: &str, change: LabelChange) -> $crate::Reading<()> {
                let (inner, label) = (Arc::clone(&self.0), label.to_owned());
                Box::pin(async move { inner.label(number, &label, change).await })
            }
        }
    };
}

pub(crate) use {remote_forge, remote_tracker};

/// Adds a comment, unless one of those that are known has its mark.
pub(crate) async fn comment_once(
    api: &Api,
    path: &str,
    known: &[Comment],
    comment: &NewComment,
) -> Result<(), TrackerError> {
    let mark = comment.mark();
    if known.iter().any(|known| known.body.contains(&mark)) {
        return Ok(());
    }
    api.send(Method::Post, path, Some(&json!({ "body": comment.text() }))).await.map(drop)
}

/// Words of a forge for the parts of an issue.
pub(crate) struct IssueWords {
    pub(crate) text: &'static str,
    pub(crate) number: &'static str,
}

/// Creates an issue at a path, unless one of the newest of a list has its mark.
pub(crate) async fn create_once(
    api: &Api,
    (newest, path): (&str, &str),
    words: &IssueWords,
    draft: &NewIssue,
) -> Result<IssueId, TrackerError> {
    let mark = draft.mark();
    let known = api.get(newest).await?.body;
    let has_mark = |entry: &&Value| entry[words.text].as_str().is_some_and(|text| text.contains(&mark));
    let made = match known.as_array().into_iter().flatten().find(has_mark) {
        Some(found) => found.clone(),
        None => {
            let body = json!({ "title": draft.title, (words.text): draft.text() });
            api.send(Method::Post, path, Some(&body)).await?
        }
    };
    let missing = || {
        let message = format!("{}'s answer is no issue", api.service_name());
        TrackerError::new(TrackerErrorKind::Payload, message)
    };
    made[words.number].as_u64().map(|number| IssueId(number.to_string())).ok_or_else(missing)
}
