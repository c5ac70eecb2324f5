//! An Anthropic messages request.

use std::borrow::Cow;

use hangar_agent::model::{AssistantTurn, Message, Part, ToolCall};
use hangar_agent::schema::Schema;
use hangar_agent::tool::{ToolSchema, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use serde_with::skip_serializing_none;

use super::late_tools::{self, LateTools};
use crate::facts::{Endpoint, Reasoning, Thinking, ThinkingMode, WebSearch};
use crate::hosted::WEB_SEARCH;
use crate::wire::native::{ListEntry, entries, native_to};
use crate::wire::{Ask, GO_ON, MAX_SEARCHES, arguments, function_schema, has_images, text_of, write_body};

/// Output limit for an unknown model. The wire requires one.
const DEFAULT_OUTPUT: u64 = 8192;
/// The smallest thinking budget that is accepted.
const LEAST_BUDGET: u64 = 1024;
/// Tokens that are kept for the answer of a model that thinks by budget.
const LEAST_ANSWER: u64 = 8192;

pub(crate) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let request = ask.request;
    let max_tokens = max_tokens(ask);
    let mut body = Map::new();
    body.insert("model".into(), json!(ask.model));
    body.insert("max_tokens".into(), json!(max_tokens));
    if !request.system.trim().is_empty() {
        let mut block = json!({ "type": "text", "text": &*request.system });
        mark(ask, &mut block);
        body.insert("system".into(), json!([block]));
    }
    let messages = messages(ask);
    think(ask, max_tokens, &messages, &mut body);
    // `tool_choice` stays unchanged: forbidding tools for one request would lose the cache of the whole conversation,
    // and such a request says so in its prompt, too.
    if let Some(answer) = &request.answer {
        let config = body.entry("output_config").or_insert_with(|| json!({}));
        config["format"] = json!({ "type": "json_schema", "schema": answer.schema });
    }
    if request.stream {
        body.insert("stream".into(), json!(true));
    }
    ask.forget(&mut body);
    let search = ask.search(Endpoint::Messages);
    let mut tools: Vec<Tool> = ask.listed_tools().iter().filter_map(|spec| Tool::of(search, spec)).collect();
    if let Some(last) = tools.last_mut().filter(|_| ask.marks_cache()) {
        last.mark();
    }
    write_body(request, &body, ("messages", &messages), &tools)
}

/// The limit of the answer. It is raised where a budget for thinking would leave too little of it, as far as the model goes.
pub(crate) fn max_tokens(ask: &Ask<'_>) -> u64 {
    let most = ask.learned.max_output().unwrap_or(u64::MAX);
    if let Some(limit) = ask.max_output_tokens {
        return limit.min(most);
    }
    let limit = ask.facts.answer_limit().unwrap_or(DEFAULT_OUTPUT);
    let budgets = ask.facts.thinking.as_ref().is_some_and(|rule| rule.mode == ThinkingMode::Budget);
    let limit = match budget(ask.effort()).filter(|_| budgets) {
        Some(budget) => limit.max((budget + LEAST_ANSWER).min(ask.facts.max_output.unwrap_or(limit))),
        None => limit,
    };
    limit.min(most)
}

/// Tokens for thinking of a model that thinks by budget, for any effort that it is asked for.
fn budget(effort: Reasoning) -> Option<u64> {
    match effort {
        Reasoning::Budget(tokens) => Some(tokens),
        Reasoning::Level(level) => level.budget(),
        Reasoning::Unset => Some(LEAST_BUDGET),
        Reasoning::Off => None,
    }
}

/// Whether and how the model thinks. Models of others are told nothing: they think as they see fit, or by what their own
/// endpoints call it.
fn think(ask: &Ask<'_>, max_tokens: u64, messages: &[MessageGroup<'_>], body: &mut Map<String, Value>) {
    let effort = ask.effort();
    let Some(rule) = &ask.facts.thinking else {
        if let Reasoning::Level(level) = effort {
            body.insert("output_config".into(), json!({ "effort": level.name() }));
        }
        return;
    };
    if let Some(thinking) = thinking(ask, rule, max_tokens, messages) {
        body.insert("thinking".into(), thinking);
    }
    if let Reasoning::Level(level) = effort {
        body.insert("output_config".into(), json!({ "effort": level.name() }));
    }
}

fn thinking(ask: &Ask<'_>, rule: &Thinking, max_tokens: u64, messages: &[MessageGroup<'_>]) -> Option<Value> {
    let mut thinking = match (rule.mode, ask.effort()) {
        (ThinkingMode::None, _) => return None,
        (_, Reasoning::Off) => return Some(json!({ "type": "disabled" })),
        (ThinkingMode::Adaptive, _) => json!({ "type": "adaptive" }),
        (ThinkingMode::Budget, _) if !may_think(messages) => return None,
        (ThinkingMode::Budget, effort) => {
            // The rest of the limit is for the answer, which has to have some.
            let room = max_tokens - (max_tokens / 2).min(LEAST_ANSWER);
            let budget = budget(effort)?.min(room);
            if budget < LEAST_BUDGET {
                return None;
            }
            json!({ "type": "enabled", "budget_tokens": budget })
        }
    };
    if rule.text_omitted && !ask.is_forgotten("thinking.display") {
        thinking["display"] = json!("summarized");
    }
    // A safety net: a block that no longer fits its conversation is dropped instead of refused.
    if rule.prefix_bound && ask.binds_thinking() {
        thinking["block_binding"] = json!({ "prefix_mismatch_behavior": "drop_block" });
    }
    Some(thinking)
}

/// Whether a model with a thinking budget may think now. With thinking on, each answer behind the last prompt must start with
/// its thinking. It may have none to send back: another model gave it, or it was given without thinking. A message of the user
/// behind results of tools is sent together with them and is no new prompt.
fn may_think(messages: &[MessageGroup<'_>]) -> bool {
    let under_way = messages.iter().rev().take_while(|group| !group.is_prompt());
    under_way
        .filter(|group| group.role == "assistant")
        .all(|group| group.content.first().is_some_and(|block| block_type(block).ends_with("thinking")))
}

/// The type of a block; empty if it has none.
fn block_type<'a>(block: &'a ListEntry<'_>) -> Cow<'a, str> {
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    match block {
        ListEntry::Made(block) => block["type"].as_str().unwrap_or_default().into(),
        ListEntry::Raw(block) => {
            serde_json::from_str(block.get()).map(|block: Block<'a>| block.kind).unwrap_or_default()
        }
    }
}

#[derive(Serialize)]
struct MessageGroup<'a> {
    role: &'static str,
    content: Vec<ListEntry<'a>>,
}

impl MessageGroup<'_> {
    /// Whether it is of the user and has no result of a tool.
    fn is_prompt(&self) -> bool {
        self.role == "user" && !self.content.iter().any(|block| block_type(block) == "tool_result")
    }
}

/// Messages of the same side become one: results of tools come from the user here.
fn messages<'a>(ask: &'a Ask<'_>) -> Vec<MessageGroup<'a>> {
    let mut turns: Vec<MessageGroup> = Vec::new();
    let mut late = LateTools::of(ask);
    for (at, message) in ask.request.messages.iter().enumerate() {
        let (role, content) = content(ask, message, ask.binding.drops(at));
        if content.is_empty() {
            continue;
        }
        add_tools(&mut turns, late.before(at, role));
        match turns.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            _ => turns.push(MessageGroup { role, content }),
        }
    }
    if goes_on(ask) {
        turns.push(MessageGroup {
            role: "user",
            content: made(vec![json!({ "type": "text", "text": GO_ON })]),
        });
        late.before(usize::MAX, "user");
    }
    add_tools(&mut turns, late.rest());
    if ask.marks_cache() {
        mark_ends(&mut turns);
    }
    turns
}

fn add_tools(turns: &mut Vec<MessageGroup<'_>>, tools: Vec<Value>) {
    if !tools.is_empty() {
        turns.push(MessageGroup { role: late_tools::ROLE, content: made(tools) });
    }
}

/// Role and blocks of a message.
pub(super) fn content<'a>(
    ask: &Ask<'_>,
    message: &'a Message,
    without_thinking: bool,
) -> (&'static str, Vec<ListEntry<'a>>) {
    match message {
        Message::User(parts) => ("user", made(blocks(ask, parts))),
        Message::Assistant(turn) if without_thinking => ("assistant", plain(ask, turn)),
        Message::Assistant(turn) => ("assistant", assistant(ask, turn)),
        Message::Tool { call_id, parts, is_error, .. } => {
            ("user", made(vec![result(ask, call_id, parts, *is_error)]))
        }
    }
}

/// Whether the model has to be told to go on: newer ones refuse to go on with their own words, except where the vendor
/// itself paused them. Messages without any content are not sent.
pub(super) fn goes_on(ask: &Ask<'_>) -> bool {
    let messages = ask.request.messages.iter().rev().map(|message| &**message);
    let last = messages.into_iter().find(|message| !content(ask, message, false).1.is_empty());
    matches!(last, Some(Message::Assistant(turn))
        if !native_to(turn, ask.origin).is_some_and(|native| native.paused))
}

fn made<'a>(blocks: Vec<Value>) -> Vec<ListEntry<'a>> {
    blocks.into_iter().map(ListEntry::Made).collect()
}

/// Marks the end of the conversation, for the next request, and the end of the last request, where this one finds the
/// cache entry. Between them there may be more blocks than the vendor looks back.
fn mark_ends(turns: &mut [MessageGroup<'_>]) {
    let users = turns.iter_mut().rev().filter(|turn| turn.role == "user");
    for turn in users.take(2) {
        if let Some(ListEntry::Made(block)) = turn.content.last_mut() {
            block["cache_control"] = ephemeral();
        }
    }
}

fn mark(ask: &Ask<'_>, block: &mut Value) {
    if ask.marks_cache() {
        block["cache_control"] = ephemeral();
    }
}

fn ephemeral() -> Value {
    json!({ "type": "ephemeral" })
}

/// Empty text is refused, so it is left out.
fn blocks(ask: &Ask<'_>, parts: &[Part]) -> Vec<Value> {
    let said = parts.iter().filter(|part| !matches!(part, Part::Text(text) if text.trim().is_empty()));
    said.map(|part| block(ask, part)).collect()
}

fn block(ask: &Ask<'_>, part: &Part) -> Value {
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
            // The vendor accepts citations or a response format, not both.
            if ask.citations && ask.request.answer.is_none() {
                block["citations"] = json!({ "enabled": true });
            }
            block
        }
    }
}

fn result(ask: &Ask<'_>, id: &str, parts: &[Part], is_error: bool) -> Value {
    let content = if has_images(parts) { blocks(ask, parts).into() } else { json!(text_of(parts)) };
    let id = ask.call_id(id);
    let mut block = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
    // An error may only have text. With an image it goes as a result, whose text says what failed.
    if is_error && !has_images(parts) {
        // An error without text is refused.
        if block["content"] == "" {
            block["content"] = json!("The call failed.");
        }
        block["is_error"] = json!(true);
    }
    block
}

/// A turn of the model: in its original blocks at their origin, else in plain ones.
fn assistant<'a>(ask: &Ask<'_>, turn: &'a AssistantTurn) -> Vec<ListEntry<'a>> {
    let rewrite = |block: &mut Value, call: &ToolCall| {
        if block.get("id").and_then(Value::as_str) == Some(&call.id) {
            block["input"] = arguments(call.kind, &call.input);
        }
    };
    if let Some(native) = native_to(turn, ask.origin)
        && let Some(blocks) = entries(native, turn, rewrite)
    {
        return blocks;
    }
    plain(ask, turn)
}

/// Text and calls of a turn.
fn plain<'a>(ask: &Ask<'_>, turn: &AssistantTurn) -> Vec<ListEntry<'a>> {
    let mut blocks = Vec::new();
    if !turn.text.trim().is_empty() {
        blocks.push(json!({ "type": "text", "text": turn.text }));
    }
    blocks.extend(turn.tool_calls.iter().map(|made| call(ask, made)));
    made(blocks)
}

fn call(ask: &Ask<'_>, call: &ToolCall) -> Value {
    json!({
        "type": "tool_use",
        "id": ask.call_id(&call.id),
        "name": call.name,
        "input": arguments(call.kind, &call.input),
    })
}

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Tool<'a> {
    Function {
        name: &'a str,
        description: &'a str,
        input_schema: Schema,
        cache_control: Option<Value>,
    },
    /// A tool of the vendor's own, whose description and schema the vendor has.
    Hosted {
        #[serde(rename = "type")]
        kind: &'a str,
        name: &'static str,
        max_uses: u32,
        cache_control: Option<Value>,
    },
}

impl<'a> Tool<'a> {
    /// `None` for a tool of the vendor's own where it has none.
    pub(super) fn of(search: Option<&'a WebSearch>, spec: &'a ToolSpec) -> Option<Self> {
        if spec.input == ToolSchema::Hosted {
            let kind = &search?.tool;
            return Some(Self::Hosted {
                kind,
                name: WEB_SEARCH,
                max_uses: MAX_SEARCHES,
                cache_control: None,
            });
        }
        Some(Self::Function {
            name: &spec.name,
            description: &spec.description,
            input_schema: function_schema(spec),
            cache_control: None,
        })
    }

    /// Marks the end of the tools for the cache.
    fn mark(&mut self) {
        let (Self::Function { cache_control, .. } | Self::Hosted { cache_control, .. }) = self;
        *cache_control = Some(ephemeral());
    }
}
