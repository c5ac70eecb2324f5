//! The interface between the server and what it knows of a vendor.

use std::collections::BTreeMap;

use hangar_models::scripted::markers::Asked;
use serde_json::Value;

use crate::cache::{Caching, Prompt};
use crate::history::History;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::scenario::{End, Failure, Fault, Piece};
use crate::stream::Answer;
use crate::usage::{Price, Usage};

/// One host: what it refuses, and how it spells what it says. It keeps no state of its own; what it must know again is
/// in the [`History`].
pub trait Vendor: Send + Sync + 'static {
    /// Answers requests that are not for an answer of a model: lists of models, counts of tokens. `None` for all others.
    fn aside(&self, request: &Request) -> Option<Answer>;

    /// Checks a request for an answer. A path that is not served is refused here too.
    fn check(&self, request: &Request, history: &History) -> Result<Accepted, Refusal>;

    /// A failure of the scenario, before anything is said.
    fn fail(&self, accepted: &Accepted, failure: &Failure) -> Refusal;

    /// Spells an answer, and remembers of it what a later request is compared with.
    fn encode(&self, accepted: &Accepted, reply: &Reply, history: &mut History) -> Answer;
}

/// A request that passed, and what the answer depends on.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The id of the model, as the vendor's table has it.
    pub model: String,
    /// Who asks, as [`Request::account`] says.
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
    pub tools: BTreeMap<String, ToolKind>,
    /// What the model reads, in pieces that can be cached.
    pub prompt: Prompt,
    pub caching: Caching,
    pub price: Price,
    /// Tokens of this model for each hundred of the published vocabulary.
    pub token_percent: u64,
    /// Fields of others that were passed over, in [`Strictness::Lenient`](crate::Strictness::Lenient) only.
    pub foreign: Vec<String>,
    /// Rules of the simulator itself that the request breaks, though the vendor would answer. They fail the test.
    pub violations: Vec<String>,
    /// Places of thinking of the turn that goes on, which the vendor left out of what the model sees. They fail the test
    /// unless it expects them.
    pub dropped: Vec<String>,
    /// Whatever the vendor itself needs again to encode the answer.
    pub context: Value,
}

/// How a tool takes its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    Function,
    /// Free text.
    Custom,
}

/// An answer to spell.
#[derive(Debug, Clone)]
pub struct Reply {
    /// New for each request: letters and digits.
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    pub pieces: Vec<Piece>,
    pub end: End,
    /// Oddities of the stream that the vendor's wire spells. Those of the transport are put on afterwards.
    pub faults: Vec<Fault>,
    pub usage: Usage,
    /// Price of the exchange in USD, for vendors that report it.
    pub cost: f64,
}

impl Reply {
    /// An id for the `index`-th call of this answer, with a prefix of the vendor.
    pub fn call_id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}{}{index}", self.id)
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }
}
