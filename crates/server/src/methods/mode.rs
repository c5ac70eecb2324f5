//! The session's mode and name.

use hangar_agent::log::Fact;
use hangar_agent::session::Command;
use hangar_protocol::data::{Mode, TitleChanged};
use serde::Deserialize;
use serde_json::json;

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.mode.get", run: |call| Box::pin(get(call)) },
    Method { name: "session.mode.set", run: |call| Box::pin(set(call)) },
    Method { name: "session.name.get", run: |call| Box::pin(name(call)) },
    Method { name: "session.name.set", run: |call| Box::pin(set_name(call)) },
    Method { name: "session.name.setAuto", run: |call| Box::pin(set_auto_name(call)) },
];

async fn get(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let mode = live.ask(|task| task.session().state().mode).await?;
    Reply::of(json!(mode))
}

async fn set(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        mode: Mode,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    call.hub.admits(params.mode)?;
    live.command(Command::SetMode(params.mode)).await?;
    Reply::of(json!({ "status": "applied", "modelChanged": false, "modeApplied": true }))
}

async fn name(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let name = live.meta().await?.and_then(|meta| meta.name).map(|name| name.as_str().to_owned());
    Reply::of(json!({ "name": name }))
}

async fn set_name(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        name: String,
    }
    let params: Params = call.params()?;
    let name = params.name.trim().to_owned();
    if name.is_empty() {
        return Err(Failure::new("Session name cannot be empty"));
    }
    let live = call.live()?;
    live.ask(move |task| {
        task.driver.note(Fact::GivenName(name.clone())).map_err(|error| Failure::new(error.to_string()))?;
        task.titled = true;
        task.record(TitleChanged { title: name });
        Ok::<(), Failure>(())
    })
    .await??;
    Reply::null()
}

/// A name that nobody chose, which never replaces one that somebody did.
async fn set_auto_name(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        summary: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let name = params.summary.trim().to_owned();
    let known = live.meta().await?.and_then(|meta| meta.name);
    if name.is_empty() || matches!(known, Some(hangar_store::SessionName::Given(_))) {
        return Reply::of(json!({ "applied": false }));
    }
    live.ask(move |task| {
        task.driver.note(Fact::DerivedName(name.clone())).map_err(|error| Failure::new(error.to_string()))?;
        task.titled = true;
        task.record(TitleChanged { title: name });
        Ok::<(), Failure>(())
    })
    .await??;
    Reply::of(json!({ "applied": true }))
}
