//! Policies of the machine or the organisation. Hangar has none beyond hooks and settings files, and answers
//! accordingly.

use serde::Deserialize;
use serde_json::json;

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "managedSettings.read", run: |_| Box::pin(async { Reply::of(json!({})) }) },
    Method { name: "managedSettings.clearCache", run: |_| Box::pin(async { Reply::null() }) },
    Method { name: "session.contentExclusion.checkPaths", run: |call| Box::pin(check_paths(call)) },
    Method { name: "session.sandbox.getEnforcementStatus", run: |call| Box::pin(enforcement(call)) },
    Method { name: "session.sandbox.disableForSession", run: |call| Box::pin(disable_sandbox(call)) },
];

/// Content exclusion of an organisation is unknown here, so no path is reported as allowed.
async fn check_paths(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "paths")]
        _paths: Vec<String>,
    }
    let _: Params = call.params()?;
    call.live()?;
    Reply::of(json!({ "available": false, "checks": [] }))
}

/// Reports no enforcement. A requested sandbox that is unavailable prevents the session from opening.
async fn enforcement(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(json!({ "required": false, "blocked": false }))
}

/// A command that asks to run without its limits asks for itself alone; no question is about the sandbox that was asked for.
async fn disable_sandbox(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
    }
    let Params { request_id } = call.params()?;
    let asked = call.live()?.ask(|task| task.engine.driver().pending_permissions()).await?;
    Err(Failure::new(match asked.iter().any(|asked| asked.request_id == request_id) {
        true => format!("pending permission request '{request_id}' is not about the sandbox"),
        false => format!("pending permission request '{request_id}' was not found"),
    }))
}
