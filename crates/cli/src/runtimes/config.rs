//! `[runtimes]` of `config.toml`: the default agent, and the settings of each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use hangar_runtimes::host::HostKeys;
use serde::{Deserialize, Deserializer};

use crate::settings::{Settings, parse_toml};

/// The whole table: settings for all agents, and a table for each agent with its own.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RuntimesConfig {
    pub(crate) default: Option<String>,
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    by_name: BTreeMap<String, toml::Value>,
    #[serde(skip)]
    pub(crate) agents: BTreeMap<String, RuntimeConfig>,
    /// The directory that paths in it are relative to.
    #[serde(skip)]
    pub(crate) directory: PathBuf,
}

/// Settings for all agents at once.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Common {
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) turn_timeout: Option<f64>,
    pub(crate) stall_timeout: Option<f64>,
    pub(crate) startup_timeout: Option<f64>,
    pub(crate) max_steps: Option<u32>,
    pub(crate) budget_usd: Option<f64>,
}

/// `[runtimes.NAME]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RuntimeConfig {
    /// Path of its program, or its name on `PATH`.
    pub(crate) program: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) turn_timeout: Option<f64>,
    pub(crate) stall_timeout: Option<f64>,
    pub(crate) startup_timeout: Option<f64>,
    pub(crate) max_steps: Option<u32>,
    pub(crate) budget_usd: Option<f64>,
    pub(crate) ssh: Option<String>,
    pub(crate) ssh_port: Option<u16>,
    /// For `-o` of ssh.
    pub(crate) ssh_options: Vec<String>,
    /// Policy for unknown hosts: `accept-new`, `yes` (known hosts only) or `no` (any host).
    #[serde(deserialize_with = "host_keys")]
    pub(crate) ssh_host_keys: HostKeys,
    pub(crate) bare: Option<bool>,
    pub(crate) stream: Option<bool>,
    pub(crate) builtin_mcp: Option<bool>,
    pub(crate) agents_md: Option<bool>,
    pub(crate) persona: Option<String>,
    pub(crate) experimental: Option<bool>,
    pub(crate) allow_tools: Vec<String>,
    pub(crate) deny_tools: Vec<String>,
    pub(crate) available_tools: Vec<String>,
    pub(crate) excluded_tools: Vec<String>,
    /// MCP servers: JSON, or a file, relative to the directory of `config.toml`.
    pub(crate) mcp_config: Option<String>,
    /// Arguments for this agent alone.
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// Command that starts an agent of the Agent Client Protocol. With it, the table defines a further agent.
    pub(crate) acp: Option<Vec<String>>,
}

fn host_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HostKeys, D::Error> {
    let word = String::deserialize(deserializer)?;
    HostKeys::parse(&word)
        .ok_or_else(|| serde::de::Error::custom(format!("`{word}` is none of accept-new, yes and no")))
}

impl RuntimesConfig {
    pub(crate) fn load(settings: &Settings) -> Result<Self> {
        let config = Self::parse(&settings.config_text()?)
            .with_context(|| format!("cannot use {}", settings.config_path().display()))?;
        Ok(Self { directory: settings.home.clone(), ..config })
    }

    fn parse(text: &str) -> Result<Self> {
        #[derive(Default, Deserialize)]
        struct File {
            #[serde(default)]
            runtimes: RuntimesConfig,
        }
        let mut config = parse_toml::<File>(text)?.runtimes;
        for (name, table) in std::mem::take(&mut config.by_name) {
            if !table.is_table() {
                // Flattened members appear here too.
                const COMMON: [&str; 7] = [
                    "model",
                    "effort",
                    "turn_timeout",
                    "stall_timeout",
                    "startup_timeout",
                    "max_steps",
                    "budget_usd",
                ];
                if COMMON.contains(&name.as_str()) {
                    continue;
                }
                return Err(anyhow!("[runtimes] has no setting `{name}`"));
            }
            let agent: RuntimeConfig =
                table.try_into().with_context(|| format!("[runtimes.{name}] is invalid"))?;
            config.agents.insert(name, agent);
        }
        Ok(config)
    }

    pub(crate) fn common(&self) -> Common {
        self.common.clone()
    }

    /// MCP configuration of the file: JSON, or the absolute path of a file.
    pub(crate) fn resolved(&self, servers: String) -> String {
        if servers.trim_start().starts_with('{') {
            return servers;
        }
        self.directory.join(servers.trim_start_matches('@')).display().to_string()
    }

    /// Settings of one agent; the defaults if there are none.
    pub(crate) fn of(&self, name: &str) -> RuntimeConfig {
        self.agents.get(name).cloned().unwrap_or_default()
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
        assert_eq!(config.common().stall_timeout, Some(9.0));
        assert_eq!(config.common().effort.as_deref(), Some("low"));
        assert_eq!(config.of("codex").model.as_deref(), Some("gpt-5"));
        assert_eq!(config.of("codex").ssh_host_keys, HostKeys::Known);
        assert_eq!(config.of("claude").model, None);
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
