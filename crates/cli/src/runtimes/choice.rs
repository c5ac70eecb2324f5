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
use super::config::{RuntimeConfig, RuntimesConfig, SwitchSettings, ToolSettings, TurnSettings};
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
    ssh: Option<String>,
    turn: TurnSettings,
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
    /// Host by ssh that it was opened on.
    pub(crate) host: Option<&'a str>,
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
            ssh: args.agent.ssh.clone(),
            turn: TurnSettings {
                model: args.agent.model.clone(),
                effort: args.agent.effort.map(|effort| effort.as_str().to_owned()),
                turn_timeout: args.limits.turn_timeout,
                stall_timeout: args.limits.stall_timeout,
                tool_timeout: args.limits.tool_timeout,
                progress_timeout: args.limits.progress_timeout,
                stop_without_progress: args.limits.stop_without_progress.then_some(true),
                startup_timeout: args.limits.startup_timeout,
                max_steps: args.limits.max_steps,
            },
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
        let name = agent.value.as_deref().unwrap_or(&runtime.value);
        let named = config.named.get(name);
        let from = Tables {
            named: named.map(|table| (name, table)),
            runtime: (&runtime.value, config.runtime(name)),
            all: config,
        };
        let (typed, options, tools) = (args.turn, args.options, args.tools);
        let usual = TurnLimits::default();
        let own = from.runtime.1;
        let ssh = [named.and_then(AgentTable::host).cloned(), own.ssh.ssh.clone(), None];
        let steps = [named.and_then(AgentTable::max_steps), own.turn.max_steps, config.turn.max_steps];
        let cost = [named.and_then(|named| named.budget.turn), own.budget_usd, config.budget_usd];
        let servers = |table: &ToolSettings| {
            said(table.mcp_config.clone()).map(|servers| McpServers(config.resolved(servers)))
        };
        Ok(Self {
            model: from
                .turn("--model", said(typed.model.clone()), |table| said(table.model.clone()), None)
                .unless_before(before.and_then(|before| before.model)),
            effort: from
                .turn("--effort", typed.effort.clone(), |table| said(table.effort.clone()), None)
                .unless_before(before.and_then(|before| before.effort)),
            // The conversation is on the host of the pool that the session was opened on.
            ssh: from.pick("--ssh", args.ssh, ssh, None).unless_before(
                before
                    .and_then(|before| before.host)
                    .filter(|host| named.is_some_and(|named| named.pool().iter().any(|other| other == host))),
            ),
            turn_timeout: from.seconds("--turn-timeout", &typed, |table| table.turn_timeout, usual.turn),
            stall_timeout: from.seconds("--stall-timeout", &typed, |table| table.stall_timeout, usual.stall),
            tool_timeout: from.seconds("--tool-timeout", &typed, |table| table.tool_timeout, usual.tool),
            progress_timeout: from.seconds(
                "--progress-timeout",
                &typed,
                |table| table.progress_timeout,
                usual.progress,
            ),
            stop_without_progress: from.turn(
                "--stop-without-progress",
                typed.stop_without_progress,
                |table| table.stop_without_progress,
                Some(usual.stop_without_progress),
            ),
            startup_timeout: from.seconds(
                "--startup-timeout",
                &typed,
                |table| table.startup_timeout,
                usual.startup,
            ),
            max_steps: from.pick("--max-steps", typed.max_steps, steps, usual.steps),
            budget_usd: from.pick("--budget", args.budget, cost, usual.budget_usd),
            bare: from.switch("--bare", options.bare, |table| table.bare),
            stream: from.switch("--stream", options.stream, |table| table.stream),
            builtin_mcp: from.switch("--no-builtin-mcp", options.builtin_mcp, |table| table.builtin_mcp),
            agents_md: from.switch("--no-agents-md", options.agents_md, |table| table.agents_md),
            persona: from.switch("--persona", said(options.persona), |table| said(table.persona.clone())),
            experimental: from.switch("--experimental", options.experimental, |table| table.experimental),
            allow_tools: match args.allow_all {
                true => Sourced { value: None, source: ValueSource::Flag("--allow-all-tools") },
                false => from.list("--allow-tool", tools.allow, |table| &table.allow_tools),
            },
            deny_tools: from.list("--deny-tool", tools.deny, |table| &table.deny_tools),
            available_tools: from.list("--available-tools", tools.available, |table| &table.available_tools),
            excluded_tools: from.list("--excluded-tools", tools.excluded, |table| &table.excluded_tools),
            mcp_config: from.tools("--mcp-config", args.mcp_config.map(McpServers), servers),
            agent,
            runtime,
        }
        .guarded())
    }

    /// Keeps a named agent from the MCP servers that come with its runtime, so that it opens no pull requests that nobody asked
    /// for.
    fn guarded(mut self) -> Self {
        if let (Some(name), None) = (&self.agent.value, self.builtin_mcp.value) {
            self.builtin_mcp = Sourced { value: Some(false), source: ValueSource::Named(name.clone()) };
        }
        self
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
        let (runtime, named) = (config.runtime(self.name()), config.named.get(self.name()));
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
        order.extra.clone_from(&runtime.args);
        order.env = runtime.env.clone().into_iter().collect();
        order.host = host;
        if let Some(named) = named {
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
            host: None,
            agent: config.named.contains_key(name).then_some(name),
            model: None,
            effort: None,
        }),
    )
}

/// Host of an agent from the configuration alone.
pub(crate) fn host_of(config: &RuntimesConfig, name: &str) -> Host {
    let named = config.named.get(name).and_then(AgentTable::host);
    ssh_host(named.or(config.runtime(name).ssh.ssh.as_ref()).map(String::as_str), None, config, name)
}

/// Host of a pool, by its name.
pub(crate) fn host_named(config: &RuntimesConfig, name: &str, target: &str) -> Host {
    ssh_host(Some(target), None, config, name)
}

fn ssh_host(target: Option<&str>, port: Option<u16>, config: &RuntimesConfig, name: &str) -> Host {
    let Some(target) = target else { return Host::Local };
    let ssh = &config.runtime(name).ssh;
    Host::Ssh(Ssh {
        target: target.to_owned(),
        host_keys: ssh.ssh_host_keys,
        port: port.or(ssh.ssh_port),
        options: ssh.ssh_options.clone(),
    })
}

/// A word that is set: an empty one is the same as none.
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

/// Tables of `config.toml` that settings of an agent come from: that of the named agent, if there is one, that of its runtime, and the
/// one for all agents.
struct Tables<'a> {
    named: Option<(&'a str, &'a AgentTable)>,
    runtime: (&'a str, &'a RuntimeConfig),
    all: &'a RuntimesConfig,
}

impl Tables<'_> {
    fn turn<T>(
        &self,
        flag: &'static str,
        typed: Option<T>,
        of: impl Fn(&TurnSettings) -> Option<T>,
        usual: Option<T>,
    ) -> Sourced<Option<T>> {
        let named = self.named.and_then(|(_, table)| of(&table.turn));
        self.pick(flag, typed, [named, of(&self.runtime.1.turn), of(&self.all.turn)], usual)
    }

    /// A number of seconds. Zero is how people write "never".
    fn seconds(
        &self,
        flag: &'static str,
        typed: &TurnSettings,
        of: impl Fn(&TurnSettings) -> Option<f64>,
        usual: Option<Duration>,
    ) -> Sourced<Option<f64>> {
        let usual = usual.map(|limit| limit.as_secs_f64());
        let picked = self.turn(flag, of(typed), of, usual);
        Sourced { value: picked.value.filter(|seconds| *seconds != 0.0), ..picked }
    }

    fn switch<T>(
        &self,
        flag: &'static str,
        typed: Option<T>,
        of: impl Fn(&SwitchSettings) -> Option<T>,
    ) -> Sourced<Option<T>> {
        let named = self.named.and_then(|(_, table)| of(&table.switches));
        self.pick(flag, typed, [named, of(&self.runtime.1.switches), None], None)
    }

    fn tools<T>(
        &self,
        flag: &'static str,
        typed: Option<T>,
        of: impl Fn(&ToolSettings) -> Option<T>,
    ) -> Sourced<Option<T>> {
        let named = self.named.and_then(|(_, table)| of(&table.tools));
        self.pick(flag, typed, [named, of(&self.runtime.1.tools), None], None)
    }

    /// A list of tools. An empty one is the same as none.
    fn list(
        &self,
        flag: &'static str,
        typed: Vec<String>,
        of: impl Fn(&ToolSettings) -> &Vec<String>,
    ) -> Sourced<Option<Vec<String>>> {
        let set = |list: Vec<String>| Some(list).filter(|list| !list.is_empty());
        self.tools(flag, set(typed), |table| set(of(table).clone()))
    }

    /// The first value that is set, with its origin: by the flag, by the tables in their order, by default.
    fn pick<T>(
        &self,
        flag: &'static str,
        typed: Option<T>,
        [named, runtime, all]: [Option<T>; 3],
        usual: Option<T>,
    ) -> Sourced<Option<T>> {
        let own = self.named.map(|(name, _)| ValueSource::Named(name.to_owned()));
        let candidates = [
            (typed, ValueSource::Flag(flag)),
            (named, own.unwrap_or(ValueSource::Default)),
            (runtime, ValueSource::Agent(self.runtime.0.to_owned())),
            (all, ValueSource::AgentRuntimes),
        ];
        let set = candidates.into_iter().find(|(value, _)| value.is_some());
        let (value, source) = set.unwrap_or((usual, ValueSource::Default));
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

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"
[runtimes]
stall_timeout = 7
effort = "low"
[runtimes.claude]
model = "sonnet"
args = ["--a"]
env = { A = "1", B = "1" }
[agents.reviewer]
runtime = "claude"
model = "opus"
max_autopilot_continues = 3
deny_tools = ["shell"]
args = ["--b"]
env = { B = "2" }
[agents.plain]
runtime = "claude"
"#;

    /// Checks a line of the explanation: a name, the value and its origin.
    #[track_caller]
    fn check(agent: &str, name: &str, value: &str, source: &str) {
        let config = RuntimesConfig::parse(CONFIG).unwrap();
        let lines = configured(&config, agent).unwrap().lines();
        let line = lines.iter().find(|line| line.starts_with(name)).expect("a line of that name");
        let words: Vec<&str> = line[name.len()..].splitn(2, value).map(str::trim).collect();
        assert_eq!(words, ["", source], "{line}");
    }

    #[test]
    fn settings_of_an_agent_win_over_those_of_its_runtime_and_those_over_the_common_ones() {
        check("reviewer", "model", "opus", "[agents.reviewer] of config.toml");
        check("plain", "model", "sonnet", "[runtimes.claude] of config.toml");
        check("reviewer", "max steps", "3", "[agents.reviewer] of config.toml");
        check("reviewer", "deny tools", "shell", "[agents.reviewer] of config.toml");
        check("reviewer", "effort", "low", "[runtimes] of config.toml");
        check("claude", "stall timeout", "7", "[runtimes] of config.toml");
        check("claude", "tool timeout", "1800", "default");
    }

    #[test]
    fn only_a_named_agent_is_kept_from_the_servers_of_its_runtime() {
        check("plain", "builtin mcp", "false", "[agents.plain] of config.toml");
        let config = RuntimesConfig::parse(CONFIG).unwrap();
        assert_eq!(configured(&config, "claude").unwrap().builtin_mcp.value, None);
    }

    #[test]
    fn arguments_of_an_agent_follow_those_of_its_runtime_and_its_variables_replace_them() {
        let config = RuntimesConfig::parse(CONFIG).unwrap();
        let choice = configured(&config, "reviewer").unwrap();
        let order = choice.order(&config, String::new(), "/".into(), Host::Local).unwrap();
        assert_eq!(order.extra, ["--a", "--b"]);
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(order.env, [own("A", "1"), own("B", "2")]);
    }
}
