//! The plan: the next steps, from configuration, tracker, records and time. No step is taken here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hangar_trackers::forge::PullState;
use hangar_trackers::{Issue, IssueId};
use hangar_workflow::Config;
use hangar_workflow::dispatch::{DispatchRule, Subject};
use hangar_workflow::reactions::PullMode;
use jiff::Timestamp;

use crate::hold::{self, Hold};
use crate::pulls::{self, Consequence, PullView, Pulls};
use crate::record::{Fact, Release, RetryCause, SessionEnd, Write};
use crate::settle::{self, Settlement};
use crate::state::{Claim, Phase, State};

/// The tracker as it was read.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When the reading began. Whatever was decided later may not show in it.
    pub asked: Timestamp,
    /// Issues in active states.
    pub candidates: Vec<Issue>,
    /// Ids that were asked for one by one: those of claims and workspaces.
    pub asked_for: BTreeSet<IssueId>,
    /// Those of them that the tracker returned.
    pub watched: HashMap<IssueId, Issue>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A fact, which is written down before anything follows from it.
    Note(Fact),
    Do(Effect),
}

/// An effect on an issue. There is at most one at a time for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
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

impl Effect {
    pub fn issue(&self) -> &IssueId {
        match self {
            Effect::Write { issue, .. }
            | Effect::Open { issue }
            | Effect::Turn { issue, .. }
            | Effect::Check { issue }
            | Effect::Close { issue }
            | Effect::Publish { issue }
            | Effect::Answer { issue, .. }
            | Effect::Merge { issue, .. }
            | Effect::RemoveWorkspace { issue } => issue,
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

/// What was read of the world.
#[derive(Debug, Clone, Copy)]
pub struct Seeing<'a> {
    pub snapshot: Option<&'a Snapshot>,
    pub pulls: &'a Pulls,
}

/// The next steps. After facts are noted, it is asked again.
pub fn plan(config: &Config, seen: Seeing<'_>, state: &State, busy: &Busy, now: Timestamp) -> Vec<Step> {
    let snapshot = seen.snapshot;
    let mut steps = Vec::new();
    for claim in state.claims.values() {
        let view = seen.pulls.0.get(&claim.issue);
        if let Some(fact) = snapshot.and_then(|snapshot| reconcile(config, claim, snapshot, view)) {
            steps.push(Step::Note(fact));
        } else if !busy.issues.contains(&claim.issue) {
            steps.extend(advance(config, claim, view, now));
        }
    }
    if let Some(snapshot) = snapshot {
        let removable = state.workspaces.keys().filter(|issue| !busy.issues.contains(issue));
        let removable = removable.filter(|issue| is_over(config, state, snapshot, issue));
        steps.extend(removable.map(|issue| Step::Do(Effect::RemoveWorkspace { issue: issue.clone() })));
    }
    if !busy.draining {
        steps.extend(dispatch(config, snapshot, state, now).into_iter().map(Step::Note));
    }
    steps
}

/// The next step of one claim.
fn advance(config: &Config, claim: &Claim, view: Option<&PullView>, now: Timestamp) -> Option<Step> {
    let issue = claim.issue.clone();
    let next_write = |writes: Vec<Write>| writes.into_iter().find(|write| !claim.is_settled(write));
    match &claim.phase {
        Phase::Opening => Some(Step::Do(match next_write(settle::opening(config, claim)) {
            Some(write) => Effect::Write { issue, write },
            None => Effect::Open { issue },
        })),
        Phase::Ready if !is_workable(config, claim, &claim.state) => {
            let end = SessionEnd::Inactive { state: claim.state.clone() };
            Some(Step::Note(Fact::SessionEnded { issue, end }))
        }
        Phase::Ready if claim.turn >= claim.max_turns.unwrap_or(config.agent.max_turns) => {
            Some(Step::Note(Fact::SessionEnded { issue, end: SessionEnd::MaxTurns }))
        }
        Phase::Ready => Some(Step::Note(Fact::TurnStarted { issue, turn: claim.turn + 1 })),
        Phase::Turn => Some(Step::Do(Effect::Turn { issue, turn: claim.turn })),
        Phase::Turned { .. } => Some(Step::Do(Effect::Check { issue })),
        Phase::Closing { .. } => Some(Step::Do(Effect::Close { issue })),
        Phase::Settling { end } => match settle::publishing(config, claim, end) {
            Some(effect) => Some(Step::Do(effect)),
            None => Some(settled(claim, settle::settlement(config, claim, end, now))),
        },
        Phase::Waiting { since } => waiting(config, claim, view.filter(|view| view.asked > *since)?, now),
        Phase::Parked { since, .. } => {
            let view = view.filter(|view| view.asked > *since && view.pull.state == PullState::Merged)?;
            waiting(config, claim, view, now)
        }
        Phase::Retrying { .. } => None,
    }
}

/// The next write of a settlement, then its fact.
fn settled(claim: &Claim, settlement: Settlement) -> Step {
    match settlement.writes.into_iter().find(|write| !claim.is_settled(write)) {
        Some(write) => Step::Do(Effect::Write { issue: claim.issue.clone(), write }),
        None => Step::Note(settlement.then),
    }
}

/// The next step of a claim whose pull request is open.
fn waiting(config: &Config, claim: &Claim, view: &PullView, now: Timestamp) -> Option<Step> {
    let issue = claim.issue.clone();
    Some(match pulls::consequence(config, claim, &view.pull, now)? {
        Consequence::See(seen) => Step::Note(Fact::PullSeen { issue, seen }),
        Consequence::Complete => settled(claim, settle::merged(config, claim)),
        Consequence::React(reaction) => Step::Note(Fact::Reacted { issue, reaction }),
        Consequence::Park(reason) => settled(claim, settle::park(config, claim, reason)),
        Consequence::Merge { head } => Step::Do(Effect::Merge { issue, head }),
    })
}

/// Whether sessions may work on an issue in a state: an active one, or the one of issues whose pull request is open.
pub(crate) fn is_workable(config: &Config, claim: &Claim, state: &str) -> bool {
    config.tracker.is_active(state) || (claim.pull.is_some() && is_handoff(config, state))
}

fn is_handoff(config: &Config, state: &str) -> bool {
    config
        .tracker
        .handoff_state
        .as_ref()
        .is_some_and(|handoff| handoff.to_lowercase() == state.to_lowercase())
}

/// The consequence of a change that somebody else made to an issue of ours.
fn reconcile(config: &Config, claim: &Claim, snapshot: &Snapshot, view: Option<&PullView>) -> Option<Fact> {
    let id = &claim.issue;
    if !snapshot.asked_for.contains(id) {
        return None;
    }
    let found = snapshot.watched.get(id);
    let release = |release: Release| Some(Fact::Released { issue: id.clone(), release });
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
            Some(Fact::SessionEnded { issue: id.clone(), end })
        }
        (Phase::Closing { .. } | Phase::Settling { .. }, _) => None,
        (Phase::Retrying { .. } | Phase::Waiting { .. } | Phase::Parked { .. }, None) => {
            release(Release::Gone)
        }
        (Phase::Waiting { since }, Some(issue)) => {
            if snapshot.asked <= *since {
                return None;
            }
            moved(config, issue, snapshot, view).and_then(release)
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
                return moved(config, issue, snapshot, view).and_then(release);
            }
            let label = claim.written.iter().find_map(|write| match write {
                Write::Label { label } => Some(label.to_lowercase()),
                Write::Transition { .. } | Write::Comment { .. } | Write::Unlabel { .. } => None,
            });
            if claim.question.is_some() && is_answered(issue, *since) {
                let (cause, error) = (RetryCause::Person, None);
                return Some(Fact::RetryAt { issue: id.clone(), due: snapshot.asked, cause, error });
            }
            let moved = !state.is_empty() && issue.state.to_lowercase() != state.to_lowercase();
            let acted = moved || label.is_some_and(|label| !issue.labels.contains(&label));
            match acted {
                true if claim.pull.is_some() && !moved => Some(Fact::Waiting { issue: id.clone() }),
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
fn moved(config: &Config, issue: &Issue, snapshot: &Snapshot, view: Option<&PullView>) -> Option<Release> {
    let (tracker, state) = (&config.tracker, issue.state.clone());
    if tracker.is_terminal(&state) {
        // A merge closes issues: the pull request says whether it was one.
        let is_known =
            config.pulls.mode == PullMode::Off || view.is_some_and(|view| view.asked >= snapshot.asked);
        let is_merged = view.is_some_and(|view| view.pull.state == PullState::Merged);
        return (is_known && !is_merged).then_some(Release::Inactive { state });
    }
    match tracker.is_active(&state) {
        // A person wants more work on it, unless the issue stays active while it waits.
        true => tracker.handoff_state.is_some().then_some(Release::Unparked),
        false => (!is_handoff(config, &state)).then_some(Release::Inactive { state }),
    }
}

/// Pull requests that have to be read: those that claims wait for.
pub fn watched_pulls(state: &State) -> Vec<(IssueId, u64)> {
    let waits = |claim: &&Claim| matches!(claim.phase, Phase::Waiting { .. } | Phase::Parked { .. });
    let claims = state.claims.values().filter(waits);
    claims.filter_map(|claim| Some((claim.issue.clone(), claim.pull.as_ref()?.number))).collect()
}

/// Whether a workspace is of no more use: its issue is terminal, and nobody works on it.
fn is_over(config: &Config, state: &State, snapshot: &Snapshot, issue: &IssueId) -> bool {
    !state.claims.contains_key(issue)
        && snapshot.watched.get(issue).is_some_and(|issue| config.tracker.is_terminal(&issue.state))
}

/// Slots of the workflow that are taken.
struct Slots<'a> {
    config: &'a Config,
    used: u32,
    by_state: BTreeMap<String, u32>,
}

impl<'a> Slots<'a> {
    fn of(config: &'a Config, state: &State) -> Self {
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
fn dispatch(config: &Config, snapshot: Option<&Snapshot>, state: &State, now: Timestamp) -> Vec<Fact> {
    let mut slots = Slots::of(config, state);
    let mut facts = Vec::new();
    let mut due: Vec<(Timestamp, &Claim)> = Vec::new();
    for claim in state.claims.values() {
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
            facts.push(Fact::Restarted { issue: claim.issue.clone() });
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
            let rule = rule_of(config, issue);
            facts.push(Fact::Claimed {
                issue: issue.id.clone(),
                identifier: issue.identifier.clone(),
                title: issue.title.clone(),
                state: issue.state.clone(),
                agent: rule.map_or(config.agent.runtime(), DispatchRule::runtime).to_owned(),
                max_turns: rule.and_then(|rule| rule.max_turns),
            });
        }
    }
    facts
}

/// The rule that chooses the agent of an issue. Its choice holds for the whole claim.
pub fn rule_of<'a>(config: &'a Config, issue: &Issue) -> Option<&'a DispatchRule> {
    let subject = Subject {
        identifier: &issue.identifier,
        labels: &issue.labels,
        issue_type: issue.issue_type.as_deref(),
        assignee: issue.assignee.as_deref(),
        priority: issue.priority,
    };
    config.dispatch.iter().find(|rule| rule.fits(subject))
}

/// Issues by urgency: those that a person wants, then by priority, age and name.
fn in_order<'a>(state: &State, issues: &'a [Issue]) -> Vec<&'a Issue> {
    let mut order: Vec<&Issue> = issues.iter().collect();
    order.sort_by_cached_key(|issue| {
        let created = issue.created_at.clone().unwrap_or_else(|| "~".to_owned());
        let wanted = state.wanted.contains_key(&issue.id);
        (!wanted, issue.priority.unwrap_or(i64::MAX), created, issue.identifier.clone())
    });
    order
}

/// A candidate and its fate, as `--dry-run` and lists show it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate<'a> {
    pub issue: &'a Issue,
    /// `None` if it would be started now.
    pub hold: Option<Hold>,
}

/// All candidates in their order, with the reason of each that would not be started now.
pub fn candidates<'a>(config: &Config, snapshot: &'a Snapshot, state: &State) -> Vec<Candidate<'a>> {
    let mut slots = Slots::of(config, state);
    let judged = in_order(state, &snapshot.candidates).into_iter().map(|issue| {
        let hold = hold::of_issue(config, state, issue, snapshot.asked).or_else(|| slots.hold(&issue.state));
        if hold.is_none() {
            slots.take(&issue.state);
        }
        Candidate { issue, hold }
    });
    judged.collect()
}

/// When time alone makes a new step possible.
pub fn next_wake(state: &State) -> Option<Timestamp> {
    let due = |claim: &Claim| match &claim.phase {
        Phase::Retrying { due, .. } => Some(*due),
        Phase::Opening
        | Phase::Ready
        | Phase::Turn
        | Phase::Turned { .. }
        | Phase::Closing { .. }
        | Phase::Settling { .. }
        | Phase::Waiting { .. }
        | Phase::Parked { .. } => None,
    };
    state.claims.values().filter_map(due).min()
}

/// Ids that have to be read with each snapshot.
pub fn watched(state: &State) -> BTreeSet<IssueId> {
    state.claims.keys().chain(state.workspaces.keys()).cloned().collect()
}
