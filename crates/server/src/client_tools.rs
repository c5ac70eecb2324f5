//! Tools that clients run. A call is an event with a request id; the result comes back by that id, from any client.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::interned;
use hangar_agent::model::Part;
use hangar_agent::tool::{
    Access, AccessRequest, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec, ToolStatus,
};
use hangar_protocol::data::{ExternalToolCompleted, ExternalToolRequested};
use hangar_protocol::permission::PermissionRequest;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use hangar_spec::ToolDeclaration;

/// Calls that wait for a client.
#[derive(Default)]
pub(crate) struct PendingCalls(Mutex<HashMap<String, PendingCall>>);

struct PendingCall {
    tool: String,
    arguments: Value,
    answer: oneshot::Sender<ToolOutcome>,
}

impl PendingCalls {
    /// Ends the calls of tools whose client is gone for good.
    pub(crate) fn abandon(&self, tools: &[String]) {
        let gone: Vec<PendingCall> = {
            let mut waiting = self.0.lock();
            let ids: Vec<String> = waiting
                .iter()
                .filter(|(_, call)| tools.contains(&call.tool))
                .map(|(id, _)| id.clone())
                .collect();
            ids.iter().filter_map(|id| waiting.remove(id)).collect()
        };
        for call in gone {
            let text = "Extension disconnected before responding to tool call";
            // Its run may have ended in between; the answer is not needed then.
            let _ = call.answer.send(ToolOutcome::of(ToolStatus::Failure, text));
        }
    }

    /// Ends a call. The answer comes back when no call waits under this id.
    pub(crate) fn resolve(&self, request_id: &str, answer: ClientToolAnswer) -> Option<ClientToolAnswer> {
        let Some(waiting) = self.0.lock().remove(request_id) else { return Some(answer) };
        let outcome = answer.outcome(&waiting.tool, &waiting.arguments);
        // Its run may have ended in between; the answer is not needed then.
        let _ = waiting.answer.send(outcome);
        None
    }
}

pub(crate) struct ExternalTool {
    session_id: String,
    spec: Arc<ToolSpec>,
    skip_permission: bool,
    is_terminal: bool,
    pending: Arc<PendingCalls>,
}

impl ExternalTool {
    pub(crate) fn new(session_id: &str, declaration: &ToolDeclaration, pending: &Arc<PendingCalls>) -> Self {
        let schema = declaration.parameters.clone().filter(Value::is_object);
        Self {
            session_id: session_id.to_owned(),
            spec: interned::spec(ToolSpec {
                name: declaration.name.clone(),
                title: None,
                description: declaration.description.clone().unwrap_or_default(),
                input: ToolSchema::function(
                    schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} })),
                ),
            }),
            skip_permission: declaration.skip_permission.unwrap_or(false),
            is_terminal: declaration.is_terminal.unwrap_or(false),
            pending: Arc::clone(pending),
        }
    }
}

impl Tool for ExternalTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        if self.skip_permission {
            return Ok(Access::None);
        }
        Ok(Access::Needs(Box::new(AccessRequest {
            request: PermissionRequest::CustomTool {
                tool_call_id: Some(call.call_id.clone()),
                tool_name: self.spec.name.clone(),
                tool_description: self.spec.description.clone(),
                args: Some(call.arguments.clone()),
            },
            reads: Vec::new(),
            writes: Vec::new(),
        })))
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let request_id = uuid::Uuid::new_v4().to_string();
        let (answer, answered) = oneshot::channel();
        let waiting = PendingCall { tool: self.spec.name.clone(), arguments: call.arguments.clone(), answer };
        self.pending.0.lock().insert(request_id.clone(), waiting);
        let requested = ExternalToolRequested {
            request_id: request_id.clone(),
            session_id: self.session_id.clone(),
            tool_call_id: call.call_id,
            tool_name: self.spec.name.clone(),
            arguments: call.arguments,
            working_directory: None,
            traceparent: None,
            tracestate: None,
        };
        let is_terminal = self.is_terminal;
        let taken_back = CancelOnDrop { pending: Arc::clone(&self.pending), request_id: request_id.clone() };
        Box::pin(async move {
            let _taken_back = taken_back;
            // A session that is over hears nothing more.
            let _ = context.progress.send(Box::new(requested.into())).await;
            let mut outcome = tokio::select! {
                () = context.cancel.cancelled() => {
                    return ToolOutcome::of(ToolStatus::Interrupted, hangar_agent::conversation::INTERRUPTED);
                }
                outcome = answered => outcome.unwrap_or_else(|_| {
                    ToolOutcome::of(ToolStatus::Interrupted, hangar_agent::conversation::INTERRUPTED)
                }),
            };
            let _ = context.progress.send(Box::new(ExternalToolCompleted { request_id }.into())).await;
            outcome.ends_run = is_terminal;
            outcome
        })
    }
}

/// Drop guard that cancels a call to a client.
struct CancelOnDrop {
    pending: Arc<PendingCalls>,
    request_id: String,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.pending.0.lock().remove(&self.request_id);
    }
}

/// Result of a tool call, as a client reports it.
pub(crate) enum ClientToolAnswer {
    Text(String),
    Result(Box<ClientToolResult>),
    /// The tool threw.
    Error,
}

/// Without a text it is none, but an object of the tool's own making.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClientToolResult {
    text_result_for_llm: String,
    result_type: Option<String>,
    error: Option<String>,
    session_log: Option<String>,
    #[serde(default)]
    binary_results_for_llm: Vec<Binary>,
    tool_telemetry: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Binary {
    data: String,
    mime_type: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    description: Option<String>,
}

impl ClientToolAnswer {
    pub(crate) fn outcome(self, tool: &str, arguments: &Value) -> ToolOutcome {
        match self {
            ClientToolAnswer::Text(text) => ToolOutcome::success(text),
            // Internal errors of a client are not shown to others.
            ClientToolAnswer::Error => ToolOutcome::failure(format!(
                "Failed to execute `{tool}` tool with arguments: {arguments} due to error: Error: Tool execution failed"
            )),
            ClientToolAnswer::Result(result) => result.outcome(),
        }
    }
}

impl ClientToolResult {
    fn outcome(self) -> ToolOutcome {
        let status = match self.result_type.as_deref() {
            Some("failure") => ToolStatus::Failure,
            Some("rejected") => ToolStatus::Rejected,
            Some("denied") => ToolStatus::Denied,
            Some("timeout") => ToolStatus::Timeout,
            _ => ToolStatus::Success,
        };
        let mut outcome = ToolOutcome::of(status, self.text_result_for_llm);
        if status != ToolStatus::Success {
            outcome.error = self.error;
        }
        outcome.detailed = self.session_log;
        outcome.telemetry = self.tool_telemetry;
        outcome.images = self
            .binary_results_for_llm
            .into_iter()
            .filter(|binary| {
                binary.kind.as_deref() == Some("image") || binary.mime_type.starts_with("image/")
            })
            .flat_map(|binary| {
                let image = Part::Image { mime_type: binary.mime_type, data: binary.data };
                [binary.description.map(Part::Text), Some(image)].into_iter().flatten()
            })
            .collect();
        outcome
    }
}
