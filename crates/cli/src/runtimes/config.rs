//! `[runtimes]` of `config.toml`: the default agent, and the settings of each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use anyhow::{Context, Result, anyhow};
use hangar_runtimes::host::HostKeys;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::named::AgentTable;
use crate::config::located;
use crate::settings::{Settings, parse_toml};

/// The whole table: settings for all agents, and a table for each agent with its own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct RuntimesConfig {
    /// Runtime or named agent of work that names none.
    pub(crate) default: Option<String>,
    #[serde(flatten)]
    pub(crate) turn: TurnSettings,
    /// Maximum cost of a turn, in US dollars.
    pub(crate) budget_usd: Option<f64>,
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, RuntimeConfig>")]
    by_name: BTreeMap<String, toml::Value>,
    #[serde(skip)]
    pub(crate) agents: BTreeMap<String, RuntimeConfig>,
    /// Named agents: the tables `[agents.NAME]` that have a runtime.
    #[serde(skip)]
    pub(crate) named: BTreeMap<String, AgentTable>,
    /// The directory that paths in it are relative to.
    #[serde(skip)]
    pub(crate) directory: PathBuf,
}

/// Model and limits of a turn: for all agents, for a runtime and for a named agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TurnSettings {
    /// Model, by the agent's own name for it.
    pub(crate) model: Option<String>,
    /// Reasoning effort.
    #[schemars(extend("enum" = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]))]
    pub(crate) effort: Option<String>,
    /// Seconds after which a turn is ended; 0 means never.
    #[schemars(range(min = 0))]
    pub(crate) turn_timeout: Option<f64>,
    /// Seconds of silence, while no tool runs and nobody is asked, after which a turn is ended; 0 means never.
    #[schemars(range(min = 0))]
    pub(crate) stall_timeout: Option<f64>,
    /// Seconds after which a running command or other tool call ends the turn; 0 means never.
    #[schemars(range(min = 0))]
    pub(crate) tool_timeout: Option<f64>,
    /// Seconds without a new commit, change or call after which that is told; 0 means never.
    #[schemars(range(min = 0))]
    pub(crate) progress_timeout: Option<f64>,
    /// Whether a turn without progress is ended.
    pub(crate) stop_without_progress: Option<bool>,
    /// Seconds that the agent has to start; 0 means no limit.
    #[schemars(range(min = 0))]
    pub(crate) startup_timeout: Option<f64>,
    /// Maximum number of steps of a turn.
    pub(crate) max_steps: Option<u32>,
}

/// Switches of a runtime or of a named agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SwitchSettings {
    /// Whether the agent loads as little as possible: no hooks, plugins, memories and instruction files.
    pub(crate) bare: Option<bool>,
    /// Whether answers are streamed.
    pub(crate) stream: Option<bool>,
    /// Whether the MCP servers that come with the agent are started. Off for a named agent unless it is set, so that it does not
    /// open pull requests on its own.
    pub(crate) builtin_mcp: Option<bool>,
    /// Whether AGENTS.md and other instruction files of the workspace are read.
    pub(crate) agents_md: Option<bool>,
    /// Custom agent of the runtime whose role it plays.
    pub(crate) persona: Option<String>,
    /// Whether experimental features are on.
    pub(crate) experimental: Option<bool>,
}

/// Tools of a runtime or of a named agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ToolSettings {
    /// Tools to allow; without any rule, all are allowed.
    pub(crate) allow_tools: Vec<String>,
    /// Tools to deny; deny rules win.
    pub(crate) deny_tools: Vec<String>,
    /// The only tools that the model is offered.
    pub(crate) available_tools: Vec<String>,
    /// Tools that the model is not offered.
    pub(crate) excluded_tools: Vec<String>,
    /// MCP servers: JSON, or a file, relative to the directory of `config.toml`.
    pub(crate) mcp_config: Option<String>,
}

/// `[runtimes.NAME]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RuntimeConfig {
    /// Path of its program, or its name on `PATH`.
    pub(crate) program: Option<String>,
    #[serde(flatten)]
    pub(crate) turn: TurnSettings,
    /// Maximum cost of a turn, in US dollars.
    pub(crate) budget_usd: Option<f64>,
    #[serde(flatten)]
    pub(crate) ssh: SshSettings,
    #[serde(flatten)]
    pub(crate) switches: SwitchSettings,
    #[serde(flatten)]
    pub(crate) tools: ToolSettings,
    /// Arguments for this agent alone.
    pub(crate) args: Vec<String>,
    /// Variables for the agent.
    pub(crate) env: BTreeMap<String, String>,
    /// Command that starts an agent of the Agent Client Protocol. With it, the table defines a further agent.
    pub(crate) acp: Option<Vec<String>>,
}

/// Machine of a runtime.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SshSettings {
    /// Machine to work on: HOST, USER@HOST, or a name of your ssh configuration.
    pub(crate) ssh: Option<String>,
    /// Port of ssh.
    pub(crate) ssh_port: Option<u16>,
    /// For `-o` of ssh.
    pub(crate) ssh_options: Vec<String>,
    /// Policy for unknown hosts: `accept-new`, `yes` (known hosts only) or `no` (any host).
    #[serde(deserialize_with = "host_keys")]
    #[schemars(with = "Option<String>", extend("enum" = ["accept-new", "yes", "no"]))]
    pub(crate) ssh_host_keys: HostKeys,
}

fn host_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HostKeys, D::Error> {
    let word = String::deserialize(deserializer)?;
    HostKeys::parse(&word)
        .ok_or_else(|| serde::de::Error::custom(format!("`{word}` is none of accept-new, yes and no")))
}

impl RuntimesConfig {
    pub(crate) fn load(settings: &Settings) -> Result<Self> {
        let text = settings.config_text()?;
        let config = Self::parse(&text).map_err(|error| located(settings, &text, &error))?;
        Ok(Self { directory: settings.home.clone(), ..config })
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        #[derive(Default, Deserialize)]
        struct File {
            #[serde(default)]
            runtimes: RuntimesConfig,
            #[serde(default)]
            agents: BTreeMap<String, AgentTable>,
        }
        let File { runtimes: mut config, agents } = parse_toml::<File>(text)?;
        for (name, agent) in agents {
            if let Err((_, why)) = agent.check(&name) {
                return Err(anyhow!("[agents.{name}] is invalid: {why}"));
            }
            if agent.runtime.is_some() {
                config.named.insert(name, agent);
            }
        }
        for (name, table) in std::mem::take(&mut config.by_name) {
            if !table.is_table() {
                return Err(anyhow!("[runtimes] has no setting `{name}`"));
            }
            let agent: RuntimeConfig =
                table.try_into().with_context(|| format!("[runtimes.{name}] is invalid"))?;
            config.agents.insert(name, agent);
        }
        Ok(config)
    }

    /// MCP configuration of the file: JSON, or the absolute path of a file.
    pub(crate) fn resolved(&self, servers: String) -> String {
        if servers.trim_start().starts_with('{') {
            return servers;
        }
        self.directory.join(servers.trim_start_matches('@')).display().to_string()
    }

    /// Settings of the runtime of an agent; the defaults if there are none.
    pub(crate) fn runtime(&self, name: &str) -> &RuntimeConfig {
        static NONE: LazyLock<RuntimeConfig> = LazyLock::new(RuntimeConfig::default);
        self.agents.get(self.base(name)).unwrap_or(&NONE)
    }

    /// Model that a runtime or a named agent has by its own tables.
    pub(crate) fn model(&self, name: &str) -> Option<String> {
        let own = self.named.get(name).and_then(|agent| agent.turn.model.clone());
        own.or_else(|| self.runtime(name).turn.model.clone())
    }

    /// Name of the runtime of an agent.
    pub(crate) fn base<'a>(&'a self, name: &'a str) -> &'a str {
        self.named.get(name).and_then(|agent| agent.runtime.as_deref()).unwrap_or(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_holds_for_all_and_what_for_one() {
        let config = RuntimesConfig::parse(
            "[runtimes]\ndefault = \"codex\"\neffort = \"low\"\nstall_timeout = 9\n[runtimes.codex]\nmodel = \"gpt-5\"\nssh_host_keys = \"yes\"\n",
        )
        .unwrap();
        assert_eq!(config.default.as_deref(), Some("codex"));
        assert_eq!(config.turn.stall_timeout, Some(9.0));
        assert_eq!(config.turn.effort.as_deref(), Some("low"));
        assert_eq!(config.model("codex").as_deref(), Some("gpt-5"));
        assert_eq!(config.runtime("codex").ssh.ssh_host_keys, HostKeys::Known);
        assert_eq!(config.model("claude"), None);
    }

    #[track_caller]
    fn check_refused(text: &str, names: &str) {
        let error = format!("{:#}", RuntimesConfig::parse(text).unwrap_err());
        assert!(error.contains(names), "{error}");
    }

    #[test]
    fn settings_that_do_not_exist_are_named() {
        check_refused("[runtimes]\nmodle = \"x\"\n", "modle");
        check_refused("[runtimes.codex]\nmodle = \"x\"\n", "modle");
        check_refused("[runtimes.codex]\nssh_host_keys = \"maybe\"\n", "maybe");
    }
}
