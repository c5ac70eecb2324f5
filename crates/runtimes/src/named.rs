//! Named agents: a runtime with settings of its own, under a name of its own. Two of them may share a runtime.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_protocol::data::AgentAssigned;

use crate::fallback;
use crate::outcome::TurnFailure;
use crate::runtime::{
    AgentCard, AgentOrder, AgentSession, Lookup, OfferedModel, Preflight, RehearsalStage, Runtime,
};

/// A configured agent. The order of a session has its settings already; the agent adds its name to the log and changes
/// models.
pub struct NamedAgent {
    runtime: Arc<dyn Runtime>,
    card: AgentCard,
}

impl NamedAgent {
    pub fn new(name: &str, description: Option<&str>, runtime: Arc<dyn Runtime>) -> Self {
        let base = runtime.card();
        let label = match description {
            Some(description) => format!("{name} ({}): {description}", base.label),
            None => format!("{name} ({})", base.label),
        };
        let card = AgentCard {
            name: name.to_owned().into(),
            label: label.into(),
            runtime: Some(base.name.clone()),
            ..base.clone()
        };
        Self { runtime, card }
    }
}

impl Runtime for NamedAgent {
    fn card(&self) -> &AgentCard {
        &self.card
    }

    fn preflight(&self) -> BoxFuture<'static, Preflight> {
        self.runtime.preflight()
    }

    fn models(&self, lookup: Lookup) -> BoxFuture<'static, Option<Vec<OfferedModel>>> {
        self.runtime.models(lookup)
    }

    fn open(&self, mut order: AgentOrder) -> BoxFuture<'static, Result<AgentSession, TurnFailure>> {
        if order.resume.is_none() {
            let assigned = AgentAssigned {
                agent: self.card.name.to_string(),
                runtime: self.card.base().to_owned(),
                host: order.host.target().map(str::to_owned),
            };
            order.opening.push(assigned.into());
        }
        match order.fallback_models.is_empty() {
            true => self.runtime.open(order),
            false => Box::pin(fallback::open(Arc::clone(&self.runtime), order)),
        }
    }

    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage) {
        self.runtime.rehearse(order, stage);
    }
}
