//! Index of the items that wait, so that a decision looks at few of them.
//!
//! Items that compete for the same slots are a lane, in the order in which they go. A lane is behind one gate: the limit or
//! the account that last held it up. A gate is looked at again only after a slot or an account behind it has become free, and
//! then from its best lane on. So a decision costs a few steps in ordered sets, however many items wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;

use crate::budget::BudgetScope;
use crate::item::{ItemId, WorkItem};
use crate::limits::{Limits, Scope};

/// Place of an item in its lane: by priority, then age.
pub(crate) type Place = (Reverse<i32>, Timestamp, ItemId);

/// Place of a project: the one with the smaller share of the slots goes first, then the one that was served less.
type Rank = (u64, u64);

/// Place of a project in the queue of a gate.
type Turn = (Rank, Place, Arc<str>);

/// Items that differ in nothing that a decision depends on, except their order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LaneKey {
    pub(crate) project: Arc<str>,
    pub(crate) account: String,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) budgets: Vec<BudgetScope>,
}

impl LaneKey {
    pub(crate) fn of(item: &WorkItem, limits: &Limits) -> Self {
        Self {
            project: Arc::from(item.project.as_str()),
            account: item.account.clone(),
            scopes: limits.scopes(item),
            budgets: limits.budgets.scopes(item),
        }
    }
}

pub(crate) fn place(item: &WorkItem) -> Place {
    (Reverse(item.priority), item.enqueued, item.id.clone())
}

/// Reason why the first item of a lane cannot start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Gate {
    /// No known reason.
    Open,
    Scope(Scope),
    Account(String),
    Budget(BudgetScope),
}

#[derive(Debug)]
struct Lane {
    items: BTreeSet<Place>,
    gate: Gate,
}

/// Lanes of one project behind one gate.
#[derive(Debug, Default)]
struct GateLanes {
    /// Key of the project in the gate's queue.
    key: Option<(Rank, Place)>,
    lanes: BTreeSet<(Place, Arc<LaneKey>)>,
}

#[derive(Debug, Default)]
struct Project {
    running: u64,
    pass: u64,
    gates: BTreeMap<Gate, GateLanes>,
}

/// Scale of shares and of virtual time, so that weights divide without loss.
pub(crate) const UNIT: u64 = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Index {
    running: u32,
    used: HashMap<Scope, u32>,
    /// Items that have reserved a part of each budget.
    reserved: HashMap<BudgetScope, u32>,
    lanes: HashMap<Arc<LaneKey>, Lane>,
    projects: HashMap<Arc<str>, Project>,
    gates: HashMap<Gate, BTreeSet<Turn>>,
    /// Gates behind which a lane may have become free.
    woken: BTreeSet<Gate>,
    delayed: BTreeSet<(Timestamp, ItemId)>,
    /// Steps in ordered sets that decisions took, for tests.
    pub(crate) steps: u64,
}

impl Index {
    pub(crate) fn running(&self) -> u32 {
        self.running
    }

    pub(crate) fn used(&self, scope: &Scope) -> u32 {
        self.used.get(scope).copied().unwrap_or_default()
    }

    /// Number of items that have reserved a part of a budget.
    pub(crate) fn reserved(&self, scope: &BudgetScope) -> u32 {
        self.reserved.get(scope).copied().unwrap_or_default()
    }

    pub(crate) fn reserved_scopes(&self) -> impl Iterator<Item = &BudgetScope> {
        self.reserved.keys()
    }

    /// Whether a budget that begins anew every day holds work up.
    pub(crate) fn waits_for_a_day(&self) -> bool {
        self.gates.keys().any(|gate| matches!(gate, Gate::Budget(scope) if scope.kind.is_daily()))
    }

    /// Looks at all budgets again.
    pub(crate) fn wake_budgets(&mut self) {
        let gates: Vec<Gate> =
            self.gates.keys().filter(|gate| matches!(gate, Gate::Budget(_))).cloned().collect();
        self.woken.extend(gates);
    }

    pub(crate) fn used_scopes(&self) -> impl Iterator<Item = (&Scope, u32)> {
        self.used.iter().map(|(scope, used)| (scope, *used))
    }

    /// The item that goes before this one in its lane.
    pub(crate) fn before(&self, key: &LaneKey, place: &Place) -> Option<&ItemId> {
        self.lanes.get(key)?.items.range(..place).next_back().map(|(_, _, id)| id)
    }

    /// Lanes with their first items.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (&LaneKey, &Place)> {
        self.lanes.iter().filter_map(|(key, lane)| Some((&**key, lane.items.first()?)))
    }

    // ---- items ----

    pub(crate) fn delay(&mut self, due: Timestamp, id: &ItemId) {
        self.delayed.insert((due, id.clone()));
    }

    pub(crate) fn undelay(&mut self, due: Timestamp, id: &ItemId) -> bool {
        self.delayed.remove(&(due, id.clone()))
    }

    /// The next item whose delay has passed, which is delayed no longer.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Option<ItemId> {
        let first = self.delayed.first().filter(|(due, _)| *due <= now)?.clone();
        self.delayed.remove(&first);
        self.steps += 1;
        Some(first.1)
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.delayed.first().map(|(due, _)| *due)
    }

    /// `pass` is the virtual time of the project.
    pub(crate) fn insert(&mut self, key: LaneKey, place: Place, pass: u64, limits: &Limits) {
        self.projects.entry(Arc::clone(&key.project)).or_default().pass = pass;
        let key = match self.lanes.get_key_value(&key) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::new(key),
        };
        let head = self.head(&key);
        let lane = self
            .lanes
            .entry(Arc::clone(&key))
            .or_insert_with(|| Lane { items: BTreeSet::new(), gate: Gate::Open });
        let gate = lane.gate.clone();
        lane.items.insert(place);
        self.moved_head(&key, &gate, head, limits);
    }

    pub(crate) fn remove(&mut self, key: &LaneKey, place: &Place, limits: &Limits) {
        let Some((key, _)) = self.lanes.get_key_value(key) else { return };
        let key = Arc::clone(key);
        let head = self.head(&key);
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        let gate = lane.gate.clone();
        lane.items.remove(place);
        let empty = lane.items.is_empty();
        self.moved_head(&key, &gate, head, limits);
        if empty {
            self.lanes.remove(&key);
            self.forget(&key.project);
        }
    }

    fn head(&self, key: &LaneKey) -> Option<Place> {
        self.lanes.get(key).and_then(|lane| lane.items.first()).cloned()
    }

    /// Puts a lane at the place of its new first item.
    fn moved_head(&mut self, key: &Arc<LaneKey>, gate: &Gate, before: Option<Place>, limits: &Limits) {
        let after = self.head(key);
        if before == after {
            return;
        }
        let project = self.projects.entry(Arc::clone(&key.project)).or_default();
        let behind = project.gates.entry(gate.clone()).or_default();
        if let Some(before) = before {
            behind.lanes.remove(&(before, Arc::clone(key)));
        }
        if let Some(after) = after {
            behind.lanes.insert((after, Arc::clone(key)));
            if *gate == Gate::Open {
                self.woken.insert(Gate::Open);
            }
        }
        self.rekey(&key.project, gate, limits);
    }

    // ---- slots ----

    /// Takes a slot in each scope. `pass` is the project's virtual time after that.
    pub(crate) fn take(&mut self, key: &LaneKey, pass: u64, limits: &Limits) {
        self.running += 1;
        for scope in &key.scopes {
            *self.used.entry(scope.clone()).or_default() += 1;
        }
        for budget in &key.budgets {
            *self.reserved.entry(budget.clone()).or_default() += 1;
        }
        let project = self.projects.entry(Arc::clone(&key.project)).or_default();
        project.running += 1;
        project.pass = pass;
        self.rerank(&key.project, limits);
    }

    pub(crate) fn release(&mut self, key: &LaneKey, limits: &Limits) {
        self.running = self.running.saturating_sub(1);
        for scope in &key.scopes {
            if let Some(used) = self.used.get_mut(scope) {
                *used = used.saturating_sub(1);
                if *used == 0 {
                    self.used.remove(scope);
                }
            }
            self.wake(Gate::Scope(scope.clone()));
        }
        for budget in &key.budgets {
            if let Some(reserved) = self.reserved.get_mut(budget) {
                *reserved = reserved.saturating_sub(1);
                if *reserved == 0 {
                    self.reserved.remove(budget);
                }
            }
            self.wake(Gate::Budget(budget.clone()));
        }
        if let Some(project) = self.projects.get_mut(&key.project) {
            project.running = project.running.saturating_sub(1);
        }
        self.rerank(&key.project, limits);
        self.forget(&key.project);
    }

    pub(crate) fn wake(&mut self, gate: Gate) {
        if self.gates.contains_key(&gate) {
            self.woken.insert(gate);
        }
    }

    // ---- decisions ----

    /// The best lane behind the gates that may have become free, with the first item of it. `shut` says which gates are not.
    pub(crate) fn best(&mut self, shut: impl Fn(&Index, &Gate) -> bool) -> Option<(Arc<LaneKey>, ItemId)> {
        let woken: Vec<Gate> = self.woken.iter().cloned().collect();
        let mut best: Option<(&Turn, &Gate)> = None;
        let mut closed = Vec::new();
        for gate in &woken {
            self.steps += 1;
            match self.gates.get(gate).and_then(|queue| queue.first()) {
                Some(first) if !shut(self, gate) => {
                    if best.is_none_or(|(other, _)| first < other) {
                        best = Some((first, gate));
                    }
                }
                _ => closed.push(gate.clone()),
            }
        }
        let found = best.and_then(|((_, _, project), gate)| {
            let (place, key) = self.projects.get(project)?.gates.get(gate)?.lanes.first()?;
            Some((Arc::clone(key), place.2.clone()))
        });
        for gate in closed {
            self.woken.remove(&gate);
        }
        found
    }

    /// Puts a lane behind another gate.
    pub(crate) fn hold(&mut self, key: &Arc<LaneKey>, gate: Gate, limits: &Limits) {
        self.steps += 1;
        let Some(lane) = self.lanes.get_mut(key) else { return };
        let before = std::mem::replace(&mut lane.gate, gate.clone());
        let (Some(head), Some(project)) = (lane.items.first().cloned(), self.projects.get_mut(&key.project))
        else {
            return;
        };
        if let Some(behind) = project.gates.get_mut(&before) {
            behind.lanes.remove(&(head.clone(), Arc::clone(key)));
        }
        project.gates.entry(gate.clone()).or_default().lanes.insert((head, Arc::clone(key)));
        self.rekey(&key.project, &before, limits);
        self.rekey(&key.project, &gate, limits);
    }

    // ---- order of projects ----

    fn rerank(&mut self, project: &Arc<str>, limits: &Limits) {
        let gates: Vec<Gate> = self
            .projects
            .get(project)
            .map(|project| project.gates.keys().cloned().collect())
            .unwrap_or_default();
        for gate in gates {
            self.rekey(project, &gate, limits);
        }
    }

    /// Puts a project at its place in the queue of a gate.
    fn rekey(&mut self, name: &Arc<str>, gate: &Gate, limits: &Limits) {
        self.steps += 1;
        let Some(project) = self.projects.get_mut(name) else { return };
        let rank = (project.running * UNIT / limits.weight(name), project.pass);
        let Some(behind) = project.gates.get_mut(gate) else { return };
        let key = behind.lanes.first().map(|(place, _)| (rank, place.clone()));
        let before = std::mem::replace(&mut behind.key, key.clone());
        if key.is_none() {
            project.gates.remove(gate);
        }
        if before == key {
            return;
        }
        let queue = self.gates.entry(gate.clone()).or_default();
        if let Some((rank, place)) = before {
            queue.remove(&(rank, place, Arc::clone(name)));
        }
        match key {
            Some((rank, place)) => drop(queue.insert((rank, place, Arc::clone(name)))),
            None if queue.is_empty() => {
                self.gates.remove(gate);
                self.woken.remove(gate);
            }
            None => {}
        }
    }

    /// Removes a project that neither waits nor runs.
    fn forget(&mut self, name: &Arc<str>) {
        if self.projects.get(name).is_some_and(|project| project.running == 0 && project.gates.is_empty()) {
            self.projects.remove(name);
        }
    }
}
