//! Records of the orchestrator: what is written down, in the order in which it happened.

use std::path::PathBuf;

use hangar_trackers::IssueId;
use hangar_workflow::contest::JudgeKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::contest::{ClaimRival, RivalResult};
use crate::pulls::{Publication, Reaction, Seen};
use crate::state::OrchestratorState;

/// Prefix of the status with which an agent ends its session to ask a person.
pub const ASK: &str = "ask: ";

/// A line of the orchestrator's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrchestratorRecord {
    pub seq: u64,
    #[serde(with = "iso")]
    pub at: Timestamp,
    #[serde(flatten)]
    pub fact: IssueFact,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum IssueFact {
    /// An issue is claimed. It stays claimed until it is released.
    Claimed {
        issue: IssueId,
        identifier: String,
        title: String,
        state: String,
        agent: String,
        /// Most turns of a session, if a rule says so.
        max_turns: Option<u32>,
        /// Name of the first stage, if a rule names one.
        stage: Option<String>,
        /// Stages after it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        next_stages: Vec<ClaimStage>,
        /// Agents that work on it side by side, if a rule names some.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rivals: Vec<ClaimRival>,
        judge: Option<JudgeKind>,
    },
    /// The rivals of a claim begin.
    ContestBegun {
        issue: IssueId,
    },
    /// The work of a rival, whose key is given, is committed and measured.
    RivalDone {
        issue: IssueId,
        result: RivalResult,
    },
    /// The criteria choose a candidate.
    Chosen {
        issue: IssueId,
        candidate: u32,
    },
    /// The work of a candidate is in the workspace of the issue.
    Promoted {
        issue: IssueId,
        candidate: u32,
        workspace: PathBuf,
        branch: String,
        /// State of the issue, which was read again before.
        state: Option<String>,
    },
    /// A stage is done, and the next one begins as soon as there is a slot.
    StageAdvanced {
        issue: IssueId,
        stage: ClaimStage,
    },
    /// Another session for a claim whose retry is due.
    Restarted {
        issue: IssueId,
    },
    /// The workspace is ready and the agent has been started in it.
    Opened {
        issue: IssueId,
        session: String,
        workspace: PathBuf,
        branch: Option<String>,
        /// State of the issue, which was read again before.
        state: String,
    },
    TurnStarted {
        issue: IssueId,
        turn: u32,
    },
    TurnEnded {
        issue: IssueId,
        end: WorkTurnEnd,
        /// First line of `.sortie/status`, if the agent wrote that file.
        soft_stop: Option<String>,
        #[serde(default)]
        tokens: Tokens,
    },
    /// The issue was read again after a turn. `None` if it no longer exists.
    Checked {
        issue: IssueId,
        state: Option<String>,
    },
    /// The session is over. The reason decides about the claim.
    SessionEnded {
        issue: IssueId,
        end: SessionEnd,
    },
    /// The agent is gone, its slot is free and the last hook has run.
    Finished {
        issue: IssueId,
        /// Size of the workspace, if there is a quota.
        workspace_bytes: Option<u64>,
    },
    /// A write to the tracker was made, or given up.
    Written {
        issue: IssueId,
        write: Write,
        error: Option<String>,
    },
    RetryAt {
        issue: IssueId,
        #[serde(with = "iso")]
        due: Timestamp,
        cause: RetryCause,
        error: Option<String>,
    },
    /// The issue waits for a person.
    Parked {
        issue: IssueId,
        reason: ParkReason,
    },
    /// The work is pushed, and its pull request is open.
    Published {
        issue: IssueId,
        number: u64,
        url: String,
        base: String,
        head: String,
        /// Whether the head is another one than before.
        changed: bool,
    },
    /// The work was not published.
    Unpublished {
        issue: IssueId,
        outcome: Publication,
    },
    /// A remark was answered, or the answer was given up.
    Answered {
        issue: IssueId,
        remark: String,
        error: Option<String>,
    },
    /// The claim waits for what happens to its pull request.
    Waiting {
        issue: IssueId,
    },
    /// The summary of a pull request has changed.
    PullSeen {
        issue: IssueId,
        seen: Seen,
    },
    /// Another session follows from what happened to a pull request.
    Reacted {
        issue: IssueId,
        reaction: Reaction,
    },
    /// A pull request was merged, or the forge refused.
    Merged {
        issue: IssueId,
        head: String,
        error: Option<String>,
    },
    Released {
        issue: IssueId,
        release: Release,
    },
    /// The workspace of an issue is gone. Dirty work was kept under the ref.
    WorkspaceRemoved {
        issue: IssueId,
        kept: Option<String>,
    },
    /// A person asked for something.
    Requested {
        issue: IssueId,
        identifier: String,
        request: PersonRequest,
        id: String,
    },
    /// The process was started again. Sessions of the one before have ended.
    Resumed,
    /// The state after all records before this one, which a compaction removed.
    Compacted {
        state: Box<OrchestratorState>,
    },
    /// A fact of a later version.
    #[serde(other)]
    Unknown,
}

impl IssueFact {
    /// Whether the fact has to survive a power cut.
    pub fn is_milestone(&self) -> bool {
        !matches!(self, IssueFact::Checked { .. } | IssueFact::TurnStarted { .. } | IssueFact::Unknown)
    }
}

/// A stage of a claim, as the workflow had it when the claim began.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimStage {
    pub name: String,
    pub agent: String,
    pub max_turns: Option<u32>,
}

/// End of one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum WorkTurnEnd {
    Completed,
    Failed(WorkFailure),
    /// The process ended during it.
    Interrupted,
}

/// Failure of a turn or of the start of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkFailure {
    /// Name of the kind, such as `turn_failed`.
    pub kind: String,
    pub message: String,
    pub retryable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "why")]
pub enum SessionEnd {
    /// All turns of a session are used.
    MaxTurns,
    /// The agent asked to stop, with this word.
    SoftStop {
        word: String,
    },
    /// The issue has left the active states.
    Inactive {
        state: String,
    },
    /// The issue no longer exists.
    Gone,
    Failed(WorkFailure),
    /// The process ended during it. Nothing failed.
    Interrupted,
    /// A person stopped it.
    Stopped,
}

/// A write to the tracker. All are idempotent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Write {
    Transition { to: String },
    Comment { marker: String, body: String },
    Label { label: String },
    Unlabel { label: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RetryCause {
    /// The session ended well and the issue is still active.
    Continuation,
    Failure,
    /// The process ended during it.
    Interrupted,
    /// A person asked for it.
    Person,
    /// Something happened to the pull request.
    Reaction,
    /// The next stage follows.
    Stage,
    /// A rival begins.
    Contest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "why")]
pub enum ParkReason {
    /// The agent says that it cannot go on.
    Blocked,
    /// The agent asks for a review, and the workflow has no state for it.
    NeedsReview {
        word: String,
    },
    /// Another attempt would fail as well.
    Failed {
        kind: String,
        message: String,
    },
    /// All sessions that an issue may have are used.
    MaxSessions {
        limit: u32,
    },
    Stopped,
    Requested,
    /// The agent asks something.
    Question {
        question: String,
    },
    /// A person chooses one of these candidates.
    Choice {
        candidates: Vec<u32>,
        of: u32,
    },
    /// No candidate is good enough.
    NoCandidate {
        of: u32,
    },
    /// The session changed nothing, so there is nothing to review.
    NoChange,
    /// Somebody closed the pull request without merging it.
    PullClosed {
        number: u64,
    },
    /// Sessions did not help.
    PullStuck {
        what: String,
        limit: u32,
        /// Label of the issue, if it is another one than that of all parked issues.
        label: Option<String>,
    },
}

impl ParkReason {
    /// The reason as a sentence of its own.
    pub fn sentence(&self) -> String {
        match self {
            ParkReason::Blocked => "the agent reports that it is blocked".to_owned(),
            ParkReason::NeedsReview { word } => format!("the agent asks for a person: `{word}`"),
            ParkReason::Failed { kind, message } => format!("{message} ({kind})"),
            ParkReason::MaxSessions { limit } => format!("all {limit} sessions of the issue are used"),
            ParkReason::Stopped => "it was stopped".to_owned(),
            ParkReason::Requested => "it was parked".to_owned(),
            ParkReason::Question { question } => format!("the agent asks: {question}"),
            ParkReason::Choice { candidates, of } => {
                let names: Vec<String> = candidates.iter().map(u32::to_string).collect();
                format!("a candidate is to be chosen; of {of}, these can be promoted: {}", names.join(", "))
            }
            ParkReason::NoCandidate { of } => format!("none of its {of} candidates meets the criteria"),
            ParkReason::NoChange => "the agent changed nothing".to_owned(),
            ParkReason::PullClosed { number } => {
                format!("the pull request #{number} was closed without being merged")
            }
            ParkReason::PullStuck { what, limit: 0, .. } => format!("{what} needs a person"),
            ParkReason::PullStuck { what, limit: 1, .. } => format!("{what} remains after 1 attempt"),
            ParkReason::PullStuck { what, limit, .. } => format!("{what} remains after {limit} attempts"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "why")]
pub enum Release {
    HandedOff {
        state: String,
    },
    Inactive {
        state: String,
    },
    Gone,
    /// A person has acted on a parked issue.
    Unparked,
    /// The pull request was merged.
    Merged {
        number: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PersonRequest {
    /// Work on it next, whatever holds it except limits.
    Start,
    /// End its session and park it.
    Stop,
    Park,
    /// Try it again now.
    Retry,
    /// Go on with the work of a candidate.
    Promote {
        candidate: u32,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
}

impl Tokens {
    pub fn total(self) -> u64 {
        self.input + self.output
    }
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
    }
}

/// Timestamps with milliseconds, as in all logs of Hangar.
pub(crate) mod iso {
    use jiff::Timestamp;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{at:.3}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
