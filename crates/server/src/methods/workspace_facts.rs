//! What is written down of a session's folder, for clients that see to it that it is there and say what it is about.

use hangar_agent::log::Fact;
use hangar_protocol::data::WorkingDirectory;
use serde::Deserialize;
use serde_json::json;

use super::metadata::describe;
use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.workspaces.ensure", run: |call| Box::pin(told(call)) },
    Method { name: "session.workspaces.updateMetadata", run: |call| Box::pin(update(call)) },
];

/// Every session has its folder from the start.
async fn told(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let mut all = describe(&call).await?;
    Reply::of(json!({ "workspace": all["workspace"].take(), "path": live.place.shown() }))
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
    let facts = [name.map(Fact::GivenName), params.context.map(Fact::Context)];
    call.live()?
        .ask(move |task| facts.into_iter().flatten().try_for_each(|fact| task.driver.note(fact)))
        .await?
        .map_err(|error| Failure::new(error.to_string()))?;
    told(call).await
}
