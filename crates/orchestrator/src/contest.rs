//! Contests: several agents work on one issue, each in a workspace of its own, until a judge promotes the work of one.
//!
//! The claim of the issue waits for its rivals. Each of them has a claim of its own, with a key that is made of the issue's, and
//! passes through the same phases up to the end of its session; then it is measured, and waits for the judge. The claim goes on
//! with the work that is promoted as if it were its own.

use std::cmp::{Ordering, Reverse};

use hangar_trackers::IssueId;
use hangar_workflow::Config;
use hangar_workflow::contest::{JudgeKind, Preference};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::plan::{IssueEffect, PlanStep, TrackerSnapshot, settled};
use crate::record::{
    IssueFact, OrchestratorRecord, ParkReason, PersonRequest, Release, RetryCause, SessionEnd,
};
use crate::settle;
use crate::state::{IssueClaim, MAX_SESSION_IDS, OrchestratorState, Phase};
use crate::timing;

/// Most retries of a rival whose sessions fail, in all.
const MAX_RETRIES: u32 = 3;
/// Separator in the key of a rival. No tracker has it in an id.
const SEPARATOR: char = '\u{1f}';
/// Word that ends the work of a candidate that is promoted.
const DONE: &str = "done";

/// An agent of a contest, as the workflow had it when the claim began.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRival {
    pub agent: String,
    pub max_turns: Option<u32>,
}

/// Part of a rival in its contest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RivalRole {
    pub issue: IssueId,
    /// Number of the claim of the issue.
    pub contest: u64,
    /// Its number as a candidate, from 1.
    pub number: u32,
}

impl RivalRole {
    fn key(&self) -> IssueId {
        IssueId(format!("{}{SEPARATOR}{}", self.issue.0, self.name()))
    }

    /// Name that no other rival of the issue ever has, for its branch and its workspace.
    pub fn name(&self) -> String {
        format!("{}-{}", self.contest, self.number)
    }
}

/// Work of a rival, as it was measured.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RivalResult {
    /// Commit with all of its work. `None` if it changed nothing.
    pub commit: Option<String>,
    /// Ref that keeps the commit when its workspace is gone.
    pub reference: Option<String>,
    /// Commit that the work is compared with.
    pub base: Option<String>,
    pub files: u64,
    pub added: u64,
    pub removed: u64,
    pub checks: Vec<Criterion>,
    pub score: Option<f64>,
    /// Why it could not be measured.
    pub error: Option<String>,
}

/// A command of the judge, and whether it passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    pub command: String,
    pub passed: bool,
    /// End of its output.
    pub output: String,
}

impl IssueClaim {
    /// Id of the issue in its tracker. That of a claim is its key.
    pub fn tracked(&self) -> &IssueId {
        self.role.as_ref().map_or(&self.issue, |role| &role.issue)
    }

    /// Whether there is work that a person can promote.
    pub fn is_promotable(&self) -> bool {
        matches!(self.phase, Phase::Done { .. })
            && self.result.as_ref().is_some_and(|result| result.commit.is_some())
    }

    /// Whether its work meets the criteria.
    pub fn meets_criteria(&self) -> bool {
        let Phase::Done { end } = &self.phase else { return false };
        let passed = |result: &RivalResult| {
            result.error.is_none() && result.checks.iter().all(|criterion| criterion.passed)
        };
        is_done(end) && self.is_promotable() && self.result.as_ref().is_some_and(passed)
    }
}

/// Whether a rival has ended its work by itself.
pub fn is_done(end: &SessionEnd) -> bool {
    match end {
        SessionEnd::MaxTurns => true,
        SessionEnd::SoftStop { word } => word != "blocked" && !word.starts_with(crate::record::ASK),
        SessionEnd::Inactive { .. }
        | SessionEnd::Gone
        | SessionEnd::Failed(_)
        | SessionEnd::Interrupted
        | SessionEnd::Stopped => false,
    }
}

/// The end of a rival as a sentence.
pub fn end_sentence(end: &SessionEnd) -> String {
    match end {
        SessionEnd::MaxTurns => "its turns are used".to_owned(),
        SessionEnd::SoftStop { word } => match word.strip_prefix(crate::record::ASK) {
            Some(question) => format!("it asks: {question}"),
            None => format!("it ended with `{word}`"),
        },
        SessionEnd::Inactive { state } => format!("the issue became `{state}`"),
        SessionEnd::Gone => "the issue no longer exists".to_owned(),
        SessionEnd::Failed(failure) => format!("{} ({})", failure.message, failure.kind),
        SessionEnd::Interrupted => "it was interrupted".to_owned(),
        SessionEnd::Stopped => "it was stopped".to_owned(),
    }
}

/// The end of a rival's session that follows from what happened to its issue.
pub(crate) fn interruption(
    config: &Config,
    state: &OrchestratorState,
    rival: &IssueClaim,
    snapshot: Option<&TrackerSnapshot>,
) -> Option<SessionEnd> {
    if matches!(rival.phase, Phase::Closing { .. } | Phase::Settling { .. } | Phase::Done { .. }) {
        return None;
    }
    let issue = rival.tracked();
    match state.claims.get(issue).map(|claim| &claim.phase) {
        Some(Phase::Contest { stopped: false }) => {}
        _ => return Some(SessionEnd::Stopped),
    }
    let snapshot =
        snapshot.filter(|snapshot| snapshot.asked > rival.since && snapshot.asked_for.contains(issue))?;
    match snapshot.watched.get(issue) {
        None => Some(SessionEnd::Gone),
        Some(issue) if config.tracker.is_active(&issue.state) => None,
        Some(issue) => Some(SessionEnd::Inactive { state: issue.state.clone() }),
    }
}

/// The next step of a rival whose session is over.
pub(crate) fn ended(config: &Config, rival: &IssueClaim, end: &SessionEnd, now: Timestamp) -> PlanStep {
    let issue = rival.issue.clone();
    match end {
        SessionEnd::Interrupted => {
            let (cause, error) = (RetryCause::Interrupted, rival.error.clone());
            PlanStep::Note(IssueFact::RetryAt { issue, due: now, cause, error })
        }
        SessionEnd::Failed(failure) if failure.retryable && rival.failed_sessions <= MAX_RETRIES => {
            let delay = timing::backoff(rival.failures, config.agent.max_retry_backoff);
            let due = now + SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
            let error = Some(failure.message.clone());
            PlanStep::Note(IssueFact::RetryAt { issue, due, cause: RetryCause::Failure, error })
        }
        _ => PlanStep::Do(IssueEffect::Measure { issue }),
    }
}

/// The next step of a claim whose rivals are at work.
pub(crate) fn next(
    config: &Config,
    state: &OrchestratorState,
    claim: &IssueClaim,
    stopped: bool,
) -> Option<PlanStep> {
    let rivals = state.rivals_of(&claim.issue);
    let mut ends = Vec::new();
    for rival in &rivals {
        let Phase::Done { end } = &rival.phase else { return None };
        ends.push(end);
    }
    let left = ends.iter().find_map(|end| match end {
        SessionEnd::Gone => Some(Release::Gone),
        SessionEnd::Inactive { state } => Some(Release::Inactive { state: state.clone() }),
        _ => None,
    });
    if let Some(release) = left {
        return Some(PlanStep::Note(IssueFact::Released { issue: claim.issue.clone(), release }));
    }
    if stopped {
        return Some(settled(claim, settle::park(config, claim, ParkReason::Stopped)));
    }
    Some(match verdict(config, claim, &rivals) {
        Verdict::Promote(candidate) => {
            PlanStep::Note(IssueFact::Chosen { issue: claim.issue.clone(), candidate })
        }
        Verdict::Park(reason) => settled(claim, settle::park(config, claim, reason)),
    })
}

/// Decision of a judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Promote(u32),
    Park(ParkReason),
}

/// The decision about rivals that are all done.
pub fn verdict(config: &Config, claim: &IssueClaim, rivals: &[&IssueClaim]) -> Verdict {
    let of = u32::try_from(rivals.len()).unwrap_or(u32::MAX);
    let promotable: Vec<u32> =
        rivals.iter().filter(|rival| rival.is_promotable()).map(|rival| number_of(rival)).collect();
    if promotable.is_empty() {
        return Verdict::Park(ParkReason::NoCandidate { of });
    }
    if claim.judge == Some(JudgeKind::Person) {
        return Verdict::Park(ParkReason::Choice { candidates: promotable, of });
    }
    let size = |rival: &IssueClaim| match config.judge.prefer {
        Preference::SmallestDiff => {
            rival.result.as_ref().map_or(u64::MAX, |result| result.added.saturating_add(result.removed))
        }
        Preference::FewestTokens => rival.tokens.total(),
        Preference::First => 0,
    };
    let score = |rival: &IssueClaim| rival.result.as_ref().and_then(|result| result.score);
    let best = rivals.iter().filter(|rival| rival.meets_criteria()).min_by(|a, b| {
        let by_score = Reverse(Score(score(a))).cmp(&Reverse(Score(score(b))));
        by_score.then_with(|| (size(a), number_of(a)).cmp(&(size(b), number_of(b))))
    });
    match best {
        Some(best) => Verdict::Promote(number_of(best)),
        None => Verdict::Park(ParkReason::NoCandidate { of }),
    }
}

/// A score in an order: none is below all others.
#[derive(PartialEq)]
struct Score(Option<f64>);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0, other.0) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }
}

impl OrchestratorState {
    /// Rivals of an issue, in their order.
    pub fn rivals_of(&self, issue: &IssueId) -> Vec<&IssueClaim> {
        let mut found: Vec<&IssueClaim> =
            self.rivals.values().filter(|rival| rival.tracked() == issue).collect();
        found.sort_by_key(|rival| rival.role.as_ref().map(|role| role.number));
        found
    }

    /// A claim or a rival by its key.
    pub fn work(&self, key: &IssueId) -> Option<&IssueClaim> {
        self.claims.get(key).or_else(|| self.rivals.get(key))
    }

    /// A fact about a contest.
    pub(crate) fn contested(&mut self, record: &OrchestratorRecord) {
        match &record.fact {
            IssueFact::ContestBegun { issue } => self.begun(issue, record),
            IssueFact::RivalDone { issue, result } => {
                let Some(rival) = self.rivals.get_mut(issue) else { return };
                let Phase::Settling { end } = &rival.phase else { return };
                rival.phase = Phase::Done { end: end.clone() };
                rival.result = Some(result.clone());
            }
            IssueFact::Chosen { issue, candidate } => {
                if let Some(claim) = self.claims.get_mut(issue) {
                    claim.phase = Phase::Promoting { candidate: *candidate, by_person: false };
                }
            }
            IssueFact::Promoted { issue, candidate, workspace, branch, state } => {
                self.promoted(issue, *candidate);
                if let Some(claim) = self.claims.get_mut(issue) {
                    if let Some(state) = state {
                        claim.state.clone_from(state);
                    }
                    claim.workspace = Some(workspace.clone());
                    claim.branch = Some(branch.clone());
                    self.used(issue, record.at);
                }
            }
            _ => {}
        }
    }

    fn begun(&mut self, issue: &IssueId, record: &OrchestratorRecord) {
        let Some(claim) = self.claims.get_mut(issue) else { return };
        claim.forget_writes();
        claim.phase = Phase::Contest { stopped: false };
        for (number, order) in (1..).zip(&claim.rivals) {
            let role = RivalRole { issue: issue.clone(), contest: claim.number, number };
            let key = role.key();
            let rival = IssueClaim {
                title: claim.title.clone(),
                state: claim.state.clone(),
                agent: order.agent.clone(),
                max_turns: order.max_turns,
                role: Some(role),
                phase: Phase::Retrying { due: record.at, cause: RetryCause::Contest },
                ..IssueClaim::new(&key, &claim.identifier, record.seq, record.at)
            };
            // One that is there goes on.
            self.rivals.entry(key).or_insert(rival);
        }
    }

    /// The claim goes on with the work of a rival. The others are over.
    fn promoted(&mut self, issue: &IssueId, candidate: u32) {
        let winner = self.rivals_of(issue).into_iter().find(|rival| number_of(rival) == candidate).cloned();
        self.disband(issue);
        let (Some(claim), Some(winner)) = (self.claims.get_mut(issue), winner) else { return };
        claim.agent = winner.agent;
        claim.max_turns = winner.max_turns;
        claim.session = winner.session;
        claim.rivals.clear();
        claim.judge = None;
        (claim.failures, claim.error, claim.publication) = (0, None, None);
        claim.forget_writes();
        claim.phase = Phase::Settling { end: SessionEnd::SoftStop { word: DONE.to_owned() } };
    }

    /// Ends a contest: what its rivals used counts for the claim.
    pub(crate) fn disband(&mut self, issue: &IssueId) {
        let rivals: Vec<IssueClaim> = self.rivals_of(issue).into_iter().cloned().collect();
        self.rivals.retain(|_, rival| rival.tracked() != issue);
        let Some(claim) = self.claims.get_mut(issue) else { return };
        for rival in rivals {
            claim.tokens += rival.tokens;
            claim.turns += rival.turns;
            claim.sessions += rival.sessions;
            claim.session_ids.extend(rival.session_ids);
        }
        let surplus = claim.session_ids.len().saturating_sub(MAX_SESSION_IDS);
        claim.session_ids.drain(..surplus);
    }

    /// What a person asks about a claim with rivals. `false` if it means what it means for other claims.
    pub(crate) fn requested_of_contest(
        &mut self,
        issue: &IssueId,
        request: PersonRequest,
        at: Timestamp,
    ) -> bool {
        let promotable = |candidate: u32| {
            self.rivals_of(issue)
                .into_iter()
                .any(|rival| number_of(rival) == candidate && rival.is_promotable())
        };
        let is_found = matches!(request, PersonRequest::Promote { candidate } if promotable(candidate));
        let has_rivals = !self.rivals_of(issue).is_empty();
        let Some(claim) = self.claims.get_mut(issue) else { return false };
        match (&mut claim.phase, request) {
            (Phase::Contest { stopped }, PersonRequest::Stop | PersonRequest::Park) => *stopped = true,
            (
                Phase::Contest { .. } | Phase::Promoting { .. },
                PersonRequest::Start | PersonRequest::Retry,
            ) => {}
            (Phase::Parked { .. }, PersonRequest::Promote { candidate }) if is_found => {
                claim.revivals += 1;
                claim.forget_writes();
                claim.phase = Phase::Promoting { candidate, by_person: true };
            }
            (Phase::Parked { .. }, PersonRequest::Start | PersonRequest::Retry) if has_rivals => {
                claim.failures = 0;
                claim.revivals += 1;
                claim.forget_writes();
                claim.phase = Phase::Contest { stopped: false };
                self.revive(issue, at);
            }
            (_, PersonRequest::Promote { .. }) => {}
            _ => return false,
        }
        true
    }

    /// Rivals that were not done work again; the others are measured again.
    fn revive(&mut self, issue: &IssueId, at: Timestamp) {
        for rival in self.rivals.values_mut().filter(|rival| rival.tracked() == issue) {
            let Phase::Done { end } = &rival.phase else { continue };
            rival.result = None;
            rival.phase = match is_done(end) {
                true => Phase::Settling { end: end.clone() },
                false => Phase::Retrying { due: at, cause: RetryCause::Person },
            };
            (rival.failures, rival.failed_sessions) = (0, 0);
        }
    }
}

/// The issue of a rival's key, and its number as a candidate. `None` if it is the id of an issue.
pub fn candidate_of(key: &IssueId) -> Option<(IssueId, u32)> {
    let (issue, name) = key.0.rsplit_once(SEPARATOR)?;
    let (_, number) = name.rsplit_once('-')?;
    Some((IssueId(issue.to_owned()), number.parse().ok()?))
}

/// The number of a rival as a candidate.
pub fn number_of(rival: &IssueClaim) -> u32 {
    rival.role.as_ref().map_or(0, |role| role.number)
}
