//! The agents that a session can hand work to, and the one whose role it plays.

use hangar_agent::agents::{AgentDefinition, AgentSource, AgentTools};
use serde::Deserialize;

group! {
    pub struct AgentOptions {
        /// Agents that the client brings, as it describes them.
        custom: Vec<CustomAgent> = "customAgents",
        /// The agent whose role the session plays from the start.
        selected: String = "agent",
        /// Built-in agents that are not wanted.
        excluded: Vec<String> = "excludedBuiltinAgents" | "excludedBuiltInAgents",
        default_agent: DefaultAgent = "defaultAgent",
    }
}

impl AgentOptions {
    /// The agents that the client brings.
    pub fn definitions(&self) -> Vec<AgentDefinition> {
        self.custom.iter().flatten().cloned().map(AgentDefinition::from).collect()
    }

    /// Tools that are there for agents, but not for the session's main one.
    pub fn hidden_tools(&self) -> &[String] {
        self.default_agent.as_ref().map_or(&[], |agent| &agent.excluded_tools)
    }
}

/// The session's main agent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DefaultAgent {
    /// Tools that are there, but not for it.
    pub excluded_tools: Vec<String>,
}

/// An agent that the client brings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomAgent {
    pub name: String,
    pub display_name: Option<String>,
    pub description: Option<String>,
    /// Absent or null for all tools.
    pub tools: Option<Vec<String>>,
    pub prompt: String,
    pub mcp_servers: Option<serde_json::Map<String, serde_json::Value>>,
    /// Whether the model may call it by itself.
    pub infer: Option<bool>,
    pub skills: Option<Vec<String>>,
    pub model: Option<String>,
    pub reasoning_effort: Option<String>,
}

impl From<CustomAgent> for AgentDefinition {
    fn from(agent: CustomAgent) -> Self {
        Self {
            display_name: agent.display_name.unwrap_or_else(|| agent.name.clone()),
            id: agent.name.clone(),
            name: agent.name,
            description: agent.description.unwrap_or_default(),
            prompt: agent.prompt,
            tools: agent.tools.map_or(AgentTools::Inherited, AgentTools::Only),
            models: agent.model.into_iter().collect(),
            effort: agent.reasoning_effort,
            mcp_servers: agent.mcp_servers.unwrap_or_default(),
            skills: agent.skills.unwrap_or_default(),
            briefing: String::new(),
            model_invocable: agent.infer.unwrap_or(true),
            user_invocable: true,
            source: AgentSource::Client,
        }
    }
}
