//! Pull requests of claims: what is remembered of them, and the reactions to what happens to them. Pure, as the plan is.

use std::collections::HashMap;

use hangar_trackers::IssueId;
use hangar_trackers::forge::{Check, CheckStatus, PullRequest, PullState, ReviewVerdict, Thread};
use hangar_workflow::Config;
use hangar_workflow::config::Escalation;
use hangar_workflow::reactions::ReviewConfig;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::record::{ParkReason, WorkFailure};
use crate::state::IssueClaim;

/// Heads of a branch that are remembered: a forge may show an old one for a while.
const MAX_HEADS: usize = 64;
/// Most remarks that one session answers.
const MAX_REMARKS: usize = 50;
/// Most bytes of one remark.
const MAX_REMARK: usize = 8 << 10;
/// Mark of comments that the orchestrator wrote.
const OURS: &str = "<!-- hangar:";

/// The pull request of a claim.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pull {
    pub number: u64,
    pub url: String,
    pub base: String,
    /// Commits that were its head, the last one last.
    pub heads: Vec<String>,
    /// Its summary when it was last read.
    pub seen: Option<Seen>,
    #[serde(default)]
    pub rounds: Rounds,
    /// Reviews and commands without a thread that were answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<String>,
    /// Head that the forge refused to merge.
    pub unmergeable: Option<String>,
}

impl Pull {
    pub fn new(number: u64, url: String, base: String) -> Self {
        let (heads, answered) = (Vec::new(), Vec::new());
        Self { number, url, base, heads, seen: None, rounds: Rounds::default(), answered, unmergeable: None }
    }

    pub fn head(&self) -> &str {
        self.heads.last().map_or("", String::as_str)
    }

    pub fn push_head(&mut self, head: &str) {
        self.heads.retain(|known| known != head);
        self.heads.push(head.to_owned());
        let surplus = self.heads.len().saturating_sub(MAX_HEADS);
        self.heads.drain(..surplus);
    }

    pub fn remember(&mut self, answered: &str) {
        self.answered.push(answered.to_owned());
        let surplus = self.answered.len().saturating_sub(MAX_HEADS);
        self.answered.drain(..surplus);
    }
}

/// Sessions that reactions have caused, of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rounds {
    pub ci: u32,
    pub reviews: u32,
    pub bot_reviews: u32,
    pub conflicts: u32,
}

/// Summary of a pull request, as lists and cards show it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    pub state: PullState,
    pub head: String,
    pub checks: Option<CheckStatus>,
    pub mergeable: Option<bool>,
    pub approved: bool,
    pub open_threads: usize,
}

impl Seen {
    pub fn of(pull: &PullRequest) -> Self {
        Self {
            state: pull.state,
            head: pull.head.clone(),
            checks: pull.checks_status(),
            mergeable: pull.mergeable,
            approved: pull.is_approved(),
            open_threads: pull.threads.iter().filter(|thread| !thread.is_resolved).count(),
        }
    }
}

/// The event that another session is about. It is in the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "to")]
pub enum Reaction {
    CiFailure {
        head: String,
        checks: Vec<Check>,
        log_excerpt: String,
    },
    Review {
        remarks: Vec<Remark>,
    },
    BotReview {
        remarks: Vec<Remark>,
    },
    /// The branch conflicts with its base.
    Conflict {
        base: String,
    },
    /// Somebody pushed to the branch, and both changed the same lines.
    Diverged,
    /// A person asks for another session by a label.
    Label {
        label: String,
    },
}

impl Reaction {
    pub fn remarks(&self) -> &[Remark] {
        match self {
            Reaction::Review { remarks } | Reaction::BotReview { remarks } => remarks,
            Reaction::CiFailure { .. }
            | Reaction::Conflict { .. }
            | Reaction::Diverged
            | Reaction::Label { .. } => &[],
        }
    }
}

/// Name of the answer to a command by a label: the label goes.
pub const LABEL_ANSWER: &str = "label";

impl Reaction {
    /// Remarks that are answered after the session.
    pub fn answers(&self) -> impl Iterator<Item = String> {
        let label = matches!(self, Reaction::Label { .. }).then(|| LABEL_ANSWER.to_owned());
        self.remarks().iter().map(|remark| remark.id.clone()).chain(label)
    }
}

/// A remark of a reviewer.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// Its last comment, or `review-` and the number of a review without lines.
    pub id: String,
    pub thread: Option<String>,
    /// First comment of the thread.
    pub first: Option<String>,
    pub file: String,
    pub start_line: Option<u64>,
    pub end_line: Option<u64>,
    pub reviewer: String,
    pub body: String,
}

/// End of the publication of a session's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum Publication {
    /// The pull request is open and has the work.
    Open,
    /// The session changed nothing.
    Unchanged,
    /// Somebody pushed to the branch, and both changed the same lines.
    Diverged,
    /// No pull request was opened by agent or hooks.
    Absent,
    Failed(WorkFailure),
}

/// Pull requests as they were read.
#[derive(Debug, Clone, Default)]
pub struct Pulls(pub HashMap<IssueId, PullView>);

#[derive(Debug, Clone)]
pub struct PullView {
    /// Start of the read.
    pub asked: Timestamp,
    pub pull: PullRequest,
}

/// The consequence of the state of a pull request.
#[derive(Debug, Clone, PartialEq)]
pub enum Consequence {
    /// The summary has changed.
    See(Seen),
    /// The issue is done.
    Complete,
    React(Reaction),
    Park(ParkReason),
    Merge {
        head: String,
    },
}

/// The next consequence for a claim that waits. `None` if there is nothing to do.
pub fn consequence(
    config: &Config,
    claim: &IssueClaim,
    view: &PullRequest,
    now: Timestamp,
) -> Option<Consequence> {
    let pull = claim.pull.as_ref()?;
    // A merge is for ever, whatever was read before it.
    if pull.seen.as_ref().is_some_and(|seen| seen.state == PullState::Merged) {
        return Some(Consequence::Complete);
    }
    // A merge of ours that was not recorded: made once more, it deletes the branch that a kill has left.
    let rule = &config.pulls.auto_merge;
    if view.state == PullState::Merged
        && rule.enabled
        && rule.delete_branch
        && view.head == pull.head()
        && pull.unmergeable.as_deref() != Some(view.head.as_str())
    {
        return Some(Consequence::Merge { head: view.head.clone() });
    }
    let seen = Seen::of(view);
    if pull.seen.as_ref() != Some(&seen) {
        return Some(Consequence::See(seen));
    }
    match view.state {
        PullState::Merged => return Some(Consequence::Complete),
        PullState::Closed => return Some(Consequence::Park(ParkReason::PullClosed { number: pull.number })),
        PullState::Open => {}
    }
    // An old head: the forge has not noticed the last push yet.
    if view.head != pull.head() && pull.heads.contains(&view.head) {
        return None;
    }
    let found = conflict(config, claim, view).or_else(|| ci(config, claim, view));
    let found = found.or_else(|| review(config, claim, view, now, Reviewer::Person));
    let found = found.or_else(|| review(config, claim, view, now, Reviewer::Bot));
    found.or_else(|| label(config, view)).or_else(|| merge(config, claim, view))
}

fn exhausted(what: &str, limit: u32, label: &str) -> Consequence {
    let (what, label) = (what.to_owned(), Some(label.to_owned()));
    Consequence::Park(ParkReason::PullStuck { what, limit, label })
}

fn conflict(config: &Config, claim: &IssueClaim, view: &PullRequest) -> Option<Consequence> {
    let (settings, rounds) = (&config.pulls.conflicts, claim.pull.as_ref()?.rounds.conflicts);
    if !settings.enabled || view.mergeable != Some(false) {
        return None;
    }
    Some(match rounds < settings.max_retries {
        true => Consequence::React(Reaction::Conflict { base: view.base.clone() }),
        false => exhausted("the merge conflict", settings.max_retries, &settings.escalation_label),
    })
}

fn ci(config: &Config, claim: &IssueClaim, view: &PullRequest) -> Option<Consequence> {
    let (settings, rounds) = (&config.pulls.ci, claim.pull.as_ref()?.rounds.ci);
    if !settings.enabled || view.checks_status() != Some(CheckStatus::Failing) {
        return None;
    }
    // The others may fail as well; one session should see all.
    if view.checks.iter().any(|check| check.status == CheckStatus::Pending) {
        return None;
    }
    if rounds >= settings.max_retries {
        let label = match settings.escalation {
            Escalation::Label => Some(settings.escalation_label.clone()),
            Escalation::Comment => None,
        };
        let what = "the failure of CI".to_owned();
        return Some(Consequence::Park(ParkReason::PullStuck { what, limit: settings.max_retries, label }));
    }
    let failed = view.checks.iter().filter(|check| check.status == CheckStatus::Failing);
    Some(Consequence::React(Reaction::CiFailure {
        head: view.head.clone(),
        checks: failed.cloned().collect(),
        log_excerpt: view.log_excerpt.clone(),
    }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reviewer {
    Person,
    Bot,
}

fn review(
    config: &Config,
    claim: &IssueClaim,
    view: &PullRequest,
    now: Timestamp,
    reviewer: Reviewer,
) -> Option<Consequence> {
    let pull = claim.pull.as_ref()?;
    let (settings, rounds, what) = match reviewer {
        Reviewer::Person => (&config.pulls.reviews, pull.rounds.reviews, "the remarks of reviewers"),
        Reviewer::Bot => (&config.pulls.bot_reviews, pull.rounds.bot_reviews, "the remarks of bots"),
    };
    if !settings.enabled {
        return None;
    }
    let (remarks, last) = remarks(pull, view, reviewer);
    if remarks.is_empty() || !is_settled(settings, last, now) {
        return None;
    }
    Some(match rounds < settings.max_rounds {
        true if reviewer == Reviewer::Bot => Consequence::React(Reaction::BotReview { remarks }),
        true => Consequence::React(Reaction::Review { remarks }),
        false => exhausted(what, settings.max_rounds, &settings.escalation_label),
    })
}

/// Whether a reviewer has been silent long enough to be done.
fn is_settled(settings: &ReviewConfig, last: Option<Timestamp>, now: Timestamp) -> bool {
    let debounce = SignedDuration::try_from(settings.debounce).unwrap_or(SignedDuration::MAX);
    last.is_none_or(|last| now.duration_since(last) >= debounce)
}

/// Remarks that nobody has answered, with the time of the last one.
fn remarks(pull: &Pull, view: &PullRequest, reviewer: Reviewer) -> (Vec<Remark>, Option<Timestamp>) {
    let wanted = |is_bot: bool| is_bot == (reviewer == Reviewer::Bot);
    let mut times: Vec<Timestamp> = Vec::new();
    let mut found: Vec<Remark> = Vec::new();
    for thread in view.threads.iter().filter(|thread| !thread.is_resolved && !thread.is_outdated) {
        let Some(last) = thread.comments.last() else { continue };
        let is_bot = thread.comments.first().is_some_and(|first| first.is_bot);
        if last.body.contains(OURS) || !wanted(is_bot) {
            continue;
        }
        times.extend(last.created_at.parse::<Timestamp>());
        found.push(thread_remark(thread, &last.id));
    }
    for review in &view.reviews {
        let id = format!("review-{}", review.id);
        let counts = review.verdict == ReviewVerdict::ChangesRequested
            || (review.is_bot && review.verdict == ReviewVerdict::Commented);
        let is_said = !review.body.trim().is_empty() && !review.body.contains(OURS);
        if counts && is_said && wanted(review.is_bot) && !pull.answered.contains(&id) {
            times.extend(review.submitted_at.parse::<Timestamp>());
            found.push(Remark {
                id,
                thread: None,
                first: None,
                file: String::new(),
                start_line: None,
                end_line: None,
                reviewer: review.author.clone(),
                body: cut(&review.body),
            });
        }
    }
    found.truncate(MAX_REMARKS);
    (found, times.into_iter().max())
}

/// A thread as one remark: all that was said since our last answer.
fn thread_remark(thread: &Thread, id: &str) -> Remark {
    let since =
        thread.comments.iter().rposition(|comment| comment.body.contains(OURS)).map_or(0, |at| at + 1);
    let said: Vec<&str> = thread.comments[since..].iter().map(|comment| comment.body.as_str()).collect();
    Remark {
        id: id.to_owned(),
        thread: Some(thread.id.clone()),
        first: thread.comments.first().map(|first| first.id.clone()),
        file: thread.file.clone(),
        start_line: thread.start_line.or(thread.end_line),
        end_line: thread.end_line,
        reviewer: thread.comments.last().map(|last| last.author.clone()).unwrap_or_default(),
        body: cut(&said.join("\n\n")),
    }
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(MAX_REMARK);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

fn label(config: &Config, view: &PullRequest) -> Option<Consequence> {
    let label = config.pulls.fix_label.as_ref().filter(|label| view.labels.contains(label))?;
    Some(Consequence::React(Reaction::Label { label: label.clone() }))
}

/// Merges when the rule holds, each head once.
fn merge(config: &Config, claim: &IssueClaim, view: &PullRequest) -> Option<Consequence> {
    let (rule, pull) = (&config.pulls.auto_merge, claim.pull.as_ref()?);
    let ci_holds = match view.checks_status() {
        Some(CheckStatus::Passing) => true,
        Some(CheckStatus::Pending | CheckStatus::Failing) | None => !rule.require_ci,
    };
    let holds = rule.enabled
        && !view.is_draft
        && view.mergeable == Some(true)
        && view.head == pull.head()
        && pull.unmergeable.as_deref() != Some(view.head.as_str())
        && ci_holds
        && view.threads.iter().all(|thread| thread.is_resolved || thread.is_outdated)
        && !view.has_changes_requested()
        && (!rule.require_approval || view.is_approved())
        && rule.label.as_ref().is_none_or(|label| view.labels.contains(label));
    holds.then(|| Consequence::Merge { head: view.head.clone() })
}
