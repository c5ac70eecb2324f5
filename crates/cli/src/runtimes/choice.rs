//! Which agent works, and how: from the flags, the session, `config.toml` and the defaults, in that order. Every value
//! knows where it comes from.

use std::time::Duration;

use anyhow::{Result, bail};
use hangar_runtimes::host::{Host, Ssh};
use hangar_runtimes::runtime::Limits;
use serde::Serialize;

use super::args::RunWithArgs;
use super::config::RuntimesConfig;

/// The agent that works when nobody says which.
pub(crate) const NATIVE: &str = "native";

/// A value with who said so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Said<T> {
    pub(crate) value: T,
    pub(crate) source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Flag(&'static str),
    /// The session that goes on.
    Session,
    /// The table of the agent.
    Agent(String),
    /// The table for all agents.
    Fleet,
    Default,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Flag(name) => f.write_str(name),
            Source::Session => f.write_str("the session"),
            Source::Agent(name) => write!(f, "[runtimes.{name}] of config.toml"),
            Source::Fleet => f.write_str("[runtimes] of config.toml"),
            Source::Default => f.write_str("default"),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Choice {
    pub(crate) runtime: Said<String>,
    pub(crate) model: Said<Option<String>>,
    pub(crate) effort: Said<Option<String>>,
    pub(crate) ssh: Said<Option<String>>,
    /// Seconds; absent is never.
    pub(crate) turn_timeout: Said<Option<f64>>,
    pub(crate) stall_timeout: Said<Option<f64>>,
    pub(crate) startup_timeout: Said<Option<f64>>,
    pub(crate) max_steps: Said<Option<u32>>,
    pub(crate) budget_usd: Said<Option<f64>>,
}

/// What somebody asked for by themselves.
#[derive(Default)]
struct Asked {
    runtime: Option<String>,
    model: Option<String>,
    effort: Option<String>,
    ssh: Option<String>,
    turn_timeout: Option<f64>,
    stall_timeout: Option<f64>,
    startup_timeout: Option<f64>,
    max_steps: Option<u32>,
    budget: Option<f64>,
}

/// What a session that goes on was so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before<'a> {
    pub(crate) runtime: &'a str,
    /// What it was asked to use, for agents that do not remember it themselves.
    pub(crate) model: Option<&'a str>,
    pub(crate) effort: Option<&'a str>,
}

impl Choice {
    pub(crate) fn make(
        args: &RunWithArgs,
        config: &RuntimesConfig,
        before: Option<Before<'_>>,
    ) -> Result<Self> {
        let asked = Asked {
            runtime: args.runtime.clone(),
            model: args.model.clone(),
            effort: args.effort.map(|effort| effort.as_str().to_owned()),
            ssh: args.ssh.clone(),
            turn_timeout: args.turn_timeout,
            stall_timeout: args.stall_timeout,
            startup_timeout: args.startup_timeout,
            max_steps: args.max_steps,
            budget: args.budget,
        };
        Self::of(asked, config, before)
    }

    fn of(args: Asked, config: &RuntimesConfig, before: Option<Before<'_>>) -> Result<Self> {
        let runtime = match (&args.runtime, before.map(|before| before.runtime)) {
            (Some(wanted), Some(before)) if wanted != before => {
                bail!("the session was started with {before} and cannot continue with {wanted}")
            }
            (_, Some(before)) => Said { value: before.to_owned(), source: Source::Session },
            (Some(wanted), None) => Said { value: wanted.clone(), source: Source::Flag("--runtime") },
            (None, None) => match &config.default {
                Some(default) => Said { value: default.clone(), source: Source::Fleet },
                None => Said { value: NATIVE.to_owned(), source: Source::Default },
            },
        };
        let agent = config.of(&runtime.value);
        let all = config.common();
        let usual = Limits::default();
        let name = runtime.value.clone();
        let from = Sources { name };
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
            runtime,
        })
    }

    pub(crate) fn limits(&self) -> Result<Limits> {
        let duration = |what: &str, seconds: Option<f64>| match seconds.map(Duration::try_from_secs_f64) {
            None => Ok(None),
            Some(Ok(duration)) => Ok(Some(duration)),
            Some(Err(_)) => bail!("{what} is not a duration"),
        };
        Ok(Limits {
            turn: duration("the time-out of turns", self.turn_timeout.value)?,
            stall: duration("the time-out of silence", self.stall_timeout.value)?,
            startup: duration("the time-out of the start", self.startup_timeout.value)?,
            steps: self.max_steps.value,
            budget_usd: self.budget_usd.value,
        })
    }

    pub(crate) fn host(&self, args: &RunWithArgs, config: &RuntimesConfig) -> Host {
        ssh_host(self.ssh.value.as_deref(), args.ssh_port, config, &self.runtime.value)
    }

    /// A line per value: its name, itself, who said so.
    pub(crate) fn lines(&self) -> Vec<String> {
        fn shown<T: ToString>(value: Option<&T>) -> String {
            value.map_or_else(|| "-".to_owned(), ToString::to_string)
        }
        let row = |name: &str, value: String, source: &Source| format!("{name:<16} {value:<24} {source}");
        vec![
            row("runtime", self.runtime.value.clone(), &self.runtime.source),
            row("model", shown(self.model.value.as_ref()), &self.model.source),
            row("effort", shown(self.effort.value.as_ref()), &self.effort.source),
            row("ssh", shown(self.ssh.value.as_ref()), &self.ssh.source),
            row("turn timeout", shown(self.turn_timeout.value.as_ref()), &self.turn_timeout.source),
            row("stall timeout", shown(self.stall_timeout.value.as_ref()), &self.stall_timeout.source),
            row("startup timeout", shown(self.startup_timeout.value.as_ref()), &self.startup_timeout.source),
            row("max steps", shown(self.max_steps.value.as_ref()), &self.max_steps.source),
            row("budget in USD", shown(self.budget_usd.value.as_ref()), &self.budget_usd.source),
        ]
    }
}

/// What is configured for an agent that nobody typed anything for.
pub(crate) fn configured(config: &RuntimesConfig, name: &str) -> Result<Choice> {
    Choice::of(Asked::default(), config, Some(Before { runtime: name, model: None, effort: None }))
}

/// Where an agent works that nobody typed a host for.
pub(crate) fn host_of(config: &RuntimesConfig, name: &str) -> Host {
    ssh_host(config.of(name).ssh.as_deref(), None, config, name)
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

/// An empty word is how people take back what they said.
fn said(word: Option<String>) -> Option<String> {
    word.filter(|word| !word.is_empty())
}

struct Sources {
    name: String,
}

impl Sources {
    fn pick<T>(
        &self,
        (flag, typed): (&'static str, Option<T>),
        agent: Option<T>,
        all: Option<T>,
        usual: Option<T>,
    ) -> Said<Option<T>> {
        let (value, source) = if typed.is_some() {
            (typed, Source::Flag(flag))
        } else if agent.is_some() {
            (agent, Source::Agent(self.name.clone()))
        } else if all.is_some() {
            (all, Source::Fleet)
        } else {
            (usual, Source::Default)
        };
        Said { value, source }
    }
}

impl Said<Option<String>> {
    /// A session keeps what it had, unless somebody types something else.
    fn unless_before(self, before: Option<&str>) -> Self {
        match (before, &self.source) {
            (Some(before), Source::Session | Source::Agent(_) | Source::Fleet | Source::Default) => {
                Self { value: Some(before.to_owned()), source: Source::Session }
            }
            (None, _) | (_, Source::Flag(_)) => self,
        }
    }
}

impl Said<Option<f64>> {
    /// Zero seconds is how people write "never".
    fn none_if_zero(self) -> Self {
        Self { value: self.value.filter(|seconds| *seconds != 0.0), ..self }
    }
}
