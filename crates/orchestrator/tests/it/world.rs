//! A tracker, a clock and a host that perform what is planned, without a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use hangar_orchestrator::contest::{Criterion, RivalResult};
use hangar_orchestrator::plan::{
    Busy, IssueEffect, PlanStep, Seeing, TrackerSnapshot, plan, watched, watched_pulls,
};
use hangar_orchestrator::pulls::{PullView, Pulls};
use hangar_orchestrator::record::{
    IssueFact, OrchestratorRecord, PersonRequest, SessionEnd, Tokens, WorkFailure, WorkTurnEnd, Write,
};
use hangar_orchestrator::state::OrchestratorState;
use hangar_trackers::forge::{PullRequest, PullState};
use hangar_trackers::{Issue, IssueId};
use hangar_workflow::environment::WorkflowEnvironment;
use hangar_workflow::{Workflow, load};
use jiff::{SignedDuration, Timestamp};

pub(crate) struct World {
    pub(crate) workflow: Workflow,
    pub(crate) issues: BTreeMap<IssueId, Issue>,
    pub(crate) state: OrchestratorState,
    pub(crate) records: Vec<OrchestratorRecord>,
    /// Effects under way.
    pub(crate) effects: BTreeMap<IssueId, IssueEffect>,
    pub(crate) snapshot: Option<TrackerSnapshot>,
    /// Pull requests as they were read.
    pub(crate) pulls: Pulls,
    /// The pull requests of the forge, by number.
    pub(crate) forge: BTreeMap<u64, PullRequest>,
    pub(crate) now: Timestamp,
    /// Size of every workspace.
    pub(crate) workspace_bytes: Option<u64>,
    /// How the work of candidates is measured, by their numbers. One that is not here has changed nothing.
    pub(crate) measures: BTreeMap<u32, RivalResult>,
    /// Promotions that fail, and may succeed later.
    pub(crate) outages: u32,
    /// Everything that happened, one line each.
    pub(crate) log: Vec<String>,
}

pub(crate) fn id(id: &str) -> IssueId {
    IssueId(id.to_owned())
}

pub(crate) fn workflow(yaml: &str) -> Workflow {
    let text = format!(
        "---\ntracker:\n  kind: file\n  active_states: [To Do, In Progress]\n  terminal_states: [Done]\n{yaml}---\nx\n"
    );
    load(&text, Path::new("/w"), &WorkflowEnvironment::default()).unwrap()
}

pub(crate) fn failure(kind: &str, retryable: bool) -> WorkFailure {
    WorkFailure { kind: kind.to_owned(), message: format!("{kind}!"), retryable }
}

fn pull_request(number: u64) -> PullRequest {
    PullRequest {
        number,
        url: String::new(),
        state: PullState::Open,
        is_draft: false,
        head: String::new(),
        base: "main".to_owned(),
        mergeable: Some(true),
        labels: Vec::new(),
        checks: Vec::new(),
        log_excerpt: String::new(),
        threads: Vec::new(),
        reviews: Vec::new(),
    }
}

impl World {
    pub(crate) fn new(yaml: &str, ids: &[&str]) -> Self {
        let issues = ids.iter().map(|name| (id(name), Issue::new(name, name, "a title", "To Do"))).collect();
        Self {
            workflow: workflow(yaml),
            issues,
            state: OrchestratorState::default(),
            records: Vec::new(),
            effects: BTreeMap::new(),
            snapshot: None,
            pulls: Pulls::default(),
            forge: BTreeMap::new(),
            now: Timestamp::UNIX_EPOCH,
            workspace_bytes: None,
            measures: BTreeMap::new(),
            outages: 0,
            log: Vec::new(),
        }
    }

    /// Name of an issue or of a candidate.
    fn name(&self, key: &IssueId) -> String {
        let role = self.state.work(key).and_then(|claim| claim.role.as_ref());
        role.map_or_else(|| key.0.clone(), |role| format!("{}#{}", role.issue, role.number))
    }

    /// Key of an issue, or of a candidate as `a#1`.
    pub(crate) fn key(&self, name: &str) -> IssueId {
        let found = self.state.rivals.keys().find(|key| self.name(key) == name);
        found.cloned().unwrap_or_else(|| id(name))
    }

    pub(crate) fn issue(&mut self, name: &str) -> &mut Issue {
        self.issues.get_mut(&id(name)).unwrap()
    }

    pub(crate) fn poll(&mut self) {
        self.wait(Duration::from_millis(1));
        let ids = watched(&self.state);
        let active =
            self.issues.values().filter(|issue| self.workflow.config.tracker.is_active(&issue.state));
        self.snapshot = Some(TrackerSnapshot {
            asked: self.now,
            candidates: active.cloned().collect(),
            watched: ids.iter().filter_map(|id| Some((id.clone(), self.issues.get(id)?.clone()))).collect(),
            asked_for: ids,
        });
        self.wait(Duration::from_millis(1));
        self.settle();
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += SignedDuration::try_from(time).unwrap();
    }

    pub(crate) fn note(&mut self, fact: IssueFact) {
        let record = OrchestratorRecord { seq: self.state.next_seq, at: self.now, fact };
        // What others will read is what counts.
        let record: OrchestratorRecord =
            serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
        match &record.fact {
            IssueFact::SessionEnded { issue, end } => {
                self.effects.remove(issue);
                let name = self.name(issue);
                self.log.push(format!("{name}: ended {}", end_name(end)));
            }
            IssueFact::Parked { issue, reason } => {
                self.log.push(format!("{issue}: parked, {}", reason.sentence()));
            }
            IssueFact::Released { issue, .. } => self.log.push(format!("{issue}: released")),
            IssueFact::RetryAt { issue, due, .. } => {
                let delay = due.duration_since(self.now).as_millis();
                let name = self.name(issue);
                self.log.push(format!("{name}: retry in {delay} ms"));
            }
            IssueFact::Claimed { issue, .. } => self.log.push(format!("{issue}: claimed")),
            IssueFact::StageAdvanced { issue, stage } => {
                self.log.push(format!("{issue}: {} with {}", stage.name, stage.agent));
            }
            IssueFact::Reacted { issue, reaction } => {
                let to = serde_json::to_value(reaction).unwrap()["to"].as_str().unwrap().to_owned();
                self.log.push(format!("{issue}: reaction to {to}"));
            }
            IssueFact::Waiting { issue } => self.log.push(format!("{issue}: waits")),
            IssueFact::Chosen { issue, candidate } => self.log.push(format!("{issue}: chosen {candidate}")),
            IssueFact::Promoted { issue, candidate, .. } => {
                self.log.push(format!("{issue}: promoted {candidate}"));
            }
            _ => {}
        }
        self.state.apply(&record);
        self.records.push(record);
    }

    /// Takes steps until there are none. Effects other than turns are done at once.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            let busy = Busy { issues: self.effects.keys().cloned().collect(), draining: false };
            let seen = Seeing { snapshot: self.snapshot.as_ref(), pulls: &self.pulls };
            let steps = plan(&self.workflow.config, seen, &self.state, &busy, self.now);
            if steps.is_empty() {
                return;
            }
            for step in steps {
                match step {
                    PlanStep::Note(fact) => self.note(fact),
                    PlanStep::Do(effect @ (IssueEffect::Turn { .. } | IssueEffect::Open { .. })) => {
                        self.effects.insert(effect.issue().clone(), effect);
                    }
                    PlanStep::Do(effect) => self.perform(effect),
                }
            }
            self.open_all();
        }
        panic!("the plan never comes to an end: {:#?}", self.log);
    }

    fn open_all(&mut self) {
        let opening: Vec<IssueId> = self
            .effects
            .values()
            .filter(|effect| matches!(effect, IssueEffect::Open { .. }))
            .map(|effect| effect.issue().clone())
            .collect();
        for issue in opening {
            self.effects.remove(&issue);
            let state = self.issues[self.state.work(&issue).unwrap().tracked()].state.clone();
            let session = format!("s{}", self.state.next_seq);
            self.log.push(format!("{}: opened", self.name(&issue)));
            self.note(IssueFact::Opened { issue, session, workspace: "/ws".into(), branch: None, state });
        }
    }

    pub(crate) fn perform(&mut self, effect: IssueEffect) {
        match effect {
            IssueEffect::Write { issue, write } => {
                self.write(&issue, &write);
                self.note(IssueFact::Written { issue, write, error: None });
            }
            IssueEffect::Check { issue } => {
                let tracked = self.state.work(&issue).unwrap().tracked();
                let state = self.issues.get(tracked).map(|issue| issue.state.clone());
                self.note(IssueFact::Checked { issue, state });
            }
            IssueEffect::Close { issue } => {
                self.note(IssueFact::Finished { issue, workspace_bytes: self.workspace_bytes });
            }
            IssueEffect::Measure { issue } => {
                let number = self.state.rivals[&issue].role.as_ref().unwrap().number;
                let result = self.measures.get(&number).cloned().unwrap_or_default();
                self.log.push(format!("{}: measured", self.name(&issue)));
                self.note(IssueFact::RivalDone { issue, result });
            }
            IssueEffect::Promote { issue, candidate } => {
                let state = self.issues.get(&issue).map(|issue| issue.state.clone());
                let left = match &state {
                    _ if self.outages > 0 => {
                        self.outages -= 1;
                        Some(SessionEnd::Failed(failure("promotion_failed", true)))
                    }
                    None => Some(SessionEnd::Gone),
                    Some(state) if self.workflow.config.tracker.is_active(state) => None,
                    Some(state) => Some(SessionEnd::Inactive { state: state.clone() }),
                };
                let (workspace, branch) = ("/ws".into(), "b".to_owned());
                self.note(match left {
                    Some(end) => IssueFact::SessionEnded { issue, end },
                    None => IssueFact::Promoted { issue, candidate, workspace, branch, state },
                });
            }
            IssueEffect::RemoveWorkspace { issue } => {
                let name = issue.0.replace('\u{1f}', "#");
                self.log.push(format!("{name}: workspace removed"));
                self.note(IssueFact::WorkspaceRemoved { issue, kept: None });
            }
            IssueEffect::Publish { issue } => self.publish(issue),
            IssueEffect::Answer { issue, remark } => {
                self.log.push(format!("{issue}: answered {remark}"));
                self.answer(&remark);
                self.note(IssueFact::Answered { issue, remark, error: None });
            }
            IssueEffect::Merge { issue, head } => {
                let number = self.state.claims[&issue].pull.as_ref().unwrap().number;
                self.forge.get_mut(&number).unwrap().state = PullState::Merged;
                self.log.push(format!("{issue}: merged {head}"));
                self.note(IssueFact::Merged { issue, head, error: None });
            }
            IssueEffect::Open { .. } | IssueEffect::Turn { .. } => panic!("{effect:?} is not done at once"),
        }
    }

    /// Every session pushes a commit of its own, unless the test says otherwise.
    fn publish(&mut self, issue: IssueId) {
        let number = 1000 + self.issues.keys().position(|known| *known == issue).unwrap() as u64;
        let head = format!("c{}", self.state.claims[&issue].sessions);
        let pull = self.forge.entry(number).or_insert_with(|| pull_request(number));
        pull.head.clone_from(&head);
        pull.checks.clear();
        self.log.push(format!("{issue}: pushed {head}"));
        let (url, base) = (format!("https://forge/{number}"), "main".to_owned());
        self.note(IssueFact::Published { issue, number, url, base, head, changed: true });
    }

    fn answer(&mut self, remark: &str) {
        for thread in self.forge.values_mut().flat_map(|pull| &mut pull.threads) {
            if thread.comments.iter().any(|comment| comment.id == remark) {
                thread.is_resolved = true;
            }
        }
    }

    /// Reads the pull requests that claims wait for.
    pub(crate) fn look(&mut self) {
        self.wait(Duration::from_millis(1));
        for (issue, number) in watched_pulls(&self.state) {
            let view = PullView { asked: self.now, pull: self.forge[&number].clone() };
            self.pulls.0.insert(issue, view);
        }
        self.wait(Duration::from_millis(1));
        self.settle();
    }

    /// The pull request of the first issue.
    pub(crate) fn pull(&mut self) -> &mut PullRequest {
        self.forge.get_mut(&1000).unwrap()
    }

    fn write(&mut self, issue: &IssueId, write: &Write) {
        // One that is gone takes no writes.
        let Some(entry) = self.issues.get_mut(issue) else { return };
        match write {
            Write::Transition { to } => {
                entry.state.clone_from(to);
                self.log.push(format!("{issue}: -> {to}"));
            }
            Write::Comment { marker, .. } => self.log.push(format!("{issue}: comment {marker}")),
            Write::Label { label } => {
                entry.labels.push(label.clone());
                self.log.push(format!("{issue}: label {label}"));
            }
            Write::Unlabel { label } => entry.labels.retain(|known| known != label),
        }
    }

    /// Ends the turn of an issue.
    pub(crate) fn turn(&mut self, name: &str, end: WorkTurnEnd, soft_stop: Option<&str>) {
        let issue = self.key(name);
        assert!(
            matches!(self.effects.remove(&issue), Some(IssueEffect::Turn { .. })),
            "{name} has no turn: {:#?}",
            self.log
        );
        let tokens = Tokens { input: 10, output: 1, cache_read: 0 };
        self.note(IssueFact::TurnEnded { issue, end, soft_stop: soft_stop.map(str::to_owned), tokens });
        self.settle();
    }

    pub(crate) fn completes(&mut self, name: &str) {
        self.turn(name, WorkTurnEnd::Completed, None);
    }

    pub(crate) fn fails(&mut self, name: &str, kind: &str, retryable: bool) {
        self.turn(name, WorkTurnEnd::Failed(failure(kind, retryable)), None);
    }

    pub(crate) fn request(&mut self, name: &str, request: PersonRequest) {
        self.note(IssueFact::Requested {
            issue: id(name),
            identifier: name.to_owned(),
            request,
            id: "r".to_owned(),
        });
        if matches!(request, PersonRequest::Stop | PersonRequest::Park) {
            self.effects.remove(&id(name));
        }
        self.settle();
    }

    /// The process is killed and started again.
    pub(crate) fn killed(&mut self) {
        self.effects.clear();
        self.snapshot = None;
        self.pulls = Pulls::default();
        self.state = OrchestratorState::fold(&self.records);
        self.note(IssueFact::Resumed);
        self.settle();
    }

    pub(crate) fn running(&self) -> BTreeSet<&str> {
        self.state.running().map(|claim| claim.identifier.as_str()).collect()
    }

    pub(crate) fn turn_of(&self, name: &str) -> Option<u32> {
        match self.effects.get(&self.key(name)) {
            Some(IssueEffect::Turn { turn, .. }) => Some(*turn),
            _ => None,
        }
    }

    #[track_caller]
    pub(crate) fn logged(&self, expected: &[&str]) {
        assert_eq!(self.log, expected);
    }
}

/// Work of so many lines, with a command of the judge that passed or failed.
pub(crate) fn work(lines: u64, passed: bool, score: Option<f64>) -> RivalResult {
    let (command, output) = ("true".to_owned(), String::new());
    RivalResult {
        commit: Some("c".to_owned()),
        files: 1,
        added: lines,
        checks: vec![Criterion { command, passed, output }],
        score,
        ..RivalResult::default()
    }
}

fn end_name(end: &SessionEnd) -> &'static str {
    match end {
        SessionEnd::MaxTurns => "max turns",
        SessionEnd::SoftStop { .. } => "soft stop",
        SessionEnd::Inactive { .. } => "inactive",
        SessionEnd::Gone => "gone",
        SessionEnd::Failed(_) => "failed",
        SessionEnd::Interrupted => "interrupted",
        SessionEnd::Stopped => "stopped",
    }
}
