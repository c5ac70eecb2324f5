//! Compaction: the model summarises a long conversation while the work goes on, and the summary replaces the messages
//! that it covers.
//!
//! The log is never rewritten: the end of a compaction is an event, and the model sees a projection of the log. A
//! summary covers messages that no other covers, so each is made from originals.
//!
//! Vendors bind reasoning to the messages that it followed. A summary that is ready while an answer is in flight is therefore kept
//! until that has come. During a cycle of calls with such reasoning no summary is started, because it could not be used: it is made
//! before the next cycle, which waits for it, or of everything if the context is full before that.

use std::sync::Arc;

use hangar_protocol::data::{self, CompactionTrigger, PlanAndTodos};
use jiff::Timestamp;

use super::checkpoint::Checkpoint;
use super::run::{Phase, Run, millis_between};
use super::{CallOptions, CallSeq, Context, Session, SessionEffect, Step};
use crate::model::{
    Finish, Initiator, Message, ModelError, ModelEvent, ModelRequest, Part, Reply, TokenCount, TokenUsage,
    ToolChoice,
};
use crate::prompt::notices;

/// Number of messages, including the system prompt, from which a summary is worthwhile.
pub(super) const MIN_MESSAGES: usize = 4;
/// Error of a requested summary when all of the conversation is summarised already.
pub const NOTHING_TO_COMPACT: &str = "Nothing to compact.";
/// Bytes of one text in the request for a summary, if the whole conversation is too large.
const EXCERPT: usize = 4 << 10;
/// Bytes of an answer in its vendor's items that are still included in such a request.
const EXCERPT_ITEMS: usize = 16 << 10;

/// Token limit of a summary, including reasoning. A lower one would give models another thinking budget than the
/// conversation has, which loses the provider's cache of it.
const SUMMARY_OUTPUT: u64 = 32_000;

/// Thresholds of compaction, as shares of the context window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compaction {
    /// From here on a summary is made in the background.
    pub start: f64,
    /// From here on the work waits for the summary.
    pub wait: f64,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { start: 0.80, wait: 0.95 }
    }
}

/// A compaction that is running.
pub(super) struct Compacting {
    seq: CallSeq,
    /// Number of messages that it covers.
    covers: usize,
    count: TokenCount,
    trigger: Option<CompactionTrigger>,
    instructions: Option<String>,
    started: Timestamp,
    /// The summary, until it replaces what it covers.
    reply: Option<Reply>,
}

/// Input of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Material {
    /// The conversation as it is, which the provider has in its cache.
    Whole,
    /// The conversation with long texts cut, because it would not fit otherwise.
    Excerpts,
}

impl Session {
    /// Whether a compaction is running.
    pub fn is_compacting(&self) -> bool {
        self.compacting.is_some()
    }

    /// Starts a compaction when the context is filling up. True if the next call has to wait for it.
    pub(super) fn check_context_size(&mut self, step: &mut Step, context: &mut Context<'_>) -> bool {
        if self.apply_ready_summary(step) {
            return true;
        }
        let Some(limits) = self.config.compaction else { return false };
        let limit = self.config.max_prompt_tokens.max(1) as f64;
        // A token is at least one byte, so most conversations need no counting.
        if (self.request_bytes() as f64) < limits.start * limit {
            return false;
        }
        if self.compacting.is_none() && !self.is_worth_a_summary() {
            return false;
        }
        let Some(count) = self.measure() else { return false };
        let share = count.total() as f64 / limit;
        // A request that does not fit cannot be sent, neither to be answered nor to be summarised.
        let overflows = share >= 1.0;
        let material = if overflows { Material::Excerpts } else { Material::Whole };
        let trigger = Some(CompactionTrigger::Threshold);
        if self.compacting.is_some() {
            let full = share >= limits.wait;
            if full && self.is_summary_bound() {
                self.cancel_compaction(step);
                self.start_compaction(trigger, material, count, None, step, context);
            }
            return full;
        }
        // A summary could not replace what a cycle under way is bound to, and would be paid for in vain if the context gets full.
        let is_cycle_bound = self.state.conversation.is_bound(0);
        if share < if is_cycle_bound { limits.wait } else { limits.start } {
            return false;
        }
        self.start_compaction(trigger, material, count, None, step, context);
        overflows || is_cycle_bound || self.state.conversation.binds_reasoning()
    }

    /// Whether answers in the cycle under way are bound to messages that the running compaction covers.
    fn is_summary_bound(&self) -> bool {
        let covers = self.compacting.as_ref().map(|compacting| compacting.covers);
        covers.is_some_and(|covers| self.state.conversation.is_bound(covers))
    }

    /// Whether the start of the conversation may be replaced now: no answer is in flight that would be bound to it, and
    /// the current cycle is not bound to it.
    fn may_apply_summary(&self) -> bool {
        match &self.run {
            Some(Run { phase: Phase::Calling(_), .. }) => false,
            Some(_) => !self.is_summary_bound(),
            None => self.state.conversation.is_answered() || !self.is_summary_bound(),
        }
    }

    /// Applies a summary that was kept until now. True if it is being applied.
    fn apply_ready_summary(&mut self, step: &mut Step) -> bool {
        let ready = self.compacting.as_ref().is_some_and(|compacting| compacting.reply.is_some());
        let applies = ready && self.may_apply_summary();
        if applies {
            step.effects.push(SessionEffect::Gather);
        }
        applies
    }

    /// Applies a summary that was kept while a run went on, or drops it: a run that was aborted leaves its cycle open.
    pub(super) fn apply_summary_behind_run(&mut self, step: &mut Step) {
        let ready = self.compacting.as_ref().is_some_and(|compacting| compacting.reply.is_some());
        if ready && !self.apply_ready_summary(step) {
            self.cancel_compaction(step);
        }
    }

    /// Whether enough messages are not covered by a summary, and enough are new since the last attempt that failed.
    fn is_worth_a_summary(&self) -> bool {
        let conversation = &self.state.conversation;
        let enough = match conversation.is_summarized() {
            true => conversation.unsummarized() >= MIN_MESSAGES,
            false => conversation.len() + 1 >= MIN_MESSAGES,
        };
        enough && self.failed_at.is_none_or(|failed| conversation.len() >= failed + MIN_MESSAGES)
    }

    /// Starts a compaction on request, unless one is running. Within a run it could separate calls from their results,
    /// so there it is ignored.
    pub(super) fn compact(
        &mut self,
        instructions: Option<&str>,
        trigger: Option<CompactionTrigger>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if self.compacting.is_some() || self.run.is_some() {
            return;
        }
        let count = self.measure().unwrap_or_else(|| self.estimate());
        if self.state.conversation.unsummarized() > 0 {
            self.start_compaction(trigger, Material::Whole, count, instructions, step, context);
            return;
        }
        self.emit(step, self.compaction_start(trigger, count));
        let complete = data::CompactionComplete {
            success: false,
            error: Some(NOTHING_TO_COMPACT.to_owned()),
            trigger,
            custom_instructions: instructions.map(str::to_owned),
            ..Default::default()
        };
        self.emit(step, complete);
    }

    fn compaction_start(
        &self,
        trigger: Option<CompactionTrigger>,
        count: TokenCount,
    ) -> data::CompactionStart {
        data::CompactionStart {
            model: Some(self.state.model.clone()),
            system_tokens: Some(count.system),
            conversation_tokens: Some(count.conversation),
            tool_definitions_tokens: Some(count.tools),
            current_tokens: Some(count.total()),
            token_limit: Some(self.config.max_prompt_tokens),
            trigger,
        }
    }

    /// Starts a compaction because the provider refused a request as too long. True if one is running.
    pub(super) fn force_compaction(&mut self, step: &mut Step, context: &mut Context<'_>) -> bool {
        if self.is_summary_bound() {
            self.cancel_compaction(step);
        }
        if self.compacting.is_some() {
            self.apply_ready_summary(step);
            return true;
        }
        let conversation = &self.state.conversation;
        if self.config.compaction.is_none()
            || conversation.len() + 1 < MIN_MESSAGES
            || conversation.unsummarized() == 0
        {
            return false;
        }
        let count = self.measure().unwrap_or_else(|| self.estimate());
        let trigger = Some(CompactionTrigger::ContextLimitRetry);
        self.start_compaction(trigger, Material::Excerpts, count, None, step, context);
        true
    }

    fn start_compaction(
        &mut self,
        trigger: Option<CompactionTrigger>,
        material: Material,
        count: TokenCount,
        instructions: Option<&str>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        self.announce_compaction(trigger, instructions, step, context);
        self.emit(step, self.compaction_start(trigger, count));
        self.calls += 1;
        let seq = CallSeq(self.calls);
        let mut request: ModelRequest = self.next_request(CallOptions::default());
        request.initiator = Initiator::Compaction;
        let covers = request.messages.len();
        if material == Material::Excerpts {
            request.messages = request.messages.iter().map(excerpt).collect();
        }
        let mut prompt = notices::SUMMARIZE.to_owned();
        if self.state.conversation.is_summarized() {
            prompt.push_str("\n\n");
            prompt.push_str(notices::SUMMARIZE_THE_REST);
        }
        if let Some(instructions) = instructions {
            prompt.push_str("\n\nPay special attention to: ");
            prompt.push_str(instructions);
        }
        request.messages.push(Arc::new(Message::User(vec![Part::Text(prompt)])));
        // The tools stay, for the prefix cache, but a summary calls none.
        request.tool_choice = ToolChoice::None;
        // Only a limit below the model's own is sent; where that is unknown, ours could be too high.
        request.max_output_tokens = self
            .config
            .provider
            .max_output_tokens
            .filter(|most| *most > SUMMARY_OUTPUT)
            .and(Some(SUMMARY_OUTPUT));
        self.compacting = Some(Compacting {
            seq,
            covers,
            count,
            trigger,
            instructions: instructions.map(str::to_owned),
            started: context.now,
            reply: None,
        });
        step.effects.push(SessionEffect::Summarize(seq, Box::new(request)));
    }

    pub(super) fn summarized(
        &mut self,
        seq: CallSeq,
        event: Result<ModelEvent, ModelError>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if let Ok(ModelEvent::Finished(reply)) = &event {
            // A summary that is no longer wanted was still paid for.
            self.account_summary(reply, step);
        }
        let Some(compacting) = self.compacting.as_mut().filter(|compacting| compacting.seq == seq) else {
            return;
        };
        match event {
            Ok(ModelEvent::Finished(reply)) => {
                if let Some(why) = unusable(&reply) {
                    return self.compaction_failed(why.to_owned(), None, step, context);
                }
                compacting.reply = Some(*reply);
                if self.run.is_none() {
                    self.apply_summary_behind_run(step);
                } else {
                    self.apply_ready_summary(step);
                }
            }
            Ok(_) => {}
            Err(error) => self.compaction_failed(error.message, error.status, step, context),
        }
    }

    fn has_summary_model(&self) -> bool {
        self.config.agent_config.as_ref().is_some_and(|agents| agents.summary_model().is_some())
    }

    /// Logs the usage of a summary. Listeners hear of it when the compaction is complete.
    fn account_summary(&mut self, reply: &Reply, step: &mut Step) {
        // The call of another model is on record already.
        if reply.usage == TokenUsage::default() && self.has_summary_model() {
            return;
        }
        let usage = self.usage_of(reply, "agent");
        let record = self.usage_record(reply, usage);
        self.emit(step, record);
    }

    /// Completes a compaction, once the summary, the plan and the todos are there.
    pub(super) fn gathered(
        &mut self,
        plan_and_todos: PlanAndTodos,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if self.compacting.as_ref().is_none_or(|compacting| compacting.reply.is_none()) {
            return;
        }
        let Some(mut compacting) = self.compacting.take() else { return };
        let Some(reply) = compacting.reply.take() else { return };
        if plan_and_todos != self.state.plan_and_todos {
            self.emit(step, plan_and_todos);
        }
        let checkpoint = Checkpoint::new(self.state.checkpoints + 1, &reply.turn.text);
        let complete = self.completed(&compacting, &checkpoint, reply, context);
        self.failed_at = None;
        let dropped = self.state.conversation.native_turns_behind_summary(compacting.covers);
        self.emit(step, complete);
        self.tell_dropped_reasoning(dropped, "was summarised", step);
        if self.agent().is_none() {
            step.effects.push(SessionEffect::Checkpoint(checkpoint));
        }
        self.continue_after_summary(true, step, context);
    }

    fn compaction_failed(
        &mut self,
        error: String,
        status_code: Option<u16>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(compacting) = self.compacting.take() else { return };
        self.failed_at = Some(self.state.conversation.len());
        let complete = data::CompactionComplete {
            success: false,
            error: Some(error),
            status_code,
            trigger: compacting.trigger,
            custom_instructions: compacting.instructions,
            ..Default::default()
        };
        self.emit(step, complete);
        self.continue_after_summary(false, step, context);
    }

    /// Cancels the compaction that is running.
    pub(super) fn cancel_compaction(&mut self, step: &mut Step) {
        let Some(compacting) = self.compacting.take() else { return };
        let complete = data::CompactionComplete {
            success: false,
            error: Some("Compaction Cancelled".to_owned()),
            trigger: compacting.trigger,
            custom_instructions: compacting.instructions,
            ..Default::default()
        };
        self.emit(step, complete);
    }

    fn continue_after_summary(&mut self, made: bool, step: &mut Step, context: &mut Context<'_>) {
        let Some(Run { phase, .. }) = &mut self.run else { return };
        match std::mem::replace(phase, Phase::Between) {
            // Without a summary the request would be refused again.
            Phase::AwaitingSummary { refused: Some(error) } if !made => {
                self.give_up(&error, 0, step, context);
            }
            Phase::AwaitingSummary { .. } => self.call_model(0, step, context),
            other => *phase = other,
        }
    }

    fn completed(
        &self,
        compacting: &Compacting,
        checkpoint: &Checkpoint,
        reply: Reply,
        context: &Context<'_>,
    ) -> data::CompactionComplete {
        let mut after = self.state.clone();
        // Checkpoint files are for summaries of the session; those of a sub-agent are in the log only.
        let kept = self.agent().is_none().then_some(checkpoint);
        let path = |kept: &Checkpoint| self.config.session_dir.join("checkpoints").join(kept.file_name());
        let mut complete = data::CompactionComplete {
            success: true,
            summary_content: Some(reply.turn.text),
            messages_removed: Some(compacting.covers as u64),
            pre_compaction_messages_length: Some(self.state.conversation.len() as u64),
            pre_compaction_tokens: Some(compacting.count.total()),
            system_tokens: Some(compacting.count.system),
            tool_definitions_tokens: Some(compacting.count.tools),
            token_limit: Some(self.config.max_prompt_tokens),
            trigger: compacting.trigger,
            custom_instructions: compacting.instructions.clone(),
            checkpoint_number: kept.map(|kept| kept.number),
            checkpoint_path: kept.map(|kept| path(kept).display().to_string()),
            compaction_tokens_used: Some(data::CompactionTokens {
                // A provider that reports no cached tokens, or zero, is not believed.
                input_tokens: reply
                    .usage
                    .input_tokens
                    .filter(|tokens| *tokens > 0)
                    .or(Some(compacting.count.total())),
                output_tokens: reply.usage.output_tokens,
                cache_read_tokens: reply.usage.cache_read_tokens,
                cache_write_tokens: reply.usage.cache_write_tokens,
                duration: Some(millis_between(compacting.started, context.now)),
                model: Some(self.state.model.clone()),
            }),
            ..Default::default()
        };
        after.apply(&complete.clone().into());
        let request = ModelRequest {
            messages: after.conversation.messages().cloned().collect(),
            ..self.next_request(CallOptions::default())
        };
        if let Some(meter) = &self.config.metering.meter {
            let count = self.token_counts.measure(&**meter, &request);
            complete.post_compaction_tokens = Some(count.total());
            complete.conversation_tokens = Some(count.conversation);
            complete.tokens_removed = Some(compacting.count.total().saturating_sub(count.total()));
        }
        complete
    }
}

/// Why an answer is no summary, if it is none. Vendors do not all let tools be forbidden without losing the cache of the
/// conversation, so a model may call one instead.
fn unusable(reply: &Reply) -> Option<&'static str> {
    match &reply.finish {
        Finish::Refusal(_) | Finish::ContentFilter => Some("the model refused to write a summary"),
        Finish::Broken(_) => Some("the provider broke the summary off"),
        _ if !reply.turn.tool_calls.is_empty() => {
            Some("the model called a tool instead of writing a summary")
        }
        _ if reply.turn.text.trim().is_empty() => Some("the model gave an empty summary"),
        _ => None,
    }
}

/// A message with its long texts cut in the middle. User messages stay whole, because the summary depends on them.
fn excerpt(message: &Arc<Message>) -> Arc<Message> {
    let cut = |text: &str| -> String {
        if text.len() <= EXCERPT {
            return text.to_owned();
        }
        let head = &text[..text.floor_char_boundary(EXCERPT / 2)];
        let tail = &text[text.ceil_char_boundary(text.len() - EXCERPT / 2)..];
        let middle = notices::left_out(text.len() - head.len() - tail.len());
        format!("{head}{middle}{tail}")
    };
    match &**message {
        Message::User(_) => Arc::clone(message),
        Message::Tool { call_id, kind, parts, is_error } => {
            let parts = parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => Part::Text(cut(text)),
                    Part::Image { .. } | Part::Document { .. } => {
                        Part::Text(crate::conversation::IMAGE_WITHHELD.to_owned())
                    }
                })
                .collect();
            Arc::new(Message::Tool { call_id: call_id.clone(), kind: *kind, parts, is_error: *is_error })
        }
        Message::Assistant(turn) => {
            let mut turn = turn.clone();
            turn.text = cut(&turn.text);
            // Vendors refuse results of calls without the reasoning that led to them.
            turn.native = turn.native.filter(|native| native.items.len() <= EXCERPT_ITEMS);
            turn.reasoning = turn.reasoning.filter(|_| turn.native.is_some());
            Arc::new(Message::Assistant(turn))
        }
    }
}
