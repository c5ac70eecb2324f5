//! Feature flags of the server. A method of Hangar's own: the protocol has none.

use serde_json::json;

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] =
    &[Method { name: "hangar.features.list", run: |call| Box::pin(list(call)) }];

async fn list(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "features": call.hub.config().features.states() }))
}
