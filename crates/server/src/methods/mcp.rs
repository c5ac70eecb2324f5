//! The MCP servers of one session.

pub(super) mod answers;
mod apps;

use futures_util::FutureExt;
use hangar_mcp::{ConfigSource, HostError, Login, McpHost, ServerConfig};
use hangar_spec::SessionSpec;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Call, Failure, Method, Reply};
use crate::opener::RecomposeScope;
use crate::recompose::recompose;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.mcp.list", run: |call| Box::pin(list(call)) },
    Method { name: "session.mcp.listTools", run: |call| Box::pin(list_tools(call)) },
    Method { name: "session.mcp.isServerRunning", run: |call| Box::pin(is_running(call)) },
    Method { name: "session.mcp.enable", run: |call| Box::pin(enable(call)) },
    Method { name: "session.mcp.disable", run: |call| Box::pin(disable(call)) },
    Method { name: "session.mcp.reload", run: |call| Box::pin(reload(call)) },
    Method { name: "session.mcp.reloadWithConfig", run: |call| Box::pin(reload_with(call)) },
    Method { name: "session.mcp.startServer", run: |call| Box::pin(restart(call)) },
    Method { name: "session.mcp.restartServer", run: |call| Box::pin(restart(call)) },
    Method { name: "session.mcp.stopServer", run: |call| Box::pin(stop(call)) },
    Method { name: "session.mcp.moveLoadingToBackground", run: |call| Box::pin(background(call)) },
    Method { name: "session.mcp.setEnvValueMode", run: |call| Box::pin(env_value_mode(call)) },
    Method { name: "session.mcp.removeGitHub", run: |call| Box::pin(remove_github(call)) },
    Method { name: "session.mcp.oauth.login", run: |call| Box::pin(login(call)) },
    Method { name: "session.mcp.oauth.probe", run: |call| Box::pin(probe(call)) },
    Method { name: "session.mcp.oauth.respond", run: |call| Box::pin(respond(call)) },
    Method {
        name: "session.mcp.oauth.authenticationStateChanged",
        run: |call| Box::pin(reauthenticate(call)),
    },
    Method { name: "session.mcp.oauth.handlePendingRequest", run: |call| Box::pin(answers::oauth(call)) },
    Method {
        name: "session.mcp.headers.handlePendingHeadersRefreshRequest",
        run: |call| Box::pin(answers::headers(call)),
    },
    Method { name: "session.mcp.executeSampling", run: |call| Box::pin(answers::sample(call)) },
    Method {
        name: "session.mcp.cancelSamplingExecution",
        run: |call| Box::pin(answers::cancel_sampling(call)),
    },
    Method { name: "session.ui.handlePendingSampling", run: |call| Box::pin(answers::sampling(call)) },
    Method { name: "session.mcp.apps.callTool", run: |call| Box::pin(apps::call_tool(call)) },
    Method { name: "session.mcp.apps.listTools", run: |call| Box::pin(apps::list_tools(call)) },
    Method { name: "session.mcp.apps.readResource", run: |call| Box::pin(apps::read_resource(call)) },
    Method { name: "session.mcp.apps.diagnose", run: |call| Box::pin(apps::diagnose(call)) },
    Method { name: "session.mcp.apps.setHostContext", run: |call| Box::pin(apps::set_host_context(call)) },
    Method { name: "session.mcp.apps.getHostContext", run: |call| Box::pin(apps::host_context(call)) },
    Method { name: "session.mcp.resources.read", run: |call| Box::pin(apps::read_resource(call)) },
    Method { name: "session.mcp.resources.list", run: |call| Box::pin(apps::resources(call)) },
    Method { name: "session.mcp.resources.listTemplates", run: |call| Box::pin(apps::templates(call)) },
];

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Failure::Failed(error.to_string())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Server {
    server_name: String,
    config: Option<Value>,
}

/// The session's host, if it has servers.
pub(super) async fn host(call: &Call) -> Result<Option<McpHost>, Failure> {
    call.live()?.ask(|task| task.mcp().cloned()).await
}

pub(super) async fn host_or(call: &Call, otherwise: &str) -> Result<McpHost, Failure> {
    host(call).await?.ok_or_else(|| Failure::new(otherwise))
}

pub(super) const NO_HOST: &str = "No MCP host initialized";

/// Lists the servers, and starts them first.
async fn list(call: Call) -> Result<Reply, Failure> {
    let Some(host) = host(&call).await? else { return Reply::of(json!({ "servers": [] })) };
    let starting = host.clone();
    tokio::spawn(FutureExt::boxed(async move { starting.connect_all().await }));
    let servers: Vec<Value> =
        host.reports().into_iter().map(|report| serde_json::to_value(report).unwrap_or_default()).collect();
    Reply::of(json!({ "servers": servers }))
}

async fn list_tools(call: Call) -> Result<Reply, Failure> {
    let Server { server_name, .. } = call.params()?;
    let not_connected = || HostError::NotConnected(server_name.clone());
    let host = host(&call).await?.ok_or_else(not_connected)?;
    let tools = host.list_tools(&server_name).await?;
    let tools: Vec<Value> = tools
        .into_iter()
        .map(|(name, meta)| match meta.and_then(|meta| meta.get("ui").filter(|ui| ui.is_object()).cloned()) {
            Some(ui) => json!({ "name": name, "ui": ui }),
            None => json!({ "name": name }),
        })
        .collect();
    Reply::of(json!({ "tools": tools }))
}

async fn is_running(call: Call) -> Result<Reply, Failure> {
    let Server { server_name, .. } = call.params()?;
    let running = host(&call).await?.is_some_and(|host| host.is_running(&server_name));
    Reply::of(json!({ "running": running }))
}

async fn enable(call: Call) -> Result<Reply, Failure> {
    let Server { server_name, .. } = call.params()?;
    host_or(&call, NO_HOST).await?.enable(&server_name).await?;
    Reply::null()
}

async fn disable(call: Call) -> Result<Reply, Failure> {
    let Server { server_name, .. } = call.params()?;
    host_or(&call, NO_HOST).await?.disable(&server_name).await?;
    Reply::null()
}

async fn stop(call: Call) -> Result<Reply, Failure> {
    let Server { server_name, .. } = call.params()?;
    host_or(&call, NO_HOST).await?.stop(&server_name).await?;
    Reply::null()
}

async fn restart(call: Call) -> Result<Reply, Failure> {
    let Server { server_name, config } = call.params()?;
    let host = host_or(&call, NO_HOST).await?;
    let config = config.map(|config| parse(&server_name, &config)).transpose()?;
    host.restart(&server_name, config).await?;
    Reply::null()
}

fn parse(name: &str, config: &Value) -> Result<ServerConfig, Failure> {
    Ok(ServerConfig::parse(name, config, ConfigSource::User, &|_| None)?)
}

async fn reload(call: Call) -> Result<Reply, Failure> {
    read_again(&call).await?;
    Reply::null()
}

/// Reads the configuration again.
pub(super) async fn read_again(call: &Call) -> Result<(), Failure> {
    let live = call.live()?;
    host_or(call, "MCP config reload not available").await?;
    let scope = RecomposeScope { servers: true, ..RecomposeScope::default() };
    let (spec, recomposed) = recompose(&live, SessionSpec::default(), scope).await?;
    let model = spec.model.name.unwrap_or_default();
    let host = live
        .ask(move |task| {
            task.take_parts(recomposed, &model);
            task.refresh();
            task.mcp().cloned()
        })
        .await?;
    if let Some(host) = host {
        host.connect_all().await;
    }
    Ok(())
}

async fn reload_with(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        config: Config,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Config {
        mcp_servers: Map<String, Value>,
        #[serde(default)]
        disabled_servers: Vec<String>,
    }
    let Params { config } = call.params()?;
    let host = host_or(&call, NO_HOST).await?;
    let mut servers = Vec::new();
    for (name, value) in &config.mcp_servers {
        servers.push(parse(name, value)?);
    }
    host.replace(servers, &config.disabled_servers).await;
    host.connect_all().await;
    let failed: Vec<Value> = host
        .reports()
        .into_iter()
        .filter(|report| report.status == "failed")
        .map(|report| json!({ "name": report.name, "error": report.error.unwrap_or_default() }))
        .collect();
    Reply::of(json!({ "filteredServers": [], "failedServers": failed }))
}

/// Does nothing: starting a server never blocks for longer than its budget.
async fn background(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(json!({ "movedToBackground": false }))
}

/// Values that a client brings are always meant as they are written.
async fn env_value_mode(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        mode: String,
    }
    let Params { mode } = call.params()?;
    call.live()?;
    match mode.as_str() {
        "direct" | "indirect" => Reply::of(json!({ "mode": mode })),
        other => Err(Failure::Params(format!("`{other}` is not a mode of environment values"))),
    }
}

/// Removes the built-in server, not one of the user's by the same name.
async fn remove_github(call: Call) -> Result<Reply, Failure> {
    let Some(host) = host(&call).await? else { return Reply::of(json!({ "removed": false })) };
    let builtin = host.reports().into_iter().find(|report| report.source == ConfigSource::Builtin);
    if let Some(server) = &builtin {
        host.disable(&server.name).await?;
    }
    Reply::of(json!({ "removed": builtin.is_some() }))
}

async fn login(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        server_name: String,
        #[serde(default)]
        force_reauth: bool,
        client_name: Option<String>,
        callback_success_message: Option<String>,
    }
    let params: Params = call.params()?;
    let host = host_or(&call, "MCP host is not available").await?;
    let login = Login {
        force: params.force_reauth,
        client_name: params.client_name.unwrap_or_else(|| "Hangar".to_owned()),
        goodbye: params.callback_success_message.unwrap_or_else(|| "You can close this window.".to_owned()),
    };
    let url = host.login(&params.server_name, login).await?;
    match url {
        Some(url) => Reply::of(json!({ "authorizationUrl": url })),
        None => Reply::of(json!({})),
    }
}

/// Login state of a server. Nothing is started for the answer.
async fn probe(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        server_name: String,
    }
    let Params { server_name } = call.params()?;
    let reports = host(&call).await?.map(|host| host.reports()).unwrap_or_default();
    let failed = |error: String| json!({ "status": "failed", "error": error });
    Reply::of(match reports.into_iter().find(|report| report.name == server_name) {
        Some(report) if !matches!(report.transport, "http" | "sse") => {
            failed(format!("MCP server \"{server_name}\" is not a remote one"))
        }
        Some(report) if report.status == "needs-auth" => {
            json!({ "status": "needs-auth", "reason": "initial", "httpResponse": null })
        }
        Some(report) if report.status == "connected" => {
            json!({ "status": "no-auth-required", "httpResponse": null })
        }
        Some(report) => failed(
            report.error.unwrap_or_else(|| format!("MCP server \"{server_name}\" has not been reached yet")),
        ),
        None => failed(format!("MCP server \"{server_name}\" has no configured connection")),
    })
}

/// Requests are answered with a token, by `handlePendingRequest`; none waits for a word without one.
async fn respond(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        #[serde(rename = "requestId")]
        _request_id: String,
    }
    let _: Params = call.params()?;
    call.live()?;
    Reply::did(false)
}

/// Retries servers that needed a login, after a login elsewhere.
async fn reauthenticate(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        server_name: Option<String>,
    }
    let Params { server_name } = call.params()?;
    if let Some(host) = host(&call).await? {
        for report in host.reports() {
            let meant = server_name.as_ref().is_none_or(|name| *name == report.name);
            if meant && report.status == "needs-auth" {
                // Whether it worked is the server's status.
                let _ = host.restart(&report.name, None).await;
            }
        }
    }
    Reply::null()
}
