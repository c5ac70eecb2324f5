//! Budgets: the money that work may use, by run, agent, project and day.
//!
//! A budget is checked before work is placed: what has been spent, a reservation for each item that runs, and one for the
//! item itself have to fit. Spending is recorded as absolute figures, so a repeated record changes nothing.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::item::WorkItem;
use crate::limits::EACH;

/// Part of a budget that an item reserves where nothing else is configured.
const SHARE: f64 = 0.1;
/// Most that a budget can be raised by in all. A sum beyond all numbers could not be written down.
pub(crate) const MOST_DOLLARS: f64 = 1e9;
/// Sums of money are compared with this tolerance, since they are sums of many fractions.
const CENT_FRACTION: f64 = 1e-9;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BudgetKind {
    Run,
    /// One agent, in a day.
    Agent,
    /// One project, in a day.
    Project,
    /// Everything, in a day.
    Day,
}

impl BudgetKind {
    pub const ALL: &'static [BudgetKind] =
        &[BudgetKind::Run, BudgetKind::Agent, BudgetKind::Project, BudgetKind::Day];

    /// Name in configuration, commands and the API.
    pub fn as_str(self) -> &'static str {
        match self {
            BudgetKind::Run => "run",
            BudgetKind::Agent => "agent",
            BudgetKind::Project => "project",
            BudgetKind::Day => "day",
        }
    }

    /// Whether the budget begins anew every day.
    pub fn is_daily(self) -> bool {
        self != BudgetKind::Run
    }
}

impl std::str::FromStr for BudgetKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = BudgetKind::ALL.iter().find(|kind| kind.as_str() == text);
        found
            .copied()
            .ok_or_else(|| format!("`{text}` is not a budget; there are run, agent, project and day"))
    }
}

/// Work that a budget is for. The name of [`BudgetKind::Day`] is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BudgetScope {
    pub kind: BudgetKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl BudgetScope {
    pub fn new(kind: BudgetKind, name: &str) -> Self {
        Self { kind, name: name.to_owned() }
    }
}

/// The budget as sentences name it.
impl fmt::Display for BudgetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.kind {
            BudgetKind::Run => write!(f, "the budget of run {name}"),
            BudgetKind::Agent => write!(f, "today's budget of agent {name}"),
            BudgetKind::Project => write!(f, "today's budget of project {name}"),
            BudgetKind::Day => write!(f, "today's budget"),
        }
    }
}

/// A day, in logs as `2026-11-18`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Day(pub Date);

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Day {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map(Day).map_err(serde::de::Error::custom)
    }
}

/// Configured budgets, in US dollars.
#[derive(Debug, Clone, PartialEq)]
pub struct Budgets {
    pub run: Option<f64>,
    pub day: Option<f64>,
    /// By name; [`EACH`] stands for each that has no entry.
    pub agents: BTreeMap<String, f64>,
    pub projects: BTreeMap<String, f64>,
    /// Reservation of an item. Default: a tenth of the budget.
    pub reserve: Option<f64>,
    /// Time zone in which a day begins.
    pub zone: TimeZone,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            run: None,
            day: None,
            agents: BTreeMap::new(),
            projects: BTreeMap::new(),
            reserve: None,
            zone: TimeZone::UTC,
        }
    }
}

impl Budgets {
    pub fn is_empty(&self) -> bool {
        self.run.is_none() && self.day.is_none() && self.agents.is_empty() && self.projects.is_empty()
    }

    /// The configured sum of a budget.
    pub fn limit(&self, scope: &BudgetScope) -> Option<f64> {
        let named =
            |table: &BTreeMap<String, f64>| table.get(&scope.name).or_else(|| table.get(EACH)).copied();
        match scope.kind {
            BudgetKind::Run => self.run,
            BudgetKind::Day => self.day,
            BudgetKind::Agent => named(&self.agents),
            BudgetKind::Project => named(&self.projects),
        }
    }

    /// The budgets that an item uses. A named agent has one of its own, apart from that of its runtime.
    pub fn scopes(&self, item: &WorkItem) -> Vec<BudgetScope> {
        let run = item.run.as_deref().map(|run| BudgetScope::new(BudgetKind::Run, run));
        let others = [
            BudgetScope::new(BudgetKind::Agent, item.agent.as_ref().unwrap_or(&item.runtime)),
            BudgetScope::new(BudgetKind::Project, &item.project),
            BudgetScope::new(BudgetKind::Day, ""),
        ];
        run.into_iter().chain(others).filter(|scope| self.limit(scope).is_some()).collect()
    }

    /// The day of a time.
    pub fn day_of(&self, at: Timestamp) -> Day {
        Day(at.to_zoned(self.zone.clone()).date())
    }

    /// When the next day begins.
    pub fn tomorrow(&self, now: Timestamp) -> Option<Timestamp> {
        let next = self.day_of(now).0.tomorrow().ok()?;
        Some(next.to_zoned(self.zone.clone()).ok()?.timestamp())
    }
}

/// State of a budget: what was spent, and by how much a person raised it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetState {
    /// The day of the figures; absent for a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<Day>,
    pub spent: f64,
    #[serde(default)]
    pub raised: f64,
    /// Calls whose cost is not known.
    #[serde(default)]
    pub unpriced: u64,
}

/// A budget at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetView {
    pub scope: BudgetScope,
    /// Configured sum and raises.
    pub limit: f64,
    pub spent: f64,
    pub reserved: f64,
    /// Reservation of one more item.
    pub reserve: f64,
    pub unpriced: u64,
}

impl BudgetView {
    /// Whether one more item fits.
    pub fn admits(&self) -> bool {
        self.spent + self.reserved + self.reserve <= self.limit + CENT_FRACTION
    }

    /// The sentence for work that does not fit.
    pub fn reason(&self) -> String {
        let Self { scope, limit, spent, reserved, reserve, .. } = self;
        let held = if *reserved > 0.0 { format!(", ${reserved:.2} are reserved") } else { String::new() };
        let mut command = format!("hangar budget raise {}", scope.kind.as_str());
        if !scope.name.is_empty() {
            command = format!("{command} {}", scope.name);
        }
        format!(
            "{scope} has no room for ${reserve:.2}: ${spent:.2} of ${limit:.2} are spent{held}; `{command} USD` raises it"
        )
    }
}

impl Budgets {
    /// A budget now. `running` items have reserved a part of it.
    pub fn view(
        &self,
        scope: &BudgetScope,
        state: Option<&BudgetState>,
        running: u32,
        now: Timestamp,
    ) -> Option<BudgetView> {
        let configured = self.limit(scope)?;
        let today = scope.kind.is_daily().then(|| self.day_of(now));
        let state = state.filter(|state| state.day == today).copied().unwrap_or_default();
        let limit = configured + state.raised;
        // A reservation above the whole budget would let nothing begin.
        let reserve = self.reserve.unwrap_or(configured * SHARE).min(limit);
        let (spent, unpriced) = (state.spent, state.unpriced);
        Some(BudgetView {
            scope: scope.clone(),
            limit,
            spent,
            reserved: reserve * f64::from(running),
            reserve,
            unpriced,
        })
    }
}

/// States as a list, since the scope is no string.
pub(crate) mod states {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{BudgetScope, BudgetState};

    #[derive(Serialize, Deserialize)]
    struct Row {
        scope: BudgetScope,
        #[serde(flatten)]
        state: BudgetState,
    }

    pub(crate) fn serialize<S: Serializer>(
        states: &BTreeMap<BudgetScope, BudgetState>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer
            .collect_seq(states.iter().map(|(scope, state)| Row { scope: scope.clone(), state: *state }))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<BudgetScope, BudgetState>, D::Error> {
        let rows = Vec::<Row>::deserialize(deserializer)?;
        Ok(rows.into_iter().map(|row| (row.scope, row.state)).collect())
    }
}
