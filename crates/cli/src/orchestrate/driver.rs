//! Carries the plan out: facts are written down, then effects are done, and how they went is written down again.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use hangar_orchestrator::contest::number_of;
use hangar_orchestrator::plan::{
    Busy, IssueEffect, PlanStep, Seeing, TrackerSnapshot, next_wake, plan, watched, watched_pulls,
};
use hangar_orchestrator::pulls::{PullView, Pulls};
use hangar_orchestrator::record::{IssueFact, OrchestratorRecord, PersonRequest};
use hangar_orchestrator::state::{OrchestratorState, Phase};
use hangar_trackers::{IssueId, TrackerError};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::DropGuard;

use super::api::{self, Counts};
use super::board::Sight;
use super::effects::{Context, Done, item_id};
use super::log::{self, RecordLog};
use super::serve::Ask;
use super::session::LiveSession;
use super::show::Shown;
use super::source::{Source, Version};
use crate::output::remark;

/// How often the workflow file and the requests are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Most steps that are taken without looking at anything else.
const MAX_ROUNDS: usize = 10_000;
/// Most effects whose ends are taken between two decisions.
const MAX_DONE: usize = 256;

/// An effect that has ended.
type Joined = Result<(tokio::task::Id, Finished), tokio::task::JoinError>;

/// Makes a context for a workflow that was loaded again.
pub(super) type Rebuild = Box<dyn Fn(super::source::Loaded, &Context) -> Context + Send>;

pub(super) struct Driver {
    pub(super) source: Source,
    pub(super) context: Context,
    pub(super) state: OrchestratorState,
    pub(super) log: RecordLog,
    pub(super) shown: Shown,
    /// Makes the parts of a context that a new workflow needs.
    pub(super) rebuild: Rebuild,
    /// Questions of the HTTP server.
    pub(super) questions: mpsc::Receiver<Ask>,
    /// Ends the servers.
    pub(super) _serving: DropGuard,
    pub(super) counts: Counts,
    pub(super) until_idle: bool,
    /// Factor of all delays, for tests.
    pub(super) retry_scale: f64,
    pub(super) work: Work,
}

/// Work under way.
pub(super) struct Work {
    snapshot: Option<TrackerSnapshot>,
    pulls: Pulls,
    looking: bool,
    next_look: Timestamp,
    effects: JoinSet<Finished>,
    owners: HashMap<tokio::task::Id, IssueId>,
    under_way: BTreeMap<IssueId, Running>,
    live: BTreeMap<IssueId, LiveSession>,
    polling: bool,
    next_poll: Timestamp,
    /// When something was last written down.
    noted: Timestamp,
    version: Version,
    /// Error of the last read of the tracker or of pull requests.
    trouble: Option<String>,
}

/// Why a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopEnd {
    /// It was asked to, or there is nothing left to do.
    Asked,
    /// Everything was told to stop.
    StopAll,
}

struct Running {
    handle: AbortHandle,
    aborted: bool,
    /// Whether a workspace is removed. That goes on to its end, whatever happens to the issue.
    is_removal: bool,
}

enum Finished {
    Effect(Box<Done>),
    Polled(Result<TrackerSnapshot, TrackerError>),
    Looked(Looked),
}

/// Pull requests that were read, and the first error.
struct Looked {
    views: Vec<(IssueId, PullView)>,
    error: Option<TrackerError>,
}

impl Work {
    pub(super) fn new(version: Version) -> Self {
        Self {
            snapshot: None,
            pulls: Pulls::default(),
            looking: false,
            next_look: Timestamp::UNIX_EPOCH,
            effects: JoinSet::new(),
            owners: HashMap::new(),
            under_way: BTreeMap::new(),
            live: BTreeMap::new(),
            polling: false,
            next_poll: Timestamp::UNIX_EPOCH,
            noted: Timestamp::UNIX_EPOCH,
            version,
            trouble: None,
        }
    }
}

impl Driver {
    /// Works until it is asked to end, or until there is nothing to do if that was asked for.
    pub(super) async fn run(mut self, asked: impl Future<Output = ()>) -> Result<LoopEnd> {
        tokio::pin!(asked);
        let hub = self.context.hub.clone();
        let stopped = hub.scheduler().stopped();
        tokio::pin!(stopped);
        self.note(IssueFact::Resumed)?;
        self.withdraw_strangers();
        loop {
            self.take_requests()?;
            let begun = Instant::now();
            self.advance()?;
            self.counts.ticks.add(begun.elapsed());
            self.log.compact(&self.state, Timestamp::now())?;
            if self.until_idle && self.is_idle() {
                return Ok(LoopEnd::Asked);
            }
            self.poll_if_due();
            self.look_if_due();
            let wait = self.wait();
            tokio::select! {
                Some(done) = self.work.effects.join_next_with_id() => self.done_with_others(done)?,
                Some(ask) = self.questions.recv() => self.answer(ask)?,
                () = tokio::time::sleep(wait) => self.reload_if_changed(),
                () = &mut stopped => return Ok(LoopEnd::StopAll),
                () = &mut asked => return Ok(LoopEnd::Asked),
            }
        }
    }

    fn wait(&self) -> Duration {
        let now = Timestamp::now();
        let until = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default();
        let poll = (!self.work.polling).then(|| until(self.work.next_poll));
        let look = (!self.work.looking && self.context.forge.is_some()).then(|| until(self.work.next_look));
        let look = look.filter(|left| !left.is_zero());
        let retry = next_wake(&self.state).map(until).filter(|left| !left.is_zero());
        [poll, look, retry].into_iter().flatten().fold(LOOK_EVERY, Duration::min)
    }

    fn is_idle(&self) -> bool {
        let parked = |phase: &Phase| matches!(phase, Phase::Parked { .. });
        let work = &self.work;
        work.effects.is_empty()
            && self.state.claims.values().all(|claim| parked(&claim.phase))
            && work.snapshot.as_ref().is_some_and(|snapshot| snapshot.asked > work.noted)
    }

    /// Takes steps until only effects are waited for.
    fn advance(&mut self) -> Result<()> {
        for _ in 0..MAX_ROUNDS {
            let busy = Busy { issues: self.work.under_way.keys().cloned().collect(), draining: false };
            let config = &self.context.workflow.config;
            let seen = Seeing { snapshot: self.work.snapshot.as_ref(), pulls: &self.work.pulls };
            let begun = Instant::now();
            let steps = plan(config, seen, &self.state, &busy, Timestamp::now());
            self.counts.plans.add(begun.elapsed());
            if steps.is_empty() {
                return Ok(());
            }
            let (mut facts, mut effects) = (Vec::new(), Vec::new());
            for step in steps {
                match step {
                    PlanStep::Note(fact) => facts.push(fact),
                    PlanStep::Do(effect) => effects.push(effect),
                }
            }
            self.note_all(facts)?;
            effects.into_iter().for_each(|effect| self.start(effect));
        }
        Ok(())
    }

    /// Writes a fact down, then lets it have its consequences.
    fn note(&mut self, fact: IssueFact) -> Result<()> {
        self.note_all(vec![fact])
    }

    /// Writes facts down together, then lets each have its consequences.
    fn note_all(&mut self, facts: Vec<IssueFact>) -> Result<()> {
        if facts.is_empty() {
            return Ok(());
        }
        let now = Timestamp::now();
        // Times have milliseconds in the log; what is decided here must be what is read there.
        let at = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
        let records: Vec<OrchestratorRecord> = (self.state.next_seq..)
            .zip(facts)
            .map(|(seq, fact)| OrchestratorRecord { seq, at, fact: self.scaled(fact, now) })
            .collect();
        self.log.append(&records)?;
        self.work.noted = now;
        records.iter().for_each(|record| self.apply(record));
        Ok(())
    }

    fn apply(&mut self, record: &OrchestratorRecord) {
        self.state.apply(record);
        match &record.fact {
            IssueFact::SessionEnded { issue, .. }
            | IssueFact::Requested { issue, request: PersonRequest::Stop | PersonRequest::Park, .. } => {
                let running = self.work.under_way.get_mut(issue);
                if let Some(running) = running.filter(|running| !running.is_removal) {
                    running.handle.abort();
                    running.aborted = true;
                }
            }
            IssueFact::Released { issue, .. }
            | IssueFact::RivalDone { issue, .. }
            | IssueFact::Parked { issue, .. } => self.withdraw(issue),
            _ => {}
        }
        self.shown.record(record, &self.state);
    }

    fn scaled(&self, fact: IssueFact, now: Timestamp) -> IssueFact {
        match fact {
            IssueFact::RetryAt { issue, due, cause, error } => {
                let delay = due.duration_since(now).as_secs_f64() * self.retry_scale;
                let delay = SignedDuration::try_from_secs_f64(delay).unwrap_or_default();
                IssueFact::RetryAt { issue, due: now + delay, cause, error }
            }
            other => other,
        }
    }

    /// Removes the work on an issue from the queue, where it waits for a retry.
    fn withdraw(&self, issue: &IssueId) {
        let key = super::source::hash(&issue.0);
        let id = format!("issue/{}/{key}", self.context.key);
        self.context.hub.scheduler().withdraw(|item| item.id.0 == id);
    }

    /// Removes work from the queue that no claim stands for: its process was killed before it could.
    fn withdraw_strangers(&self) {
        let prefix = format!("issue/{}/", self.context.key);
        let mut ours: Vec<String> = Vec::new();
        for claim in self.state.claims.values().chain(self.state.rivals.values()) {
            if !matches!(claim.phase, Phase::Parked { .. } | Phase::Done { .. }) {
                ours.push(item_id(&self.context.key, claim).0);
            }
        }
        self.context
            .hub
            .scheduler()
            .withdraw(|item| item.id.0.starts_with(&prefix) && !ours.contains(&item.id.0));
    }

    fn start(&mut self, effect: IssueEffect) {
        let issue = effect.issue().clone();
        if self.work.under_way.contains_key(&issue) {
            return;
        }
        let context = self.context.clone();
        let live = self.work.live.remove(&issue);
        let is_removal = matches!(effect, IssueEffect::RemoveWorkspace { .. });
        let handle = match (effect, self.state.work(&issue).cloned()) {
            (IssueEffect::RemoveWorkspace { issue }, _) => {
                let Some(place) = self.state.workspaces.get(&issue).cloned() else { return };
                self.spawn(async move { context.remove(issue, &place).await })
            }
            (_, None) => return,
            (IssueEffect::Write { write, .. }, Some(claim)) => {
                // A write needs no session; it waits for the next step.
                if let Some(live) = live {
                    self.work.live.insert(issue.clone(), live);
                }
                self.spawn(async move { context.write(&claim, write).await })
            }
            (IssueEffect::Open { .. }, Some(claim)) => self.spawn(async move { context.open(&claim).await }),
            (IssueEffect::Turn { .. }, Some(claim)) => {
                self.spawn(async move { context.turn(&claim, live).await })
            }
            (IssueEffect::Check { .. }, Some(claim)) => {
                self.spawn(async move { context.check(&claim, live).await })
            }
            (IssueEffect::Close { .. }, Some(claim)) => {
                self.spawn(async move { context.close(&claim, live).await })
            }
            (IssueEffect::Publish { .. }, Some(claim)) => {
                self.spawn(async move { context.publish(&claim).await })
            }
            (IssueEffect::Measure { .. }, Some(claim)) => {
                self.spawn(async move { context.measure(&claim).await })
            }
            (IssueEffect::Promote { candidate, .. }, Some(claim)) => {
                let mut rivals = self.state.rivals_of(&issue).into_iter();
                let winner = rivals.find(|rival| number_of(rival) == candidate).cloned();
                self.spawn(async move { context.promote(&claim, candidate, winner.as_ref()).await })
            }
            (IssueEffect::Answer { remark, .. }, Some(claim)) => {
                self.spawn(async move { context.answer(&claim, remark).await })
            }
            (IssueEffect::Merge { head, .. }, Some(claim)) => {
                self.spawn(async move { context.merge(&claim, head).await })
            }
        };
        self.work.owners.insert(handle.id(), issue.clone());
        self.work.under_way.insert(issue, Running { handle, aborted: false, is_removal });
    }

    fn spawn(&mut self, effect: impl Future<Output = Done> + Send + 'static) -> AbortHandle {
        self.work.effects.spawn(async move { Finished::Effect(Box::new(effect.await)) })
    }

    /// Takes what has ended meanwhile too: a decision looks at every issue, and one is enough for all of them.
    fn done_with_others(&mut self, first: Joined) -> Result<()> {
        let mut next = Some(first);
        for _ in 0..MAX_DONE {
            let Some(done) = next.take() else { break };
            self.done(done)?;
            next = self.work.effects.try_join_next_with_id();
        }
        match next {
            Some(done) => self.done(done),
            None => Ok(()),
        }
    }

    fn done(&mut self, done: Joined) -> Result<()> {
        let id = match &done {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let owner = self.work.owners.remove(&id);
        let aborted = owner
            .as_ref()
            .and_then(|issue| self.work.under_way.remove(issue))
            .is_some_and(|running| running.aborted);
        match done {
            Ok((_, Finished::Polled(polled))) => self.polled(polled),
            Ok((_, Finished::Looked(looked))) => self.looked(looked),
            Ok((_, Finished::Effect(done))) => {
                let done = *done;
                if let (Some(issue), Some(live)) = (owner, done.live) {
                    self.work.live.insert(issue, live);
                }
                // The facts of an effect that was stopped meanwhile come too late.
                if aborted {
                    return Ok(());
                }
                return self.note_all(done.facts);
            }
            Err(error) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
        Ok(())
    }

    // ---- the tracker ----

    fn poll_if_due(&mut self) {
        let now = Timestamp::now();
        let is_stale = self.work.snapshot.as_ref().is_none_or(|snapshot| snapshot.asked <= self.work.noted);
        let wanted = self.until_idle && self.work.effects.is_empty() && is_stale;
        if self.work.polling || (now < self.work.next_poll && !wanted) {
            return;
        }
        self.work.polling = true;
        let interval = SignedDuration::try_from(self.context.workflow.config.poll_interval);
        self.work.next_poll = now + interval.unwrap_or(SignedDuration::from_secs(30));
        let (tracker, ids) = (Arc::clone(&self.context.tracker), watched(&self.state));
        let states = self.context.workflow.config.tracker.active_states.clone();
        self.work.effects.spawn(async move {
            let read = async {
                let list: Vec<IssueId> = ids.iter().cloned().collect();
                let candidates = tracker.by_states(&states).await?;
                let found = tracker.by_ids(&list).await?;
                let watched = found.into_iter().map(|issue| (issue.id.clone(), issue)).collect();
                Ok(TrackerSnapshot { asked: now, candidates, asked_for: ids, watched })
            };
            Finished::Polled(read.await)
        });
    }

    fn polled(&mut self, polled: Result<TrackerSnapshot, TrackerError>) {
        self.work.polling = false;
        self.counts.polls += 1;
        match polled {
            Ok(snapshot) => (self.work.snapshot, self.work.trouble) = (Some(snapshot), None),
            Err(error) => {
                self.counts.failed_polls += 1;
                let told = format!("the tracker cannot be read: {error} ({})", error.kind.as_str());
                remark(&told);
                self.work.trouble = Some(told);
                if let Some(wait) = error.retry_after.and_then(|wait| SignedDuration::try_from(wait).ok()) {
                    self.work.next_poll = self.work.next_poll.max(Timestamp::now() + wait);
                }
            }
        }
    }

    // ---- pull requests ----

    /// Reads the pull requests that claims wait for, one after the other.
    fn look_if_due(&mut self) {
        let (now, config) = (Timestamp::now(), &self.context.workflow.config.pulls);
        let Some(forge) = self.context.forge.clone() else { return };
        if self.work.looking || now < self.work.next_look {
            return;
        }
        let pulls = watched_pulls(&self.state);
        self.work.pulls.0.retain(|issue, _| pulls.iter().any(|(known, _)| known == issue));
        if pulls.is_empty() {
            return;
        }
        let interval =
            SignedDuration::try_from(config.poll_interval).unwrap_or(SignedDuration::from_secs(120));
        (self.work.looking, self.work.next_look) = (true, now + interval);
        let log_lines = if config.ci.enabled { config.ci.max_log_lines } else { 0 };
        self.work.effects.spawn(async move {
            let mut looked = Looked { views: Vec::new(), error: None };
            for (issue, number) in pulls {
                let asked = Timestamp::now();
                match forge.look(number, log_lines).await {
                    Ok(pull) => looked.views.push((issue, PullView { asked, pull })),
                    Err(error) => {
                        let is_limit = error.retry_after.is_some();
                        looked.error.get_or_insert(error);
                        if is_limit {
                            break;
                        }
                    }
                }
            }
            Finished::Looked(looked)
        });
    }

    fn looked(&mut self, looked: Looked) {
        self.work.looking = false;
        self.counts.looks += 1;
        self.work.pulls.0.extend(looked.views);
        if let Some(error) = looked.error {
            self.counts.failed_looks += 1;
            let told = format!("a pull request cannot be read: {error} ({})", error.kind.as_str());
            remark(&told);
            self.work.trouble = Some(told);
            if let Some(wait) = error.retry_after.and_then(|wait| SignedDuration::try_from(wait).ok()) {
                self.work.next_look = self.work.next_look.max(Timestamp::now() + wait);
            }
        }
    }

    // ---- people ----

    fn answer(&mut self, ask: Ask) -> Result<()> {
        // A client that went away needs no answer.
        match ask {
            Ask::State(reply) => drop(reply.send(api::state(&self.state, Timestamp::now()))),
            Ask::Issue(name, reply) => drop(reply.send(api::issue(&self.state, &name))),
            Ask::Metrics(reply) => {
                let config = &self.context.workflow.config;
                drop(reply.send(api::metrics(config, &self.state, self.counts)));
            }
            Ask::Refresh(reply) => {
                let now = Timestamp::now();
                let _ = reply.send(self.work.polling || self.work.next_poll <= now);
                self.hurry();
            }
            Ask::Webhook => {
                self.counts.webhooks += 1;
                self.hurry();
            }
            Ask::Board(limit, reply) => drop(reply.send(self.sight().board(limit))),
            Ask::Details(name, reply) => drop(reply.send(self.sight().find(&name))),
            Ask::Person(fact, reply) => {
                self.note(fact)?;
                let _ = reply.send(());
            }
        }
        Ok(())
    }

    fn sight(&self) -> Sight<'_> {
        Sight {
            context: &self.context,
            state: &self.state,
            snapshot: self.work.snapshot.as_ref(),
            pulls: &self.work.pulls,
            trouble: self.work.trouble.as_deref(),
        }
    }

    /// Reads tracker and pull requests as soon as possible.
    fn hurry(&mut self) {
        let now = Timestamp::now();
        (self.work.next_poll, self.work.next_look) = (now, now);
    }

    fn take_requests(&mut self) -> Result<()> {
        let directory = self.source.records();
        for (path, fact) in log::take_requests(&directory) {
            let known = matches!(&fact, IssueFact::Requested { id, .. } if self.state.requests.contains(id));
            if !known {
                self.note(fact)?;
            }
            remove(path);
        }
        Ok(())
    }

    /// Takes over a workflow file that was changed. One with errors changes nothing.
    fn reload_if_changed(&mut self) {
        let version = self.source.version();
        if version == self.work.version {
            return;
        }
        self.work.version = version;
        match self.source.load() {
            Ok(loaded) => {
                loaded.warnings.iter().for_each(|warning| remark(&warning.line(&self.source.name())));
                self.context = (self.rebuild)(loaded, &self.context);
                self.work.next_poll = Timestamp::now();
                self.shown.reloaded();
            }
            Err(report) => {
                let problems: Vec<String> =
                    report.all().map(|problem| problem.line(&self.source.name())).collect();
                problems.iter().for_each(|problem| remark(problem));
                remark("the workflow is invalid; the last valid one stays in use");
                self.shown.refused(&problems);
            }
        }
    }
}

fn remove(path: PathBuf) {
    // A request that stays is known by its id.
    let _ = std::fs::remove_file(path);
}
