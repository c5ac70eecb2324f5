//! What the process that runs a session decides about it, whoever asks for the session.

use std::path::PathBuf;

use hangar_agent::agents::crew::Reporting;
use hangar_agent::features::Features;
use hangar_agent::permissions::Policy;
use hangar_models::Ways;
use hangar_protocol::data::Mode;
use hangar_sandbox::SandboxConfig;
use hangar_spec::{ConversationOptions, InstructionOptions, WorkspaceOptions};

use crate::mcp::GitHubServer;
use crate::workspace::trust::Trust;

/// From flags, the environment and the settings of the user.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) permissions: Permissions,
    pub(crate) extensions: Extensions,
    pub(crate) conduct: Conduct,
    pub(crate) models: ModelSource,
    pub(crate) features: Features,
    /// Whether files of instructions are read at all.
    pub(crate) reads_instructions: bool,
}

/// What tools and commands may do, and what nobody is to see.
#[derive(Clone)]
pub(crate) struct Permissions {
    /// Rules only; where tools may go is added.
    pub(crate) policy: Policy,
    /// Whether the system's directory for temporary files is open to tools.
    pub(crate) temp_dir: bool,
    /// The sandbox of sessions that ask for none of their own.
    pub(crate) sandbox: SandboxConfig,
    /// Whether a session cannot do without a sandbox.
    pub(crate) requires_sandbox: bool,
    /// Variables that tools must not see and output must not show.
    pub(crate) secrets: Vec<String>,
    /// Values that output must not show.
    pub(crate) hidden: Vec<String>,
}

impl Permissions {
    /// The sandbox of a session. One that the process requires is not for a client to take off.
    pub(super) fn sandbox(&self, workspace: &WorkspaceOptions) -> SandboxConfig {
        match &workspace.sandbox {
            Some(asked) => SandboxConfig { enabled: asked.enabled || self.requires_sandbox, ..asked.clone() },
            None => self.sandbox.clone(),
        }
    }
}

/// What is added to what people configured in files.
#[derive(Debug, Clone)]
pub(crate) struct Extensions {
    /// Whether the project's own configuration is trusted.
    pub(crate) trust: Trust,
    /// The same for the MCP servers of the project.
    pub(crate) server_trust: Trust,
    pub(crate) plugin_dirs: Vec<PathBuf>,
    /// MCP servers: documents, or `@` and the path of one.
    pub(crate) servers: Vec<String>,
    pub(crate) disabled_servers: Vec<String>,
    /// Servers that the settings switch off and this process wants.
    pub(crate) enabled_servers: Vec<String>,
    pub(crate) github: Option<GitHubServer>,
}

/// How a session goes about its work.
#[derive(Clone)]
pub(crate) struct Conduct {
    /// Without it the mode that the session had.
    pub(crate) mode: Option<Mode>,
    pub(crate) autopilot_cap: u32,
    /// Whether the model may ask people.
    pub(crate) may_ask: bool,
    /// Whether the size of the context is counted and told.
    pub(crate) metered: bool,
    /// How the model learns what a background agent found.
    pub(crate) reporting: Reporting,
    /// Whether whoever serves the model is told the name of the client.
    pub(crate) names_client: bool,
}

impl Conduct {
    pub(super) fn may_ask(&self, options: &ConversationOptions) -> bool {
        self.may_ask && !options.ask_user_disabled.unwrap_or(false)
    }
}

/// Where models come from.
#[derive(Clone, Default)]
pub(crate) struct ModelSource {
    pub(crate) record: Option<PathBuf>,
    pub(crate) replay: Option<PathBuf>,
    /// How the provider reaches the network, where not as usual.
    pub(crate) ways: Ways,
    /// Whether a session that is resumed keeps its model unless another is asked for.
    pub(crate) keeps_model: bool,
    /// The model of sessions that have none otherwise.
    pub(crate) usual: Option<String>,
    /// Whether the environment names the model, so that no agent may choose another.
    pub(crate) is_fixed: bool,
    /// Whether agents get only models that their provider lists, as far as there is a list.
    pub(crate) checks_list: bool,
    /// Whether a session may be without a model. It says so when it is to answer.
    pub(crate) may_be_missing: bool,
}

impl ModelSource {
    /// The same for sessions whose calls are neither recorded nor replayed.
    #[must_use]
    pub(crate) fn unrecorded(self) -> Self {
        Self { record: None, replay: None, ..self }
    }
}

impl Host {
    pub(crate) fn reads_instructions(&self, options: &InstructionOptions) -> bool {
        self.reads_instructions && !options.skip.unwrap_or(false)
    }
}
