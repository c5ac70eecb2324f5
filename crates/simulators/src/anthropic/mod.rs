//! Anthropic's Messages API: the rules of its models, thinking that is bound to its conversation, and marked caches.

mod aside;
mod check;
mod encode;
mod error;
mod marks;
mod messages;
mod parameters;
mod prefix;
mod prompt;
mod search;
#[cfg(test)]
mod tests;
mod thinking;
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
    name: "anthropic",
    base_path: "",
    models: ["claude-opus-5-5", "claude-sonnet-4-6"],
    vendor: || Ok(Box::new(Anthropic::new()?)),
};

/// The vendor, with its tables.
pub struct Anthropic {
    models: VendorModels<Rules>,
    shapes: Shapes,
}

type Claude = VendorModel<Rules>;

/// Rules that only this vendor's models have.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    /// The thinking mode of a request without `thinking`.
    thinking: DefaultThinking,
    /// Values of `thinking.type` that are refused.
    refused_thinking: Vec<String>,
    /// Efforts at which thinking cannot be disabled.
    #[serde(default)]
    disabled_refused_at: Vec<String>,
    /// Efforts that `between_tools` accepts.
    #[serde(default)]
    between_tools_efforts: Vec<String>,
    /// Whether temperature, `top_p` and `top_k` are accepted.
    #[serde(default = "yes")]
    sampling: bool,
    /// Whether the last message may be the assistant's.
    #[serde(default = "yes")]
    prefill: bool,
    /// Whether a tool may be forced.
    #[serde(default = "yes")]
    forced_tool: bool,
    /// Whether the text of thinking is left out unless asked for.
    #[serde(default)]
    omits_thinking: bool,
    /// Whether thinking is bound to everything before it.
    #[serde(default)]
    preserved: bool,
    /// Whether thinking is bound to the account too.
    #[serde(default)]
    account_bound: bool,
    /// Whether text before a call is returned as thinking.
    #[serde(default)]
    prose_is_thinking: bool,
    /// Whether the model sees images in full size.
    #[serde(default)]
    large_images: bool,
    /// Whether messages of the role `system` may follow those of the user.
    #[serde(default)]
    late_system: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DefaultThinking {
    Always,
    On,
    Off,
}

impl Anthropic {
    pub fn new() -> Result<Self, FactsError> {
        Ok(Self {
            models: VendorModels::parse(packed::text("anthropic/models.toml"))?,
            shapes: Shapes::parse(packed::text("anthropic/shapes.toml"))?,
        })
    }
}

impl Vendor for Anthropic {
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
        encode::answer(accepted, reply, history)
    }
}
