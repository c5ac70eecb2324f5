//! [`HostSettings`]: settings of the process, which hold for every session that it runs.

use std::path::PathBuf;

use hangar_agent::agents::config::Reporting;
use hangar_agent::budget::Budget;
use hangar_agent::features::Features;
use hangar_agent::permissions::Policy;
use hangar_models::Ways;
use hangar_protocol::data::Mode;
use hangar_sandbox::SandboxConfig;
use hangar_spec::{ConversationOptions, InstructionOptions, WorkspaceOptions};

use crate::mcp::GitHubServer;
use crate::workspace::trust::Trust;

/// Settings of the process, from its flags, the environment and the user's settings file.
#[derive(Clone)]
pub(crate) struct HostSettings {
    pub(crate) permissions: Permissions,
    pub(crate) extensions: Extensions,
    pub(crate) conduct: Conduct,
    pub(crate) models: ModelSource,
    pub(crate) features: Features,
    /// Whether files of instructions are read at all.
    pub(crate) reads_instructions: bool,
}

/// Permissions of tools and commands, and secrets.
#[derive(Clone)]
pub(crate) struct Permissions {
    /// Rules only; the directories of the session are added later.
    pub(crate) policy: Policy,
    /// Whether the system's directory for temporary files is open to tools.
    pub(crate) temp_dir: bool,
    /// Default sandbox of sessions.
    pub(crate) sandbox: SandboxConfig,
    /// Whether clients cannot switch the sandbox off.
    pub(crate) requires_sandbox: bool,
    /// Variables that tools must not see and output must not show.
    pub(crate) secrets: Vec<String>,
    /// Values that output must not show.
    pub(crate) hidden: Vec<String>,
}

impl Permissions {
    /// The sandbox of a session.
    pub(super) fn sandbox(&self, workspace: &WorkspaceOptions) -> SandboxConfig {
        match &workspace.sandbox {
            Some(asked) => SandboxConfig { enabled: asked.enabled || self.requires_sandbox, ..asked.clone() },
            None => self.sandbox.clone(),
        }
    }
}

/// Plugins and MCP servers beside those of configuration files.
#[derive(Debug, Clone)]
pub(crate) struct Extensions {
    /// Whether the project's own configuration is trusted.
    pub(crate) trust: Trust,
    /// Whether the MCP servers of the project are trusted.
    pub(crate) server_trust: Trust,
    pub(crate) plugin_dirs: Vec<PathBuf>,
    /// MCP servers: documents, or `@` and the path of one.
    pub(crate) servers: Vec<String>,
    pub(crate) disabled_servers: Vec<String>,
    /// Servers to start although the settings disable them.
    pub(crate) enabled_servers: Vec<String>,
    pub(crate) github: Option<GitHubServer>,
}

/// Behaviour of a session that clients do not set.
#[derive(Clone)]
pub(crate) struct Conduct {
    /// Mode to start in; `None` keeps the mode of the session.
    pub(crate) mode: Option<Mode>,
    pub(crate) autopilot_cap: u32,
    /// Whether the model may ask people.
    pub(crate) may_ask: bool,
    /// Whether the size of the context is counted and reported.
    pub(crate) metered: bool,
    /// Reporting of background agents to the model.
    pub(crate) reporting: Reporting,
    /// Whether requests to the model name the client.
    pub(crate) names_client: bool,
    pub(crate) budget: Budget,
}

impl Conduct {
    pub(super) fn may_ask(&self, options: &ConversationOptions) -> bool {
        self.may_ask && !options.ask_user_disabled.unwrap_or(false)
    }
}

/// The source of models.
#[derive(Clone, Default)]
pub(crate) struct ModelSource {
    pub(crate) record: Option<PathBuf>,
    pub(crate) replay: Option<PathBuf>,
    /// Connection of the provider through a client, where there is one.
    pub(crate) ways: Ways,
    /// Whether a resumed session keeps its model unless another is requested.
    pub(crate) keeps_model: bool,
    /// Default model of sessions.
    pub(crate) usual: Option<String>,
    /// Whether the environment names the model, so that the active agent cannot choose another.
    pub(crate) is_fixed: bool,
    /// Whether agents get only models that their provider lists, as far as there is a list.
    pub(crate) checks_list: bool,
    /// Whether a session can be opened without a model. Its first call to the model fails then.
    pub(crate) may_be_missing: bool,
}

impl ModelSource {
    /// This source without recording and replay.
    #[must_use]
    pub(crate) fn unrecorded(self) -> Self {
        Self { record: None, replay: None, ..self }
    }
}

impl HostSettings {
    pub(crate) fn reads_instructions(&self, options: &InstructionOptions) -> bool {
        self.reads_instructions && !options.skip.unwrap_or(false)
    }
}
