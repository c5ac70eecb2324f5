//! Choice of agent, model and host: from the flags, the session, `config.toml` and the defaults, in that order. Every
//! value carries its origin.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use hangar_runtimes::host::{Host, Ssh};
use hangar_runtimes::options::AgentOptions;
use hangar_runtimes::runtime::{AgentOrder, ToolPolicy, TurnLimits};
use serde::Serialize;

use super::args::RunWithArgs;
use super::config::RuntimesConfig;
use super::mcp_config::mcp_config;
use super::named::AgentTable;
use crate::args::Switch;

/// Default agent.
pub(crate) const NATIVE: &str = "native";

/// Value with its origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) source: ValueSource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueSource {
    Flag(&'static str),
    /// The resumed session.
    Session,
    /// The table of the named agent.
    Named(String),
    /// The table of the runtime.
    Agent(String),
    /// The table for all agents.
    AgentRuntimes,
    Default,
}

impl std::fmt::Display for ValueSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ValueSource::Flag(name) => f.write_str(name),
            ValueSource::Session => f.write_str("the session"),
            ValueSource::Named(name) => write!(f, "[agents.{name}] of config.toml"),
            ValueSource::Agent(name) => write!(f, "[runtimes.{name}] of config.toml"),
            ValueSource::AgentRuntimes => f.write_str("[runtimes] of config.toml"),
            ValueSource::Default => f.write_str("default"),
        }
    }
}

impl Serialize for ValueSource {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunChoice {
    /// The named agent, if one was chosen.
    pub(crate) agent: Sourced<Option<String>>,
    pub(crate) runtime: Sourced<String>,
    pub(crate) model: Sourced<Option<String>>,
    pub(crate) effort: Sourced<Option<String>>,
    pub(crate) ssh: Sourced<Option<String>>,
    /// Seconds; absent is never.
    pub(crate) turn_timeout: Sourced<Option<f64>>,
    pub(crate) stall_timeout: Sourced<Option<f64>>,
    pub(crate) tool_timeout: Sourced<Option<f64>>,
    pub(crate) progress_timeout: Sourced<Option<f64>>,
    pub(crate) stop_without_progress: Sourced<Option<bool>>,
    pub(crate) startup_timeout: Sourced<Option<f64>>,
    pub(crate) max_steps: Sourced<Option<u32>>,
    pub(crate) budget_usd: Sourced<Option<f64>>,
    pub(crate) bare: Sourced<Option<bool>>,
    pub(crate) stream: Sourced<Option<bool>>,
    pub(crate) builtin_mcp: Sourced<Option<bool>>,
    pub(crate) agents_md: Sourced<Option<bool>>,
    pub(crate) persona: Sourced<Option<String>>,
    pub(crate) experimental: Sourced<Option<bool>>,
    pub(crate) allow_tools: Sourced<Option<Vec<String>>>,
    pub(crate) deny_tools: Sourced<Option<Vec<String>>>,
    pub(crate) available_tools: Sourced<Option<Vec<String>>>,
    pub(crate) excluded_tools: Sourced<Option<Vec<String>>>,
    pub(crate) mcp_config: Sourced<Option<McpServers>>,
}

/// MCP configuration: JSON, or the path of a file. It may hold secrets, so it is never shown.
#[derive(Debug, Clone)]
pub(crate) struct McpServers(String);

impl Serialize for McpServers {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("given")
    }
}

/// Values that were requested explicitly.
#[derive(Default)]
struct Requested {
    runtime: Option<String>,
    agent: Option<String>,
    model: Option<String>,
    effort: Option<String>,
    ssh: Option<String>,
    turn_timeout: Option<f64>,
    stall_timeout: Option<f64>,
    tool_timeout: Option<f64>,
    progress_timeout: Option<f64>,
    stop_without_progress: Option<bool>,
    startup_timeout: Option<f64>,
    max_steps: Option<u32>,
    budget: Option<f64>,
    options: AgentOptions,
    /// Whether all tools are allowed, whatever the configuration allows.
    allow_all: bool,
    tools: ToolPolicy,
    mcp_config: Option<String>,
}

/// Agent and model of a session that is resumed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResumedAgent<'a> {
    pub(crate) runtime: &'a str,
    /// Named agent that it was opened with.
    pub(crate) agent: Option<&'a str>,
    /// Its requested model, for agents that do not remember it.
    pub(crate) model: Option<&'a str>,
    pub(crate) effort: Option<&'a str>,
}

impl RunChoice {
    pub(crate) fn make(
        args: &RunWithArgs,
        config: &RuntimesConfig,
        before: Option<ResumedAgent<'_>>,
    ) -> Result<Self> {
        let (agent, persona) = named_or_persona(args, config)?;
        let asked = Requested {
            runtime: args.agent.runtime.clone(),
            agent,
            model: args.agent.model.clone(),
            effort: args.agent.effort.map(|effort| effort.as_str().to_owned()),
            ssh: args.agent.ssh.clone(),
            turn_timeout: args.limits.turn_timeout,
            stall_timeout: args.limits.stall_timeout,
            tool_timeout: args.limits.tool_timeout,
            progress_timeout: args.limits.progress_timeout,
            stop_without_progress: args.limits.stop_without_progress.then_some(true),
            startup_timeout: args.limits.startup_timeout,
            max_steps: args.limits.max_steps,
            budget: args.limits.budget,
            options: AgentOptions {
                bare: args.switches.bare.then_some(true),
                stream: args.switches.stream.map(|stream| stream == Switch::On),
                builtin_mcp: args.switches.no_builtin_mcp.then_some(false),
                agents_md: args.switches.no_agents_md.then_some(false),
                persona,
                experimental: args.switches.experimental.then_some(true),
            },
            allow_all: args.tools.allow_all_tools,
            tools: ToolPolicy {
                allow: args.tools.allow_tool.clone(),
                deny: args.tools.deny_tool.clone(),
                available: args.tools.available_tools.clone(),
                excluded: args.tools.excluded_tools.clone(),
            },
            mcp_config: args.tools.mcp_config.clone(),
        };
        Self::of(asked, config, before)
    }

    fn of(args: Requested, config: &RuntimesConfig, before: Option<ResumedAgent<'_>>) -> Result<Self> {
        let (agent, runtime) = chosen_agent(&args, config, before)?;
        let chosen = agent.clone();
        let name = agent.value.clone().unwrap_or_else(|| runtime.value.clone());
        let named = config.named.get(&name).cloned();
        let agent = config.of(&name);
        let all = config.common();
        let usual = TurnLimits::default();
        let from = Sources { name, runtime: runtime.value.clone(), named };
        let seconds = |limit: Option<Duration>| limit.map(|limit| limit.as_secs_f64());
        Ok(Self {
            model: from
                .pick(("--model", said(args.model)), said(agent.model), said(all.model), None)
                .unless_before(before.and_then(|before| before.model)),
            effort: from
                .pick(("--effort", args.effort), said(agent.effort), said(all.effort), None)
                .unless_before(before.and_then(|before| before.effort)),
            ssh: from.pick(("--ssh", args.ssh), agent.ssh, None, None),
            turn_timeout: from
                .pick(
                    ("--turn-timeout", args.turn_timeout),
                    agent.turn_timeout,
                    all.turn_timeout,
                    seconds(usual.turn),
                )
                .none_if_zero(),
            stall_timeout: from
                .pick(
                    ("--stall-timeout", args.stall_timeout),
                    agent.stall_timeout,
                    all.stall_timeout,
                    seconds(usual.stall),
                )
                .none_if_zero(),
            tool_timeout: from
                .pick(
                    ("--tool-timeout", args.tool_timeout),
                    agent.tool_timeout,
                    all.tool_timeout,
                    seconds(usual.tool),
                )
                .none_if_zero(),
            progress_timeout: from
                .pick(
                    ("--progress-timeout", args.progress_timeout),
                    agent.progress_timeout,
                    all.progress_timeout,
                    seconds(usual.progress),
                )
                .none_if_zero(),
            stop_without_progress: from.pick(
                ("--stop-without-progress", args.stop_without_progress),
                agent.stop_without_progress,
                all.stop_without_progress,
                Some(usual.stop_without_progress),
            ),
            startup_timeout: from
                .pick(
                    ("--startup-timeout", args.startup_timeout),
                    agent.startup_timeout,
                    all.startup_timeout,
                    seconds(usual.startup),
                )
                .none_if_zero(),
            max_steps: from.pick(
                ("--max-steps", args.max_steps),
                agent.max_steps,
                all.max_steps,
                usual.steps,
            ),
            budget_usd: from.pick(
                ("--budget", args.budget),
                agent.budget_usd,
                all.budget_usd,
                usual.budget_usd,
            ),
            bare: from.pick(("--bare", args.options.bare), agent.bare, None, None),
            stream: from.pick(("--stream", args.options.stream), agent.stream, None, None),
            builtin_mcp: from.pick(
                ("--no-builtin-mcp", args.options.builtin_mcp),
                agent.builtin_mcp,
                None,
                None,
            ),
            agents_md: from.pick(("--no-agents-md", args.options.agents_md), agent.agents_md, None, None),
            persona: from.pick(("--persona", said(args.options.persona)), said(agent.persona), None, None),
            experimental: from.pick(
                ("--experimental", args.options.experimental),
                agent.experimental,
                None,
                None,
            ),
            allow_tools: match args.allow_all {
                true => Sourced { value: None, source: ValueSource::Flag("--allow-all-tools") },
                false => from.pick_list(("--allow-tool", args.tools.allow), agent.allow_tools),
            },
            deny_tools: from.pick_list(("--deny-tool", args.tools.deny), agent.deny_tools),
            available_tools: from
                .pick_list(("--available-tools", args.tools.available), agent.available_tools),
            excluded_tools: from.pick_list(("--excluded-tools", args.tools.excluded), agent.excluded_tools),
            mcp_config: from.pick(
                ("--mcp-config", args.mcp_config.map(McpServers)),
                said(agent.mcp_config).map(|servers| McpServers(config.resolved(servers))),
                None,
                None,
            ),
            agent: chosen,
            runtime,
        })
    }

    /// Name of the agent: that of the named one, or of the runtime.
    pub(crate) fn name(&self) -> &str {
        self.agent.value.as_deref().unwrap_or(&self.runtime.value)
    }

    pub(crate) fn limits(&self) -> Result<TurnLimits> {
        let duration = |what: &str, seconds: Option<f64>| match seconds.map(Duration::try_from_secs_f64) {
            None => Ok(None),
            Some(Ok(duration)) => Ok(Some(duration)),
            Some(Err(_)) => bail!("{what} is not a duration"),
        };
        Ok(TurnLimits {
            turn: duration("the time-out of turns", self.turn_timeout.value)?,
            stall: duration("the time-out of silence", self.stall_timeout.value)?,
            tool: duration("the time-out of commands", self.tool_timeout.value)?,
            progress: duration("the time-out of progress", self.progress_timeout.value)?,
            stop_without_progress: self.stop_without_progress.value.unwrap_or(false),
            startup: duration("the time-out of the start", self.startup_timeout.value)?,
            steps: self.max_steps.value,
            budget_usd: self.budget_usd.value,
        })
    }

    pub(crate) fn host(&self, args: &RunWithArgs, config: &RuntimesConfig) -> Host {
        ssh_host(self.ssh.value.as_deref(), args.agent.ssh_port, config, self.name())
    }

    /// Order for a session, as far as this choice determines it: the same for a run, a job and the portal.
    pub(crate) fn order(
        &self,
        config: &RuntimesConfig,
        id: String,
        workspace: PathBuf,
        host: Host,
    ) -> Result<AgentOrder> {
        let agent = config.of(self.name());
        let list = |said: &Sourced<Option<Vec<String>>>| said.value.clone().unwrap_or_default();
        let mut order = AgentOrder::new(id, workspace);
        order.model.clone_from(&self.model.value);
        order.effort.clone_from(&self.effort.value);
        order.limits = self.limits()?;
        order.options = AgentOptions {
            bare: self.bare.value,
            stream: self.stream.value,
            builtin_mcp: self.builtin_mcp.value,
            agents_md: self.agents_md.value,
            persona: self.persona.value.clone(),
            experimental: self.experimental.value,
        };
        order.tools = ToolPolicy {
            allow: list(&self.allow_tools),
            deny: list(&self.deny_tools),
            available: list(&self.available_tools),
            excluded: list(&self.excluded_tools),
        };
        let servers = self.mcp_config.value.as_ref();
        order.mcp_config = servers.map(|servers| mcp_config(&servers.0, &host)).transpose()?;
        order.extra = agent.args;
        order.env = agent.env.into_iter().collect();
        order.host = host;
        if let Some(named) = config.named.get(self.name()) {
            named.complete(&mut order, &config.directory)?;
        }
        Ok(order)
    }

    /// Switches, rules and servers that were set, for display.
    fn chosen(&self) -> Vec<(&'static str, String, &ValueSource)> {
        fn flag<'a>(
            name: &'static str,
            said: &'a Sourced<Option<bool>>,
        ) -> Option<(&'static str, String, &'a ValueSource)> {
            Some((name, said.value?.to_string(), &said.source))
        }
        fn list<'a>(
            name: &'static str,
            said: &'a Sourced<Option<Vec<String>>>,
        ) -> Option<(&'static str, String, &'a ValueSource)> {
            Some((name, said.value.as_ref()?.join(","), &said.source))
        }
        let persona = self.persona.value.clone().map(|name| ("persona", name, &self.persona.source));
        let servers = self
            .mcp_config
            .value
            .as_ref()
            .map(|_| ("mcp config", "given".to_owned(), &self.mcp_config.source));
        [
            flag("bare", &self.bare),
            flag("stream", &self.stream),
            flag("builtin mcp", &self.builtin_mcp),
            flag("agents.md", &self.agents_md),
            persona,
            flag("experimental", &self.experimental),
            list("allow tools", &self.allow_tools),
            list("deny tools", &self.deny_tools),
            list("available tools", &self.available_tools),
            list("excluded tools", &self.excluded_tools),
            servers,
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// One line per value: name, value, origin.
    pub(crate) fn lines(&self) -> Vec<String> {
        fn shown<T: ToString>(value: Option<&T>) -> String {
            value.map_or_else(|| "-".to_owned(), ToString::to_string)
        }
        let row =
            |name: &str, value: String, source: &ValueSource| format!("{name:<16} {value:<24} {source}");
        let mut lines = vec![
            row("agent", shown(self.agent.value.as_ref()), &self.agent.source),
            row("runtime", self.runtime.value.clone(), &self.runtime.source),
            row("model", shown(self.model.value.as_ref()), &self.model.source),
            row("effort", shown(self.effort.value.as_ref()), &self.effort.source),
            row("ssh", shown(self.ssh.value.as_ref()), &self.ssh.source),
            row("turn timeout", shown(self.turn_timeout.value.as_ref()), &self.turn_timeout.source),
            row("stall timeout", shown(self.stall_timeout.value.as_ref()), &self.stall_timeout.source),
            row("tool timeout", shown(self.tool_timeout.value.as_ref()), &self.tool_timeout.source),
            row(
                "progress timeout",
                shown(self.progress_timeout.value.as_ref()),
                &self.progress_timeout.source,
            ),
            row(
                "stop if stuck",
                shown(self.stop_without_progress.value.as_ref()),
                &self.stop_without_progress.source,
            ),
            row("startup timeout", shown(self.startup_timeout.value.as_ref()), &self.startup_timeout.source),
            row("max steps", shown(self.max_steps.value.as_ref()), &self.max_steps.source),
            row("budget in USD", shown(self.budget_usd.value.as_ref()), &self.budget_usd.source),
        ];
        lines.extend(self.chosen().into_iter().map(|(name, value, source)| row(name, value, source)));
        lines
    }
}

/// Choice for an agent from the configuration alone.
pub(crate) fn configured(config: &RuntimesConfig, name: &str) -> Result<RunChoice> {
    RunChoice::of(
        Requested::default(),
        config,
        Some(ResumedAgent {
            runtime: config.base(name),
            agent: config.named.contains_key(name).then_some(name),
            model: None,
            effort: None,
        }),
    )
}

/// Host of an agent from the configuration alone.
pub(crate) fn host_of(config: &RuntimesConfig, name: &str) -> Host {
    ssh_host(config.of(name).ssh.as_deref(), None, config, name)
}

/// Host of a pool, by its name.
pub(crate) fn host_named(config: &RuntimesConfig, name: &str, target: &str) -> Host {
    ssh_host(Some(target), None, config, name)
}

fn ssh_host(target: Option<&str>, port: Option<u16>, config: &RuntimesConfig, name: &str) -> Host {
    let Some(target) = target else { return Host::Local };
    let agent = config.of(name);
    Host::Ssh(Ssh {
        target: target.to_owned(),
        host_keys: agent.ssh_host_keys,
        port: port.or(agent.ssh_port),
        options: agent.ssh_options,
    })
}

/// Treats an empty word as unset, so that it can override a configured value.
fn said(word: Option<String>) -> Option<String> {
    word.filter(|word| !word.is_empty())
}

/// The named agent that `--agent` means, and the custom agent of the runtime: `--agent` names the former if there is one, and the
/// latter otherwise.
fn named_or_persona(args: &RunWithArgs, config: &RuntimesConfig) -> Result<(Option<String>, Option<String>)> {
    let Some(name) = &args.switches.agent else { return Ok((None, args.switches.persona.clone())) };
    let Some(agent) = config.named.get(name) else {
        if args.switches.persona.is_some() {
            bail!(
                "there is no [agents.{name}], so --agent means a custom agent of the runtime, as --persona does"
            );
        }
        return Ok((None, Some(name.clone())));
    };
    let base = agent.runtime.as_deref().unwrap_or_default();
    match &args.agent.runtime {
        Some(runtime) if runtime != base => bail!(
            "agent `{name}` of config.toml runs on {base}, not on {runtime}; --persona names a custom agent of {runtime}"
        ),
        Some(_) | None => Ok((Some(name.clone()), args.switches.persona.clone())),
    }
}

/// The named agent and the runtime of a session.
fn chosen_agent(
    args: &Requested,
    config: &RuntimesConfig,
    before: Option<ResumedAgent<'_>>,
) -> Result<(Sourced<Option<String>>, Sourced<String>)> {
    let none = || Sourced { value: None, source: ValueSource::Default };
    // A runtime may be asked for by the name of an agent.
    let split = |name: &str, source: ValueSource| {
        let runtime = Sourced { value: config.base(name).to_owned(), source: source.clone() };
        match config.named.contains_key(name) {
            true => (Sourced { value: Some(name.to_owned()), source }, runtime),
            false => (none(), runtime),
        }
    };
    let wanted = match (&args.agent, &args.runtime) {
        (Some(agent), _) => Some((agent, "--agent")),
        (None, Some(runtime)) => Some((runtime, "--runtime")),
        (None, None) => None,
    };
    Ok(match (wanted, before) {
        (Some((wanted, _)), Some(before)) if config.base(wanted) != before.runtime => {
            bail!("the session was started with {} and cannot continue with {wanted}", before.runtime)
        }
        (Some((wanted, flag)), Some(before)) => {
            let (agent, _) = split(wanted, ValueSource::Flag(flag));
            (agent, Sourced { value: before.runtime.to_owned(), source: ValueSource::Session })
        }
        (None, Some(before)) => {
            // An agent that is configured no more, or on another runtime now, leaves the runtime.
            let named = before.agent.filter(|name| config.base(name) == before.runtime);
            let named = named.filter(|name| config.named.contains_key(*name));
            let runtime = Sourced { value: before.runtime.to_owned(), source: ValueSource::Session };
            (Sourced { value: named.map(str::to_owned), source: ValueSource::Session }, runtime)
        }
        (Some((wanted, flag)), None) => split(wanted, ValueSource::Flag(flag)),
        (None, None) => match &config.default {
            Some(default) => split(default, ValueSource::AgentRuntimes),
            None => split(NATIVE, ValueSource::Default),
        },
    })
}

struct Sources {
    name: String,
    runtime: String,
    named: Option<AgentTable>,
}

impl Sources {
    /// Picks a list; an empty one counts as unset.
    fn pick_list(
        &self,
        (flag, typed): (&'static str, Vec<String>),
        agent: Vec<String>,
    ) -> Sourced<Option<Vec<String>>> {
        let given = |list: Vec<String>| Some(list).filter(|list| !list.is_empty());
        self.pick((flag, given(typed)), given(agent), None, None)
    }

    fn pick<T>(
        &self,
        (flag, typed): (&'static str, Option<T>),
        agent: Option<T>,
        all: Option<T>,
        usual: Option<T>,
    ) -> Sourced<Option<T>> {
        let (value, source) = if typed.is_some() {
            (typed, ValueSource::Flag(flag))
        } else if agent.is_some() {
            let own = self.named.as_ref().is_some_and(|named| named.sets(flag));
            let source = match own {
                true => ValueSource::Named(self.name.clone()),
                false => ValueSource::Agent(self.runtime.clone()),
            };
            (agent, source)
        } else if all.is_some() {
            (all, ValueSource::AgentRuntimes)
        } else {
            (usual, ValueSource::Default)
        };
        Sourced { value, source }
    }
}

impl Sourced<Option<String>> {
    /// Keeps the value of the resumed session, unless a flag sets another.
    fn unless_before(self, before: Option<&str>) -> Self {
        match (before, &self.source) {
            (
                Some(before),
                ValueSource::Session
                | ValueSource::Named(_)
                | ValueSource::Agent(_)
                | ValueSource::AgentRuntimes
                | ValueSource::Default,
            ) => Self { value: Some(before.to_owned()), source: ValueSource::Session },
            (None, _) | (_, ValueSource::Flag(_)) => self,
        }
    }
}

impl Sourced<Option<f64>> {
    /// Zero seconds is how people write "never".
    fn none_if_zero(self) -> Self {
        Self { value: self.value.filter(|seconds| *seconds != 0.0), ..self }
    }
}
