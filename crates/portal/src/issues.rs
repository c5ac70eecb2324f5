//! Issues that the machine works on, and the workflows that say how. The host hands them in.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Future of an answer of the host.
pub type Asked<T> = BoxFuture<'static, Result<T, IssueRefusal>>;

/// Issues of all workflows that the portal runs.
pub trait IssuesHost: Send + Sync {
    /// The board: all issues, each with its column and the reason for it.
    fn board(&self, query: BoardQuery) -> Asked<IssueBoard>;

    /// One issue, by the name of its workflow and its id or identifier.
    fn issue(&self, workflow: String, issue: String) -> Asked<IssueDetails>;

    /// Carries an order out, and returns the issue as it is afterwards.
    fn act(&self, workflow: String, issue: String, order: IssueOrder) -> Asked<IssueDetails>;

    /// The changes of a candidate.
    fn diff(&self, workflow: String, issue: String, candidate: u32) -> Asked<CandidateDiff>;
}

/// Workflow files.
pub trait WorkflowsHost: Send + Sync {
    fn read(&self, workflow: String) -> Asked<WorkflowText>;

    /// Checks a text without saving it, and renders the prompt for an issue if one is named.
    fn check(&self, workflow: String, draft: WorkflowDraft) -> Asked<WorkflowCheck>;

    /// Replaces the file. A text with errors and one that is based on another version are refused.
    fn save(&self, workflow: String, text: String, revision: String) -> Asked<WorkflowText>;
}

/// Why the host refuses, by what a client can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueRefusal {
    /// There is no such workflow or issue.
    Missing(String),
    /// The order does not fit the issue.
    Invalid(String),
    /// Somebody else changed it meanwhile.
    Changed(String),
    /// The tracker or the loop does not answer.
    Unavailable(String),
}

#[derive(Debug, Clone, Default)]
pub struct BoardQuery {
    /// Name of one workflow.
    pub workflow: Option<String>,
    /// Maximum number of issues of a column.
    pub limit: usize,
}

/// The board over all workflows.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct IssueBoard {
    pub workflows: Vec<WorkflowView>,
    /// The most urgent of each column.
    pub issues: Vec<IssueCard>,
    pub counts: Vec<ColumnCount>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ColumnCount {
    pub column: BoardColumn,
    pub count: usize,
}

/// A workflow that the portal runs.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Workflow")]
pub struct WorkflowView {
    /// Its name in paths of the API.
    pub key: String,
    /// Name of its directory.
    pub name: String,
    pub path: String,
    pub status: WorkflowStatus,
    /// Why it does not run, or what is wrong while it does.
    pub problem: Option<String>,
    /// States that an issue can be moved to, in the order of work.
    pub states: Vec<String>,
    /// Those of finished issues among them.
    pub terminal_states: Vec<String>,
    /// When the tracker was last read.
    pub read_at: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkflowStatus {
    Running,
    /// Another process works on its issues.
    Elsewhere,
    /// The file has errors.
    Invalid,
    /// It ended with an error and is started again.
    Failed,
    Starting,
}

/// Column of the board, in the order of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoardColumn {
    /// It would be started now.
    Eligible,
    Held,
    Running,
    Retrying,
    Parked,
    WaitingCi,
    WaitingReview,
    Done,
}

impl BoardColumn {
    pub const ALL: [Self; 8] = [
        Self::Eligible,
        Self::Held,
        Self::Running,
        Self::Retrying,
        Self::Parked,
        Self::WaitingCi,
        Self::WaitingReview,
        Self::Done,
    ];
}

/// An issue on the board.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Issue")]
pub struct IssueCard {
    pub workflow: String,
    pub id: String,
    pub identifier: String,
    pub title: String,
    /// State in the tracker.
    pub state: String,
    pub url: Option<String>,
    pub labels: Vec<String>,
    pub priority: Option<i64>,
    pub column: BoardColumn,
    /// Word for the reason; it stays the same from version to version.
    pub code: String,
    /// Why it is where it is, as a sentence.
    pub why: String,
    pub agent: Option<String>,
    pub stage: Option<String>,
    /// Its current or last session.
    pub session: Option<String>,
    pub turn: u32,
    pub max_turns: u32,
    /// Sessions that were started.
    pub sessions: u32,
    /// Failed attempts in a row.
    pub attempt: u32,
    /// When it was claimed, or released.
    pub since: Option<String>,
    /// When it is tried again.
    pub due: Option<String>,
    pub tokens: IssueTokens,
    /// In US dollars; absent if it is unknown.
    pub cost: Option<f64>,
    pub pull: Option<IssuePull>,
    /// Question of the agent that waits for an answer.
    pub question: Option<String>,
    pub error: Option<String>,
    /// Orders that it takes now.
    pub actions: Vec<IssueAction>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssueTokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
}

/// The pull request of an issue, when it was last read.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuePull {
    pub number: u64,
    pub url: String,
    pub merged: bool,
    pub checks: Option<CheckResult>,
    pub approved: bool,
    pub open_threads: usize,
    pub mergeable: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckResult {
    Pending,
    Passing,
    Failing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IssueAction {
    /// Work on it next, whatever holds it except limits.
    Start,
    /// End its session and park it.
    Stop,
    Park,
    /// Try it again now.
    Retry,
    /// Move it to another state of the tracker.
    Move,
    /// Answer the question of its agent.
    Answer,
    /// Go on with the work of a candidate.
    Promote,
}

/// Order about an issue.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IssueOrder {
    pub action: IssueAction,
    /// Of `move`: the state.
    pub state: Option<String>,
    /// Of `answer`: the answer, which becomes a comment on the issue.
    pub text: Option<String>,
    /// Of `promote`: the number of the candidate.
    pub candidate: Option<u32>,
}

/// An issue with all that is known of it.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssueDetails {
    pub card: IssueCard,
    pub description: String,
    pub comments: Vec<IssueComment>,
    pub blockers: Vec<IssueBlocker>,
    pub workspace: Option<String>,
    pub branch: Option<String>,
    /// Ids of its sessions, the last one last.
    pub session_ids: Vec<String>,
    /// Agents that work on it side by side, until one is promoted.
    pub candidates: Vec<IssueCandidate>,
    pub checks: Vec<PullCheck>,
    /// Last lines of the log of the first check that failed.
    pub log_excerpt: Option<String>,
    pub threads: Vec<PullThread>,
    pub reviews: Vec<PullReview>,
}

/// One of several agents that work on an issue, each in a workspace of its own.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssueCandidate {
    pub number: u32,
    pub agent: String,
    /// Whether its work is over.
    pub done: bool,
    /// Whether all commands of the judge passed.
    pub meets_criteria: bool,
    /// Whether it can be promoted.
    pub promotable: bool,
    /// What it does, or how it ended, as a sentence.
    pub why: String,
    pub session: Option<String>,
    pub turns: u32,
    pub tokens: IssueTokens,
    /// In US dollars; absent if it is unknown.
    pub cost: Option<f64>,
    /// Changed files.
    pub files: u64,
    pub added: u64,
    pub removed: u64,
    pub score: Option<f64>,
    pub checks: Vec<IssueCriterion>,
    /// Commit with its work.
    pub commit: Option<String>,
}

/// A command of the judge.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct IssueCriterion {
    pub command: String,
    pub passed: bool,
    /// End of its output.
    pub output: String,
}

/// Changes of a candidate.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CandidateDiff {
    /// A unified diff.
    pub diff: String,
    /// Whether all of it is here.
    pub complete: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct IssueComment {
    pub author: String,
    pub body: String,
    pub at: String,
    /// Whether Hangar wrote it.
    pub ours: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct IssueBlocker {
    pub identifier: String,
    pub state: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PullCheck {
    pub name: String,
    pub result: CheckResult,
    pub conclusion: String,
    pub url: String,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PullThread {
    pub file: String,
    pub line: Option<u64>,
    pub resolved: bool,
    pub outdated: bool,
    pub comments: Vec<IssueComment>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PullReview {
    pub author: String,
    /// `approved`, `changes requested`, `commented` or `void`.
    pub verdict: String,
    pub body: String,
}

/// A workflow file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorkflowText {
    pub path: String,
    pub text: String,
    /// Version of the text, for the next change.
    pub revision: String,
    pub check: WorkflowCheck,
}

/// A text of a workflow that is not saved.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowDraft {
    pub text: String,
    /// Issue whose prompt is rendered, by its id or identifier.
    pub issue: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowCheck {
    pub valid: bool,
    pub problems: Vec<WorkflowProblem>,
    /// The prompt of the first turn.
    pub prompt: Option<String>,
    /// Why there is no prompt.
    pub prompt_problem: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorkflowProblem {
    /// `error` or `warning`.
    pub severity: String,
    /// Setting or rule that it is about.
    pub check: String,
    pub line: usize,
    pub column: usize,
    pub message: String,
}
