//! The client of a session: its identity, its tools and the questions it answers, and its one request.

use hangar_protocol::data::{CanvasDeclaration, ClientCommand, SessionLimits};
use serde::Deserialize;
use serde::de::MapAccess;
use std::path::PathBuf;

use crate::group::SettingsGroup;

group! {
    /// Identity of the client, its login and its home folder.
    pub struct IdentityOptions {
        client_name: String = "clientName",
        github_token: String = "gitHubToken",
        /// The home folder of the session, instead of the server's.
        config_dir: PathBuf = "configDir",
    }
}

group! {
    /// Tools and commands of a client, and the questions that it answers.
    pub struct ClientOptions {
        /// Tools that the client runs.
        tools: Vec<ToolDeclaration> = "tools",
        /// Slash commands that the client carries out.
        commands: Vec<ClientCommand> = "commands",
        permissions: bool = "requestPermission",
        questions: bool = "requestUserInput",
        /// Forms.
        elicitations: bool = "requestElicitation",
        /// Plans to review.
        plans: bool = "requestExitPlanMode",
        /// Whether to continue with another model.
        switches: bool = "requestAutoModeSwitch",
        hooks: bool = "hooks",
        /// Whether the client is sent the pieces of what sub-agents say.
        agent_pieces: bool = "includeSubAgentStreamingEvents",
        /// Canvases that the client provides.
        canvases: Vec<CanvasDeclaration> = "canvases",
        /// Whether the client shows canvases.
        canvas_renderer: bool = "requestCanvasRenderer",
        /// Name of the client as a provider of canvases.
        extension_info: ExtensionInfo = "extensionInfo",
        /// Identity as a provider of canvases that outlives the connection. It goes before the name.
        canvas_provider: CanvasProvider = "canvasProvider",
        /// Whether extensions are loaded for the session.
        extensions: bool = "requestExtensions",
        /// Folder of the SDK that extensions import, instead of the built-in one.
        extension_sdk: PathBuf = "extensionSdkPath",
        /// Variables with secrets that an extension asks for when it joins.
        wanted_variables: Vec<String> = "requestedEnvironmentVariables",
    }
}

group! {
    /// One request to create or resume a session.
    pub struct EntryOptions {
        session_id: String = "sessionId",
        /// A resume is not logged.
        silent: bool = "disableResume",
        /// Pending questions stay open, rather than end as interrupted.
        continue_pending: bool = "continuePendingWork",
        limits: SessionLimits = "sessionLimits",
    }
}

/// Position in a distributed trace, by the W3C's recommendation. A session's trace holds for every prompt
/// without one of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TraceContext {
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

impl TraceContext {
    pub fn headers(&self) -> impl Iterator<Item = (String, String)> {
        let pair = |name: &str, value: &Option<String>| value.clone().map(|value| (name.to_owned(), value));
        // A state without its parent means nothing.
        let state = pair("tracestate", &self.tracestate).filter(|_| self.traceparent.is_some());
        pair("traceparent", &self.traceparent).into_iter().chain(state)
    }
}

impl SettingsGroup for TraceContext {
    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "traceparent" => self.traceparent = members.next_value()?,
            "tracestate" => self.tracestate = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The state belongs to its parent, so both are taken or neither is.
    fn adopt(&mut self, other: Self) {
        if other.traceparent.is_some() {
            *self = other;
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Source and name of a client that provides canvases.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ExtensionInfo {
    pub source: String,
    pub name: String,
}

impl ExtensionInfo {
    pub fn id(&self) -> String {
        format!("{}:{}", self.source, self.name)
    }
}

/// Identity of a provider of canvases, chosen by the client.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CanvasProvider {
    pub id: String,
    pub name: Option<String>,
}

/// A tool that the client runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDeclaration {
    pub name: String,
    pub description: Option<String>,
    pub parameters: Option<serde_json::Value>,
    pub overrides_built_in_tool: Option<bool>,
    pub skip_permission: Option<bool>,
    /// Whether a call that succeeds ends the turn.
    pub is_terminal: Option<bool>,
}
