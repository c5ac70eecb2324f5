//! Work items: pieces of work that take a slot each.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::record::iso;

/// Identity of a work item. All attempts at the same work have the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ItemId(pub String);

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A process that has work in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnerId(pub String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WorkKind {
    /// Turn of a session.
    Turn,
    /// Task of a job.
    Task,
    /// Run that a schedule or a hook started.
    Scheduled,
}

/// A piece of work that takes one slot while it runs.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkItem {
    pub id: ItemId,
    pub kind: WorkKind,
    /// Directory or name that fairness and limits are counted by.
    pub project: String,
    /// Name of the runtime.
    pub runtime: String,
    /// Name of the configured agent, if one was chosen.
    #[serde(default)]
    pub agent: Option<String>,
    /// Provider account that the agent calls.
    pub account: String,
    pub host: String,
    /// Name of the job.
    pub job: Option<String>,
    /// Run that the work belongs to.
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
    /// Higher goes first, within a project.
    #[serde(default)]
    pub priority: i32,
    /// When the work became due for the first time. A retry keeps it, and so its place.
    #[serde(with = "iso")]
    pub enqueued: Timestamp,
    /// Number of the attempt; the first is 1.
    pub attempt: u32,
}

impl WorkItem {
    /// Name of the work in sentences.
    pub fn name(&self) -> String {
        match &self.run {
            Some(run) => format!("run {run}"),
            None => format!("session {}", self.id),
        }
    }
}
