//! What a client asks for when it creates or resumes a session, in types. Members that are not here are accepted and
//! change nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hangar_agent::agents::{AgentDefinition, AgentSource, AgentTools};
use hangar_agent::session::Compaction;
use hangar_agent::tool::ToolFilter;
use hangar_protocol::data::{ClientCommand, ContextTier, ReasoningSummary, SessionLimits, Verbosity};
use hangar_sandbox::SandboxConfig;
use serde::Deserialize;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionSpec {
    pub session_id: Option<String>,
    pub client_name: Option<String>,
    pub model: Option<String>,
    pub reasoning_effort: Option<String>,
    pub reasoning_summary: Option<ReasoningSummary>,
    pub verbosity: Option<Verbosity>,
    pub context_tier: Option<ContextTier>,
    /// The only models that the session may have.
    pub allowed_models: Option<Vec<String>>,
    pub model_capabilities: Option<CapabilityOverrides>,
    pub provider: Option<ProviderSpec>,
    pub providers: Option<Vec<ProviderSpec>>,
    pub models: Option<Vec<ModelSpec>>,
    pub git_hub_token: Option<String>,
    pub tools: Option<Vec<ToolDeclaration>>,
    pub available_tools: Option<Vec<String>>,
    pub excluded_tools: Option<Vec<String>>,
    pub tool_filter_precedence: Option<ToolFilterPrecedence>,
    pub system_message: Option<SystemMessageSpec>,
    pub working_directory: Option<PathBuf>,
    pub additional_directories: Option<Vec<PathBuf>>,
    pub config_dir: Option<PathBuf>,
    pub instruction_directories: Option<Vec<PathBuf>>,
    /// Whether the instructions of files are left out.
    pub skip_custom_instructions: Option<bool>,
    /// Instructions of the organisation that the client works for.
    pub organization_custom_instructions: Option<String>,
    /// Whether instructions about a part of the project are looked for when a file of it is touched.
    pub enable_on_demand_instruction_discovery: Option<bool>,
    /// Whether the hooks of files are asked.
    pub enable_file_hooks: Option<bool>,
    pub enable_skills: Option<bool>,
    /// Whether the model and the lists are told of the Git repository that the session works in.
    pub enable_host_git_operations: Option<bool>,
    pub is_experimental_mode: Option<bool>,
    /// Whether the model may not ask people.
    pub ask_user_disabled: Option<bool>,
    pub large_output: Option<LargeOutput>,
    pub streaming: Option<bool>,
    /// Whether the client is sent the pieces of what agents of the session say.
    pub include_sub_agent_streaming_events: Option<bool>,
    pub infinite_sessions: Option<InfiniteSessions>,
    /// Whether files are kept as they were before tools change them, for rewinding.
    pub enable_file_change_tracking: Option<bool>,
    /// Agents that the client brings, as it describes them.
    pub custom_agents: Option<Vec<CustomAgent>>,
    /// The agent whose role the session plays from the start.
    pub agent: Option<String>,
    #[serde(rename = "excludedBuiltinAgents", alias = "excludedBuiltInAgents")]
    pub excluded_builtin_agents: Option<Vec<String>>,
    pub request_permission: Option<bool>,
    pub request_user_input: Option<bool>,
    pub request_elicitation: Option<bool>,
    pub request_exit_plan_mode: Option<bool>,
    pub request_auto_mode_switch: Option<bool>,
    pub hooks: Option<bool>,
    /// Slash commands that the client carries out.
    pub commands: Option<Vec<ClientCommand>>,
    pub skill_directories: Option<Vec<PathBuf>>,
    pub disabled_skills: Option<Vec<String>>,
    pub plugin_directories: Option<Vec<PathBuf>>,
    pub enable_citations: Option<bool>,
    pub session_limits: Option<SessionLimits>,
    /// The trace that whoever opens the session belongs to; it holds for every prompt without one of its own.
    #[serde(flatten)]
    pub trace: TraceContext,
    pub default_agent: Option<DefaultAgent>,
    /// MCP servers that the client brings, as they are configured.
    pub mcp_servers: Option<serde_json::Map<String, serde_json::Value>>,
    pub disabled_mcp_servers: Option<Vec<String>>,
    /// Whether what the user and the project configured is looked for.
    pub enable_config_discovery: Option<bool>,
    pub github_mcp_tool_config: Option<serde_json::Value>,
    pub request_mcp_apps: Option<bool>,
    /// What the session's commands may do.
    pub sandbox_config: Option<SandboxConfig>,
    /// On resume: say nothing of it in the log.
    pub disable_resume: Option<bool>,
    /// On resume: keep what waits for answers waiting, rather than end it as interrupted.
    pub continue_pending_work: Option<bool>,
}

impl SessionSpec {
    pub fn filter(&self) -> ToolFilter {
        // A list of what is there says all there is to say, unless the client means both lists.
        let both = self.tool_filter_precedence == Some(ToolFilterPrecedence::Excluded);
        let excluded = self.excluded_tools.clone().filter(|_| both || self.available_tools.is_none());
        ToolFilter { available: self.available_tools.clone(), excluded: excluded.unwrap_or_default() }
    }

    /// When the session is to sum itself up.
    pub fn compaction(&self) -> Option<Compaction> {
        let usual = Compaction::default();
        let config = self.infinite_sessions.clone().unwrap_or_default();
        self.is_infinite().then(|| Compaction {
            start: config.background_compaction_threshold.unwrap_or(usual.start),
            wait: config.buffer_exhaustion_threshold.unwrap_or(usual.wait),
        })
    }

    /// Whether the model is to be shown images.
    pub fn has_vision(&self) -> bool {
        let supports = self.model_capabilities.as_ref().and_then(|overrides| overrides.supports.as_ref());
        supports.and_then(|supports| supports.vision).unwrap_or(true)
    }

    /// Takes over what another specification says of the session, as opposed to its client.
    pub(crate) fn adopt(&mut self, other: SessionSpec) {
        fn take<T>(ours: &mut Option<T>, theirs: Option<T>) {
            if theirs.is_some() {
                *ours = theirs;
            }
        }
        take(&mut self.client_name, other.client_name);
        take(&mut self.model, other.model);
        take(&mut self.reasoning_effort, other.reasoning_effort);
        take(&mut self.reasoning_summary, other.reasoning_summary);
        take(&mut self.verbosity, other.verbosity);
        take(&mut self.context_tier, other.context_tier);
        take(&mut self.allowed_models, other.allowed_models);
        take(&mut self.model_capabilities, other.model_capabilities);
        take(&mut self.provider, other.provider);
        take(&mut self.providers, other.providers);
        take(&mut self.models, other.models);
        take(&mut self.git_hub_token, other.git_hub_token);
        take(&mut self.available_tools, other.available_tools);
        take(&mut self.excluded_tools, other.excluded_tools);
        take(&mut self.tool_filter_precedence, other.tool_filter_precedence);
        take(&mut self.skip_custom_instructions, other.skip_custom_instructions);
        take(&mut self.organization_custom_instructions, other.organization_custom_instructions);
        take(&mut self.enable_on_demand_instruction_discovery, other.enable_on_demand_instruction_discovery);
        take(&mut self.enable_file_hooks, other.enable_file_hooks);
        take(&mut self.enable_skills, other.enable_skills);
        take(&mut self.enable_host_git_operations, other.enable_host_git_operations);
        take(&mut self.is_experimental_mode, other.is_experimental_mode);
        take(&mut self.ask_user_disabled, other.ask_user_disabled);
        take(&mut self.streaming, other.streaming);
        take(&mut self.large_output, other.large_output);
        take(&mut self.infinite_sessions, other.infinite_sessions);
        take(&mut self.additional_directories, other.additional_directories);
        take(&mut self.enable_file_change_tracking, other.enable_file_change_tracking);
        take(&mut self.system_message, other.system_message);
        take(&mut self.instruction_directories, other.instruction_directories);
        take(&mut self.default_agent, other.default_agent);
        take(&mut self.sandbox_config, other.sandbox_config);
        take(&mut self.working_directory, other.working_directory);
        take(&mut self.custom_agents, other.custom_agents);
        take(&mut self.agent, other.agent);
        take(&mut self.excluded_builtin_agents, other.excluded_builtin_agents);
        take(&mut self.skill_directories, other.skill_directories);
        take(&mut self.disabled_skills, other.disabled_skills);
        take(&mut self.plugin_directories, other.plugin_directories);
        take(&mut self.enable_citations, other.enable_citations);
        take(&mut self.config_dir, other.config_dir);
        if other.trace.traceparent.is_some() {
            self.trace = other.trace;
        }
        take(&mut self.mcp_servers, other.mcp_servers);
        take(&mut self.disabled_mcp_servers, other.disabled_mcp_servers);
        take(&mut self.enable_config_discovery, other.enable_config_discovery);
        take(&mut self.github_mcp_tool_config, other.github_mcp_tool_config);
        take(&mut self.request_mcp_apps, other.request_mcp_apps);
    }

    /// The agents that the client brings.
    pub fn agents(&self) -> Vec<AgentDefinition> {
        self.custom_agents.iter().flatten().cloned().map(AgentDefinition::from).collect()
    }

    /// Tools that are there for agents, but not for the session's main one.
    pub(crate) fn hidden_tools(&self) -> &[String] {
        self.default_agent.as_ref().map_or(&[], |agent| &agent.excluded_tools)
    }

    /// Whether it says anything about MCP servers.
    pub(crate) fn names_mcp_servers(&self) -> bool {
        self.mcp_servers.is_some()
            || self.disabled_mcp_servers.is_some()
            || self.enable_config_discovery.is_some()
            || self.plugin_directories.is_some()
            || self.github_mcp_tool_config.is_some()
    }

    pub fn is_infinite(&self) -> bool {
        self.infinite_sessions.as_ref().and_then(|config| config.enabled).unwrap_or(true)
    }
}

/// Where work stands in a distributed trace, by the W3C's recommendation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TraceContext {
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

impl TraceContext {
    pub(crate) fn headers(&self) -> impl Iterator<Item = (String, String)> {
        let pair = |name: &str, value: &Option<String>| value.clone().map(|value| (name.to_owned(), value));
        // A state without its parent means nothing.
        let state = pair("tracestate", &self.tracestate).filter(|_| self.traceparent.is_some());
        pair("traceparent", &self.traceparent).into_iter().chain(state)
    }
}

/// Which list counts where a tool is in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolFilterPrecedence {
    Available,
    Excluded,
}

/// What the session's main agent is like.
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

/// A tool that the client runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDeclaration {
    pub name: String,
    pub description: Option<String>,
    pub parameters: Option<serde_json::Value>,
    pub overrides_built_in_tool: Option<bool>,
    pub skip_permission: Option<bool>,
    /// Whether a call that succeeds ends the turn.
    pub is_terminal: Option<bool>,
}

/// A model provider of the client's own.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderSpec {
    /// Absent for the one provider of a session; the name that models refer to otherwise.
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub wire_api: Option<String>,
    /// `websockets` where the model shall be spoken to on a socket.
    pub transport: Option<String>,
    pub base_url: String,
    pub api_key: Option<String>,
    pub bearer_token: Option<String>,
    /// The client is asked for a token before each call.
    pub has_bearer_token_provider: Option<bool>,
    pub azure: Option<AzureSpec>,
    pub headers: Option<BTreeMap<String, String>>,
    pub model_id: Option<String>,
    pub wire_model: Option<String>,
    pub max_prompt_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AzureSpec {
    pub api_version: Option<String>,
}

/// A model of one of several providers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSpec {
    pub id: String,
    pub name: Option<String>,
    pub provider: String,
    pub model_id: Option<String>,
    pub wire_model: Option<String>,
    pub max_prompt_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    pub max_context_window_tokens: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CapabilityOverrides {
    pub supports: Option<ModelSupports>,
    pub limits: Option<ModelLimits>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSupports {
    pub vision: Option<bool>,
    pub reasoning_effort: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ModelLimits {
    pub max_prompt_tokens: Option<u64>,
    pub max_context_window_tokens: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InfiniteSessions {
    pub enabled: Option<bool>,
    pub background_compaction_threshold: Option<f64>,
    pub buffer_exhaustion_threshold: Option<f64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LargeOutput {
    pub enabled: Option<bool>,
    pub max_size_bytes: Option<u64>,
    pub output_dir: Option<PathBuf>,
}

/// The mode may be left out, which means that the text is appended.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "SystemMessageMembers")]
pub enum SystemMessageSpec {
    Append { content: Option<String> },
    Replace { content: String },
    Customize { content: Option<String>, sections: BTreeMap<String, SectionSpec> },
}

#[derive(Deserialize)]
struct SystemMessageMembers {
    #[serde(default)]
    mode: SystemMessageMode,
    content: Option<String>,
    sections: Option<BTreeMap<String, SectionSpec>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SystemMessageMode {
    #[default]
    Append,
    Replace,
    Customize,
}

impl From<SystemMessageMembers> for SystemMessageSpec {
    fn from(members: SystemMessageMembers) -> Self {
        let SystemMessageMembers { mode, content, sections } = members;
        match mode {
            SystemMessageMode::Append => Self::Append { content },
            SystemMessageMode::Replace => Self::Replace { content: content.unwrap_or_default() },
            SystemMessageMode::Customize => {
                Self::Customize { content, sections: sections.unwrap_or_default() }
            }
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub struct SectionSpec {
    pub action: SectionAction,
    pub content: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SectionAction {
    Replace,
    Remove,
    Append,
    Prepend,
    Preserve,
    /// The client is shown the section and says what it shall be.
    Transform,
}
