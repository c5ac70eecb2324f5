//! Remote control of the server's sessions: portals of the same home find a session by its file, connect to a port of loopback
//! that only this file names, and join.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hangar_server::{ConnectionToken, RemoteAccess, ServerHub, serve_guests};
use hangar_store::SessionId;
use parking_lot::Mutex;
use tokio::net::TcpListener;

use crate::endpoint::{self, Announcement, ProcessEndpoint};

const NO_PORTAL: &str = "No portal is running for this home; start one with `hangar up`";

/// Access of the portals of a home.
pub(super) struct PortalAccess {
    home: PathBuf,
    /// `None` where another part of the process announces the sessions already.
    announced: Option<Arc<Announced>>,
}

#[derive(Default)]
struct Announced {
    /// The port, once a session was shared.
    listening: Mutex<Option<ProcessEndpoint>>,
    sessions: Mutex<HashMap<SessionId, Announcement>>,
}

impl PortalAccess {
    pub(super) fn new(home: PathBuf) -> Self {
        Self { home, announced: Some(Arc::default()) }
    }

    /// Access to sessions that can be joined anyway.
    pub(super) fn to_announced(home: PathBuf) -> Self {
        Self { home, announced: None }
    }
}

impl RemoteAccess for PortalAccess {
    fn admit(&self, hub: &Arc<ServerHub>, id: &SessionId) -> BoxFuture<'static, Result<String, String>> {
        let (home, announced, hub, id) =
            (self.home.clone(), self.announced.clone(), Arc::clone(hub), id.clone());
        Box::pin(async move {
            let portal = endpoint::portals(&home).into_iter().next().ok_or(NO_PORTAL)?;
            if let Some(announced) = announced {
                let endpoint = announced.listen(&hub).await?;
                let announcement = Announcement::of_session(&home, &id, &endpoint)
                    .map_err(|error| format!("the session cannot be announced: {error}"))?;
                announced.sessions.lock().insert(id.clone(), announcement);
            }
            Ok(format!("http://{}/sessions/{id}", portal.address))
        })
    }

    fn revoke(&self, id: &SessionId) {
        if let Some(announced) = &self.announced {
            announced.sessions.lock().remove(id);
        }
    }
}

impl Announced {
    /// Listens on loopback, once.
    async fn listen(&self, hub: &Arc<ServerHub>) -> Result<ProcessEndpoint, String> {
        if let Some(endpoint) = self.listening.lock().clone() {
            return Ok(endpoint);
        }
        let failed = |error: std::io::Error| format!("no port of loopback can be opened: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let token = uuid::Uuid::new_v4().simple().to_string();
        let endpoint = ProcessEndpoint { pid: std::process::id(), address, token: Some(token.clone()) };
        *self.listening.lock() = Some(endpoint.clone());
        let hub = Arc::clone(hub);
        // Ends with the runtime of the server.
        tokio::spawn(FutureExt::boxed(async move {
            serve_guests(&hub, listener, ConnectionToken::new(token)).await;
        }));
        Ok(endpoint)
    }
}
