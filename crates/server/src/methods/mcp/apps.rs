//! Methods for views of MCP servers: their tools and resources, and the context that they are shown in.

use hangar_mcp::{HostError, McpHost};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Call, Failure, Reply, host};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    server_name: String,
    origin_server_name: Option<String>,
    #[serde(default)]
    tool_name: String,
    arguments: Option<Map<String, Value>>,
    #[serde(default)]
    uri: String,
    cursor: Option<String>,
}

async fn connected(call: &Call, server: &str) -> Result<McpHost, Failure> {
    let not_connected = || Failure::from(HostError::NotConnected(server.to_owned()));
    host(call).await?.ok_or_else(not_connected)
}

/// Checks that a view may act: only in sessions that show views, and only on its own server.
async fn admit(call: &Call, params: &Params) -> Result<(), Failure> {
    let shown = call.live()?.ask(|task| task.spec.servers.apps.unwrap_or(false)).await?;
    if !shown {
        return Err(Failure::new("the session does not have the mcp-apps capability"));
    }
    match &params.origin_server_name {
        Some(origin) if *origin != params.server_name => Err(Failure::new(format!(
            "an mcp-apps view of \"{origin}\" may not use \"{}\"",
            params.server_name
        ))),
        _ => Ok(()),
    }
}

pub(super) async fn call_tool(call: Call) -> Result<Reply, Failure> {
    let params: Params = call.params()?;
    admit(&call, &params).await?;
    let host = connected(&call, &params.server_name).await?;
    let arguments = params.arguments.unwrap_or_default();
    Reply::of(host.call(&params.server_name, &params.tool_name, arguments).await?)
}

pub(super) async fn list_tools(call: Call) -> Result<Reply, Failure> {
    let params: Params = call.params()?;
    admit(&call, &params).await?;
    let host = connected(&call, &params.server_name).await?;
    let tools = host.list_tools(&params.server_name).await?;
    let tools: Vec<Value> = tools
        .into_iter()
        .map(|(name, meta)| match meta {
            Some(meta) => json!({ "name": name, "_meta": meta }),
            None => json!({ "name": name }),
        })
        .collect();
    Reply::of(json!({ "tools": tools }))
}

pub(super) async fn read_resource(call: Call) -> Result<Reply, Failure> {
    let params: Params = call.params()?;
    let host = connected(&call, &params.server_name).await?;
    let result = host.read_resource(&params.server_name, &params.uri).await?;
    Reply::of(json!({ "contents": result["contents"] }))
}

pub(super) async fn resources(call: Call) -> Result<Reply, Failure> {
    let params: Params = call.params()?;
    let host = connected(&call, &params.server_name).await?;
    let result = host.resources(&params.server_name, params.cursor).await?;
    Reply::of(page(&result, "resources"))
}

pub(super) async fn templates(call: Call) -> Result<Reply, Failure> {
    let params: Params = call.params()?;
    let host = connected(&call, &params.server_name).await?;
    let result = host.resource_templates(&params.server_name, params.cursor).await?;
    Reply::of(page(&result, "resourceTemplates"))
}

fn page(result: &Value, key: &str) -> Value {
    let mut page = json!({ key: result[key] });
    if let Some(cursor) = result.get("nextCursor").filter(|cursor| !cursor.is_null()) {
        page["nextCursor"] = cursor.clone();
    }
    page
}

pub(super) async fn diagnose(call: Call) -> Result<Reply, Failure> {
    /// Names of tools that are listed as examples.
    const SAMPLES: usize = 5;
    let params: Params = call.params()?;
    let shown = call.live()?.ask(|task| task.spec.servers.apps.unwrap_or(false)).await?;
    let tools = match host(&call).await? {
        Some(host) => host.list_tools(&params.server_name).await.ok(),
        None => None,
    };
    let connected = tools.is_some();
    let tools = tools.unwrap_or_default();
    let with_views: Vec<&String> = tools
        .iter()
        .filter(|(_, meta)| meta.as_ref().is_some_and(|meta| meta.get("ui").is_some()))
        .map(|(name, _)| name)
        .collect();
    Reply::of(json!({
        "capability": { "sessionHasMcpApps": shown, "featureFlagEnabled": true, "advertised": shown },
        "server": {
            "connected": connected,
            "toolCount": tools.len(),
            "toolsWithUiMeta": with_views.len(),
            "sampleToolNames": with_views.iter().take(SAMPLES).collect::<Vec<_>>(),
        },
    }))
}

pub(super) async fn set_host_context(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        context: Map<String, Value>,
    }
    let Params { context } = call.params()?;
    call.live()?.ask(move |task| task.host_context = context).await?;
    Reply::null()
}

pub(super) async fn host_context(call: Call) -> Result<Reply, Failure> {
    let context = call.live()?.ask(|task| task.host_context.clone()).await?;
    Reply::of(json!({ "context": context }))
}
