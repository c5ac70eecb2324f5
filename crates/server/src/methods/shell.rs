//! Commands that clients run where the session works.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hangar_agent::tool::ToolStatus;
use hangar_protocol::Body;
use hangar_protocol::data::{ShellExecution, ToolComplete, ToolError, ToolResult, ToolUserRequested};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use super::{Call, Failure, Method, Reply};
use crate::client_shells::output;
use crate::peer::notification;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.shell.exec", run: |call| Box::pin(exec(call)) },
    Method { name: "session.shell.kill", run: |call| Box::pin(kill(call)) },
    Method { name: "session.shell.executeUserRequested", run: |call| Box::pin(execute(call)) },
    Method { name: "session.shell.cancelUserRequested", run: |call| Box::pin(cancel(call)) },
];

/// Timeout of a command that sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

fn busy() -> Failure {
    Failure::new("too many commands run in this session, or one of that name does")
}

/// Starts a command. Its end is a notification to the client that started it.
async fn exec(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        command: String,
        cwd: Option<PathBuf>,
        timeout: Option<u64>,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let shell = live.ask(|task| task.shell()).await?.ok_or_else(|| Failure::new("there is no shell"))?;
    let process_id = uuid::Uuid::new_v4().to_string();
    let slot = live.shells.enter(&process_id).ok_or_else(busy)?;
    let command = match &params.cwd {
        Some(cwd) => format!("cd {} && {{ {}\n}}", quoted(&cwd.display().to_string()), params.command),
        None => params.command,
    };
    let limit = match params.timeout {
        None => DEFAULT_TIMEOUT,
        // Zero is how SDKs say "none": ours holds all the same.
        Some(0) => MAX_TIMEOUT,
        Some(limit) => Duration::from_millis(limit).min(MAX_TIMEOUT),
    };
    let (client, session_id, id) = (Arc::clone(&call.client), live.id.to_string(), process_id.clone());
    let shells = Arc::clone(&live.shells);
    tokio::spawn(FutureExt::boxed(async move {
        let running = slot.run(shell, id.clone(), &command, |_| std::future::ready(()));
        tokio::pin!(running);
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            () = tokio::time::sleep(limit) => {
                shells.cancel(&id);
                running.await
            }
        };
        let exit = json!({
            "sessionId": session_id,
            "processId": id,
            "exitCode": outcome.exit_code,
            "output": output(&outcome),
        });
        client.peer.send(notification("shell.exit", &exit));
    }));
    Reply::of(json!({ "processId": process_id }))
}

/// A word that the shell takes as it is.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Kills the whole process group, gracefully first, whichever signal was requested.
async fn kill(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        process_id: String,
    }
    let params: Params = call.params()?;
    Reply::of(json!({ "killed": call.live()?.shells.cancel(&params.process_id) }))
}

/// Runs a command of the user's to its end. It stands in the session's log, but not in the conversation.
async fn execute(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
        command: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let tool_call_id = uuid::Uuid::new_v4().to_string();
    let slot = live.shells.enter(&params.request_id).ok_or_else(busy)?;
    let requested = ToolUserRequested {
        tool_call_id: tool_call_id.clone(),
        tool_name: "bash".to_owned(),
        arguments: Some(json!({ "command": params.command })),
    };
    let shell = live
        .ask(move |task| {
            task.record(requested);
            task.shell()
        })
        .await?
        .ok_or_else(|| Failure::new("there is no shell"))?;
    let told = Arc::clone(&live);
    // The tool drops the output of a command that is cancelled.
    let shown: Mutex<String> = Mutex::default();
    let report = |piece: Body| {
        let told = Arc::clone(&told);
        if let Body::ToolPartialResult(partial) = &piece {
            shown.lock().clone_from(&partial.partial_output);
        }
        async move {
            // A session that has ended has nobody to tell.
            let _ = told.ask(move |task| task.record(piece)).await;
        }
    };
    let outcome = slot.run(shell, tool_call_id.clone(), &params.command, report).await;
    let output = match outcome.status {
        ToolStatus::Interrupted => shown.into_inner(),
        _ => output(&outcome),
    };
    let success = outcome.status == ToolStatus::Success && outcome.exit_code.unwrap_or(0) == 0;
    let error = (!success).then(|| match outcome.status {
        ToolStatus::Interrupted => "the command was cancelled".to_owned(),
        _ => format!("the command failed with exit code {}", outcome.exit_code.unwrap_or(1)),
    });
    let complete = ToolComplete {
        tool_call_id: tool_call_id.clone(),
        success,
        shell_execution: outcome.exit_code.map(|exit_code| ShellExecution { exit_code }),
        result: Some(ToolResult { content: output.clone(), ..Default::default() }),
        error: error.clone().map(|message| ToolError { message, code: Some("failure".to_owned()) }),
        ..Default::default()
    };
    live.ask(move |task| task.record(complete)).await?;
    let mut result = json!({
        "toolCallId": tool_call_id,
        "success": success,
        "output": output,
        "exitCode": outcome.exit_code,
    });
    if let Some(error) = error {
        result["error"] = json!(error);
    }
    Reply::of(result)
}

async fn cancel(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
    }
    let params: Params = call.params()?;
    Reply::of(json!({ "cancelled": call.live()?.shells.cancel(&params.request_id) }))
}
