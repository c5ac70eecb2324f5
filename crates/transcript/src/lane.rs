//! The blocks of one agent, and where the block of an id is.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use crate::block::{
    AgentInfo, AskBlock, AskKind, Block, BlockBody, NoticeBlock, NoticeLevel, PermissionVerdict, TextBlock,
    ToolBlock, ToolState, VerdictOutcome,
};
use crate::fact::{COMPACTING, CalledTool, NoticeFact};
use crate::memory::{BlockName, Last, Memory};
use crate::stream_text::StreamText;

/// Number of open calls that are remembered. A question is taken to be about the last of them.
const RUNNING_LIMIT: usize = 1_024;
/// Mark at the end of a text that lacks a piece.
const BROKEN_OFF: &str = " … ";

/// Blocks of one agent. It only grows, and an index is valid forever; blocks before [`Lane::first`] have been forgotten.
#[derive(Debug, Default)]
pub struct Lane {
    blocks: VecDeque<Block>,
    first: usize,
    memory: Memory,
    calls: HashMap<String, CallPlace>,
    asks: HashMap<String, AskPlace>,
    texts: HashMap<String, usize>,
    /// Reasoning that has begun and whose message is still to come.
    thinking: Option<usize>,
    /// Event of the last rewind: a server tells of one twice.
    rewound_to: Option<String>,
    last_user: Option<usize>,
    last_reasoning: Option<usize>,
    last_notice: Option<usize>,
    /// Texts and arguments after the last user message that are being written.
    open: Vec<usize>,
    running: BTreeMap<usize, String>,
    changed: Vec<usize>,
}

#[derive(Debug)]
struct CallPlace {
    index: usize,
    ended: bool,
    /// Id of the agent that works for the call.
    agent: Option<String>,
}

#[derive(Debug)]
struct AskPlace {
    index: usize,
    call: Option<String>,
    holds: Option<String>,
}

/// Id and time of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp<'a> {
    pub(crate) id: &'a str,
    pub(crate) at: &'a str,
}

impl Stamp<'_> {
    pub(crate) fn block(&self, key: String, body: BlockBody) -> Block {
        Block { key, event_id: self.id.to_owned(), at: self.at.to_owned(), rewound: false, body }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Text,
    Reasoning,
}

impl TextKind {
    fn key(self, id: &str) -> String {
        match self {
            Self::Text => format!("m:{id}"),
            Self::Reasoning => format!("r:{id}"),
        }
    }

    fn body(self, text: &str, open: bool) -> BlockBody {
        let block = TextBlock { text: StreamText::from(text), open };
        match self {
            Self::Text => BlockBody::Text(block),
            Self::Reasoning => BlockBody::Reasoning(block),
        }
    }
}

impl Lane {
    /// Index of the first block that is kept.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Index that the next block will have: the number of all blocks, forgotten ones too.
    pub fn end(&self) -> usize {
        self.first + self.blocks.len()
    }

    /// Number of the blocks that are kept.
    pub fn kept(&self) -> usize {
        self.blocks.len()
    }

    pub fn get(&self, index: usize) -> Option<&Block> {
        self.blocks.get(index.checked_sub(self.first)?)
    }

    /// The blocks that are kept, with their indexes.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = (usize, &Block)> + ExactSizeIterator {
        let first = self.first;
        self.blocks.iter().enumerate().map(move |(offset, block)| (first + offset, block))
    }

    /// Whether a block still waits for an event that completes it. Agents in the background do not hold their call
    /// open. An interrupted session leaves blocks open that no event will complete: see
    /// [`crate::Transcript::is_working`].
    pub fn is_open(&self, index: usize) -> bool {
        match self.get(index).map(|block| &block.body) {
            None | Some(BlockBody::User(_)) => false,
            Some(BlockBody::Text(text) | BlockBody::Reasoning(text)) => text.open,
            Some(BlockBody::Tool(tool)) => !tool.state.has_ended() || tool.asking,
            Some(BlockBody::Ask(ask)) => ask.outcome.is_none(),
            Some(BlockBody::Notice(notice)) => self.last_notice == Some(index) && notice.text == COMPACTING,
        }
    }

    /// Drops the blocks before `index`, and returns the agents whose calls were among them.
    pub(crate) fn forget_before(&mut self, index: usize) -> Vec<Arc<AgentInfo>> {
        let mut agents = Vec::new();
        while self.first < index {
            let Some(block) = self.blocks.pop_front() else { break };
            let at = self.first;
            self.first += 1;
            agents.extend(block.as_tool().and_then(|tool| tool.agent.clone()));
            let last = if self.last_reasoning == Some(at) {
                Some(Last::Reasoning)
            } else if self.last_notice == Some(at) {
                Some(Last::Notice)
            } else {
                None
            };
            if let Some((at, name)) = self.memory.take(at, block, last) {
                self.forget_name(at, &name);
            }
        }
        // A long history is folded at once and then dropped; its memory is not needed again.
        if self.blocks.capacity() > 64 + 4 * self.blocks.len() {
            self.blocks.shrink_to(64 + 2 * self.blocks.len());
            self.calls.shrink_to_fit();
            self.asks.shrink_to_fit();
            self.texts.shrink_to_fit();
        }
        agents
    }

    /// Drops a name, unless it belongs to another block by now.
    fn forget_name(&mut self, at: usize, name: &BlockName) {
        match name {
            BlockName::Call(call) => {
                if self.calls.get(call).is_some_and(|place| place.index == at) {
                    self.calls.remove(call);
                }
            }
            BlockName::Request(request) => {
                if self.asks.get(request).is_some_and(|place| place.index == at) {
                    self.asks.remove(request);
                }
            }
            BlockName::Text(key) => {
                if self.texts.get(key) == Some(&at) {
                    self.texts.remove(key);
                }
            }
        }
    }

    /// Indexes of the blocks that changed since this was last called, some perhaps twice.
    pub(crate) fn take_changed(&mut self) -> std::vec::Drain<'_, usize> {
        self.changed.drain(..)
    }

    pub(crate) fn has_call(&self, call: &str) -> bool {
        self.calls.contains_key(call)
    }

    /// Id of the agent that works for a call.
    pub(crate) fn agent_of(&self, call: &str) -> Option<&str> {
        self.calls.get(call)?.agent.as_deref()
    }

    pub(crate) fn set_agent(&mut self, call: &str, info: Arc<AgentInfo>) {
        if let Some(place) = self.calls.get_mut(call) {
            place.agent = Some(info.id.clone());
        }
        self.change_call(call, |tool| tool.agent = Some(info));
    }

    pub(crate) fn touch_call(&mut self, call: &str) {
        self.change_call(call, |_| {});
    }

    pub(crate) fn push(&mut self, block: Block) -> usize {
        let index = self.end();
        match &block.body {
            BlockBody::User(_) => {
                self.last_user = Some(index);
                self.open.clear();
            }
            BlockBody::Reasoning(_) => {
                self.last_reasoning = Some(index);
                self.memory.supersede(Last::Reasoning);
            }
            BlockBody::Notice(_) => {
                self.last_notice = Some(index);
                self.memory.supersede(Last::Notice);
            }
            BlockBody::Text(_) | BlockBody::Tool(_) | BlockBody::Ask(_) => {}
        }
        self.blocks.push_back(block);
        self.changed.push(index);
        index
    }

    /// The block at that index, to be changed. Dropped ones exist only as far as later blocks depend on them.
    fn block_mut(&mut self, index: usize) -> Option<&mut Block> {
        match index.checked_sub(self.first) {
            Some(offset) => {
                self.changed.push(index);
                self.blocks.get_mut(offset)
            }
            None => self.memory.block_mut(index),
        }
    }

    fn peek(&self, index: usize) -> Option<&Block> {
        self.get(index).or_else(|| self.memory.block(index))
    }

    pub(crate) fn change_tool(&mut self, index: usize, change: impl FnOnce(&mut ToolBlock)) {
        if let Some(tool) = self.block_mut(index).and_then(Block::as_tool_mut) {
            change(tool);
        }
    }

    /// Changes the block of a call, if there is one.
    pub(crate) fn change_call(&mut self, call: &str, change: impl FnOnce(&mut ToolBlock)) {
        if let Some(place) = self.calls.get(call) {
            self.change_tool(place.index, change);
        }
    }

    /// Index of the block of a call, which is made if there is none.
    pub(crate) fn call_index(&mut self, stamp: Stamp<'_>, request: &CalledTool<'_>) -> usize {
        match self.calls.get(request.call) {
            Some(place) => place.index,
            None => self.push_tool(stamp, request, format!("t:{}", request.call)),
        }
    }

    /// Same for a continuing call. Some models reuse an id in a later turn: after a call has ended, the id means
    /// another one.
    pub(crate) fn current_call_index(&mut self, stamp: Stamp<'_>, request: &CalledTool<'_>) -> usize {
        match self.calls.get(request.call) {
            Some(place) if place.ended => {
                self.push_tool(stamp, request, format!("t:{}:{}", request.call, stamp.id))
            }
            _ => self.call_index(stamp, request),
        }
    }

    fn push_tool(&mut self, stamp: Stamp<'_>, request: &CalledTool<'_>, key: String) -> usize {
        let tool = ToolBlock {
            call: request.call.to_owned(),
            name: request.name.to_owned(),
            title: request.title.map(str::to_owned),
            args: request.args.clone(),
            draft: StreamText::default(),
            state: ToolState::Queued,
            output: StreamText::default(),
            progress: None,
            diff: None,
            error: None,
            exit_code: None,
            pictures: Vec::new(),
            ended_at: None,
            asking: false,
            verdict: None,
            agent: None,
        };
        let index = self.push(stamp.block(key, BlockBody::Tool(Box::new(tool))));
        self.calls.insert(request.call.to_owned(), CallPlace { index, ended: false, agent: None });
        index
    }

    /// Notes that the arguments of a call are being written.
    pub(crate) fn write_call(&mut self, index: usize, name: Option<&str>, piece: &str) {
        let mut is_new = false;
        self.change_tool(index, |tool| {
            if let Some(name) = name {
                name.clone_into(&mut tool.name);
            }
            tool.draft.push(piece);
            is_new = tool.state == ToolState::Queued && tool.args.is_null();
            if is_new {
                tool.state = ToolState::Writing;
            }
        });
        if is_new {
            self.opened(index);
        }
    }

    /// Notes the tool and the arguments of a call, once the model has written them.
    pub(crate) fn queue_call(&mut self, index: usize, request: &CalledTool<'_>) {
        self.change_tool(index, |tool| {
            request.name.clone_into(&mut tool.name);
            tool.title = request.title.map(str::to_owned).or(tool.title.take());
            tool.args = request.args.clone();
            tool.draft = StreamText::default();
            if tool.state == ToolState::Writing {
                tool.state = ToolState::Queued;
            }
        });
        self.closed(index);
    }

    pub(crate) fn start_call(&mut self, index: usize, request: &CalledTool<'_>, stamp: Stamp<'_>) {
        if let Some(block) = self.block_mut(index) {
            stamp.at.clone_into(&mut block.at);
        }
        self.change_tool(index, |tool| {
            request.name.clone_into(&mut tool.name);
            tool.title = request.title.map(str::to_owned).or(tool.title.take());
            if !request.args.is_null() {
                tool.args = request.args.clone();
            }
            tool.draft = StreamText::default();
            tool.state = ToolState::Running;
        });
        self.closed(index);
        self.running.insert(index, request.call.to_owned());
        if self.running.len() > RUNNING_LIMIT {
            self.running.pop_first();
        }
    }

    pub(crate) fn end_call(&mut self, index: usize, call: &str, change: impl FnOnce(&mut ToolBlock)) {
        self.running.remove(&index);
        self.closed(index);
        if let Some(place) = self.calls.get_mut(call) {
            place.ended = true;
        }
        self.change_tool(index, change);
    }

    pub(crate) fn forget_thinking(&mut self) {
        self.thinking = None;
    }

    pub(crate) fn add_piece(&mut self, kind: TextKind, id: &str, piece: &str, stamp: Stamp<'_>) {
        if piece.is_empty() {
            return;
        }
        let key = kind.key(id);
        if let Some(&index) = self.texts.get(&key) {
            let Some(text) = self.block_mut(index).and_then(Block::as_text_mut) else { return };
            text.text.push(piece);
            if !std::mem::replace(&mut text.open, true) {
                self.opened(index);
            }
            return;
        }
        let index = self.push(stamp.block(key.clone(), kind.body(piece, true)));
        self.opened(index);
        self.texts.insert(key, index);
        if kind == TextKind::Reasoning {
            self.thinking = Some(index);
        }
    }

    pub(crate) fn finish_text(&mut self, kind: TextKind, id: &str, text: &str, stamp: Stamp<'_>) {
        let key = kind.key(id);
        if let Some(&index) = self.texts.get(&key) {
            self.close_text(index, Some(text));
        } else if !text.trim().is_empty() {
            let index = self.push(stamp.block(key.clone(), kind.body(text, false)));
            self.texts.insert(key, index);
        }
    }

    /// Reasoning has an id while it streams and none in the log; open reasoning belongs to the message.
    pub(crate) fn finish_thinking(&mut self, message: &str, text: &str, stamp: Stamp<'_>) {
        let text = Some(text).filter(|text| !text.is_empty());
        match (self.thinking.take(), text) {
            (Some(index), text) => self.close_text(index, text),
            (None, Some(text)) => self.finish_text(TextKind::Reasoning, message, text, stamp),
            (None, None) => {}
        }
    }

    /// Whether this is the last reasoning that was added.
    pub(crate) fn has_told(&self, reasoning: &str) -> bool {
        let last = self.last_reasoning.and_then(|index| self.peek(index)).map(|block| &block.body);
        matches!(last, Some(BlockBody::Reasoning(told)) if told.text.as_str() == reasoning)
    }

    fn close_text(&mut self, index: usize, text: Option<&str>) {
        self.closed(index);
        let Some(block) = self.block_mut(index).and_then(Block::as_text_mut) else { return };
        if let Some(text) = text {
            block.text.replace(text);
        }
        block.open = false;
    }

    /// Closes the open texts: a turn that ended without its message leaves no block waiting for more.
    pub(crate) fn close_texts(&mut self) {
        for index in std::mem::take(&mut self.open) {
            match self.block_mut(index).map(|block| &mut block.body) {
                Some(BlockBody::Text(text) | BlockBody::Reasoning(text)) => text.open = false,
                Some(BlockBody::Tool(tool)) if tool.state == ToolState::Writing => {
                    tool.state = ToolState::Queued;
                }
                _ => {}
            }
        }
    }

    /// Marks the open texts as incomplete.
    pub(crate) fn break_off(&mut self) {
        for offset in 0..self.blocks.len() {
            let Some(text) = self.blocks[offset].as_text_mut() else { continue };
            if text.open && !text.text.ends_with(BROKEN_OFF) {
                text.text.push(BROKEN_OFF);
                self.changed.push(self.first + offset);
            }
        }
    }

    /// A turn closes only the blocks after the last user message.
    fn opened(&mut self, index: usize) {
        if self.last_user.is_none_or(|user| index > user) {
            self.open.push(index);
        }
    }

    fn closed(&mut self, index: usize) {
        if let Some(position) = self.open.iter().rposition(|open| *open == index) {
            self.open.remove(position);
        }
    }

    pub(crate) fn ask(
        &mut self,
        request: &str,
        kind: AskKind,
        call: Option<&str>,
        data: &Value,
        stamp: Stamp<'_>,
    ) {
        let call = call.map(str::to_owned);
        let holds = call.clone().or_else(|| self.running.last_key_value().map(|(_, call)| call.clone()));
        let ask = AskBlock {
            request: request.to_owned(),
            ask: kind,
            call: call.clone(),
            holds: holds.clone(),
            data: data.clone(),
            outcome: None,
            detail: None,
        };
        let index = self.push(stamp.block(format!("a:{request}"), BlockBody::Ask(Box::new(ask))));
        if let Some(holds) = &holds {
            self.change_call(holds, |tool| tool.asking = true);
        }
        self.asks.insert(request.to_owned(), AskPlace { index, call, holds });
    }

    pub(crate) fn answer(&mut self, request: &str, outcome: VerdictOutcome, detail: Option<&str>) {
        let Some(AskPlace { index, call, holds }) = self.asks.get(request) else { return };
        let (index, call, holds) = (*index, call.clone(), holds.clone());
        let detail = detail.map(str::to_owned);
        if let Some(BlockBody::Ask(ask)) = self.block_mut(index).map(|block| &mut block.body) {
            ask.outcome = Some(outcome);
            ask.detail.clone_from(&detail);
        }
        if let Some(holds) = holds {
            self.change_call(&holds, |tool| tool.asking = false);
        }
        if let Some(call) = call {
            self.change_call(&call, |tool| tool.verdict = Some(PermissionVerdict { outcome, detail }));
        }
    }

    pub(crate) fn add_notice(&mut self, notice: &NoticeFact<'_>, stamp: Stamp<'_>) {
        let detail = notice.detail.as_deref().map(str::to_owned);
        let body = NoticeBlock { level: notice.level, text: notice.text.clone().into_owned(), detail };
        let made = stamp.block(format!("n:{}", stamp.id), BlockBody::Notice(body));
        let replaced = self.last_notice.filter(|index| {
            let body = self.peek(*index).map(|block| &block.body);
            matches!(body, Some(BlockBody::Notice(last)) if Some(last.text.as_str()) == notice.instead)
        });
        match replaced.and_then(|index| self.block_mut(index)) {
            Some(block) => *block = Block { key: std::mem::take(&mut block.key), ..made },
            None => _ = self.push(made),
        }
    }

    pub(crate) fn inform(&mut self, text: String, stamp: Stamp<'_>) {
        let notice = NoticeFact { level: NoticeLevel::Info, text: text.into(), detail: None, instead: None };
        self.add_notice(&notice, stamp);
    }

    /// Marks the blocks from that event on as rewound. Returns whether this is news.
    pub(crate) fn rewind(&mut self, up_to: &str) -> bool {
        if self.rewound_to.as_deref() == Some(up_to) {
            return false;
        }
        self.rewound_to = Some(up_to.to_owned());
        let from = if self.memory.knows_event(up_to) {
            Some(0)
        } else {
            self.blocks.iter().position(|block| block.event_id == up_to)
        };
        for offset in from.unwrap_or(self.blocks.len())..self.blocks.len() {
            self.blocks[offset].rewound = true;
            self.changed.push(self.first + offset);
        }
        true
    }
}
