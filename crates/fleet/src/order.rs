//! Orders: sessions that a worker is to open or to continue.

use std::collections::BTreeSet;
use std::path::PathBuf;

use hangar_store::SessionId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{FleetError, VERSION};

/// Name of the pool of orders that any worker may take.
const ANY: &str = "any";
/// Longest label.
const MAX_LABEL: usize = 32;
/// Most labels of an order.
const MAX_LABELS: usize = 8;

/// Identity of an order. An order that is sent again with the same id is one order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderId(pub String);

impl std::fmt::Display for OrderId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A turn of a session that is to be carried out somewhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    pub v: u32,
    pub id: OrderId,
    pub session: String,
    #[serde(default)]
    pub labels: Labels,
    pub prompt: String,
    /// Settings of a new session. A session that exists keeps its own.
    #[serde(default)]
    pub settings: SessionSettings,
    pub workspace: OrderWorkspace,
    /// Machine that placed the order.
    #[serde(default)]
    pub from: String,
    #[serde(with = "crate::time")]
    pub placed: Timestamp,
}

impl Order {
    pub fn session_id(&self) -> Result<SessionId, FleetError> {
        self.session
            .parse()
            .map_err(|_| FleetError::Invalid(format!("`{}` is no id of a session", self.session)))
    }

    /// Reads an order. One of a newer version is refused before its fields are looked at.
    pub fn parse(bytes: &[u8]) -> Result<Self, FleetError> {
        #[derive(Deserialize)]
        struct Versioned {
            v: u32,
        }
        let bad = |error: serde_json::Error| FleetError::Invalid(format!("an order cannot be read: {error}"));
        let Versioned { v } = serde_json::from_slice(bytes).map_err(bad)?;
        if v > VERSION {
            return Err(FleetError::Newer { found: v });
        }
        serde_json::from_slice(bytes).map_err(bad)
    }
}

/// Settings of a session: those of `hangar run` that make sense on another machine. Credentials are the worker's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionSettings {
    pub runtime: Option<String>,
    pub agent: Option<String>,
    pub persona: Option<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub system: Option<String>,
    pub name: Option<String>,
    pub allow_tool: Vec<String>,
    pub allow_all_tools: bool,
    pub deny_tool: Vec<String>,
    pub available_tools: Vec<String>,
    pub excluded_tools: Vec<String>,
    pub bare: bool,
    pub no_agents_md: bool,
    pub no_builtin_mcp: bool,
    pub turn_timeout: Option<f64>,
    pub stall_timeout: Option<f64>,
    pub max_steps: Option<u32>,
    pub budget: Option<f64>,
    /// Whether people answer the questions of the agent. Otherwise what no rule allows is denied.
    pub asks: bool,
    /// The task of a run that the session works for.
    pub run: Option<serde_json::Value>,
    /// Whether the agent gets the tools by which it answers the questions of a job.
    pub job_tools: bool,
    pub extra: Vec<String>,
}

/// Workspace of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum OrderWorkspace {
    /// A worktree of a repository. Its work is pushed after every turn, so any worker can continue it.
    Git { remote: String, reference: Option<String> },
    /// A directory that the workers of the order's labels have.
    Path { path: PathBuf },
}

/// Labels of an order or of a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeSet<String>);

impl Labels {
    pub fn parse<S: AsRef<str>>(labels: impl IntoIterator<Item = S>) -> Result<Self, FleetError> {
        let mut all = BTreeSet::new();
        for label in labels {
            let label = label.as_ref();
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            if label.is_empty() || label.len() > MAX_LABEL || !label.chars().all(plain) || label == ANY {
                return Err(FleetError::Invalid(format!(
                    "`{label}` is no label; one has 1 to {MAX_LABEL} lower-case letters, digits and `-`, and is not `{ANY}`"
                )));
            }
            all.insert(label.to_owned());
        }
        match all.len() > MAX_LABELS {
            true => Err(FleetError::Invalid(format!("there are at most {MAX_LABELS} labels"))),
            false => Ok(Self(all)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Name of the pool of orders with these labels: a token of a subject and a name of a consumer.
    pub fn pool(&self) -> String {
        if self.0.is_empty() { ANY.to_owned() } else { self.iter().collect::<Vec<_>>().join("_") }
    }

    /// Whether a worker with these labels may take the orders of a pool.
    pub fn admit(&self, pool: &str) -> bool {
        pool == ANY || pool.split('_').all(|label| self.0.contains(label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(names: &[&str]) -> Labels {
        Labels::parse(names).expect("valid labels")
    }

    #[test]
    fn a_worker_takes_orders_whose_labels_it_has() {
        let worker = labels(&["linux", "gpu"]);
        assert_eq!(labels(&["linux", "gpu"]).pool(), "gpu_linux");
        assert!(worker.admit("any") && worker.admit("gpu") && worker.admit("gpu_linux"));
        assert!(!worker.admit("gpu_mac") && !labels(&[]).admit("gpu"));
        assert!(Labels::parse(["any"]).is_err() && Labels::parse(["a_b"]).is_err());
    }

    #[test]
    fn an_order_of_a_newer_version_is_not_read() {
        let newer = Order::parse(br#"{"v":9,"shape":"unknown"}"#);
        assert!(matches!(newer, Err(FleetError::Newer { found: 9 })));
        assert!(matches!(Order::parse(b"{}"), Err(FleetError::Invalid(_))));
    }
}
