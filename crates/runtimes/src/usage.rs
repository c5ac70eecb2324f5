//! Usage of a session, and how reliable it is. An unreported value is unknown, never zero.

use hangar_protocol::Totals;
use hangar_protocol::data::UsageMetric;
use serde::Serialize;

/// A figure with where it comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "provenance", content = "value")]
pub enum Figure {
    /// Reported by the agent.
    Reported(f64),
    /// Computed from the agent's report.
    Derived(f64),
    /// Not reported.
    #[default]
    Unknown,
}

impl Figure {
    pub fn reported(value: Option<u64>) -> Self {
        value.map_or(Figure::Unknown, |value| Figure::Reported(value as f64))
    }

    pub fn value(self) -> Option<f64> {
        match self {
            Figure::Reported(value) | Figure::Derived(value) => Some(value),
            Figure::Unknown => None,
        }
    }

    pub fn count(self) -> Option<u64> {
        self.value().map(|value| value as u64)
    }

    /// The sum of two parts. It is known only if both are, and is then no longer what anyone reported, unless one of
    /// the parts is all there is.
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Figure::Unknown, _) | (_, Figure::Unknown) => Figure::Unknown,
            (a, b) => Figure::Derived(a.value().unwrap_or_default() + b.value().unwrap_or_default()),
        }
    }

    /// Difference to an earlier total. A total that shrank belongs to another count and is unknown.
    fn since(self, earlier: Self) -> Self {
        match (self.value(), earlier.value()) {
            (Some(now), Some(before)) if now >= before => Figure::Derived(now - before),
            _ => Figure::Unknown,
        }
    }
}

/// Usage of a turn or a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentUsage {
    pub input_tokens: Figure,
    pub output_tokens: Figure,
    pub cache_read_tokens: Figure,
    pub cache_write_tokens: Figure,
    pub reasoning_tokens: Figure,
    pub cost_usd: Figure,
    pub premium_requests: Figure,
    pub model_calls: Figure,
    pub api_ms: Figure,
}

impl AgentUsage {
    /// Sum of both. A figure that one of them lacks is unknown.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, Figure::plus)
    }

    fn zip(self, other: Self, join: impl Fn(Figure, Figure) -> Figure) -> Self {
        Self {
            input_tokens: join(self.input_tokens, other.input_tokens),
            output_tokens: join(self.output_tokens, other.output_tokens),
            cache_read_tokens: join(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: join(self.cache_write_tokens, other.cache_write_tokens),
            reasoning_tokens: join(self.reasoning_tokens, other.reasoning_tokens),
            cost_usd: join(self.cost_usd, other.cost_usd),
            premium_requests: join(self.premium_requests, other.premium_requests),
            model_calls: join(self.model_calls, other.model_calls),
            api_ms: join(self.api_ms, other.api_ms),
        }
    }
}

impl From<&Totals> for AgentUsage {
    fn from(totals: &Totals) -> Self {
        let metrics = || totals.models.values();
        // The metrics of a model have a zero where no number was reported.
        let told = |sum: Option<u64>| Figure::reported(totals.input_tokens.and(sum));
        let cached =
            |of: fn(&UsageMetric) -> u64| told(Some(metrics().map(|metric| of(&metric.usage)).sum()));
        let calls = match totals.counts_calls() {
            true => Some(totals.requests).filter(|requests| *requests > 0),
            false => metrics().map(|metric| metric.requests.count).sum(),
        };
        Self {
            input_tokens: Figure::reported(totals.input_tokens),
            output_tokens: Figure::reported(totals.output_tokens),
            cache_read_tokens: cached(|usage| usage.cache_read_tokens),
            cache_write_tokens: cached(|usage| usage.cache_write_tokens),
            reasoning_tokens: told(metrics().map(|metric| metric.usage.reasoning_tokens).sum()),
            cost_usd: match totals.unpriced {
                0 => totals.cost.map_or(Figure::Unknown, Figure::Reported),
                // The sum of some calls is not the cost of all.
                _ => Figure::Unknown,
            },
            premium_requests: Figure::Unknown,
            model_calls: Figure::reported(calls),
            api_ms: Figure::Reported(totals.api_ms as f64),
        }
    }
}

/// Meaning of the usage that an agent reports at the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    PerTurn,
    /// Usage since the agent opened the session, which may be older.
    SinceOpened,
    /// Usage since the session began, over all turns.
    SinceBegun,
}

/// Keeps the two views, whichever of them the agent reports: what a turn used, and what the session has used so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsageMeter {
    counting: Counting,
    /// Usage of the session when it was opened here; absent for a new one.
    before: Option<AgentUsage>,
    last_report: Option<AgentUsage>,
    total: Option<AgentUsage>,
}

impl UsageMeter {
    /// Creates a meter. `before` is the recorded usage of a resumed session.
    pub fn new(counting: Counting, before: Option<AgentUsage>) -> Self {
        Self { counting, before, last_report: None, total: before }
    }

    pub fn total(&self) -> AgentUsage {
        self.total.unwrap_or_default()
    }

    /// Takes what was reported at the end of a turn and answers what the turn itself used.
    pub fn turn_ended(&mut self, reported: AgentUsage) -> AgentUsage {
        let on_top_of = |earlier: Option<AgentUsage>| match earlier {
            Some(earlier) => earlier.plus(reported),
            None => reported,
        };
        let apart_from = |earlier: Option<AgentUsage>| match earlier {
            Some(earlier) => reported.zip(earlier, Figure::since),
            None => reported,
        };
        let (turn, total) = match self.counting {
            Counting::PerTurn => (reported, on_top_of(self.total)),
            Counting::SinceOpened => (apart_from(self.last_report), on_top_of(self.before)),
            Counting::SinceBegun => (apart_from(self.last_report.or(self.before)), reported),
        };
        self.last_report = Some(reported);
        self.total = Some(total);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(value: Figure) -> AgentUsage {
        AgentUsage { input_tokens: value, ..AgentUsage::default() }
    }

    #[track_caller]
    fn check(mut meter: UsageMeter, reported: &[Figure], turns: &[Figure], total: Figure) {
        let seen: Vec<Figure> =
            reported.iter().map(|figure| meter.turn_ended(input(*figure)).input_tokens).collect();
        assert_eq!((seen.as_slice(), meter.total().input_tokens), (turns, total));
    }

    use Figure::{Derived, Reported, Unknown};

    fn meter(counting: Counting) -> UsageMeter {
        UsageMeter::new(counting, None)
    }

    /// For a session that has used 100 before it was opened here.
    fn resumed(counting: Counting) -> UsageMeter {
        UsageMeter::new(counting, Some(input(Reported(100.0))))
    }

    #[test]
    fn turns_that_are_reported_one_by_one_add_up() {
        let turns = [Reported(10.0), Reported(5.0)];
        check(meter(Counting::PerTurn), &turns, &turns, Derived(15.0));
        check(resumed(Counting::PerTurn), &turns, &turns, Derived(115.0));
    }

    #[test]
    fn totals_that_are_reported_are_taken_apart() {
        let totals = [Reported(10.0), Reported(15.0)];
        for counting in [Counting::SinceOpened, Counting::SinceBegun] {
            check(meter(counting), &totals, &[Reported(10.0), Derived(5.0)], Reported(15.0));
        }
    }

    #[test]
    fn totals_of_a_session_that_goes_on_hold_what_came_before_or_not() {
        check(
            resumed(Counting::SinceOpened),
            &[Reported(10.0), Reported(15.0)],
            &[Reported(10.0), Derived(5.0)],
            Derived(115.0),
        );
        check(
            resumed(Counting::SinceBegun),
            &[Reported(110.0), Reported(115.0)],
            &[Derived(10.0), Derived(5.0)],
            Reported(115.0),
        );
    }

    #[test]
    fn a_session_of_which_nothing_is_on_record_has_no_sum() {
        let unknown = |counting| UsageMeter::new(counting, Some(AgentUsage::default()));
        check(unknown(Counting::PerTurn), &[Reported(10.0)], &[Reported(10.0)], Unknown);
        check(unknown(Counting::SinceOpened), &[Reported(10.0)], &[Reported(10.0)], Unknown);
        check(unknown(Counting::SinceBegun), &[Reported(110.0)], &[Unknown], Reported(110.0));
    }

    #[test]
    fn one_turn_that_is_not_told_leaves_the_sum_unknown_and_not_smaller() {
        let turns = [Reported(10.0), Unknown, Reported(5.0)];
        check(meter(Counting::PerTurn), &turns, &turns, Unknown);
    }

    #[test]
    fn a_total_that_shrank_gives_no_negative_turn() {
        check(
            meter(Counting::SinceBegun),
            &[Reported(10.0), Reported(4.0)],
            &[Reported(10.0), Unknown],
            Reported(4.0),
        );
    }

    #[test]
    fn a_session_without_turns_has_used_what_it_had() {
        assert_eq!(resumed(Counting::PerTurn).total().input_tokens, Reported(100.0));
        assert_eq!(meter(Counting::PerTurn).total().input_tokens, Unknown);
    }
}
