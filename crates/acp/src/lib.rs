//! Hangar as an agent of the Agent Client Protocol: editors and other programs drive it by JSON-RPC, a message per line.
//!
//! A [`hangar_peer::Peer`] carries messages both ways over one connection. An [`agent`] answers the requests of one client and owns
//! its sessions, each driven by one task ([`session`]). What happens in a session is the one stream of events;
//! [`updates`] says it in the protocol's words. How a session is put together is handed in ([`EditorSessionOpener`]).

mod agent;
mod answers;
mod commands;
mod content;
mod opener;
mod options;
mod permission;
mod schema;
mod servers;
mod session;
mod tool_call;
mod transport;
mod updates;

pub use agent::EditorAgentConfig;
pub use opener::{EditorOpenError, EditorSessionOpener, RequestedSession};
pub use transport::{serve_stdio, serve_tcp};
