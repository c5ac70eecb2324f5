//! One connection to a server, from the handshake to its end.

use std::sync::Arc;
use std::time::Duration;

use hangar_agent::schema::Schema;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, MetaObject, PaginatedRequestParams,
    ReadResourceRequestParams, RequestMetaObject, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, Peer, PeerRequestOptions, QuitReason, RoleClient, RunningService, ServiceError,
    serve_client_with_ct,
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::cache::{OfferedTool, ToolListing};
use crate::client::{Listener, Listeners, McpClient};
use crate::config::{Reach, Remote};
use crate::http::Authorized;
use crate::process::StderrTail;
use crate::server::ManagedServer;
use crate::{http, sse, stdio};

/// Tools of one server that are shown. More would drown the model.
const MAX_TOOLS: usize = 512;
/// Pages of a list of tools that are asked for. A server whose pages are empty would be asked for ever.
const MAX_PAGES: usize = 64;
/// Bytes of a tool's description, and of a server's instructions, that are shown.
const MAX_TEXT: usize = 16 << 10;
/// Bytes of the description of a tool's arguments. It cannot be cut: a tool that needs more is left out.
const MAX_SCHEMA: usize = 128 << 10;
/// Timeout of a list or a resource.
const LIST_PATIENCE: Duration = Duration::from_secs(30);
/// Default timeout of a call without progress.
const CALL_PATIENCE: Duration = Duration::from_secs(120);
/// Timeout of a call, whatever its progress.
const LONGEST_CALL: Duration = Duration::from_secs(3600);

pub(crate) struct McpConnection {
    peer: Peer<RoleClient>,
    listeners: Listeners,
    stop: CancellationToken,
    complaint: Option<StderrTail>,
    pub(crate) instructions: Option<String>,
}

/// Error of a call.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The server answered with an error of the protocol.
    Refused(String),
    TimedOut(String),
    /// The connection is gone.
    Lost(String),
    Cancelled,
}

impl McpConnection {
    /// Connects. The second value ends when the connection does.
    pub(crate) async fn open(
        server: &Arc<ManagedServer>,
    ) -> Result<(Self, impl Future<Output = ()> + use<>), String> {
        let listeners = Listeners::default();
        let client = McpClient::new(server, Arc::clone(&listeners));
        let stop = CancellationToken::new();
        let mut complaint = None;
        let config = server.config();
        let running = match &config.reach {
            Reach::Stdio(program) => {
                let running = server
                    .common()
                    .launcher
                    .spawn(program, config.source)
                    .map_err(|error| format!("cannot start `{}`: {error}", program.command))?;
                let said = running.complaint.clone();
                complaint = Some(said.clone());
                serve_client_with_ct(client, stdio::Stdio::new(running), stop.clone()).await.map_err(
                    |error| match said.last_line() {
                        Some(line) => format!("`{}` did not answer as a server: {line}", program.command),
                        None => format!("`{}` did not answer as a server: {error}", program.command),
                    },
                )
            }
            Reach::Http(remote) => {
                let authority = server.authority().ok_or("it has no address")?;
                let http = Authorized::new(server.common().http()?, authority);
                let transport = http::transport(http, remote, &headers(remote)?);
                serve_client_with_ct(client, transport, stop.clone())
                    .await
                    .map_err(|error| unanswered(&error))
            }
            Reach::Sse(remote) => {
                let authority = server.authority().ok_or("it has no address")?;
                let http = Authorized::new(server.common().http()?, authority);
                let transport = sse::Sse::open(http, &remote.url, headers(remote)?).await?;
                serve_client_with_ct(client, transport, stop.clone())
                    .await
                    .map_err(|error| unanswered(&error))
            }
        }?;
        let peer = running.peer().clone();
        let instructions = peer.peer_info().and_then(|info| info.instructions.clone()).map(within);
        let connection = Self { peer, listeners, stop, complaint, instructions };
        Ok((connection, ended(running)))
    }

    pub(crate) fn close(&self) {
        self.stop.cancel();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Tail of the program's stderr, if it is one.
    pub(crate) fn last_words(&self) -> Option<String> {
        self.complaint.as_ref().and_then(StderrTail::last_line)
    }

    /// Asks what the server offers.
    pub(crate) async fn offer(&self) -> Result<ToolListing, String> {
        let instructions = self.instructions.clone();
        if self.peer.peer_info().is_none_or(|info| info.capabilities.tools.is_none()) {
            return Ok(ToolListing { tools: Vec::new(), instructions });
        }
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let listed = tokio::time::timeout(LIST_PATIENCE, self.peer.list_tools(Some(page(cursor))))
                .await
                .map_err(|_| "it does not list its tools".to_owned())?
                .map_err(|error| format!("it does not list its tools: {error}"))?;
            for tool in listed.tools {
                let tool = serde_json::to_value(&tool).map_err(|error| error.to_string())?;
                tools.extend(offered(tool));
            }
            cursor = listed.next_cursor;
            if cursor.is_none() || tools.len() >= MAX_TOOLS {
                break;
            }
        }
        tools.truncate(MAX_TOOLS);
        Ok(ToolListing { tools, instructions })
    }

    /// Calls a tool and waits for its result, which is that of `tools/call`.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        meta: Option<Map<String, Value>>,
        timeout: Option<Duration>,
        listener: Listener,
    ) -> Result<Value, CallError> {
        let patience = timeout.unwrap_or(CALL_PATIENCE);
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut options = PeerRequestOptions::with_timeout(patience)
            .reset_timeout_on_progress()
            .with_max_total_timeout(LONGEST_CALL.max(patience));
        if let Some(meta) = meta {
            options = options.with_meta(RequestMetaObject(MetaObject(meta)));
        }
        let cancel = listener.context.cancel.clone();
        let mut listeners = self.listeners.lock().await;
        let handle = self
            .peer
            .send_cancellable_request(request, options)
            .await
            .map_err(|error| self.failure(error))?;
        let token = handle.progress_token.clone();
        listeners.insert(token.clone(), listener);
        drop(listeners);
        let (id, peer) = (handle.id.clone(), handle.peer.clone());
        let answer = tokio::select! {
            answer = handle.await_response() => answer.map_err(|error| self.failure(error)),
            () = cancel.cancelled() => {
                // The server may ignore it; no caller waits for it any more.
                let _ = peer.notify_cancelled(cancelled(id)).await;
                Err(CallError::Cancelled)
            }
        };
        // The library hands each word of progress to a task of its own, and wakes us for it first. What was said before the
        // answer is heard before it.
        tokio::task::yield_now().await;
        self.listeners.lock().await.remove(&token);
        match answer? {
            ServerResult::CallToolResult(result) => {
                serde_json::to_value(&result).map_err(|error| CallError::Refused(error.to_string()))
            }
            _ => Err(CallError::Refused("it answered with something that is no result".to_owned())),
        }
    }

    fn failure(&self, error: ServiceError) -> CallError {
        match error {
            ServiceError::McpError(error) => {
                CallError::Refused(format!("McpError: MCP error {}: {}", error.code.0, error.message))
            }
            ServiceError::Timeout { timeout } => {
                CallError::TimedOut(format!("no answer within {} s", timeout.as_secs_f64()))
            }
            ServiceError::TransportClosed => CallError::Lost(self.last_words().map_or_else(
                || "the connection was lost".to_owned(),
                |words| format!("the connection was lost: {words}"),
            )),
            other => CallError::Refused(chain(&other)),
        }
    }

    pub(crate) async fn read_resource(&self, uri: &str) -> Result<Value, String> {
        self.listed(self.peer.read_resource(ReadResourceRequestParams::new(uri))).await
    }

    pub(crate) async fn resources(&self, cursor: Option<String>) -> Result<Value, String> {
        self.listed(self.peer.list_resources(Some(page(cursor)))).await
    }

    pub(crate) async fn resource_templates(&self, cursor: Option<String>) -> Result<Value, String> {
        self.listed(self.peer.list_resource_templates(Some(page(cursor)))).await
    }

    async fn listed<T: serde::Serialize>(
        &self,
        asked: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<Value, String> {
        let result = tokio::time::timeout(LIST_PATIENCE, asked)
            .await
            .map_err(|_| "the server does not answer".to_owned())?
            .map_err(|error| chain(&error))?;
        serde_json::to_value(&result).map_err(|error| error.to_string())
    }
}

impl Drop for McpConnection {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn ended(running: RunningService<RoleClient, McpClient>) {
    match running.waiting().await {
        Ok(QuitReason::Cancelled | QuitReason::Closed) => {}
        Ok(other) => tracing::debug!(?other, "a connection to an MCP server ended"),
        Err(error) => tracing::debug!(%error, "a connection to an MCP server ended"),
    }
}

fn cancelled(id: rmcp::model::RequestId) -> rmcp::model::CancelledNotificationParam {
    rmcp::model::CancelledNotificationParam::new(Some(id), Some("the user cancelled the call".to_owned()))
}

fn page(cursor: Option<String>) -> PaginatedRequestParams {
    let mut page = PaginatedRequestParams::default();
    page.cursor = cursor;
    page
}

fn headers(remote: &Remote) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &remote.headers {
        let bad = || format!("`{name}` is not a header that can be sent");
        let name = HeaderName::try_from(name.as_str()).map_err(|_| bad())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Why a server at an address did not answer as one. The library keeps the cause out of the chain of sources, and names its
/// own types instead.
fn unanswered(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => chain(&*error.error),
        other => chain(other),
    }
}

/// Innermost cause, which names the error; the layers around it name parts of the library.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = inner.to_string();
        source = inner.source();
    }
    text
}

/// A text, cut where it is too long to be shown.
fn within(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    text
}

fn offered(tool: Value) -> Option<OfferedTool> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let annotations = &tool["annotations"];
    let mut schema = match &tool["inputSchema"] {
        Value::Object(schema) => schema.clone(),
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    let schema = Schema::from(Value::Object(schema));
    if schema.as_str().len() > MAX_SCHEMA {
        tracing::warn!(tool = %tool["name"], "a tool of an MCP server is left out: it needs too much to say how it is called");
        return None;
    }
    Some(OfferedTool {
        name: text(&tool["name"]).unwrap_or_default(),
        title: text(&tool["title"]).or_else(|| text(&annotations["title"])),
        description: text(&tool["description"]).map(within).unwrap_or_default(),
        schema,
        read_only: annotations["readOnlyHint"].as_bool().unwrap_or(false),
        meta: tool.get("_meta").filter(|meta| !meta.is_null()).cloned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_says_no_more_of_itself_than_the_model_is_shown() {
        let long = "é".repeat(MAX_TEXT);
        let tool = offered(json!({ "name": "t", "description": long, "inputSchema": {} })).unwrap();
        assert_eq!(tool.description.len(), MAX_TEXT);
        assert_eq!(tool.schema.to_value(), json!({ "type": "object", "properties": {} }));
        let wordy = json!({ "properties": { "x": { "description": "x".repeat(MAX_SCHEMA) } } });
        assert_eq!(offered(json!({ "name": "t", "inputSchema": wordy })), None);
    }
}
