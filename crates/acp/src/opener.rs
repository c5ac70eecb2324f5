//! Dependency that the host hands to the agent: sessions to drive.

use std::path::PathBuf;

use hangar_agent::driver::EventSink;
use hangar_engine::Engine;
use hangar_store::SessionId;
use serde_json::{Map, Value};

/// Opens sessions.
pub trait EditorSessionOpener: Send + Sync {
    /// Opens a session of the store, or a new one with this id. Nothing has happened in it when this returns.
    fn open(&self, wanted: RequestedSession) -> Result<Engine, EditorOpenError>;
}

pub struct RequestedSession {
    pub id: SessionId,
    pub directory: PathBuf,
    /// The MCP servers that the client brings, by their names, as configuration files write them. Their values are
    /// meant as they are written.
    pub mcp_servers: Map<String, Value>,
    /// Warnings for the session's log about settings that were ignored.
    pub warnings: Vec<String>,
    /// Makes the sink of the session, each time that it is composed.
    pub sink: Box<dyn Fn() -> Box<dyn EventSink> + Send + Sync>,
}

/// Error of opening a session, as a message for the client.
#[derive(Debug, thiserror::Error)]
pub enum EditorOpenError {
    /// The client's request names a directory that no session can work in.
    #[error("{0}")]
    Directory(String),
    #[error("{0}")]
    Failed(String),
}
