//! What a session has used, and how well that is known. Not told is never zero.

use serde::Serialize;

/// A figure with where it comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "provenance", content = "value")]
pub enum Figure {
    /// The agent said so.
    Reported(f64),
    /// Computed from what the agent said.
    Derived(f64),
    /// Nobody said.
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

    /// What came on top of an earlier total. A total that shrank belongs to another count and says nothing.
    fn since(self, earlier: Self) -> Self {
        match (self.value(), earlier.value()) {
            (Some(now), Some(before)) if now >= before => Figure::Derived(now - before),
            _ => Figure::Unknown,
        }
    }
}

/// What one turn or one session has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
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

impl Usage {
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

/// How an agent counts what it reports at the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    PerTurn,
    /// Since the session began, over all its turns.
    PerSession,
}

/// Keeps the two views, whichever of them the agent reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Meter {
    counting: Counting,
    total: Usage,
    turns: u32,
    /// Whether the session began before this meter did, so that totals hold what nobody here saw.
    joined_late: bool,
}

impl Meter {
    pub fn new(counting: Counting) -> Self {
        Self { counting, total: Usage::default(), turns: 0, joined_late: false }
    }

    /// For a session that had turns already, of which nothing is known.
    pub fn resumed(counting: Counting) -> Self {
        Self { joined_late: true, ..Self::new(counting) }
    }

    pub fn total(&self) -> Usage {
        self.total
    }

    /// Takes what was reported at the end of a turn and answers what the turn itself used.
    pub fn turn_ended(&mut self, reported: Usage) -> Usage {
        let first = self.turns == 0;
        self.turns += 1;
        match self.counting {
            Counting::PerTurn => {
                self.total = if first { reported } else { self.total.zip(reported, Figure::plus) };
                reported
            }
            Counting::PerSession => {
                let before = std::mem::replace(&mut self.total, reported);
                match (first, self.joined_late) {
                    (true, false) => reported,
                    (true, true) => Usage::default(),
                    (false, _) => reported.zip(before, Figure::since),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(value: Figure) -> Usage {
        Usage { input_tokens: value, ..Usage::default() }
    }

    #[track_caller]
    fn check(mut meter: Meter, reported: &[Figure], turns: &[Figure], total: Figure) {
        let seen: Vec<Figure> =
            reported.iter().map(|figure| meter.turn_ended(input(*figure)).input_tokens).collect();
        assert_eq!((seen.as_slice(), meter.total().input_tokens), (turns, total));
    }

    use Figure::{Derived, Reported, Unknown};

    #[test]
    fn turns_that_are_reported_one_by_one_add_up() {
        let meter = Meter::new(Counting::PerTurn);
        check(meter, &[Reported(10.0), Reported(5.0)], &[Reported(10.0), Reported(5.0)], Derived(15.0));
    }

    #[test]
    fn totals_that_are_reported_are_taken_apart() {
        let meter = Meter::new(Counting::PerSession);
        check(meter, &[Reported(10.0), Reported(15.0)], &[Reported(10.0), Derived(5.0)], Reported(15.0));
    }

    #[test]
    fn the_first_total_of_a_resumed_session_says_nothing_of_its_turn() {
        let meter = Meter::resumed(Counting::PerSession);
        check(meter, &[Reported(10.0), Reported(15.0)], &[Unknown, Derived(5.0)], Reported(15.0));
    }

    #[test]
    fn one_turn_that_is_not_told_leaves_the_sum_unknown_and_not_smaller() {
        let meter = Meter::new(Counting::PerTurn);
        check(
            meter,
            &[Reported(10.0), Unknown, Reported(5.0)],
            &[Reported(10.0), Unknown, Reported(5.0)],
            Unknown,
        );
    }

    #[test]
    fn a_total_that_shrank_gives_no_negative_turn() {
        let meter = Meter::new(Counting::PerSession);
        check(meter, &[Reported(10.0), Reported(4.0)], &[Reported(10.0), Unknown], Reported(4.0));
    }
}
