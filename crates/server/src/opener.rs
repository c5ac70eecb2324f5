//! Dependencies that the host hands to the server: sessions to drive, and the login with its models.

use serde_with::skip_serializing_none;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::driver::{EventSink, Hooks};
use hangar_agent::model::ModelProvider;
use hangar_agent::prompt::PromptEnvironment;
use hangar_agent::request_proxy::{RequestProxy, TokenSource};
use hangar_agent::tool::{Tool, ToolSpec};
use hangar_engine::{EngineParts, Mcp};
use hangar_mcp::ToolGuard;
use hangar_sandbox::Sandbox;
use hangar_spec::SessionSpec;
use hangar_store::SessionId;
use hangar_store::client_session::ClientSession;

use crate::extensions::ProgramSandbox;

/// Puts sessions together.
pub trait SessionOpener: Send + Sync {
    /// Opens a session of the store, or a new one with this id. It has had no input yet. An invalid request is refused
    /// before anything is created.
    fn open(&self, request: OpenRequest<'_>) -> Result<OpenedSession, OpenError>;

    /// MCP servers that are configured for a directory, serialised for clients.
    fn discover_mcp(&self, directory: Option<&Path>) -> Result<Vec<serde_json::Value>, OpenError>;

    /// Built-in tools of a session with this model.
    fn tools(&self, model: Option<&str>) -> Vec<Arc<ToolSpec>>;

    /// Endpoint and credentials of a session's model, for clients that call it themselves.
    fn endpoint(&self, spec: &SessionSpec, model: &str) -> Result<serde_json::Value, OpenError>;

    /// Values that the tools of later sessions must not show.
    fn hide(&self, values: Vec<String>) -> Result<(), OpenError>;
}

/// The login of the server, and the models that it gives access to. A token stands for another login.
pub trait AccountHost: Send + Sync {
    fn auth(&self, token: Option<String>) -> BoxFuture<'static, Result<AuthStatus, OpenError>>;

    /// The token that the server was given, as opposed to one that it found.
    fn given_token(&self) -> Option<String>;

    /// Remaining quota of the account, by its parts.
    fn quota(&self, token: Option<String>) -> BoxFuture<'static, Result<serde_json::Value, OpenError>>;

    /// Available models, serialised for clients.
    fn models(&self, token: Option<String>) -> BoxFuture<'static, Result<Vec<serde_json::Value>, OpenError>>;

    /// Names of known models of all providers.
    fn known_models(&self) -> &'static [&'static str];
}

/// Recomposes parts of one live session, in the same way as when it was opened, in its working directory.
pub trait Recomposer: Send + Sync {
    fn recompose(&self, request: RecomposeRequest<'_>) -> Result<Recomposed, OpenError>;

    /// The files of custom instructions for the session.
    fn instruction_sources(&self, spec: &SessionSpec) -> Result<Vec<InstructionSource>, OpenError>;
}

/// A change of a live session.
pub struct RecomposeRequest<'a> {
    /// All settings of the session after the change. They name the model, current or new.
    pub spec: &'a SessionSpec,
    pub transport: ModelTransport,
    pub scope: RecomposeScope,
}

/// The parts to recompose.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecomposeScope {
    pub model: bool,
    /// Whether the model was chosen just now, so that one that nothing answers to is refused.
    pub is_chosen: bool,
    pub instructions: bool,
    pub servers: bool,
}

/// The parts in the scope.
#[derive(Default)]
pub struct Recomposed {
    pub provider: Option<Arc<dyn ModelProvider>>,
    /// A sentence for people, if the model gets another effort than they asked for.
    pub effort_notice: Option<String>,
    pub instructions: Option<String>,
    /// The MCP servers; `Some(None)` if the session has none any more.
    pub servers: Option<Option<Mcp>>,
}

/// File of custom instructions.
#[skip_serializing_none]
#[derive(Debug, Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstructionSource {
    pub id: String,
    pub label: String,
    /// Below the repository where it is there, else absolute.
    pub source_path: String,
    pub content: String,
    #[serde(rename = "type")]
    pub kind: InstructionKind,
    pub location: InstructionLocation,
    /// The files that it is about; all of them when absent.
    pub apply_to: Option<Vec<String>>,
    pub description: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructionKind {
    Home,
    Repo,
    /// File that is named after the convention of a model's vendor, such as AGENTS.md.
    Model,
    /// A file that may be about a part of the project, as an editor has them.
    Vscode,
    NestedAgents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructionLocation {
    User,
    Repository,
    WorkingDirectory,
}

/// A request to open a session.
pub struct OpenRequest<'a> {
    pub id: SessionId,
    pub spec: &'a SessionSpec,
    pub sink: Box<dyn EventSink>,
    pub hooks: Arc<dyn Hooks>,
    pub transport: ModelTransport,
    /// The session with its client, if that keeps its files.
    pub client_session: Option<ClientSession>,
}

/// Transport of a session's model requests, where the client has a say in it.
#[derive(Clone, Default)]
pub struct ModelTransport {
    /// Makes the requests.
    pub request_proxy: Option<Arc<dyn RequestProxy>>,
    /// Knows the token of a provider that the client brought.
    pub tokens: Option<Arc<dyn TokenSource>>,
}

/// A session, ready to be driven.
pub struct OpenedSession {
    pub parts: EngineParts,
    pub surroundings: SessionSurroundings,
}

/// Parts of a session that its clients see and change, beside its engine.
pub struct SessionSurroundings {
    /// The built-in tools, all of them. The server shows the model those that the client wants.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Facts about the machine in the system prompt.
    pub environment: PromptEnvironment,
    pub instructions: String,
    pub todos: Arc<dyn Todos>,
    pub recomposer: Arc<dyn Recomposer>,
    /// Sandbox of the session's commands, if there is one.
    pub sandbox: Option<Sandbox>,
    /// Makes the sandboxes of programs that join the session.
    pub confine: ProgramSandbox,
    /// Keeps what tools of clients say within what the model is shown.
    pub guard: ToolGuard,
}

/// The todos that a session keeps.
pub trait Todos: Send + Sync {
    fn read(&self) -> BoxFuture<'static, Result<TodoBoard, String>>;
}

#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct TodoBoard {
    pub rows: Vec<TodoItem>,
    pub dependencies: Vec<TodoDependency>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TodoItem {
    pub id: String,
    pub title: String,
    pub description: Option<String>,
    pub status: Option<String>,
    pub created_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TodoDependency {
    pub todo_id: String,
    pub depends_on: String,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthStatus {
    pub is_authenticated: bool,
    pub auth_type: Option<String>,
    pub host: Option<String>,
    pub login: Option<String>,
    pub status_message: Option<String>,
    pub copilot_plan: Option<String>,
}

/// Error of opening a session or of one of its parts, as a message for the client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);
