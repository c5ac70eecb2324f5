//! The board of a workflow: its issues as cards, each in a column and with a reason.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use hangar_orchestrator::contest::{end_sentence, number_of};
use hangar_orchestrator::hold::{self, Hold, PullWait};
use hangar_orchestrator::plan::{TrackerSnapshot, candidates};
use hangar_orchestrator::pulls::Pulls;
use hangar_orchestrator::record::{ParkReason, Release, Tokens};
use hangar_orchestrator::state::{IssueClaim, OrchestratorState, Phase, ReleasedIssue};
use hangar_portal::issues::{
    BoardColumn, CheckResult, IssueAction, IssueCandidate, IssueCard, IssueCriterion, IssuePull, IssueTokens,
};
use hangar_trackers::forge::{CheckStatus, PullRequest, PullState};
use hangar_trackers::{Issue, IssueId, Tracker};
use hangar_workflow::Config;

use super::effects::{Context, item_id};
use super::mirror::Mirror;
use super::show;

/// Everything that a loop knows.
pub(super) struct Sight<'a> {
    pub(super) context: &'a Context,
    pub(super) state: &'a OrchestratorState,
    pub(super) snapshot: Option<&'a TrackerSnapshot>,
    pub(super) pulls: &'a Pulls,
    pub(super) trouble: Option<&'a str>,
}

/// A card and the sessions that its cost is the sum of.
#[derive(Debug)]
pub(super) struct BoardCard {
    pub(super) card: IssueCard,
    pub(super) session_ids: Vec<String>,
}

/// The board of one workflow.
#[derive(Debug, Default)]
pub(super) struct WorkflowBoard {
    pub(super) cards: Vec<BoardCard>,
    pub(super) counts: BTreeMap<BoardColumn, usize>,
    pub(super) states: Vec<String>,
    pub(super) terminal_states: Vec<String>,
    pub(super) read_at: Option<String>,
    pub(super) trouble: Option<String>,
}

/// An issue that the loop knows, with what is needed to read and change it.
pub(super) struct FoundIssue {
    pub(super) found: BoardCard,
    pub(super) workspace: Option<PathBuf>,
    pub(super) branch: Option<String>,
    pub(super) pull: Option<PullRequest>,
    /// As it was last read.
    pub(super) issue: Option<Issue>,
    pub(super) states: Vec<String>,
    pub(super) tracker: Arc<dyn Tracker>,
    /// Agents that work on it side by side.
    pub(super) rivals: Vec<IssueClaim>,
    pub(super) mirror: Option<Arc<Mirror>>,
}

/// States that an issue can be moved to, in the order of work.
fn states(config: &Config) -> Vec<String> {
    let tracker = &config.tracker;
    let all = tracker.active_states.iter().chain(&tracker.handoff_state).chain(&tracker.terminal_states);
    let mut states: Vec<String> = Vec::new();
    for state in all {
        if !states.iter().any(|known| known.to_lowercase() == state.to_lowercase()) {
            states.push(state.clone());
        }
    }
    states
}

impl Sight<'_> {
    fn config(&self) -> &Config {
        &self.context.workflow.config
    }

    pub(super) fn board(&self, limit: usize) -> WorkflowBoard {
        let mut board = WorkflowBoard {
            states: states(self.config()),
            terminal_states: self.config().tracker.terminal_states.clone(),
            read_at: self.snapshot.map(|snapshot| format!("{:.3}", snapshot.asked)),
            trouble: self.trouble.map(str::to_owned),
            ..WorkflowBoard::default()
        };
        let mut add = |column: BoardColumn, card: &dyn Fn() -> BoardCard| {
            let count = board.counts.entry(column).or_default();
            *count += 1;
            if *count <= limit {
                board.cards.push(card());
            }
        };
        let known = self.known();
        for claim in self.state.claims.values() {
            let (hold, column) = self.place(claim);
            add(column, &|| self.claimed(claim, &hold, column, known.get(&claim.issue).copied()));
        }
        let judged = self.snapshot.map(|snapshot| candidates(self.config(), snapshot, self.state));
        for candidate in judged.into_iter().flatten() {
            if !self.state.claims.contains_key(&candidate.issue.id) {
                let hold = candidate.hold.as_ref();
                let column = if hold.is_none() { BoardColumn::Eligible } else { BoardColumn::Held };
                add(column, &|| self.candidate(candidate.issue, hold));
            }
        }
        let mut released: Vec<(&IssueId, &ReleasedIssue)> = self.state.history.iter().collect();
        released.sort_by_key(|(_, history)| std::cmp::Reverse(history.at));
        for (id, history) in released {
            if let Some(column) = self.released_column(id, history) {
                add(column, &|| self.released(id, history, column));
            }
        }
        board
    }

    /// An issue by its id or its identifier.
    pub(super) fn find(&self, name: &str) -> Option<FoundIssue> {
        let known = self.known();
        let is_named = |issue: &Issue| issue.id.0 == name || issue.identifier == name;
        let found = |card: BoardCard, claim: Option<&IssueClaim>| {
            let id = IssueId(card.card.id.clone());
            FoundIssue {
                workspace: claim.and_then(|claim| claim.workspace.clone()),
                branch: claim.and_then(|claim| claim.branch.clone()),
                pull: self.pulls.0.get(&id).map(|view| view.pull.clone()),
                issue: known.get(&id).map(|issue| (*issue).clone()),
                states: states(self.config()),
                tracker: Arc::clone(&self.context.tracker),
                rivals: self.state.rivals_of(&id).into_iter().cloned().collect(),
                mirror: self.context.mirror.clone(),
                found: card,
            }
        };
        if let Some(claim) = self.state.find(name) {
            let (hold, column) = self.place(claim);
            let card = self.claimed(claim, &hold, column, known.get(&claim.issue).copied());
            return Some(found(card, Some(claim)));
        }
        let judged = self.snapshot.map(|snapshot| candidates(self.config(), snapshot, self.state));
        if let Some(candidate) = judged.iter().flatten().find(|candidate| is_named(candidate.issue)) {
            return Some(found(self.candidate(candidate.issue, candidate.hold.as_ref()), None));
        }
        let mut all = self.state.history.iter();
        let (id, history) = all.find(|(id, history)| id.0 == name || history.identifier == name)?;
        let column = self.released_column(id, history).unwrap_or(BoardColumn::Done);
        Some(found(self.released(id, history, column), None))
    }

    /// Issues as they were last read.
    fn known(&self) -> HashMap<&IssueId, &Issue> {
        let Some(snapshot) = self.snapshot else { return HashMap::new() };
        let candidates = snapshot.candidates.iter().map(|issue| (&issue.id, issue));
        candidates.chain(snapshot.watched.iter()).collect()
    }

    /// The hold of a claim, and its column. A claim that waits for a slot of the queue is held.
    fn place(&self, claim: &IssueClaim) -> (Held, BoardColumn) {
        if matches!(claim.phase, Phase::Opening)
            && let Some(reason) = self.context.hub.scheduler().reason(&item_id(&self.context.key, claim))
        {
            return (Held { code: "queued", why: reason }, BoardColumn::Held);
        }
        let hold = hold::of_claim(claim);
        let column = match &hold {
            Hold::Running { .. } | Hold::Settling | Hold::Contest { .. } | Hold::Promoting { .. } => {
                BoardColumn::Running
            }
            Hold::Retrying { .. } => BoardColumn::Retrying,
            Hold::Parked { .. } => BoardColumn::Parked,
            Hold::Waiting { until: PullWait::Ci, .. } => BoardColumn::WaitingCi,
            Hold::Waiting { until: PullWait::Review | PullWait::Merge, .. } => BoardColumn::WaitingReview,
            _ => BoardColumn::Held,
        };
        (Held { code: hold.code(), why: hold.sentence() }, column)
    }

    fn claimed(
        &self,
        claim: &IssueClaim,
        hold: &Held,
        column: BoardColumn,
        issue: Option<&Issue>,
    ) -> BoardCard {
        let question = match &claim.phase {
            Phase::Parked { reason: ParkReason::Question { question }, .. } => Some(question.clone()),
            _ => None,
        };
        let due = match &claim.phase {
            Phase::Retrying { due, .. } => Some(format!("{due:.3}")),
            _ => None,
        };
        let pull = claim.pull.as_ref().map(|pull| {
            let seen = pull.seen.as_ref();
            IssuePull {
                number: pull.number,
                url: pull.url.clone(),
                merged: seen.is_some_and(|seen| seen.state == PullState::Merged),
                checks: seen.and_then(|seen| seen.checks).map(check_result),
                approved: seen.is_some_and(|seen| seen.approved),
                open_threads: seen.map_or(0, |seen| seen.open_threads),
                mergeable: seen.and_then(|seen| seen.mergeable),
            }
        });
        let mut actions = match column {
            BoardColumn::Running => vec![IssueAction::Stop],
            BoardColumn::Parked => vec![IssueAction::Retry],
            BoardColumn::Retrying | BoardColumn::WaitingCi | BoardColumn::WaitingReview => {
                vec![IssueAction::Retry, IssueAction::Park]
            }
            BoardColumn::Held | BoardColumn::Eligible | BoardColumn::Done => vec![IssueAction::Park],
        };
        actions.push(IssueAction::Move);
        if question.is_some() {
            actions.push(IssueAction::Answer);
        }
        let rivals = self.state.rivals_of(&claim.issue);
        if column == BoardColumn::Parked && rivals.iter().any(|rival| rival.is_promotable()) {
            actions.push(IssueAction::Promote);
        }
        let (mut used, mut session_ids) = (claim.tokens, claim.session_ids.clone());
        for rival in rivals {
            used += rival.tokens;
            session_ids.extend(rival.session_ids.iter().cloned());
        }
        let title = if claim.title.is_empty() { issue.map(|issue| &issue.title) } else { Some(&claim.title) };
        let state = if claim.state.is_empty() { issue.map(|issue| &issue.state) } else { Some(&claim.state) };
        let card = IssueCard {
            title: title.cloned().unwrap_or_default(),
            state: state.cloned().unwrap_or_default(),
            url: issue.and_then(|issue| issue.url.clone()),
            labels: issue.map(|issue| issue.labels.clone()).unwrap_or_default(),
            priority: issue.and_then(|issue| issue.priority),
            agent: Some(claim.agent.clone()).filter(|agent| !agent.is_empty()),
            stage: claim.stage.clone(),
            session: claim.session.clone(),
            turn: claim.turn,
            max_turns: claim.max_turns.unwrap_or(self.config().agent.max_turns),
            sessions: claim.sessions,
            attempt: claim.failures,
            since: Some(format!("{:.3}", claim.since)),
            due,
            tokens: tokens(used),
            pull,
            question,
            error: claim.error.clone(),
            actions,
            ..self.card(&claim.issue, &claim.identifier, column, hold)
        };
        BoardCard { card, session_ids }
    }

    fn candidate(&self, issue: &Issue, hold: Option<&Hold>) -> BoardCard {
        let held = hold.map_or_else(
            || Held { code: "eligible", why: "it is started next".to_owned() },
            |hold| Held { code: hold.code(), why: hold.sentence() },
        );
        let column = if hold.is_none() { BoardColumn::Eligible } else { BoardColumn::Held };
        let history = self.state.history.get(&issue.id);
        let card = IssueCard {
            title: issue.title.clone(),
            state: issue.state.clone(),
            url: issue.url.clone(),
            labels: issue.labels.clone(),
            priority: issue.priority,
            sessions: history.map_or(0, |history| history.sessions),
            since: issue.created_at.clone(),
            tokens: history.map(|history| tokens(history.tokens)).unwrap_or_default(),
            actions: vec![IssueAction::Start, IssueAction::Park, IssueAction::Move],
            ..self.card(&issue.id, &issue.identifier, column, &held)
        };
        BoardCard {
            card,
            session_ids: history.map(|history| history.session_ids.clone()).unwrap_or_default(),
        }
    }

    /// Column of an issue that was released. `None` for one that is shown elsewhere, or that is no longer ours.
    fn released_column(&self, id: &IssueId, history: &ReleasedIssue) -> Option<BoardColumn> {
        let tracker = &self.config().tracker;
        let is_candidate = self.snapshot.is_some_and(|snapshot| {
            snapshot.watched.get(id).is_some_and(|issue| tracker.is_active(&issue.state))
        });
        if self.state.claims.contains_key(id) || is_candidate {
            return None;
        }
        let read = self.snapshot.and_then(|snapshot| snapshot.watched.get(id));
        match (&history.release, read) {
            (Release::Merged { .. }, _) => Some(BoardColumn::Done),
            (Release::HandedOff { .. } | Release::Inactive { .. }, Some(issue))
                if tracker.is_terminal(&issue.state) =>
            {
                Some(BoardColumn::Done)
            }
            (Release::HandedOff { .. }, Some(_)) => Some(BoardColumn::WaitingReview),
            (Release::HandedOff { .. }, None) => Some(BoardColumn::Done),
            (Release::Inactive { state }, None) if tracker.is_terminal(state) => Some(BoardColumn::Done),
            (Release::Inactive { .. }, Some(_)) => Some(BoardColumn::Held),
            (Release::Inactive { .. } | Release::Gone | Release::Unparked, _) => None,
        }
    }

    fn released(&self, id: &IssueId, history: &ReleasedIssue, column: BoardColumn) -> BoardCard {
        let issue = self.snapshot.and_then(|snapshot| snapshot.watched.get(id));
        let (code, state) = match &history.release {
            Release::HandedOff { state } => ("handed_off", state.clone()),
            Release::Inactive { state } => ("inactive", state.clone()),
            Release::Merged { .. } => ("merged", String::new()),
            Release::Gone => ("gone", String::new()),
            Release::Unparked => ("unparked", String::new()),
        };
        let terminal = || self.config().tracker.terminal_states.first().cloned().unwrap_or_default();
        let state = issue.map(|issue| issue.state.clone()).unwrap_or(state);
        let number = match history.release {
            Release::Merged { number } => number,
            _ => 0,
        };
        let pull = history.pull.as_ref().map(|url| IssuePull {
            number,
            url: url.clone(),
            merged: matches!(history.release, Release::Merged { .. }),
            checks: None,
            approved: false,
            open_threads: 0,
            mergeable: None,
        });
        let held = Held { code, why: show::released(&history.release) };
        let title = issue.map(|issue| issue.title.clone()).unwrap_or_else(|| history.title.clone());
        let card = IssueCard {
            title,
            state: if state.is_empty() { terminal() } else { state },
            url: issue.and_then(|issue| issue.url.clone()),
            labels: issue.map(|issue| issue.labels.clone()).unwrap_or_default(),
            session: history.session_ids.last().cloned(),
            sessions: history.sessions,
            turn: history.turns,
            since: Some(format!("{:.3}", history.at)),
            tokens: tokens(history.tokens),
            pull,
            actions: vec![IssueAction::Move],
            ..self.card(id, &history.identifier, column, &held)
        };
        BoardCard { card, session_ids: history.session_ids.clone() }
    }

    fn card(&self, id: &IssueId, identifier: &str, column: BoardColumn, hold: &Held) -> IssueCard {
        IssueCard {
            workflow: self.context.key.clone(),
            id: id.0.clone(),
            identifier: identifier.to_owned(),
            title: String::new(),
            state: String::new(),
            url: None,
            labels: Vec::new(),
            priority: None,
            column,
            code: hold.code.to_owned(),
            why: hold.why.clone(),
            agent: None,
            stage: None,
            session: None,
            turn: 0,
            max_turns: 0,
            sessions: 0,
            attempt: 0,
            since: None,
            due: None,
            tokens: IssueTokens::default(),
            cost: None,
            pull: None,
            question: None,
            error: None,
            actions: Vec::new(),
        }
    }
}

/// Why an issue is where it is.
struct Held {
    code: &'static str,
    why: String,
}

pub(super) fn check_result(status: CheckStatus) -> CheckResult {
    match status {
        CheckStatus::Pending => CheckResult::Pending,
        CheckStatus::Passing => CheckResult::Passing,
        CheckStatus::Failing => CheckResult::Failing,
    }
}

/// A rival as people see it. `cost` is that of its sessions.
pub(super) fn rival_view(rival: &IssueClaim, cost: Option<f64>) -> IssueCandidate {
    let result = rival.result.clone().unwrap_or_default();
    let why = match &rival.phase {
        Phase::Done { end } => result.error.clone().unwrap_or_else(|| end_sentence(end)),
        _ => hold::of_claim(rival).sentence(),
    };
    let criterion = |found: hangar_orchestrator::contest::Criterion| IssueCriterion {
        command: found.command,
        passed: found.passed,
        output: found.output,
    };
    IssueCandidate {
        number: number_of(rival),
        agent: rival.agent.clone(),
        done: matches!(rival.phase, Phase::Done { .. }),
        meets_criteria: rival.meets_criteria(),
        promotable: rival.is_promotable(),
        why,
        session: rival.session.clone(),
        turns: rival.turns,
        tokens: tokens(rival.tokens),
        cost,
        files: result.files,
        added: result.added,
        removed: result.removed,
        score: result.score,
        checks: result.checks.into_iter().map(criterion).collect(),
        commit: result.commit,
    }
}

fn tokens(tokens: Tokens) -> IssueTokens {
    IssueTokens { input: tokens.input, output: tokens.output, cache_read: tokens.cache_read }
}
