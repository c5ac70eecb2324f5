//! Adapters for agents that run one process per turn: a profile with data about the agent, and a trait that runs a
//! turn.

use std::collections::BTreeSet;

use crate::invocation::AgentCommandLine;
use crate::probe::Probe;
use crate::runtime::{AgentCard, AgentOrder, RehearsalStage};
use crate::translate::Translator;
use crate::usage::Counting;

/// Static facts about an agent.
#[derive(Debug, Clone)]
pub struct AgentProfile {
    pub card: AgentCard,
    /// Rules for finding and probing its program.
    pub probe: Probe,
    pub counting: Counting,
    /// Whether the agent's own output includes the prompt.
    pub echoes_prompt: bool,
    /// Whether the agent writes output before its model answers.
    pub speaks_at_start: bool,
    /// Names of models that another agent understands and this one does not, with whose they are.
    pub foreign_models: Option<ForeignModels>,
}

/// Short names of models that work with another agent alone.
#[derive(Debug, Clone, Copy)]
pub struct ForeignModels {
    pub names: &'static [&'static str],
    pub owner: &'static str,
}

impl AgentProfile {
    /// Warning about the requested model, if it is not a known one.
    pub(crate) fn model_warning(&self, order: &AgentOrder) -> Option<String> {
        let foreign = self.foreign_models?;
        let model = order.model.as_deref().filter(|model| foreign.names.contains(model))?;
        let (owner, label) = (foreign.owner, &self.card.label);
        Some(format!("`{model}` is a name of {owner}'s; {label} wants the whole name of a model"))
    }
}

/// One turn of an agent: its command line and the translation of its output.
pub trait Adapter: Send + Sync + 'static {
    /// The command line of one turn, without the program.
    fn invocation(&self, order: &AgentOrder, turn: &TurnContext<'_>) -> AgentCommandLine;

    /// Reads the output of one turn.
    fn translator(&self, turn: &TurnContext<'_>) -> Box<dyn Translator>;

    /// Makes an order one for a rehearsal.
    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage);
}

/// One turn of a session.
#[derive(Debug, Clone, Copy)]
pub struct TurnContext<'a> {
    pub prompt: &'a str,
    /// Name of the session in the agent, once it is known.
    pub agent_session: Option<&'a str>,
    /// Number of earlier turns in this process.
    pub before: u32,
    /// Flags that the installed version does not have.
    pub lacks: &'a BTreeSet<String>,
}

impl TurnContext<'_> {
    /// Whether a flag may be passed: the installed version has it, as far as is known.
    pub fn has(&self, flag: &str) -> bool {
        !self.lacks.contains(flag)
    }
}
