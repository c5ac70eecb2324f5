//! A server's tool as the session sees it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::hook::{HookKind, HookRequest};
use hangar_agent::tool::{
    Access, AccessRequest, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec,
};
use hangar_protocol::data::{HookEnd, HookError, HookStart};
use hangar_protocol::permission::PermissionRequest;
use serde_json::{Map, Value, json};

use crate::cache::OfferedTool;
use crate::client::Listener;
use crate::server::ManagedServer;

pub(crate) struct McpTool {
    spec: Arc<ToolSpec>,
    server: Arc<ManagedServer>,
    /// Its name with the server.
    tool: String,
    read_only: bool,
}

impl McpTool {
    pub(crate) fn new(server: &Arc<ManagedServer>, name: String, offered: &OfferedTool) -> Self {
        Self {
            spec: Arc::new(ToolSpec {
                name,
                title: Some(offered.title.clone().unwrap_or_else(|| offered.name.clone())),
                description: offered.description.clone(),
                input: ToolSchema::function(offered.schema.clone()),
            }),
            server: Arc::clone(server),
            tool: offered.name.clone(),
            read_only: offered.read_only,
        }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        Ok(Access::Needs(Box::new(AccessRequest {
            request: PermissionRequest::Mcp {
                tool_call_id: Some(call.call_id.clone()),
                server_name: self.server.name().to_owned(),
                tool_name: self.tool.clone(),
                tool_title: self.spec.title.clone().unwrap_or_else(|| self.tool.clone()),
                args: Some(call.arguments.clone()),
                read_only: self.read_only,
            },
            reads: Vec::new(),
            writes: Vec::new(),
        })))
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let (server, tool) = (Arc::clone(&self.server), self.tool.clone());
        Box::pin(async move {
            let arguments = match call.arguments {
                Value::Object(arguments) => arguments,
                _ => Map::new(),
            };
            let meta = ask_hooks(&server, &tool, &call.call_id, &arguments, &context).await;
            let listener = Listener { call_id: call.call_id, context };
            server.call(&tool, arguments, meta, listener).await
        })
    }
}

/// `_meta` that hooks add to a call. Hooks that fail add none.
async fn ask_hooks(
    server: &ManagedServer,
    tool: &str,
    call_id: &str,
    arguments: &Map<String, Value>,
    context: &ToolContext,
) -> Option<Map<String, Value>> {
    let common = server.common();
    let hooks = common.hooks()?;
    let request = HookRequest {
        id: common.fresh_id(),
        kind: HookKind::PreMcpToolCall,
        input: json!({
            "sessionId": common.session_id,
            "timestamp": (common.now)().as_millisecond(),
            "cwd": common.cwd,
            "toolCallId": call_id,
            "serverName": server.name(),
            "toolName": tool,
            "arguments": arguments,
        }),
    };
    let hook_type = request.kind.as_str().to_owned();
    let start = HookStart {
        hook_invocation_id: request.id.clone(),
        hook_type: hook_type.clone(),
        input: Some(request.input.clone()),
    };
    // A session that is over hears nothing more.
    let _ = context.progress.send(Box::new(start.into())).await;
    let answer = hooks.ask(&request).await;
    let end = HookEnd {
        hook_invocation_id: request.id,
        hook_type,
        output: answer.as_ref().ok().cloned().flatten(),
        success: answer.is_ok(),
        error: answer.as_ref().err().map(|failure| HookError { message: failure.message.clone() }),
    };
    let _ = context.progress.send(Box::new(end.into())).await;
    match answer.ok().flatten()?.get("metaToUse") {
        Some(Value::Object(meta)) => Some(meta.clone()),
        _ => None,
    }
}
