//! The agents of a session: who there is, and whose role the session plays. And many of them on one task.

use hangar_agent::agents::config::AgentConfig;
use hangar_agent::agents::{AgentDefinition, AgentFile, AgentSource, fleet};
use hangar_agent::session::{Command, Prompt};
use serde::Deserialize;
use serde_json::{Value, json};

use super::tasks::until_settled;
use super::{Call, Failure, Method, Reply};
use crate::attachments;
use crate::task::SessionTask;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.agent.list", run: |call| Box::pin(list(call)) },
    Method { name: "session.agent.reload", run: |call| Box::pin(reload(call)) },
    Method { name: "session.agent.getCurrent", run: |call| Box::pin(current(call)) },
    Method { name: "session.agent.select", run: |call| Box::pin(select(call)) },
    Method { name: "session.agent.setPrompt", run: |call| Box::pin(set_prompt(call)) },
    Method { name: "session.agent.deselect", run: |call| Box::pin(deselect(call)) },
    Method { name: "session.fleet.start", run: |call| Box::pin(start_fleet(call)) },
];

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ListParams {
    include_built_in_agents: bool,
    include_prompt: bool,
}

fn agent_config(task: &SessionTask) -> Option<&AgentConfig> {
    task.session().config().agent_config.as_deref()
}

async fn list(call: Call) -> Result<Reply, Failure> {
    let params: ListParams = call.params()?;
    let agents = call.live()?.ask(move |task| describe_all(task, params)).await?;
    Reply::of(json!({ "agents": agents }))
}

async fn reload(call: Call) -> Result<Reply, Failure> {
    let agents = call.live()?.ask(|task| describe_all(task, ListParams::default())).await?;
    Reply::of(json!({ "agents": agents }))
}

/// The agents that have their names, once each: first the client's own, in its order, then those of files, the nearest first.
fn describe_all(task: &SessionTask, params: ListParams) -> Vec<Value> {
    let Some(agent_config) = agent_config(task) else { return Vec::new() };
    let all = &agent_config.definitions;
    let holds_name = |agent: &AgentDefinition| {
        let holder = all.iter().rev().find(|other| other.name == agent.name);
        holder.is_some_and(|holder| std::ptr::eq(holder, agent))
    };
    let of = |is_wanted: fn(&AgentSource) -> bool| {
        all.iter().filter(move |agent| is_wanted(&agent.source) && holds_name(agent))
    };
    let builtin = of(|source| *source == AgentSource::Builtin).filter(|_| params.include_built_in_agents);
    let files = of(|source| matches!(source, AgentSource::File(_))).rev();
    builtin
        .chain(of(|source| *source == AgentSource::Client))
        .chain(files)
        .map(|agent| {
            let mut described = describe(agent);
            if params.include_prompt {
                described["prompt"] = json!(agent.prompt);
            }
            described
        })
        .collect()
}

/// Serialises an agent for clients. Unknown values are left out.
pub(super) fn describe(agent: &AgentDefinition) -> Value {
    let mut out = json!({
        "name": agent.name,
        "id": agent.id,
        "displayName": agent.display_name,
        "description": agent.description,
        "userInvocable": agent.user_invocable,
        "disableModelInvocation": !agent.model_invocable,
    });
    if let Some(tools) = agent.tools.listed() {
        out["tools"] = json!(tools);
    }
    if let Some(model) = agent.models.first() {
        out["model"] = json!(model);
        out["models"] = json!(agent.models);
    }
    if !agent.skills.is_empty() {
        out["skills"] = json!(agent.skills);
    }
    match &agent.source {
        AgentSource::Builtin => out["source"] = json!("builtin"),
        AgentSource::File(AgentFile { path, owner }) => {
            out["path"] = json!(path.display().to_string());
            out["source"] = json!(owner.name());
        }
        AgentSource::Client => {}
    }
    out
}

async fn current(call: Call) -> Result<Reply, Failure> {
    let agent = call.live()?.ask(|task| task.session().active_role().map(describe)).await?;
    Reply::of(json!({ "agent": agent }))
}

async fn select(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        name: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let (selected, agent, servers) = live
        .ask(move |task| {
            let found = agent_config(task)
                .and_then(|agent_config| agent_config.find(&params.name))
                .filter(|agent| agent.user_invocable);
            let Some(agent) = found.cloned() else {
                return Err(Failure::new(format!("Agent not found: {}", params.name)));
            };
            task.command(Command::SelectAgent(Some(agent.name.clone())));
            Ok((describe(&agent), agent, task.mcp().cloned()))
        })
        .await??;
    if let Some(servers) = servers {
        // The session has what the agent has whose role it plays. A server that fails says so by its status.
        servers.adopt(&agent).await;
    }
    Reply::of(json!({ "agent": selected }))
}

/// Replaces the prompt of an agent while the session is live.
async fn set_prompt(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        id: String,
        prompt: String,
    }
    let Params { id, prompt } = call.params()?;
    call.live()?
        .ask(move |task| {
            let Some(agent) = agent_config(task).and_then(|agent_config| agent_config.find(&id)) else {
                return Err(Failure::new(format!("Agent not found: {id}")));
            };
            if !agent.has_role() {
                return Err(Failure::new(format!("the agent {id} has no prompt of its own to replace")));
            }
            let name = agent.name.clone();
            task.set_agent_prompt(name, prompt);
            Ok(())
        })
        .await??;
    Reply::null()
}

async fn deselect(call: Call) -> Result<Reply, Failure> {
    call.live()?.command(Command::SelectAgent(None)).await?;
    Reply::null()
}

async fn start_fleet(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        prompt: Option<String>,
        #[serde(default)]
        attachments: Vec<Value>,
        #[serde(default)]
        wait: bool,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let prompt = Prompt {
        attachments: params.attachments.into_iter().filter_map(attachments::read).collect(),
        message_id: Some(uuid::Uuid::new_v4().to_string()),
        ..fleet::prompt(params.prompt.as_deref())
    };
    live.command(Command::Send(prompt)).await?;
    if params.wait {
        until_settled(&live).await?;
    }
    Reply::of(json!({ "started": true }))
}
