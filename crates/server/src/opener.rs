//! What the server needs of whoever runs it: sessions to drive, and what is known of models and the login.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::courier::{Courier, TokenSource};
use hangar_agent::driver::{Driver, EventSink, Hooks};
use hangar_agent::model::ModelProvider;
use hangar_agent::prompt::Environment;
use hangar_agent::session::Input;
use hangar_agent::tool::Tool;
use hangar_custom::skills::Skills;
use hangar_store::SessionId;

use crate::spec::SessionSpec;

/// Puts sessions together.
pub trait SessionOpener: Send + Sync {
    /// Opens a session of the store, or a new one with this id. Nothing has happened in it when this returns.
    fn open(&self, wanted: Wanted<'_>) -> Result<Opened, OpenError>;

    /// The provider for a model of a session that was opened with this specification.
    fn provider(
        &self,
        spec: &SessionSpec,
        model: &str,
        ways: Ways,
    ) -> Result<Arc<dyn ModelProvider>, OpenError>;

    /// Custom instructions for a session with this specification.
    fn instructions(&self, spec: &SessionSpec) -> Result<String, OpenError>;

    /// The models that can be chosen, as clients are told of them.
    fn models(&self, token: Option<String>) -> BoxFuture<'static, Result<Vec<serde_json::Value>, OpenError>>;

    /// Whose login the server uses; with a token, whose that is.
    fn auth(&self, token: Option<String>) -> BoxFuture<'static, Result<AuthStatus, OpenError>>;
}

pub struct Wanted<'a> {
    pub id: SessionId,
    pub spec: &'a SessionSpec,
    pub sink: Box<dyn EventSink>,
    pub hooks: Arc<dyn Hooks>,
    pub ways: Ways,
}

/// How a session's provider reaches the model, where the client has a say in it.
#[derive(Clone, Default)]
pub struct Ways {
    /// Makes the requests.
    pub courier: Option<Arc<dyn Courier>>,
    /// Knows the token of a provider that the client brought.
    pub tokens: Option<Arc<dyn TokenSource>>,
}

/// A session, ready to be driven.
pub struct Opened {
    pub driver: Driver,
    /// The first inputs of the session.
    pub opening: Vec<Input>,
    /// The built-in tools, all of them. The server shows the model those that the client wants.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What the system prompt is made of.
    pub environment: Environment,
    pub instructions: String,
    pub skills: Arc<Skills>,
    pub background: Box<dyn Background>,
}

/// Work that outlives the calls that began it: commands that run on.
pub trait Background: Send {
    fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()>;
}

#[derive(Debug, Clone, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthStatus {
    pub is_authenticated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copilot_plan: Option<String>,
}

/// Why a session or something it needs could not be had, in words for the client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);
