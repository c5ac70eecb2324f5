//! OpenAI's Responses API without stored responses: every item is sent back unchanged, with reasoning encrypted.

mod aside;
mod check;
mod encode;
mod error;
mod items;
mod parameters;
mod prompt;
mod reasoning;
#[cfg(test)]
mod tests;
mod tools;

use serde::Deserialize;

use crate::facts::{FactsError, VendorModel, VendorModels};
use crate::history::AnswerHistory;
use crate::packed;
use crate::profile::Profile;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::scenario::VendorFailure;
use crate::shape::Shapes;
use crate::stream::VendorResponse;
use crate::vendor::{Accepted, PlannedAnswer, Vendor};

pub const PROFILE: Profile = Profile {
    name: "openai-responses",
    base_path: "/v1",
    models: ["gpt-5.6-sol", "gpt-6.1-terra"],
    vendor: || Ok(Box::new(Responses::new()?)),
};

/// The wire, with the tables of a host.
pub struct Responses {
    models: VendorModels<Rules>,
    shapes: Shapes,
    item_ids: ItemIds,
}

/// Whether the events of one item agree on its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemIds {
    Stable,
    /// Each event has another one, as GitHub's proxy makes them.
    Changing,
}

type Gpt = VendorModel<Rules>;

/// Rules that only models of this wire have.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    /// Whether messages have a `phase` that must be sent back.
    #[serde(default)]
    phase: bool,
    /// Whether writes to the cache cost more than other input.
    #[serde(default)]
    charges_writes: bool,
    /// Whether another effort loses the cache.
    #[serde(default)]
    effort_in_prefix: bool,
    /// Whether an item may add tools in the middle of the conversation.
    #[serde(default)]
    late_tools: bool,
}

impl Responses {
    /// OpenAI itself.
    pub fn new() -> Result<Self, FactsError> {
        Self::of_models(packed::text("responses/models.toml"), ItemIds::Stable)
    }

    /// Another host with this wire, with models of its own.
    pub fn of_models(models: &str, item_ids: ItemIds) -> Result<Self, FactsError> {
        Ok(Self {
            models: VendorModels::parse(models)?,
            shapes: Shapes::parse(packed::text("responses/shapes.toml"))?,
            item_ids,
        })
    }
}

impl Vendor for Responses {
    fn aside(&self, request: &Request) -> Option<VendorResponse> {
        aside::answer(self, request)
    }

    fn check(&self, request: &Request, history: &AnswerHistory) -> Result<Accepted, Refusal> {
        check::check(self, request, history)
    }

    fn fail(&self, _: &Accepted, failure: &VendorFailure) -> Refusal {
        error::failed(failure)
    }

    fn encode(
        &self,
        accepted: &Accepted,
        reply: &PlannedAnswer,
        history: &mut AnswerHistory,
    ) -> VendorResponse {
        encode::answer(accepted, reply, self.item_ids, history)
    }
}
