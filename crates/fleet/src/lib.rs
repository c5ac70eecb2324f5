//! Several machines, one Hangar: orders, logs and facts on NATS JetStream.
//!
//! A [`Broker`] is a connection to the servers. Orders wait in a [`OrderQueue`](queue::OrderQueue) until a worker takes one; the worker
//! claims the log of the session ([`claim`]) and writes it along with its local file ([`replica`]). The state of a session in the
//! fleet (owner, messages that wait, attempts) is a fold over the records in its log ([`fold`]). Lists are made of facts
//! ([`facts`]), never of logs. Commands to a session are requests to its owner ([`control`]).
//!
//! The crate starts no agent and knows no configuration file: the host hands both in.

mod broker;
pub mod check;
pub mod claim;
pub mod control;
mod error;
pub mod facts;
pub mod file_queue;
pub mod fold;
pub mod lease;
pub mod leftover;
pub mod log;
pub mod order;
pub mod placing;
pub mod queue;
pub mod record;
pub mod replica;
pub mod run_store;
mod settings;
mod shape;
pub mod slots;
mod time;
pub mod watch;
pub mod work_queue;

pub use broker::Broker;
pub use error::FleetError;
pub use settings::{FleetSettings, Prefix, TlsFiles};

/// Version of all messages. A reader that meets a newer one leaves it to others.
pub const VERSION: u32 = 2;
