//! One call of a tool for a client, outside of any turn. The same rules hold as for the model's calls.

use std::time::Duration;

use hangar_agent::permissions::{Verdict, texts};
use hangar_agent::tool::{Access, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolStatus};
use hangar_protocol::data::{PermissionRequested, ToolType};
use hangar_protocol::permission::PermissionOutcome;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Call, Failure, Method, Reply};
use crate::task::SessionTask;

/// How long somebody may think about a permission, and a tool may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Events of a tool that may wait to be recorded.
const PROGRESS: usize = 64;

pub(super) const METHODS: &[Method] =
    &[Method { name: "session.tools.execute", run: |call| Box::pin(execute(call)) }];

/// What stands between a call and its run.
enum Gate {
    Open,
    Shut(Box<ToolOutcome>),
    /// Somebody is asked.
    Asked(oneshot::Receiver<PermissionOutcome>),
}

async fn execute(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        name: String,
        #[serde(default)]
        arguments: Value,
        #[serde(default)]
        tool_call_id: Option<String>,
    }
    let Params { name, arguments, tool_call_id } = call.params()?;
    let live = call.live()?;
    if let Some(mcp) = live.ask(|task| task.mcp().cloned()).await? {
        mcp.ready().await;
    }
    let found = live
        .ask(move |task| {
            task.catch_up();
            let Some(tool) = task.tool(&name) else { return Err(missing(task, &name)) };
            let kind = match &tool.spec().input {
                ToolSchema::Function(_) => ToolType::Function,
                ToolSchema::Custom { .. } => ToolType::Custom,
            };
            let arguments =
                if arguments.is_null() && kind == ToolType::Function { json!({}) } else { arguments };
            let call_id = tool_call_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
            let input = ToolInput { call_id, kind, arguments };
            let gate = gate(task, tool.inspect(&input));
            Ok((tool, input, gate))
        })
        .await?;
    let (tool, input, gate) = match found {
        Ok(found) => found,
        Err(missing) => return Reply::of(told(&missing)),
    };
    match gate {
        Gate::Open => {}
        Gate::Shut(outcome) => return Reply::of(told(&outcome)),
        Gate::Asked(answer) => match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(
                PermissionOutcome::Approved {}
                | PermissionOutcome::ApprovedForSession { .. }
                | PermissionOutcome::ApprovedForLocation { .. },
            )) => {}
            Ok(Ok(PermissionOutcome::DeniedInteractivelyByUser { feedback, .. })) => {
                let text = texts::rejected_by_user(feedback.as_deref());
                return Reply::of(told(&ToolOutcome::of(ToolStatus::Rejected, text)));
            }
            _ => return Reply::of(told(&ToolOutcome::of(ToolStatus::Denied, texts::NO_USER))),
        },
    }
    let (progress, mut events) = mpsc::channel(PROGRESS);
    let cancel = CancellationToken::new();
    let _cancelled_when_dropped = cancel.clone().drop_guard();
    // Nobody waits to say something to a call that is part of no turn.
    let hurry = CancellationToken::new();
    let running = tool.run(input, ToolContext { cancel, hurry, progress });
    let recording = async {
        while let Some(event) = events.recv().await {
            // A session that is over hears nothing more.
            let _ = live.ask(move |task| task.record(*event)).await;
        }
    };
    let both = async { tokio::join!(running, recording).0 };
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(PATIENCE, both) => outcome,
        () = live.ended() => return Err(Failure::new("the session ended before the tool did")),
    };
    Reply::of(match outcome {
        Ok(outcome) => told(&outcome),
        Err(_) => {
            json!({ "textResultForLlm": "The tool took too long and was stopped.", "resultType": "timeout" })
        }
    })
}

fn missing(task: &SessionTask, name: &str) -> ToolOutcome {
    let names: Vec<&str> = task.session().config().tools.iter().map(|tool| tool.name.as_str()).collect();
    let text =
        format!("Tool '{name}' does not exist. Available tools that can be called are {}.", names.join(", "));
    let mut outcome = ToolOutcome::of(ToolStatus::Failure, text);
    outcome.error = Some(format!("Tool '{name}' does not exist."));
    outcome
}

fn gate(task: &mut SessionTask, inspected: Result<Access, ToolOutcome>) -> Gate {
    let access = match inspected {
        Err(outcome) => return Gate::Shut(Box::new(outcome)),
        Ok(Access::None) => return Gate::Open,
        Ok(Access::Needs(access)) => access,
    };
    let config = task.session().config();
    match config.policy.decide(&access) {
        Verdict::Allow => Gate::Open,
        Verdict::Deny { rules } => {
            Gate::Shut(Box::new(ToolOutcome::of(ToolStatus::Denied, texts::denied_by_rules(&rules))))
        }
        Verdict::Ask { .. } if !config.user_reachable => {
            Gate::Shut(Box::new(ToolOutcome::of(ToolStatus::Denied, texts::NO_USER)))
        }
        Verdict::Ask { .. } => {
            let (answer, answered) = oneshot::channel();
            let request_id = task.asked.begin(access.request.clone(), answer);
            task.record(PermissionRequested::new(request_id, access.request));
            Gate::Asked(answered)
        }
    }
}

/// An outcome as clients are told of it.
fn told(outcome: &ToolOutcome) -> Value {
    let kind = match outcome.status {
        ToolStatus::Success => "success",
        ToolStatus::Denied => "denied",
        ToolStatus::Rejected => "rejected",
        ToolStatus::Timeout => "timeout",
        ToolStatus::Failure | ToolStatus::Interrupted => "failure",
    };
    let mut told = json!({ "textResultForLlm": outcome.text, "resultType": kind });
    if outcome.status != ToolStatus::Success {
        told["error"] = json!(outcome.error.as_ref().unwrap_or(&outcome.text));
    }
    if let Some(detailed) = &outcome.detailed {
        told["sessionLog"] = json!(detailed);
    }
    told
}
