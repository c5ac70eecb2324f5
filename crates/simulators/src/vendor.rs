//! The interface between the server and a vendor.

use std::collections::BTreeMap;

use hangar_models::scripted::markers::Asked;
use serde_json::Value;

use crate::cache::{Caching, ModelInput};
use crate::history::AnswerHistory;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::scenario::{AnswerPiece, Fault, ScenarioEnd, VendorFailure};
use crate::stream::VendorResponse;
use crate::usage::{Usage, VendorPrice};

/// One host: the requests that it refuses, and the format of its answers. It keeps no state of its own; the [`AnswerHistory`]
/// has what it compares later.
pub trait Vendor: Send + Sync + 'static {
    /// Answers requests that are not for an answer of a model: lists of models, counts of tokens. `None` for all others.
    fn aside(&self, request: &Request) -> Option<VendorResponse>;

    /// Checks a request for an answer. A path that is not served is refused here too.
    fn check(&self, request: &Request, history: &AnswerHistory) -> Result<Accepted, Refusal>;

    /// A failure of the scenario, before any output.
    fn fail(&self, accepted: &Accepted, failure: &VendorFailure) -> Refusal;

    /// Encodes an answer, and remembers the parts that later requests are compared with.
    fn encode(
        &self,
        accepted: &Accepted,
        reply: &PlannedAnswer,
        history: &mut AnswerHistory,
    ) -> VendorResponse;
}

/// A request that was accepted, and the facts that the answer depends on.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The id of the model, as the vendor's table has it.
    pub model: String,
    /// The account, from [`Request::account`].
    pub account: String,
    pub stream: bool,
    /// Prompts and results, for turns that markers describe and for turns that wait for a prompt.
    pub asked: Asked,
    /// The text of the newest user message.
    pub prompt_text: String,
    /// Whether the model thinks. If not, thinking of the scenario is left out.
    pub thinks: bool,
    /// Whether the vendor may search the web.
    pub searches: bool,
    /// Tools that may be called.
    pub tools: BTreeMap<String, InputKind>,
    /// Input of the model, in pieces that can be cached.
    pub prompt: ModelInput,
    pub caching: Caching,
    pub price: VendorPrice,
    /// Tokens of this model for each hundred of the published vocabulary.
    pub token_percent: u64,
    /// Unknown fields that were ignored, in [`Strictness::Lenient`](crate::Strictness::Lenient) only.
    pub foreign: Vec<String>,
    /// Rules of the simulator itself that the request breaks although the vendor would answer. They fail the test.
    pub violations: Vec<String>,
    /// Paths of thinking in the continuing turn that the vendor hid from the model. They fail the test unless it
    /// expects them.
    pub dropped: Vec<String>,
    /// Data that the vendor itself needs to encode the answer.
    pub context: Value,
}

/// How a tool takes its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    Function,
    /// Free text.
    Custom,
}

/// An answer to encode.
#[derive(Debug, Clone)]
pub struct PlannedAnswer {
    /// New for each request: letters and digits.
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    pub pieces: Vec<AnswerPiece>,
    pub end: ScenarioEnd,
    /// Stream quirks of the vendor's wire. Those of the transport are applied afterwards.
    pub faults: Vec<Fault>,
    pub usage: Usage,
    /// Price of the exchange in USD, for vendors that report it.
    pub cost: f64,
}

impl PlannedAnswer {
    /// An id for the `index`-th call of this answer, with a prefix of the vendor.
    pub fn call_id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}{}{index}", self.id)
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }
}
