//! Strict simulators of model vendors, on loopback.
//!
//! A simulator refuses what its vendor refuses, in the vendor's words: unknown fields, parameters that a model does not
//! take, reasoning that comes back changed. It keeps a simulated prompt cache, counts tokens, computes a price, and answers
//! with the turns of a [`Scenario`] or, without one, as the markers in the prompt say.
//!
//! A [`Vendor`] knows one host: what it accepts and how it spells answers. [`Server`] knows sockets, scenarios, caches and
//! records, and none of the vendors. What vendors know of their models is data, kept apart from Hangar's own tables
//! on purpose: the two may disagree, and a test notices.

pub mod anthropic;
mod cache;
pub mod chat;
mod expectation;
mod facts;
mod gzip;
mod history;
mod markers;
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

pub use cache::{Caching, Mark, Prompt, Segment};
pub use expectation::Expectation;
pub use facts::{Catalogue, FactsError, Model};
pub use hangar_models::image::Image;
pub use history::History;
pub use profile::Profile;
pub use record::{Exchange, Failures, Outcome, Totals};
pub use refusal::Refusal;
pub use request::{Request, Strictness};
pub use scenario::{
    Act, End, Failure, FailureKind, Fault, Page, Phase, Piece, Scenario, ScenarioError, Turn, When,
};
pub use server::{Server, serve};
pub use shape::{Flaw, FlawKind, Place, Shapes};
pub use signature::{Seal, Signature};
pub use simulator::Simulator;
pub use stream::{Answer, Event, Frame};
pub use tokens::Counter;
pub use usage::{Price, Usage};
pub use vendor::{Accepted, Reply, ToolKind, Vendor};
