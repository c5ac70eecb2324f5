//! `[agents.NAME]` of `config.toml`: named agents, and the models of built-in sub-agents.
//!
//! A table with a `runtime` is a named agent, which can be chosen wherever work is started. A table without one sets the model of
//! the sub-agent of that name.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hangar_agent::agents::{AgentDefinition, AgentFile, AgentOwner, AgentSource, AgentTools};
use hangar_runtimes::runtime::AgentOrder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::choice::NATIVE;
use super::config::{RuntimesConfig, SwitchSettings, ToolSettings, TurnSettings};
use crate::settings::Settings;

/// Bytes of the longest system prompt that is read from a file.
const SYSTEM_PROMPT_BYTES: u64 = 1 << 20;

/// Keys that a table without a runtime may have: those of a built-in sub-agent.
const SUB_AGENT_KEYS: [&str; 3] = ["model", "effort", "disabled"];

/// `[agents.NAME]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentTable {
    /// Runtime of a named agent, such as claude or native. Without it, the table sets the model of a built-in sub-agent.
    pub(crate) runtime: Option<String>,
    /// What the agent is for.
    pub(crate) description: Option<String>,
    #[serde(flatten)]
    pub(crate) turn: TurnSettings,
    /// `max_steps` by the name that Copilot has for it.
    pub(crate) max_autopilot_continues: Option<u32>,
    /// Whether the sub-agent is neither offered nor started.
    pub(crate) disabled: bool,
    /// Models that are tried in turn when one is overloaded or its quota is used up.
    pub(crate) fallback_models: Vec<String>,
    #[serde(flatten)]
    pub(crate) tools: ToolSettings,
    /// File with instructions before the prompt, relative to the home folder.
    pub(crate) system_prompt_file: Option<String>,
    /// Whether commands run in the sandbox, whatever [sandbox] says. Only Hangar's own agent has one.
    pub(crate) sandbox: Option<bool>,
    /// Machine to work on, by ssh: HOST, USER@HOST, or a name of your ssh configuration.
    pub(crate) host: Option<String>,
    /// Pool of such machines. The one with the least work is used.
    pub(crate) hosts: Vec<String>,
    /// Sessions of the agent that may run at once.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) max_running: Option<u32>,
    /// Labels that `[limits] per_label` counts.
    pub(crate) labels: Vec<String>,
    /// Caps on cost.
    pub(crate) budget: AgentBudget,
    #[serde(flatten)]
    pub(crate) switches: SwitchSettings,
    /// Arguments to pass to the runtime unchanged.
    pub(crate) args: Vec<String>,
    /// Variables for the runtime.
    pub(crate) env: BTreeMap<String, String>,
}

/// Caps on the cost of a named agent, in US dollars.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentBudget {
    /// For one turn.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) turn: Option<f64>,
    /// For one session; only Hangar's own agent enforces it before each call.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) session: Option<f64>,
    /// For all sessions of a day.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) day: Option<f64>,
}

impl AgentTable {
    /// Checks a table by itself. The error says which key, and what to do.
    pub(crate) fn check(&self, name: &str) -> Result<(), (String, String)> {
        let refused = |key: &str, why: &str| Err((key.to_owned(), why.to_owned()));
        if self.runtime.is_none() {
            let Some(key) = self.first_of_named() else { return Ok(()) };
            let why =
                format!("`{key}` needs a named agent: give [agents.{name}] a `runtime`, such as \"native\"");
            return Err((key, why));
        }
        if self.disabled {
            return refused("disabled", "`disabled` is for built-in sub-agents, which have no `runtime`");
        }
        if self.host.is_some() && !self.hosts.is_empty() {
            return refused("hosts", "`host` and `hosts` exclude each other");
        }
        let budget = [self.budget.turn, self.budget.session, self.budget.day];
        match budget.into_iter().flatten().all(|cost| cost.is_finite() && cost > 0.0) {
            true => Ok(()),
            false => refused("budget", "`budget` must be a number of US dollars above 0"),
        }
    }

    /// The first key that only a named agent has.
    fn first_of_named(&self) -> Option<String> {
        fn is_set(value: &Value) -> bool {
            match value {
                Value::Null | Value::Bool(false) => false,
                Value::Array(items) => !items.is_empty(),
                Value::Object(members) => members.values().any(is_set),
                Value::Bool(true) | Value::Number(_) | Value::String(_) => true,
            }
        }
        let table = serde_json::to_value(self).unwrap_or_default();
        let mut keys = table.as_object()?.iter().filter(|(_, value)| is_set(value)).map(|(key, _)| key);
        keys.find(|key| !SUB_AGENT_KEYS.contains(&key.as_str())).cloned()
    }

    /// Machines of the agent; none is the one of its runtime.
    pub(crate) fn pool(&self) -> &[String] {
        &self.hosts
    }

    /// Machine of the agent, the first one of a pool.
    pub(crate) fn host(&self) -> Option<&String> {
        self.host.as_ref().or_else(|| self.hosts.first())
    }

    /// Maximum number of steps of a turn.
    pub(crate) fn max_steps(&self) -> Option<u32> {
        self.max_autopilot_continues.or(self.turn.max_steps)
    }

    /// Adds to an order what only a named agent has. `home` is what its paths are relative to.
    pub(crate) fn complete(&self, order: &mut AgentOrder, home: &Path) -> Result<()> {
        order.fallback_models.clone_from(&self.fallback_models);
        order.extra.extend(self.args.iter().cloned());
        order.env.retain(|(name, _)| !self.env.contains_key(name));
        order.env.extend(self.env.clone());
        order.sandbox = self.sandbox;
        if let Some(file) = &self.system_prompt_file {
            let path = home.join(file);
            let text = hangar_disk::read_text(&path, SYSTEM_PROMPT_BYTES)
                .with_context(|| format!("cannot read the system prompt in {}", path.display()))?;
            order.system = Some(text);
        }
        if let (Some(cost), Some(NATIVE)) = (self.budget.session, self.runtime.as_deref()) {
            order.extra.push(format!("--max-cost={cost}"));
        }
        Ok(())
    }
}

/// A named agent as a role that a session of Hangar's own agent plays. `None` if there is no agent of that name.
pub(crate) fn definition(settings: &Settings, name: &str) -> Result<Option<AgentDefinition>> {
    let config = RuntimesConfig::load(settings)?;
    let Some(agent) = config.named.get(name) else { return Ok(None) };
    let runtime = agent.runtime.as_deref().unwrap_or_default();
    if runtime != NATIVE {
        bail!(
            "agent `{name}` runs on {runtime}; `{} run --agent {name}`, the portal and `session.create` of an SDK \
             start it",
            settings.program
        );
    }
    let mut order = AgentOrder::new(String::new(), settings.home.clone());
    agent.complete(&mut order, &settings.home)?;
    let tools = match agent.tools.available_tools.is_empty() {
        true => AgentTools::Inherited,
        false => AgentTools::Only(agent.tools.available_tools.clone()),
    };
    Ok(Some(AgentDefinition {
        id: name.to_owned(),
        name: name.to_owned(),
        display_name: name.to_owned(),
        description: agent.description.clone().unwrap_or_default(),
        prompt: order.system.unwrap_or_default(),
        tools,
        models: agent.turn.model.iter().chain(&agent.fallback_models).cloned().collect(),
        effort: agent.turn.effort.clone(),
        mcp_servers: mcp_servers(agent.tools.mcp_config.as_deref(), &settings.home)?,
        skills: Vec::new(),
        briefing: String::new(),
        model_invocable: false,
        user_invocable: true,
        source: AgentSource::File(AgentFile { path: settings.config_path(), owner: AgentOwner::User }),
    }))
}

/// MCP servers of a configuration: JSON, or a file.
fn mcp_servers(config: Option<&str>, home: &Path) -> Result<Map<String, Value>> {
    let Some(config) = config else { return Ok(Map::new()) };
    let text = match config.trim_start().starts_with('{') {
        true => config.to_owned(),
        false => {
            let path = home.join(config.trim_start_matches('@'));
            hangar_disk::read_text(&path, SYSTEM_PROMPT_BYTES)
                .with_context(|| format!("cannot read the MCP servers in {}", path.display()))?
        }
    };
    let parsed: Value = serde_json::from_str(&text).context("`mcp_config` is not JSON")?;
    Ok(parsed.get("mcpServers").and_then(Value::as_object).cloned().unwrap_or_default())
}

/// Checks the named agents against the runtimes that exist.
pub(crate) fn check(agents: &BTreeMap<String, AgentTable>, runtimes: &[&str]) -> Result<()> {
    for (name, agent) in agents {
        if let Err((_, why)) = agent.check(name) {
            bail!("[agents.{name}] is invalid: {why}");
        }
        let Some(runtime) = agent.runtime.as_deref() else { continue };
        if runtimes.contains(&name.as_str()) {
            bail!("[agents.{name}] has the name of a runtime; a named agent needs another one");
        }
        if !runtimes.contains(&runtime) {
            bail!("[agents.{name}] has the runtime `{runtime}`; there are {}", runtimes.join(", "));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(text: &str, says: &str) {
        let agents: BTreeMap<String, AgentTable> = toml::from_str(text).unwrap();
        let error = check(&agents, &["native", "claude"]).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn a_table_that_makes_no_agent_is_named() {
        check_refused(
            "[a]\nruntime = \"codex\"",
            "[agents.a] has the runtime `codex`; there are native, claude",
        );
        check_refused("[claude]\nruntime = \"claude\"", "[agents.claude] has the name of a runtime");
        check_refused(
            "[explore]\nhosts = [\"a\"]",
            "`hosts` needs a named agent: give [agents.explore] a `runtime`",
        );
        check_refused("[a]\nruntime = \"claude\"\nhost = \"x\"\nhosts = [\"y\"]", "exclude each other");
        check_refused("[a]\nruntime = \"claude\"\ndisabled = true", "`disabled` is for built-in sub-agents");
        check_refused("[a]\nruntime = \"claude\"\nbudget = { day = 0 }", "`budget` must be");
    }
}
