//! MCP servers: their configuration, their connections and their tools.
//!
//! A [`McpHost`] holds the servers of one session. Nothing is started before [`McpHost::ready`]; a server whose tools are
//! known from an earlier run is not started before one of them is called. Changes of servers are reported as
//! [`News`], in the vocabulary of the session's events. No type of the protocol library leaves this crate.

mod agent_tools;
mod cache;
mod client;
pub mod config;
mod connection;
mod expand;
pub mod files;
mod host;
mod http;
mod login;
mod naming;
mod oauth;
mod outcome;
mod pending;
mod process;
mod sampler;
mod server;
mod sse;
mod stdio;
mod tool;

pub use config::{ConfigSource, Layer, McpConfigError, ServerConfig};
pub use expand::expand;
pub use host::{HostError, HostOptions, Login, McpHost, News, ToolGuard};
pub use oauth::Token;
pub use pending::{ElicitationAnswer, Interest};
pub use process::Sandboxes;
pub use sampler::{Sampled, Sampler};
pub use server::ServerReport;
