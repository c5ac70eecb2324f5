//! The agents that a session has at work: looked at, written to, stopped.

use std::sync::Arc;
use std::time::Duration;

use hangar_agent::agents::call::StartAgent;
use hangar_agent::agents::roll::{Agent, Status};
use hangar_protocol::data::ExecutionMode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::hub::Live;
use crate::task::SessionTask;

/// How long a client may wait for everything to end.
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.tasks.list", run: |call| Box::pin(list(call)) },
    Method { name: "session.tasks.refresh", run: |call| Box::pin(refresh(call)) },
    Method { name: "session.tasks.waitForPending", run: |call| Box::pin(wait(call)) },
    Method { name: "session.tasks.getProgress", run: |call| Box::pin(progress(call)) },
    Method { name: "session.tasks.getCurrentPromotable", run: |call| Box::pin(promotable(call)) },
    Method { name: "session.tasks.promoteToBackground", run: |call| Box::pin(promote(call)) },
    Method { name: "session.tasks.promoteCurrentToBackground", run: |call| Box::pin(promote_current(call)) },
    Method { name: "session.tasks.startAgent", run: |call| Box::pin(start(call)) },
    Method { name: "session.tasks.sendMessage", run: |call| Box::pin(send(call)) },
    Method { name: "session.tasks.cancel", run: |call| Box::pin(cancel(call)) },
    Method { name: "session.tasks.remove", run: |call| Box::pin(remove(call)) },
    Method { name: "session.cancelAllBackgroundAgents", run: |call| Box::pin(cancel_all(call)) },
];

#[derive(Deserialize)]
struct TaskParams {
    id: String,
}

/// An agent at work as clients are told of it.
fn describe(task: &SessionTask, agent: &Agent) -> Value {
    let awaited = task.driver.is_awaited(&agent.id);
    let mut out = json!({
        "type": "agent",
        "id": agent.id,
        "toolCallId": agent.tool_call_id,
        "displayName": agent.name,
        "description": agent.description,
        "status": agent.status.as_str(),
        "startedAt": agent.started,
        "agentType": agent.agent_type,
        "prompt": agent.prompt,
        "executionMode": agent.mode,
        "canPromoteToBackground": awaited,
    });
    let members = [
        ("completedAt", agent.ended.clone().filter(|_| agent.status != Status::Idle)),
        ("idleSince", agent.ended.clone().filter(|_| agent.status == Status::Idle)),
        ("latestResponse", agent.answers.last().cloned()),
        ("result", agent.answers.last().cloned()),
        ("resolvedModel", agent.model.clone()),
        ("error", if let Status::Failed { error } = &agent.status { Some(error.clone()) } else { None }),
    ];
    for (key, value) in members {
        if let Some(value) = value {
            out[key] = json!(value);
        }
    }
    out
}

fn described<'a>(
    task: &'a SessionTask,
    wanted: impl Fn(&Agent) -> bool + 'a,
) -> impl Iterator<Item = Value> + 'a {
    let agents = task.session().state().roll.iter().filter(move |agent| wanted(agent));
    agents.map(|agent| describe(task, agent))
}

async fn list(call: Call) -> Result<Reply, Failure> {
    let tasks = call.live()?.ask(|task| described(task, |_| true).collect::<Vec<_>>()).await?;
    Reply::of(json!({ "tasks": tasks }))
}

async fn refresh(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(json!({}))
}

async fn wait(call: Call) -> Result<Reply, Failure> {
    until_settled(&call.live()?).await?;
    Reply::of(json!({}))
}

/// Waits until neither the session nor an agent of it is at work.
pub(super) async fn until_settled(live: &Arc<Live>) -> Result<(), Failure> {
    let mut news = live.news.subscribe();
    let settled = async {
        loop {
            news.mark_unchanged();
            if live.ask(|task| task.driver.is_idle()).await? {
                return Ok(());
            }
            if news.changed().await.is_err() {
                return Ok(());
            }
        }
    };
    // Who has waited this long is told that it is over; what is still at work goes on.
    tokio::time::timeout(PATIENCE, settled).await.unwrap_or(Ok(()))
}

async fn progress(call: Call) -> Result<Reply, Failure> {
    let TaskParams { id } = call.params()?;
    let progress = call
        .live()?
        .ask(move |task| {
            task.session().state().roll.find(&id).map(|agent| {
                let line = |(message, timestamp): &(String, String)| json!({ "message": message, "timestamp": timestamp });
                json!({ "type": "agent", "recentActivity": agent.activity.iter().map(line).collect::<Vec<_>>() })
            })
        })
        .await?;
    Reply::of(json!({ "progress": progress }))
}

/// The first agent that a call waits for.
fn awaited(task: &SessionTask) -> Option<String> {
    let agents = task.session().state().roll.iter();
    agents.map(|agent| agent.id.clone()).find(|id| task.driver.is_awaited(id))
}

async fn promotable(call: Call) -> Result<Reply, Failure> {
    let task = call
        .live()?
        .ask(|task| awaited(task).and_then(|id| described(task, move |agent| agent.id == id).next()))
        .await?;
    Reply::of(task.map_or_else(|| json!({}), |task| json!({ "task": task })))
}

async fn promote(call: Call) -> Result<Reply, Failure> {
    let TaskParams { id } = call.params()?;
    let promoted = call.live()?.ask(move |task| task.attempt(|driver| driver.promote_agent(&id))).await?;
    Reply::of(json!({ "promoted": promoted.unwrap_or(false) }))
}

async fn promote_current(call: Call) -> Result<Reply, Failure> {
    let promoted = call
        .live()?
        .ask(|task| {
            let id = awaited(task)?;
            task.attempt(|driver| driver.promote_agent(&id)).filter(|promoted| *promoted)?;
            described(task, move |agent| agent.id == id).next()
        })
        .await?;
    Reply::of(promoted.map_or_else(|| json!({}), |task| json!({ "task": task })))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartParams {
    agent_type: String,
    prompt: String,
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    model: Option<String>,
}

async fn start(call: Call) -> Result<Reply, Failure> {
    let params: StartParams = call.params()?;
    let live = call.live()?;
    if let Some(model) = &params.model {
        super::model::available(&call, &live, model).await?;
    }
    let start = StartAgent {
        description: params.description.unwrap_or_else(|| params.name.clone()),
        agent_type: params.agent_type,
        name: params.name,
        prompt: params.prompt,
        mode: ExecutionMode::Background,
        model: params.model,
        effort: None,
    };
    let started = live.ask(move |task| task.attempt(|driver| driver.start_agent(start))).await?;
    match started {
        Some(Ok(id)) => Reply::of(json!({ "agentId": id })),
        Some(Err(refused)) => Err(Failure::new(refused.to_string())),
        None => Err(Failure::new("the session cannot go on")),
    }
}

async fn send(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        id: String,
        message: String,
    }
    let Params { id, message } = call.params()?;
    let addressee = id.clone();
    let sent = call
        .live()?
        .ask(move |task| task.attempt(|driver| driver.message_agent(&addressee, message)))
        .await?;
    match sent {
        Some(true) => Reply::of(json!({ "sent": true })),
        Some(false) | None => Reply::of(
            json!({ "sent": false, "error": format!("No agent can take messages under the id {id}") }),
        ),
    }
}

async fn cancel(call: Call) -> Result<Reply, Failure> {
    let TaskParams { id } = call.params()?;
    let cancelled = call.live()?.ask(move |task| task.attempt(|driver| driver.cancel_agent(&id))).await?;
    Reply::of(json!({ "cancelled": cancelled.unwrap_or(false) }))
}

async fn cancel_all(call: Call) -> Result<Reply, Failure> {
    let cancelled = call
        .live()?
        .ask(|task| {
            let running: Vec<String> = task
                .session()
                .state()
                .roll
                .iter()
                .filter(|agent| agent.status == Status::Running && agent.mode == ExecutionMode::Background)
                .map(|agent| agent.id.clone())
                .collect();
            let cancel = |id: &String| task.attempt(|driver| driver.cancel_agent(id)) == Some(true);
            running.iter().map(cancel).filter(|cancelled| *cancelled).count()
        })
        .await?;
    Reply::of(json!(cancelled))
}

async fn remove(call: Call) -> Result<Reply, Failure> {
    let TaskParams { id } = call.params()?;
    let removed = call.live()?.ask(move |task| task.driver.forget_agent(&id)).await?;
    Reply::of(json!({ "removed": removed }))
}
