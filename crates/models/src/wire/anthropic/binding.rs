//! Thinking that is bound to the request that it answered: to system prompt, tools and all earlier messages.
//!
//! Newer models refuse a thinking block whose request would now begin otherwise, whatever the reason: another list of tools, a
//! secret that the log does not have, an image of another size. Each answer is therefore kept with a digest of its request,
//! and goes back without its thinking where the digest is another one now.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;

use hangar_agent::model::Message;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::late_tools::{self, LateTools};
use super::request::{self, Tool};
use crate::facts::Endpoint;
use crate::wire::native::native_to;
use crate::wire::{Ask, GO_ON};

/// The answers of a request whose thinking does not fit it, and the digest of the request.
#[derive(Debug, Default)]
pub(crate) struct Binding {
    /// Places of the answers that go back without their thinking.
    dropped: BTreeSet<usize>,
    /// Number of those that have thinking.
    thought: usize,
    /// Digest for the answer to this request, if the model binds its thinking.
    pub(crate) prefix: Option<NonZeroU64>,
}

impl Binding {
    pub(crate) fn of(ask: &Ask<'_>) -> Self {
        if !ask.facts.thinking.as_ref().is_some_and(|rule| rule.prefix_bound) {
            return Self::default();
        }
        let mut binding = Self::default();
        let mut prefix = Prefix::of(ask);
        let messages = &ask.request.messages;
        let cycle = cycle_under_way(messages);
        let mut late = LateTools::of(ask);
        for (at, message) in messages.iter().enumerate() {
            let is_answer = matches!(**message, Message::Assistant(_));
            let role = if is_answer { "assistant" } else { "user" };
            late.before(at, role).iter().for_each(|tool| prefix.add(late_tools::ROLE, tool));
            if let Message::Assistant(turn) = &**message
                && let Some(native) = native_to(turn, ask.origin)
                && native.prefix.is_some_and(|bound| bound != prefix.digest())
                // Calls under way are refused without the thinking that led to them; the vendor drops it itself.
                && at < cycle
            {
                binding.dropped.insert(at);
                binding.thought += usize::from(has_thinking(&native.items));
            }
            let (role, content) = request::content(ask, message, binding.drops(at));
            content.iter().for_each(|block| prefix.add(role, block));
        }
        if request::goes_on(ask) {
            prefix.add("user", &GO_ON);
            late.before(usize::MAX, "user");
        }
        late.rest().iter().for_each(|tool| prefix.add(late_tools::ROLE, tool));
        binding.prefix = Some(prefix.digest());
        binding
    }

    /// Whether the answer at this place goes back without its thinking.
    pub(crate) fn drops(&self, at: usize) -> bool {
        self.dropped.contains(&at)
    }

    /// Notice for people.
    pub(crate) fn notice(&self) -> Option<String> {
        let answers = self.thought;
        (answers > 0).then(|| {
            format!(
                "The reasoning behind {answers} answer(s) is left out from now on, because the tools, the system prompt or a \
                 message before them changed."
            )
        })
    }
}

/// Place of the first message of the cycle of calls and results that is under way: what follows the last message of the user
/// that does not itself follow a result.
fn cycle_under_way(messages: &[Arc<Message>]) -> usize {
    let is_tool = |at: usize| matches!(*messages[at], Message::Tool { .. });
    let begins =
        |at: &usize| matches!(*messages[*at], Message::User(_)) && !at.checked_sub(1).is_some_and(is_tool);
    (0..messages.len()).rev().find(begins).map_or(0, |at| at + 1)
}

/// Whether blocks of an answer are thinking.
fn has_thinking(items: &str) -> bool {
    #[derive(Deserialize)]
    struct Block {
        #[serde(rename = "type")]
        kind: String,
    }
    let blocks: Vec<Block> = serde_json::from_str(items).unwrap_or_default();
    blocks.iter().any(|block| block.kind.ends_with("thinking"))
}

struct Prefix(Sha256);

impl Prefix {
    fn of(ask: &Ask<'_>) -> Self {
        let mut prefix = Self(Sha256::new());
        prefix.add("system", &*ask.request.system);
        let search = ask.search(Endpoint::Messages);
        let tools = ask.listed_tools().iter().filter_map(|spec| Tool::of(search, spec));
        tools.for_each(|tool| prefix.add("tool", &tool));
        prefix
    }

    fn add(&mut self, role: &str, part: &(impl Serialize + ?Sized)) {
        // Values always have a text.
        let text = serde_json::to_vec(part).unwrap_or_default();
        self.0.update(role.as_bytes());
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(&text);
    }

    /// The first bytes of the digest: it tells two beginnings of a conversation apart, and no more.
    fn digest(&self) -> NonZeroU64 {
        let digest = self.0.clone().finalize();
        let number = digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
        NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN)
    }
}
