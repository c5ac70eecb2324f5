//! Sub-agents: their definitions, tools and prompts.

pub mod builtin;
pub mod call;
pub mod config;
pub mod fleet;
pub mod registry;
mod tool_names;
pub mod toolset;

use serde_json::{Map, Value};

/// Definition of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// Id within its source: for a file, the file's name.
    pub id: String,
    /// Name by which it is called.
    pub name: String,
    /// Name for people.
    pub display_name: String,
    pub description: String,
    /// System prompt that replaces the session's own role.
    pub prompt: String,
    pub tools: AgentTools,
    /// Models in order of preference. Empty: the caller's model.
    pub models: Vec<String>,
    pub effort: Option<String>,
    /// Its own MCP servers: name and configuration.
    pub mcp_servers: Map<String, Value>,
    /// Names of the skills that it starts with.
    pub skills: Vec<String>,
    /// Texts of those skills, once they have been read.
    pub briefing: String,
    /// Whether the model may call it. Users always may, unless `user_invocable` says otherwise.
    pub model_invocable: bool,
    pub user_invocable: bool,
    pub source: AgentSource,
}

/// Tools of an agent, by name or alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentTools {
    /// All tools of the caller.
    Inherited,
    Only(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentSource {
    Builtin,
    File(AgentFile),
    /// Registered by a client.
    Client,
}

/// The file that describes an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    pub path: std::path::PathBuf,
    pub owner: AgentOwner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentOwner {
    Project,
    User,
    Plugin,
}

impl AgentOwner {
    /// The owner as clients of the SDK know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
        }
    }
}

impl AgentDefinition {
    /// The role, with the texts of its skills.
    pub fn role(&self) -> String {
        match (self.prompt.is_empty(), self.briefing.is_empty()) {
            (_, true) => self.prompt.clone(),
            (true, false) => self.briefing.clone(),
            (false, false) => format!("{}\n\n{}", self.prompt, self.briefing),
        }
    }
}
