//! Background tasks of a session: sub-agents, commands and client tasks. They are listed, messaged and cancelled here.

use std::sync::Arc;
use std::time::Duration;

use hangar_agent::agents::call::StartAgent;
use hangar_agent::agents::registry::{Agent, Status};
use hangar_engine::BackgroundCommand;
use hangar_protocol::data::{BackgroundTasksChanged, ExecutionMode};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::client::ClientId;
use crate::client_tasks::{Cancellation, ClientTaskUpdate, ClientTasks, Registration, unsupported};
use crate::hub::ServedSession;
use crate::task::SessionTask;

/// Longest wait for all tasks to end.
const PATIENCE: Duration = Duration::from_secs(600);
/// Timeout of a client that is asked to cancel its task.
const CANCEL_PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a command's output that are recent.
const RECENT_OUTPUT: usize = 64 << 10;

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
    Method { name: "session.tasks.register", run: |call| Box::pin(register(call)) },
    Method { name: "session.tasks.update", run: |call| Box::pin(update(call)) },
    Method { name: "session.cancelAllBackgroundAgents", run: |call| Box::pin(cancel_all(call)) },
];

#[derive(Deserialize)]
struct TaskParams {
    id: String,
}

/// Serialises a running sub-agent for clients.
fn describe(task: &SessionTask, agent: &Agent) -> Value {
    let awaited = task.engine.driver().is_awaited(&agent.id);
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
    let agents = task.session().state().agents.iter().filter(move |agent| wanted(agent));
    agents.map(|agent| describe(task, agent))
}

/// Serialises a command in the background for clients.
fn describe_command(command: &BackgroundCommand, now: Timestamp) -> Value {
    let started = now.checked_sub(command.running).unwrap_or(Timestamp::MIN);
    json!({
        "type": "shell",
        "id": command.id,
        "description": command.description,
        "command": command.command,
        "status": "running",
        "startedAt": started.to_string(),
        "attachmentMode": if command.is_detached { "detached" } else { "attached" },
        "executionMode": "background",
        "canPromoteToBackground": false,
        "pid": command.pid,
    })
}

async fn list(call: Call) -> Result<Reply, Failure> {
    let of_clients = call.client.knows_client_tasks();
    let now = (call.hub.config().now)();
    let tasks = call
        .live()?
        .ask(move |task| {
            let mut tasks: Vec<Value> = described(task, |_| true).collect();
            let commands = task.engine.background().commands();
            tasks.extend(commands.iter().map(|command| describe_command(command, now)));
            if of_clients {
                tasks.extend(task.client_tasks.describe());
            }
            tasks
        })
        .await?;
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

/// Waits until the session has settled, by the rule of every front end.
pub(super) async fn until_settled(live: &Arc<ServedSession>) -> Result<(), Failure> {
    let mut news = live.news.subscribe();
    let settled = async {
        loop {
            news.mark_unchanged();
            if live.ask(|task| task.engine.is_settled() && task.engine.driver().is_idle()).await? {
                return Ok(());
            }
            if !live.changed(&mut news).await {
                return Ok(());
            }
        }
    };
    // A caller that has waited this long gets an answer; the running tasks continue.
    tokio::time::timeout(PATIENCE, settled).await.unwrap_or(Ok(()))
}

async fn progress(call: Call) -> Result<Reply, Failure> {
    let TaskParams { id } = call.params()?;
    let progress = call
        .live()?
        .ask(move |task| {
            if let Some(progress) = task.client_tasks.progress(&id) {
                return Some(progress);
            }
            if let Some(output) = task.engine.background().output(&id) {
                let from = output.ceil_char_boundary(output.len().saturating_sub(RECENT_OUTPUT));
                return Some(json!({ "type": "shell", "recentOutput": output[from..] }));
            }
            task.session().state().agents.find(&id).map(|agent| {
                let line = |(message, timestamp): &(String, String)| json!({ "message": message, "timestamp": timestamp });
                json!({ "type": "agent", "recentActivity": agent.activity.iter().map(line).collect::<Vec<_>>() })
            })
        })
        .await?;
    Reply::of(json!({ "progress": progress }))
}

/// The first agent that a call waits for.
fn awaited(task: &SessionTask) -> Option<String> {
    let agents = task.session().state().agents.iter();
    agents.map(|agent| agent.id.clone()).find(|id| task.engine.driver().is_awaited(id))
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
    description: Option<String>,
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
    #[serde(rename_all = "camelCase")]
    struct Params {
        id: String,
        message: String,
        /// The agent that it is sent for; the session's main one where it does not say.
        from_agent_id: Option<String>,
    }
    let Params { id, message, from_agent_id } = call.params()?;
    let addressee = id.clone();
    let sent = call
        .live()?
        .ask(move |task| {
            task.attempt(|driver| driver.message_agent(&addressee, message, from_agent_id.as_deref()))
        })
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
    let live = call.live()?;
    let (named, session_id) = (id.clone(), live.id.to_string());
    match live.ask(move |task| task.client_tasks.cancellation(&named, &session_id)).await? {
        Some(Some(cancellation)) => return cancel_at_client(&call, &live, id, cancellation).await,
        Some(None) => return Reply::of(json!({ "cancelled": false })),
        None => {}
    }
    let cancel = move |task: &mut SessionTask| {
        if task.engine.background().stop(&id) {
            return Some(true);
        }
        task.attempt(|driver| driver.cancel_agent(&id))
    };
    let cancelled = live.ask(cancel).await?;
    Reply::of(json!({ "cancelled": cancelled.unwrap_or(false) }))
}

/// Asks the client that does the work to stop it.
async fn cancel_at_client(
    call: &Call,
    live: &Arc<ServedSession>,
    id: String,
    cancellation: Cancellation,
) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct CancelAnswer {
        #[serde(default)]
        cancelled: bool,
    }
    let owner = live.audience.member(cancellation.owner);
    let cancelled = match owner {
        None => false,
        Some(owner) => {
            let asking = owner.peer.request::<CancelAnswer>("tasks.cancel", &cancellation.params);
            // An owner that does not answer has not stopped it.
            matches!(
                tokio::time::timeout(CANCEL_PATIENCE, asking).await,
                Ok(Ok(CancelAnswer { cancelled: true }))
            )
        }
    };
    if cancelled {
        let now = (call.hub.config().now)();
        live.ask(move |task| {
            task.client_tasks.cancelled(&id, now);
            task.record(BackgroundTasksChanged {});
        })
        .await?;
    }
    Reply::of(json!({ "cancelled": cancelled }))
}

/// Lists work that the client does elsewhere.
async fn register(call: Call) -> Result<Reply, Failure> {
    let registration: Registration = call.params().map_err(plain)?;
    registration.check()?;
    let change = |tasks: &mut ClientTasks, owner, now| tasks.register(registration, owner, now);
    change_tasks(&call, change, "created").await
}

/// Applies an update by the client that owns the task.
async fn update(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        id: String,
        sequence: u64,
        update: ClientTaskUpdate,
    }
    let Params { id, sequence, update } = call.params().map_err(plain)?;
    update.check()?;
    let change = move |tasks: &mut ClientTasks, owner, now| tasks.update(&id, owner, sequence, &update, now);
    change_tasks(&call, change, "applied").await
}

/// Changes tasks for a client, and notifies all clients if the result says `news`.
async fn change_tasks(
    call: &Call,
    change: impl FnOnce(&mut ClientTasks, ClientId, Timestamp) -> Result<Value, Failure> + Send + 'static,
    news: &'static str,
) -> Result<Reply, Failure> {
    if !call.client.knows_client_tasks() {
        return Err(unsupported());
    }
    let (owner, now) = (call.client.id, (call.hub.config().now)());
    let told = call
        .live()?
        .ask(move |task| {
            let told = change(&mut task.client_tasks, owner, now)?;
            if told[news] == true {
                task.record(BackgroundTasksChanged {});
            }
            Ok::<Value, Failure>(told)
        })
        .await??;
    Reply::of(told)
}

/// Wrong parameters of a task stand for themselves.
fn plain(failure: Failure) -> Failure {
    Failure::refused(failure.message())
}

async fn cancel_all(call: Call) -> Result<Reply, Failure> {
    let cancelled = call
        .live()?
        .ask(|task| {
            let running: Vec<String> = task
                .session()
                .state()
                .agents
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
    let removed = call
        .live()?
        .ask(move |task| {
            let removed = task.client_tasks.remove(&id);
            if removed {
                task.record(BackgroundTasksChanged {});
            }
            removed || task.engine.driver_mut().forget_agent(&id)
        })
        .await?;
    Reply::of(json!({ "removed": removed }))
}
