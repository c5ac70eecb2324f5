//! The agents of a session: who there is, under which limits, and which models they may have.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use hangar_agent::agents::config::{AgentConfig, AgentLimits, ModelChoice, Models, Reporting};
use hangar_agent::agents::{AgentDefinition, builtin};
use hangar_agent::prompt::Environment;
use hangar_models::catalogue::Cache;
use hangar_models::config;

use crate::providers::{self, Chosen, Wanted};
use crate::settings::Settings;

/// What an agent's depth may be set to.
const DEPTHS: std::ops::RangeInclusive<u32> = 1..=128;
/// How old a list of models may be to say that one is not there.
const LIST_AGE: Duration = Duration::from_secs(24 * 3600);

/// What is known about agents before a session is put together.
pub(crate) struct AgentPlan {
    /// Those that files and clients bring, in the order in which they count: later ones replace earlier ones.
    pub(crate) custom: Vec<AgentDefinition>,
    /// Built-in agents that are not wanted.
    pub(crate) excluded: Vec<String>,
    /// The one whose role the session plays.
    pub(crate) selected: Option<String>,
    /// Whether nobody asked for a model, so that the one of that agent may be taken.
    pub(crate) may_choose_model: bool,
    pub(crate) reporting: Reporting,
    /// Where agents find other models than the session's.
    pub(crate) models: Option<Arc<dyn Models>>,
}

impl AgentPlan {
    pub(crate) fn definitions(&self) -> Vec<AgentDefinition> {
        let builtin = builtin::definitions().into_iter().filter(|agent| !self.excluded.contains(&agent.name));
        builtin.chain(self.custom.iter().cloned()).collect()
    }

    /// The agent whose role the session plays, if one was named.
    pub(crate) fn cast(&self) -> Result<Option<AgentDefinition>> {
        let Some(name) = &self.selected else { return Ok(None) };
        let definitions = self.definitions();
        let called =
            |agent: &AgentDefinition| [&agent.name, &agent.id].iter().any(|it| it.eq_ignore_ascii_case(name));
        let known = |agent: &&AgentDefinition| called(agent) && agent.user_invocable;
        match definitions.iter().rev().find(known) {
            Some(agent) => Ok(Some(agent.clone())),
            None => {
                let names: Vec<&str> = definitions.iter().map(|agent| agent.name.as_str()).collect();
                bail!("there is no agent `{name}`; there are {}", names.join(", "))
            }
        }
    }

    /// The model that the agent whose role is played would like, if it is there.
    pub(crate) fn model_of(&self, agent: &AgentDefinition) -> Option<ModelChoice> {
        let models = self.models.as_ref().filter(|_| self.may_choose_model)?;
        agent.models.iter().find_map(|name| models.find(name))
    }

    pub(crate) fn agent_config(
        &self,
        settings: &Settings,
        environment: &Environment,
        instructions: &str,
    ) -> Result<AgentConfig> {
        let usual = AgentLimits::default();
        let depth = settings.number("COPILOT_SUBAGENT_MAX_DEPTH")?.unwrap_or(usual.depth);
        if !DEPTHS.contains(&depth) {
            bail!("COPILOT_SUBAGENT_MAX_DEPTH is {depth}; it must be from 1 to 128");
        }
        let running = settings.number("COPILOT_SUBAGENT_MAX_CONCURRENT")?.unwrap_or(usual.running);
        if running == 0 {
            bail!("COPILOT_SUBAGENT_MAX_CONCURRENT is 0; it must be at least 1");
        }
        Ok(AgentConfig {
            definitions: self.definitions(),
            limits: AgentLimits { depth, running },
            reporting: self.reporting,
            environment: environment.clone(),
            instructions: instructions.to_owned(),
        })
    }
}

/// Finds models by asking someone who can choose one.
pub(crate) struct ModelFinder<F>(pub(crate) F);

impl<F: Fn(&str) -> Option<Chosen> + Send + Sync> Models for ModelFinder<F> {
    fn find(&self, name: &str) -> Option<ModelChoice> {
        let chosen = (self.0)(name)?;
        Some(ModelChoice {
            provider: chosen.provider,
            model: chosen.model,
            max_prompt_tokens: chosen.max_prompt_tokens,
        })
    }
}

/// The models of the configured providers.
pub(crate) fn configured_models(settings: &Settings) -> Arc<dyn Models> {
    let settings = settings.clone();
    Arc::new(ModelFinder(move |name: &str| {
        if !is_listed(&settings, name) {
            return None;
        }
        providers::choose(&settings, Wanted { model: Some(name), ..Wanted::default() }).ok()
    }))
}

/// Whether the provider's list, if there is one, has the model. Without a list every name may be right.
pub(crate) fn is_listed(settings: &Settings, name: &str) -> bool {
    let Ok(providers) = providers::configured(settings) else { return false };
    let Some((provider, model)) = config::find(&providers, name) else { return true };
    let cache = Cache { dir: settings.home.join("cache"), ttl: LIST_AGE };
    let list = cache.read(provider, SystemTime::now());
    list.is_none_or(|list| list.iter().any(|listed| listed.id == model))
}
