//! Servers of an agent's own: started when the agent begins, resting while it has nothing to do, gone with it.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hangar_agent::agents::toolset::{AgentToolProvider, AgentToolset, ToolServers};
use hangar_agent::agents::{AgentDefinition, AgentSource};
use hangar_protocol::data::SessionWarning;

use crate::config::{ConfigSource, Layer, McpConfigError, ServerConfig, merge};
use crate::host::McpHost;

impl AgentToolProvider for McpHost {
    fn toolset(&self, agent: &AgentDefinition) -> Option<BoxFuture<'static, AgentToolset>> {
        if agent.mcp_servers.is_empty() {
            return None;
        }
        let (configs, errors) = self.servers_of(agent);
        let host = self.for_agent(configs);
        let name = agent.name.clone();
        Some(Box::pin(async move {
            for error in errors {
                let message = format!("A server of the agent `{name}` is not there: {error}");
                host.tell(SessionWarning::new("mcp", message)).await;
            }
            host.ready().await;
            AgentToolset { tools: host.tools(), source: Box::new(OwnServers(host)) }
        }))
    }
}

impl McpHost {
    /// Adds the servers of an agent whose role the session plays from now on, and starts them.
    pub async fn adopt(&self, agent: &AgentDefinition) {
        for config in self.servers_of(agent).0 {
            if !config.off && !self.has(&config.name) {
                // The failure is the server's status and has been told.
                let _ = self.restart(&config.name.clone(), Some(config)).await;
            }
        }
    }

    fn servers_of(&self, agent: &AgentDefinition) -> (Vec<ServerConfig>, Vec<McpConfigError>) {
        let layer = Layer { source: ConfigSource::User, servers: agent.mcp_servers.clone() };
        match agent.source {
            // Written by hand, for a machine that is not known yet.
            AgentSource::File(_) => merge(&[layer], &|name| self.variable(name)),
            AgentSource::Client | AgentSource::Builtin => merge(&[layer], &|_| None),
        }
    }
}

struct OwnServers(McpHost);

impl ToolServers for OwnServers {
    fn rest(&self) {
        let host = self.0.clone();
        tokio::spawn(FutureExt::boxed(async move { host.rest().await }));
    }
}

impl Drop for OwnServers {
    fn drop(&mut self) {
        // Without a runtime the whole program ends, and the servers with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let host = self.0.clone();
            runtime.spawn(async move { host.rest().await });
        }
    }
}
