//! Metadata of a session's directory, for clients that create it and describe it.

use hangar_agent::log::ListedFact;
use hangar_protocol::data::WorkingDirectory;
use hangar_store::SessionName;
use serde::Deserialize;
use serde_json::{Value, json};

use super::metadata::describe;
use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.workspaces.getWorkspace", run: |call| Box::pin(told(call)) },
    // Every session has its folder from the start.
    Method { name: "session.workspaces.ensure", run: |call| Box::pin(told(call)) },
    Method { name: "session.workspaces.updateMetadata", run: |call| Box::pin(update(call)) },
];

pub(super) async fn told(call: Call) -> Result<Reply, Failure> {
    let workspace = workspace(&call).await?;
    Reply::of(json!({ "workspace": workspace, "path": call.live()?.dir.shown() }))
}

/// The workspace with what its files say.
pub(super) async fn workspace(call: &Call) -> Result<Value, Failure> {
    let live = call.live()?;
    let mut workspace = describe(call).await?["workspace"].take();
    if let Some(meta) = live.meta().await? {
        workspace["user_named"] = json!(matches!(meta.name, Some(SessionName::Given(_))));
        if let Some(client) = meta.client_name {
            workspace["client_name"] = json!(client);
        }
    }
    // Clients add summaries to those of the session.
    workspace["summary_count"] = json!(live.dir.checkpoints().await?.len());
    Ok(workspace)
}

async fn update(call: Call) -> Result<Reply, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Params {
        context: Option<WorkingDirectory>,
        name: Option<String>,
    }
    let params: Params = call.params()?;
    let name = params.name.map(|name| name.trim().to_owned());
    if name.as_deref() == Some("") {
        return Err(Failure::new("Session name cannot be empty"));
    }
    call.live()?
        .ask(move |task| {
            name.map_or(Ok(()), |name| task.keep_name(ListedFact::GivenName(name)))?;
            params
                .context
                .map_or(Ok(()), |context| task.engine.driver_mut().note(ListedFact::Context(context)))
        })
        .await?
        .map_err(|error| Failure::new(error.to_string()))?;
    told(call).await
}
