//! The conversation that the model sees: a projection of the log.
//!
//! The rules that every provider insists on live here: a tool call is always followed by its result, results stand in
//! call order, and a call that never got a result is answered as interrupted.

use std::collections::VecDeque;
use std::sync::Arc;

use hangar_protocol::data::{self, Attachment, ModelItems, PlanAndTodos, ToolType};

use crate::model::{AssistantTurn, Message, NativeTurn, Part, ReasoningText, ToolCall};
use crate::summary::{DurableRecord, SummarizedPart, Summary};

/// Result of a call that was interrupted.
pub const INTERRUPTED: &str = "The execution of this tool, or a previous tool was interrupted.";

/// Placeholder for an image that the provider found too large.
pub const IMAGE_WITHHELD: &str = "[An image was here. It was left out because the request was too large.]";
/// Types of documents that models read themselves.
const DOCUMENT: &str = "application/pdf";

/// Wire of Anthropic's Messages API, as the origin of an answer names it.
const MESSAGES_WIRE: &str = "/v1/messages";

/// Bytes that a message counts beyond its text: role, separators, ids. Only for bounding the context.
const MESSAGE_OVERHEAD: usize = 32;

#[derive(Debug, Clone, Default)]
pub struct Conversation {
    messages: VecDeque<Arc<Message>>,
    /// Per message, the records that outlive a compaction.
    records: VecDeque<Vec<DurableRecord>>,
    /// Content of the first message after a compaction.
    summarized: Option<SummarizedPart>,
    bytes: usize,
    /// Open calls of the last assistant message.
    open: Vec<OpenCall>,
}

#[derive(Debug, Clone)]
struct OpenCall {
    id: String,
    name: String,
    kind: ToolType,
    /// The result, and whether it is an error.
    result: Option<(Vec<Part>, bool)>,
}

impl Conversation {
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.messages.iter()
    }

    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Bytes of all text and images, as a cheap estimate of tokens.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Calls that have no result yet, in call order.
    pub fn open_calls(&self) -> impl Iterator<Item = (&str, &str)> {
        self.open
            .iter()
            .filter(|call| call.result.is_none())
            .map(|call| (call.id.as_str(), call.name.as_str()))
    }

    pub fn user(&mut self, message: &data::UserMessage) {
        self.close_open_calls();
        let text = message.transformed_content.as_ref().unwrap_or(&message.content);
        let mut parts = vec![Part::Text(text.clone())];
        for attachment in &message.attachments {
            let Attachment::Blob { data: Some(data), mime_type, display_name } = attachment else { continue };
            if mime_type.starts_with("image/") {
                parts.extend(display_name.clone().map(Part::Text));
                parts.push(Part::Image { mime_type: mime_type.clone(), data: data.clone() });
            } else if mime_type == DOCUMENT {
                let title = display_name.clone().unwrap_or_else(|| "document.pdf".to_owned());
                parts.push(Part::Document { title, mime_type: mime_type.clone(), data: data.clone() });
            }
        }
        self.push(Message::User(parts));
        if !message.content.is_empty() {
            // Text that was for people only, or that a hook withdrew, stays hidden from the model after a summary too.
            let said = if text.contains(&message.content) { &message.content } else { text };
            self.keep(DurableRecord::Said(said.clone()));
        }
    }

    /// Records part of the last message that outlives the next compaction.
    fn keep(&mut self, record: DurableRecord) {
        if let Some(kept) = self.records.back_mut() {
            kept.push(record);
        }
    }

    /// Adds a skill, whose text stays valid for the rest of the session.
    pub fn skill(&mut self, skill: &data::SkillInvoked) {
        self.keep(skill.into());
    }

    /// Number of messages that no summary covers.
    pub fn unsummarized(&self) -> usize {
        self.messages.len() - usize::from(self.summarized.is_some())
    }

    /// Whether the oldest part is summarised.
    pub fn is_summarized(&self) -> bool {
        self.summarized.is_some()
    }

    /// Replaces the first messages with a summary. Their records stay, word by word.
    pub fn compact(&mut self, count: usize, summary: Summary, plan_and_todos: &PlanAndTodos) {
        let count = count.min(self.messages.len());
        let records: Vec<DurableRecord> = self.records.drain(..count).flatten().collect();
        for message in self.messages.drain(..count) {
            self.bytes -= size(&message);
        }
        let mut summarized = self.summarized.take().unwrap_or_default();
        summarized.extend(records, plan_and_todos, summary);
        let message = Message::User(vec![Part::Text(summarized.render())]);
        self.bytes += size(&message);
        self.messages.push_front(Arc::new(message));
        self.records.push_front(Vec::new());
        self.summarized = Some(summarized);
        self.drop_reasoning_within(0, self.bound_until());
    }

    /// Number of answers from a message on whose reasoning is lost when the conversation before them changes.
    pub fn native_turns(&self, from: usize) -> usize {
        self.native_turns_within(from, self.cycle_under_way())
    }

    /// Number of answers behind the first messages whose reasoning is lost when a summary replaces these.
    pub fn native_turns_behind_summary(&self, covered: usize) -> usize {
        self.native_turns_within(covered, self.bound_until())
    }

    /// Whether answers from a message on, in the current cycle, have reasoning that is bound to what came before it.
    /// Vendors refuse such a cycle without its reasoning, and its reasoning after a different start: until it ends, its
    /// start must stay.
    pub fn is_bound(&self, from: usize) -> bool {
        self.native_turns_within(from.max(self.cycle_under_way()), self.messages.len()) > 0
    }

    /// Whether the model binds its reasoning to what came before it, by its last answer.
    pub fn binds_reasoning(&self) -> bool {
        let last = self.messages.iter().rev().find_map(|message| match &**message {
            Message::Assistant(turn) => Some(turn),
            Message::User(_) | Message::Tool { .. } => None,
        });
        last.is_some_and(is_prefix_bound)
    }

    /// Whether the last message is an answer without calls, so that the next prompt begins a new cycle.
    pub fn is_answered(&self) -> bool {
        let last = self.messages.back().map(|message| &**message);
        matches!(last, Some(Message::Assistant(turn)) if turn.tool_calls.is_empty())
    }

    /// End of the messages whose reasoning a summary drops, including a cycle that has ended.
    fn bound_until(&self) -> usize {
        if self.is_answered() { self.messages.len() } else { self.cycle_under_way() }
    }

    fn native_turns_within(&self, from: usize, until: usize) -> usize {
        let bound = |message: &&Arc<Message>| matches!(&***message, Message::Assistant(turn) if is_prefix_bound(turn));
        self.messages.range(from.min(until)..until).filter(bound).count()
    }

    /// First message of the current cycle of calls and results: it starts after the last user message that does not
    /// itself follow a result.
    fn cycle_under_way(&self) -> usize {
        let is_tool =
            |at: usize| matches!(self.messages.get(at).map(|message| &**message), Some(Message::Tool { .. }));
        let begins = |at: &usize| {
            matches!(*self.messages[*at], Message::User(_)) && !at.checked_sub(1).is_some_and(is_tool)
        };
        (0..self.messages.len()).rev().find(begins).map_or(0, |at| at + 1)
    }

    /// Number of answers whose reasoning is lost when images are withheld.
    pub fn native_turns_behind_images(&self) -> usize {
        self.messages
            .iter()
            .position(|message| shows_images(message))
            .map_or(0, |first| self.native_turns(first))
    }

    /// Drops the reasoning of all answers from a message on that is bound to the conversation before them, because that
    /// has changed: vendors refuse such reasoning anywhere else. Answers whose calls are in flight keep theirs: vendors
    /// refuse results of calls without the reasoning that led to them, and drop reasoning that does not fit by
    /// themselves.
    pub fn drop_reasoning(&mut self, from: usize) {
        self.drop_reasoning_within(from, self.cycle_under_way());
    }

    fn drop_reasoning_within(&mut self, from: usize, until: usize) {
        for message in self.messages.range_mut(from.min(until)..until) {
            let bound = matches!(&**message, Message::Assistant(turn) if is_prefix_bound(turn));
            if bound {
                self.bytes -= size(message);
                if let Message::Assistant(turn) = Arc::make_mut(message) {
                    turn.native = None;
                    turn.reasoning = None;
                }
                self.bytes += size(message);
            }
        }
    }

    /// Number of answers in their vendor's own items.
    pub fn vendor_turns(&self) -> usize {
        let is_native = |message: &&Arc<Message>| matches!(&***message, Message::Assistant(turn) if turn.native.is_some());
        self.messages.iter().filter(is_native).count()
    }

    /// Leaves the text and the calls of all answers, without their vendor's own items.
    pub fn withhold_reasoning(&mut self) {
        for message in &mut self.messages {
            if matches!(&**message, Message::Assistant(turn) if turn.native.is_some()) {
                self.bytes -= size(message);
                if let Message::Assistant(turn) = Arc::make_mut(message) {
                    turn.native = None;
                    turn.reasoning = None;
                }
                self.bytes += size(message);
            }
        }
    }

    pub fn has_images(&self) -> bool {
        self.messages.iter().any(|message| shows_images(message))
    }

    /// Replaces every image with a placeholder.
    pub fn withhold_images(&mut self) {
        let Some(first) = self.messages.iter().position(|message| shows_images(message)) else { return };
        self.drop_reasoning(first);
        for message in self.messages.iter_mut().skip(first) {
            self.bytes -= size(message);
            let shows = shows_images(message);
            if shows && let Message::User(parts) | Message::Tool { parts, .. } = Arc::make_mut(message) {
                for part in parts.iter_mut().filter(|part| is_image(part)) {
                    *part = Part::Text(IMAGE_WITHHELD.to_owned());
                }
            }
            self.bytes += size(message);
        }
    }

    /// Adds a notice of Hangar itself, as a user message.
    pub fn notice(&mut self, text: &str) {
        self.close_open_calls();
        self.push(Message::User(vec![Part::Text(text.to_owned())]));
    }

    /// Adds discovered instructions, which stay valid for the rest of the session.
    pub fn instruction(&mut self, text: &str) {
        self.notice(text);
        self.keep(DurableRecord::Instruction(text.to_owned()));
    }

    /// The last instruction that begins with these words.
    pub(crate) fn last_instruction(&self, begin: &str) -> Option<&str> {
        let summarized = self.summarized.iter().flat_map(SummarizedPart::records);
        let instructions =
            summarized.chain(self.records.iter().flatten()).filter_map(|record| match record {
                DurableRecord::Instruction(text) => Some(text.as_str()),
                DurableRecord::Said(_) | DurableRecord::Skill { .. } => None,
            });
        instructions.filter(|text| text.starts_with(begin)).last()
    }

    /// Adds an answer, with the vendor's own items if they were logged.
    pub fn assistant(&mut self, message: &data::AssistantMessage, items: Option<ModelItems>) {
        self.close_open_calls();
        if message.content.is_empty() && message.tool_requests.is_empty() && items.is_none() {
            // Providers refuse an assistant message without content.
            return;
        }
        let native = items.map(|items| NativeTurn {
            origin: items.origin,
            items: items.items.get().into(),
            rewritten: false,
            paused: items.paused,
            prefix: items.prefix,
        });
        let reasoning = (message.reasoning_text.is_some()
            || message.reasoning_opaque.is_some()
            || message.encrypted_content.is_some())
        .then(|| ReasoningText {
            text: message.reasoning_text.clone().unwrap_or_default(),
            opaque: message.reasoning_opaque.clone(),
            encrypted: message.encrypted_content.clone(),
        });
        let tool_calls: Vec<ToolCall> = message.tool_requests.iter().map(call_of).collect();
        self.open = tool_calls
            .iter()
            .map(|call| OpenCall {
                id: call.id.clone(),
                name: call.name.clone(),
                kind: call.kind,
                result: None,
            })
            .collect();
        self.push(Message::Assistant(AssistantTurn {
            text: message.content.clone(),
            reasoning,
            tool_calls,
            native,
        }));
    }

    pub fn tool(&mut self, complete: &data::ToolComplete) {
        let Some(call) = self.open.iter_mut().find(|call| call.id == complete.tool_call_id) else {
            return;
        };
        let mut parts = Vec::new();
        match (&complete.result, &complete.error) {
            (Some(result), _) => {
                parts.push(Part::Text(result.content.clone()));
                for binary in result.binary_results_for_llm.iter().filter(|binary| binary.kind == "image") {
                    parts.extend(binary.description.clone().map(Part::Text));
                    parts
                        .push(Part::Image { mime_type: binary.mime_type.clone(), data: binary.data.clone() });
                }
            }
            (None, Some(error)) => parts.push(Part::Text(error.message.clone())),
            (None, None) => parts.push(Part::Text(String::new())),
        }
        call.result = Some((parts, !complete.success));
        if self.open.iter().all(|call| call.result.is_some()) {
            self.close_open_calls();
        }
    }

    /// Replaces the arguments of a call of the last answer, which a hook has modified.
    pub fn rewrite_call(&mut self, call_id: &str, arguments: &serde_json::Value) {
        let last = self.messages.iter_mut().rev().find(|message| matches!(***message, Message::Assistant(_)));
        let Some(message) = last else { return };
        self.bytes -= size(message);
        if let Message::Assistant(turn) = Arc::make_mut(message)
            && let Some(call) = turn.tool_calls.iter_mut().find(|call| call.id == call_id)
        {
            call.input = arguments.to_string();
            if let Some(native) = &mut turn.native {
                native.rewritten = true;
            }
        }
        self.bytes += size(message);
    }

    /// Answers all open calls as interrupted.
    pub fn close_open_calls(&mut self) {
        for call in std::mem::take(&mut self.open) {
            let interrupted = || (vec![Part::Text(INTERRUPTED.to_owned())], true);
            let (parts, is_error) = call.result.unwrap_or_else(interrupted);
            self.push(Message::Tool { call_id: call.id, kind: call.kind, parts, is_error });
        }
    }

    /// Messages for a model without vision: without images and the texts about them.
    pub fn blind_messages(&self) -> impl Iterator<Item = Arc<Message>> {
        self.messages.iter().map(move |message| match &**message {
            Message::User(parts) | Message::Tool { parts, .. } if !parts.iter().any(is_image) => {
                Arc::clone(message)
            }
            Message::User(parts) => {
                Arc::new(Message::User(parts.iter().filter(|part| !is_image(part)).cloned().collect()))
            }
            Message::Tool { call_id, kind, parts, is_error } => {
                // The first part is the result itself; the others are about images.
                let parts = parts.iter().take(1).filter(|part| !is_image(part)).cloned().collect();
                Arc::new(Message::Tool { call_id: call_id.clone(), kind: *kind, parts, is_error: *is_error })
            }
            Message::Assistant(_) => Arc::clone(message),
        })
    }

    /// Number of oldest messages to drop so that about `target` bytes stay. Never separates a call from its result, and
    /// does not count the summary.
    pub fn excess(&self, target: usize) -> usize {
        let head = usize::from(self.summarized.is_some());
        let mut kept = self.bytes;
        let mut drop = 0;
        for (index, message) in self.messages.iter().enumerate().skip(head) {
            if kept <= target {
                break;
            }
            kept -= size(message);
            let next_starts_exchange =
                self.messages.get(index + 1).is_some_and(|next| !matches!(**next, Message::Tool { .. }));
            if next_starts_exchange {
                drop = index + 1 - head;
            }
        }
        drop
    }

    /// Drops messages from the front, after the summary if there is one. The last user message stays, before those that
    /// follow.
    pub fn drop_oldest(&mut self, count: usize) {
        let head = usize::from(self.summarized.is_some());
        let mut request = None;
        let end = (head + count).min(self.messages.len());
        let mut records: Vec<Vec<DurableRecord>> = self.records.drain(head..end).collect();
        for message in self.messages.drain(head..end) {
            self.bytes -= size(&message);
            if matches!(*message, Message::User(_)) {
                request = Some(message);
            }
        }
        if let Some(message) = request
            && !self.messages.iter().skip(head).any(|message| matches!(**message, Message::User(_)))
        {
            self.bytes += size(&message);
            self.messages.insert(head, message);
            let last = records.iter().rposition(|records| !records.is_empty());
            self.records.insert(head, last.map(|at| records.swap_remove(at)).unwrap_or_default());
        }
        self.drop_reasoning(head);
    }

    fn push(&mut self, message: Message) {
        self.records.push_back(Vec::new());
        self.bytes += size(&message);
        self.messages.push_back(Arc::new(message));
    }
}

/// Whether the reasoning of an answer is valid only after the messages that it followed. Anthropic signs thinking over
/// everything before it. Reasoning items of other vendors are independent of their position, and some of these vendors
/// refuse calls without theirs, however old they are.
fn is_prefix_bound(turn: &AssistantTurn) -> bool {
    turn.native.as_ref().is_some_and(|native| native.origin.wire == MESSAGES_WIRE)
}

fn shows_images(message: &Message) -> bool {
    match message {
        Message::User(parts) | Message::Tool { parts, .. } => parts.iter().any(is_image),
        Message::Assistant(_) => false,
    }
}

fn is_image(part: &Part) -> bool {
    matches!(part, Part::Image { .. })
}

fn call_of(request: &data::ToolRequest) -> ToolCall {
    let kind = request.kind.unwrap_or(ToolType::Function);
    let input = match &request.arguments {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => "{}".to_owned(),
        object => object.to_string(),
    };
    ToolCall { id: request.tool_call_id.clone(), name: request.name.clone(), kind, input }
}

/// Bytes of a message.
pub(crate) fn size(message: &Message) -> usize {
    let parts = |parts: &[Part]| -> usize {
        parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.len(),
                Part::Image { data, .. } | Part::Document { data, .. } => data.len(),
            })
            .sum()
    };
    MESSAGE_OVERHEAD
        + match message {
            Message::User(content) => parts(content),
            Message::Tool { parts: content, .. } => parts(content),
            Message::Assistant(turn) => {
                let reasoning = turn.reasoning.as_ref().map_or(0, |r| {
                    r.text.len()
                        + r.opaque.as_ref().map_or(0, String::len)
                        + r.encrypted.as_ref().map_or(0, String::len)
                });
                turn.text.len()
                    + reasoning
                    + turn.native.as_ref().map_or(0, |native| native.items.len())
                    + turn.tool_calls.iter().map(|call| call.name.len() + call.input.len()).sum::<usize>()
            }
        }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn call(id: &str) -> data::ToolRequest {
        data::ToolRequest {
            tool_call_id: id.to_owned(),
            name: "bash".to_owned(),
            arguments: serde_json::json!({}),
            kind: None,
            intention_summary: None,
            tool_title: None,
            mcp_server_name: None,
            mcp_tool_name: None,
        }
    }

    /// `> text` user, `< text [calls]` assistant, `= id text` result; prints what the model sees.
    fn check(script: &str, expect: Expect) {
        let mut conversation = Conversation::default();
        for line in script.lines() {
            let (mark, rest) = line.split_at(2);
            match mark {
                "> " => {
                    conversation.user(&data::UserMessage { content: rest.to_owned(), ..Default::default() });
                }
                "< " => {
                    let mut words = rest.split(' ');
                    let content = words.next().unwrap().to_owned();
                    let tool_requests = words.map(call).collect();
                    conversation.assistant(
                        &data::AssistantMessage { content, tool_requests, ..Default::default() },
                        None,
                    );
                }
                "= " => {
                    let (id, text) = rest.split_once(' ').unwrap();
                    conversation.tool(&data::ToolComplete {
                        tool_call_id: id.to_owned(),
                        success: true,
                        result: Some(data::ToolResult { content: text.to_owned(), ..Default::default() }),
                        ..Default::default()
                    });
                }
                "- " => conversation.drop_oldest(conversation.excess(rest.parse().unwrap())),
                _ => unreachable!("{line}"),
            }
        }
        let seen: Vec<String> = conversation
            .messages()
            .map(|message| match &**message {
                Message::User(parts) => format!("user {parts:?}"),
                Message::Assistant(turn) => format!("assistant {} {}", turn.text, turn.tool_calls.len()),
                Message::Tool { call_id, parts, .. } => format!("tool {call_id} {parts:?}"),
            })
            .collect();
        expect.assert_eq(&seen.join("\n"));
    }

    #[test]
    fn results_stand_in_call_order_whatever_the_order_of_completion() {
        check(
            "> hi\n< x a b\n= b second\n= a first",
            expect![[r#"
                user [Text("hi")]
                assistant x 2
                tool a [Text("first")]
                tool b [Text("second")]"#]],
        );
    }

    #[test]
    fn a_call_without_a_result_is_answered_before_the_next_message() {
        check(
            "> hi\n< x a b\n= a first\n> go on",
            expect![[r#"
                user [Text("hi")]
                assistant x 2
                tool a [Text("first")]
                tool b [Text("The execution of this tool, or a previous tool was interrupted.")]
                user [Text("go on")]"#]],
        );
    }

    #[test]
    fn dropping_the_oldest_never_splits_a_call_from_its_result() {
        check(
            "> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n< x a\n= a bbbbbbbbbbbbbbbbbbbbbbbbbb\n> c\n< d\n> e\n- 110",
            expect![[r#"
                user [Text("c")]
                assistant d 0
                user [Text("e")]"#]],
        );
    }

    #[test]
    fn the_last_user_message_outlives_what_followed_it() {
        check(
            "> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n< b a\n= a ccccccccccccccccccccccc\n< d\n- 40",
            expect![[r#"
                user [Text("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")]
                assistant d 0"#]],
        );
    }

    #[test]
    fn a_changed_beginning_costs_the_reasoning_of_all_answers_but_those_whose_calls_are_under_way() {
        let mut conversation = Conversation::default();
        let say = |conversation: &mut Conversation, text: &str| {
            conversation.user(&data::UserMessage { content: text.to_owned(), ..Default::default() });
        };
        let answer = |conversation: &mut Conversation, id: &str| {
            let message = data::AssistantMessage { tool_requests: vec![call(id)], ..Default::default() };
            let items = ModelItems {
                message_id: String::new(),
                origin: data::ModelOrigin { wire: MESSAGES_WIRE.to_owned(), ..Default::default() },
                items: serde_json::value::to_raw_value(&["thinking"]).unwrap(),
                paused: false,
                prefix: None,
            };
            conversation.assistant(&message, Some(items));
            conversation.tool(&data::ToolComplete { tool_call_id: id.to_owned(), ..Default::default() });
        };
        say(&mut conversation, "first");
        answer(&mut conversation, "a");
        say(&mut conversation, "while it ran");
        answer(&mut conversation, "b");
        assert_eq!(conversation.native_turns(0), 0, "one cycle, under way");
        conversation
            .assistant(&data::AssistantMessage { content: "done".to_owned(), ..Default::default() }, None);
        say(&mut conversation, "second");
        answer(&mut conversation, "c");
        assert_eq!(conversation.native_turns(0), 2);
        conversation.drop_reasoning(0);
        let kept: Vec<bool> = conversation
            .messages()
            .filter_map(|message| match &**message {
                Message::Assistant(turn) => Some(turn.native.is_some()),
                _ => None,
            })
            .collect();
        assert_eq!(kept, [false, false, false, true]);
    }
}
