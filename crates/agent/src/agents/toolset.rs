//! Tools that belong to one agent: those of MCP servers that are started for it and end with it.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::AgentDefinition;
use crate::tool::Tool;

/// Prepares the tools that belong to single agents.
pub trait AgentToolProvider: Send + Sync {
    /// Starts preparing an agent's tools; `None` if it has none of its own. Tools that fail are left out; their errors
    /// are reported elsewhere.
    fn toolset(&self, agent: &AgentDefinition) -> Option<BoxFuture<'static, AgentToolset>>;
}

/// Tools of one agent. Dropping them ends the servers behind them.
pub struct AgentToolset {
    pub tools: Vec<Arc<dyn Tool>>,
    pub source: Box<dyn ToolServers>,
}

/// The servers behind an agent's tools.
pub trait ToolServers: Send {
    /// Stops servers while the agent is idle. They start again when they are needed.
    fn rest(&self);
}
