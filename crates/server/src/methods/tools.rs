//! Tools that clients run.

use std::collections::BTreeMap;

use hangar_agent::agents::config::{AgentSetting, AgentSettings};
use hangar_agent::session::Command;
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_protocol::rpc;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::client_tools::ClientToolAnswer;
use crate::task::SessionTask;
use hangar_spec::ToolDeclaration;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.tools.handlePendingToolCall", run: |call| Box::pin(handle_pending(call)) },
    Method { name: "session.tools.initializeAndValidate", run: |call| Box::pin(validate(call)) },
    Method { name: "session.tools.updateSubagentSettings", run: |call| Box::pin(update_subagents(call)) },
    Method { name: "session.tools.getSubagentSettings", run: |call| Box::pin(subagents(call)) },
    Method { name: "session.tools.getCurrentMetadata", run: |call| Box::pin(current(call)) },
    Method { name: "session.tools.getBuiltinDescriptors", run: |call| Box::pin(builtin(call)) },
    Method { name: "session.tools.set", run: |call| Box::pin(set(call)) },
    Method { name: "session.tools.taskCompleteEventData", run: |call| Box::pin(task_complete_event(call)) },
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerParams {
    request_id: String,
    result: Option<Value>,
    error: Option<String>,
}

async fn handle_pending(call: Call) -> Result<Reply, Failure> {
    let params: AnswerParams = call.params()?;
    let live = call.live()?;
    let answer = match (params.error, params.result) {
        (Some(error), _) => {
            tracing::debug!(%error, "a client's tool failed");
            ClientToolAnswer::Error
        }
        (None, Some(Value::String(text))) => ClientToolAnswer::Text(text),
        (None, Some(result @ Value::Object(_))) => match rpc::read_value(result.clone()) {
            Ok(result) => ClientToolAnswer::Result(Box::new(result)),
            // An object of the tool's own making is its text.
            Err(_) => ClientToolAnswer::Text(result.to_string()),
        },
        (None, Some(other)) => ClientToolAnswer::Text(other.to_string()),
        (None, None) => ClientToolAnswer::Text(String::new()),
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

/// Serialises a tool for clients.
pub(super) fn describe(tool: &ToolSpec) -> Value {
    let mut value = json!({ "name": tool.name, "description": tool.description });
    if let ToolSchema::Function(schema) = &tool.input {
        value["parameters"] = schema.to_value();
    }
    value
}

#[derive(Deserialize)]
struct SubagentParams {
    /// `null` clears them.
    subagents: Option<SubagentSettings>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct SubagentSettings {
    agents: BTreeMap<String, SubagentEntry>,
    disabled_subagents: Vec<String>,
    max_concurrency: Option<usize>,
    max_depth: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubagentEntry {
    model: Option<String>,
    effort_level: Option<String>,
}

/// Sets models, efforts and limits of sub-agents that are started from now on.
async fn update_subagents(call: Call) -> Result<Reply, Failure> {
    let params: SubagentParams = call.params()?;
    let SubagentSettings { agents, disabled_subagents, max_concurrency, max_depth } =
        params.subagents.unwrap_or_default();
    let setting = |(name, entry): (String, SubagentEntry)| {
        (name, AgentSetting { model: entry.model, effort: entry.effort_level })
    };
    let settings = AgentSettings {
        agents: agents.into_iter().map(setting).collect(),
        disabled: disabled_subagents,
        depth: max_depth,
        running: max_concurrency,
    };
    call.live()?.ask(move |task| task.set_agent_settings(settings)).await?;
    Reply::of(json!({}))
}

/// The settings of the client and of the configuration, as they hold together. Absent if there are none.
async fn subagents(call: Call) -> Result<Reply, Failure> {
    let settings = call
        .live()?
        .ask(|task| {
            let settings = task.session().config().agent_config.as_deref()?.effective_settings();
            (settings != AgentSettings::default()).then_some(settings)
        })
        .await?;
    let told = settings.map(|AgentSettings { agents, disabled, depth, running }| {
        let agents = agents.into_iter().map(|(name, AgentSetting { model, effort })| {
            let fields = [("model", model), ("effortLevel", effort)];
            let set = fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), json!(value?))));
            (name, Value::Object(set.collect()))
        });
        let mut told = json!({ "agents": agents.collect::<serde_json::Map<_, _>>() });
        if !disabled.is_empty() {
            told["disabledSubagents"] = json!(disabled);
        }
        if let Some(running) = running {
            told["maxConcurrency"] = json!(running);
        }
        if let Some(depth) = depth {
            told["maxDepth"] = json!(depth);
        }
        told
    });
    Reply::of(json!({ "subagents": told }))
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
            tools.map(|tool| metadata(tool)).collect::<Vec<_>>()
        })
        .await?;
    Reply::of(json!({ "tools": tools }))
}

fn metadata(tool: &ToolSpec) -> Value {
    let mut value = json!({ "name": tool.name, "description": tool.description });
    if let ToolSchema::Function(schema) = &tool.input
        && let schema @ Value::Object(_) = schema.to_value()
    {
        value["input_schema"] = schema;
    }
    value
}

/// The built-in tools as they are defined, whether the model is shown them or not.
async fn builtin(call: Call) -> Result<Reply, Failure> {
    let tools = call
        .live()?
        .ask(|task| task.builtin().iter().map(|tool| definition(tool.spec())).collect::<Vec<_>>())
        .await?;
    Reply::of(json!({ "tools": tools }))
}

fn definition(tool: &ToolSpec) -> Value {
    let (schema, kind, format) = match &tool.input {
        ToolSchema::Function(schema) => (schema.to_value(), Value::Null, Value::Null),
        ToolSchema::Custom { grammar } => {
            let format = grammar
                .as_ref()
                .map(|grammar| json!({ "type": "grammar", "syntax": "lark", "definition": grammar }));
            (Value::Null, json!("custom"), json!(format))
        }
        ToolSchema::Hosted => (Value::Null, json!("hosted"), Value::Null),
    };
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": schema,
        "instructions": null,
        "type": kind,
        "format": format,
        // The use of tools is not reported.
        "safeForTelemetry": false,
        "isTerminal": false,
        "hasSummariseIntention": false,
    })
}

/// Replaces the tools that this client brought. Those of others stay.
async fn set(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        tools: Vec<ToolDeclaration>,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    if params.tools.iter().any(|tool| tool.name.is_empty()) {
        return Err(Failure::refused("a tool has no name"));
    }
    live.audience.set_tools(call.client.id, live.tools(&params.tools));
    live.ask(SessionTask::replace_tools).await?;
    Reply::of(json!({}))
}

/// Data of the `task_complete` event for a result.
async fn task_complete_event(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        #[serde(default)]
        tool_args: Value,
        final_result: Value,
    }
    let params: Params = call.params()?;
    call.live()?;
    let success = params.final_result["resultType"] == "success";
    let mut data = json!({ "success": success });
    if let Some(summary) = params.tool_args["summary"].as_str() {
        data["summary"] = json!(summary);
    }
    Reply::of(data)
}
