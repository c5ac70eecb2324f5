//! State of the orchestrator: a fold over its records. Serialised, it replaces them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hangar_trackers::forge::{CheckStatus, PullState};
use hangar_trackers::{Issue, IssueId};
use hangar_workflow::contest::JudgeKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::contest::{ClaimRival, RivalResult, RivalRole};
use crate::pulls::{Publication, Pull, Reaction};
use crate::record::{
    ClaimStage, IssueFact, OrchestratorRecord, ParkReason, PersonRequest, Release, RetryCause, SessionEnd,
    Tokens, WorkTurnEnd, Write, iso,
};

/// Issues that were released and are remembered.
const MAX_HISTORY: usize = 10_000;
/// Requests that are remembered, so that none counts twice.
const MAX_REQUESTS: usize = 256;
/// Sessions of an issue that are remembered.
pub(crate) const MAX_SESSION_IDS: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrchestratorState {
    /// Number of the next record.
    pub next_seq: u64,
    #[serde(with = "claims")]
    pub claims: BTreeMap<IssueId, IssueClaim>,
    /// Agents that work on a claimed issue side by side, by their keys.
    #[serde(with = "claims", default)]
    pub rivals: BTreeMap<IssueId, IssueClaim>,
    pub history: BTreeMap<IssueId, ReleasedIssue>,
    /// Workspaces on disk.
    pub workspaces: BTreeMap<IssueId, IssueWorkspace>,
    /// Issues that a person wants to be worked on next.
    pub wanted: BTreeMap<IssueId, String>,
    /// Ids of the last requests.
    pub requests: Vec<String>,
    pub totals: WorkTotals,
}

/// A claimed issue.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssueClaim {
    pub issue: IssueId,
    pub identifier: String,
    pub title: String,
    /// State of the issue when it was last read.
    pub state: String,
    pub agent: String,
    /// Most turns of a session, if a rule says so.
    pub max_turns: Option<u32>,
    /// Name of the current stage, if the claim has stages.
    pub stage: Option<String>,
    /// Stages that follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_stages: Vec<ClaimStage>,
    /// Agents that are to work on it side by side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<ClaimRival>,
    pub judge: Option<JudgeKind>,
    /// Its part in a contest, if it is a rival.
    pub role: Option<RivalRole>,
    /// Work of a rival.
    pub result: Option<RivalResult>,
    /// A question to a person that the next session has the answer to.
    pub question: Option<String>,
    /// Number of the record that began the claim: no other claim has it.
    pub number: u64,
    #[serde(with = "iso")]
    pub since: Timestamp,
    /// Failed attempts in a row.
    pub failures: u32,
    /// Failed sessions since a person last acted, also those with turns that completed before.
    #[serde(default)]
    pub failed_sessions: u32,
    /// How often a person let it go on after it was parked.
    #[serde(default)]
    pub revivals: u32,
    /// Sessions that were started.
    pub sessions: u32,
    /// Turns of the current session.
    pub turn: u32,
    /// Turns of all sessions.
    pub turns: u32,
    pub tokens: Tokens,
    pub session: Option<String>,
    /// Ids of the last sessions, of earlier claims too, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session_ids: Vec<String>,
    pub workspace: Option<PathBuf>,
    pub branch: Option<String>,
    pub error: Option<String>,
    /// Whether a session was opened and not closed yet.
    #[serde(default)]
    pub is_open: bool,
    /// Writes of the current step that were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<Write>,
    /// Pull request of the branch.
    pub pull: Option<Pull>,
    /// Event that the current session reacts to, if any.
    pub reaction: Option<Reaction>,
    /// Result of publishing the work of the last session.
    pub publication: Option<Publication>,
    /// Remarks of the reaction that were answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<String>,
    /// Whether the last session changed the head of the pull request.
    #[serde(default)]
    pub changed: bool,
    /// Writes of the current step that the tracker refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Write>,
    pub phase: Phase,
}

impl IssueClaim {
    /// Its session has ended and is closed.
    fn finished(&mut self, totals: &mut WorkTotals) {
        let Phase::Closing { end } = &self.phase else { return };
        let end = end.clone();
        match &end {
            SessionEnd::MaxTurns | SessionEnd::Inactive { .. } => totals.sessions_completed += 1,
            SessionEnd::SoftStop { .. } => totals.soft_stops += 1,
            SessionEnd::Failed(failure) => {
                self.failures += 1;
                self.failed_sessions += 1;
                self.error = Some(failure.message.clone());
                totals.sessions_failed += 1;
            }
            SessionEnd::Gone | SessionEnd::Stopped => totals.sessions_cancelled += 1,
            // It is opened again as if nothing had happened.
            SessionEnd::Interrupted => {
                self.sessions = self.sessions.saturating_sub(u32::from(self.is_open));
            }
        }
        self.is_open = false;
        self.forget_writes();
        self.phase = Phase::Settling { end };
    }

    pub(crate) fn new(issue: &IssueId, identifier: &str, number: u64, since: Timestamp) -> Self {
        Self {
            issue: issue.clone(),
            identifier: identifier.to_owned(),
            title: String::new(),
            state: String::new(),
            agent: String::new(),
            max_turns: None,
            stage: None,
            next_stages: Vec::new(),
            rivals: Vec::new(),
            judge: None,
            role: None,
            result: None,
            question: None,
            number,
            since,
            failures: 0,
            failed_sessions: 0,
            revivals: 0,
            sessions: 0,
            turn: 0,
            turns: 0,
            tokens: Tokens::default(),
            session: None,
            session_ids: Vec::new(),
            workspace: None,
            branch: None,
            error: None,
            is_open: false,
            pull: None,
            reaction: None,
            publication: None,
            answered: Vec::new(),
            changed: false,
            written: Vec::new(),
            refused: Vec::new(),
            phase: Phase::Opening,
        }
    }

    /// The claim that an issue would get, in its first turn.
    pub fn preview(issue: &Issue, agent: &str, at: Timestamp) -> Self {
        Self {
            title: issue.title.clone(),
            state: issue.state.clone(),
            agent: agent.to_owned(),
            sessions: 1,
            turn: 1,
            turns: 1,
            ..Self::new(&issue.id, &issue.identifier, 0, at)
        }
    }

    /// A fact about the pull request.
    fn published(&mut self, record: &OrchestratorRecord) {
        match &record.fact {
            IssueFact::Published { number, url, base, head, changed, .. } => {
                let fresh = || Pull::new(*number, url.clone(), base.clone());
                let pull = self.pull.take().filter(|pull| pull.number == *number);
                let mut pull = pull.unwrap_or_else(fresh);
                pull.push_head(head);
                self.pull = Some(pull);
                self.changed = *changed;
                self.publication = Some(Publication::Open);
            }
            IssueFact::Unpublished { outcome, .. } => {
                self.changed = false;
                self.publication = Some(outcome.clone());
            }
            IssueFact::Answered { remark, .. } => {
                self.answered.push(remark.clone());
                if let Some(pull) = self.pull.as_mut().filter(|_| remark.starts_with("review-")) {
                    pull.remember(remark);
                }
            }
            IssueFact::Waiting { .. } => {
                // A person has acted: what was tried before counts no more.
                if let (Phase::Parked { .. }, Some(pull)) = (&self.phase, &mut self.pull) {
                    (pull.rounds, pull.unmergeable) = (Default::default(), None);
                    self.revivals += 1;
                }
                self.reaction = None;
                self.answered.clear();
                self.forget_writes();
                self.phase = Phase::Waiting { since: record.at };
            }
            IssueFact::PullSeen { seen, .. } => {
                let Some(pull) = &mut self.pull else { return };
                if seen.checks == Some(CheckStatus::Passing) {
                    pull.rounds.ci = 0;
                }
                if seen.mergeable == Some(true) {
                    pull.rounds.conflicts = 0;
                }
                pull.seen = Some(seen.clone());
            }
            IssueFact::Reacted { reaction, .. } => self.reacted(reaction, record.at),
            IssueFact::Merged { head, error, .. } => {
                let Some(pull) = &mut self.pull else { return };
                match (error, &mut pull.seen) {
                    (None, Some(seen)) => seen.state = PullState::Merged,
                    _ => pull.unmergeable = Some(head.clone()),
                }
            }
            _ => {}
        }
    }

    fn reacted(&mut self, reaction: &Reaction, at: Timestamp) {
        if let Some(pull) = &mut self.pull {
            let rounds = &mut pull.rounds;
            match reaction {
                Reaction::CiFailure { .. } => rounds.ci += 1,
                Reaction::Review { .. } => rounds.reviews += 1,
                Reaction::BotReview { .. } => rounds.bot_reviews += 1,
                Reaction::Conflict { .. } | Reaction::Diverged => rounds.conflicts += 1,
                Reaction::Label { .. } => {}
            }
        }
        self.reaction = Some(reaction.clone());
        self.answered.clear();
        self.publication = None;
        self.forget_writes();
        self.phase = Phase::Retrying { due: at, cause: RetryCause::Reaction };
    }

    /// The session that works on the issue from now on.
    fn works_in(&mut self, session: &str) {
        self.session = Some(session.to_owned());
        self.session_ids.push(session.to_owned());
        let surplus = self.session_ids.len().saturating_sub(MAX_SESSION_IDS);
        self.session_ids.drain(..surplus);
        self.sessions += 1;
        self.is_open = true;
        self.turn = 0;
        self.publication = None;
        self.phase = Phase::Ready;
    }

    /// The issue was read after a turn: its state, or none if it is gone.
    fn checked(&mut self, state: Option<&str>) {
        let Phase::Turned { soft_stop } = &self.phase else { return };
        let word = soft_stop.clone();
        (self.failures, self.error) = (0, None);
        if let Some(state) = state {
            state.clone_into(&mut self.state);
        }
        self.phase = match (state, word) {
            (None, _) => Phase::Closing { end: SessionEnd::Gone },
            (Some(_), Some(word)) => Phase::Closing { end: SessionEnd::SoftStop { word } },
            (Some(_), None) => Phase::Ready,
        };
    }

    /// The next stage begins, with its own agent and turns.
    fn staged(&mut self, stage: &ClaimStage, at: Timestamp) {
        let passed = self.next_stages.iter().position(|known| known == stage).map_or(0, |at| at + 1);
        self.next_stages.drain(..passed);
        self.stage = Some(stage.name.clone());
        self.agent.clone_from(&stage.agent);
        self.max_turns = stage.max_turns;
        (self.failures, self.error) = (0, None);
        self.forget_writes();
        self.phase = Phase::Retrying { due: at, cause: RetryCause::Stage };
    }

    /// Its workspace, once it has one.
    pub(crate) fn place(&self, at: Timestamp) -> Option<IssueWorkspace> {
        let (identifier, path) = (self.identifier.clone(), self.workspace.clone()?);
        let (branch, is_rival, role) = (self.branch.clone(), self.role.is_some(), self.role.clone());
        Some(IssueWorkspace { identifier, path, branch, is_rival, role, used: at, bytes: 0 })
    }

    pub(crate) fn forget_writes(&mut self) {
        self.written.clear();
        self.refused.clear();
    }

    /// Whether the tracker took or refused a write.
    pub fn is_settled(&self, write: &Write) -> bool {
        self.written.contains(write) || self.refused.contains(write)
    }
}

/// Phase of a claim. Each has one next step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "phase")]
pub enum Phase {
    /// A session is about to be opened.
    Opening,
    /// A turn is about to begin.
    Ready,
    Turn,
    /// A turn has completed, and the issue is about to be read again.
    Turned {
        soft_stop: Option<String>,
    },
    /// The session is about to be closed.
    Closing {
        end: SessionEnd,
    },
    /// The agent is gone; consequences follow.
    Settling {
        end: SessionEnd,
    },
    /// Several agents work on it, and their ends decide.
    Contest {
        /// Whether a person has stopped them.
        #[serde(default)]
        stopped: bool,
    },
    /// A rival that waits for the judge.
    Done {
        end: SessionEnd,
    },
    /// The work of a candidate is about to be taken over.
    Promoting {
        candidate: u32,
        by_person: bool,
    },
    Retrying {
        #[serde(with = "iso")]
        due: Timestamp,
        cause: RetryCause,
    },
    /// The pull request is open; what happens to it decides.
    Waiting {
        #[serde(with = "iso")]
        since: Timestamp,
    },
    Parked {
        reason: ParkReason,
        /// State of the issue when it was parked.
        state: String,
        #[serde(with = "iso")]
        since: Timestamp,
    },
}

impl Phase {
    /// Whether the claim holds one of the workflow's slots.
    pub fn is_running(&self) -> bool {
        match self {
            Phase::Opening | Phase::Ready | Phase::Turn | Phase::Turned { .. } | Phase::Closing { .. } => {
                true
            }
            Phase::Settling { .. }
            | Phase::Contest { .. }
            | Phase::Done { .. }
            | Phase::Promoting { .. }
            | Phase::Retrying { .. }
            | Phase::Waiting { .. }
            | Phase::Parked { .. } => false,
        }
    }

    /// Whether a session may be open.
    pub fn has_session(&self) -> bool {
        matches!(self, Phase::Ready | Phase::Turn | Phase::Turned { .. })
    }
}

/// Record of an issue that was released.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleasedIssue {
    pub identifier: String,
    #[serde(default)]
    pub title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session_ids: Vec<String>,
    pub sessions: u32,
    pub turns: u32,
    pub tokens: Tokens,
    pub release: Release,
    /// Address of the pull request.
    pub pull: Option<String>,
    #[serde(with = "iso")]
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssueWorkspace {
    pub identifier: String,
    pub path: PathBuf,
    pub branch: Option<String>,
    /// Whether it is that of a rival, whose key is in the place of the issue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rival: bool,
    /// The part of that rival. Records of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RivalRole>,
    /// When a session in it last began or ended.
    #[serde(with = "iso", default)]
    pub used: Timestamp,
    /// Its size after the last session, where there is a quota.
    #[serde(default)]
    pub bytes: u64,
}

/// Sums over everything that was ever done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkTotals {
    pub tokens: Tokens,
    pub dispatches: u64,
    pub sessions_completed: u64,
    pub sessions_failed: u64,
    pub sessions_cancelled: u64,
    pub soft_stops: u64,
    pub hand_offs: u64,
    pub retries_continuation: u64,
    pub retries_error: u64,
    pub parked: u64,
    pub reactions: u64,
    pub merged: u64,
}

impl OrchestratorState {
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a OrchestratorRecord>) -> Self {
        let mut state = Self::default();
        records.into_iter().for_each(|record| state.apply(record));
        state
    }

    /// Claims that hold a slot, in all and in one state.
    pub fn running(&self) -> impl Iterator<Item = &IssueClaim> {
        self.claims.values().chain(self.rivals.values()).filter(|claim| claim.phase.is_running())
    }

    /// An issue by its id or its identifier.
    pub fn find(&self, name: &str) -> Option<&IssueClaim> {
        let by_id = self.claims.get(&IssueId(name.to_owned()));
        by_id.or_else(|| self.claims.values().find(|claim| claim.identifier == name))
    }

    pub fn apply(&mut self, record: &OrchestratorRecord) {
        self.next_seq = record.seq + 1;
        match &record.fact {
            IssueFact::Claimed {
                issue,
                identifier,
                title,
                state,
                agent,
                max_turns,
                stage,
                next_stages,
                rivals,
                judge,
            } => {
                self.wanted.remove(issue);
                self.totals.dispatches += 1;
                let history = self.history.get(issue);
                let sessions = history.map_or(0, |history| history.sessions);
                let session_ids = history.map(|history| history.session_ids.clone()).unwrap_or_default();
                let claim = IssueClaim {
                    title: title.clone(),
                    state: state.clone(),
                    agent: agent.clone(),
                    max_turns: *max_turns,
                    stage: stage.clone(),
                    next_stages: next_stages.clone(),
                    rivals: rivals.clone(),
                    judge: *judge,
                    sessions,
                    session_ids,
                    ..IssueClaim::new(issue, identifier, record.seq, record.at)
                };
                self.claims.insert(issue.clone(), claim);
            }
            IssueFact::WorkspaceRemoved { issue, .. } => drop(self.workspaces.remove(issue)),
            IssueFact::Requested { issue, identifier, request, id } => {
                self.requests.push(id.clone());
                let surplus = self.requests.len().saturating_sub(MAX_REQUESTS);
                self.requests.drain(..surplus);
                self.requested(issue, identifier, *request, (record.seq, record.at));
            }
            IssueFact::Resumed => self.resumed(),
            IssueFact::Compacted { state } => {
                let next_seq = self.next_seq;
                *self = OrchestratorState { next_seq, ..OrchestratorState::clone(state) };
            }
            IssueFact::Released { issue, release } => self.released(issue, release, record.at),
            IssueFact::Opened { issue, .. } => {
                self.advanced(issue, record);
                self.used(issue, record.at);
            }
            IssueFact::ContestBegun { .. }
            | IssueFact::RivalDone { .. }
            | IssueFact::Chosen { .. }
            | IssueFact::Promoted { .. } => self.contested(record),
            IssueFact::Restarted { issue }
            | IssueFact::StageAdvanced { issue, .. }
            | IssueFact::TurnStarted { issue, .. }
            | IssueFact::TurnEnded { issue, .. }
            | IssueFact::Checked { issue, .. }
            | IssueFact::SessionEnded { issue, .. }
            | IssueFact::Finished { issue, .. }
            | IssueFact::Written { issue, .. }
            | IssueFact::RetryAt { issue, .. }
            | IssueFact::Published { issue, .. }
            | IssueFact::Unpublished { issue, .. }
            | IssueFact::Answered { issue, .. }
            | IssueFact::Waiting { issue }
            | IssueFact::PullSeen { issue, .. }
            | IssueFact::Reacted { issue, .. }
            | IssueFact::Merged { issue, .. }
            | IssueFact::Parked { issue, .. } => self.advanced(issue, record),
            IssueFact::Unknown => {}
        }
    }

    /// A fact about one claim. One that is no longer ours ignores it.
    fn advanced(&mut self, issue: &IssueId, record: &OrchestratorRecord) {
        let found = self.claims.get_mut(issue).or_else(|| self.rivals.get_mut(issue));
        let Some(claim) = found else { return };
        match &record.fact {
            IssueFact::Restarted { .. } => {
                claim.forget_writes();
                claim.phase = Phase::Opening;
            }
            IssueFact::StageAdvanced { stage, .. } => claim.staged(stage, record.at),
            IssueFact::Opened { session, workspace, branch, state, .. } => {
                claim.works_in(session);
                claim.workspace = Some(workspace.clone());
                claim.branch.clone_from(branch);
                claim.state.clone_from(state);
            }
            IssueFact::TurnStarted { turn, .. } => {
                claim.turn = *turn;
                claim.turns += 1;
                claim.phase = Phase::Turn;
            }
            IssueFact::TurnEnded { end, soft_stop, tokens, .. } => {
                claim.question = None;
                claim.tokens += *tokens;
                self.totals.tokens += *tokens;
                claim.phase = match end {
                    WorkTurnEnd::Completed => Phase::Turned { soft_stop: soft_stop.clone() },
                    WorkTurnEnd::Failed(failure) => {
                        Phase::Closing { end: SessionEnd::Failed(failure.clone()) }
                    }
                    WorkTurnEnd::Interrupted => Phase::Closing { end: SessionEnd::Interrupted },
                };
            }
            IssueFact::Checked { state, .. } => claim.checked(state.as_deref()),
            IssueFact::SessionEnded { end, .. } => claim.phase = Phase::Closing { end: end.clone() },
            IssueFact::Finished { workspace_bytes, .. } => {
                claim.finished(&mut self.totals);
                if let Some(place) = self.workspaces.get_mut(issue) {
                    place.used = record.at;
                    place.bytes = workspace_bytes.unwrap_or(place.bytes);
                }
            }
            IssueFact::Written { write, error: None, .. } => {
                if let Write::Transition { to } = write {
                    claim.state.clone_from(to);
                }
                claim.written.push(write.clone());
            }
            IssueFact::Written { write, error: Some(_), .. } => claim.refused.push(write.clone()),
            IssueFact::RetryAt { due, cause, error, .. } => {
                match cause {
                    RetryCause::Continuation => self.totals.retries_continuation += 1,
                    RetryCause::Failure => self.totals.retries_error += 1,
                    RetryCause::Interrupted
                    | RetryCause::Person
                    | RetryCause::Reaction
                    | RetryCause::Stage
                    | RetryCause::Contest => {}
                }
                claim.error.clone_from(error);
                claim.phase = Phase::Retrying { due: *due, cause: *cause };
            }
            IssueFact::Parked { reason, .. } => {
                self.totals.parked += 1;
                if let ParkReason::Question { question } = reason {
                    claim.question = Some(question.clone());
                }
                let state = claim.state.clone();
                claim.phase = Phase::Parked { reason: reason.clone(), state, since: record.at };
            }
            IssueFact::Published { .. }
            | IssueFact::Unpublished { .. }
            | IssueFact::Answered { .. }
            | IssueFact::Waiting { .. }
            | IssueFact::PullSeen { .. }
            | IssueFact::Reacted { .. }
            | IssueFact::Merged { .. } => {
                self.totals.reactions += u64::from(matches!(record.fact, IssueFact::Reacted { .. }));
                claim.published(record);
            }
            IssueFact::Claimed { .. }
            | IssueFact::ContestBegun { .. }
            | IssueFact::RivalDone { .. }
            | IssueFact::Chosen { .. }
            | IssueFact::Promoted { .. }
            | IssueFact::Released { .. }
            | IssueFact::WorkspaceRemoved { .. }
            | IssueFact::Requested { .. }
            | IssueFact::Resumed
            | IssueFact::Compacted { .. }
            | IssueFact::Unknown => {}
        }
    }

    /// The workspace of a claim is used. Its size is known after the session.
    pub(crate) fn used(&mut self, issue: &IssueId, at: Timestamp) {
        let Some(place) = self.work(issue).and_then(|claim| claim.place(at)) else { return };
        let bytes = self.workspaces.get(issue).map_or(0, |known| known.bytes);
        self.workspaces.insert(issue.clone(), IssueWorkspace { bytes, ..place });
    }

    fn released(&mut self, issue: &IssueId, release: &Release, at: Timestamp) {
        self.disband(issue);
        let Some(claim) = self.claims.remove(issue) else { return };
        if matches!(release, Release::HandedOff { .. }) {
            self.totals.hand_offs += 1;
        }
        self.totals.merged += u64::from(matches!(release, Release::Merged { .. }));
        // A person has acted: the sessions begin to count anew.
        let sessions = if *release == Release::Unparked { 0 } else { claim.sessions };
        let IssueClaim { identifier, title, session_ids, turns, tokens, pull, .. } = claim;
        let (pull, release) = (pull.map(|pull| pull.url), release.clone());
        let history =
            ReleasedIssue { identifier, title, session_ids, sessions, turns, tokens, release, pull, at };
        self.history.insert(issue.clone(), history);
        if self.history.len() > MAX_HISTORY
            && let Some(oldest) =
                self.history.iter().min_by_key(|(_, entry)| entry.at).map(|(id, _)| id.clone())
        {
            self.history.remove(&oldest);
        }
    }

    fn requested(
        &mut self,
        issue: &IssueId,
        identifier: &str,
        request: PersonRequest,
        (seq, at): (u64, Timestamp),
    ) {
        if self.requested_of_contest(issue, request, at) {
            return;
        }
        let Some(claim) = self.claims.get_mut(issue) else {
            match request {
                PersonRequest::Start | PersonRequest::Retry => {
                    self.wanted.insert(issue.clone(), identifier.to_owned());
                }
                PersonRequest::Park => {
                    let reason = ParkReason::Requested;
                    let phase = Phase::Parked { reason, state: String::new(), since: at };
                    let claim = IssueClaim { phase, ..IssueClaim::new(issue, identifier, seq, at) };
                    self.claims.insert(issue.clone(), claim);
                }
                PersonRequest::Stop | PersonRequest::Promote { .. } => {}
            }
            return;
        };
        let is_open = claim.phase.is_running();
        match request {
            PersonRequest::Stop | PersonRequest::Park if is_open => {
                claim.phase = Phase::Closing { end: SessionEnd::Stopped };
            }
            PersonRequest::Stop | PersonRequest::Park => {
                let reason =
                    if request == PersonRequest::Stop { ParkReason::Stopped } else { ParkReason::Requested };
                let state = claim.state.clone();
                claim.phase = Phase::Parked { reason, state, since: at };
            }
            PersonRequest::Promote { .. } => {}
            PersonRequest::Start | PersonRequest::Retry if is_open => {}
            PersonRequest::Start | PersonRequest::Retry => {
                claim.failures = 0;
                claim.sessions = 0;
                claim.revivals += 1;
                claim.forget_writes();
                claim.phase = Phase::Retrying { due: at, cause: RetryCause::Person };
            }
        }
    }

    /// Sessions ended with the process. Their claims go on where they were.
    fn resumed(&mut self) {
        for claim in self.claims.values_mut().chain(self.rivals.values_mut()) {
            if claim.phase.has_session() {
                claim.phase = Phase::Closing { end: SessionEnd::Interrupted };
            }
        }
    }

    /// The state without what no decision depends on.
    pub fn compacted(&self) -> Self {
        self.clone()
    }
}

/// Claims as a list, since each has its id.
mod claims {
    use std::collections::BTreeMap;

    use hangar_trackers::IssueId;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::IssueClaim;

    pub(super) fn serialize<S: Serializer>(
        claims: &BTreeMap<IssueId, IssueClaim>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(claims.values())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<IssueId, IssueClaim>, D::Error> {
        let claims = Vec::<IssueClaim>::deserialize(deserializer)?;
        Ok(claims.into_iter().map(|claim| (claim.issue.clone(), claim)).collect())
    }
}
