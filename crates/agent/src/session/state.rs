//! The durable state of a session: a fold over its log, the same for a live session and for one that is resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use hangar_protocol::data::{
    AgentMode, AssistantUsage, CodeChanges, Commitments, Delivery, Mode, ModelMetric, NotificationKind,
    SessionLimits, SkillInvoked,
};
use hangar_protocol::{Body, Event};

use super::just_in_time::SOURCE as JUST_IN_TIME;
use super::pending::{OpenTurn, Pending};
use crate::agents::roll::Roll;
use crate::conversation::Conversation;
use crate::digest::Summary;
use crate::hook::changed_arguments;
use crate::log::Seq;

/// Beyond this many bytes of context a fold forgets the oldest messages, so that a log of any length can be resumed in
/// bounded memory. No model takes as much; what a model does take is decided before each request.
const FOLD_LIMIT: usize = 32 << 20;

#[derive(Debug, Clone)]
pub struct State {
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
    /// Start of the session, as its first event says.
    pub started: String,
    pub end: Seq,
    pub last_event: Option<hangar_protocol::EventId>,
    pub limits: Option<SessionLimits>,
    /// What the model was last told about the limits.
    pub told_limits: Option<String>,
    /// The calls that hooks are asked about, by the question's id: the answer may rewrite the call.
    pub hooked_calls: BTreeMap<String, String>,
    /// The plan and the todos, as they were at the last summary.
    pub commitments: Commitments,
    /// Number of the last checkpoint.
    pub checkpoints: u64,
    /// Just-in-time instructions that the model was told.
    pub reminded: BTreeSet<String>,
    /// What open calls wait for, by the call's id.
    pub pending: BTreeMap<String, Pending>,
    /// The turn of the open calls.
    pub open_turn: OpenTurn,
    /// The agents that the session started.
    pub roll: Roll,
    /// The agent whose role the session plays.
    pub selected: Option<String>,
    /// Skills that were invoked, in order.
    pub skills: Vec<SkillInvoked>,
}

/// What the session has cost and changed so far.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    pub api_ms: u64,
    /// Calls of the model, and those among them that took up what somebody said.
    pub requests: u64,
    pub user_requests: u64,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub models: BTreeMap<String, ModelMetric>,
    pub changes: CodeChanges,
    /// Input and output of the last call.
    pub last: (Option<u64>, Option<u64>),
}

impl Default for State {
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
            hooked_calls: BTreeMap::new(),
            commitments: Commitments::default(),
            checkpoints: 0,
            reminded: BTreeSet::new(),
            pending: BTreeMap::new(),
            open_turn: OpenTurn::default(),
            roll: Roll::default(),
            selected: None,
            skills: Vec::new(),
        }
    }
}

impl State {
    /// Whether the fold looks into events of this type. Readers may skip the data of all others.
    pub fn wants(kind: &str) -> bool {
        matches!(
            kind,
            "session.start"
                | "session.resume"
                | "session.model_change"
                | "session.mode_changed"
                | "session.mode_notice_delivered"
                | "session.truncation"
                | "session.context_cleared"
                | "session.compaction_complete"
                | "session.usage_record"
                | "hangar.commitments"
                | "hangar.images_withheld"
                | "skill.invoked"
                | "permission.requested"
                | "permission.completed"
                | "external_tool.requested"
                | "user.message"
                | "system.message"
                | "system.notification"
                | "assistant.message"
                | "tool.execution_complete"
                | "hook.start"
                | "hook.end"
                | "skill.context_delivered"
                | "session.context_changed"
                | "subagent.started"
                | "subagent.selected"
                | "subagent.deselected"
                | "subagent.completed"
                | "subagent.failed"
                | "session.session_limits_changed"
                | "abort"
        )
    }

    /// Takes the next event of the log.
    pub fn apply_event(&mut self, event: &Event) {
        self.skip_event(event.id().clone());
        match event.agent_id() {
            None => self.apply(event.body()),
            Some(agent) => self.apply_agent(&agent.0, event),
        }
    }

    /// Takes an event of one of the session's agents. Its conversation is not the session's.
    pub(crate) fn apply_agent(&mut self, agent: &str, event: &Event) {
        if let Body::UsageRecord(record) = event.body() {
            self.totals.add(&record.usage);
        }
        self.roll.apply_agent(agent, event);
    }

    /// Counts an event of the log that the fold does not look into.
    pub fn skip_event(&mut self, id: hangar_protocol::EventId) {
        self.end.0 += 1;
        self.last_event = Some(id);
    }

    pub(crate) fn apply(&mut self, body: &Body) {
        self.roll.apply_main(body);
        match body {
            Body::SubagentSelected(selected) => self.selected = Some(selected.agent_name.clone()),
            Body::SubagentDeselected(_) => self.selected = None,
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
                // A plan that was approved ends the mode of its message.
                self.open_turn.mode = self.open_turn.mode.filter(|mode| *mode == notice.mode);
            }
            Body::SystemMessage(message) => self.system = Some(message.content.as_str().into()),
            Body::UserMessage(message) => {
                if message.source.as_deref() == Some(JUST_IN_TIME) {
                    self.reminded.insert(message.content.clone());
                }
                if message.source.as_deref() == Some(super::limits::SOURCE) {
                    self.told_limits.clone_from(&message.transformed_content);
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
            Body::SessionLimitsChanged(changed) => self.limits = changed.session_limits,
            Body::SystemNotification(notification) => match notification.kind {
                NotificationKind::InstructionDiscovered { .. } => {
                    self.conversation.instruction(&notification.content);
                }
                _ => self.conversation.notice(&notification.content),
            },
            Body::AssistantMessage(message) => {
                self.pending.clear();
                self.open_turn.interaction_id.clone_from(&message.interaction_id);
                self.open_turn.message_id.clone_from(&message.originating_message_id);
                let turn = message.turn_id.as_deref().and_then(|turn| turn.parse().ok());
                self.open_turn.turn = turn.unwrap_or_default();
                self.conversation.assistant(message);
            }
            Body::ToolComplete(complete) => {
                self.pending.remove(&complete.tool_call_id);
                self.conversation.tool(complete);
            }
            Body::PermissionRequested(asked) => {
                let request = Box::new(asked.permission_request.clone());
                if let Some(call) = request.tool_call_id().map(str::to_owned) {
                    let request_id = asked.request_id.clone();
                    self.pending.insert(call, Pending::Permission { request_id, request });
                }
            }
            Body::PermissionCompleted(answered) => {
                self.pending.retain(|_, pending| {
                    !matches!(pending, Pending::Permission { request_id, .. } if *request_id == answered.request_id)
                });
            }
            Body::ExternalToolRequested(asked) => {
                let pending = Pending::Client { request_id: asked.request_id.clone() };
                self.pending.insert(asked.tool_call_id.clone(), pending);
            }
            Body::Commitments(commitments) => self.commitments.clone_from(commitments),
            Body::ImagesWithheld(_) => self.conversation.withhold_images(),
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
            Body::SkillInvoked(skill) => {
                self.skills.retain(|known| known.path != skill.path);
                self.skills.push(skill.clone());
                self.conversation.skill(skill);
            }
            Body::SkillContextDelivered(skill) => self.conversation.notice(&skill.content),
            Body::ContextChanged(context) => self.cwd.clone_from(&context.directory.cwd),
            Body::Abort(_) => {
                self.pending.clear();
                self.conversation.close_open_calls();
            }
            Body::Truncation(truncation) => {
                self.conversation.drop_oldest(truncation.messages_removed_during_truncation as usize);
            }
            Body::ContextCleared(_) => {
                self.conversation = Conversation::default();
                // What the model was told of its mode, its limits and its skills is gone with it.
                self.noticed_mode = Mode::Interactive;
                self.told_limits = None;
                self.skills.clear();
                self.pending.clear();
            }
            Body::CompactionComplete(complete) if complete.success => {
                if let (Some(count), Some(text)) = (complete.messages_removed, &complete.summary_content) {
                    let path = complete.checkpoint_path.as_deref().map(Path::new);
                    let checkpoint =
                        path.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
                    let token_limit = complete.token_limit;
                    let summary = Summary { text: text.clone(), checkpoint, token_limit };
                    let count = usize::try_from(count).unwrap_or(usize::MAX);
                    self.conversation.compact(count, summary, &self.commitments);
                }
                self.checkpoints = complete.checkpoint_number.unwrap_or(self.checkpoints);
            }
            Body::UsageRecord(record) => self.totals.add(&record.usage),
            _ => {}
        }
        if self.conversation.bytes() > FOLD_LIMIT {
            self.conversation.drop_oldest(self.conversation.excess(FOLD_LIMIT / 2));
        }
    }
}

/// The events that still count: what was taken back is left out, and so is the taking back.
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

impl Totals {
    fn add(&mut self, usage: &AssistantUsage) {
        self.requests += 1;
        self.user_requests += u64::from(usage.initiator.as_deref() == Some("user"));
        self.last = (usage.input_tokens, usage.output_tokens);
        self.api_ms += usage.duration.unwrap_or(0);
        add(&mut self.input_tokens, usage.input_tokens);
        add(&mut self.output_tokens, usage.output_tokens);
        let metric = self.models.entry(usage.model.clone()).or_default();
        *metric.requests.count.get_or_insert(0) += 1;
        metric.usage.input_tokens += usage.input_tokens.unwrap_or(0);
        metric.usage.output_tokens += usage.output_tokens.unwrap_or(0);
        metric.usage.cache_read_tokens += usage.cache_read_tokens.unwrap_or(0);
        metric.usage.cache_write_tokens += usage.cache_write_tokens.unwrap_or(0);
        add(&mut metric.usage.reasoning_tokens, usage.reasoning_tokens);
    }

    pub(crate) fn add_changes(&mut self, changes: &CodeChanges) {
        self.changes.add(changes);
    }
}

/// Unknown plus unknown is unknown; a known part makes a known (lower) bound.
fn add(total: &mut Option<u64>, part: Option<u64>) {
    if let Some(part) = part {
        *total = Some(total.unwrap_or(0) + part);
    }
}
