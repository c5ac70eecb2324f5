//! Agents of a session: definitions, limits and the prompts that they are given.

use std::collections::BTreeMap;
use std::sync::Arc;

use hangar_protocol::data::{ModelSelection, TaskModelSource};

use super::builtin::{GENERAL_PURPOSE, WITH_SMALL_MODEL};
use super::{AgentDefinition, AgentSource, AgentTools};
use crate::model::ModelProvider;
use crate::prompt::{PromptEnvironment, SystemPrompt};

/// Limits: nesting depth, and number of agents that run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    pub depth: u32,
    pub running: usize,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { depth: 4, running: 32 }
    }
}

/// How the model is given the result of a background agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reporting {
    /// The model is notified and reads the result when it wants to.
    #[default]
    Announced,
    /// The result comes with the notification.
    Delivered,
}

/// Settings for agents, in addition to their definitions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentSettings {
    /// By the names of the agents.
    pub agents: BTreeMap<String, AgentSetting>,
    /// Names of agents that may not be started.
    pub disabled: Vec<String>,
    pub depth: Option<u32>,
    pub running: Option<usize>,
}

impl AgentSettings {
    fn disables(&self, name: &str) -> bool {
        self.disabled.iter().any(|disabled| disabled == name)
    }

    /// These settings before others, one by one. What either disables is disabled.
    fn over(&self, others: &Self) -> Self {
        let mut merged = others.clone();
        for (name, first) in &self.agents {
            let setting = merged.agents.entry(name.clone()).or_default();
            setting.model = first.model.clone().or_else(|| setting.model.take());
            setting.effort = first.effort.clone().or_else(|| setting.effort.take());
        }
        merged.disabled.extend(self.disabled.iter().filter(|name| !others.disables(name)).cloned());
        merged.depth = self.depth.or(merged.depth);
        merged.running = self.running.or(merged.running);
        merged
    }
}

/// Name of the setting for titles of sessions, which a model makes beside them.
const TITLE: &str = "title";
/// Name of the setting for summaries of conversations.
const SUMMARY: &str = "summary";

/// Settings for one agent. Absent values leave the definition as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentSetting {
    pub model: Option<String>,
    pub effort: Option<String>,
}

#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Definitions, the built-in ones first.
    pub definitions: Vec<AgentDefinition>,
    pub limits: AgentLimits,
    /// Settings of the configuration.
    pub settings: AgentSettings,
    /// Settings of a client, which go before those of the configuration.
    pub client_settings: AgentSettings,
    /// Small model for agents that search and run commands rather than reason.
    pub small_model: Option<String>,
    pub reporting: Reporting,
    /// Parts of the agents' prompts.
    pub environment: PromptEnvironment,
    pub instructions: String,
}

impl AgentConfig {
    pub fn find(&self, name: &str) -> Option<&AgentDefinition> {
        // Agents of users and projects come before built-in ones, and names before other identifiers.
        let named = self.definitions.iter().rev().find(|agent| agent.name == name);
        named.or_else(|| self.custom().find(|agent| agent.id == name || agent.display_name == name))
    }

    /// The agents that the model may call.
    pub fn callable(&self) -> impl Iterator<Item = &AgentDefinition> {
        self.definitions.iter().enumerate().filter_map(|(index, agent)| {
            let replaced = self.definitions[index + 1..].iter().any(|later| later.name == agent.name);
            (self.may_start(agent) && !replaced).then_some(agent)
        })
    }

    /// Whether the model may start an agent.
    pub fn may_start(&self, agent: &AgentDefinition) -> bool {
        let name = &agent.name;
        agent.model_invocable && !self.settings.disables(name) && !self.client_settings.disables(name)
    }

    /// The settings that hold.
    pub fn effective_settings(&self) -> AgentSettings {
        self.client_settings.over(&self.settings)
    }

    /// The limits that hold.
    pub fn limits(&self) -> AgentLimits {
        let Self { limits, settings, client_settings: client, .. } = self;
        AgentLimits {
            depth: client.depth.or(settings.depth).unwrap_or(limits.depth),
            running: client.running.or(settings.running).unwrap_or(limits.running),
        }
    }

    /// An agent's definition with its settings applied. A configured model comes before those of the definition, a
    /// small one after them.
    pub fn configured(&self, agent: &AgentDefinition) -> AgentDefinition {
        let mut agent = agent.clone();
        if agent.source == AgentSource::Builtin && WITH_SMALL_MODEL.contains(&agent.name.as_str()) {
            agent.models.extend(self.small_model.clone());
        }
        for settings in [&self.settings, &self.client_settings] {
            if let Some(AgentSetting { model, effort }) = settings.agents.get(&agent.name) {
                agent.models.splice(0..0, model.clone());
                agent.effort = effort.clone().or(agent.effort);
            }
        }
        agent
    }

    /// Model that makes the title of a session: the configured one, else the small one; none if titles are disabled.
    pub fn title_model(&self) -> Option<&str> {
        if self.settings.disables(TITLE) || self.client_settings.disables(TITLE) {
            return None;
        }
        self.model_of(TITLE).or(self.small_model.as_deref())
    }

    /// Model that makes summaries, if one is configured. The session's own reads the conversation from its cache.
    pub fn summary_model(&self) -> Option<&str> {
        self.model_of(SUMMARY)
    }

    /// Configured model of something that is no agent.
    fn model_of(&self, name: &str) -> Option<&str> {
        [&self.client_settings, &self.settings]
            .into_iter()
            .find_map(|settings| settings.agents.get(name)?.model.as_deref())
    }

    /// The agents that users and clients defined.
    pub fn custom(&self) -> impl Iterator<Item = &AgentDefinition> {
        self.definitions.iter().filter(|agent| agent.source != AgentSource::Builtin)
    }

    /// System prompt of an agent that is shown these tools.
    pub fn prompt(&self, agent: &AgentDefinition, tools: Vec<String>) -> Arc<str> {
        let environment = PromptEnvironment { tools, ..self.environment.clone() };
        let mut prompt = SystemPrompt::new(&environment, &self.instructions);
        let role = agent.role();
        if !role.is_empty() {
            // The section always exists.
            let _ = prompt.set_section("identity", role);
        }
        prompt.render().into()
    }
}

impl AgentDefinition {
    /// Whether the agent has a role of its own, rather than its caller's.
    pub fn has_role(&self) -> bool {
        !(self.source == AgentSource::Builtin && self.name == GENERAL_PURPOSE)
    }

    pub(crate) fn inherits_tools(&self) -> bool {
        self.tools == AgentTools::Inherited
    }
}

/// An available model.
#[derive(Clone)]
pub struct ModelChoice {
    pub provider: Arc<dyn ModelProvider>,
    pub model: String,
    pub max_prompt_tokens: u64,
}

/// The models that agents may run on.
pub trait Models: Send + Sync {
    /// Finds a model; `None` if it is not available.
    fn find(&self, name: &str) -> Option<ModelChoice>;
}

/// Model of an agent, and the reason for it.
pub(crate) struct Selected {
    /// `None` for the caller's model.
    pub(crate) choice: Option<ModelChoice>,
    pub(crate) source: TaskModelSource,
    pub(crate) selection: ModelSelection,
}

/// Selects the first available model of: the requested one, those of the definition, the caller's.
pub(crate) fn select_model(
    asked: Option<&str>,
    agent: &AgentDefinition,
    caller: &str,
    models: Option<&dyn Models>,
) -> Selected {
    let source = match asked {
        Some(_) => TaskModelSource::TaskArgument,
        None if agent.source != AgentSource::Builtin && !agent.models.is_empty() => {
            TaskModelSource::CustomAgentDefinition
        }
        None => TaskModelSource::Unset,
    };
    let call_options = asked
        .into_iter()
        .map(|model| (model, ModelSelection::ExplicitOverride))
        .chain(agent.models.iter().map(|model| (model.as_str(), ModelSelection::AgentDefinitionDefault)));
    for (wish, selection) in call_options {
        if wish == caller {
            return Selected { choice: None, source, selection };
        }
        if let Some(choice) = models.and_then(|models| models.find(wish)) {
            return Selected { choice: Some(choice), source, selection };
        }
    }
    Selected { choice: None, source, selection: ModelSelection::SessionInheritance }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(model: Option<&str>, effort: Option<&str>) -> AgentSetting {
        AgentSetting { model: model.map(str::to_owned), effort: effort.map(str::to_owned) }
    }

    #[test]
    fn settings_of_a_client_go_before_those_of_the_configuration_one_by_one() {
        let configuration = AgentSettings {
            agents: [
                ("explore".to_owned(), of(Some("small"), Some("low"))),
                ("task".to_owned(), of(Some("small"), None)),
            ]
            .into(),
            disabled: vec!["review".to_owned()],
            depth: Some(1),
            running: Some(4),
        };
        let client = AgentSettings {
            agents: [("explore".to_owned(), of(Some("large"), None))].into(),
            disabled: vec!["review".to_owned(), "task".to_owned()],
            depth: Some(2),
            running: None,
        };
        let merged = client.over(&configuration);
        assert_eq!(merged.agents["explore"], of(Some("large"), Some("low")));
        assert_eq!(merged.agents["task"], of(Some("small"), None));
        assert_eq!(merged.disabled, ["review", "task"]);
        assert_eq!((merged.depth, merged.running), (Some(2), Some(4)));
    }
}
