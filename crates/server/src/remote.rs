//! Remote control: a portal of this machine that joins a session of this server and steers it. There is at most one such session.
//! Nothing is sent to other machines.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_protocol::data::RemoteSteerableChanged;
use hangar_store::SessionId;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::hub::{ServedSession, ServerHub};

/// Makes a session joinable for portals of this machine.
pub trait RemoteAccess: Send + Sync {
    /// Lets portals join a session. Returns the address of its page, or a sentence that says why there is none.
    fn admit(&self, hub: &Arc<ServerHub>, id: &SessionId) -> BoxFuture<'static, Result<String, String>>;

    /// Lets no further portal join it.
    fn revoke(&self, id: &SessionId);
}

/// The session under remote control, and the last attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum RemoteStatus {
    #[default]
    Off,
    Active {
        session_id: String,
        url: String,
    },
    Failed {
        session_id: String,
        error: String,
    },
}

impl RemoteStatus {
    pub(crate) fn tell(&self) -> Value {
        match self {
            RemoteStatus::Off => json!({ "state": "off" }),
            RemoteStatus::Active { session_id, url } => json!({
                "state": "active",
                "attachedSessionId": session_id,
                "frontendUrl": url,
                "isSteerable": true,
            }),
            RemoteStatus::Failed { session_id, error } => {
                json!({ "state": "error", "attachedSessionId": session_id, "error": error })
            }
        }
    }

    pub(crate) fn attached(&self) -> Option<&str> {
        match self {
            RemoteStatus::Active { session_id, .. } => Some(session_id),
            RemoteStatus::Off | RemoteStatus::Failed { .. } => None,
        }
    }
}

#[derive(Default)]
pub(crate) struct RemoteControl {
    status: Mutex<RemoteStatus>,
    /// Starts, stops and transfers take turns.
    turn: tokio::sync::Mutex<()>,
}

impl RemoteControl {
    pub(crate) fn status(&self) -> RemoteStatus {
        self.status.lock().clone()
    }

    /// Attaches a session, in the place of another one.
    pub(crate) async fn attach(&self, hub: &Arc<ServerHub>, live: &Arc<ServedSession>) -> RemoteStatus {
        let _turn = self.turn.lock().await;
        if self.status().attached() == Some(live.id.as_str()) {
            return self.status();
        }
        self.release(hub).await;
        let session_id = live.id.as_str().to_owned();
        let admitted = match hub.remote_access(live) {
            Some(access) => access.admit(hub, &live.id).await,
            None => Err("Sessions of this server are not shared with a portal".to_owned()),
        };
        let status = match admitted {
            Ok(url) => {
                steerable(live, true).await;
                RemoteStatus::Active { session_id, url }
            }
            Err(error) => RemoteStatus::Failed { session_id, error },
        };
        *self.status.lock() = status.clone();
        status
    }

    /// Detaches the session, if there is one. True if there was.
    pub(crate) async fn detach(&self, hub: &Arc<ServerHub>) -> bool {
        let _turn = self.turn.lock().await;
        self.release(hub).await
    }

    async fn release(&self, hub: &Arc<ServerHub>) -> bool {
        let before = std::mem::take(&mut *self.status.lock());
        let Some(session_id) = before.attached() else { return false };
        let Ok(live) = hub.live(session_id) else { return true };
        if let Some(access) = hub.remote_access(&live) {
            access.revoke(&live.id);
        }
        live.audience.dismiss_guests();
        steerable(&live, false).await;
        true
    }

    /// Forgets a session that is closed.
    pub(crate) fn closed(&self, live: &ServedSession, access: Option<&dyn RemoteAccess>) {
        let mut status = self.status.lock();
        if status.attached() == Some(live.id.as_str()) {
            *status = RemoteStatus::Off;
            if let Some(access) = access {
                access.revoke(&live.id);
            }
        }
    }
}

/// Puts the change in the log of the session.
async fn steerable(live: &ServedSession, remote_steerable: bool) {
    // A session that has ended is steered by nobody.
    let _ = live.ask(move |task| task.record(RemoteSteerableChanged { remote_steerable })).await;
}
