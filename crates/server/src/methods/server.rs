//! The server itself: liveness, version, login, models, shutdown.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::handshake::PROTOCOL_VERSION;

pub(super) const METHODS: &[Method] = &[
    Method { name: "ping", run: |call| Box::pin(ping(call)) },
    Method { name: "status.get", run: |call| Box::pin(status(call)) },
    Method { name: "auth.getStatus", run: |call| Box::pin(auth_status(call)) },
    Method { name: "models.list", run: |call| Box::pin(list_models(call)) },
    Method { name: "models.getBuiltInCatalog", run: |call| Box::pin(catalogue(call)) },
    Method { name: "tools.list", run: |call| Box::pin(list_tools(call)) },
    Method { name: "runtime.shutdown", run: |call| Box::pin(shutdown(call)) },
];

async fn ping(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        message: Option<String>,
    }
    let params: Params = call.params()?;
    let message = match params.message {
        Some(message) => format!("pong: {message}"),
        None => "pong".to_owned(),
    };
    let timestamp = hangar_agent::session::iso((call.hub.config().now)());
    Reply::of(json!({ "message": message, "timestamp": timestamp, "protocolVersion": PROTOCOL_VERSION }))
}

async fn status(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "version": call.hub.config().version, "protocolVersion": PROTOCOL_VERSION }))
}

async fn auth_status(call: Call) -> Result<Reply, Failure> {
    let status = call.hub.config().account.auth(None).await?;
    Reply::of(json!(status))
}

async fn list_models(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        git_hub_token: Option<String>,
    }
    let params: Params = call.params()?;
    let models = call.hub.config().account.models(params.git_hub_token).await?;
    Reply::of(json!({ "models": models }))
}

async fn catalogue(call: Call) -> Result<Reply, Failure> {
    let known = call.hub.config().account.known_models();
    let models: Vec<Value> = known.iter().map(|id| json!({ "id": id })).collect();
    Reply::of(json!({ "models": models }))
}

async fn list_tools(call: Call) -> Result<Reply, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Params {
        model: Option<String>,
    }
    let params: Params = call.params()?;
    let tools = call.hub.config().opener.tools(params.model.as_deref());
    let tools: Vec<Value> = tools.iter().map(|tool| super::tools::describe(tool)).collect();
    Reply::of(json!({ "tools": tools }))
}

/// Ends all sessions. The connection stays until the client closes it.
async fn shutdown(call: Call) -> Result<Reply, Failure> {
    call.hub.close().await;
    // If it cannot be written, the server ends all the same.
    let _ = tokio::task::spawn_blocking(call.hub.config().farewell).await;
    call.hub.stop();
    Reply::null()
}
