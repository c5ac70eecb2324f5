//! The durable state of a session: a fold over its log, the same for a live session and for one that is resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use hangar_protocol::data::{
    AgentMode, AssistantMessage, CanvasRecorded, CompactionComplete, Delivery, Mode, ModelItems,
    NotificationKind, PlanAndTodos, SessionLimits, SkillInvoked, UserMessage,
};
use hangar_protocol::{AgentId, Body, Event, EventKind, Totals};

use super::just_in_time::SOURCE as JUST_IN_TIME;
use super::pending::{OpenTurn, PendingAnswer};
use super::scheduled::ScheduledPrompts;
use crate::agents::registry::AgentRegistry;
use crate::conversation::Conversation;
use crate::hook::changed_arguments;
use crate::log::Seq;
use crate::prompt::context;
use crate::summary::Summary;

/// Bytes of conversation that the fold keeps, so that a log of any length can be resumed in bounded memory. No model
/// has a larger context; the actual limit is applied before each request.
const FOLD_LIMIT: usize = 32 << 20;

#[derive(Debug, Clone)]
pub struct ConversationState {
    pub conversation: Conversation,
    pub session_id: String,
    pub model: String,
    pub effort: Option<String>,
    pub mode: Mode,
    pub cwd: String,
    pub system: Option<Arc<str>>,
    /// The last mode that the model was told about.
    pub noticed_mode: Mode,
    pub totals: Totals,
    /// Start time of the session, as in its first event.
    pub started: String,
    pub end: Seq,
    pub last_event: Option<hangar_protocol::EventId>,
    pub limits: Option<SessionLimits>,
    /// Last text about the budget that the model was given.
    pub told_limits: Option<String>,
    /// Facts that the model was told and can still see.
    pub told_facts: Vec<String>,
    /// Tools of the requests so far.
    pub offered_tools: Vec<OfferedTool>,
    /// Tools that searches have found, in the order in which they were found.
    pub found_tools: Vec<String>,
    /// Calls that `preToolUse` is running for, by the invocation's id. Its answer may rewrite the call.
    pub hooked_calls: BTreeMap<String, String>,
    /// Plan and todos at the last compaction.
    pub plan_and_todos: PlanAndTodos,
    /// Number of the last checkpoint.
    pub checkpoints: u64,
    /// Just-in-time instructions that were given.
    pub reminded: BTreeSet<String>,
    /// Answers that open calls wait for, by call id.
    pub pending: BTreeMap<String, PendingAnswer>,
    /// The turn of the open calls.
    pub open_turn: OpenTurn,
    /// The agents that the session started.
    pub agents: AgentRegistry,
    /// Name of the agent whose role the session has.
    pub selected: Option<String>,
    /// Skills that were invoked, in order.
    pub skills: Vec<SkillInvoked>,
    /// Open instances of canvases.
    pub canvases: Vec<CanvasRecorded>,
    /// Prompts that the session sends itself later.
    pub scheduled: ScheduledPrompts,
    /// The vendor's items of the answer that comes next in the log.
    pub arriving: Option<ModelItems>,
    /// Number of answers with reasoning that the log does not have in the vendor's items: because it held a secret, or because an
    /// older Hangar wrote the log.
    pub unlogged_reasoning: usize,
}

/// A tool that requests have, in the order in which they first had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    pub name: String,
    /// Number of messages before it was offered; 0 if the conversation began with it.
    pub behind: usize,
}

impl Default for ConversationState {
    fn default() -> Self {
        Self {
            conversation: Conversation::default(),
            session_id: String::new(),
            model: String::new(),
            effort: None,
            mode: Mode::Interactive,
            cwd: String::new(),
            system: None,
            noticed_mode: Mode::Interactive,
            totals: Totals::default(),
            started: String::new(),
            end: Seq(0),
            last_event: None,
            limits: None,
            told_limits: None,
            told_facts: Vec::new(),
            offered_tools: Vec::new(),
            found_tools: Vec::new(),
            hooked_calls: BTreeMap::new(),
            plan_and_todos: PlanAndTodos::default(),
            checkpoints: 0,
            reminded: BTreeSet::new(),
            pending: BTreeMap::new(),
            open_turn: OpenTurn::default(),
            agents: AgentRegistry::default(),
            selected: None,
            skills: Vec::new(),
            canvases: Vec::new(),
            scheduled: ScheduledPrompts::default(),
            arriving: None,
            unlogged_reasoning: 0,
        }
    }
}

impl ConversationState {
    /// Whether the fold looks into events of this kind. Readers may pass over all others.
    pub fn wants(kind: EventKind) -> bool {
        Totals::wants(kind)
            || matches!(
                kind,
                EventKind::SessionStart
                    | EventKind::SessionResume
                    | EventKind::ModelChange
                    | EventKind::ModeChanged
                    | EventKind::ModeNoticeDelivered
                    | EventKind::Truncation
                    | EventKind::ContextCleared
                    | EventKind::CompactionComplete
                    | EventKind::PlanAndTodos
                    | EventKind::ImagesWithheld
                    | EventKind::ReasoningWithheld
                    | EventKind::ModelItems
                    | EventKind::SkillInvoked
                    | EventKind::PermissionRequested
                    | EventKind::PermissionCompleted
                    | EventKind::ExternalToolRequested
                    | EventKind::UserMessage
                    | EventKind::SystemMessage
                    | EventKind::SystemNotification
                    | EventKind::AssistantMessage
                    | EventKind::AnswerCut
                    | EventKind::ToolComplete
                    | EventKind::ToolSearchActivated
                    | EventKind::ToolsOffered
                    | EventKind::HookStart
                    | EventKind::HookEnd
                    | EventKind::SkillContextDelivered
                    | EventKind::ContextChanged
                    | EventKind::SubagentStarted
                    | EventKind::SubagentSelected
                    | EventKind::SubagentDeselected
                    | EventKind::SubagentCompleted
                    | EventKind::SubagentFailed
                    | EventKind::SessionLimitsChanged
                    | EventKind::CanvasRecorded
                    | EventKind::CanvasRemoved
                    | EventKind::ScheduleCreated
                    | EventKind::ScheduleCancelled
                    | EventKind::Abort
            )
    }

    /// Applies the next event of the log.
    pub fn apply_event(&mut self, event: &Event) {
        self.skip_event(event.id().clone());
        match event.agent_id() {
            None => {
                self.apply(event.body());
                self.scheduled.date(event);
            }
            Some(agent) => self.apply_agent(agent, event),
        }
    }

    /// Applies an event of one of the session's agents. Its conversation is not the session's.
    pub(crate) fn apply_agent(&mut self, agent: &AgentId, event: &Event) {
        self.totals.apply_body(Some(agent), event.body());
        self.agents.apply_agent(&agent.0, event);
    }

    /// Counts an event of the log that the fold does not look into.
    pub fn skip_event(&mut self, id: hangar_protocol::EventId) {
        self.end.0 += 1;
        self.last_event = Some(id);
    }

    /// Applies the content of the session's next event. Each part of the state looks at the kinds that it is made of.
    pub(crate) fn apply(&mut self, body: &Body) {
        self.totals.apply_body(None, body);
        self.agents.apply_main(body);
        self.apply_setting(body);
        self.scheduled.apply(body);
        self.apply_message(body);
        self.apply_call(body);
        self.apply_cut(body);
        if self.conversation.bytes() > FOLD_LIMIT {
            self.conversation.drop_oldest(self.conversation.excess(FOLD_LIMIT / 2));
            self.begin_with_offered();
        }
    }

    /// Moves all offered tools to the beginning of the conversation, because that has changed anyway. Reasoning that followed
    /// the old beginning is told as dropped by then.
    fn begin_with_offered(&mut self) {
        self.unlogged_reasoning = 0;
        for tool in &mut self.offered_tools {
            tool.behind = 0;
        }
    }

    /// Adds tools that requests have from now on.
    fn offer(&mut self, names: &[String]) {
        let behind = if self.offered_tools.is_empty() { 0 } else { self.conversation.len() };
        for name in names {
            if self.offered_tools.iter().all(|offered| offered.name != *name) {
                self.offered_tools.push(OfferedTool { name: name.clone(), behind });
            }
        }
    }

    /// Applies changes of settings: model, mode, directory, role, budget.
    fn apply_setting(&mut self, body: &Body) {
        match body {
            Body::SessionStart(start) => {
                self.session_id.clone_from(&start.session_id);
                self.started.clone_from(&start.start_time);
                if let Some(model) = &start.selected_model {
                    self.model.clone_from(model);
                }
                self.effort.clone_from(&start.reasoning_effort);
                if let Some(context) = &start.context {
                    self.cwd.clone_from(&context.cwd);
                }
            }
            Body::SessionResume(resume) => {
                if let Some(model) = &resume.selected_model {
                    self.model.clone_from(model);
                }
                // Each process tells the model its mode again.
                if resume.session_was_active != Some(true) {
                    self.noticed_mode = Mode::Interactive;
                }
            }
            Body::ModelChange(change) => {
                self.model.clone_from(&change.new_model);
                self.effort.clone_from(&change.reasoning_effort);
            }
            Body::ModeChanged(change) => {
                self.mode = change.new_mode;
                self.open_turn.mode = None;
            }
            Body::ModeNoticeDelivered(notice) => {
                self.noticed_mode = notice.mode;
                // An approved plan ends the mode of its message.
                self.open_turn.mode = self.open_turn.mode.filter(|mode| *mode == notice.mode);
            }
            Body::ContextChanged(context) => self.cwd.clone_from(&context.directory.cwd),
            Body::SessionLimitsChanged(changed) => self.limits = changed.session_limits,
            Body::SubagentSelected(selected) => self.selected = Some(selected.agent_name.clone()),
            Body::SubagentDeselected(_) => self.selected = None,
            Body::CanvasRecorded(recorded) => {
                self.canvases.retain(|known| known.instance_id != recorded.instance_id);
                self.canvases.push(recorded.clone());
            }
            Body::CanvasRemoved(removed) => {
                self.canvases.retain(|known| known.instance_id != removed.instance_id);
            }
            Body::PlanAndTodos(plan_and_todos) => self.plan_and_todos.clone_from(plan_and_todos),
            _ => {}
        }
    }

    /// Applies messages to and from the model.
    fn apply_message(&mut self, body: &Body) {
        match body {
            Body::SystemMessage(message) => {
                if self.system.as_deref().is_some_and(|system| system != message.content) {
                    self.conversation.drop_reasoning(0);
                    self.begin_with_offered();
                }
                self.system = Some(message.content.as_str().into());
            }
            Body::UserMessage(message) => self.apply_user_message(message),
            Body::ModelItems(items) => self.arriving = Some(items.clone()),
            Body::AssistantMessage(message) => self.apply_answer(message),
            // The text alone: reasoning without its signature and half a call are refused.
            Body::AnswerCut(cut) if !cut.content.trim().is_empty() => {
                self.arriving = None;
                let said = AssistantMessage { content: cut.content.clone(), ..AssistantMessage::default() };
                self.conversation.assistant(&said, None);
            }
            Body::SystemNotification(notification) => match notification.kind {
                NotificationKind::InstructionDiscovered { .. } => {
                    self.conversation.instruction(&notification.content);
                }
                _ => self.conversation.notice(&notification.content),
            },
            Body::SkillInvoked(skill) => {
                self.skills.retain(|known| known.path != skill.path);
                self.skills.push(skill.clone());
                self.conversation.skill(skill);
            }
            Body::SkillContextDelivered(skill) => self.conversation.notice(&skill.content),
            _ => {}
        }
    }

    fn apply_user_message(&mut self, message: &UserMessage) {
        if message.source.as_deref() == Some(JUST_IN_TIME) {
            self.reminded.insert(message.content.clone());
        }
        if message.source.as_deref() == Some(super::limits::SOURCE) {
            self.told_limits.clone_from(&message.transformed_content);
        }
        if let Some(text) = &message.transformed_content {
            context::note(text, &mut self.told_facts);
        }
        self.open_turn.task_id.clone_from(&message.parent_agent_task_id);
        let mode = message.agent_mode.and_then(AgentMode::of_session);
        match message.delivery {
            Some(Delivery::Idle | Delivery::Queued) => self.open_turn.mode = mode,
            Some(Delivery::Steering) => self.open_turn.mode = mode.or(self.open_turn.mode),
            None => {}
        }
        self.conversation.user(message);
    }

    fn apply_answer(&mut self, message: &AssistantMessage) {
        self.pending.clear();
        self.open_turn.interaction_id.clone_from(&message.interaction_id);
        self.open_turn.message_id.clone_from(&message.originating_message_id);
        let turn = message.turn_id.as_deref().and_then(|turn| turn.parse().ok());
        self.open_turn.turn = turn.unwrap_or_default();
        let items = self.arriving.take().filter(|items| items.message_id == message.message_id);
        let is_signed = message.reasoning_opaque.is_some() || message.encrypted_content.is_some();
        // Items that held a secret are logged without their content.
        let held_secret = items.as_ref().is_some_and(|items| items.items.get() == "null");
        if held_secret || (items.is_none() && is_signed) {
            self.unlogged_reasoning += 1;
        }
        self.conversation.assistant(message, items.filter(|_| !held_secret));
    }

    /// Applies requests and results of tool calls.
    fn apply_call(&mut self, body: &Body) {
        match body {
            Body::ToolComplete(complete) => {
                self.pending.remove(&complete.tool_call_id);
                self.conversation.tool(complete);
            }
            Body::ToolsOffered(offered) => self.offer(&offered.tool_names),
            Body::ToolSearchActivated(found) => {
                for name in &found.tool_names {
                    if !self.found_tools.contains(name) {
                        self.found_tools.push(name.clone());
                    }
                }
            }
            Body::PermissionRequested(asked) => {
                let request = Box::new(asked.permission_request.clone());
                if let Some(call) = request.tool_call_id().map(str::to_owned) {
                    let request_id = asked.request_id.clone();
                    self.pending.insert(call, PendingAnswer::Permission { request_id, request });
                }
            }
            Body::PermissionCompleted(answered) => {
                self.pending.retain(|_, pending| {
                    !matches!(pending, PendingAnswer::Permission { request_id, .. } if *request_id == answered.request_id)
                });
            }
            Body::ExternalToolRequested(asked) => {
                let pending = PendingAnswer::Client { request_id: asked.request_id.clone() };
                self.pending.insert(asked.tool_call_id.clone(), pending);
            }
            Body::HookStart(start) if start.hook_type == "preToolUse" => {
                let call = start.input.as_ref().and_then(|input| input["toolCallId"].as_str());
                self.hooked_calls
                    .extend(call.map(|call| (start.hook_invocation_id.clone(), call.to_owned())));
            }
            Body::HookEnd(end) => {
                if let Some(call) = self.hooked_calls.remove(&end.hook_invocation_id)
                    && let Some(output) = &end.output
                    && let Some(arguments) = changed_arguments(&output["modifiedArgs"])
                {
                    self.conversation.rewrite_call(&call, &arguments);
                }
            }
            _ => {}
        }
    }

    /// Applies cuts of the conversation.
    fn apply_cut(&mut self, body: &Body) {
        match body {
            Body::Abort(_) => {
                self.pending.clear();
                self.conversation.close_open_calls();
            }
            Body::ImagesWithheld(_) => self.conversation.withhold_images(),
            Body::ReasoningWithheld(_) => self.conversation.withhold_reasoning(),
            Body::Truncation(truncation) => {
                self.told_facts.clear();
                self.conversation.drop_oldest(truncation.messages_removed_during_truncation as usize);
                self.begin_with_offered();
            }
            Body::ContextCleared(_) => {
                self.conversation = Conversation::default();
                self.offered_tools.clear();
                self.unlogged_reasoning = 0;
                // The mode, limits and skills that the model was told are gone with the conversation.
                self.noticed_mode = Mode::Interactive;
                self.told_limits = None;
                self.told_facts.clear();
                self.skills.clear();
                self.pending.clear();
            }
            Body::CompactionComplete(complete) if complete.success => self.apply_summary(complete),
            _ => {}
        }
    }

    fn apply_summary(&mut self, complete: &CompactionComplete) {
        if let (Some(count), Some(text)) = (complete.messages_removed, &complete.summary_content) {
            let checkpoint = complete.checkpoint_path.as_deref().map(PathBuf::from);
            let token_limit = complete.token_limit;
            let summary = Summary { text: text.clone(), checkpoint, token_limit };
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            self.conversation.compact(count, summary, &self.plan_and_todos);
            self.begin_with_offered();
            self.told_facts.clear();
        }
        self.checkpoints = complete.checkpoint_number.unwrap_or(self.checkpoints);
    }
}

/// Events that still count: without those that were rewound, and without the rewinds.
pub fn project(events: Vec<Event>) -> Vec<Event> {
    let mut kept: Vec<Event> = Vec::with_capacity(events.len());
    for event in events {
        match event.body() {
            Body::HistoryTruncated(truncated) => {
                let from = kept.iter().position(|known| known.id().0 == truncated.up_to_event_id);
                kept.truncate(from.unwrap_or(kept.len()));
            }
            _ => kept.push(event),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One event of each kind.
    const SAMPLES: &str = include_str!("../../../protocol/tests/samples.txt");

    /// A session in which every kind of event has something to change.
    const BEFORE: &str = r#"
session.start {"sessionId":"s","version":1,"producer":"p","copilotVersion":"1","startTime":"t","selectedModel":"m","context":{"cwd":"/w"}}
subagent.selected {"agentName":"writer","agentDisplayName":"Writer","tools":null}
user.message {"content":"Hi."}
hangar.model_items {"messageId":"m0","origin":{"provider":"http://host/","wire":"/v1/messages","model":"m","account":"a"},"items":[{"type":"text","text":"Hello."}]}
assistant.message {"messageId":"m0","content":"Hello."}
session.usage_record {"usage":{"model":"m","inputTokens":1,"outputTokens":1}}
user.message {"content":"Look.","attachments":[{"type":"blob","data":"iVBORw0KGgo=","mimeType":"image/png"}]}
@subagent.started {"toolCallId":"ta","agentName":"task","agentDisplayName":"Task","agentDescription":"Does it."}
assistant.message {"messageId":"m1","content":"","toolRequests":[{"toolCallId":"t","name":"view","arguments":{"path":"/w/f"}}]}
permission.requested {"requestId":"p","permissionRequest":{"kind":"read","toolCallId":"t","intention":"Look","path":"/w/f"}}
hook.start {"hookInvocationId":"h","hookType":"preToolUse","input":{"toolCallId":"t"}}
session.canvas.recorded {"instanceId":"i","extensionId":"connection:1","canvasId":"c","title":"Before","input":1}
session.schedule_created {"id":1,"intervalMs":30000,"prompt":"Look."}
"#;

    fn event(line: &str) -> Event {
        let (agent, line) = match line.strip_prefix('@') {
            Some(line) => (r#""agentId":"a","#, line),
            None => ("", line),
        };
        let (kind, data) = line.split_once(' ').unwrap();
        let text =
            format!(r#"{{"type":"{kind}","data":{data},{agent}"id":"i","timestamp":"t","parentId":null}}"#);
        Event::parse(&text).unwrap()
    }

    /// Whether an event changes anything but the number of events.
    fn changes(line: &str) -> bool {
        let mut before = ConversationState::default();
        BEFORE.trim().lines().for_each(|line| before.apply_event(&event(line)));
        let mut after = before.clone();
        after.apply_event(&event(line));
        before.skip_event(after.last_event.clone().unwrap());
        format!("{before:?}") != format!("{after:?}")
    }

    #[test]
    fn the_kinds_that_are_wanted_are_those_that_change_the_state() {
        for line in SAMPLES.lines() {
            let kind = EventKind::of_type(line.split_once(' ').unwrap().0).unwrap();
            let changes = changes(line) || changes(&format!("@{line}"));
            assert_eq!(ConversationState::wants(kind), changes, "{kind}");
        }
    }
}
