//! Agents for runs: the same as for people, so that the sessions of a run are like any other.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_jobs::driver::RuntimeSource;
use hangar_runtimes::outcome::{ErrorKind, Evidence, TurnFailure};
use hangar_runtimes::runtime::{
    AgentCard, AgentOrder, AgentSession, Lookup, OfferedModel, Preflight, RehearsalStage, Runtime,
};

use crate::error::RegistryError;
use crate::hub::Hub;

/// An agent whose sessions the hub keeps.
struct HubRuntime {
    hub: Hub,
    agent: Arc<dyn Runtime>,
}

/// Agents of a hub, for an executor of runs.
pub fn hub_runtimes(hub: &Hub) -> RuntimeSource {
    let hub = hub.clone();
    Arc::new(move || {
        let of_hub = |agent: &Arc<dyn Runtime>| {
            Arc::new(HubRuntime { hub: hub.clone(), agent: Arc::clone(agent) }) as Arc<dyn Runtime>
        };
        hub.runtimes().iter().map(of_hub).collect()
    })
}

impl Runtime for HubRuntime {
    fn card(&self) -> &AgentCard {
        self.agent.card()
    }

    fn preflight(&self) -> BoxFuture<'static, Preflight> {
        self.agent.preflight()
    }

    fn models(&self, lookup: Lookup) -> BoxFuture<'static, Option<Vec<OfferedModel>>> {
        self.agent.models(lookup)
    }

    fn open(&self, order: AgentOrder) -> BoxFuture<'static, Result<AgentSession, TurnFailure>> {
        let (hub, agent) = (self.hub.clone(), Arc::clone(&self.agent));
        Box::pin(async move {
            hub.open_for_run(&agent, order).await.map_err(|error| {
                let kind = match error {
                    // A run depends only on the agent's own result, and retries by its kind.
                    RegistryError::NotOpened(failure) => return *failure,
                    RegistryError::NoRuntime(_) => ErrorKind::AgentNotFound,
                    _ => ErrorKind::TurnFailed,
                };
                TurnFailure { kind, message: error.to_string(), evidence: Evidence::default() }
            })
        })
    }

    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage) {
        self.agent.rehearse(order, stage);
    }
}
