//! Agents behind one interface: which are available here, which one runs, and the output of its session.

pub(crate) mod args;
pub(crate) mod choice;
pub(crate) mod commands;
pub(crate) mod config;
mod drift;
mod mcp_config;
pub(crate) mod named;
pub(crate) mod native;
pub(crate) mod plan;
mod probe;
mod proofs;
pub(crate) mod record;
mod refused;
pub(crate) mod rehearsal;
pub(crate) mod run;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hangar_runtimes::acp::AcpRuntime;
use hangar_runtimes::agents;
use hangar_runtimes::environment::{Drift, ModelLister, RuntimeEnvironment, RuntimeSettings};
use hangar_runtimes::named::NamedAgent;
use hangar_runtimes::runtime::Runtime;

use crate::credentials;
use crate::redact::{self, Redactor};
use crate::settings::Settings;
use config::{RuntimeConfig, RuntimesConfig};
use native::Native;

/// All agents that this machine could use, ours first.
pub(crate) struct AgentRuntimes {
    runtimes: Vec<Arc<dyn Runtime>>,
    /// Agents with a name and settings of their own.
    named: Vec<Arc<dyn Runtime>>,
    pub(crate) config: RuntimesConfig,
    /// Knows the secrets of this machine.
    pub(crate) redactor: Redactor,
}

/// Models of Copilot CLI, listed on demand.
fn catalogue(settings: &Settings) -> ModelLister {
    let settings = settings.clone();
    ModelLister(Arc::new(move |lookup, env| {
        let seen =
            env.iter().fold(settings.clone(), |settings, (name, value)| settings.with_var(name, value));
        commands::copilot_models(&seen, lookup)
    }))
}

/// Settings of each agent.
fn agent_settings(config: &RuntimesConfig) -> BTreeMap<String, RuntimeSettings> {
    let settings = |(name, agent): (&String, &RuntimeConfig)| {
        let settings = RuntimeSettings {
            program: agent.program.clone(),
            env: agent.env.clone().into_iter().collect(),
            args: agent.args.clone(),
            host: choice::host_of(config, name),
        };
        (name.clone(), settings)
    };
    config.agents.iter().map(settings).collect()
}

/// Records unknown output of agents, for every front end.
fn drift(settings: &Settings, redactor: &Redactor) -> Drift {
    let (home, redactor) = (settings.home.clone(), redactor.clone());
    Drift(Arc::new(move |runtime, types| {
        let types = types.iter().map(|kind| redactor.text(kind.clone())).collect();
        drift::note_unknown(&home, runtime, &types);
    }))
}

impl AgentRuntimes {
    /// Checks the agents of a text of `config.toml`.
    pub(crate) fn check(settings: &Settings, text: &str) -> Result<()> {
        let mut config = RuntimesConfig::parse(text)?;
        config.directory.clone_from(&settings.home);
        let runtimes = Self::configured(settings, config)?;
        match &runtimes.config.default {
            Some(default) => runtimes.find(default).map(drop).context("`default` of [runtimes]"),
            None => Ok(()),
        }
    }

    pub(crate) fn assemble(settings: &Settings) -> Result<Self> {
        Self::configured(settings, RuntimesConfig::load(settings)?)
    }

    fn configured(settings: &Settings, config: RuntimesConfig) -> Result<Self> {
        let redactor = redact::of_machine(settings);
        let surroundings = RuntimeEnvironment {
            vars: settings.vars().clone(),
            ours: credentials::ours(settings),
            home: settings.var("HOME").unwrap_or("/").into(),
            agents: agent_settings(&config),
            now: jiff::Timestamp::now,
            cache: Some(settings.home.join("cache")),
            git: credentials::git(),
            catalogue: catalogue(settings),
            drift: drift(settings, &redactor),
        };
        // Our own agent redacts by itself, including its requests to the model.
        let mut runtimes: Vec<Arc<dyn Runtime>> = vec![Arc::new(Native::new(settings.clone()))];
        let guarded = |agent| redact::runtime(agent, settings, redactor.clone());
        runtimes.extend(agents::all(&surroundings).into_iter().map(guarded));
        for (name, agent) in &config.agents {
            let known = runtimes.iter().any(|runtime| runtime.card().name == name.as_str());
            match &agent.acp {
                Some(_) if known => {
                    bail!("[runtimes.{name}] cannot have `acp`: the name is taken by a built-in agent")
                }
                Some(command) => {
                    let [program, args @ ..] = command.as_slice() else {
                        bail!("[runtimes.{name}] has an `acp` without a program");
                    };
                    let acp = AcpRuntime::new(name, program, args.to_vec(), &surroundings);
                    runtimes.push(guarded(Arc::new(acp)));
                }
                None if known => {}
                None => bail!("[runtimes.{name}] is not a built-in agent and has no `acp` command"),
            }
        }
        let names: Vec<&str> = runtimes.iter().map(|runtime| &*runtime.card().name).collect();
        named::check(&config.named, &names)?;
        let named = config.named.iter().filter_map(|(name, agent)| {
            let base = runtimes
                .iter()
                .find(|runtime| runtime.card().name == agent.runtime.as_deref().unwrap_or(name))?;
            let agent = NamedAgent::new(name, agent.description.as_deref(), Arc::clone(base));
            Some(Arc::new(agent) as Arc<dyn Runtime>)
        });
        let named = named.collect();
        Ok(Self { runtimes, named, config, redactor })
    }

    /// The runtimes, without the agents that are based on them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Runtime>> {
        self.runtimes.iter()
    }

    /// The named agents.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Arc<dyn Runtime>> {
        self.named.iter()
    }

    /// A runtime or a named agent.
    pub(crate) fn find(&self, name: &str) -> Result<&Arc<dyn Runtime>> {
        let mut all = self.iter().chain(self.named());
        match all.find(|runtime| runtime.card().name == name) {
            Some(runtime) => Ok(runtime),
            None => {
                let all = self.iter().chain(self.named());
                let names: Vec<&str> = all.map(|runtime| &*runtime.card().name).collect();
                bail!("there is no agent `{name}`; there are {}", names.join(", "))
            }
        }
    }
}
