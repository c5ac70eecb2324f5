//! What only one agent has: tools of servers that are started for it and end with it.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::AgentDefinition;
use crate::tool::Tool;

/// Gets ready what agents have of their own.
pub trait Outfitter: Send + Sync {
    /// `None` for an agent that has nothing of its own. What cannot be had is left out and told elsewhere.
    fn outfit(&self, agent: &AgentDefinition) -> Option<BoxFuture<'static, Outfit>>;
}

/// The tools of one agent. Dropping it ends what they run on.
pub struct Outfit {
    pub tools: Vec<Arc<dyn Tool>>,
    pub source: Box<dyn ToolSource>,
}

/// What the tools of an outfit run on.
pub trait ToolSource: Send {
    /// The agent has no more to do for now. What is needed again starts again.
    fn rest(&self);
}
