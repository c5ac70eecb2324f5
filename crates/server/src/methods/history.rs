//! Conversation of a session: truncating it, and summarising it for handoff.

use hangar_agent::session::{Command, NOTHING_TO_COMPACT, rewind_to};
use hangar_protocol::Body;
use hangar_protocol::data::{CompactionComplete, CompactionTrigger, SnapshotRewind};
use serde::Deserialize;
use serde_json::json;

use super::sessions::events;
use super::{Call, Failure, Method, Reply};
use hangar_spec::SessionSpec;

/// Characters of one message in a summary.
const EXCERPT: usize = 2000;
/// Messages in a summary, the latest.
const MESSAGES: usize = 20;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.history.truncate", run: |call| Box::pin(truncate(call)) },
    Method { name: "session.history.summarizeForHandoff", run: |call| Box::pin(summarize(call)) },
    Method {
        name: "session.history.cancelBackgroundCompaction",
        run: |call| Box::pin(cancel_background(call)),
    },
    Method { name: "session.history.abortManualCompaction", run: |call| Box::pin(abort_manual(call)) },
    Method { name: "session.history.compact", run: |call| Box::pin(compact(call)) },
    Method { name: "session.history.clearContext", run: |call| Box::pin(clear(call)) },
];

/// Takes back everything from an event on.
async fn truncate(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        event_id: String,
    }
    let params: Params = call.params()?;
    let removed = truncate_from(&call, &params.event_id).await?;
    Reply::of(json!({ "eventsRemoved": removed }))
}

/// Removes everything from an event on and returns the number of removed events.
pub(super) async fn truncate_from(call: &Call, event_id: &str) -> Result<u64, Failure> {
    let live = call.live()?;
    if !live.ask(|task| task.session().is_idle()).await? {
        return Err(Failure::new("the session is at work; abort it or wait for it to be idle"));
    }
    let kept = events(call, &live.id).await?;
    let Some(at) = kept.iter().position(|event| event.id().0 == event_id) else {
        return Err(Failure::new(format!("Event {event_id} not found")));
    };
    let removed = (kept.len() - at) as u64;
    let bodies = rewind_to(&kept, at);
    live.ask(move |task| bodies.into_iter().for_each(|body| task.record(body))).await?;
    call.hub.reopen(&live, SessionSpec::default()).await?;
    let rewind = SnapshotRewind { up_to_event_id: event_id.to_owned(), events_removed: removed };
    live.ask(move |task| task.record(rewind)).await?;
    Ok(removed)
}

/// Last question and answer of the session, verbatim.
async fn summarize(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    live.ask(|_| ()).await?;
    let mut said: Vec<String> = Vec::new();
    for event in events(&call, &live.id).await? {
        match event.body() {
            Body::UserMessage(message) if !message.content.is_empty() => {
                said.push(format!("User: {}", excerpt(&message.content)));
            }
            Body::AssistantMessage(message) if !message.content.is_empty() => {
                said.push(format!("Assistant: {}", excerpt(&message.content)));
            }
            _ => {}
        }
    }
    let from = said.len().saturating_sub(MESSAGES);
    Reply::of(json!({ "summary": said[from..].join("\n\n") }))
}

fn excerpt(text: &str) -> &str {
    &text[..text.floor_char_boundary(EXCERPT)]
}

async fn compact(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        custom_instructions: Option<String>,
        /// Any that is not known is none.
        trigger: Option<String>,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let trigger = match params.trigger.as_deref() {
        Some("manual") => Some(CompactionTrigger::Manual),
        Some("model_switch") => Some(CompactionTrigger::ModelSwitch),
        _ => None,
    };
    let complete = sum_up(&call, params.custom_instructions, trigger).await?;
    let (length, count, limit) = live
        .ask(|task| {
            let session = task.session();
            (session.state().conversation.len(), session.measure(), session.config().max_prompt_tokens)
        })
        .await?;
    let mut result = json!({
        "success": true,
        "tokensRemoved": complete.tokens_removed.unwrap_or(0),
        "messagesRemoved": complete.messages_removed.unwrap_or(0),
        "summaryContent": complete.summary_content,
    });
    if let Some(count) = count {
        result["contextWindow"] = json!({
            "tokenLimit": limit,
            "currentTokens": count.system + count.conversation + count.tools,
            "messagesLength": length,
            "systemTokens": count.system,
            "conversationTokens": count.conversation,
            "toolDefinitionsTokens": count.tools,
        });
    }
    Reply::of(result)
}

/// Summarizes the conversation now and waits for the summary. It fails if there is nothing to summarize.
pub(super) async fn sum_up(
    call: &Call,
    instructions: Option<String>,
    trigger: Option<CompactionTrigger>,
) -> Result<CompactionComplete, Failure> {
    let live = call.live()?;
    let mut news = live.news.subscribe();
    live.ask(move |task| {
        if !task.session().is_idle() {
            return Err(Failure::new("the session is at work; abort it or wait for it to be idle"));
        }
        task.command(Command::Compact { instructions, trigger });
        Ok(())
    })
    .await??;
    while live.ask(|task| task.session().is_compacting()).await? {
        if !live.changed(&mut news).await {
            return Err(Failure::new("the session ended before its summary was there"));
        }
    }
    let recent = events(call, &live.id).await?;
    let complete = recent.iter().rev().find_map(|event| match event.body() {
        Body::CompactionComplete(complete) => Some(complete.clone()),
        _ => None,
    });
    let complete = complete.ok_or_else(|| Failure::new("the session ended before its summary was there"))?;
    match &complete.error {
        Some(error) if error == NOTHING_TO_COMPACT => Err(Failure::new(error.clone())),
        Some(error) => Err(Failure::new(format!("the summary failed: {error}"))),
        None => Ok(complete),
    }
}

/// Has the conversation begin anew, from inside a call of a tool.
async fn clear(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        prompt: String,
    }
    let Params { prompt } = call.params()?;
    let cleared = call
        .live()?
        .ask(move |task| {
            if !task.session().may_clear_context() {
                return None;
            }
            let messages = task.session().state().conversation.len();
            task.command(Command::ClearContext { prompt });
            Some(messages)
        })
        .await?;
    match cleared {
        Some(messages) => Reply::of(json!({ "messagesCleared": messages })),
        None => Err(Failure::new(
            "session.history.clearContext must be called from inside a tool handler: no tool call is in flight, so the \
             prompt would have no turn to run in",
        )),
    }
}

/// Leaves a running compaction alone: it changes nothing before it ends.
async fn cancel_background(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(json!({ "cancelled": false }))
}

async fn abort_manual(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(json!({ "aborted": false }))
}
