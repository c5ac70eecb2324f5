//! Methods of the protocol for features that Hangar does not have. The answers say so truthfully: empty lists, nothing
//! shared, nothing offered.

use serde_json::json;

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    // No host offers completions of what is typed.
    Method {
        name: "session.completions.getTriggerCharacters",
        run: |call| Box::pin(of(call, json!({ "triggerCharacters": [] }))),
    },
    Method { name: "session.completions.request", run: |call| Box::pin(of(call, json!({ "items": [] }))) },
    // Sessions stay on this machine.
    Method { name: "session.visibility.get", run: |call| Box::pin(of(call, json!({ "synced": false }))) },
    Method { name: "session.visibility.set", run: |call| Box::pin(of(call, json!({ "synced": false }))) },
    // Usage is not counted.
    Method { name: "session.telemetry.getEngagementId", run: |call| Box::pin(of(call, json!({}))) },
    // Hooks come from files that are read when a session is opened; none of them waits to be read later.
    Method { name: "sessions.reloadPluginHooks", run: |call| Box::pin(of(call, json!({}))) },
    Method {
        name: "sessions.loadDeferredRepoHooks",
        run: |call| Box::pin(of(call, json!({ "startupPrompts": [], "hookCount": 0 }))),
    },
    Method { name: "sessions.connect", run: |call| Box::pin(connect(call)) },
    Method {
        name: "agentRegistry.spawn",
        run: |_| {
            Box::pin(async {
                Err(Failure::new("agentRegistry.spawn is not enabled: agents run inside their session"))
            })
        },
    },
];

async fn of(call: Call, result: serde_json::Value) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(result)
}

async fn connect(call: Call) -> Result<Reply, Failure> {
    let super::SessionParams { session_id } = call.params()?;
    Err(Failure::new(format!("Session not found: {session_id} is not a remote session that is known here")))
}
