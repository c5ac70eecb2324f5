//! Retry policy: which failures are worth another attempt, and when it is made.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Longest message that is kept of a failure.
const MAX_MESSAGE: usize = 200;

/// Kinds of failure, as far as retries differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AttemptFailureKind {
    /// The account's login is missing, wrong or expired.
    Login,
    /// The account's quota or budget is used up.
    Quota,
    /// The request would be refused another time too.
    BadRequest,
    RateLimited,
    Overloaded,
    /// The process ended under the work. Nothing failed, so there is nothing to wait for.
    Interrupted,
    /// Any other: a crash, a time limit, a lost connection.
    Transient,
}

impl AttemptFailureKind {
    pub fn is_retryable(self) -> bool {
        match self {
            AttemptFailureKind::Login | AttemptFailureKind::Quota | AttemptFailureKind::BadRequest => false,
            AttemptFailureKind::RateLimited
            | AttemptFailureKind::Overloaded
            | AttemptFailureKind::Interrupted
            | AttemptFailureKind::Transient => true,
        }
    }

    /// Whether other work of the same account would fail as well.
    pub fn holds_account(self) -> bool {
        match self {
            AttemptFailureKind::Login
            | AttemptFailureKind::Quota
            | AttemptFailureKind::RateLimited
            | AttemptFailureKind::Overloaded => true,
            AttemptFailureKind::BadRequest
            | AttemptFailureKind::Interrupted
            | AttemptFailureKind::Transient => false,
        }
    }

    /// Words for a sentence that begins with the account.
    pub fn words(self) -> &'static str {
        match self {
            AttemptFailureKind::Login => "its login failed; log in, then `hangar resume`",
            AttemptFailureKind::Quota => "its quota is used up; raise it, then `hangar resume`",
            AttemptFailureKind::BadRequest => "bad request",
            AttemptFailureKind::RateLimited => "rate limited",
            AttemptFailureKind::Overloaded => "overloaded",
            AttemptFailureKind::Interrupted => "interrupted",
            AttemptFailureKind::Transient => "failed",
        }
    }
}

/// Failure of an attempt.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptFailure {
    pub kind: AttemptFailureKind,
    /// One sentence.
    pub message: String,
    /// Seconds that the provider asked to wait.
    pub retry_after: Option<u64>,
}

impl AttemptFailure {
    pub fn new(kind: AttemptFailureKind, message: &str) -> Self {
        let mut end = message.len().min(MAX_MESSAGE);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        Self { kind, message: message[..end].to_owned(), retry_after: None }
    }
}

/// Delays before further attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Delay before the second attempt. It doubles with each further one.
    pub first: Duration,
    pub longest: Duration,
    /// Part of a delay that is random, from 0 to 1. Work that failed together is not retried together.
    pub jitter: f64,
    /// How long an account is held after a login or quota failure before one item tries it again.
    pub hold: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(300),
            jitter: 0.2,
            hold: Duration::from_secs(300),
        }
    }
}

/// Six doublings of a second pass a minute; more could overflow before `min` could help.
const MOST_DOUBLINGS: u32 = 16;

impl RetryPolicy {
    /// The same policy with all delays multiplied.
    pub fn scaled(&self, factor: f64) -> Self {
        let scale = |delay: Duration| delay.mul_f64(factor);
        Self {
            first: scale(self.first),
            longest: scale(self.longest),
            hold: scale(self.hold),
            ..self.clone()
        }
    }

    /// Delay after `attempts` failed attempts, the last with `failure`. `None` if there is no further one. `random` is from
    /// 0 to 1. A delay that the provider asked for is never shortened, except by the longest one.
    pub fn delay(&self, failure: &AttemptFailure, attempts: u32, random: f64) -> Option<Duration> {
        match failure.kind {
            kind if !kind.is_retryable() => None,
            AttemptFailureKind::Interrupted => Some(Duration::ZERO),
            _ => Some(self.backoff(failure, attempts, random)),
        }
    }

    /// How long the account is held that made an attempt fail for the `openings`th time in a row.
    pub fn hold(&self, failure: &AttemptFailure, openings: u32, random: f64) -> Duration {
        match failure.kind.is_retryable() {
            true => self.backoff(failure, openings, random),
            false => self.hold,
        }
    }

    fn backoff(&self, failure: &AttemptFailure, attempts: u32, random: f64) -> Duration {
        let doublings = attempts.saturating_sub(1).min(MOST_DOUBLINGS);
        let usual = self.first.saturating_mul(1 << doublings).min(self.longest);
        let least = failure.retry_after.map_or(Duration::ZERO, Duration::from_secs).min(self.longest);
        let jitter = self.jitter.clamp(0.0, 1.0) * random.clamp(0.0, 1.0);
        // The delay is spread upwards, since a provider that asked for a time refuses before it.
        (usual.max(least)).mul_f64(1.0 + jitter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        kind: AttemptFailureKind,
        retry_after: Option<u64>,
        attempts: u32,
        random: f64,
        seconds: Option<u64>,
    ) {
        let failure = AttemptFailure { retry_after, ..AttemptFailure::new(kind, "") };
        let delay = RetryPolicy::default().delay(&failure, attempts, random);
        assert_eq!(
            delay.map(|delay| delay.as_secs()),
            seconds,
            "{kind:?} {retry_after:?} {attempts} {random}"
        );
    }

    #[test]
    fn logins_quotas_and_bad_requests_are_never_retried() {
        for kind in [AttemptFailureKind::Login, AttemptFailureKind::Quota, AttemptFailureKind::BadRequest] {
            check(kind, Some(1), 1, 0.0, None);
        }
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        for (attempts, seconds) in [(1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (u32::MAX, 300)] {
            check(AttemptFailureKind::Transient, None, attempts, 0.0, Some(seconds));
        }
    }

    #[test]
    fn interrupted_work_is_retried_at_once() {
        check(AttemptFailureKind::Interrupted, None, 3, 1.0, Some(0));
    }

    #[test]
    fn a_delay_that_the_provider_asks_for_is_obeyed_up_to_the_longest() {
        check(AttemptFailureKind::RateLimited, Some(60), 1, 0.0, Some(60));
        check(AttemptFailureKind::RateLimited, Some(1), 3, 0.0, Some(20));
        check(AttemptFailureKind::RateLimited, Some(u64::MAX), 1, 0.0, Some(300));
    }

    #[test]
    fn jitter_lengthens_a_delay_by_at_most_its_part() {
        check(AttemptFailureKind::Overloaded, None, 3, 0.5, Some(22));
        check(AttemptFailureKind::Overloaded, None, 3, 1.0, Some(24));
        check(AttemptFailureKind::Overloaded, None, 3, 99.0, Some(24));
    }
}
