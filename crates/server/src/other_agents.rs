//! Sessions of agents other than Hangar's own. The host runs them and answers the requests about them.

use futures_util::future::BoxFuture;
use hangar_peer::Peer;
use hangar_protocol::rpc::Id;
use serde_json::Value;
use serde_json::value::RawValue;

/// Request of a client about a session of another agent.
pub struct ForwardedRequest {
    pub peer: Peer,
    pub id: Id,
    pub method: String,
    pub params: Value,
}

pub trait OtherAgents: Send + Sync {
    /// Whether a request opens such a session, or is about one that is open.
    fn concerns(&self, method: &str, params: Option<&RawValue>) -> bool;

    /// Takes a request that concerns it, and answers it.
    fn take(&self, request: ForwardedRequest);

    /// Ends all such sessions.
    fn close(&self) -> BoxFuture<'_, ()>;
}
