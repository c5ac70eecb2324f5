//! A responses request. The provider stores nothing: each request carries the whole conversation, with the reasoning
//! encrypted.

use hangar_agent::model::{AssistantTurn, Message, Part, Reasoning, ToolCall, ToolChoice};
use hangar_agent::schema::Schema;
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_protocol::data::{ReasoningSummary, ToolType};
use serde::Serialize;
use serde_json::{Map, Value, json};
use serde_with::skip_serializing_none;

use crate::known::Family;
use crate::wire::{Ask, Carrier, Dialect, answer_schema, data_url, has_images, text_of, write_body};

/// Longer cache keys are refused.
const CACHE_KEY: usize = 64;

pub(crate) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let request = ask.request;
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    if !request.system.is_empty() {
        body.insert("instructions".into(), json!(&*request.system));
    }
    body.insert("input".into(), request.messages.iter().flat_map(|message| items(message)).collect());
    if !request.tools.is_empty() && request.tool_choice == ToolChoice::None {
        body.insert("tool_choice".into(), json!("none"));
    }
    let reasons = ask.family != Family::OldGpt;
    if reasons {
        let mut reasoning = Map::new();
        if let Some(effort) = &request.effort {
            reasoning.insert("effort".into(), json!(effort));
        }
        match ask.style.summary {
            None => drop(reasoning.insert("summary".into(), json!("auto"))),
            Some(ReasoningSummary::None) => {}
            Some(wanted) => drop(reasoning.insert("summary".into(), json!(wanted))),
        }
        if !reasoning.is_empty() {
            body.insert("reasoning".into(), reasoning.into());
        }
    }
    if let Some(answer) = &request.answer {
        let mut format = answer_schema(answer);
        format.insert("type".into(), json!("json_schema"));
        body.insert("text".into(), json!({ "format": format }));
    }
    if ask.dialect == Dialect::Vendor && (1..=CACHE_KEY).contains(&request.session_id.len()) {
        body.insert("prompt_cache_key".into(), json!(request.session_id));
    }
    if let Some(limit) = ask.max_output_tokens {
        body.insert("max_output_tokens".into(), json!(limit));
    }
    body.insert("store".into(), json!(false));
    match ask.carrier {
        Carrier::Http if request.stream => drop(body.insert("stream".into(), json!(true))),
        Carrier::Http => {}
        Carrier::Socket => drop(body.insert("type".into(), json!("response.create"))),
    }
    if reasons {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    body.insert("parallel_tool_calls".into(), json!(true));
    if let Some(verbosity) = ask.style.verbosity
        && let Value::Object(text) = body.entry("text").or_insert_with(|| json!({}))
    {
        text.insert("verbosity".into(), json!(verbosity));
    }
    let tools: Vec<Tool> = request.tools.iter().map(|spec| Tool::of(spec)).collect();
    write_body(request, &body, &tools)
}

fn items(message: &Message) -> Vec<Value> {
    match message {
        Message::User(parts) => {
            vec![json!({ "role": "user", "content": content(parts), "type": "message" })]
        }
        Message::Assistant(turn) => assistant(turn),
        Message::Tool { call_id, kind, parts, .. } => {
            let kind = match kind {
                ToolType::Function => "function_call_output",
                ToolType::Custom => "custom_tool_call_output",
            };
            let output = if has_images(parts) { content(parts) } else { json!(text_of(parts)) };
            vec![json!({ "type": kind, "call_id": call_id, "output": output })]
        }
    }
}

fn content(parts: &[Part]) -> Value {
    let part = |part: &Part| match part {
        Part::Text(text) => json!({ "type": "input_text", "text": text }),
        Part::Image { mime_type, data } => {
            json!({ "type": "input_image", "image_url": data_url(mime_type, data) })
        }
        Part::Document { title, mime_type, data } => {
            json!({ "type": "input_file", "filename": title, "file_data": data_url(mime_type, data) })
        }
    };
    parts.iter().map(part).collect()
}

fn assistant(turn: &AssistantTurn) -> Vec<Value> {
    let mut items = turn.reasoning.as_ref().map(reasoning).unwrap_or_default();
    if !turn.text.is_empty() {
        items.push(json!({
            "role": "assistant",
            "content": [{ "type": "output_text", "text": turn.text }],
            "type": "message",
        }));
    }
    items.extend(turn.tool_calls.iter().map(call));
    items
}

/// Reasoning goes back only with its encrypted content: without it the provider would look for an item that it did not
/// store.
fn reasoning(reasoning: &Reasoning) -> Vec<Value> {
    match (&reasoning.opaque, &reasoning.encrypted) {
        (Some(id), Some(encrypted)) => {
            let mut summary = Vec::new();
            if !reasoning.text.is_empty() {
                summary.push(json!({ "type": "summary_text", "text": reasoning.text }));
            }
            vec![json!({ "id": id, "type": "reasoning", "summary": summary, "encrypted_content": encrypted })]
        }
        // Several items, kept as they came.
        (None, Some(items)) if items.starts_with('[') => serde_json::from_str::<Vec<Value>>(items)
            .unwrap_or_default()
            .into_iter()
            .filter(|item| item.get("type") == Some(&json!("reasoning")))
            .collect(),
        _ => Vec::new(),
    }
}

fn call(call: &ToolCall) -> Value {
    match call.kind {
        ToolType::Function => {
            let arguments = if call.input.is_empty() { "{}" } else { &call.input };
            json!({ "type": "function_call", "name": call.name, "arguments": arguments, "call_id": call.id })
        }
        ToolType::Custom => {
            json!({ "type": "custom_tool_call", "name": call.name, "input": call.input, "call_id": call.id })
        }
    }
}

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function { name: &'a str, description: &'a str, parameters: &'a Schema, strict: bool },
    Custom { name: &'a str, description: &'a str, format: Option<Value> },
}

impl<'a> Tool<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        let ToolSpec { name, description, .. } = spec;
        match &spec.input {
            ToolSchema::Function(parameters) => {
                Self::Function { name, description, parameters, strict: false }
            }
            ToolSchema::Custom { grammar } => {
                let format = grammar.as_ref().map(
                    |definition| json!({ "type": "grammar", "syntax": "lark", "definition": definition }),
                );
                Self::Custom { name, description, format }
            }
        }
    }
}
