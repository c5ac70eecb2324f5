//! Who a session may hand work to, under which limits, and what each is told.

use std::sync::Arc;

use hangar_protocol::data::{ModelSelection, TaskModelSource};

use super::builtin::GENERAL_PURPOSE;
use super::{AgentDefinition, AgentSource, AgentTools};
use crate::model::ModelProvider;
use crate::prompt::{Environment, SystemPrompt};

/// How deep agents may start agents, and how many may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub depth: u32,
    pub running: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 4, running: 32 }
    }
}

/// How the model learns what a background agent found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reporting {
    /// It is told that the agent is done, and reads the result when it wants to.
    #[default]
    Announced,
    /// The result is read for it, with the news.
    Delivered,
}

#[derive(Debug, Clone)]
pub struct Crew {
    /// The built-in agents first.
    pub definitions: Vec<AgentDefinition>,
    pub limits: Limits,
    pub reporting: Reporting,
    /// What the prompts of agents are made of.
    pub environment: Environment,
    pub instructions: String,
}

impl Crew {
    pub fn find(&self, name: &str) -> Option<&AgentDefinition> {
        // What people bring goes before what is built in, and what something is called by before what else it is known by.
        let named = self.definitions.iter().rev().find(|agent| agent.name == name);
        named.or_else(|| self.custom().find(|agent| agent.id == name || agent.display_name == name))
    }

    /// The agents that the model may call.
    pub fn callable(&self) -> impl Iterator<Item = &AgentDefinition> {
        self.definitions.iter().enumerate().filter_map(|(index, agent)| {
            let replaced = self.definitions[index + 1..].iter().any(|later| later.name == agent.name);
            (agent.model_invocable && !replaced).then_some(agent)
        })
    }

    /// The agents that people brought.
    pub fn custom(&self) -> impl Iterator<Item = &AgentDefinition> {
        self.definitions.iter().filter(|agent| agent.source != AgentSource::Builtin)
    }

    /// The whole prompt of an agent that is shown these tools.
    pub fn prompt(&self, agent: &AgentDefinition, tools: Vec<String>) -> Arc<str> {
        let environment = Environment { tools, ..self.environment.clone() };
        let mut prompt = SystemPrompt::new(&environment, &self.instructions);
        let role = agent.role();
        if !role.is_empty() {
            // The section is always there.
            let _ = prompt.set_section("identity", role);
        }
        prompt.render().into()
    }
}

impl AgentDefinition {
    /// Whether it plays a role of its own, rather than that of whoever calls it.
    pub fn has_role(&self) -> bool {
        !(self.source == AgentSource::Builtin && self.name == GENERAL_PURPOSE)
    }

    pub(crate) fn inherits_tools(&self) -> bool {
        self.tools == AgentTools::Inherited
    }
}

/// A model that can be asked.
#[derive(Clone)]
pub struct ModelChoice {
    pub provider: Arc<dyn ModelProvider>,
    pub model: String,
    pub max_prompt_tokens: u64,
}

/// Knows the models that can be asked.
pub trait Models: Send + Sync {
    /// `None` for a model that is not available.
    fn find(&self, name: &str) -> Option<ModelChoice>;
}

/// The model of an agent, and why it is that one.
pub(crate) struct Selected {
    /// `None`: the model of whoever calls.
    pub(crate) choice: Option<ModelChoice>,
    pub(crate) source: TaskModelSource,
    pub(crate) selection: ModelSelection,
}

/// The first that is available: the model that was asked for, those of the definition, the caller's.
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
    let wishes = asked
        .into_iter()
        .map(|model| (model, ModelSelection::ExplicitOverride))
        .chain(agent.models.iter().map(|model| (model.as_str(), ModelSelection::AgentDefinitionDefault)));
    for (wish, selection) in wishes {
        if wish == caller {
            return Selected { choice: None, source, selection };
        }
        if let Some(choice) = models.and_then(|models| models.find(wish)) {
            return Selected { choice: Some(choice), source, selection };
        }
    }
    Selected { choice: None, source, selection: ModelSelection::SessionInheritance }
}
