//! Remote control of sessions by a portal of this machine.

use hangar_protocol::Body;
use hangar_protocol::data::RemoteSteerableChanged;
use hangar_store::SessionId;
use serde::Deserialize;
use serde_json::json;

use super::{Call, Failure, Method, Reply, SessionParams};
use crate::remote::RemoteStatus;

/// Why a portal is not let in without a say.
const READ_ONLY: &str = "A portal that joins a session can steer it, and nothing is exported to other machines; start remote \
                         control with `remote` and `steerable`";

pub(super) const METHODS: &[Method] = &[
    Method { name: "sessions.getRemoteControlStatus", run: |call| Box::pin(status(call)) },
    Method { name: "sessions.startRemoteControl", run: |call| Box::pin(start(call)) },
    Method { name: "sessions.stopRemoteControl", run: |call| Box::pin(stop(call)) },
    Method { name: "sessions.transferRemoteControl", run: |call| Box::pin(transfer(call)) },
    // A portal that has joined steers; there is no other state to set.
    Method { name: "sessions.setRemoteControlSteering", run: |call| Box::pin(status(call)) },
    Method { name: "sessions.getPersistedRemoteSteerable", run: |call| Box::pin(persisted(call)) },
    Method { name: "session.remote.enable", run: |call| Box::pin(enable(call)) },
    Method { name: "session.remote.disable", run: |call| Box::pin(disable(call)) },
    Method { name: "session.remote.notifySteerableChanged", run: |call| Box::pin(notify(call)) },
];

async fn status(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "status": call.hub.remote.status().tell() }))
}

async fn start(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        config: Config,
    }
    #[derive(Deserialize)]
    struct Config {
        #[serde(default)]
        remote: bool,
        #[serde(default)]
        steerable: bool,
    }
    let Params { config } = call.params()?;
    let live = call.live()?;
    if !config.remote || !config.steerable {
        let session_id = live.id.as_str().to_owned();
        let status = RemoteStatus::Failed { session_id, error: READ_ONLY.to_owned() };
        return Reply::of(json!({ "status": status.tell() }));
    }
    let status = call.hub.remote.attach(&call.hub, &live).await;
    Reply::of(json!({ "status": status.tell() }))
}

async fn stop(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        expected_session_id: Option<String>,
        #[serde(default)]
        force: bool,
    }
    let Params { expected_session_id, force } = call.params()?;
    let status = call.hub.remote.status();
    let is_expected = expected_session_id.is_none_or(|id| status.attached() == Some(&id));
    let stopped = (force || is_expected) && call.hub.remote.detach(&call.hub).await;
    Reply::of(json!({ "stopped": stopped, "status": call.hub.remote.status().tell() }))
}

async fn transfer(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        to_session_id: String,
        expected_from_session_id: Option<String>,
    }
    let Params { to_session_id, expected_from_session_id } = call.params()?;
    let status = call.hub.remote.status();
    let is_expected = match (status.attached(), &expected_from_session_id) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(attached), Some(expected)) => attached == expected,
    };
    if !is_expected {
        return Reply::of(json!({ "transferred": false, "status": status.tell() }));
    }
    let live = call.hub.live(&to_session_id)?;
    let status = call.hub.remote.attach(&call.hub, &live).await;
    let transferred = status.attached() == Some(to_session_id.as_str());
    Reply::of(json!({ "transferred": transferred, "status": status.tell() }))
}

async fn enable(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        mode: Option<String>,
    }
    let Params { mode } = call.params()?;
    let live = call.live()?;
    match mode.as_deref() {
        Some("off") => Reply::of(json!({ "remoteSteerable": false })),
        Some("export") => Err(Failure::new(format!("Remote sessions are not available: {READ_ONLY}"))),
        _ => match call.hub.remote.attach(&call.hub, &live).await {
            RemoteStatus::Active { url, .. } => Reply::of(json!({ "url": url, "remoteSteerable": true })),
            RemoteStatus::Failed { error, .. } => Err(Failure::new(error)),
            RemoteStatus::Off => Reply::of(json!({ "remoteSteerable": false })),
        },
    }
}

async fn disable(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    if call.hub.remote.status().attached() == Some(live.id.as_str()) {
        call.hub.remote.detach(&call.hub).await;
    }
    Reply::null()
}

async fn notify(call: Call) -> Result<Reply, Failure> {
    let changed: RemoteSteerableChanged = call.params()?;
    call.live()?.ask(move |task| task.record(changed)).await?;
    Reply::of(json!({}))
}

/// The last word about it in the log.
async fn persisted(call: Call) -> Result<Reply, Failure> {
    let SessionParams { session_id } = call.params()?;
    let Ok(id) = session_id.parse::<SessionId>() else { return Reply::of(json!({})) };
    // A session that is not there has said nothing.
    let events = super::sessions::events(&call, &id).await.unwrap_or_default();
    let last = events.iter().rev().find_map(|event| match event.body() {
        Body::RemoteSteerableChanged(changed) => Some(changed.remote_steerable),
        _ => None,
    });
    Reply::of(last.map_or_else(|| json!({}), |last| json!({ "remoteSteerable": last })))
}
