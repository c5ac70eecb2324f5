//! Prompts that a session sends itself later. Nothing here makes any yet, so there are none to list or to stop.

use serde_json::json;

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.schedule.list", run: |call| Box::pin(list(call)) },
    Method { name: "session.schedule.stop", run: |call| Box::pin(stop(call)) },
];

async fn list(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(json!({ "entries": [] }))
}

async fn stop(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(json!({}))
}
