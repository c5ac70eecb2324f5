//! Messages and commands that wait for their turn.

use hangar_agent::session::{Command, QueuedPrompt, Unqueue};
use hangar_protocol::data::{AgentMode, CommandCompleted, CommandQueued};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::commands::QueuedCommand;
use crate::task::SessionTask;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.queue.pendingItems", run: |call| Box::pin(pending(call)) },
    Method { name: "session.queue.clear", run: |call| Box::pin(clear(call)) },
    Method { name: "session.queue.removeMostRecent", run: |call| Box::pin(remove_last(call)) },
    Method { name: "session.commands.enqueue", run: |call| Box::pin(enqueue(call)) },
    Method { name: "session.commands.respondToQueuedCommand", run: |call| Box::pin(respond(call)) },
];

/// Mode that is reported for an item without a mode of its own.
const UNSTAMPED_MODE: AgentMode = AgentMode::Interactive;

async fn pending(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let (queued, commands, steering): (Vec<QueuedPrompt>, Vec<QueuedCommand>, Vec<QueuedPrompt>) = live
        .ask(|task| {
            let session = task.session();
            (
                session.queued().collect(),
                task.commands.waiting().cloned().collect(),
                session.steering().collect(),
            )
        })
        .await?;
    let items = queued.iter().flat_map(|prompt| {
        if prompt.is_switch {
            return vec![command(prompt.message_id.as_deref(), &prompt.shown)];
        }
        let row = |message_id: &Option<String>, shown: &str| {
            json!({
                "id": prompt.message_id,
                "messageId": message_id,
                "kind": "message",
                "displayText": shown,
                "agentMode": prompt.mode.unwrap_or(UNSTAMPED_MODE),
            })
        };
        let before: Vec<Value> = prompt.before.iter().map(|(id, shown)| row(id, shown)).collect();
        before.into_iter().chain([row(&prompt.message_id, &prompt.shown)]).collect::<Vec<_>>()
    });
    let commands = commands.iter().map(|queued| command(Some(&queued.request_id), &queued.command));
    let items: Vec<Value> = items.chain(commands).collect();
    let steering: Vec<&str> = steering.iter().map(|prompt| prompt.shown.as_str()).collect();
    Reply::of(json!({ "items": items, "steeringMessages": steering, "inFlightSteeringCount": 0 }))
}

fn command(id: Option<&str>, shown: &str) -> Value {
    json!({ "id": id, "kind": "command", "displayText": shown, "agentMode": UNSTAMPED_MODE })
}

async fn clear(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    live.ask(|task| {
        task.commands.clear();
        task.command(Command::Unqueue(Unqueue::All));
    })
    .await?;
    Reply::null()
}

async fn remove_last(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let removed = live
        .ask(|task| {
            if task.commands.remove_last() {
                return true;
            }
            let count =
                |task: &SessionTask| task.session().queued().count() + task.session().steering().count();
            let before = count(task);
            task.command(Command::Unqueue(Unqueue::Last));
            count(task) < before
        })
        .await?;
    Reply::of(json!({ "removed": removed }))
}

async fn enqueue(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        command: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let queued = QueuedCommand { request_id: uuid::Uuid::new_v4().to_string(), command: params.command };
    let taken = live
        .ask(move |task| match task.commands.push(queued) {
            Ok(offered) => {
                offer(task, offered);
                true
            }
            Err(_) => false,
        })
        .await?;
    Reply::of(json!({ "queued": taken }))
}

fn offer(task: &mut SessionTask, queued: Option<QueuedCommand>) {
    if let Some(QueuedCommand { request_id, command }) = queued {
        task.record(CommandQueued { request_id, command });
    }
}

async fn respond(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
        #[serde(default)]
        result: Value,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let stop = params.result["stopProcessingQueue"].as_bool().unwrap_or(false);
    let known = live
        .ask(move |task| match task.commands.respond(&params.request_id, stop) {
            Some(next) => {
                task.record(CommandCompleted { request_id: params.request_id });
                offer(task, next);
                true
            }
            None => false,
        })
        .await?;
    Reply::did(known)
}
