//! Agents of this machine and their state. Checking them starts programs, so it happens on request only.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hangar_registry::error::RegistryError;
use hangar_registry::hub::{Hub, iso};
use hangar_runtimes::capabilities::Capabilities;
use hangar_runtimes::runtime::{Lookup, OfferedModel, Preflight, Runtime};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

/// Timeout of checking one agent.
const LOOK_TIME: Duration = Duration::from_secs(60);
const MODELS_TIME: Duration = Duration::from_secs(30);
/// Lifetime of a list of models.
const MODELS_GOOD: SignedDuration = SignedDuration::from_secs(300);

pub(crate) struct Roster {
    hub: Hub,
    looks: Mutex<HashMap<String, AgentCheck>>,
    models: Mutex<HashMap<String, ModelList>>,
    /// One look at a time: they start programs.
    looking: tokio::sync::Mutex<()>,
}

/// List of an agent's models, with its time.
struct ModelList {
    at: Timestamp,
    models: Option<Vec<OfferedModel>>,
}

#[derive(Clone)]
struct AgentCheck {
    found: Arc<Preflight>,
    at: Timestamp,
}

/// An agent.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Runtime")]
pub(crate) struct RosterEntry {
    name: String,
    label: String,
    /// Runtime of a configured agent; absent for a runtime itself.
    runtime: Option<String>,
    install: String,
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    capabilities: Capabilities,
    #[schemars(with = "Option<PreflightShape>")]
    preflight: Option<CheckedAgent>,
    checked_at: Option<String>,
    default: bool,
}

#[derive(Debug, Clone, Serialize)]
struct CheckedAgent {
    #[serde(flatten)]
    found: Arc<Preflight>,
    ready: bool,
}

// `CheckedAgent` as it is serialized: most of its members are of another crate.
/// Result of checking an agent.
#[skip_serializing_none]
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Preflight")]
struct PreflightShape {
    program: Option<String>,
    version: Option<String>,
    help_hash: Option<String>,
    effort_levels: Option<Vec<String>>,
    /// Another program is used in its place and may support less.
    best_effort: bool,
    auth: AuthShape,
    /// Why it will not work; each a sentence with what to do.
    problems: Vec<String>,
    /// Why it may not work.
    warnings: Vec<String>,
    ready: bool,
}

#[skip_serializing_none]
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Auth")]
struct AuthShape {
    state: AuthState,
    /// Source of the login: a variable, a file, another program.
    source: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "describes the states of another crate's type")]
enum AuthState {
    Found,
    Missing,
    Unknown,
}

impl Roster {
    pub(crate) fn new(hub: Hub) -> Self {
        Self {
            hub,
            looks: Mutex::default(),
            models: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
        }
    }

    /// Current entries.
    pub(crate) fn list(&self) -> Vec<RosterEntry> {
        let runtimes = self.hub.runtimes();
        runtimes.iter().enumerate().map(|(at, runtime)| self.entry(runtime, at == 0)).collect()
    }

    fn entry(&self, runtime: &Arc<dyn Runtime>, default: bool) -> RosterEntry {
        let card = runtime.card();
        let look = self.looks.lock().get(&*card.name).cloned();
        let capabilities = look.as_ref().and_then(|look| look.found.capabilities.clone());
        RosterEntry {
            name: card.name.to_string(),
            label: card.label.to_string(),
            runtime: card.runtime.as_ref().map(ToString::to_string),
            install: card.install.to_string(),
            capabilities: capabilities.unwrap_or_else(|| card.capabilities.clone()),
            checked_at: look.as_ref().map(|look| iso(look.at)),
            preflight: look.map(|look| CheckedAgent { ready: look.found.is_ready(), found: look.found }),
            default,
        }
    }

    /// Whether the agents were checked since the start.
    pub(crate) fn is_known(&self) -> bool {
        !self.looks.lock().is_empty()
    }

    /// Checks all agents and publishes each.
    pub(crate) async fn look(&self) {
        let _one = self.looking.lock().await;
        let runtimes = self.hub.runtimes();
        let looks = runtimes.iter().enumerate().map(|(at, runtime)| async move {
            let found = tokio::time::timeout(LOOK_TIME, runtime.preflight()).await;
            let found = found.unwrap_or_else(|_| Preflight {
                problems: vec![format!("it did not answer within {} s", LOOK_TIME.as_secs())],
                ..Preflight::default()
            });
            let look = AgentCheck { found: Arc::new(found), at: self.hub.now() };
            self.looks.lock().insert(runtime.card().name.to_string(), look);
            self.hub.announce("runtime", &self.entry(runtime, at == 0));
        });
        join_all(looks).await;
    }

    /// Models of an agent. `None` if they cannot be listed.
    pub(crate) async fn models(
        &self,
        name: Option<&str>,
    ) -> Result<Option<Vec<OfferedModel>>, RegistryError> {
        let runtime = self.hub.runtime(name)?;
        let name = runtime.card().name.to_string();
        let now = self.hub.now();
        if let Some(offer) = self.models.lock().get(&name)
            && now.duration_since(offer.at) < MODELS_GOOD
        {
            return Ok(offer.models.clone());
        }
        let models = tokio::time::timeout(MODELS_TIME, runtime.models(Lookup::Cached)).await.unwrap_or(None);
        // Unknown facts are queried again next time.
        if models.is_some() {
            self.models.lock().insert(name, ModelList { at: now, models: models.clone() });
        }
        Ok(models)
    }
}
