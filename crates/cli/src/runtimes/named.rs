//! `[agents.NAME]` of `config.toml`: named agents, and the models of built-in sub-agents.
//!
//! A table with a `runtime` is a named agent, which can be chosen wherever work is started. A table without one sets the model of
//! the sub-agent of that name.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hangar_agent::agents::{AgentDefinition, AgentSource, AgentTools};
use hangar_runtimes::runtime::AgentOrder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::choice::NATIVE;
use super::config::{RuntimeConfig, RuntimesConfig};
use crate::settings::Settings;

/// Bytes of the longest system prompt that is read from a file.
const SYSTEM_PROMPT_BYTES: u64 = 1 << 20;

/// `[agents.NAME]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentTable {
    /// Runtime of a named agent, such as claude or native. Without it, the table sets the model of a built-in sub-agent.
    pub(crate) runtime: Option<String>,
    /// What the agent is for.
    pub(crate) description: Option<String>,
    /// Model, by the runtime's own name for it.
    pub(crate) model: Option<String>,
    /// Reasoning effort.
    #[schemars(extend("enum" = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]))]
    pub(crate) effort: Option<String>,
    /// Whether the sub-agent is neither offered nor started.
    pub(crate) disabled: bool,
    /// Models that are tried in turn when one is overloaded or its quota is used up.
    pub(crate) fallback_models: Vec<String>,
    /// Tools to allow; without any rule, all are allowed.
    pub(crate) allow_tools: Vec<String>,
    /// Tools to deny; deny rules win.
    pub(crate) deny_tools: Vec<String>,
    /// The only tools that the model is offered.
    pub(crate) available_tools: Vec<String>,
    /// Tools that the model is not offered.
    pub(crate) excluded_tools: Vec<String>,
    /// MCP servers: JSON, or a file, relative to the home folder.
    pub(crate) mcp_config: Option<String>,
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
    /// The same by the name that Copilot has for it.
    pub(crate) max_autopilot_continues: Option<u32>,
    /// Whether the agent loads as little as possible: no hooks, plugins, memories and instruction files.
    pub(crate) bare: Option<bool>,
    /// Whether answers are streamed.
    pub(crate) stream: Option<bool>,
    /// Whether the MCP servers that come with the runtime are started. Off unless it is set, so that an agent does not open pull
    /// requests on its own.
    pub(crate) builtin_mcp: Option<bool>,
    /// Whether AGENTS.md and other instruction files of the workspace are read.
    pub(crate) agents_md: Option<bool>,
    /// Custom agent of the runtime whose role it plays.
    pub(crate) persona: Option<String>,
    /// Whether experimental features of the runtime are on.
    pub(crate) experimental: Option<bool>,
    /// Arguments to pass to the runtime unchanged.
    pub(crate) args: Vec<String>,
    /// Variables for the runtime.
    pub(crate) env: BTreeMap<String, String>,
}

/// Caps on the cost of a named agent, in US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
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
    pub(crate) fn check(&self, name: &str) -> Result<(), (&'static str, String)> {
        if self.runtime.is_none() {
            return match self.first_of_named() {
                Some(key) => Err((
                    key,
                    format!(
                        "`{key}` needs a named agent: give [agents.{name}] a `runtime`, such as \"native\""
                    ),
                )),
                None => Ok(()),
            };
        }
        if self.disabled {
            return Err((
                "disabled",
                "`disabled` is for built-in sub-agents, which have no `runtime`".to_owned(),
            ));
        }
        if self.host.is_some() && !self.hosts.is_empty() {
            return Err(("hosts", "`host` and `hosts` exclude each other".to_owned()));
        }
        let budget = [self.budget.turn, self.budget.session, self.budget.day];
        match budget.into_iter().flatten().all(|cost| cost.is_finite() && cost > 0.0) {
            true => Ok(()),
            false => Err(("budget", "`budget` must be a number of US dollars above 0".to_owned())),
        }
    }

    /// The first key that only a named agent has.
    fn first_of_named(&self) -> Option<&'static str> {
        let set = [
            ("description", self.description.is_some()),
            ("fallback_models", !self.fallback_models.is_empty()),
            ("allow_tools", !self.allow_tools.is_empty()),
            ("deny_tools", !self.deny_tools.is_empty()),
            ("available_tools", !self.available_tools.is_empty()),
            ("excluded_tools", !self.excluded_tools.is_empty()),
            ("mcp_config", self.mcp_config.is_some()),
            ("system_prompt_file", self.system_prompt_file.is_some()),
            ("sandbox", self.sandbox.is_some()),
            ("host", self.host.is_some()),
            ("hosts", !self.hosts.is_empty()),
            ("max_running", self.max_running.is_some()),
            ("labels", !self.labels.is_empty()),
            ("budget", self.budget != AgentBudget::default()),
            ("turn_timeout", self.turn_timeout.is_some()),
            ("stall_timeout", self.stall_timeout.is_some()),
            ("tool_timeout", self.tool_timeout.is_some()),
            ("progress_timeout", self.progress_timeout.is_some()),
            ("stop_without_progress", self.stop_without_progress.is_some()),
            ("startup_timeout", self.startup_timeout.is_some()),
            ("max_steps", self.max_steps.is_some()),
            ("max_autopilot_continues", self.max_autopilot_continues.is_some()),
            ("bare", self.bare.is_some()),
            ("stream", self.stream.is_some()),
            ("builtin_mcp", self.builtin_mcp.is_some()),
            ("agents_md", self.agents_md.is_some()),
            ("persona", self.persona.is_some()),
            ("experimental", self.experimental.is_some()),
            ("args", !self.args.is_empty()),
            ("env", !self.env.is_empty()),
        ];
        set.into_iter().find_map(|(key, given)| given.then_some(key))
    }

    /// Machines of the agent; none is the one of its runtime.
    pub(crate) fn pool(&self) -> &[String] {
        &self.hosts
    }

    /// Settings of the runtime with those of the agent, which win.
    pub(crate) fn over(&self, base: RuntimeConfig) -> RuntimeConfig {
        let list = |own: &Vec<String>, base: Vec<String>| if own.is_empty() { base } else { own.clone() };
        RuntimeConfig {
            model: self.model.clone().or(base.model),
            effort: self.effort.clone().or(base.effort),
            turn_timeout: self.turn_timeout.or(base.turn_timeout),
            stall_timeout: self.stall_timeout.or(base.stall_timeout),
            tool_timeout: self.tool_timeout.or(base.tool_timeout),
            progress_timeout: self.progress_timeout.or(base.progress_timeout),
            stop_without_progress: self.stop_without_progress.or(base.stop_without_progress),
            startup_timeout: self.startup_timeout.or(base.startup_timeout),
            max_steps: self.max_autopilot_continues.or(self.max_steps).or(base.max_steps),
            budget_usd: self.budget.turn.or(base.budget_usd),
            ssh: self.host.clone().or_else(|| self.hosts.first().cloned()).or(base.ssh),
            bare: self.bare.or(base.bare),
            stream: self.stream.or(base.stream),
            // The guard against pull requests that nobody asked for.
            builtin_mcp: Some(self.builtin_mcp.or(base.builtin_mcp).unwrap_or(false)),
            agents_md: self.agents_md.or(base.agents_md),
            persona: self.persona.clone().or(base.persona),
            experimental: self.experimental.or(base.experimental),
            allow_tools: list(&self.allow_tools, base.allow_tools),
            deny_tools: list(&self.deny_tools, base.deny_tools),
            available_tools: list(&self.available_tools, base.available_tools),
            excluded_tools: list(&self.excluded_tools, base.excluded_tools),
            mcp_config: self.mcp_config.clone().or(base.mcp_config),
            args: base.args.iter().chain(&self.args).cloned().collect(),
            env: base.env.into_iter().chain(self.env.clone()).collect(),
            ..base
        }
    }

    /// Whether the agent's own table sets the value that a flag would set.
    pub(crate) fn sets(&self, flag: &str) -> bool {
        match flag {
            "--model" => self.model.is_some(),
            "--effort" => self.effort.is_some(),
            "--ssh" => self.host.is_some() || !self.hosts.is_empty(),
            "--turn-timeout" => self.turn_timeout.is_some(),
            "--stall-timeout" => self.stall_timeout.is_some(),
            "--tool-timeout" => self.tool_timeout.is_some(),
            "--progress-timeout" => self.progress_timeout.is_some(),
            "--stop-without-progress" => self.stop_without_progress.is_some(),
            "--startup-timeout" => self.startup_timeout.is_some(),
            "--max-steps" => self.max_steps.or(self.max_autopilot_continues).is_some(),
            "--budget" => self.budget.turn.is_some(),
            "--bare" => self.bare.is_some(),
            "--stream" => self.stream.is_some(),
            "--no-builtin-mcp" => true,
            "--no-agents-md" => self.agents_md.is_some(),
            "--persona" => self.persona.is_some(),
            "--experimental" => self.experimental.is_some(),
            "--allow-tool" => !self.allow_tools.is_empty(),
            "--deny-tool" => !self.deny_tools.is_empty(),
            "--available-tools" => !self.available_tools.is_empty(),
            "--excluded-tools" => !self.excluded_tools.is_empty(),
            "--mcp-config" => self.mcp_config.is_some(),
            _ => false,
        }
    }

    /// Adds to an order what only a named agent has. `home` is what its paths are relative to.
    pub(crate) fn complete(&self, order: &mut AgentOrder, home: &Path) -> Result<()> {
        order.fallback_models.clone_from(&self.fallback_models);
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
    let tools = match agent.available_tools.is_empty() {
        true => AgentTools::Inherited,
        false => AgentTools::Only(agent.available_tools.clone()),
    };
    Ok(Some(AgentDefinition {
        id: name.to_owned(),
        name: name.to_owned(),
        display_name: name.to_owned(),
        description: agent.description.clone().unwrap_or_default(),
        prompt: order.system.unwrap_or_default(),
        tools,
        models: agent.model.iter().chain(&agent.fallback_models).cloned().collect(),
        effort: agent.effort.clone(),
        mcp_servers: mcp_servers(agent.mcp_config.as_deref(), &settings.home)?,
        skills: Vec::new(),
        briefing: String::new(),
        model_invocable: false,
        user_invocable: true,
        source: AgentSource::File(settings.config_path()),
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

    #[test]
    fn settings_of_the_agent_win_over_those_of_its_runtime() {
        let agent: AgentTable =
            toml::from_str("runtime = \"claude\"\nmodel = \"opus\"\nargs = [\"--b\"]").unwrap();
        let base = RuntimeConfig {
            model: Some("sonnet".to_owned()),
            effort: Some("low".to_owned()),
            args: vec!["--a".to_owned()],
            ..RuntimeConfig::default()
        };
        let merged = agent.over(base);
        assert_eq!(merged.model.as_deref(), Some("opus"));
        assert_eq!(merged.effort.as_deref(), Some("low"));
        assert_eq!(merged.args, ["--a", "--b"]);
        assert_eq!(merged.builtin_mcp, Some(false));
    }
}
