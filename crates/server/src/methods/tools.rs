//! Tools that clients run.

use hangar_agent::session::Command;
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_protocol::rpc;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::external::ToolAnswer;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.tools.handlePendingToolCall", run: |call| Box::pin(handle_pending(call)) },
    Method { name: "session.tools.initializeAndValidate", run: |call| Box::pin(validate(call)) },
    Method { name: "session.tools.updateSubagentSettings", run: |call| Box::pin(update_subagents(call)) },
    Method { name: "session.tools.getCurrentMetadata", run: |call| Box::pin(current(call)) },
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerParams {
    request_id: String,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<String>,
}

async fn handle_pending(call: Call) -> Result<Reply, Failure> {
    let params: AnswerParams = call.params()?;
    let live = call.live()?;
    let answer = match (params.error, params.result) {
        (Some(error), _) => {
            tracing::debug!(%error, "a client's tool failed");
            ToolAnswer::Error
        }
        (None, Some(Value::String(text))) => ToolAnswer::Text(text),
        (None, Some(result @ Value::Object(_))) => match rpc::read_value(result.clone()) {
            Ok(result) => ToolAnswer::Result(Box::new(result)),
            // An object of the tool's own making is its text.
            Err(_) => ToolAnswer::Text(result.to_string()),
        },
        (None, Some(other)) => ToolAnswer::Text(other.to_string()),
        (None, None) => ToolAnswer::Text(String::new()),
    };
    let Some(answer) = live.pending.resolve(&params.request_id, answer) else { return Reply::did(true) };
    // The call may be one that a process before this one asked for.
    let answered = live
        .ask(move |task| {
            let Some(waiting) = task.session().awaits_client(&params.request_id) else { return false };
            let outcome = Box::new(answer.outcome(&waiting.tool, &waiting.arguments));
            task.command(Command::AnswerClientCall { request_id: params.request_id, outcome });
            true
        })
        .await?;
    Reply::did(answered)
}

/// A tool as clients are told of it.
pub(super) fn describe(tool: &ToolSpec) -> Value {
    let mut value = json!({ "name": tool.name, "description": tool.description });
    if let ToolSchema::Function(schema) = &tool.input {
        value["parameters"] = schema.clone();
    }
    value
}

/// How sub-agents are to be set up. Sessions have none whose setup could be changed from outside.
async fn update_subagents(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(json!({}))
}

async fn validate(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(json!({}))
}

async fn current(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let tools = live
        .ask(|task| {
            let tools = task.session().config().tools.iter();
            tools
                .map(|tool| json!({ "name": tool.name, "description": tool.description }))
                .collect::<Vec<_>>()
        })
        .await?;
    Reply::of(json!({ "tools": tools }))
}
