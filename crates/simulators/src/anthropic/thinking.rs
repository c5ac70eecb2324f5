//! Thinking that is sent back: unchanged, in its place, and after the same prefix.

use serde_json::Value;

use super::Claude;
use super::error::invalid;
use super::messages::list;
use super::parameters::RequestThinking;
use super::prefix::{PrefixHash, canonical, content, tools_hash};
use crate::history::AnswerHistory;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::signature::{Seal, digest};

const TOOL_CHANGES: &str = "mid-conversation-tool-changes-2026-07-01";

/// The prefix that the next thinking is bound to, and the blocks of the request that the model will not see.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) prefix: Value,
    pub(super) tools: String,
    /// Paths like `messages.1.content.0`.
    pub(super) dropped: Vec<String>,
    /// Those of the continuing turn.
    pub(super) dropped_now: Vec<String>,
}

pub(super) fn check(
    model: &Claude,
    request: &Request,
    account: &str,
    mode: RequestThinking,
    history: &AnswerHistory,
) -> Result<Sealed, Refusal> {
    let body = &request.body;
    let betas = request.header("anthropic-beta").unwrap_or_default();
    let mut binding = Binding {
        model,
        account,
        mode,
        prefix: PrefixHash::new(&body["system"]),
        tools: tools_hash(body),
        tools_may_change: betas.contains(TOOL_CHANGES),
        dropped: Vec::new(),
    };
    let messages = list(&body["messages"]);
    let cycle = cycle(messages);
    let mut before = 0;
    for (index, message) in messages.iter().enumerate() {
        if mode.thinks && index >= cycle && message["role"] == "assistant" {
            places(model, mode, index, message, history)?;
        }
        binding.message(index, message)?;
        if index < cycle {
            before = binding.dropped.len();
        }
    }
    ends_with_user(model, messages, history)?;
    let prefix = serde_json::json!({"hash": binding.prefix.hash(), "role": binding.prefix.last_role()});
    let dropped_now = binding.dropped[before..].to_vec();
    Ok(Sealed { prefix, tools: binding.tools, dropped: binding.dropped, dropped_now })
}

pub(super) fn is_thinking(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

/// Index of the first message after the last prompt, where the current turn of the model begins.
fn cycle(messages: &[Value]) -> usize {
    let is_prompt = |message: &Value| {
        message["role"] == "user"
            && !list(&message["content"]).iter().any(|block| block["type"] == "tool_result")
    };
    messages.iter().rposition(is_prompt).map_or(0, |index| index + 1)
}

const MODIFIED: &str = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These \
                        blocks must remain as they were in the original response.";

/// Within a turn, thinking must be where it was in the answer.
fn places(
    model: &Claude,
    mode: RequestThinking,
    index: usize,
    message: &Value,
    history: &AnswerHistory,
) -> Result<(), Refusal> {
    let sent = list(&message["content"]);
    let Some(call) = sent.iter().find(|block| block["type"] == "tool_use") else { return Ok(()) };
    let begins_with_text = || {
        let found = sent[0]["type"].as_str().unwrap_or_default();
        invalid(format!(
            "messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When \
             `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost \
             set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To \
             avoid this requirement, disable `thinking`."
        ))
    };
    if mode.budget && !is_thinking(&sent[0]) {
        return Err(begins_with_text());
    }
    let issued = history.recall(&format!("call:{}", call["id"].as_str().unwrap_or_default()));
    // From another model, or from before this server started.
    let Some(issued) = issued.filter(|issued| issued["model"] == model.id) else { return Ok(()) };
    let places = |blocks: &[Value]| -> Vec<(usize, String)> {
        let thinking = blocks.iter().enumerate().filter(|(_, block)| is_thinking(block));
        thinking.map(|(place, block)| (place, canonical(block))).collect()
    };
    let (before, now) = (places(list(&issued["content"])), places(sent));
    if before == now {
        return Ok(());
    }
    if before.first().is_some_and(|(place, _)| *place == 0) && !is_thinking(&sent[0]) {
        return Err(begins_with_text());
    }
    let place = now.iter().find(|block| !before.contains(block)).map_or(0, |(place, _)| *place);
    Err(invalid(format!("messages.{index}.content.{place}: {MODIFIED}")))
}

struct Binding<'a> {
    model: &'a Claude,
    account: &'a str,
    mode: RequestThinking,
    prefix: PrefixHash,
    tools: String,
    tools_may_change: bool,
    dropped: Vec<String>,
}

impl Binding<'_> {
    fn message(&mut self, index: usize, message: &Value) -> Result<(), Refusal> {
        self.prefix.role(message["role"].as_str().unwrap_or_default());
        for (place, block) in content(&message["content"]).iter().enumerate() {
            if is_thinking(block) && !self.is_valid(&format!("messages.{index}.content.{place}"), block)? {
                continue;
            }
            self.prefix.block(block);
        }
        Ok(())
    }

    /// Whether the model sees a block of thinking. One of another model is dropped, a changed one is refused.
    fn is_valid(&mut self, path: &str, block: &Value) -> Result<bool, Refusal> {
        let kind = block["type"].as_str().unwrap_or_default();
        let wrong = format!("{path}: Invalid `signature` in `{kind}` block");
        let signature = if kind == "thinking" { &block["signature"] } else { &block["data"] };
        let Some(seal) = Seal::open(signature.as_str().unwrap_or_default()) else {
            return Err(invalid(wrong));
        };
        if seal.model != self.model.id {
            self.dropped.push(path.to_owned());
            return Ok(false);
        }
        if seal.content != content_hash(block) {
            return Err(invalid(format!("{path}: {MODIFIED}")));
        }
        let (tools, before) = seal.prefix.split_once(':').unwrap_or_default();
        let account = !self.model.rules.account_bound || seal.account == self.account;
        let same = before == self.prefix.hash() && (tools == self.tools || self.tools_may_change) && account;
        if !self.model.rules.preserved || same {
            return Ok(true);
        }
        if self.mode.drops {
            self.dropped.push(path.to_owned());
            return Ok(false);
        }
        Err(invalid(format!(
            "{wrong}. The block is bound to a different conversation: the system prompt, the tools or an earlier message \
             have changed since it was created."
        )))
    }
}

/// Hash of the visible content of a block.
pub(super) fn content_hash(block: &Value) -> String {
    digest(&["thinking", block["thinking"].as_str().unwrap_or_default()])
}

/// Only a paused turn may continue the assistant's text.
fn ends_with_user(model: &Claude, messages: &[Value], history: &AnswerHistory) -> Result<(), Refusal> {
    let Some(last) = messages.last().filter(|last| last["role"] == "assistant") else { return Ok(()) };
    let paused = content(&last["content"]).last().map(|block| format!("paused:{}", canonical(block)));
    let paused = paused.is_some_and(|key| history.recall(&key).is_some());
    if paused || model.rules.prefill {
        return Ok(());
    }
    Err(invalid(
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    ))
}
