//! Notices: events that a person may want to hear of at once, wherever they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Longest text of a notice.
const MAX_TEXT: usize = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoticeKind {
    /// An agent asks something.
    Question,
    /// A turn or a run has failed.
    Failure,
    /// A budget holds work.
    Budget,
    /// A turn or a run has ended well.
    Finish,
}

impl NoticeKind {
    pub const ALL: &'static [NoticeKind] =
        &[NoticeKind::Question, NoticeKind::Failure, NoticeKind::Budget, NoticeKind::Finish];

    pub fn as_str(self) -> &'static str {
        match self {
            NoticeKind::Question => "question",
            NoticeKind::Failure => "failure",
            NoticeKind::Budget => "budget",
            NoticeKind::Finish => "finish",
        }
    }
}

/// Something that happened, for a person.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    pub kind: NoticeKind,
    /// A few words.
    pub title: String,
    /// One sentence.
    pub text: String,
    pub at: String,
    pub session: Option<String>,
    pub run: Option<String>,
    /// Directory of the work.
    pub project: Option<String>,
}

impl Notice {
    pub(crate) fn new(kind: NoticeKind, title: String, text: &str, at: String) -> Self {
        let text = text.lines().next().unwrap_or_default();
        let mut end = text.len().min(MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Self { kind, title, text: text[..end].to_owned(), at, session: None, run: None, project: None }
    }
}
