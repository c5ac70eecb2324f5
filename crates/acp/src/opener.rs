//! What the agent needs of whoever runs it: sessions to drive, and models to drive them with.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::driver::{Driver, EventSink};
use hangar_agent::model::ModelProvider;
use hangar_agent::session::Input;
use hangar_store::SessionId;
use serde_json::Value;

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
    /// The servers that the client wants the session to have, as it wrote them.
    pub mcp_servers: Vec<Value>,
    pub sink: Box<dyn EventSink>,
}

/// A session, ready to be driven.
pub struct Opened {
    pub driver: Driver,
    /// The first inputs of the session.
    pub opening: Vec<Input>,
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
