//! A responses request. The provider stores nothing: each request carries the whole conversation, with the reasoning
//! encrypted.

use std::collections::BTreeSet;
use std::sync::Arc;

use hangar_agent::model::{AssistantTurn, Message, Part, ToolCall, ToolChoice};
use hangar_agent::schema::Schema;
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_protocol::data::{ReasoningSummary, ToolType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use serde_with::skip_serializing_none;

use crate::facts::{Endpoint, Reasoning, WebSearch};
use crate::wire::native::{ListEntry, argument_text, entries, kin_to, native_to};
use crate::wire::schema::conform;
use crate::wire::{
    Ask, Carrier, MAX_SEARCHES, WireVariant, answer_schema, data_url, function_schema, has_images, text_of,
    write_body,
};

/// Type of a call whose input is free text.
const CUSTOM_CALL: &str = "custom_tool_call";

pub(crate) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let request = ask.request;
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    if !request.system.is_empty() {
        body.insert("instructions".into(), json!(&*request.system));
    }
    let input = input(ask);
    let search = ask.search(Endpoint::Responses);
    let tools: Vec<Tool> = ask.listed_tools().iter().filter_map(|spec| Tool::of(ask, search, spec)).collect();
    if !tools.is_empty() && request.tool_choice == ToolChoice::None {
        body.insert("tool_choice".into(), json!("none"));
    }
    if search.is_some_and(|search| search.max_tool_calls) {
        body.insert("max_tool_calls".into(), json!(MAX_SEARCHES));
    }
    let reasons = ask.facts.reasons || !ask.facts.known;
    if reasons && let Some(reasoning) = reasoning(ask) {
        body.insert("reasoning".into(), reasoning);
    }
    if let Some(answer) = &request.answer {
        let mut format = answer_schema(answer);
        format.insert("type".into(), json!("json_schema"));
        body.insert("text".into(), json!({ "format": format }));
    }
    if ask.dialect == WireVariant::Vendor
        && let Some(key) = ask.cache_key()
    {
        body.insert("prompt_cache_key".into(), json!(key));
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
    ask.forget(&mut body);
    write_body(request, &body, ("input", &input), &tools)
}

/// Effort and summary. Vendors give summaries only to verified organisations and refuse the others; so a summary is
/// requested only where it is configured, or where the host is known to have it.
fn reasoning(ask: &Ask<'_>) -> Option<Value> {
    let mut reasoning = Map::new();
    if let Reasoning::Level(level) = ask.effort() {
        reasoning.insert("effort".into(), json!(level.name()));
    }
    match ask.style.summary {
        None if ask.host.verified_summaries => {}
        None => drop(reasoning.insert("summary".into(), json!("auto"))),
        Some(ReasoningSummary::None) => {}
        Some(wanted) => drop(reasoning.insert("summary".into(), json!(wanted))),
    }
    if ask.is_forgotten("reasoning.summary") {
        reasoning.shift_remove("summary");
    }
    (!reasoning.is_empty()).then(|| reasoning.into())
}

/// The conversation. Tools that were added later stand before the answer to the request that first had them.
fn input<'a>(ask: &'a Ask<'_>) -> Vec<ListEntry<'a>> {
    let mut input = Vec::new();
    let mut late: Vec<_> = if ask.adds_tools() { ask.request.later_tools().collect() } else { Vec::new() };
    let mut custom_calls = BTreeSet::new();
    for (at, message) in ask.request.messages.iter().enumerate() {
        match &**message {
            Message::User(parts) => {
                let message = json!({ "role": "user", "content": content(parts), "type": "message" });
                input.push(ListEntry::Made(message));
            }
            Message::Assistant(turn) => {
                let due = late.iter().take_while(|(behind, _)| *behind <= at).count();
                input.extend(late.drain(..due).filter_map(|(_, tools)| additional_tools(ask, tools)));
                let items = assistant(ask, turn);
                if turn.tool_calls.iter().any(|call| call.kind == ToolType::Custom) {
                    custom_calls.extend(items.iter().filter_map(custom_call));
                }
                input.extend(items);
            }
            Message::Tool { call_id: id, parts, .. } => {
                let id = ask.call_id(id);
                // A call of a custom tool may be written as one of a function, and its result must be of the same kind.
                let kind = if custom_calls.contains(&id) {
                    "custom_tool_call_output"
                } else {
                    "function_call_output"
                };
                let output = if has_images(parts) { content(parts) } else { json!(text_of(parts)) };
                input.push(ListEntry::Made(json!({ "type": kind, "call_id": id, "output": output })));
            }
        }
    }
    input.extend(late.into_iter().filter_map(|(_, tools)| additional_tools(ask, tools)));
    input
}

/// An item that adds tools in the middle of the conversation: the list of tools, and with it the cache, stays as it was.
fn additional_tools<'a>(ask: &Ask<'_>, tools: &[Arc<ToolSpec>]) -> Option<ListEntry<'a>> {
    let search = ask.search(Endpoint::Responses);
    let tools: Vec<Tool> = tools.iter().filter_map(|spec| Tool::of(ask, search, spec)).collect();
    let item = json!({ "type": "additional_tools", "role": "developer", "tools": tools });
    (!tools.is_empty()).then_some(ListEntry::Made(item))
}

/// The id of a call that is written as one of a custom tool.
fn custom_call(item: &ListEntry<'_>) -> Option<String> {
    #[derive(Deserialize)]
    struct Call {
        #[serde(rename = "type")]
        kind: String,
        call_id: Option<String>,
    }
    let call: Call = match item {
        ListEntry::Made(item) => Call::deserialize(item).ok()?,
        ListEntry::Raw(item) => serde_json::from_str(item.get()).ok()?,
    };
    call.call_id.filter(|_| call.kind == CUSTOM_CALL)
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

/// A turn of the model: its original items at their origin, else plain ones.
fn assistant<'a>(ask: &Ask<'_>, turn: &'a AssistantTurn) -> Vec<ListEntry<'a>> {
    let rewrite = |item: &mut Value, call: &ToolCall| {
        if item.get("call_id").and_then(Value::as_str) == Some(&call.id) {
            if item["type"] == CUSTOM_CALL {
                item["input"] = json!(call.input);
            } else {
                item["arguments"] = json!(argument_text(call));
            }
        }
    };
    if let Some(native) = native_to(turn, ask.origin)
        && let Some(items) = entries(native, turn, rewrite)
    {
        return items;
    }
    if let Some(native) = kin_to(turn, ask.origin)
        && let Ok(items) = serde_json::from_str::<Vec<Value>>(&native.items)
    {
        return items
            .into_iter()
            .filter_map(|item| unsealed(ask, item, &rewrite, turn))
            .map(ListEntry::Made)
            .collect();
    }
    let mut items = Vec::new();
    if !turn.text.is_empty() {
        items.push(json!({
            "role": "assistant",
            "content": [{ "type": "output_text", "text": turn.text }],
            "type": "message",
        }));
    }
    items.extend(turn.tool_calls.iter().map(|made| call(ask, made)));
    items.into_iter().map(ListEntry::Made).collect()
}

/// An item of another model at the same host: without its id, which binds it to reasoning that is left out. A model without
/// custom tools gets their calls as those of functions.
fn unsealed(
    ask: &Ask<'_>,
    mut item: Value,
    rewrite: &impl Fn(&mut Value, &ToolCall),
    turn: &AssistantTurn,
) -> Option<Value> {
    let fields = item.as_object_mut()?;
    let kind = fields.get("type")?.as_str()?;
    if !matches!(kind, "message" | "function_call" | CUSTOM_CALL) {
        return None;
    }
    if kind == CUSTOM_CALL && !ask.takes_custom() {
        let id = fields.get("call_id")?.as_str()?;
        return turn.tool_calls.iter().find(|made| made.id == id).map(|made| call(ask, made));
    }
    fields.shift_remove("id");
    turn.tool_calls.iter().for_each(|call| rewrite(&mut item, call));
    // Its result has the id that this model accepts.
    if let Some(id) = item.get("call_id").and_then(Value::as_str).map(|id| ask.call_id(id)) {
        item["call_id"] = json!(id);
    }
    Some(item)
}

fn call(ask: &Ask<'_>, call: &ToolCall) -> Value {
    let id = ask.call_id(&call.id);
    match call.kind {
        ToolType::Custom if ask.takes_custom() => {
            json!({ "type": "custom_tool_call", "name": call.name, "input": call.input, "call_id": id })
        }
        ToolType::Function | ToolType::Custom => {
            json!({ "type": "function_call", "name": call.name, "arguments": argument_text(call), "call_id": id })
        }
    }
}

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function {
        name: &'a str,
        description: &'a str,
        parameters: Schema,
        strict: bool,
    },
    Custom {
        name: &'a str,
        description: &'a str,
        format: Option<Value>,
    },
    /// A tool of the vendor's own, whose name and schema the vendor has.
    #[serde(untagged)]
    Hosted {
        #[serde(rename = "type")]
        kind: &'a str,
    },
}

impl<'a> Tool<'a> {
    /// `None` for a vendor's own tool that it does not have.
    fn of(ask: &Ask<'_>, search: Option<&'a WebSearch>, spec: &'a ToolSpec) -> Option<Self> {
        let ToolSpec { name, description, .. } = spec;
        Some(match &spec.input {
            ToolSchema::Hosted => Self::Hosted { kind: &search?.tool },
            ToolSchema::Custom { grammar } if ask.takes_custom() => {
                let format = grammar.as_ref().map(
                    |definition| json!({ "type": "grammar", "syntax": "lark", "definition": definition }),
                );
                Self::Custom { name, description, format }
            }
            ToolSchema::Custom { .. } | ToolSchema::Function(_) => {
                let parameters = conform(function_schema(spec), ask.host);
                Self::Function { name, description, parameters, strict: false }
            }
        })
    }
}
