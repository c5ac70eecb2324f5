//! A chat completions request. Many hosts speak this wire, each with rules of its own: they are data, in [`HostFacts`].
//!
//! [`HostFacts`]: crate::facts::HostFacts

use hangar_agent::model::{AssistantTurn, Message, Part, ToolCall, ToolChoice};
use hangar_agent::schema::Schema;
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_protocol::data::ToolType;
use serde::Serialize;
use serde_json::{Map, Value, json};
use serde_with::skip_serializing_none;

use crate::facts::{ChatTools, EffortField, Level, Reasoning, ReasoningBack};
use crate::learned::{EFFORT, EFFORT_WITH_TOOLS, MAX_COMPLETION_TOKENS, MAX_TOKENS};
use crate::wire::native::{argument_text, kin_to, native_to};
use crate::wire::schema::{conform, is_empty};
use crate::wire::{
    Ask, GO_ON, WireVariant, answer_schema, data_url, function_schema, has_images, has_media, text_of,
    write_body,
};

/// Message between tool results and a user message, for hosts that do not allow them to be adjacent.
const FILLER: &str = "Noted.";
/// Signature for another model's call at a host that requires every call to be signed.
pub(super) const UNSIGNED: &str = "skip_thought_signature_validator";

/// Name under which reasoning is kept that came in parts of the content.
pub(super) const THINKING: &str = "thinking";

pub(crate) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let request = ask.request;
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    sampling(ask, &mut body);
    reason(ask, &mut body);
    if let Some(limit) = ask.max_output_tokens {
        body.insert(max_tokens_field(ask).into(), json!(limit));
    }
    if ask.own_tools().next().is_some() && request.tool_choice == ToolChoice::None {
        body.insert("tool_choice".into(), json!("none"));
    }
    if let Some(answer) = &request.answer {
        let format = json!({ "type": "json_schema", "json_schema": answer_schema(answer) });
        body.insert("response_format".into(), format);
    }
    if ask.host.cache_key.is_some()
        && let Some(key) = ask.cache_key()
    {
        body.insert("prompt_cache_key".into(), json!(key));
    }
    if request.stream {
        body.insert("stream".into(), json!(true));
        if ask.host.stream_options {
            body.insert("stream_options".into(), json!({ "include_usage": true }));
        }
    }
    ask.forget(&mut body);
    let tools: Vec<Tool> = ask.own_tools().map(|spec| Tool::of(ask, spec)).collect();
    write_body(request, &body, ("messages", &messages(ask)), &tools)
}

/// Name of the output limit. A host that has refused one of the two names takes the other.
fn max_tokens_field(ask: &Ask<'_>) -> &'static str {
    match ask.host.max_tokens_field(ask.facts) {
        MAX_TOKENS if ask.is_forgotten(MAX_TOKENS) => MAX_COMPLETION_TOKENS,
        MAX_COMPLETION_TOKENS if ask.is_forgotten(MAX_COMPLETION_TOKENS) => MAX_TOKENS,
        field => field,
    }
}

/// Sampling parameters are sent only to models that are known to accept them: others refuse them, or do worse with
/// them.
fn sampling(ask: &Ask<'_>, body: &mut Map<String, Value>) {
    if let Some(verbosity) = ask.style.verbosity {
        body.insert("verbosity".into(), json!(verbosity));
    }
    if ask.facts.sampling {
        body.insert("temperature".into(), json!(0));
        body.insert("top_p".into(), json!(0.95));
    }
}

/// Reasoning parameters in the host's format.
fn reason(ask: &Ask<'_>, body: &mut Map<String, Value>) {
    let effort = match ask.effort() {
        // Functions are refused while such a model reasons, which is its default.
        _ if ask.refuses_tools_with_effort() => Reasoning::Level(Level::None),
        effort => effort,
    };
    let level = match effort {
        Reasoning::Level(level) => Some(level.name()),
        Reasoning::Unset | Reasoning::Budget(_) | Reasoning::Off => None,
    };
    match ask.host.effort_field {
        EffortField::ReasoningEffort => {
            if let Some(level) = level {
                body.insert("reasoning_effort".into(), json!(level));
            }
        }
        EffortField::Reasoning => {
            let reasoning = match effort {
                Reasoning::Unset => None,
                Reasoning::Level(level) => Some(json!({ "effort": level.name() })),
                Reasoning::Budget(tokens) => Some(json!({ "max_tokens": tokens })),
                Reasoning::Off => Some(json!({ "effort": "none" })),
            };
            body.extend(reasoning.map(|reasoning| ("reasoning".to_owned(), reasoning)));
        }
        EffortField::Thinking => {
            let off = matches!(effort, Reasoning::Off | Reasoning::Level(Level::None));
            let mut thinking = Map::new();
            if off || level.is_some() || ask.host.keeps_thinking {
                thinking.insert("type".to_owned(), json!(if off { "disabled" } else { "enabled" }));
            }
            if ask.host.keeps_thinking && !off {
                thinking.insert("clear_thinking".to_owned(), json!(false));
            }
            if !thinking.is_empty() && (ask.facts.reasons || !ask.facts.known) {
                body.insert("thinking".into(), thinking.into());
            }
            if let Some(level) = level.filter(|_| !off) {
                body.insert("reasoning_effort".into(), json!(level));
            }
        }
        EffortField::EnableThinking => {
            // Thinking is only streamed there.
            let (on, budget) = match effort {
                Reasoning::Unset => (None, None),
                Reasoning::Budget(tokens) => (Some(true), Some(tokens)),
                Reasoning::Level(Level::None) | Reasoning::Off => (Some(false), None),
                Reasoning::Level(level) => (Some(true), level.budget()),
            };
            let on = if ask.request.stream { on } else { ask.facts.reasons.then_some(false) };
            body.extend(on.map(|on| ("enable_thinking".to_owned(), json!(on))));
            let budget = budget.filter(|_| on == Some(true));
            body.extend(budget.map(|tokens| ("thinking_budget".to_owned(), json!(tokens))));
        }
    }
}

impl Ask<'_> {
    /// Notice that the model does not reason, because this endpoint rules out an effort together with tools.
    pub(crate) fn unreasoned(&self) -> Option<String> {
        let wanted = self.request.effort.as_deref().and_then(Level::parse);
        // A lesson was told when it was learned.
        let is_known = self.is_forgotten(EFFORT_WITH_TOOLS);
        if is_known || !self.refuses_tools_with_effort() || wanted == Some(Level::None) {
            return None;
        }
        let asked =
            wanted.map_or_else(String::new, |level| format!(", although the effort is {}", level.name()));
        Some(format!(
            "`{}` does not reason here{asked}: chat completions refuse tools while it does; `wire_api = \"responses\"` in its \
             [providers.NAME] table lets it",
            self.model
        ))
    }

    /// Whether this host refuses functions of this model while it reasons, and the model can do without reasoning.
    pub(crate) fn refuses_tools_with_effort(&self) -> bool {
        let is_known = self.host.reasons_without_tools && self.facts.chat_tools == ChatTools::WithoutEffort;
        (is_known || self.is_forgotten(EFFORT_WITH_TOOLS))
            && !self.is_forgotten(EFFORT)
            && !self.request.tools.is_empty()
    }
}

fn messages(ask: &Ask<'_>) -> Vec<Value> {
    let request = ask.request;
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": &*request.system }));
    }
    // Tool results can only be text here. Their images follow in a user message after the last result: the results of
    // one turn must be adjacent.
    let mut behind: Vec<&Part> = Vec::new();
    for message in &request.messages {
        if !matches!(**message, Message::Tool { .. }) {
            push_behind(ask, &mut messages, &mut behind);
        }
        match &**message {
            Message::User(parts) => push_user(ask, &mut messages, content(parts)),
            Message::Assistant(turn) => messages.extend(assistant(ask, turn)),
            Message::Tool { call_id: id, parts, .. } => {
                // Text between the images describes them, so it is kept with them.
                let (result, rest) = match parts.split_first() {
                    Some((Part::Text(_), rest)) if has_images(rest) => {
                        parts.split_at(parts.len() - rest.len())
                    }
                    _ if has_images(parts) => (&parts[..0], &parts[..]),
                    _ => (&parts[..], &parts[parts.len()..]),
                };
                let id = ask.call_id(id);
                messages.push(json!({ "role": "tool", "tool_call_id": id, "content": text_of(result) }));
                behind.extend(rest);
            }
        }
    }
    push_behind(ask, &mut messages, &mut behind);
    // The templates of these models refuse a conversation that ends with an answer.
    let refuses = ask.needs_filler() || ask.facts.is_claude();
    if refuses && messages.last().is_some_and(|last| last["role"] == "assistant") {
        push_user(ask, &mut messages, json!(GO_ON));
    }
    match ask.dialect {
        WireVariant::Copilot if ask.facts.is_claude() => mark_for_copilot(&mut messages),
        WireVariant::Vendor if ask.marks_cache() => mark_cached(&mut messages),
        WireVariant::Copilot | WireVariant::Vendor => {}
    }
    messages
}

/// Templates that require the filler also refuse two messages of the user in a row, so these become one.
fn push_user(ask: &Ask<'_>, messages: &mut Vec<Value>, content: Value) {
    if let Some(last) = messages.last_mut().filter(|last| ask.needs_filler() && last["role"] == "user") {
        let joined = join(last["content"].take(), content);
        last["content"] = joined;
        return;
    }
    let behind_results = messages.last().is_some_and(|last| last["role"] == "tool");
    if ask.needs_filler() && behind_results {
        messages.push(json!({ "role": "assistant", "content": FILLER }));
    }
    messages.push(json!({ "role": "user", "content": content }));
}

/// Two contents as one: as a string, unless one has more than text.
fn join(first: Value, second: Value) -> Value {
    let parts = |content: Value| match content {
        Value::Array(parts) => parts,
        text => vec![json!({ "type": "text", "text": text })],
    };
    match (first, second) {
        (Value::String(first), Value::String(second)) => json!(format!("{first}\n\n{second}")),
        (first, second) => parts(first).into_iter().chain(parts(second)).collect(),
    }
}

fn push_behind(ask: &Ask<'_>, messages: &mut Vec<Value>, parts: &mut Vec<&Part>) {
    if !parts.is_empty() {
        let content: Vec<Value> = parts.drain(..).map(part).collect();
        push_user(ask, messages, content.into());
    }
}

/// GitHub's API caches a Claude prompt up to these marks.
fn mark_for_copilot(messages: &mut [Value]) {
    let last = messages.len().saturating_sub(1);
    for (at, message) in messages.iter_mut().enumerate() {
        if (at == 0 || at == last)
            && let Value::Object(message) = message
        {
            message.insert("copilot_cache_control".into(), json!({ "type": "ephemeral" }));
        }
    }
}

/// Marks the system prompt, the end of the conversation and the end of the last request, in the form that gateways to
/// Claude accept.
fn mark_cached(messages: &mut [Value]) {
    let answer = messages.iter().rposition(|message| message["role"] == "assistant");
    let ends = [Some(0), messages.len().checked_sub(1), answer.and_then(|at| at.checked_sub(1))];
    for at in ends.into_iter().flatten() {
        let content = &mut messages[at]["content"];
        // Claude refuses a mark on an empty text.
        if content.as_str().is_some_and(|text| text.trim().is_empty()) {
            continue;
        }
        if let Value::String(text) = content {
            *content = json!([{ "type": "text", "text": text }]);
        }
        if let Some(part) = content.as_array_mut().and_then(|parts| parts.last_mut()) {
            part["cache_control"] = json!({ "type": "ephemeral" });
        }
    }
}

/// A plain string where possible: not every server accepts a list of parts.
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

/// `None` for a turn that says and calls nothing, which hosts refuse.
fn assistant(ask: &Ask<'_>, turn: &AssistantTurn) -> Option<Value> {
    let is_blank = turn.text.trim().is_empty();
    if is_blank && turn.tool_calls.is_empty() {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    // Claude refuses a text of white space, whoever serves it.
    let is_silent = turn.text.is_empty() || (is_blank && ask.facts.is_claude());
    let text = if is_silent { Value::Null } else { json!(turn.text) };
    message.insert("content".into(), text);
    let kept: Value = native_to(turn, ask.origin)
        .and_then(|native| serde_json::from_str(&native.items).ok())
        .unwrap_or_default();
    if !turn.tool_calls.is_empty() {
        let calls: Value =
            turn.tool_calls.iter().enumerate().map(|(at, made)| call(ask, at, made, &kept)).collect();
        message.insert("tool_calls".into(), calls);
    }
    let kin: Value = kin_to(turn, ask.origin)
        .and_then(|native| serde_json::from_str(&native.items).ok())
        .unwrap_or_default();
    add_reasoning(ask, turn, [&kept, &kin], &mut message);
    Some(Value::Object(message))
}

/// Adds reasoning in the host's format. `kept` is the data from this host beside text and calls, `kin` the same of
/// another model: only its text is valid for this one.
fn add_reasoning(
    ask: &Ask<'_>,
    turn: &AssistantTurn,
    [kept, kin]: [&Value; 2],
    message: &mut Map<String, Value>,
) {
    const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];
    let thoughts_of = |items: &Value| THOUGHTS.into_iter().find_map(|field| items.get(field)).cloned();
    let thoughts = thoughts_of(kept);
    if ask.dialect == WireVariant::Copilot {
        if let Some(opaque) = kept.get("reasoning_opaque") {
            message.extend(thoughts.map(|thoughts| ("reasoning_text".to_owned(), thoughts)));
            message.insert("reasoning_opaque".into(), opaque.clone());
        }
        return;
    }
    match ask.host.reasoning_back(ask.facts) {
        ReasoningBack::None | ReasoningBack::ThoughtSignatures => {}
        ReasoningBack::ReasoningContent => {
            // Some hosts refuse a turn with calls without the field, whichever model made the turn.
            let owed = ask.host.wants_reasoning && ask.facts.reasons && !turn.tool_calls.is_empty();
            let thoughts = thoughts.or_else(|| thoughts_of(kin)).or_else(|| owed.then(|| json!("")));
            if let Some(thoughts) = thoughts {
                message.insert("reasoning_content".into(), thoughts);
            }
        }
        ReasoningBack::ThinkingParts => {
            let thought = kept.get(THINKING).map(|thought| json!([{ "type": "text", "text": thought }]));
            if let Some(thought) = thought {
                let text = (!turn.text.is_empty()).then(|| json!({ "type": "text", "text": turn.text }));
                let parts = [json!({ "type": "thinking", "thinking": thought })].into_iter().chain(text);
                message.insert("content".into(), parts.collect());
            }
        }
        ReasoningBack::ReasoningDetails => match (kept.get("reasoning_details"), thoughts) {
            (Some(details), _) => drop(message.insert("reasoning_details".into(), details.clone())),
            (None, Some(thoughts)) => drop(message.insert("reasoning".into(), thoughts)),
            (None, None) => {}
        },
    }
    for field in ["reasoning_content", "reasoning_details", "reasoning"] {
        if ask.is_forgotten(field) {
            message.shift_remove(field);
        }
    }
}

fn call(ask: &Ask<'_>, at: usize, call: &ToolCall, kept: &Value) -> Value {
    let id = ask.call_id(&call.id);
    let mut made = match call.kind {
        ToolType::Custom if ask.takes_custom() => {
            json!({ "id": id, "type": "custom", "custom": { "name": call.name, "input": call.input } })
        }
        ToolType::Function | ToolType::Custom => json!({
            "id": id,
            "type": "function",
            "function": { "name": call.name, "arguments": argument_text(call) },
        }),
    };
    let is_this = |kept: &&Value| kept.get("id").and_then(Value::as_str) == Some(&call.id);
    let marked = kept.get("tool_calls").and_then(Value::as_array).into_iter().flatten().find(is_this);
    if let Some(mark) = marked.and_then(|kept| kept.get("extra_content")) {
        made["extra_content"] = mark.clone();
    } else if at == 0
        && kept.get("tool_calls").is_none()
        && ask.facts.signatures
        && ask.host.reasoning_back(ask.facts) == ReasoningBack::ThoughtSignatures
    {
        made["extra_content"] = json!({ "google": { "thought_signature": UNSIGNED } });
    }
    made
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function { function: Function<'a> },
    Custom { custom: Custom<'a> },
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Option<Schema>,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Custom<'a> {
    name: &'a str,
    description: &'a str,
    format: Option<Value>,
}

impl<'a> Tool<'a> {
    fn of(ask: &Ask<'_>, spec: &'a ToolSpec) -> Self {
        let ToolSpec { name, description, .. } = spec;
        match &spec.input {
            ToolSchema::Custom { grammar } if ask.takes_custom() => {
                let format = grammar.as_ref().map(|definition| {
                    json!({ "type": "grammar", "grammar": { "syntax": "lark", "definition": definition } })
                });
                Self::Custom { custom: Custom { name, description, format } }
            }
            ToolSchema::Custom { .. } | ToolSchema::Function(_) | ToolSchema::Hosted => {
                let parameters = conform(function_schema(spec), ask.host);
                let silent = ask.host.strict_schemas && is_empty(&parameters);
                let parameters = (!silent).then_some(parameters);
                Self::Function { function: Function { name, description, parameters } }
            }
        }
    }
}
