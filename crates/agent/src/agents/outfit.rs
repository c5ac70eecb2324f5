//! Tools that belong to one agent: those of MCP servers that are started for it and end with it.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::AgentDefinition;
use crate::tool::Tool;

/// Prepares the tools that belong to single agents.
pub trait Outfitter: Send + Sync {
    /// Starts preparing an agent's tools; `None` if it has none of its own. Those that fail are left out and reported
    /// elsewhere.
    fn outfit(&self, agent: &AgentDefinition) -> Option<BoxFuture<'static, Outfit>>;
}

/// Tools of one agent. Dropping them ends the servers behind them.
pub struct Outfit {
    pub tools: Vec<Arc<dyn Tool>>,
    pub source: Box<dyn ToolSource>,
}

/// The servers behind an agent's tools.
pub trait ToolSource: Send {
    /// Stops servers while the agent is idle. They start again when they are needed.
    fn rest(&self);
}
