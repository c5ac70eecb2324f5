//! The transcript as a fold over events: the same function reads history and follows a session that is being written.
//! Ephemeral events fill blocks that are open; the event that is logged in the end replaces what they built.

use std::collections::BTreeMap;
use std::sync::Arc;

use hangar_protocol::{Event, EventKind};
use indexmap::IndexMap;
use serde_json::Value;

use crate::block::{AgentInfo, AgentState, BlockBody, NoticeLevel, Picture, ToolState, UserBlock};
use crate::changes::{Changes, LaneId};
use crate::fact::{CalledTool, Done, Fact, NoticeFact, StartedAgent};
use crate::lane::{Lane, Stamp, TextKind};
use crate::status::{ContextUse, SessionStatus};
use crate::{loose, typed};

/// Depth of nested agents; deeper ones are shown in the deepest lane.
const DEEPEST: usize = 8;
/// Notice below an answer whose process was killed; other interruptions have events of their own.
const INTERRUPTED: &str = "Interrupted";
/// Number of agents that are remembered after their calls have been dropped.
const AGENT_LIMIT: usize = 1_024;

/// A session's events as blocks: a lane for its main agent, and one for each sub-agent.
#[derive(Debug, Default)]
pub struct Transcript {
    main: Lane,
    /// Lanes of the agents.
    lanes: BTreeMap<LaneId, Lane>,
    agents: IndexMap<String, Agent>,
    last_lane: u32,
    status: SessionStatus,
}

#[derive(Debug)]
struct Agent {
    lane: LaneId,
    /// The call that it works for.
    call: String,
    /// The lane of that call.
    parent: LaneId,
    depth: usize,
    info: Arc<AgentInfo>,
    /// Whether the block of its call was forgotten.
    is_forgotten: bool,
}

impl Transcript {
    pub fn new() -> Self {
        Self::default()
    }

    /// Lane of the session's main agent.
    pub fn main(&self) -> &Lane {
        &self.main
    }

    /// A lane that [`Changes`] name. One that was dropped is `None`.
    pub fn lane(&self, id: LaneId) -> Option<&Lane> {
        if id == LaneId::MAIN { Some(&self.main) } else { self.lanes.get(&id) }
    }

    /// Lane of an agent.
    pub fn agent(&self, agent_id: &str) -> Option<&Lane> {
        self.lane(self.agent_lane(agent_id)?)
    }

    pub fn agent_lane(&self, agent_id: &str) -> Option<LaneId> {
        self.agents.get(agent_id).map(|agent| agent.lane)
    }

    /// The agents in the order of their start: id, call that they work for, and state.
    pub fn agents(&self) -> impl Iterator<Item = (&str, &str, &AgentInfo)> {
        self.agents.iter().map(|(id, agent)| (id.as_str(), agent.call.as_str(), &*agent.info))
    }

    pub fn model(&self) -> Option<&str> {
        self.status.model.as_deref()
    }

    /// Reasoning effort of the model.
    pub fn effort(&self) -> Option<&str> {
        self.status.effort.as_deref()
    }

    pub fn context(&self) -> Option<ContextUse> {
        self.status.context
    }

    /// Mode of the session, once it changed: `interactive`, `plan` or `autopilot`.
    pub fn mode(&self) -> Option<&str> {
        self.status.mode.as_deref()
    }

    pub fn title(&self) -> Option<&str> {
        self.status.title.as_deref()
    }

    /// Whether the main agent is working.
    pub fn is_working(&self) -> bool {
        self.status.is_working
    }

    /// Applies the next event.
    pub fn apply(&mut self, event: &Event) -> Changes {
        let mut changes = Changes::default();
        let Some(kind) = event.event_kind() else { return changes };
        if event.agent_id().is_none() {
            self.status.follow_work(kind);
        }
        if let Some(fact) = typed::read(event.body()) {
            self.take(event, fact, &mut changes);
        } else if loose::is_told(kind) {
            let data = loose::data(event);
            if let Some(fact) = loose::read(kind, &data) {
                self.take(event, fact, &mut changes);
            }
        } else if kind == EventKind::TitleChanged {
            self.status.set_title(loose::text_or_none(&loose::data(event), "title"));
        }
        changes.status = self.status.take_changed();
        changes.ordered()
    }

    /// Notes that the connection was lost: a text that is still being written may lack a piece, and is marked until it
    /// is complete.
    pub fn break_off(&mut self) -> Changes {
        let mut changes = Changes::default();
        let lanes = self.lanes.iter_mut().map(|(id, lane)| (*id, lane));
        for (id, lane) in std::iter::once((LaneId::MAIN, &mut self.main)).chain(lanes) {
            lane.break_off();
            changes.add(id, lane.take_changed());
        }
        changes.ordered()
    }

    /// Drops the content of the blocks before `index`, and of the lanes of finished agents whose calls are among them.
    /// Indexes stay valid. A later event about a dropped block has no visible effect, so drop only complete ones (see
    /// [`Lane::is_open`]).
    pub fn forget_before(&mut self, lane: LaneId, index: usize) {
        let mut owned = match self.lane_mut(lane) {
            Some(lane) => lane.forget_before(index),
            None => return,
        };
        while let Some(info) = owned.pop() {
            let Some(agent) = self.agents.get_mut(&info.id) else { continue };
            agent.is_forgotten = true;
            let (id, ended) = (agent.lane, agent.info.state != AgentState::Running);
            // At the deepest level the lane is that of the call itself.
            let is_own = id != agent.parent;
            if ended
                && is_own
                && let Some(lane) = self.lane_mut(id)
            {
                owned.extend(lane.forget_before(lane.end()));
            }
        }
        while self.agents.len() > AGENT_LIMIT {
            let Some(oldest) = self.agents.values().position(|agent| agent.is_forgotten) else { break };
            if let Some((_, agent)) = self.agents.shift_remove_index(oldest)
                && agent.lane != agent.parent
            {
                self.lanes.remove(&agent.lane);
            }
        }
    }

    fn lane_mut(&mut self, id: LaneId) -> Option<&mut Lane> {
        if id == LaneId::MAIN { Some(&mut self.main) } else { self.lanes.get_mut(&id) }
    }

    fn take(&mut self, event: &Event, fact: Fact<'_>, changes: &mut Changes) {
        let stamp = Stamp { id: &event.id().0, at: event.timestamp() };
        let agent_id = event.agent_id().map(|id| id.0.as_str());
        let id = match agent_id {
            None => LaneId::MAIN,
            Some(agent_id) => self.lane_of(agent_id, event, &fact, stamp, changes),
        };
        if id == LaneId::MAIN {
            self.status.take(&fact);
        }
        if let Fact::AgentEnded { call, .. } = fact {
            let parent = agent_id.and_then(|id| self.agents.get(id)).map_or(id, |agent| agent.parent);
            self.end_agent(parent, call, &fact, changes);
        }
        if let Some(lane) = self.lane_mut(id) {
            apply_to(lane, stamp, fact);
            changes.add(id, lane.take_changed());
        }
        if let Some(agent_id) = agent_id {
            self.touch_owners(agent_id, changes);
        }
    }

    fn lane_of(
        &mut self,
        agent_id: &str,
        event: &Event,
        fact: &Fact<'_>,
        stamp: Stamp<'_>,
        changes: &mut Changes,
    ) -> LaneId {
        if let Some(known) = self.agents.get(agent_id) {
            return known.lane;
        }
        if let Fact::AgentStarted(start) = fact {
            return self.start_agent(agent_id, start, stamp, changes);
        }
        // The agent began in a page of history that is not loaded; its events name its call.
        let data = loose::data(event);
        let start = StartedAgent {
            call: loose::text_or_none(&data, "parentToolCallId").unwrap_or(agent_id),
            name: "Agent",
            description: "",
            background: false,
            model: None,
        };
        self.start_agent(agent_id, &start, stamp, changes)
    }

    /// Starts a lane below the agent's call, which may be in any lane, because agents start agents.
    fn start_agent(
        &mut self,
        agent_id: &str,
        start: &StartedAgent<'_>,
        stamp: Stamp<'_>,
        changes: &mut Changes,
    ) -> LaneId {
        let has_call = |agent: &&Agent| self.lane(agent.lane).is_some_and(|lane| lane.has_call(start.call));
        let owner = self.agents.values().find(has_call);
        let parent = owner.map_or(LaneId::MAIN, |owner| owner.lane);
        let depth = owner.map_or(0, |owner| owner.depth) + 1;
        let lane = if depth > DEEPEST { parent } else { self.new_lane() };
        let info = Arc::new(AgentInfo {
            id: agent_id.to_owned(),
            name: start.name.to_owned(),
            description: start.description.to_owned(),
            background: start.background,
            model: start.model.map(str::to_owned),
            state: AgentState::Running,
            error: None,
            tools: None,
            tokens: None,
            ms: None,
        });
        let mut replaced = None;
        if let Some(parent) = self.lane_mut(parent) {
            let request = CalledTool { call: start.call, name: "task", args: &Value::Null, title: None };
            parent.call_index(stamp, &request);
            replaced = parent.agent_of(start.call).map(str::to_owned);
        }
        // That block is no longer shown.
        if let Some(agent) = replaced.and_then(|id| self.agents.get_mut(&id)) {
            agent.is_forgotten = true;
        }
        let agent = Agent {
            lane,
            call: start.call.to_owned(),
            parent,
            depth,
            info: Arc::clone(&info),
            is_forgotten: false,
        };
        self.agents.insert(agent_id.to_owned(), agent);
        self.show_agent(parent, start.call, info, changes);
        lane
    }

    fn new_lane(&mut self) -> LaneId {
        self.last_lane += 1;
        let id = LaneId(self.last_lane);
        self.lanes.insert(id, Lane::default());
        id
    }

    /// Ends the agent of a call.
    fn end_agent(&mut self, parent: LaneId, call: &str, fact: &Fact<'_>, changes: &mut Changes) {
        let Fact::AgentEnded { error, tools, tokens, ms, .. } = *fact else { return };
        let agent_id = self.lane(parent).and_then(|lane| lane.agent_of(call));
        let Some(agent) = agent_id.and_then(|id| self.agents.get(id)) else { return };
        let info = Arc::new(AgentInfo {
            state: if error.is_none() { AgentState::Ok } else { AgentState::Failed },
            error: error.map(str::to_owned),
            tools,
            tokens,
            ms,
            ..AgentInfo::clone(&agent.info)
        });
        self.show_agent(parent, call, info, changes);
    }

    /// Notes the state of an agent, also in the block of its call.
    fn show_agent(&mut self, parent: LaneId, call: &str, info: Arc<AgentInfo>, changes: &mut Changes) {
        if let Some(agent) = self.agents.get_mut(&info.id) {
            agent.info = Arc::clone(&info);
        }
        if let Some(lane) = self.lane_mut(parent) {
            lane.set_agent(call, info);
            changes.add(parent, lane.take_changed());
        }
    }

    /// An agent's block shows what happens in its lane, so a change there is a change of it and of those around it.
    fn touch_owners(&mut self, agent_id: &str, changes: &mut Changes) {
        let mut agent = self.agents.get(agent_id);
        for _ in 0..=DEEPEST {
            let Some(Agent { parent, call, .. }) = agent else { return };
            let (parent, call) = (*parent, call.clone());
            if let Some(lane) = self.lane_mut(parent) {
                lane.touch_call(&call);
                changes.add(parent, lane.take_changed());
            }
            if parent == LaneId::MAIN {
                return;
            }
            agent = self.agents.values().find(|other| other.lane == parent);
        }
    }
}

fn apply_to(lane: &mut Lane, stamp: Stamp<'_>, fact: Fact<'_>) {
    match fact {
        Fact::UserSaid { text, delivery, attachments, source } => {
            let user = UserBlock {
                text: text.to_owned(),
                delivery: delivery.map(str::to_owned),
                attachments: attachments.into_iter().map(str::to_owned).collect(),
                source: source.map(str::to_owned),
            };
            lane.push(stamp.block(format!("u:{}", stamp.id), BlockBody::User(user)));
        }
        Fact::TurnStarted => lane.forget_thinking(),
        Fact::TurnEnded | Fact::AgentEnded { .. } => lane.close_texts(),
        Fact::MessageDelta { message, piece } => lane.add_piece(TextKind::Text, message, piece, stamp),
        Fact::MessageDone { message, text, reasoning, requests } => {
            lane.finish_thinking(message, reasoning, stamp);
            lane.finish_text(TextKind::Text, message, text, stamp);
            for request in &requests {
                let index = lane.current_call_index(stamp, request);
                lane.queue_call(index, request);
            }
        }
        Fact::AnswerCut { message, text, reasoning, recovered } => {
            lane.finish_thinking(message, reasoning, stamp);
            lane.finish_text(TextKind::Text, message, text, stamp);
            if recovered {
                lane.add_notice(&NoticeFact::new(NoticeLevel::Warning, INTERRUPTED), stamp);
            }
        }
        Fact::ReasoningDelta { reasoning, piece } => {
            lane.add_piece(TextKind::Reasoning, reasoning, piece, stamp);
        }
        // It may come before its message, after it, or without one; the message may already contain it.
        Fact::ReasoningDone { text, .. } if lane.has_told(text) => {}
        Fact::ReasoningDone { reasoning, text } => {
            lane.finish_text(TextKind::Reasoning, reasoning, text, stamp);
        }
        Fact::ToolWriting { call, name, piece } => {
            let request = CalledTool { call, name: name.unwrap_or("tool"), args: &Value::Null, title: None };
            let index = lane.current_call_index(stamp, &request);
            lane.write_call(index, name, piece);
        }
        Fact::ToolStarted(request) => {
            let index = lane.current_call_index(stamp, &request);
            lane.start_call(index, &request, stamp);
        }
        Fact::ToolOutput { call, text } => lane.change_call(call, |tool| tool.output.replace_end(text)),
        Fact::ToolProgress { call, message } => {
            lane.change_call(call, |tool| tool.progress = Some(message.to_owned()));
        }
        Fact::ToolDone(done) => end_call(lane, stamp, done),
        Fact::Asked { request, kind, call, data } => lane.ask(request, kind, call, data, stamp),
        Fact::Answered { request, outcome, detail } => lane.answer(request, outcome, detail),
        Fact::Notice(notice) if notice.text.is_empty() => {}
        Fact::Notice(notice) => {
            if notice.level == NoticeLevel::Error {
                lane.close_texts();
            }
            lane.add_notice(&notice, stamp);
        }
        Fact::Rewound { up_to } => {
            if lane.rewind(up_to) {
                lane.inform("Rewound to an earlier point".to_owned(), stamp);
            }
        }
        Fact::ModelIs { model, changed: true, .. } => lane.inform(format!("Model: {model}"), stamp),
        Fact::ModeIs { mode } => lane.inform(format!("Mode: {mode}"), stamp),
        Fact::AgentStarted(_) | Fact::ModelIs { changed: false, .. } | Fact::Context { .. } => {}
    }
}

fn end_call(lane: &mut Lane, stamp: Stamp<'_>, done: Done<'_>) {
    // Its start may be in a page of history that is not loaded.
    let request = CalledTool { call: done.call, name: "tool", args: &Value::Null, title: None };
    let index = lane.call_index(stamp, &request);
    lane.end_call(index, done.call, |tool| {
        let is_ok = done.success && done.exit_code.unwrap_or(0) == 0;
        tool.state = if is_ok { ToolState::Ok } else { ToolState::Failed };
        if !done.output.is_empty() {
            tool.output.replace(done.output);
        }
        tool.diff = done.diff.map(str::to_owned);
        tool.error = done.error.map(str::to_owned);
        tool.exit_code = done.exit_code;
        tool.pictures = done.pictures.into_iter().map(picture).collect();
        tool.progress = None;
        tool.ended_at = Some(stamp.at.to_owned());
    });
}

fn picture((mime_type, base64): (&str, &str)) -> Picture {
    let digits = base64.trim_end_matches('=').len();
    Picture { mime_type: mime_type.to_owned(), bytes: digits * 3 / 4, base64: base64.into() }
}
