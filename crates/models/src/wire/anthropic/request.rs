//! An Anthropic messages request.

use hangar_agent::model::{AssistantTurn, Message, ModelRequest, Part, Reasoning, ToolCall, ToolChoice};
use hangar_agent::schema::Schema;
use hangar_agent::tool::ToolSpec;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::known::{self, Family, Thinking};
use crate::wire::{Ask, arguments, function_schema, has_images, text_of, write_body};

/// The answer of a model of which nothing is known may be this long. The wire wants a limit.
const DEFAULT_OUTPUT: u64 = 8192;
/// The smallest number of tokens for thinking that is accepted.
const LEAST_BUDGET: u64 = 1024;
const DEFAULT_EFFORT: &str = "medium";

pub(crate) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let request = ask.request;
    let max_tokens = ask
        .max_output_tokens
        .or_else(|| known::limits(&request.model).map(|limits| limits.max_output_tokens))
        .unwrap_or(DEFAULT_OUTPUT);
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    body.insert("max_tokens".into(), json!(max_tokens));
    if !request.system.is_empty() {
        let mut block = json!({ "type": "text", "text": &*request.system });
        mark_cached(&mut block);
        body.insert("system".into(), json!([block]));
    }
    body.insert("messages".into(), messages(request, ask.citations).into());
    if !request.tools.is_empty() && request.tool_choice == ToolChoice::None {
        body.insert("tool_choice".into(), json!({ "type": "none" }));
    }
    think(ask, max_tokens, &mut body);
    if let Some(answer) = &request.answer {
        let config = body.entry("output_config").or_insert_with(|| json!({}));
        config["format"] = json!({ "type": "json_schema", "schema": answer.schema });
    }
    if request.stream {
        body.insert("stream".into(), json!(true));
    }
    let tools: Vec<Tool> = request.tools.iter().map(|spec| Tool::of(spec)).collect();
    write_body(request, &body, &tools)
}

/// Whether and how the model thinks. A model that thinks takes no temperature.
fn think(ask: &Ask<'_>, max_tokens: u64, body: &mut Map<String, Value>) {
    let effort = ask.request.effort.as_deref();
    let thinking = match (ask.family, effort) {
        (Family::Claude(thinking), _) => thinking,
        (Family::Gpt5 | Family::OSeries | Family::OldGpt | Family::Other, Some(_)) => Thinking::Budget,
        (Family::Gpt5 | Family::OSeries | Family::OldGpt | Family::Other, None) => Thinking::Never,
    };
    match thinking {
        Thinking::Adaptive => {
            body.insert("thinking".into(), json!({ "type": "adaptive", "display": "summarized" }));
            body.insert("output_config".into(), json!({ "effort": effort.unwrap_or(DEFAULT_EFFORT) }));
        }
        Thinking::Budget if may_think(ask.request) => {
            let budget = budget(effort).min(max_tokens / 2);
            if budget >= LEAST_BUDGET {
                let thinking = json!({ "type": "enabled", "budget_tokens": budget, "display": "summarized" });
                body.insert("thinking".into(), thinking);
            }
        }
        Thinking::Budget => {}
        Thinking::Never => {
            body.insert("temperature".into(), json!(0));
        }
    }
}

fn budget(effort: Option<&str>) -> u64 {
    match effort {
        None | Some("none" | "minimal" | "low") => LEAST_BUDGET,
        Some("medium") => 2048,
        Some("high") => 4096,
        Some(_) => 16_384,
    }
}

/// A turn that calls tools must start with the thinking that led to it, once thinking is on. The last turn may come from
/// another model, so that there is none.
fn may_think(request: &ModelRequest) -> bool {
    let last = request.messages.iter().rev().find_map(|message| match &**message {
        Message::Tool { .. } => None,
        Message::User(_) => Some(None),
        Message::Assistant(turn) => Some(Some(turn)),
    });
    match last {
        Some(Some(turn)) if !turn.tool_calls.is_empty() => {
            turn.reasoning.as_ref().is_some_and(|reasoning| !thoughts(reasoning).is_empty())
        }
        _ => true,
    }
}

/// Messages of the same side become one: results of tools come from the user here.
fn messages(request: &ModelRequest, citations: bool) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match &**message {
            Message::User(parts) => ("user", blocks(parts, citations)),
            Message::Assistant(turn) => ("assistant", assistant(turn)),
            Message::Tool { call_id, parts, is_error, .. } => {
                ("user", vec![result(call_id, parts, *is_error, citations)])
            }
        };
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, together)) if *last == role => together.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    // Everything up to the end is worth keeping for the next request.
    let last = turns.last_mut().and_then(|(_, blocks)| blocks.iter_mut().rfind(|block| may_be_marked(block)));
    if let Some(block) = last {
        mark_cached(block);
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn mark_cached(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

fn may_be_marked(block: &Value) -> bool {
    !matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

/// Empty text is refused, so it is left out.
fn blocks(parts: &[Part], citations: bool) -> Vec<Value> {
    let said = parts.iter().filter(|part| !matches!(part, Part::Text(text) if text.is_empty()));
    said.map(|part| block(part, citations)).collect()
}

fn block(part: &Part, citations: bool) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { mime_type, data } => json!({
            "type": "image",
            "source": { "type": "base64", "media_type": mime_type, "data": data },
        }),
        Part::Document { title, mime_type, data } => {
            let mut block = json!({
                "type": "document",
                "source": { "type": "base64", "media_type": mime_type, "data": data },
                "title": title,
            });
            if citations {
                block["citations"] = json!({ "enabled": true });
            }
            block
        }
    }
}

fn result(call_id: &str, parts: &[Part], is_error: bool, citations: bool) -> Value {
    let content = if has_images(parts) { blocks(parts, citations).into() } else { json!(text_of(parts)) };
    let mut block = json!({ "type": "tool_result", "tool_use_id": tool_id(call_id), "content": content });
    if is_error {
        // An error without a word is refused.
        if block["content"] == "" {
            block["content"] = json!("The call failed.");
        }
        block["is_error"] = json!(true);
    }
    block
}

fn assistant(turn: &AssistantTurn) -> Vec<Value> {
    let mut blocks = turn.reasoning.as_ref().map(thoughts).unwrap_or_default();
    if !turn.text.is_empty() {
        blocks.push(json!({ "type": "text", "text": turn.text }));
    }
    blocks.extend(turn.tool_calls.iter().map(call));
    blocks
}

/// Thinking goes back with its signature or not at all. Marks of other wires are passed over.
fn thoughts(reasoning: &Reasoning) -> Vec<Value> {
    match (&reasoning.opaque, &reasoning.encrypted) {
        (Some(signature), None) if !signature.starts_with("rs_") => {
            vec![json!({ "type": "thinking", "thinking": reasoning.text, "signature": signature })]
        }
        // Several blocks, kept as they came.
        (None, Some(blocks)) if blocks.starts_with('[') => serde_json::from_str::<Vec<Value>>(blocks)
            .unwrap_or_default()
            .into_iter()
            .filter(|block| !may_be_marked(block))
            .collect(),
        _ => Vec::new(),
    }
}

fn call(call: &ToolCall) -> Value {
    json!({
        "type": "tool_use",
        "id": tool_id(&call.id),
        "name": call.name,
        "input": arguments(call.kind, &call.input),
    })
}

/// Ids of other providers may have characters that are refused here.
fn tool_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Schema,
}

impl<'a> Tool<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Self { name: &spec.name, description: &spec.description, input_schema: function_schema(spec) }
    }
}
