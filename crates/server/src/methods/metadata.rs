//! Facts about a session: where it works, what it uses, how full its context is, whose login it has.

use std::path::PathBuf;
use std::sync::Arc;

use hangar_agent::log::ListedFact;
use hangar_agent::model::TokenCount;
use hangar_protocol::data::ContextChanged;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::opener::InstructionSource;
use crate::recompose;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.metadata.snapshot", run: |call| Box::pin(snapshot(call)) },
    Method { name: "session.metadata.isProcessing", run: |call| Box::pin(is_processing(call)) },
    Method {
        name: "session.metadata.setWorkingDirectory",
        run: |call| Box::pin(set_working_directory(call)),
    },
    Method { name: "session.metadata.recordContextChange", run: |call| Box::pin(record_context(call)) },
    Method { name: "session.metadata.contextInfo", run: |call| Box::pin(context_info(call)) },
    Method { name: "session.metadata.recomputeContextTokens", run: |call| Box::pin(recompute(call)) },
    Method { name: "session.usage.getMetrics", run: |call| Box::pin(usage(call)) },
    Method { name: "session.instructions.getSources", run: |call| Box::pin(instructions(call)) },
    // They are read from their files each time, and for each new conversation.
    Method { name: "session.instructions.reload", run: |call| Box::pin(instructions(call)) },
    Method { name: "session.gitHubAuth.getStatus", run: |call| Box::pin(auth_status(call)) },
    Method { name: "session.gitHubAuth.setCredentials", run: |call| Box::pin(set_credentials(call)) },
    Method { name: "session.lsp.initialize", run: |call| Box::pin(take_note(call)) },
    Method { name: "session.telemetry.setFeatureOverrides", run: |call| Box::pin(take_note(call)) },
];

pub(super) async fn describe(call: &Call) -> Result<Value, Failure> {
    let live = call.live()?;
    let (cwd, mode, model, client) = live
        .ask(|task| {
            let state = task.session().state();
            (task.cwd(), state.mode, state.model.clone(), task.spec.identity.client_name.clone())
        })
        .await?;
    let meta = live.meta().await?;
    let now = hangar_agent::session::iso((call.hub.config().now)());
    let time = |time: Option<jiff::Timestamp>| time.map_or_else(|| now.clone(), hangar_agent::session::iso);
    let name = meta.as_ref().and_then(|meta| meta.name.as_ref()).map(|name| name.as_str().to_owned());
    let context = meta.as_ref().and_then(|meta| meta.context.clone());
    let start = time(meta.as_ref().map(|meta| meta.created_at));
    let modified = time(meta.as_ref().map(|meta| meta.updated_at));
    let workspace = json!({
        "id": live.id.as_str(),
        "cwd": cwd,
        "git_root": context.as_ref().and_then(|context| context.git_root.clone()),
        "repository": context.as_ref().and_then(|context| context.repository.clone()),
        "branch": context.as_ref().and_then(|context| context.branch.clone()),
        "name": name,
        "created_at": start,
        "updated_at": modified,
    });
    let mut value = json!({
        "sessionId": live.id.as_str(),
        "startTime": start,
        "modifiedTime": modified,
        "isRemote": false,
        "alreadyInUse": false,
        "workspacePath": live.dir.shown(),
        "workingDirectory": cwd,
        "currentMode": mode,
        "sessionLimits": null,
        "workspace": without_nulls(workspace),
    });
    if !model.is_empty() {
        value["selectedModel"] = json!(model);
    }
    if let Some(name) = name {
        value["summary"] = json!(name);
    }
    if let Some(client) = client {
        value["clientName"] = json!(client);
    }
    Ok(value)
}

/// Removes null fields: unknown values are absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    }
}

async fn snapshot(call: Call) -> Result<Reply, Failure> {
    Reply::of(describe(&call).await?)
}

async fn is_processing(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    Reply::of(json!({ "processing": live.ask(|task| !task.session().is_idle()).await? }))
}

async fn set_working_directory(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        working_directory: PathBuf,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let directory = params.working_directory;
    call.hub.reopen(&live, recompose::move_to(directory.clone())).await?;
    Reply::of(json!({ "workingDirectory": directory }))
}

async fn record_context(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        context: ContextChanged,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    live.ask(move |task| {
        // A list without it is a poorer list, not a failure.
        let _ = task.engine.driver_mut().note(ListedFact::Context(params.context.directory.clone()));
        task.record(params.context);
    })
    .await?;
    Reply::of(json!({}))
}

/// Token count of the next request: conversation and fixed parts.
async fn measure(call: &Call) -> Result<(TokenCount, String, u64), Failure> {
    let live = call.live()?;
    live.ask(|task| {
        let session = task.session();
        let count = session.measure();
        (count, session.state().model.clone(), session.config().max_prompt_tokens)
    })
    .await
    .map(|(count, model, limit)| {
        (count.unwrap_or(TokenCount { system: 0, conversation: 0, tools: 0 }), model, limit)
    })
}

async fn context_info(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        prompt_token_limit: Option<u64>,
        output_token_limit: Option<u64>,
        selected_model: Option<String>,
    }
    let params: Params = call.params()?;
    let (count, model, limit) = measure(&call).await?;
    let prompt_limit = params.prompt_token_limit.filter(|limit| *limit > 0).unwrap_or(limit);
    let total = count.system + count.conversation + count.tools;
    Reply::of(json!({ "contextInfo": {
        "modelName": params.selected_model.unwrap_or(model),
        "promptTokenLimit": prompt_limit,
        "limit": prompt_limit + params.output_token_limit.unwrap_or(0),
        "totalTokens": total,
        "systemTokens": count.system,
        "conversationTokens": count.conversation,
        "toolDefinitionsTokens": count.tools,
        "mcpToolsTokens": 0,
        "bufferTokens": 0,
        "compactionThreshold": prompt_limit * 4 / 5,
    }}))
}

async fn recompute(call: Call) -> Result<Reply, Failure> {
    let (count, ..) = measure(&call).await?;
    let system = count.system + count.tools;
    Reply::of(json!({
        "totalTokens": system + count.conversation,
        "messagesTokenCount": count.conversation,
        "systemTokenCount": system,
    }))
}

async fn usage(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let state = live.ask(|task| task.session().state().clone()).await?;
    let totals = &state.totals;
    let started = if state.started.is_empty() {
        hangar_agent::session::iso((call.hub.config().now)())
    } else {
        state.started.clone()
    };
    let changes = &totals.changes;
    // The SDKs want a figure, also where the cost is not known.
    let mut metrics = json!(totals.models);
    for metric in metrics.as_object_mut().into_iter().flat_map(|metrics| metrics.values_mut()) {
        let cost = metric["requests"]["cost"].as_f64().unwrap_or(0.0);
        metric["requests"]["cost"] = json!(cost);
    }
    Reply::of(json!({
        "totalPremiumRequestCost": 0,
        "totalUserRequests": totals.user_requests,
        "totalApiDurationMs": totals.api_ms,
        "sessionStartTime": started,
        "codeChanges": {
            "linesAdded": changes.lines_added,
            "linesRemoved": changes.lines_removed,
            "filesModifiedCount": changes.files_modified.len(),
            "filesModified": changes.files_modified,
        },
        "modelMetrics": metrics,
        "currentModel": state.model,
        "lastCallInputTokens": totals.last.0.unwrap_or(0),
        "lastCallOutputTokens": totals.last.1.unwrap_or(0),
    }))
}

async fn instructions(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "sources": instruction_sources(&call).await? }))
}

/// Sources of the session's instructions.
pub(super) async fn instruction_sources(call: &Call) -> Result<Vec<InstructionSource>, Failure> {
    let live = call.live()?;
    let (recomposer, spec) = live.ask(|task| (Arc::clone(&task.recomposer), task.spec.clone())).await?;
    Ok(recomposer.instruction_sources(&spec)?)
}

async fn auth_status(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let (token, credentials) =
        live.ask(|task| (task.spec.identity.github_token.clone(), task.credentials.clone())).await?;
    if let Some(credentials) = credentials {
        let login = &credentials["login"];
        return Reply::of(json!({
            "isAuthenticated": true,
            "authType": credentials["type"],
            "host": credentials["host"],
            "login": login,
            "statusMessage": format!("Authenticated as {}", login.as_str().unwrap_or_default()),
            "copilotPlan": credentials["copilotUser"]["copilot_plan"],
        }));
    }
    let status = call.hub.config().account.auth(token).await?;
    Reply::of(json!(status))
}

async fn set_credentials(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        credentials: Value,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let token = params.credentials["token"].as_str().map(str::to_owned);
    live.ask(move |task| {
        task.credentials = Some(params.credentials);
        if token.is_some() {
            task.spec.identity.github_token = token;
        }
    })
    .await?;
    Reply::success()
}

/// Accepts settings of features that Hangar does not have. They change nothing.
async fn take_note(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::null()
}
