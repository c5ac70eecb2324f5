//! The outer loop: one run per prompt, the queue, steering, autopilot and idling.

use hangar_protocol::Body;
use hangar_protocol::data::{self, AgentMode, Attachment, AutopilotStop, Delivery, Mode};
use jiff::Timestamp;

use super::beginning::Beginning;
use super::call::Call;
use super::ending::Endings;
use super::live::ToolsChanged;
use super::prompt_hooks::Preparing;
use super::questions::Switching;
use super::repetition::Repetitions;
use super::tools::RunningCall;
use super::truncation::Reduction;
use super::{CallOptions, Context, Origin, Prompt, QUEUE_LIMIT, Session, SessionEffect, Step, Timing, iso};
use crate::model::ModelError;
use crate::prompt::{attachments, notices};

/// A run: the work on one prompt.
pub(super) struct Run {
    pub(super) interaction_id: String,
    /// Id of the prompt, which every answer names.
    pub(super) message_id: String,
    /// Id of the run, by which the work of agents is grouped into tasks.
    pub(super) task_id: String,
    pub(super) turn: u32,
    pub(super) phase: Phase,
    /// How the answers so far ended.
    pub(super) endings: Endings,
    /// Whether the conversation has filled the context window, so that the next call waits for a summary.
    pub(super) context_full: bool,
    /// Calls and results so far.
    pub(super) repetitions: Repetitions,
    /// Whether `task_complete` was called.
    pub(super) completed: bool,
    /// Whether a call was refused in a way that ends the run.
    pub(super) rejected: bool,
    /// Whether a call ends the run without another answer.
    pub(super) ended: bool,
    pub(super) call_options: CallOptions,
    /// Mode of its prompt, if that says one.
    pub(super) mode: Option<Mode>,
    /// How often hooks have continued the run when it was about to end.
    pub(super) blocked_stops: u32,
    /// How far the requests of this turn were reduced.
    pub(super) reduction: Reduction,
    /// Last answer of the model.
    pub(super) answer: String,
    /// The part that arrived of an answer whose call failed and may be made again.
    pub(super) unfinished: Option<data::AnswerCut>,
    /// Events that follow once all calls of the turn have their results.
    pub(super) afterwards: Vec<Body>,
    /// System prompt and tools of its last request.
    pub(super) beginning: Option<Beginning>,
    /// Number of tools that it was told to wait for.
    pub(super) held_tools: usize,
}

impl Run {
    pub(super) fn new(interaction_id: String, message_id: String, task_id: String) -> Self {
        Self {
            interaction_id,
            message_id,
            task_id,
            turn: 0,
            phase: Phase::Between,
            endings: Endings::default(),
            context_full: false,
            repetitions: Repetitions::default(),
            completed: false,
            rejected: false,
            ended: false,
            call_options: CallOptions::default(),
            mode: None,
            blocked_stops: 0,
            reduction: Reduction::default(),
            answer: String::new(),
            unfinished: None,
            afterwards: Vec::new(),
            beginning: None,
            held_tools: 0,
        }
    }
}

pub(super) enum Phase {
    /// Between two turns.
    Between,
    Calling(Call),
    /// Waiting to retry a failed call.
    Waiting(Call),
    Tools {
        calls: Vec<RunningCall>,
        since: Timestamp,
    },
    /// Looking for instructions about files that the last tools touched.
    Discovering,
    /// The context is full; the next call waits for a summary. `refused` is the provider's error, if it refused a
    /// request.
    AwaitingSummary {
        refused: Option<Box<ModelError>>,
    },
    /// Asking the host whether the working tree has changed.
    AskingChanges,
    /// Asking whether another model may be used, because this one is at its rate limit.
    AskingToSwitch(Box<Switching>),
    /// Running hooks before the prompt is part of the conversation.
    Preparing(Box<Preparing>),
    /// Running hooks that may continue the run.
    Stopping {
        hook: String,
        /// How the run ends unless they do.
        ending: Ending,
    },
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Answered,
    TaskComplete,
    Failed,
    /// A call was refused in a way that ends the run.
    Rejected,
    Aborted,
}

impl Session {
    pub(super) fn send(&mut self, prompt: Prompt, step: &mut Step, context: &mut Context<'_>) {
        if self.run.is_none() && !self.queue_paused {
            self.start_run(prompt, Delivery::Idle, step, context);
            return;
        }
        if self.queue.len() + self.steering.len() >= QUEUE_LIMIT {
            let message = format!("{QUEUE_LIMIT} messages are waiting already; this one was not taken.");
            self.emit(step, data::SessionWarning::new("queue_full", message));
            return;
        }
        match prompt.timing {
            Timing::Queue => self.queue.push_back(prompt),
            Timing::Next => self.queue.push_front(prompt),
            // There is no run that it could join.
            Timing::Steer if self.run.is_none() => self.queue.push_back(prompt),
            Timing::Steer => self.steer(prompt, step),
        }
        self.emit(step, data::PendingMessagesModified {});
    }

    pub(super) fn start_run(
        &mut self,
        prompt: Prompt,
        delivery: Delivery,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let model = self.state.model.clone();
        if self.agent().is_none() {
            self.emit(step, data::McpServersLoaded { servers: self.mcp.servers.clone() });
            self.emit(step, data::ToolsUpdated { model });
        }
        self.idle_owed = false;
        let interaction_id = context.entropy.uuid();
        let message_id = prompt.message_id.clone().unwrap_or_else(|| context.entropy.uuid());
        let mut run = Run::new(interaction_id, message_id, context.entropy.uuid());
        run.call_options.clone_from(&prompt.call_options);
        run.mode = prompt.agent_mode.and_then(AgentMode::of_session);
        if matches!(prompt.origin, Origin::User | Origin::Source(_)) {
            self.nudges = 0;
        }
        self.run = Some(run);
        for owed in std::mem::take(&mut self.owed) {
            self.deliver(owed, None, Delivery::Idle, step, context);
        }
        if self.asks_about_prompts() {
            self.prepare(prompt, delivery, step, context);
            return;
        }
        self.deliver(prompt, None, delivery, step, context);
        self.begin_turn(step, context);
    }

    /// Adds a prompt to the conversation, with the caller's text for the model or the usual one.
    pub(super) fn deliver(
        &mut self,
        prompt: Prompt,
        wording: Option<String>,
        delivery: Delivery,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        self.keep_system_prompt(step);
        let Some(run) = &mut self.run else { return };
        // A prompt that joins a run may change its mode, too.
        run.mode = prompt.agent_mode.and_then(AgentMode::of_session).or(run.mode);
        let mode = self.mode();
        let notice = (mode != self.state.noticed_mode).then_some(mode);
        let agent_mode = match prompt.agent_mode {
            Some(AgentMode::Shell) => Some(AgentMode::Shell),
            said => said.map(|_| mode.into()).or((mode != Mode::Interactive).then(|| mode.into())),
        };
        let Some(run) = &self.run else { return };
        let (interaction_id, task_id, turn) = (run.interaction_id.clone(), run.task_id.clone(), run.turn);
        let run_message = run.message_id.clone();
        for body in prompt.preface {
            match body {
                Body::UserMessage(message) => {
                    let message = data::UserMessage {
                        delivery: Some(delivery),
                        agent_mode,
                        interaction_id: Some(interaction_id.clone()),
                        turn_id: Some(turn.to_string()),
                        parent_agent_task_id: Some(task_id.clone()),
                        ..message
                    };
                    self.emit(step, message);
                }
                body => {
                    if let Body::SkillInvoked(skill) = &body {
                        self.trust_skill(skill);
                    }
                    self.emit(step, body);
                }
            }
        }
        // A message that joins a run has an id of its own; the run keeps the id of the one that began it.
        let message_id = match (delivery, prompt.message_id) {
            (_, Some(given)) => given,
            (Delivery::Steering, None) => context.entropy.uuid(),
            (Delivery::Idle | Delivery::Queued, None) => run_message,
        };
        let (source, nudge) = match prompt.origin {
            Origin::News { kind, read } => {
                self.emit(step, data::SystemNotification { content: prompt.text, kind });
                self.log_system_prompt(step);
                if let Some(read) = read {
                    self.read_for_model(*read, step, context);
                }
                return;
            }
            // The switch has been made by now; it never starts a run.
            Origin::Nobody | Origin::Switch(_) => {
                self.log_system_prompt(step);
                return;
            }
            Origin::User => (None, false),
            Origin::Source(source) => (Some(source), false),
            Origin::Hook(source) => (Some(source.to_owned()), false),
            Origin::AutopilotNudge => (Some("autopilot".to_owned()), true),
        };
        let transformed =
            wording.unwrap_or_else(|| self.wording(&prompt.text, &prompt.attachments, context.now));
        self.shown.changes.clear();
        self.mcp.instructions.told();
        let headers = prompt.call_options.headers.iter();
        let traceparent =
            headers.rev().find(|(name, _)| name == "traceparent").map(|(_, value)| value.clone());
        let message = data::UserMessage {
            content: if nudge { String::new() } else { prompt.shown.unwrap_or(prompt.text) },
            transformed_content: Some(transformed),
            message_id: Some(message_id),
            attachments: prompt.attachments,
            source,
            delivery: Some(delivery),
            agent_mode,
            is_autopilot_continuation: nudge.then_some(true),
            interaction_id: Some(interaction_id),
            turn_id: Some(turn.to_string()),
            parent_agent_task_id: Some(task_id),
            traceparent,
        };
        self.emit(step, message);
        self.tell_limits(step);
        self.log_system_prompt(step);
        if let Some(mode) = notice {
            self.emit(step, data::ModeNoticeDelivered { mode });
        }
    }

    /// Text of a prompt for the model.
    pub(super) fn wording(&self, text: &str, attachments: &[Attachment], now: Timestamp) -> String {
        let mode = self.mode();
        let notice = (mode != self.state.noticed_mode).then_some(mode);
        let mut wording = decorate(text, attachments, notice, &self.shown.changes, now);
        for news in [self.mcp.instructions.news(), self.news_of_facts()].into_iter().flatten() {
            wording.push_str("\n\n");
            wording.push_str(&news);
        }
        wording
    }

    /// Starts the next turn of the run: delivers waiting messages, then calls the model.
    pub(super) fn begin_turn(&mut self, step: &mut Step, context: &mut Context<'_>) {
        let steering = std::mem::take(&mut self.steering);
        if !steering.is_empty() {
            self.emit(step, data::PendingMessagesModified {});
        }
        for prompt in steering {
            self.deliver(prompt, None, Delivery::Steering, step, context);
        }
        if self.remind(step, context) {
            return;
        }
        self.truncate(step);
        let Some(run) = &self.run else { return };
        let start = data::TurnStart {
            turn_id: run.turn.to_string(),
            interaction_id: Some(run.interaction_id.clone()),
        };
        self.emit(step, start);
        if self.make_room(step, context) || self.check_context_size(step, context) {
            if let Some(run) = &mut self.run {
                run.phase = Phase::AwaitingSummary { refused: None };
            }
            return;
        }
        self.call_model(0, step, context);
    }

    /// Ends the turn.
    pub(super) fn end_turn(&mut self, step: &mut Step) {
        let Some(run) = &self.run else { return };
        let end = data::TurnEnd { turn_id: run.turn.to_string() };
        self.emit(step, end);
        if let Some(run) = &mut self.run {
            run.turn += 1;
            run.phase = Phase::Between;
            run.reduction = Reduction::default();
            run.endings.turn_ended();
        }
    }

    /// Ends the run and decides what comes next.
    pub(super) fn end_run(&mut self, ending: Ending, step: &mut Step, context: &mut Context<'_>) {
        let answer = self.run.take().map(|run| run.answer).unwrap_or_default();
        self.last_run.aborted = ending == Ending::Aborted;
        self.apply_summary_behind_run(step);
        if self.agent().is_some() {
            return self.end_subagent_run(ending, answer, step, context);
        }
        let autopilot = self.state.mode == Mode::Autopilot;
        let stopped = match ending {
            Ending::TaskComplete => Some(AutopilotStop::TaskComplete),
            Ending::Failed => Some(AutopilotStop::Error),
            Ending::Aborted => Some(AutopilotStop::Aborted),
            Ending::Answered | Ending::Rejected => None,
        };
        if let Some(reason) = stopped.filter(|_| autopilot) {
            self.emit(step, data::AutopilotStopped { reason });
        }
        if ending == Ending::Aborted && !(self.queue.is_empty() && self.steering.is_empty()) {
            self.drop_prompts();
            self.emit(step, data::PendingMessagesModified {});
        }
        // Steering that came too late for its run is a prompt like any other, but it was not meant to wait.
        let late = !self.steering.is_empty();
        for prompt in std::mem::take(&mut self.steering).into_iter().rev() {
            self.queue.push_front(prompt);
        }
        if let Some(prompt) = if late { self.queue.pop_front() } else { self.next_queued(step) } {
            self.emit(step, data::PendingMessagesModified {});
            self.start_run(prompt, Delivery::Queued, step, context);
            return;
        }
        let aborted = (ending == Ending::Aborted).then_some(true);
        self.emit(step, data::AssistantIdle { aborted });
        if autopilot && ending == Ending::Answered {
            if self.nudges < self.config.autopilot_cap {
                self.nudges += 1;
                let nudge = Prompt { origin: Origin::AutopilotNudge, ..Prompt::user(notices::CONTINUATION) };
                self.start_run(nudge, Delivery::Idle, step, context);
                return;
            }
            self.emit(step, data::AutopilotStopped { reason: AutopilotStop::CapReached });
        }
        if self.state.agents.running() > 0 && ending != Ending::Aborted {
            // Its agents will wake it; until then, clients that wait for it do not see it idle.
            self.idle_owed = true;
        } else {
            self.emit(step, data::SessionIdle { aborted, mode: self.idle_mode() });
        }
        step.effects.push(SessionEffect::Sync);
    }

    /// Mode of `session.idle`. For clients an autopilot that is idle continues by itself, and they wait for its next
    /// idle event; ours has ended, so it names no mode.
    pub(super) fn idle_mode(&self) -> Option<data::Mode> {
        Some(self.state.mode).filter(|mode| *mode != data::Mode::Autopilot)
    }

    /// Ends the run of a sub-agent. Messages that came too late are a run of their own.
    fn end_subagent_run(
        &mut self,
        ending: Ending,
        answer: String,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if ending == Ending::Aborted {
            self.drop_prompts();
        }
        for prompt in std::mem::take(&mut self.steering).into_iter().rev() {
            self.queue.push_front(prompt);
        }
        match self.queue.pop_front() {
            Some(prompt) => self.start_run(prompt, Delivery::Queued, step, context),
            None => self.agent_done(ending, answer, step, context),
        }
    }

    pub(super) fn abort(&mut self, reason: String, step: &mut Step, context: &mut Context<'_>) {
        let Some(run) = &mut self.run else { return };
        self.last_run.failure = None;
        if !self.open_hooks.is_empty() {
            self.open_hooks.clear();
            step.effects.push(SessionEffect::CancelTools);
        }
        let turn = u64::from(run.turn);
        let phase = std::mem::replace(&mut run.phase, Phase::Between);
        match phase {
            Phase::Calling(call) => {
                step.effects.push(SessionEffect::CancelModel);
                self.log_cut_answer(&call, step);
                let interrupted = data::AgentInterrupted {
                    activity: "model_call".to_owned(),
                    turn,
                    elapsed_ms: call.elapsed_ms(context.now),
                    model: Some(self.state.model.clone()),
                    cancel_phase: Some(call.cancel_phase().to_owned()),
                    ..Default::default()
                };
                self.emit(step, interrupted);
                self.emit(step, data::Abort { reason });
                self.finish_call_event(&call, data::CallOutcome::Cancelled, None, step, context);
            }
            Phase::Waiting(call) => {
                step.effects.push(SessionEffect::CancelModel);
                self.log_cut_answer(&call, step);
                let interrupted = data::AgentInterrupted {
                    activity: "retry_backoff".to_owned(),
                    turn,
                    elapsed_ms: call.elapsed_ms(context.now),
                    ..Default::default()
                };
                self.emit(step, interrupted);
                self.emit(step, data::Abort { reason });
            }
            Phase::Tools { calls, since } => {
                step.effects.push(SessionEffect::CancelTools);
                let open: Vec<&RunningCall> = calls.iter().filter(|call| !call.is_done()).collect();
                let interrupted = data::AgentInterrupted {
                    activity: "tool_call".to_owned(),
                    turn,
                    elapsed_ms: millis_between(since, context.now),
                    tool_call_ids: Some(open.iter().map(|call| call.id().to_owned()).collect()),
                    tool_names: Some(open.iter().map(|call| call.name().to_owned()).collect()),
                    ..Default::default()
                };
                self.emit(step, data::Abort { reason });
                for withdrawn in calls.iter().filter_map(RunningCall::question_withdrawn) {
                    self.emit(step, withdrawn);
                }
                self.emit(step, interrupted);
            }
            Phase::Between
            | Phase::Discovering
            | Phase::AwaitingSummary { .. }
            | Phase::AskingChanges
            | Phase::AskingToSwitch(_)
            | Phase::Preparing(_)
            | Phase::Stopping { .. } => {
                self.emit(step, data::Abort { reason });
            }
        }
        self.end_turn(step);
        self.end_run(Ending::Aborted, step, context);
    }
}

pub(super) fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond() - from.as_millisecond()).unwrap_or(0)
}

/// Text of a prompt for the model. The time is part of the logged text, so history stays the same byte for byte.
fn decorate(
    text: &str,
    attachments: &[Attachment],
    notice: Option<Mode>,
    tools: &ToolsChanged,
    now: Timestamp,
) -> String {
    let mut out = attachments::before(attachments);
    let notice_of_tools = tools.notice().unwrap_or_default();
    out.push_str(&format!("<current_datetime>{}</current_datetime>\n\n{notice_of_tools}{text}", iso(now)));
    out.push_str(&attachments::after(attachments));
    if let Some(mode) = notice {
        out.push_str("\n\n");
        out.push_str(notices::mode(mode));
    }
    out
}
