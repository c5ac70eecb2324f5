//! The reservation of one call: from what it could use at most to what it did use.

use std::sync::Arc;

use super::bound::InputBounds;
use super::{BudgetLedger, Spending, UnloggedCall};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest, Price, Reply, TokenUsage};

/// Upper bound of a call in flight. Dropping it before the end of the answer counts all of it as used: nobody knows what a
/// provider charges for an answer that was not awaited.
pub(super) struct Reservation {
    pub(super) ledger: BudgetLedger,
    pub(super) number: u64,
    /// Whether it is put on record, because a cap holds.
    pub(super) logged: bool,
    /// Whether no session puts what it used on record.
    pub(super) unattended: bool,
    pub(super) model: String,
    pub(super) held: Spending,
    /// Whether a cap on cost or tokens holds, without which nobody knows what could be used.
    pub(super) capped: bool,
    /// Upper bound of the input tokens.
    pub(super) input: u64,
    pub(super) price: Option<Price>,
    /// The request, where no cap required it to be counted.
    pub(super) uncounted: Option<(Arc<InputBounds>, ModelRequest)>,
    /// Whether a piece of the answer came.
    pub(super) heard: bool,
    pub(super) settled: bool,
}

impl Reservation {
    pub(super) fn hear(&mut self, event: &Result<ModelEvent, ModelError>) {
        match event {
            Ok(ModelEvent::Finished(reply)) if self.unattended => self.record(reply),
            Ok(ModelEvent::Finished(reply)) => self.end(self.used(reply)),
            Ok(_) => self.heard = true,
            Err(error) => {
                let billed = self.heard
                    || matches!(
                        error.kind,
                        ModelErrorKind::Cut | ModelErrorKind::Stalled | ModelErrorKind::Protocol
                    );
                if billed { self.break_off() } else { self.end(Spending::default()) }
            }
        }
    }

    /// Spending of an answer. Figures that the provider does not report are taken from the bound.
    fn used(&self, reply: &Reply) -> Spending {
        let usage = &reply.usage;
        let cost = usage.cost.or_else(|| self.price.as_ref()?.cost(usage));
        let tokens = match (usage.input_tokens, usage.output_tokens) {
            (Some(input), Some(output)) => input.saturating_add(output),
            _ => self.held.tokens,
        };
        Spending { cost: cost.unwrap_or(self.held.cost), tokens, turns: self.held.turns }
    }

    /// Ends the call and notes what it used for the record.
    fn record(&mut self, reply: &Reply) {
        let cost = reply.usage.cost.or_else(|| self.price.as_ref()?.cost(&reply.usage));
        let usage = TokenUsage { cost, ..reply.usage };
        self.note(usage, false);
        self.settle(self.used(reply));
    }

    /// Notes the call for the record, with the end of its reservation.
    fn note(&self, usage: TokenUsage, cut: bool) {
        let calls = self.logged.then_some(self.number).into_iter().collect();
        self.ledger.note_unlogged(UnloggedCall { model: self.model.clone(), usage, cut, calls });
    }

    /// Ends the call. Its reservation stays on record until what it used is.
    fn end(&mut self, used: Spending) {
        if self.logged && !self.settled {
            self.ledger.0.account.lock().ended.push(self.number);
        }
        self.settle(used);
    }

    fn settle(&mut self, used: Spending) {
        if !std::mem::replace(&mut self.settled, true) {
            self.ledger.settle(self.number, used);
        }
    }

    /// Upper bound of the call; zero if no cap required one.
    pub(super) fn bound(&self) -> TokenUsage {
        if !self.capped {
            return TokenUsage::default();
        }
        TokenUsage {
            input_tokens: Some(self.input),
            output_tokens: Some(self.held.tokens.saturating_sub(self.input)),
            cost: self.price.as_ref().map(|_| self.held.cost),
            ..TokenUsage::default()
        }
    }

    /// Estimate of what an interrupted call used: its bound, or its input if no cap required one. Nobody knows the output.
    fn estimate(&self) -> TokenUsage {
        let Some((bounds, request)) = &self.uncounted else { return self.bound() };
        let input = TokenUsage { input_tokens: Some(bounds.of(request)), ..TokenUsage::default() };
        let cost =
            self.price.as_ref().and_then(|price| price.cost(&TokenUsage { output_tokens: Some(0), ..input }));
        TokenUsage { cost, ..input }
    }

    /// Takes all as used, and notes it for the record.
    fn break_off(&mut self) {
        if self.settled {
            return;
        }
        if self.logged && self.ledger.is_unrecorded(self.number) {
            // It was never made.
            return self.settle(Spending::default());
        }
        self.note(self.estimate(), true);
        self.settle(self.held);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.break_off();
    }
}
