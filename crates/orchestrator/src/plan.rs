//! The plan: the next steps, from configuration, tracker, records and time. No step is taken here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hangar_trackers::forge::PullState;
use hangar_trackers::{Issue, IssueId};
use hangar_workflow::Config;
use hangar_workflow::dispatch::{DispatchRule, IssueProperties};
use hangar_workflow::reactions::PullMode;
use jiff::Timestamp;

use crate::contest::{self, ClaimRival};
use crate::hold::{self, Hold};
use crate::pulls::{self, Consequence, PullView, Pulls};
use crate::quota;
use crate::record::{ClaimStage, IssueFact, Release, RetryCause, SessionEnd, Write};
use crate::settle::{self, Settlement};
use crate::state::{IssueClaim, OrchestratorState, Phase};

/// The tracker as it was read.
#[derive(Debug, Clone)]
pub struct TrackerSnapshot {
    /// Start of the read. Decisions made later may not show in it.
    pub asked: Timestamp,
    /// Issues in active states.
    pub candidates: Vec<Issue>,
    /// Ids that were asked for one by one: those of claims and workspaces.
    pub asked_for: BTreeSet<IssueId>,
    /// Those of them that the tracker returned.
    pub watched: HashMap<IssueId, Issue>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PlanStep {
    /// A fact to log, before any effect that follows from it.
    Note(IssueFact),
    Do(IssueEffect),
}

/// An effect on an issue. There is at most one at a time for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueEffect {
    Write {
        issue: IssueId,
        write: Write,
    },
    /// Waits for a slot, prepares the workspace and opens the agent.
    Open {
        issue: IssueId,
    },
    Turn {
        issue: IssueId,
        turn: u32,
    },
    /// Reads the issue again.
    Check {
        issue: IssueId,
    },
    /// Ends the agent, gives the slot back and runs the last hook.
    Close {
        issue: IssueId,
    },
    RemoveWorkspace {
        issue: IssueId,
    },
    /// Commits, pushes and opens the pull request, or finds the one that was opened.
    Publish {
        issue: IssueId,
    },
    /// Commits the work of a rival and runs the commands of the judge.
    Measure {
        issue: IssueId,
    },
    /// Brings the work of a candidate into the workspace of the issue.
    Promote {
        issue: IssueId,
        candidate: u32,
    },
    /// Answers a remark about the pull request.
    Answer {
        issue: IssueId,
        remark: String,
    },
    Merge {
        issue: IssueId,
        head: String,
    },
}

impl IssueEffect {
    pub fn issue(&self) -> &IssueId {
        match self {
            IssueEffect::Write { issue, .. }
            | IssueEffect::Open { issue }
            | IssueEffect::Turn { issue, .. }
            | IssueEffect::Check { issue }
            | IssueEffect::Close { issue }
            | IssueEffect::Publish { issue }
            | IssueEffect::Measure { issue }
            | IssueEffect::Promote { issue, .. }
            | IssueEffect::Answer { issue, .. }
            | IssueEffect::Merge { issue, .. }
            | IssueEffect::RemoveWorkspace { issue } => issue,
        }
    }
}

/// Facts about what the host is doing.
#[derive(Debug, Clone, Default)]
pub struct Busy {
    /// Issues with an effect under way.
    pub issues: BTreeSet<IssueId>,
    /// Whether no more issues are claimed.
    pub draining: bool,
}

/// Tracker and pull requests as they were last read.
#[derive(Debug, Clone, Copy)]
pub struct Seeing<'a> {
    pub snapshot: Option<&'a TrackerSnapshot>,
    pub pulls: &'a Pulls,
}

/// The next steps. The caller logs the facts among them and asks again.
pub fn plan(
    config: &Config,
    seen: Seeing<'_>,
    state: &OrchestratorState,
    busy: &Busy,
    now: Timestamp,
) -> Vec<PlanStep> {
    let snapshot = seen.snapshot;
    let mut steps = Vec::new();
    for claim in state.claims.values() {
        let view = seen.pulls.0.get(&claim.issue);
        // A merge that is under way closes the issue.
        let is_merging = busy.issues.contains(&claim.issue) && matches!(claim.phase, Phase::Waiting { .. });
        if let Some(fact) =
            snapshot.filter(|_| !is_merging).and_then(|snapshot| reconcile(config, claim, snapshot, view))
        {
            steps.push(PlanStep::Note(fact));
        } else if !busy.issues.contains(&claim.issue) {
            steps.extend(advance(config, state, claim, view, now));
        }
    }
    for rival in state.rivals.values() {
        if let Some(end) = contest::interruption(config, state, rival, snapshot) {
            steps.push(PlanStep::Note(IssueFact::SessionEnded { issue: rival.issue.clone(), end }));
        } else if !busy.issues.contains(&rival.issue) {
            steps.extend(advance(config, state, rival, None, now));
        }
    }
    let removable = state.workspaces.keys().filter(|issue| !busy.issues.contains(issue));
    let removable = removable.filter(|issue| is_over(config, state, snapshot, issue));
    let mut removable: BTreeSet<IssueId> = removable.cloned().collect();
    removable.extend(quota::surplus(config, state, &busy.issues, now));
    steps.extend(removable.into_iter().map(|issue| PlanStep::Do(IssueEffect::RemoveWorkspace { issue })));
    if !busy.draining {
        steps.extend(dispatch(config, snapshot, state, now).into_iter().map(PlanStep::Note));
    }
    steps
}

/// The next step of one claim.
fn advance(
    config: &Config,
    state: &OrchestratorState,
    claim: &IssueClaim,
    view: Option<&PullView>,
    now: Timestamp,
) -> Option<PlanStep> {
    let issue = claim.issue.clone();
    let next_write = |writes: Vec<Write>| writes.into_iter().find(|write| !claim.is_settled(write));
    match &claim.phase {
        Phase::Opening if claim.role.is_some() => Some(PlanStep::Do(IssueEffect::Open { issue })),
        Phase::Opening => Some(match next_write(settle::opening(config, claim)) {
            Some(write) => PlanStep::Do(IssueEffect::Write { issue, write }),
            None if !claim.rivals.is_empty() => PlanStep::Note(IssueFact::ContestBegun { issue }),
            None => PlanStep::Do(IssueEffect::Open { issue }),
        }),
        Phase::Ready if !is_workable(config, claim, &claim.state) => {
            let end = SessionEnd::Inactive { state: claim.state.clone() };
            Some(PlanStep::Note(IssueFact::SessionEnded { issue, end }))
        }
        Phase::Ready if claim.turn >= claim.max_turns.unwrap_or(config.agent.max_turns) => {
            Some(PlanStep::Note(IssueFact::SessionEnded { issue, end: SessionEnd::MaxTurns }))
        }
        Phase::Ready => Some(PlanStep::Note(IssueFact::TurnStarted { issue, turn: claim.turn + 1 })),
        Phase::Turn => Some(PlanStep::Do(IssueEffect::Turn { issue, turn: claim.turn })),
        Phase::Turned { .. } => Some(PlanStep::Do(IssueEffect::Check { issue })),
        Phase::Closing { .. } => Some(PlanStep::Do(IssueEffect::Close { issue })),
        Phase::Settling { end } if claim.role.is_some() => Some(contest::ended(config, claim, end, now)),
        Phase::Contest { stopped } => contest::next(config, state, claim, *stopped),
        Phase::Promoting { candidate, by_person } => {
            Some(PlanStep::Do(match next_write(settle::promoting(config, *by_person)) {
                Some(write) => IssueEffect::Write { issue, write },
                None => IssueEffect::Promote { issue, candidate: *candidate },
            }))
        }
        Phase::Settling { end } => match settle::publishing(config, claim, end) {
            Some(effect) => Some(PlanStep::Do(effect)),
            None => Some(settled(claim, settle::settlement(config, claim, end, now))),
        },
        Phase::Waiting { since } => waiting(config, claim, view.filter(|view| view.asked > *since)?, now),
        Phase::Parked { since, .. } => {
            let view = view.filter(|view| view.asked > *since && view.pull.state == PullState::Merged)?;
            waiting(config, claim, view, now)
        }
        Phase::Retrying { .. } | Phase::Done { .. } => None,
    }
}

/// The next write of a settlement, then its fact.
pub(crate) fn settled(claim: &IssueClaim, settlement: Settlement) -> PlanStep {
    match settlement.writes.into_iter().find(|write| !claim.is_settled(write)) {
        Some(write) => PlanStep::Do(IssueEffect::Write { issue: claim.issue.clone(), write }),
        None => PlanStep::Note(settlement.then),
    }
}

/// The next step of a claim whose pull request is open.
fn waiting(config: &Config, claim: &IssueClaim, view: &PullView, now: Timestamp) -> Option<PlanStep> {
    let issue = claim.issue.clone();
    Some(match pulls::consequence(config, claim, &view.pull, now)? {
        Consequence::See(seen) => PlanStep::Note(IssueFact::PullSeen { issue, seen }),
        Consequence::Complete => settled(claim, settle::merged(config, claim)),
        Consequence::React(reaction) => PlanStep::Note(IssueFact::Reacted { issue, reaction }),
        Consequence::Park(reason) => settled(claim, settle::park(config, claim, reason)),
        Consequence::Merge { head } => PlanStep::Do(IssueEffect::Merge { issue, head }),
    })
}

/// Whether sessions may work on an issue in a state: an active one, or the one of issues whose pull request is open.
pub(crate) fn is_workable(config: &Config, claim: &IssueClaim, state: &str) -> bool {
    config.tracker.is_active(state) || (claim.pull.is_some() && is_handoff(config, state))
}

fn is_handoff(config: &Config, state: &str) -> bool {
    config
        .tracker
        .handoff_state
        .as_ref()
        .is_some_and(|handoff| handoff.to_lowercase() == state.to_lowercase())
}

/// The consequence of a change that somebody else made to a claimed issue.
fn reconcile(
    config: &Config,
    claim: &IssueClaim,
    snapshot: &TrackerSnapshot,
    view: Option<&PullView>,
) -> Option<IssueFact> {
    let id = &claim.issue;
    if !snapshot.asked_for.contains(id) {
        return None;
    }
    let found = snapshot.watched.get(id);
    let release = |release: Release| Some(IssueFact::Released { issue: id.clone(), release });
    match (&claim.phase, found) {
        (Phase::Opening | Phase::Ready | Phase::Turn | Phase::Turned { .. }, found) => {
            if snapshot.asked <= claim.since {
                return None;
            }
            let end = match found {
                None => SessionEnd::Gone,
                Some(issue) if is_workable(config, claim, &issue.state) => return None,
                Some(issue) => SessionEnd::Inactive { state: issue.state.clone() },
            };
            Some(IssueFact::SessionEnded { issue: id.clone(), end })
        }
        (Phase::Closing { .. } | Phase::Settling { .. } | Phase::Done { .. }, _) => None,
        // Its rivals are stopped, and their ends decide.
        (Phase::Contest { .. } | Phase::Promoting { .. }, _) => None,
        (Phase::Retrying { .. } | Phase::Waiting { .. } | Phase::Parked { .. }, None) => {
            release(Release::Gone)
        }
        (Phase::Waiting { since }, Some(issue)) => {
            if snapshot.asked <= *since {
                return None;
            }
            moved(config, claim, issue, (snapshot, view)).and_then(release)
        }
        (Phase::Retrying { .. }, Some(issue)) if !is_workable(config, claim, &issue.state) => {
            release(Release::Inactive { state: issue.state.clone() })
        }
        (Phase::Retrying { .. }, Some(_)) => None,
        (Phase::Parked { state, since, .. }, Some(issue)) => {
            if snapshot.asked <= *since {
                return None;
            }
            if !is_workable(config, claim, &issue.state) {
                return moved(config, claim, issue, (snapshot, view)).and_then(release);
            }
            let label = claim.written.iter().find_map(|write| match write {
                Write::Label { label } => Some(label.to_lowercase()),
                Write::Transition { .. } | Write::Comment { .. } | Write::Unlabel { .. } => None,
            });
            if claim.question.is_some() && is_answered(issue, *since) {
                let (cause, error) = (RetryCause::Person, None);
                return Some(IssueFact::RetryAt { issue: id.clone(), due: snapshot.asked, cause, error });
            }
            let moved = !state.is_empty() && issue.state.to_lowercase() != state.to_lowercase();
            let acted = moved || label.is_some_and(|label| !issue.labels.contains(&label));
            match acted {
                true if claim.pull.is_some() && !moved => Some(IssueFact::Waiting { issue: id.clone() }),
                true => release(Release::Unparked),
                false => None,
            }
        }
    }
}

/// Whether a person has commented after a time.
fn is_answered(issue: &Issue, since: Timestamp) -> bool {
    let comments = issue.comments.as_deref().unwrap_or_default();
    comments.iter().any(|comment| {
        // Dates of trackers have seconds.
        let at = comment.created_at.parse::<Timestamp>();
        !comment.is_ours() && at.is_ok_and(|at| at.as_second() >= since.as_second())
    })
}

/// The release of an issue whose pull request is open, and which somebody moved to another state.
fn moved(
    config: &Config,
    claim: &IssueClaim,
    issue: &Issue,
    (snapshot, view): (&TrackerSnapshot, Option<&PullView>),
) -> Option<Release> {
    let (tracker, state) = (&config.tracker, issue.state.clone());
    if tracker.is_terminal(&state) {
        // A merge closes issues: the pull request says whether it was one.
        let is_known =
            config.pulls.mode == PullMode::Off || view.is_some_and(|view| view.asked >= snapshot.asked);
        let seen = claim.pull.as_ref().and_then(|pull| pull.seen.as_ref());
        let is_merged = view.is_some_and(|view| view.pull.state == PullState::Merged)
            || seen.is_some_and(|seen| seen.state == PullState::Merged);
        return (is_known && !is_merged).then_some(Release::Inactive { state });
    }
    match tracker.is_active(&state) {
        // A person wants more work on it, unless the issue stays active while it waits.
        true => tracker.handoff_state.is_some().then_some(Release::Unparked),
        false => (!is_handoff(config, &state)).then_some(Release::Inactive { state }),
    }
}

/// Pull requests that have to be read: those that claims wait for.
pub fn watched_pulls(state: &OrchestratorState) -> Vec<(IssueId, u64)> {
    let waits = |claim: &&IssueClaim| matches!(claim.phase, Phase::Waiting { .. } | Phase::Parked { .. });
    let claims = state.claims.values().filter(waits);
    claims.filter_map(|claim| Some((claim.issue.clone(), claim.pull.as_ref()?.number))).collect()
}

/// Whether a workspace can be removed: its issue is terminal and not claimed, or its rival's contest is over.
fn is_over(
    config: &Config,
    state: &OrchestratorState,
    snapshot: Option<&TrackerSnapshot>,
    issue: &IssueId,
) -> bool {
    if state.workspaces.get(issue).is_some_and(|place| place.is_rival) {
        return !state.rivals.contains_key(issue);
    }
    let read = snapshot.and_then(|snapshot| snapshot.watched.get(issue));
    !state.claims.contains_key(issue) && read.is_some_and(|issue| config.tracker.is_terminal(&issue.state))
}

/// Slots of the workflow that are taken.
struct Slots<'a> {
    config: &'a Config,
    used: u32,
    by_state: BTreeMap<String, u32>,
}

impl<'a> Slots<'a> {
    fn of(config: &'a Config, state: &OrchestratorState) -> Self {
        let mut slots = Self { config, used: 0, by_state: BTreeMap::new() };
        state.running().for_each(|claim| slots.take(&claim.state));
        slots
    }

    fn take(&mut self, state: &str) {
        self.used += 1;
        *self.by_state.entry(state.to_lowercase()).or_default() += 1;
    }

    fn is_full(&self) -> bool {
        self.used >= self.config.agent.max_concurrent
    }

    fn hold(&self, state: &str) -> Option<Hold> {
        if self.is_full() {
            return Some(Hold::Slots { limit: self.config.agent.max_concurrent });
        }
        let state = state.to_lowercase();
        let limit = *self.config.agent.max_concurrent_by_state.get(&state)?;
        let used = self.by_state.get(&state).copied().unwrap_or_default();
        (used >= limit).then_some(Hold::StateSlots { state, limit })
    }
}

/// Retries that are due, then new issues, in their order and within the limits.
fn dispatch(
    config: &Config,
    snapshot: Option<&TrackerSnapshot>,
    state: &OrchestratorState,
    now: Timestamp,
) -> Vec<IssueFact> {
    let mut slots = Slots::of(config, state);
    let mut facts = Vec::new();
    let mut due: Vec<(Timestamp, &IssueClaim)> = Vec::new();
    for claim in state.claims.values().chain(state.rivals.values()) {
        if let Phase::Retrying { due: at, .. } = &claim.phase
            && *at <= now
        {
            due.push((*at, claim));
        }
    }
    // The longest wait first, so that new issues do not overtake.
    due.sort_by(|a, b| (a.0, &a.1.identifier).cmp(&(b.0, &b.1.identifier)));
    for (_, claim) in due {
        if slots.hold(&claim.state).is_none() {
            slots.take(&claim.state);
            facts.push(IssueFact::Restarted { issue: claim.issue.clone() });
        }
    }
    let Some(snapshot) = snapshot else { return facts };
    if slots.is_full() {
        return facts;
    }
    for issue in in_order(state, &snapshot.candidates) {
        if slots.is_full() {
            break;
        }
        let held = slots.hold(&issue.state).is_some()
            || hold::of_issue(config, state, issue, snapshot.asked).is_some();
        if !held {
            slots.take(&issue.state);
            facts.push(claimed(config, issue));
        }
    }
    facts
}

/// The claim of an issue, with the agents that its rule names.
fn claimed(config: &Config, issue: &Issue) -> IssueFact {
    let mut stages = stages_of(config, issue).into_iter();
    let first = stages.next();
    let contest = rule_of(config, issue).and_then(|rule| rule.contest.as_ref());
    let rivals = contest.map(|contest| contest.rivals.as_slice()).unwrap_or_default();
    let rivals: Vec<ClaimRival> = rivals
        .iter()
        .map(|rival| ClaimRival { agent: rival.runtime().to_owned(), max_turns: rival.max_turns })
        .collect();
    let agent = match (&first, rivals.is_empty()) {
        (Some(stage), _) => stage.agent.clone(),
        (None, true) => config.agent.runtime().to_owned(),
        (None, false) => rivals.iter().map(|rival| rival.agent.as_str()).collect::<Vec<_>>().join(", "),
    };
    IssueFact::Claimed {
        issue: issue.id.clone(),
        identifier: issue.identifier.clone(),
        title: issue.title.clone(),
        state: issue.state.clone(),
        agent,
        max_turns: first.as_ref().and_then(|stage| stage.max_turns),
        stage: first.map(|stage| stage.name).filter(|name| !name.is_empty()),
        next_stages: stages.collect(),
        rivals,
        judge: contest.map(|contest| contest.judge),
    }
}

/// Stages of an issue by the first rule that fits. None if no rule does.
fn stages_of(config: &Config, issue: &Issue) -> Vec<ClaimStage> {
    let stages = rule_of(config, issue).map(|rule| rule.stages.as_slice()).unwrap_or_default();
    let stage = |stage: &hangar_workflow::dispatch::Stage| ClaimStage {
        name: stage.name.clone(),
        agent: stage.runtime().to_owned(),
        max_turns: stage.max_turns,
    };
    stages.iter().map(stage).collect()
}

/// The rule that chooses the agent of an issue. Its choice holds for the whole claim.
pub fn rule_of<'a>(config: &'a Config, issue: &Issue) -> Option<&'a DispatchRule> {
    let subject = IssueProperties {
        identifier: &issue.identifier,
        labels: &issue.labels,
        issue_type: issue.issue_type.as_deref(),
        assignee: issue.assignee.as_deref(),
        priority: issue.priority,
    };
    config.dispatch.iter().find(|rule| rule.fits(subject))
}

/// Issues by urgency: those that a person wants, then by priority, age and name.
fn in_order<'a>(state: &OrchestratorState, issues: &'a [Issue]) -> Vec<&'a Issue> {
    let mut order: Vec<&Issue> = issues.iter().collect();
    order.sort_by_cached_key(|issue| {
        let created = issue.created_at.clone().unwrap_or_else(|| "~".to_owned());
        let wanted = state.wanted.contains_key(&issue.id);
        (!wanted, issue.priority.unwrap_or(i64::MAX), created, issue.identifier.clone())
    });
    order
}

/// A candidate and why it is not started, as `--dry-run` and lists show it.
#[derive(Debug, Clone, PartialEq)]
pub struct IssueCandidate<'a> {
    pub issue: &'a Issue,
    /// `None` if it would be started now.
    pub hold: Option<Hold>,
}

/// All candidates in their order, with the reason of each that would not be started now.
pub fn candidates<'a>(
    config: &Config,
    snapshot: &'a TrackerSnapshot,
    state: &OrchestratorState,
) -> Vec<IssueCandidate<'a>> {
    let mut slots = Slots::of(config, state);
    let judged = in_order(state, &snapshot.candidates).into_iter().map(|issue| {
        let hold = hold::of_issue(config, state, issue, snapshot.asked).or_else(|| slots.hold(&issue.state));
        if hold.is_none() {
            slots.take(&issue.state);
        }
        IssueCandidate { issue, hold }
    });
    judged.collect()
}

/// The time at which a step becomes possible without any other change.
pub fn next_wake(state: &OrchestratorState) -> Option<Timestamp> {
    let due = |claim: &IssueClaim| match &claim.phase {
        Phase::Retrying { due, .. } => Some(*due),
        Phase::Opening
        | Phase::Ready
        | Phase::Turn
        | Phase::Turned { .. }
        | Phase::Closing { .. }
        | Phase::Settling { .. }
        | Phase::Contest { .. }
        | Phase::Promoting { .. }
        | Phase::Done { .. }
        | Phase::Waiting { .. }
        | Phase::Parked { .. } => None,
    };
    state.claims.values().chain(state.rivals.values()).filter_map(due).min()
}

/// Ids that have to be read with each snapshot.
pub fn watched(state: &OrchestratorState) -> BTreeSet<IssueId> {
    let places = state.workspaces.iter().filter(|(_, place)| !place.is_rival).map(|(issue, _)| issue);
    state.claims.keys().chain(places).cloned().collect()
}
