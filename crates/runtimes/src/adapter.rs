//! What differs between agents that are a process per turn: data about each, and how a turn of it is run.

use std::collections::BTreeSet;

use crate::invocation::Invocation;
use crate::probe::Probe;
use crate::runtime::{Card, Order, Stage};
use crate::translate::Translator;
use crate::usage::Counting;

/// What is known of an agent without running it.
#[derive(Debug, Clone)]
pub struct Profile {
    pub card: Card,
    /// How its program is found and looked at.
    pub probe: Probe,
    pub counting: Counting,
    /// Whether it writes down the prompt itself.
    pub echoes_prompt: bool,
    /// Whether it says something before its model has answered.
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

impl Profile {
    /// What a session should know about the model that it was asked to use.
    pub(crate) fn model_warning(&self, order: &Order) -> Option<String> {
        let foreign = self.foreign_models?;
        let model = order.model.as_deref().filter(|model| foreign.names.contains(model))?;
        let (owner, label) = (foreign.owner, &self.card.label);
        Some(format!("`{model}` is a name of {owner}'s; {label} wants the whole name of a model"))
    }
}

/// How a turn of an agent is run.
pub trait Adapter: Send + Sync + 'static {
    /// The command line of one turn, without the program.
    fn invocation(&self, order: &Order, turn: &Turn<'_>) -> Invocation;

    /// Reads the output of one turn.
    fn translator(&self, turn: &Turn<'_>) -> Box<dyn Translator>;

    /// Makes an order one for a rehearsal.
    fn rehearse(&self, order: &mut Order, stage: &Stage);
}

/// One turn of a session.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    pub prompt: &'a str,
    /// What the agent calls the session, once that is known.
    pub agent_session: Option<&'a str>,
    /// How many turns came before it here.
    pub before: u32,
    /// Flags that the installed version does not have.
    pub lacks: &'a BTreeSet<String>,
}

impl Turn<'_> {
    /// Whether a flag may be passed: as far as is known, the installed version has it.
    pub fn has(&self, flag: &str) -> bool {
        !self.lacks.contains(flag)
    }
}
