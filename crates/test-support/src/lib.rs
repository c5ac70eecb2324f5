//! Support for tests of the real binary: a machine of their own, a process they can watch, a model that follows a
//! script, and simulated vendors.
//!
//! For tests only: everything here panics instead of returning errors, with a message that says what was being waited
//! for and what had been printed until then.

pub mod attacks;
pub mod forge;
pub mod jira;
pub mod linear;
pub mod model;
pub mod namespace;
pub mod nats;
pub mod normal;
pub mod process;
pub mod pty;
pub mod scratch;
pub mod vendor;

pub use forge::{Dialect, ForgeServer};
pub use jira::JiraServer;
pub use linear::LinearServer;
pub use model::{ModelServer, SeenRequest};
pub use namespace::Namespace;
pub use nats::{NatsServers, NatsVersion};
pub use process::{Finished, Invocation, Running, Signal};
pub use scratch::Scratch;
pub use vendor::VendorServer;

pub use hangar_simulators as simulators;
