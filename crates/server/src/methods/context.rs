//! Methods that report the token usage of the context by message.

use hangar_agent::model::{Message, ModelRequest, Part, TokenMeter};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.metadata.getContextAttribution", run: |call| Box::pin(attribution(call)) },
    Method { name: "session.metadata.getContextHeaviestMessages", run: |call| Box::pin(heaviest(call)) },
    Method { name: "session.metadata.activity", run: |call| Box::pin(activity(call)) },
];

/// Maximum number of messages in a response.
const MAX_MESSAGES: usize = 100;
const DEFAULT_MESSAGES: usize = 10;
/// Maximum length of the label of a message in characters.
const LABEL_CHARS: usize = 60;

struct ContextPart {
    id: String,
    label: String,
    role: &'static str,
    tokens: u64,
}

fn weigh(request: &ModelRequest, meter: &dyn TokenMeter) -> Vec<ContextPart> {
    request
        .messages
        .iter()
        .enumerate()
        .map(|(at, message)| {
            let (role, label) = match &**message {
                Message::User(parts) => ("user", text(parts)),
                Message::Assistant(turn) if turn.text.is_empty() => {
                    let names: Vec<&str> = turn.tool_calls.iter().map(|call| call.name.as_str()).collect();
                    ("assistant", names.join(", "))
                }
                Message::Assistant(turn) => ("assistant", turn.text.clone()),
                Message::Tool { parts, .. } => ("tool", text(parts)),
            };
            let label: String = label.trim().chars().take(LABEL_CHARS).collect();
            ContextPart {
                id: format!("message-{at}"),
                label: if label.is_empty() { role.to_owned() } else { label },
                role,
                tokens: meter.message(message),
            }
        })
        .collect()
}

fn text(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image { .. } | Part::Document { .. } => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

async fn attribution(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let value = live
        .ask(|task| {
            let session = task.session();
            let meter = session.config().metering.meter.clone()?;
            let request = session.request();
            let count = session.measure()?;
            let limit = session.config().max_prompt_tokens;
            let total = count.system + count.conversation + count.tools;
            let mut entries = vec![
                json!({ "kind": "system", "id": "system", "label": "System prompt", "tokens": count.system }),
                json!({ "kind": "tools", "id": "tools", "label": "Tool definitions", "tokens": count.tools }),
                json!({ "kind": "messages", "id": "messages", "label": "Messages", "tokens": count.conversation }),
            ];
            entries.extend(weigh(&request, &*meter).into_iter().map(|message| {
                json!({
                    "kind": "message",
                    "id": message.id,
                    "label": message.label,
                    "tokens": message.tokens,
                    "parentId": "messages",
                })
            }));
            Some(json!({
                "totalTokens": total,
                "modelId": session.state().model,
                "modelSource": "session",
                "promptTokenLimit": limit,
                "limit": limit,
                "bufferTokens": 0,
                "compactionThreshold": limit * 4 / 5,
                "categories": {
                    "systemPrompt": count.system,
                    "customInstructions": 0,
                    "systemTools": count.tools,
                    "mcpTools": 0,
                    "messages": count.conversation,
                    "freeSpace": limit.saturating_sub(total),
                    "buffer": 0,
                },
                "entries": entries,
                "compactions": { "count": 0 },
            }))
        })
        .await?;
    Reply::of(json!({ "contextAttribution": value.unwrap_or(Value::Null) }))
}

async fn heaviest(call: Call) -> Result<Reply, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Params {
        limit: Option<usize>,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let (total, mut messages) = live
        .ask(|task| {
            let session = task.session();
            let Some(meter) = session.config().metering.meter.clone() else { return (0, Vec::new()) };
            let total = session.measure().map_or(0, hangar_agent::model::TokenCount::total);
            (total, weigh(&session.request(), &*meter))
        })
        .await?;
    messages.sort_by_key(|message| std::cmp::Reverse(message.tokens));
    messages.truncate(params.limit.unwrap_or(DEFAULT_MESSAGES).min(MAX_MESSAGES));
    let messages: Vec<Value> = messages
        .iter()
        .map(|message| {
            json!({ "id": message.id, "label": message.label, "role": message.role, "tokens": message.tokens })
        })
        .collect();
    Reply::of(json!({ "totalTokens": total, "messages": messages }))
}

async fn activity(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let (active, abortable) = live
        .ask(|task| {
            let session = task.session();
            (!session.is_idle() || session.is_compacting(), session.is_running())
        })
        .await?;
    Reply::of(json!({ "hasActiveWork": active, "abortable": abortable }))
}
