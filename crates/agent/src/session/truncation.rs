//! Truncation: making a request fit when compaction is switched off or came too late.

use hangar_protocol::data;

use super::compaction::MIN_MESSAGES;
use super::run::{Phase, Run};
use super::{Context, Session, Step};
use crate::model::{ModelError, TokenCount};

/// Bytes per token of ordinary text and code.
pub(super) const BYTES_PER_TOKEN: usize = 4;

/// How far the requests of a turn were reduced after the provider refused one as too long. Each step is done once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reduction {
    #[default]
    Untouched,
    WithoutImages,
    Shortened,
}

impl Session {
    /// Reduces a request that the provider refused as too long. True if it was, and the call is made again.
    pub(super) fn reduce_request(
        &mut self,
        error: &ModelError,
        step: &mut Step,
        context: &mut Context<'_>,
    ) -> bool {
        if self.withhold_images(step, context) {
            return true;
        }
        if self.run.as_ref().is_none_or(|run| run.reduction >= Reduction::Shortened) {
            return false;
        }
        if self.config.compaction.is_none() {
            return self.shorten(step, context);
        }
        if self.state.conversation.len() + 1 < MIN_MESSAGES {
            return false;
        }
        // The retry is announced before the summary that it waits for.
        let before = step.events.len();
        self.note_reduction(Reduction::Shortened, "forced_compaction", step);
        if !self.force_compaction(step, context) {
            step.events.truncate(before);
            return false;
        }
        if let Some(run) = &mut self.run {
            run.phase = Phase::AwaitingSummary { refused: Some(Box::new(error.clone())) };
        }
        true
    }

    /// Leaves the images so far out of the conversation, for good: the provider refused the request because of them. True if
    /// there were any, and the call is made again.
    pub(super) fn withhold_images(&mut self, step: &mut Step, context: &mut Context<'_>) -> bool {
        let untouched = self.run.as_ref().is_some_and(|run| run.reduction < Reduction::WithoutImages);
        if !untouched || !self.config.vision || !self.state.conversation.has_images() {
            return false;
        }
        self.note_reduction(Reduction::WithoutImages, "images_withheld", step);
        let dropped = self.state.conversation.native_turns_behind_images();
        self.emit(step, data::ImagesWithheld {});
        self.tell_dropped_reasoning(dropped, "lost its images", step);
        self.call_model(0, step, context);
        true
    }

    /// Leaves the reasoning of the answers so far out of the conversation, for good: the provider refused it, and would refuse
    /// every further request of the session. True if there was any, and the call is made again.
    pub(super) fn withhold_reasoning(&mut self, step: &mut Step, context: &mut Context<'_>) -> bool {
        let answers = self.state.conversation.vendor_turns();
        let Some(Run { turn, .. }) = self.run.as_ref().filter(|_| answers > 0) else { return false };
        let retry = data::TurnRetry {
            turn_id: turn.to_string(),
            model: Some(self.state.model.clone()),
            reason: Some("reasoning_withheld".to_owned()),
        };
        self.emit(step, retry);
        self.emit(step, data::ReasoningWithheld {});
        let message = format!(
            "The provider refused the reasoning behind {answers} earlier answer(s), so it is left out from now on."
        );
        self.emit(step, data::SessionInfo::new("reasoning_dropped", message));
        self.call_model(0, step, context);
        true
    }

    fn shorten(&mut self, step: &mut Step, context: &mut Context<'_>) -> bool {
        let target = self.state.conversation.bytes() / 2;
        if self.state.conversation.excess(target) == 0 {
            return false;
        }
        self.note_reduction(Reduction::Shortened, "truncation", step);
        self.truncate_to(target, step);
        self.call_model(0, step, context);
        true
    }

    /// Makes room in a context window that an answer has filled. True if the next call has to wait for a summary.
    pub(super) fn make_room(&mut self, step: &mut Step, context: &mut Context<'_>) -> bool {
        let Some(run) = &mut self.run else { return false };
        if !std::mem::take(&mut run.context_full) {
            return false;
        }
        if self.config.compaction.is_some() {
            return self.force_compaction(step, context);
        }
        self.truncate_to(self.state.conversation.bytes() / 2, step);
        false
    }

    fn note_reduction(&mut self, reduction: Reduction, reason: &str, step: &mut Step) {
        let Some(Run { reduction: done, turn, .. }) = &mut self.run else { return };
        *done = reduction;
        let retry = data::TurnRetry {
            turn_id: turn.to_string(),
            model: Some(self.state.model.clone()),
            reason: Some(reason.to_owned()),
        };
        self.emit(step, retry);
    }

    /// Drops the oldest exchanges when the next request would not fit and compaction is off, well below the limit so
    /// that the prefix stays the same for many turns.
    pub(super) fn truncate(&mut self, step: &mut Step) {
        if self.config.compaction.is_some() {
            return;
        }
        let limit = usize::try_from(self.config.max_prompt_tokens).unwrap_or(usize::MAX);
        let room = limit.saturating_mul(BYTES_PER_TOKEN).saturating_sub(self.fixed_bytes());
        if self.state.conversation.bytes() > room {
            self.truncate_to(room / 2, step);
        }
    }

    fn truncate_to(&mut self, target: usize, step: &mut Step) {
        let conversation = &self.state.conversation;
        let (before_bytes, before_messages) = (conversation.bytes(), conversation.len());
        let removed = conversation.excess(target);
        if removed == 0 {
            return;
        }
        let mut after = conversation.clone();
        after.drop_oldest(removed);
        let tokens = |bytes: usize| (bytes / BYTES_PER_TOKEN) as u64;
        let truncation = data::Truncation {
            token_limit: self.config.max_prompt_tokens,
            pre_truncation_tokens_in_messages: tokens(before_bytes),
            pre_truncation_messages_length: before_messages as u64,
            post_truncation_tokens_in_messages: tokens(after.bytes()),
            post_truncation_messages_length: after.len() as u64,
            tokens_removed_during_truncation: tokens(before_bytes - after.bytes()),
            messages_removed_during_truncation: removed as u64,
            performed_by: "hangar".to_owned(),
        };
        // The running compaction covers messages that are gone now.
        self.cancel_compaction(step);
        let dropped = self.state.conversation.native_turns(removed);
        self.emit(step, truncation);
        self.tell_dropped_reasoning(dropped, "was cut", step);
    }

    /// Reports that answers are sent without their reasoning from now on, because the conversation before them has
    /// changed.
    pub(super) fn tell_dropped_reasoning(&mut self, answers: usize, because: &str, step: &mut Step) {
        if answers > 0 {
            let message = format!(
                "The reasoning behind {answers} answer(s) is left out from now on, because the conversation before them \
                 {because}."
            );
            self.emit(step, data::SessionInfo::new("reasoning_dropped", message));
        }
    }

    /// Tells which reasoning a resumed session cannot send back, because its log does not have it.
    pub(super) fn tell_unlogged_reasoning(&mut self, step: &mut Step) {
        let answers = self.state.unlogged_reasoning;
        if answers > 0 {
            let message = format!(
                "The reasoning behind {answers} answer(s) is left out from now on, because the log of the session does not have \
                 it: it held a secret, or an older version wrote the log."
            );
            self.emit(step, data::SessionInfo::new("reasoning_dropped", message));
        }
    }

    /// Bytes of the next request, without the overhead of the wire.
    pub(super) fn request_bytes(&self) -> usize {
        self.fixed_bytes() + self.state.conversation.bytes()
    }

    /// Estimate of the tokens, without a tokenizer.
    pub(super) fn estimate(&self) -> TokenCount {
        let tokens = |bytes: usize| (bytes / BYTES_PER_TOKEN) as u64;
        TokenCount {
            system: tokens(self.config.system.len()),
            conversation: tokens(self.state.conversation.bytes()),
            tools: tokens(self.config.tools.iter().map(|tool| tool.size()).sum()),
        }
    }

    fn fixed_bytes(&self) -> usize {
        self.config.system.len() + self.config.tools.iter().map(|tool| tool.size()).sum::<usize>()
    }
}
