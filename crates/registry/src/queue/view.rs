//! The queue as command line, API and pages show it.

use std::cmp::Reverse;

use hangar_scheduler::limits::ScopeKind;
use hangar_scheduler::queue::Queue;
use hangar_scheduler::state::{ItemStatus, QueueEntry, SchedulerMode};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::hub::iso;

/// The queue: what runs, what waits and why.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Queue")]
pub struct QueueView {
    pub mode: QueueMode,
    /// Slots in all.
    pub slots: SlotsView,
    /// Slots of each limit that is in use.
    pub limits: Vec<LimitView>,
    /// Provider accounts that are held.
    pub held: Vec<HeldAccount>,
    /// Budgets of work that runs or waits, and of today.
    pub budgets: Vec<BudgetShown>,
    pub running: Vec<QueueItem>,
    /// Number of items that wait.
    pub waiting_count: usize,
    /// The items that wait, in the order of age; the oldest of them where fewer were asked for.
    pub waiting: Vec<QueueItem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueMode {
    Open,
    Paused,
    /// Nothing new is started; the work that runs is finished.
    Draining,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(rename = "QueueSlots")]
pub struct SlotsView {
    pub used: u32,
    pub limit: u32,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "QueueLimit")]
pub struct LimitView {
    /// `runtime`, `agent`, `provider`, `host`, `project`, `job` or `label`.
    pub kind: String,
    pub name: String,
    pub used: u32,
    pub limit: u32,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HeldAccount {
    pub account: String,
    /// When one item tries it again.
    pub until: String,
    pub reason: String,
}

/// A budget: what was spent of it, and what running work has reserved.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Budget")]
pub struct BudgetShown {
    /// `run`, `agent`, `project` or `day`.
    pub kind: String,
    pub name: String,
    pub limit_usd: f64,
    pub spent_usd: f64,
    pub reserved_usd: f64,
    /// Calls whose cost is not known.
    pub unpriced_calls: u64,
    /// Why nothing more is started, if nothing is.
    pub held: Option<String>,
}

/// A piece of work in the queue.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueItem {
    pub id: String,
    pub project: String,
    pub runtime: String,
    /// The configured agent, if one was chosen.
    pub agent: Option<String>,
    pub account: String,
    pub host: String,
    pub job: Option<String>,
    pub run: Option<String>,
    pub labels: Vec<String>,
    pub priority: i32,
    pub attempt: u32,
    pub enqueued_at: String,
    /// When it got its slot.
    pub started_at: Option<String>,
    /// Why it waits.
    pub reason: Option<String>,
    /// A remark on work that runs, such as that it makes no progress.
    pub note: Option<String>,
}

impl QueueView {
    /// The queue with at most `most` of the items that wait.
    pub(super) fn of(queue: &Queue, now: Timestamp, zone: &TimeZone, most: usize) -> Self {
        let state = queue.state();
        let reasons = queue.reasons(now, zone);
        let item = |entry: &QueueEntry| {
            let item = &entry.item;
            let (started_at, note) = match &entry.status {
                ItemStatus::Running { since, remark, .. } => (Some(iso(*since)), remark.clone()),
                ItemStatus::Waiting { .. } | ItemStatus::Parked { .. } => (None, None),
            };
            QueueItem {
                id: item.id.0.clone(),
                project: item.project.clone(),
                runtime: item.runtime.clone(),
                agent: item.agent.clone(),
                account: item.account.clone(),
                host: item.host.clone(),
                job: item.job.clone(),
                run: item.run.clone(),
                labels: item.labels.iter().cloned().collect(),
                priority: item.priority,
                attempt: item.attempt,
                enqueued_at: iso(item.enqueued),
                started_at,
                reason: reasons.of(&item.id),
                note,
            }
        };
        let mut entries: Vec<&QueueEntry> = state.items.values().collect();
        entries.sort_by_key(|entry| (Reverse(entry.item.priority), entry.item.enqueued, &entry.item.id));
        let (running, waiting): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| matches!(entry.status, ItemStatus::Running { .. }));
        let limits = queue.used().into_iter().map(|(scope, used)| {
            let limit = queue.limits().limit(&scope).unwrap_or_default();
            LimitView { kind: kind(scope.kind).to_owned(), name: scope.name, used, limit }
        });
        let budgets = queue.budgets(now).into_iter().map(|budget| BudgetShown {
            kind: budget.scope.kind.as_str().to_owned(),
            name: budget.scope.name.clone(),
            limit_usd: budget.limit,
            spent_usd: budget.spent,
            reserved_usd: budget.reserved,
            unpriced_calls: budget.unpriced,
            held: (!budget.admits()).then(|| budget.reason()),
        });
        let held = state.breakers.iter().map(|(account, breaker)| HeldAccount {
            account: account.clone(),
            until: iso(breaker.until),
            reason: breaker.failure.kind.words().to_owned(),
        });
        Self {
            mode: match state.mode {
                SchedulerMode::Open => QueueMode::Open,
                SchedulerMode::Paused => QueueMode::Paused,
                SchedulerMode::Draining => QueueMode::Draining,
            },
            slots: SlotsView { used: queue.running(), limit: queue.limits().global },
            limits: limits.collect(),
            held: held.collect(),
            budgets: budgets.collect(),
            running: running.into_iter().map(item).collect(),
            waiting_count: waiting.len(),
            waiting: waiting.into_iter().take(most).map(item).collect(),
        }
    }
}

fn kind(kind: ScopeKind) -> &'static str {
    match kind {
        ScopeKind::Runtime => "runtime",
        ScopeKind::Agent => "agent",
        ScopeKind::Provider => "provider",
        ScopeKind::Host => "host",
        ScopeKind::Project => "project",
        ScopeKind::Job => "job",
        ScopeKind::Label => "label",
    }
}
