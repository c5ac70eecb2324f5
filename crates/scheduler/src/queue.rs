//! The queue: a fold over records, and the decisions that follow from it.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::breaker::Breaker;
use crate::budget::{BudgetScope, BudgetState, BudgetView, Day};
use crate::index::{Gate, Index, LaneKey, Place, UNIT, place};
use crate::item::{ItemId, OwnerId, WorkItem};
use crate::limits::{Limits, Scope};
use crate::record::{Outcome, QueueFact, QueueRecord};
use crate::retry::{AttemptFailure, RetryPolicy};
use crate::state::{Delay, ItemStatus, QueueEntry, QueueState, SchedulerMode};

/// An item that gets a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDecision {
    pub item: ItemId,
    /// The account that it tries, if a breaker held that.
    pub probes: Option<String>,
}

impl QueueDecision {
    /// The decision as it is logged. A log that ends between the two lets another item try too; the other way round, none
    /// would.
    pub fn facts(&self) -> Vec<QueueFact> {
        let item = self.item.clone();
        let probe =
            self.probes.clone().map(|account| QueueFact::BreakerHalfOpen { account, item: item.clone() });
        [QueueFact::Granted { item }].into_iter().chain(probe).collect()
    }
}

#[derive(Debug)]
pub struct Queue {
    limits: Limits,
    state: QueueState,
    index: Index,
    /// The day of the last decision, since budgets of a day begin anew with the next.
    day: Option<Day>,
}

impl Queue {
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: QueueState::default(), index: Index::default(), day: None }
    }

    /// Folds records.
    pub fn fold<'a>(limits: Limits, records: impl IntoIterator<Item = &'a QueueRecord>) -> Self {
        let mut queue = Self::new(limits);
        records.into_iter().for_each(|record| queue.apply(record));
        queue
    }

    pub fn state(&self) -> &QueueState {
        &self.state
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Number of items that run, whether they were queued or not.
    pub fn running(&self) -> u32 {
        self.index.running()
    }

    /// Slots taken in each limited scope.
    pub fn used(&self) -> Vec<(Scope, u32)> {
        let mut used: Vec<_> = self.index.used_scopes().map(|(scope, used)| (scope.clone(), used)).collect();
        used.sort();
        used
    }

    pub fn entry(&self, id: &ItemId) -> Option<&QueueEntry> {
        self.state.items.get(id)
    }

    /// Steps that decisions have taken, for tests of their cost.
    pub fn steps(&self) -> u64 {
        self.index.steps
    }

    /// Replaces the limits. Work that runs goes on, also where there are fewer slots now.
    pub fn set_limits(&mut self, limits: Limits) {
        let state = std::mem::take(&mut self.state);
        *self = Self::restored(limits, state);
    }

    fn restored(limits: Limits, state: QueueState) -> Self {
        let mut queue = Self { limits, state, index: Index::default(), day: None };
        let entries: Vec<QueueEntry> = queue.state.items.values().cloned().collect();
        entries.iter().for_each(|entry| queue.indexed(entry));
        queue
    }

    /// The state without what no decision depends on.
    pub fn compacted(&self) -> QueueState {
        let mut state = self.state.clone();
        let at_work: BTreeSet<&str> =
            self.state.items.values().map(|entry| entry.item.project.as_str()).collect();
        // Budgets of runs that have no work are of no use any more; a later figure brings one back.
        let runs: BTreeSet<&str> =
            self.state.items.values().filter_map(|entry| entry.item.run.as_deref()).collect();
        state.budgets.retain(|scope, state| {
            scope.kind.is_daily() || state.raised > 0.0 || runs.contains(scope.name.as_str())
        });
        state.passes.retain(|name, pass| *pass > self.state.virtual_time || at_work.contains(name.as_str()));
        state
    }

    // ---- the fold ----

    pub fn apply(&mut self, record: &QueueRecord) {
        match &record.fact {
            QueueFact::Enqueued { item, owner } => self.enqueued(item, owner),
            QueueFact::Granted { item } => self.granted(item, record.at),
            QueueFact::Counted { item, owner } => {
                self.removed(&item.id);
                let status = ItemStatus::Running { since: record.at, queued: false, remark: None };
                self.put(QueueEntry { item: item.clone(), owner: owner.clone(), status });
            }
            QueueFact::Finished { item, .. } | QueueFact::Withdrawn { item } => {
                self.unprobed(item);
                self.removed(item);
            }
            QueueFact::RetryAt { item, due, failure } => {
                self.unprobed(item);
                let Some(mut entry) = self.removed(item) else { return };
                entry.item.attempt = entry.item.attempt.saturating_add(1);
                let delay = Some(Delay { due: *due, failure: failure.clone() });
                self.put(QueueEntry { status: ItemStatus::Parked { delay }, ..entry });
            }
            QueueFact::Remarked { item, remark } => self.remarked(item, remark),
            QueueFact::Parked { item } => self.parked(item),
            QueueFact::OwnerGone { owner } => {
                let items = self.state.items.values().filter(|entry| entry.owner == *owner);
                let items: Vec<ItemId> = items.map(|entry| entry.item.id.clone()).collect();
                items.iter().for_each(|item| self.parked(item));
            }
            QueueFact::Paused => self.state.mode = SchedulerMode::Paused,
            QueueFact::Drained => self.state.mode = SchedulerMode::Draining,
            QueueFact::Resumed => self.state.mode = SchedulerMode::Open,
            QueueFact::Stopped => self.state.stops += 1,
            QueueFact::Unknown => {}
            QueueFact::BreakerOpened { account, until, failure } => {
                let openings = self.state.breakers.get(account).map_or(0, |breaker| breaker.openings) + 1;
                let breaker = Breaker { failure: failure.clone(), until: *until, openings, probe: None };
                self.state.breakers.insert(account.clone(), breaker);
            }
            QueueFact::BreakerHalfOpen { account, item } => {
                if let Some(breaker) = self.state.breakers.get_mut(account) {
                    breaker.probe = Some(item.clone());
                }
            }
            QueueFact::BreakerClosed { account } => {
                self.state.breakers.remove(account);
                self.index.wake(Gate::Account(account.clone()));
            }
            QueueFact::Spent { budget, day, usd, unpriced } => {
                let state = self.budget_of(budget, *day);
                (state.spent, state.unpriced) = (*usd, *unpriced);
            }
            QueueFact::BudgetRaised { budget, day, usd } => {
                self.budget_of(budget, *day).raised += usd;
                self.index.wake(Gate::Budget(budget.clone()));
            }
            QueueFact::Compacted { state } => {
                let limits = self.limits.clone();
                *self = Self::restored(limits, QueueState::clone(state));
            }
        }
    }

    /// State of a budget on a day. Figures of an earlier day are forgotten.
    fn budget_of(&mut self, scope: &BudgetScope, day: Option<Day>) -> &mut BudgetState {
        let state = self.state.budgets.entry(scope.clone()).or_default();
        if state.day != day {
            *state = BudgetState { day, ..BudgetState::default() };
        }
        state
    }

    fn enqueued(&mut self, item: &WorkItem, owner: &OwnerId) {
        let known = self.removed(&item.id);
        let mut item = item.clone();
        let mut delay = None;
        if let Some(known) = known {
            item.enqueued = known.item.enqueued;
            item.attempt = known.item.attempt.max(item.attempt);
            delay = match known.status {
                ItemStatus::Waiting { delay } | ItemStatus::Parked { delay } => delay,
                ItemStatus::Running { .. } => None,
            };
        }
        self.put(QueueEntry { item, owner: owner.clone(), status: ItemStatus::Waiting { delay } });
    }

    fn granted(&mut self, id: &ItemId, at: Timestamp) {
        let Some(entry) = self.removed(id) else { return };
        let project = &entry.item.project;
        let start = self.pass(project).max(self.state.virtual_time);
        self.state.virtual_time = start;
        self.state.passes.insert(project.clone(), start + UNIT / self.limits.weight(project));
        let status = ItemStatus::Running { since: at, queued: true, remark: None };
        self.put(QueueEntry { status, ..entry });
    }

    /// A remark changes no decision, so the index stays as it is.
    fn remarked(&mut self, id: &ItemId, told: &Option<String>) {
        let status = self.state.items.get_mut(id).map(|entry| &mut entry.status);
        if let Some(ItemStatus::Running { remark, .. }) = status {
            remark.clone_from(told);
        }
    }

    /// Work that was not queued has nothing to come back to.
    fn parked(&mut self, id: &ItemId) {
        self.unprobed(id);
        let Some(entry) = self.removed(id) else { return };
        let delay = match entry.status {
            ItemStatus::Running { queued: false, .. } => return,
            ItemStatus::Running { .. } => None,
            ItemStatus::Waiting { delay } | ItemStatus::Parked { delay } => delay,
        };
        self.put(QueueEntry { status: ItemStatus::Parked { delay }, ..entry });
    }

    /// An item that ends without a word about its account leaves the try to another one.
    fn unprobed(&mut self, id: &ItemId) {
        let Some(entry) = self.state.items.get(id) else { return };
        if let Some(breaker) = self.state.breakers.get_mut(&entry.item.account)
            && breaker.probe.as_ref() == Some(id)
        {
            breaker.probe = None;
        }
    }

    fn put(&mut self, entry: QueueEntry) {
        self.indexed(&entry);
        self.state.items.insert(entry.item.id.clone(), entry);
    }

    fn indexed(&mut self, entry: &QueueEntry) {
        let item = &entry.item;
        match &entry.status {
            ItemStatus::Waiting { delay: Some(delay) } => self.index.delay(delay.due, &item.id),
            ItemStatus::Waiting { delay: None } => self.waits(item),
            ItemStatus::Parked { .. } => {}
            ItemStatus::Running { .. } => {
                self.index.take(&LaneKey::of(item, &self.limits), self.pass(&item.project), &self.limits);
            }
        }
    }

    fn waits(&mut self, item: &WorkItem) {
        let pass = self.pass(&item.project);
        self.index.insert(LaneKey::of(item, &self.limits), place(item), pass, &self.limits);
    }

    fn pass(&self, project: &str) -> u64 {
        self.state.passes.get(project).copied().unwrap_or_default()
    }

    fn removed(&mut self, id: &ItemId) -> Option<QueueEntry> {
        let entry = self.state.items.remove(id)?;
        let delayed = match &entry.status {
            ItemStatus::Waiting { delay: Some(delay) } => self.index.undelay(delay.due, id),
            ItemStatus::Waiting { .. } | ItemStatus::Parked { .. } | ItemStatus::Running { .. } => false,
        };
        match &entry.status {
            ItemStatus::Waiting { .. } if !delayed => {
                self.index.remove(&LaneKey::of(&entry.item, &self.limits), &place(&entry.item), &self.limits);
            }
            ItemStatus::Waiting { .. } | ItemStatus::Parked { .. } => {}
            ItemStatus::Running { .. } => {
                self.index.release(&LaneKey::of(&entry.item, &self.limits), &self.limits);
            }
        }
        Some(entry)
    }

    // ---- decisions ----

    /// The items that get a slot now, as records that have been applied. The caller logs them before it tells anybody.
    pub fn next(&mut self, now: Timestamp) -> Vec<QueueDecision> {
        let mut decisions = Vec::new();
        while let Some(decision) = self.next_decision(now) {
            for fact in decision.facts() {
                self.apply(&QueueRecord { at: now, fact });
            }
            decisions.push(decision);
        }
        decisions
    }

    fn next_decision(&mut self, now: Timestamp) -> Option<QueueDecision> {
        if self.state.mode != SchedulerMode::Open {
            return None;
        }
        while let Some(id) = self.index.take_due(now) {
            if let Some(item) = self.state.items.get(&id).map(|entry| entry.item.clone()) {
                self.waits(&item);
            }
        }
        if !self.limits.budgets.is_empty() {
            let today = self.limits.budgets.day_of(now);
            if self.day.replace(today) != Some(today) {
                self.index.wake_budgets();
            }
        }
        if self.index.running() >= self.limits.global {
            return None;
        }
        for (account, breaker) in &self.state.breakers {
            if breaker.admits_probe(now) {
                self.index.wake(Gate::Account(account.clone()));
            }
        }
        loop {
            let (limits, breakers, budgets) = (&self.limits, &self.state.breakers, &self.state.budgets);
            let (lane, item) = self.index.best(|index, gate| match gate {
                Gate::Open => false,
                Gate::Scope(scope) => is_full(index, limits, scope),
                Gate::Account(account) => {
                    breakers.get(account).is_some_and(|breaker| !breaker.admits_probe(now))
                }
                Gate::Budget(scope) => {
                    let view = limits.budgets.view(scope, budgets.get(scope), index.reserved(scope), now);
                    view.is_some_and(|view| !view.admits())
                }
            })?;
            match self.blocker(&lane, now) {
                Some(gate) => self.index.hold(&lane, gate, &self.limits),
                None => {
                    let probes = self.state.breakers.contains_key(&lane.account);
                    return Some(QueueDecision { item, probes: probes.then(|| lane.account.clone()) });
                }
            }
        }
    }

    pub(crate) fn blocker(&self, lane: &LaneKey, now: Timestamp) -> Option<Gate> {
        if self.state.breakers.get(&lane.account).is_some_and(|breaker| !breaker.admits_probe(now)) {
            return Some(Gate::Account(lane.account.clone()));
        }
        let full = self.full_scope(lane).cloned().map(Gate::Scope);
        full.or_else(|| self.used_up(&lane.budgets, now).map(|view| Gate::Budget(view.scope)))
    }

    /// The first budget that has no room for one more item.
    pub(crate) fn used_up(&self, scopes: &[BudgetScope], now: Timestamp) -> Option<BudgetView> {
        scopes.iter().filter_map(|scope| self.budget(scope, now)).find(|view| !view.admits())
    }

    fn budget(&self, scope: &BudgetScope, now: Timestamp) -> Option<BudgetView> {
        let (state, reserved) = (self.state.budgets.get(scope), self.index.reserved(scope));
        self.limits.budgets.view(scope, state, reserved, now)
    }

    /// All budgets that something was spent of, or that work uses now.
    pub fn budgets(&self, now: Timestamp) -> Vec<BudgetView> {
        let waiting = self.state.items.values().flat_map(|entry| self.limits.budgets.scopes(&entry.item));
        let scopes: BTreeSet<BudgetScope> =
            self.state.budgets.keys().chain(self.index.reserved_scopes()).cloned().chain(waiting).collect();
        let today = self.limits.budgets.day_of(now);
        let is_current = |scope: &BudgetScope| {
            let state = self.state.budgets.get(scope);
            !scope.kind.is_daily() || state.is_none_or(|state| state.day == Some(today))
        };
        scopes.iter().filter(|scope| is_current(scope)).filter_map(|scope| self.budget(scope, now)).collect()
    }

    /// The fact that a person raises a budget now. `None` if there is no such budget.
    pub fn raise(&self, scope: &BudgetScope, usd: f64, now: Timestamp) -> Option<QueueFact> {
        self.limits.budgets.limit(scope)?;
        let day = scope.kind.is_daily().then(|| self.limits.budgets.day_of(now));
        Some(QueueFact::BudgetRaised { budget: scope.clone(), day, usd })
    }

    /// The facts that replace the figures of budgets which have changed.
    pub fn spent(&self, figures: &[QueueFact]) -> Vec<QueueFact> {
        let is_news = |fact: &&QueueFact| match fact {
            QueueFact::Spent { budget, day, usd, unpriced } => {
                let known = self.state.budgets.get(budget).filter(|state| state.day == *day);
                let newer = self.state.budgets.get(budget).is_none_or(|state| state.day <= *day);
                newer && known.is_none_or(|known| (known.spent, known.unpriced) != (*usd, *unpriced))
            }
            _ => false,
        };
        figures.iter().filter(is_news).cloned().collect()
    }

    pub(crate) fn full_scope<'a>(&self, lane: &'a LaneKey) -> Option<&'a Scope> {
        lane.scopes.iter().find(|scope| is_full(&self.index, &self.limits, scope))
    }

    pub(crate) fn lane(&self, item: &WorkItem) -> LaneKey {
        LaneKey::of(item, &self.limits)
    }

    pub(crate) fn used_of(&self, scope: &Scope) -> u32 {
        self.index.used(scope)
    }

    /// The item that goes before this one in its lane.
    pub(crate) fn before(&self, lane: &LaneKey, item: &WorkItem) -> Option<&ItemId> {
        self.index.before(lane, &place(item))
    }

    /// Lanes with their first items, of one project or of all.
    pub(crate) fn heads<'a>(
        &'a self,
        project: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a LaneKey, &'a Place)> {
        self.index.heads().filter(move |(lane, _)| project.is_none_or(|project| *lane.project == *project))
    }

    /// When time alone may make a decision possible: a delay passes, or an account may be tried.
    pub fn next_wake(&self) -> Option<Timestamp> {
        let breakers = self.state.breakers.values().filter(|breaker| breaker.probe.is_none());
        let day = self.index.waits_for_a_day().then(|| self.tomorrow()).flatten();
        breakers.map(|breaker| breaker.until).chain(self.index.next_due()).chain(day).min()
    }

    /// When the day after the last decision begins.
    fn tomorrow(&self) -> Option<Timestamp> {
        let start = self.day?.0.to_zoned(self.limits.budgets.zone.clone()).ok()?;
        self.limits.budgets.tomorrow(start.timestamp())
    }

    // ---- ends of work ----

    /// The facts of an item that has ended well.
    pub fn succeeded(&self, id: &ItemId) -> Vec<QueueFact> {
        let finished = QueueFact::Finished { item: id.clone(), outcome: Outcome::Done };
        self.answered(id).into_iter().chain([finished]).collect()
    }

    /// The fact that the account of an item works, if that was in doubt.
    pub fn answered(&self, id: &ItemId) -> Option<QueueFact> {
        let account = &self.state.items.get(id)?.item.account;
        let tried = self.state.breakers.get(account)?.probe.as_ref() == Some(id);
        tried.then(|| QueueFact::BreakerClosed { account: account.clone() })
    }

    /// The facts of an item that has failed: its retry, if there is one, and the breaker, if others would fail too. `random`
    /// is from 0 to 1.
    pub fn failed(
        &self,
        id: &ItemId,
        failure: &AttemptFailure,
        policy: &RetryPolicy,
        now: Timestamp,
        random: f64,
    ) -> Vec<QueueFact> {
        let Some(entry) = self.state.items.get(id) else { return Vec::new() };
        let (item, account) = (id.clone(), &entry.item.account);
        let breaker = self.state.breakers.get(account);
        let tried = breaker.filter(|breaker| breaker.probe.as_ref() == Some(id));
        let opened = |failure: &AttemptFailure, openings: u32| {
            let until = after(now, policy.hold(failure, openings, random));
            QueueFact::BreakerOpened { account: account.clone(), until, failure: failure.clone() }
        };
        let opened = match (breaker, tried) {
            (None, _) if failure.kind.holds_account() => Some(opened(failure, 1)),
            (_, Some(tried)) if failure.kind.holds_account() => Some(opened(failure, tried.openings + 1)),
            // The account has not shown that it works.
            (_, Some(tried)) => Some(opened(&tried.failure, tried.openings + 1)),
            _ => None,
        };
        let ended = match policy.delay(failure, entry.item.attempt, random) {
            Some(delay) => QueueFact::RetryAt { item, due: after(now, delay), failure: failure.clone() },
            None => QueueFact::Finished { item, outcome: Outcome::Failed { failure: failure.clone() } },
        };
        [ended].into_iter().chain(opened).collect()
    }

    /// The facts of a person who wants the queue to go on: also accounts that were held are tried again.
    pub fn resumed(&self) -> Vec<QueueFact> {
        let accounts = self.state.breakers.keys().cloned();
        let closed = accounts.map(|account| QueueFact::BreakerClosed { account });
        closed.chain([QueueFact::Resumed]).collect()
    }
}

fn is_full(index: &Index, limits: &Limits, scope: &Scope) -> bool {
    limits.limit(scope).is_some_and(|limit| index.used(scope) >= limit)
}

fn after(now: Timestamp, delay: std::time::Duration) -> Timestamp {
    let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
    now.checked_add(delay).unwrap_or(Timestamp::MAX)
}
