//! Skills, hooks, plugins and MCP servers.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

/// Notes about the repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MemoryOptions {
    pub enabled: Option<bool>,
}

group! {
    pub struct CustomizationOptions {
        skill_dirs: Vec<PathBuf> = "skillDirectories",
        disabled_skills: Vec<String> = "disabledSkills",
        skills: bool = "enableSkills",
        /// Whether the hooks of files are asked.
        file_hooks: bool = "enableFileHooks",
        plugin_dirs: Vec<PathBuf> = "pluginDirectories",
        /// Whether the configuration files of the user and of the project are read.
        discovery: bool = "enableConfigDiscovery",
        experimental: bool = "isExperimentalMode",
        /// Whether the model keeps notes about the repository.
        memory: MemoryOptions = "memory",
    }
}

impl CustomizationOptions {
    pub fn discovers(&self) -> bool {
        self.discovery.unwrap_or(false)
    }
}

group! {
    /// The MCP servers.
    pub struct ServerOptions {
        /// Servers of the client, by name, in the form of configuration files.
        configs: Map<String, Value> = "mcpServers",
        disabled: Vec<String> = "disabledMcpServers",
        /// Which tools of GitHub's own server are wanted.
        github: Value = "githubMcpToolConfig",
        /// Whether the client shows views of servers.
        apps: bool = "requestMcpApps",
    }
}
