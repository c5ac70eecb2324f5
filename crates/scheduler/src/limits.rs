//! Limits: how much work may run at once, in all and by what it uses.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::Budgets;
use crate::item::WorkItem;

/// Name in a table of limits that stands for all that have no entry of their own.
pub const EACH: &str = "*";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ScopeKind {
    Runtime,
    Agent,
    Provider,
    Host,
    Project,
    Job,
    Label,
}

impl ScopeKind {
    pub const ALL: &'static [ScopeKind] = &[
        ScopeKind::Runtime,
        ScopeKind::Agent,
        ScopeKind::Provider,
        ScopeKind::Host,
        ScopeKind::Project,
        ScopeKind::Job,
        ScopeKind::Label,
    ];
}

/// Work that a limit counts: all of one runtime, of one account, and so on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scope {
    pub kind: ScopeKind,
    pub name: String,
}

impl Scope {
    pub fn new(kind: ScopeKind, name: &str) -> Self {
        Self { kind, name: name.to_owned() }
    }
}

/// The slots of a scope, as sentences name them.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.kind {
            ScopeKind::Runtime => write!(f, "{name} slots"),
            ScopeKind::Agent => write!(f, "slots of agent {name}"),
            ScopeKind::Provider => write!(f, "slots of account {name}"),
            ScopeKind::Host => write!(f, "slots of host {name}"),
            ScopeKind::Project => write!(f, "slots of project {name}"),
            ScopeKind::Job => write!(f, "slots of job {name}"),
            ScopeKind::Label => write!(f, "slots of label {name}"),
        }
    }
}

/// Maximum numbers of items that run at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    pub global: u32,
    /// By kind and name; [`EACH`] is the default of a kind.
    pub scopes: BTreeMap<ScopeKind, BTreeMap<String, u32>>,
    /// Shares of projects, where they are not 1.
    pub weights: BTreeMap<String, u32>,
    pub budgets: Budgets,
}

impl Limits {
    pub fn global(global: u32) -> Self {
        Self { global, scopes: BTreeMap::new(), weights: BTreeMap::new(), budgets: Budgets::default() }
    }

    /// The same limits with one more.
    pub fn with(mut self, kind: ScopeKind, name: &str, limit: u32) -> Self {
        self.scopes.entry(kind).or_default().insert(name.to_owned(), limit);
        self
    }

    pub fn limit(&self, scope: &Scope) -> Option<u32> {
        let named = self.scopes.get(&scope.kind)?;
        named.get(&scope.name).or_else(|| named.get(EACH)).copied()
    }

    /// Weight of a project between all that have work.
    pub fn weight(&self, project: &str) -> u64 {
        let weight = self.weights.get(project).or_else(|| self.weights.get(EACH));
        u64::from(weight.copied().unwrap_or(1).max(1))
    }

    /// The scopes of an item that have a limit. Those without one need no counting.
    pub fn scopes(&self, item: &WorkItem) -> Vec<Scope> {
        let names = |kind: ScopeKind| -> Vec<&str> {
            match kind {
                ScopeKind::Runtime => vec![&item.runtime],
                ScopeKind::Agent => item.agent.as_deref().into_iter().collect(),
                ScopeKind::Provider => vec![&item.account],
                ScopeKind::Host => vec![&item.host],
                ScopeKind::Project => vec![&item.project],
                ScopeKind::Job => item.job.as_deref().into_iter().collect(),
                ScopeKind::Label => item.labels.iter().map(String::as_str).collect(),
            }
        };
        let limited = ScopeKind::ALL.iter().filter(|kind| self.scopes.contains_key(kind));
        let scopes = limited.flat_map(|kind| names(*kind).into_iter().map(|name| Scope::new(*kind, name)));
        scopes.filter(|scope| self.limit(scope).is_some()).collect()
    }
}
