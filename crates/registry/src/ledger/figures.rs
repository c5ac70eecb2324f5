//! Figures of model calls, and their sums.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sums of model calls. Tokens that were not reported are in none of them; calls without a known cost are counted apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "CostFigures")]
pub struct Figures {
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub reasoning_tokens: u64,
    /// Known cost in US dollars. It is a lower bound if there are unpriced calls.
    #[serde(rename = "costUsd")]
    pub cost: f64,
    /// Part of the cost that was computed from prices; the rest was reported.
    #[serde(rename = "computedUsd")]
    pub computed: f64,
    /// Calls whose cost is not known.
    pub unpriced: u64,
}

impl Figures {
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        self.cost += other.cost;
        self.computed += other.computed;
        self.unpriced += other.unpriced;
    }

    /// Difference to an earlier sum of the same counts.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_sub(earlier.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_sub(earlier.cache_write_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_sub(earlier.reasoning_tokens),
            cost: (self.cost - earlier.cost).max(0.0),
            computed: (self.computed - earlier.computed).max(0.0),
            unpriced: self.unpriced.saturating_sub(earlier.unpriced),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The cost, if any of the calls has one. Unknown is not zero.
    pub fn known_cost(&self) -> Option<f64> {
        let all_unknown = self.unpriced > 0 && self.cost == 0.0;
        (!all_unknown).then_some(self.cost)
    }
}
