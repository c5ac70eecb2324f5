//! Edits of the queue: insert, move, remove, repeat, replace, or send now.

use std::collections::BTreeMap;

use hangar_agent::session::{CallOptions, Command, Prompt, QueueEdit, QueuedPrompt};
use hangar_protocol::data::AgentMode;
use hangar_protocol::rpc::codes;
use serde::Deserialize;
use serde_json::json;

use super::messages::MessageParams;
use super::session::{complete, refuse_clash};
use super::{Call, Failure, Method, Reply};
use crate::task::SessionTask;
use hangar_spec::TraceContext;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.queue.insertAt", run: |call| Box::pin(insert(call)) },
    Method { name: "session.queue.moveItem", run: |call| Box::pin(move_item(call)) },
    Method { name: "session.queue.removeAt", run: |call| Box::pin(remove(call)) },
    Method { name: "session.queue.duplicateAt", run: |call| Box::pin(duplicate(call)) },
    Method { name: "session.queue.updateText", run: |call| Box::pin(update(call)) },
    Method { name: "session.queue.sendNow", run: |call| Box::pin(send_now(call)) },
    Method { name: "session.queue.setDrainPaused", run: |call| Box::pin(pause(call)) },
];

/// Finds a queued item and its position.
fn find(task: &SessionTask, id: &str) -> Result<(usize, QueuedPrompt), Failure> {
    let mut waiting = task.session().queued().enumerate();
    waiting.find(|(_, prompt)| prompt.message_id.as_deref() == Some(id)).ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Failure {
    let message = format!("unknown queue item id '{id}'");
    Failure::coded(codes::INVALID_PARAMS, message, Some(json!({ "code": "unknown_id" })))
}

/// Finds a queued message; only messages can be replaced or sent now.
fn find_message(task: &SessionTask, id: &str, operation: &str) -> Result<QueuedPrompt, Failure> {
    let (_, waiting) = find(task, id)?;
    if waiting.is_switch {
        let message = format!("queue operation '{operation}' does not support item kind 'model_change'");
        let data = json!({ "code": "invalid_target_kind" });
        return Err(Failure::coded(codes::INVALID_PARAMS, message, Some(data)));
    }
    Ok(waiting)
}

pub(super) fn full() -> Failure {
    Failure::new("too many messages are waiting already")
}

/// Positions before the first mean the first.
fn place(position: i64) -> usize {
    usize::try_from(position.max(0)).unwrap_or(usize::MAX)
}

async fn insert(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        position: i64,
        message: Inserted,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Inserted {
        #[serde(flatten)]
        message: MessageParams,
        agent_mode: Option<AgentMode>,
        request_headers: Option<BTreeMap<String, String>>,
    }
    let Params { position, message: Inserted { message, agent_mode, request_headers } } = call.params()?;
    if message.source.as_deref() == Some("system") {
        return Err(Failure::refused(
            "invalid queue request: message.source must not be \"system\": inserted items must stay visible and \
             addressable",
        ));
    }
    call.hub.admits_prompt(agent_mode)?;
    let headers = request_headers.unwrap_or_default().into_iter().collect();
    let prompt =
        Prompt { call_options: CallOptions { headers, answer: None }, agent_mode, ..message.into_prompt() };
    let id = prompt.message_id.clone();
    let live = call.live()?;
    if let Some(mcp) = live.ask(|task| task.mcp().cloned()).await? {
        // It may be the first message, which the servers start with.
        mcp.ready().await;
    }
    live.ask(move |task| {
        if !task.session().has_room_in_queue() {
            return Err(full());
        }
        if !task.clashes.is_empty() {
            refuse_clash(task);
            return Ok(());
        }
        task.catch_up();
        let mut prompt = prompt;
        complete(task, &mut prompt, &TraceContext::default());
        task.prepare(&mut prompt);
        edit(task, QueueEdit::Insert { at: place(position), prompt: Box::new(prompt) });
        Ok(())
    })
    .await??;
    Reply::of(json!({ "id": id }))
}

fn edit(task: &mut SessionTask, edit: QueueEdit) {
    task.command(Command::EditQueue(edit));
}

#[derive(Deserialize)]
struct ItemParams {
    id: String,
}

async fn move_item(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        id: String,
        to_position: i64,
    }
    let Params { id, to_position } = call.params()?;
    let changed = call
        .live()?
        .ask(move |task| {
            let (from, _) = find(task, &id)?;
            edit(task, QueueEdit::Move { id: id.clone(), to: place(to_position) });
            Ok::<bool, Failure>(find(task, &id).is_ok_and(|(now, _)| now != from))
        })
        .await??;
    Reply::of(json!({ "changed": changed }))
}

async fn remove(call: Call) -> Result<Reply, Failure> {
    let ItemParams { id } = call.params()?;
    call.live()?
        .ask(move |task| {
            if task.commands.remove(&id) {
                return Ok(());
            }
            find(task, &id)?;
            edit(task, QueueEdit::Remove { id });
            Ok::<(), Failure>(())
        })
        .await??;
    Reply::of(json!({ "removed": true }))
}

async fn duplicate(call: Call) -> Result<Reply, Failure> {
    let ItemParams { id } = call.params()?;
    let copy = uuid::Uuid::new_v4().to_string();
    let named = copy.clone();
    call.live()?
        .ask(move |task| {
            find(task, &id)?;
            if !task.session().has_room_in_queue() {
                return Err(full());
            }
            task.copy_choice(&id, &named);
            edit(task, QueueEdit::Duplicate { id, copy: named });
            Ok(())
        })
        .await??;
    Reply::of(json!({ "id": copy }))
}

async fn update(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        id: String,
        prompt: String,
        display_prompt: Option<String>,
    }
    let params: Params = call.params()?;
    let updated = call
        .live()?
        .ask(move |task| {
            let waiting = find_message(task, &params.id, "updateText")?;
            if !waiting.before.is_empty() {
                return Err(Failure::refused(format!("queue item '{}' is several messages", params.id)));
            }
            let Params { id, prompt, display_prompt } = params;
            let changed = task.session().would_reword(&id, &prompt, display_prompt.as_deref());
            edit(task, QueueEdit::Reword { id, text: prompt, shown: display_prompt });
            Ok(changed)
        })
        .await??;
    Reply::of(json!({ "updated": updated }))
}

async fn send_now(call: Call) -> Result<Reply, Failure> {
    let ItemParams { id } = call.params()?;
    call.live()?
        .ask(move |task| {
            find_message(task, &id, "sendNow")?;
            task.command(Command::SendNow { id });
            Ok::<(), Failure>(())
        })
        .await??;
    Reply::of(json!({ "steered": true }))
}

async fn pause(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        paused: bool,
    }
    let Params { paused } = call.params()?;
    call.live()?
        .ask(move |task| {
            if paused && task.session().is_queue_paused() {
                let data = json!({ "code": "queue_already_paused" });
                let message = "queue draining is already paused";
                return Err(Failure::coded(codes::INVALID_PARAMS, message, Some(data)));
            }
            edit(task, QueueEdit::Pause(paused));
            Ok(())
        })
        .await??;
    Reply::null()
}
