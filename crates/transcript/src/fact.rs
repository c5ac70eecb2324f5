//! Facts of the transcript: the parts of an event that a person is shown. They borrow from the event.

use std::borrow::Cow;

use serde_json::Value;

use crate::block::{AskKind, NoticeLevel, VerdictOutcome};

/// Text of the notice that the end of a compaction replaces.
pub(crate) const COMPACTING: &str = "Compacting the conversation to make room";

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CalledTool<'a> {
    pub(crate) call: &'a str,
    pub(crate) name: &'a str,
    pub(crate) args: &'a Value,
    pub(crate) title: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Done<'a> {
    pub(crate) call: &'a str,
    pub(crate) success: bool,
    pub(crate) output: &'a str,
    pub(crate) diff: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    pub(crate) exit_code: Option<i64>,
    /// Type and base64 of each.
    pub(crate) pictures: Vec<(&'a str, &'a str)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StartedAgent<'a> {
    pub(crate) call: &'a str,
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    pub(crate) background: bool,
    pub(crate) model: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NoticeFact<'a> {
    pub(crate) level: NoticeLevel,
    pub(crate) text: Cow<'a, str>,
    pub(crate) detail: Option<Cow<'a, str>>,
    /// Text of an earlier notice about the same operation, which this one replaces.
    pub(crate) instead: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fact<'a> {
    UserSaid {
        text: &'a str,
        delivery: Option<&'a str>,
        attachments: Vec<&'a str>,
        source: Option<&'a str>,
    },
    TurnStarted,
    TurnEnded,
    MessageDelta {
        message: &'a str,
        piece: &'a str,
    },
    MessageDone {
        message: &'a str,
        text: &'a str,
        reasoning: &'a str,
        requests: Vec<CalledTool<'a>>,
    },
    /// An answer that ended early.
    AnswerCut {
        message: &'a str,
        text: &'a str,
        reasoning: &'a str,
        /// Whether no other event tells of the interruption.
        recovered: bool,
    },
    ReasoningDelta {
        reasoning: &'a str,
        piece: &'a str,
    },
    ReasoningDone {
        reasoning: &'a str,
        text: &'a str,
    },
    ToolWriting {
        call: &'a str,
        name: Option<&'a str>,
        piece: &'a str,
    },
    ToolStarted(CalledTool<'a>),
    ToolOutput {
        call: &'a str,
        text: &'a str,
    },
    ToolProgress {
        call: &'a str,
        message: &'a str,
    },
    ToolDone(Done<'a>),
    Asked {
        request: &'a str,
        kind: AskKind,
        call: Option<&'a str>,
        data: &'a Value,
    },
    Answered {
        request: &'a str,
        outcome: VerdictOutcome,
        detail: Option<&'a str>,
    },
    AgentStarted(StartedAgent<'a>),
    AgentEnded {
        call: &'a str,
        error: Option<&'a str>,
        tools: Option<i64>,
        tokens: Option<i64>,
        ms: Option<i64>,
    },
    Notice(NoticeFact<'a>),
    Rewound {
        up_to: &'a str,
    },
    ModelIs {
        model: &'a str,
        effort: Option<&'a str>,
        changed: bool,
    },
    ModeIs {
        mode: &'a str,
    },
    Context {
        tokens: i64,
        limit: i64,
    },
}

impl<'a> Done<'a> {
    /// `content` is the text for the model, `detailed` the one for people, which may be a diff.
    pub(crate) fn with_texts(mut self, content: &'a str, detailed: &'a str) -> Self {
        self.diff = diff_in(detailed);
        self.output = if self.diff.is_none() && content.is_empty() { detailed } else { content };
        self
    }

    /// Raster formats only: an SVG is a document that could carry scripts.
    pub(crate) fn add_picture(&mut self, mime_type: &'a str, base64: &'a str) {
        if matches!(mime_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp") {
            self.pictures.push((mime_type, base64));
        }
    }
}

/// A unified diff, if a tool's detailed output is one.
fn diff_in(detailed: &str) -> Option<&str> {
    let start = detailed.trim_start();
    let mut lines = start.split('\n');
    let mut begins = |mark: &str| lines.next().is_some_and(|line| line.starts_with(mark));
    let is_diff = start.starts_with("diff --git ") || (begins("--- ") && begins("+++ ") && begins("@@ "));
    is_diff.then_some(start)
}

/// A number of tokens in a short form: `10.5k`.
pub(crate) fn tokens(count: f64) -> String {
    if count < 1_000.0 {
        return count.to_string();
    }
    if (10_000.0..1_000_000.0).contains(&count) {
        return format!("{}k", (count / 1_000.0).round());
    }
    let (value, unit) = if count < 10_000.0 { (count / 1_000.0, 'k') } else { (count / 1_000_000.0, 'M') };
    // Formatting rounds an exact half to the even digit, people round it up.
    let up = if (value * 4.0).fract() == 0.0 { 0.001 } else { 0.0 };
    format!("{:.1}{unit}", value + up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_tokens_are_short() {
        let shown = [0.0, 999.0, 1_000.0, 1_250.0, 9_949.0, 10_500.0, 118_204.0, 1_250_000.0].map(tokens);
        assert_eq!(shown, ["0", "999", "1.0k", "1.3k", "9.9k", "11k", "118k", "1.3M"]);
    }

    #[test]
    fn a_diff_is_told_from_other_text() {
        assert_eq!(diff_in("\n--- a\n+++ b\n@@ -1 +1 @@\n"), Some("--- a\n+++ b\n@@ -1 +1 @@\n"));
        assert_eq!(diff_in("diff --git a b"), Some("diff --git a b"));
        assert_eq!(diff_in("--- a list\nof dashes"), None);
    }
}
