//! Strict simulators of model vendors, on loopback.
//!
//! A simulator refuses the requests that its vendor refuses, in the vendor's words: unknown fields, parameters that a
//! model does not accept, reasoning that was changed. It keeps a simulated prompt cache, counts tokens, computes a
//! price, and answers with the turns of a [`Scenario`] or, without one, as the markers in the prompt say.
//!
//! A [`Vendor`] knows one host: the requests that it accepts and the format of its answers. [`Server`] knows sockets,
//! scenarios, caches and records, and none of the vendors. The facts about models are data, deliberately independent of
//! Hangar's own tables: a test notices if the two disagree.

pub mod anthropic;
mod cache;
pub mod chat;
mod expectation;
mod facts;
mod gzip;
mod history;
mod markers;
mod packed;
mod profile;
mod record;
mod refusal;
mod request;
pub mod responses;
mod scenario;
mod server;
mod shape;
mod signature;
mod simulator;
mod stream;
#[cfg(test)]
mod testing;
mod tokens;
mod usage;
mod vendor;

pub use cache::{CacheMark, Caching, ModelInput, Segment};
pub use expectation::Expectation;
pub use facts::{FactsError, VendorModel, VendorModels};
pub use hangar_models::image::Image;
pub use history::AnswerHistory;
pub use profile::Profile;
pub use record::{Exchange, Failures, RequestOutcome, UsageTotals};
pub use refusal::Refusal;
pub use request::{Request, Strictness};
pub use scenario::{
    Act, AnswerPiece, FailureKind, Fault, RequestMatch, Scenario, ScenarioEnd, ScenarioError, ScenarioTurn,
    TextPhase, VendorFailure, WebPage,
};
pub use server::{Server, serve};
pub use shape::{BodyStep, Flaw, FlawKind, Shapes};
pub use signature::{Seal, Signature};
pub use simulator::Simulator;
pub use stream::{SseEvent, StreamFrame, VendorResponse};
pub use tokens::TokenCounter;
pub use usage::{Usage, VendorPrice};
pub use vendor::{Accepted, InputKind, PlannedAnswer, Vendor};
