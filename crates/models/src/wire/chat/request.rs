//! A chat completions request.

use hangar_agent::model::{AssistantTurn, Message, Part, Reasoning, ToolCall, ToolChoice};
use hangar_agent::schema::Schema;
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_protocol::data::ToolType;
use serde::Serialize;
use serde_json::{Map, Value, json};
use serde_with::skip_serializing_none;

use crate::known::Family;
use crate::wire::{
    Ask, Dialect, answer_schema, arguments, data_url, function_schema, has_images, has_media, text_of,
    write_body,
};

pub(crate) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let request = ask.request;
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    body.insert("messages".into(), messages(ask).into());
    sampling(ask, &mut body);
    if let Some(limit) = ask.max_output_tokens {
        // The older name is the one that compatible servers know; the models that reason refuse it.
        let name = match ask.family {
            Family::Gpt5 | Family::OSeries => "max_completion_tokens",
            Family::OldGpt | Family::Claude(_) | Family::Other => "max_tokens",
        };
        body.insert(name.into(), json!(limit));
    }
    if !request.tools.is_empty() && request.tool_choice == ToolChoice::None {
        body.insert("tool_choice".into(), json!("none"));
    }
    if let Some(answer) = &request.answer {
        let format = json!({ "type": "json_schema", "json_schema": answer_schema(answer) });
        body.insert("response_format".into(), format);
    }
    if request.stream {
        body.insert("stream".into(), json!(true));
        body.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    let tools: Vec<Tool> = request.tools.iter().map(|spec| Tool::of(spec, ask.family)).collect();
    write_body(request, &body, &tools)
}

/// Models that reason, and Claude behind this wire, refuse parameters for sampling or have opinions on them; the others
/// are asked for their most likely answer.
fn sampling(ask: &Ask<'_>, body: &mut Map<String, Value>) {
    let effort = ask.request.effort.as_deref();
    if let Some(effort) = effort {
        body.insert("reasoning_effort".into(), json!(effort));
    }
    if let Some(verbosity) = ask.style.verbosity {
        body.insert("verbosity".into(), json!(verbosity));
    }
    match (ask.family, effort) {
        (Family::Gpt5 | Family::OSeries | Family::Claude(_), _) => {}
        (Family::OldGpt | Family::Other, Some(_)) => {
            body.insert("temperature".into(), json!(1));
        }
        (Family::OldGpt | Family::Other, None) => {
            body.insert("temperature".into(), json!(0));
            body.insert("top_p".into(), json!(0.95));
            body.insert("frequency_penalty".into(), json!(0));
            body.insert("presence_penalty".into(), json!(0));
        }
    }
}

fn messages(ask: &Ask<'_>) -> Vec<Value> {
    let request = ask.request;
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": &*request.system }));
    }
    // Results of tools can only be text here. Their images follow as a message of the user, behind the last result: the
    // results of one turn must stand together.
    let mut behind: Vec<&Part> = Vec::new();
    for message in &request.messages {
        if !matches!(**message, Message::Tool { .. }) {
            push_behind(&mut messages, &mut behind);
        }
        match &**message {
            Message::User(parts) => messages.push(json!({ "role": "user", "content": content(parts) })),
            Message::Assistant(turn) => messages.push(assistant(ask, turn)),
            Message::Tool { call_id, parts, .. } => {
                // Text between the images says what they are, so it goes with them.
                let (result, rest) = match parts.split_first() {
                    Some((Part::Text(_), rest)) if has_images(rest) => {
                        parts.split_at(parts.len() - rest.len())
                    }
                    _ if has_images(parts) => (&parts[..0], &parts[..]),
                    _ => (&parts[..], &parts[parts.len()..]),
                };
                messages.push(json!({ "role": "tool", "tool_call_id": call_id, "content": text_of(result) }));
                behind.extend(rest);
            }
        }
    }
    push_behind(&mut messages, &mut behind);
    if ask.dialect == Dialect::Copilot && matches!(ask.family, Family::Claude(_)) {
        mark_cached(&mut messages);
    }
    messages
}

fn push_behind(messages: &mut Vec<Value>, parts: &mut Vec<&Part>) {
    if !parts.is_empty() {
        let content: Vec<Value> = parts.drain(..).map(part).collect();
        messages.push(json!({ "role": "user", "content": content }));
    }
}

/// GitHub's API caches a Claude prompt up to these marks.
fn mark_cached(messages: &mut [Value]) {
    let last = messages.len().saturating_sub(1);
    for (at, message) in messages.iter_mut().enumerate() {
        if (at == 0 || at == last)
            && let Value::Object(message) = message
        {
            message.insert("copilot_cache_control".into(), json!({ "type": "ephemeral" }));
        }
    }
}

/// A plain string where that says it all: not every server reads a list of parts.
fn content(parts: &[Part]) -> Value {
    match parts {
        [Part::Text(text)] => json!(text),
        _ if has_media(parts) => parts.iter().map(part).collect(),
        _ => json!(text_of(parts)),
    }
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { mime_type, data } => {
            json!({ "type": "image_url", "image_url": { "url": data_url(mime_type, data) } })
        }
        Part::Document { title, mime_type, data } => {
            json!({ "type": "file", "file": { "filename": title, "file_data": data_url(mime_type, data) } })
        }
    }
}

fn assistant(ask: &Ask<'_>, turn: &AssistantTurn) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    let text =
        if turn.text.is_empty() && !turn.tool_calls.is_empty() { Value::Null } else { json!(turn.text) };
    message.insert("content".into(), text);
    if !turn.tool_calls.is_empty() {
        let calls: Value = turn.tool_calls.iter().map(|made| call(ask.family, made)).collect();
        message.insert("tool_calls".into(), calls);
    }
    if let Some(reasoning) = &turn.reasoning {
        add_reasoning(ask, reasoning, &mut message);
    }
    Value::Object(message)
}

/// GitHub's API takes reasoning back with its own mark; compatible servers have the text under one name. OpenAI takes
/// none on this wire.
fn add_reasoning(ask: &Ask<'_>, reasoning: &Reasoning, message: &mut Map<String, Value>) {
    match (ask.dialect, ask.family) {
        (Dialect::Copilot, _) => match (&reasoning.opaque, &reasoning.encrypted) {
            (None, Some(opaque)) if !opaque.starts_with('[') => {
                if !reasoning.text.is_empty() {
                    message.insert("reasoning_text".into(), json!(reasoning.text));
                }
                message.insert("reasoning_opaque".into(), json!(opaque));
            }
            _ => {}
        },
        (Dialect::Vendor, Family::Gpt5 | Family::OSeries | Family::OldGpt) => {}
        (Dialect::Vendor, Family::Claude(_) | Family::Other) => {
            if !reasoning.text.is_empty() {
                message.insert("reasoning_content".into(), json!(reasoning.text));
            }
        }
    }
}

fn call(family: Family, call: &ToolCall) -> Value {
    match call.kind {
        ToolType::Custom if takes_custom(family) => json!({
            "id": call.id,
            "type": "custom",
            "custom": { "name": call.name, "input": call.input },
        }),
        kind => {
            // As the model wrote it, if it can be read: the bytes are in the provider's cache.
            let readable =
                kind == ToolType::Function && serde_json::from_str::<Map<String, Value>>(&call.input).is_ok();
            let arguments =
                if readable { call.input.clone() } else { arguments(kind, &call.input).to_string() };
            json!({
                "id": call.id,
                "type": "function",
                "function": { "name": call.name, "arguments": arguments },
            })
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function { function: Function<'a> },
    Custom { custom: Custom<'a> },
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Schema,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Custom<'a> {
    name: &'a str,
    description: &'a str,
    format: Option<Value>,
}

impl<'a> Tool<'a> {
    fn of(spec: &'a ToolSpec, family: Family) -> Self {
        let ToolSpec { name, description, .. } = spec;
        match &spec.input {
            ToolSchema::Custom { grammar } if takes_custom(family) => {
                let format = grammar.as_ref().map(|definition| {
                    json!({ "type": "grammar", "grammar": { "syntax": "lark", "definition": definition } })
                });
                Self::Custom { custom: Custom { name, description, format } }
            }
            ToolSchema::Custom { .. } | ToolSchema::Function(_) => {
                Self::Function { function: Function { name, description, parameters: function_schema(spec) } }
            }
        }
    }
}

/// Only these models have custom tools, and servers that imitate the API do not know them.
fn takes_custom(family: Family) -> bool {
    family == Family::Gpt5
}
