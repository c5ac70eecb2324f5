//! Compaction: a long conversation is summed up by the model beside the work that goes on, and the summary takes the
//! place of what it covers.
//!
//! Nothing is rewritten: the end of a compaction is an event, and what the model sees is a projection of the log.

use std::sync::Arc;

use hangar_protocol::data::{self, CompactionTrigger};
use jiff::Timestamp;

use super::run::{Phase, Run, millis_between};
use super::{CallSeq, Context, Effect, Session, Step};
use crate::model::{Message, ModelError, ModelEvent, ModelRequest, Part, Reply, TokenCount, ToolChoice};
use crate::prompt::notices;

/// Fewer messages than this, the system prompt among them, are not worth summing up.
const MIN_MESSAGES: usize = 4;

/// When a session sums itself up, as shares of what the model takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compaction {
    /// From here on a summary is made beside the work.
    pub start: f64,
    /// From here on the work waits for the summary.
    pub wait: f64,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { start: 0.80, wait: 0.95 }
    }
}

/// A summary on its way.
pub(super) struct Compacting {
    seq: CallSeq,
    /// How many messages it covers.
    covers: usize,
    count: TokenCount,
    trigger: CompactionTrigger,
    started: Timestamp,
}

impl Session {
    /// Whether a summary is on its way.
    pub fn is_compacting(&self) -> bool {
        self.compacting.is_some()
    }

    /// Starts a summary when the context is filling up. True when the next call has to wait for one.
    pub(super) fn mind_the_context(&mut self, step: &mut Step, context: &mut Context<'_>) -> bool {
        let Some(limits) = self.config.compaction else { return false };
        let Some(count) = self.measure() else { return false };
        let share = total(count) as f64 / self.config.max_prompt_tokens.max(1) as f64;
        if self.compacting.is_some() {
            return share >= limits.wait;
        }
        let first_turn = self.run.as_ref().is_none_or(|run| run.turn == 0 || share >= limits.wait);
        if share >= limits.start && first_turn && self.state.conversation.len() + 1 >= MIN_MESSAGES {
            self.start_compaction(CompactionTrigger::Threshold, count, None, step, context);
        }
        false
    }

    /// Someone asks for a summary. Without a conversation there is none to be had, and in the middle of a run a summary
    /// could tear calls from their results.
    pub(super) fn compact(&mut self, instructions: Option<&str>, step: &mut Step, context: &mut Context<'_>) {
        let Some(count) = self.measure() else { return };
        if self.compacting.is_none() && self.run.is_none() && !self.state.conversation.is_empty() {
            self.start_compaction(CompactionTrigger::Manual, count, instructions, step, context);
        }
    }

    fn start_compaction(
        &mut self,
        trigger: CompactionTrigger,
        count: TokenCount,
        instructions: Option<&str>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let start = data::CompactionStart {
            model: Some(self.state.model.clone()),
            system_tokens: Some(count.system),
            conversation_tokens: Some(count.conversation),
            tool_definitions_tokens: Some(count.tools),
            current_tokens: Some(total(count)),
            token_limit: Some(self.config.max_prompt_tokens),
            trigger: Some(trigger),
        };
        self.emit(step, start);
        self.calls += 1;
        let seq = CallSeq(self.calls);
        let mut request: ModelRequest = self.next_request(Vec::new());
        let covers = request.messages.len();
        let mut prompt = notices::SUMMARIZE.to_owned();
        if let Some(instructions) = instructions {
            prompt.push_str("\n\nPay special attention to: ");
            prompt.push_str(instructions);
        }
        request.messages.push(Arc::new(Message::User(vec![Part::Text(prompt)])));
        // The tools stay, for the prefix cache, but a summary calls none.
        request.tool_choice = ToolChoice::None;
        request.stream = false;
        self.compacting = Some(Compacting { seq, covers, count, trigger, started: context.now });
        step.effects.push(Effect::Summarize(seq, Box::new(request)));
    }

    pub(super) fn summarized(
        &mut self,
        seq: CallSeq,
        event: Result<ModelEvent, ModelError>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if self.compacting.as_ref().is_none_or(|compacting| compacting.seq != seq) {
            return;
        }
        let outcome = match event {
            Ok(ModelEvent::Finished(reply)) if reply.turn.text.is_empty() => {
                Err("the model gave an empty summary".to_owned())
            }
            Ok(ModelEvent::Finished(reply)) => Ok(*reply),
            Ok(_) => return,
            Err(error) => Err(error.message),
        };
        let Some(compacting) = self.compacting.take() else { return };
        let complete = match outcome {
            Ok(reply) => self.completed(&compacting, reply, context),
            Err(error) => data::CompactionComplete {
                success: false,
                error: Some(error),
                trigger: Some(compacting.trigger),
                ..Default::default()
            },
        };
        self.emit(step, complete);
        if matches!(&self.run, Some(Run { phase: Phase::AwaitingSummary, .. })) {
            self.call_model(0, step, context);
        }
    }

    fn completed(
        &self,
        compacting: &Compacting,
        reply: Reply,
        context: &Context<'_>,
    ) -> data::CompactionComplete {
        let mut after = self.state.clone();
        let mut complete = data::CompactionComplete {
            success: true,
            summary_content: Some(reply.turn.text),
            messages_removed: Some(compacting.covers as u64),
            pre_compaction_messages_length: Some(self.state.conversation.len() as u64),
            pre_compaction_tokens: Some(total(compacting.count)),
            system_tokens: Some(compacting.count.system),
            tool_definitions_tokens: Some(compacting.count.tools),
            token_limit: Some(self.config.max_prompt_tokens),
            trigger: Some(compacting.trigger),
            compaction_tokens_used: Some(data::CompactionTokens {
                // A provider that does not say, or says nothing was read, is not believed.
                input_tokens: reply
                    .usage
                    .input_tokens
                    .filter(|tokens| *tokens > 0)
                    .or(Some(total(compacting.count))),
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
            ..self.next_request(Vec::new())
        };
        if let Some(meter) = &self.config.meter {
            let count = meter.measure(&request);
            complete.post_compaction_tokens = Some(total(count));
            complete.conversation_tokens = Some(count.conversation);
            complete.tokens_removed = Some(total(compacting.count).saturating_sub(total(count)));
        }
        complete
    }
}

fn total(count: TokenCount) -> u64 {
    count.system + count.conversation + count.tools
}
