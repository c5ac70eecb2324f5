//! What the agent needs of whoever runs it: sessions to drive, and models to drive them with.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::driver::{Driver, EventSink};
use hangar_agent::model::ModelProvider;
use hangar_agent::session::Input;
use hangar_agent::tool::ToolFilter;
use hangar_mcp::{McpHost, News};
use hangar_store::SessionId;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

/// Puts sessions together.
pub trait SessionOpener: Send + Sync {
    /// Opens a session of the store, or a new one with this id. Nothing has happened in it when this returns.
    fn open(&self, wanted: Wanted) -> Result<Opened, OpenError>;

    /// Whoever answers for a model.
    fn provider(&self, model: &str) -> Result<Arc<dyn ModelProvider>, OpenError>;
}

pub struct Wanted {
    pub id: SessionId,
    pub directory: PathBuf,
    /// The MCP servers that the client brings, by their names, as configuration files write them. Their values are
    /// meant as they are written.
    pub mcp_servers: Map<String, Value>,
    /// What the session's log is to say of what was left out.
    pub warnings: Vec<String>,
    pub sink: Box<dyn EventSink>,
}

/// A session, ready to be driven.
pub struct Opened {
    pub driver: Driver,
    /// The first inputs of the session.
    pub opening: Vec<Input>,
    /// The MCP servers and their news. None has been started.
    pub mcp: Option<(McpHost, mpsc::Receiver<News>)>,
    /// Which of the servers' tools the model is shown.
    pub filter: ToolFilter,
    pub background: Box<dyn Background>,
}

/// Work that outlives the calls that began it: commands that run on.
pub trait Background: Send {
    fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// Why a session or a model could not be had, in words for the client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);
