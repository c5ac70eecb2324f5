//! Retry policy for model calls.

use std::time::Duration;

use crate::entropy::Entropy;
use crate::model::{ModelError, ModelErrorKind};

const MAX_RETRIES: u32 = 5;
/// Retries after a 401. A key that has just been rotated may need a moment; a wrong one will not get better.
const MAX_AUTH_RETRIES: u32 = 2;
/// Shortest delay before a retry, doubled with each: a server that asks for none is not asked again without a pause.
const SHORTEST_WAIT: Duration = Duration::from_millis(500);
/// Longest `Retry-After` that is waited for. A longer one is an error.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    Retry { after: Duration, reason: RetryReason },
    GiveUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryReason {
    TransientAuth,
    RateLimit,
    ApiError,
    Streaming,
}

impl RetryReason {
    pub fn as_str(self) -> &'static str {
        match self {
            RetryReason::TransientAuth => "transient_auth_error",
            RetryReason::RateLimit => "rate_limit",
            RetryReason::ApiError => "api_error",
            RetryReason::Streaming => "streaming_error",
        }
    }
}

/// Decides about a call that failed. `retries` is how often it has been tried again already.
///
/// The provider's own hint on retries wins over the kind of the error, except where no retry can help, as with an
/// account without credit.
pub fn decide(error: &ModelError, retries: u32, entropy: &mut Entropy) -> RetryDecision {
    let (most, reason, base) = match error.kind {
        ModelErrorKind::Authentication => {
            (MAX_AUTH_RETRIES, RetryReason::TransientAuth, Duration::from_secs(1))
        }
        ModelErrorKind::RateLimit => {
            (MAX_RETRIES, RetryReason::RateLimit, backoff(Duration::from_secs(5), retries / 2))
        }
        ModelErrorKind::Server => {
            (MAX_RETRIES, RetryReason::ApiError, backoff(Duration::from_millis(500), retries))
        }
        ModelErrorKind::Connect => {
            (MAX_RETRIES, RetryReason::Streaming, backoff(Duration::from_secs(1), retries))
        }
        ModelErrorKind::Cut | ModelErrorKind::Stalled | ModelErrorKind::Protocol => {
            (MAX_RETRIES, RetryReason::Streaming, Duration::from_secs(1))
        }
        ModelErrorKind::AccessDenied | ModelErrorKind::Refused | ModelErrorKind::ContextLength
            if error.should_retry == Some(true) =>
        {
            (MAX_RETRIES, RetryReason::ApiError, backoff(Duration::from_millis(500), retries))
        }
        ModelErrorKind::AccessDenied
        | ModelErrorKind::Refused
        | ModelErrorKind::ContextLength
        | ModelErrorKind::Image
        | ModelErrorKind::Reasoning
        | ModelErrorKind::Quota
        | ModelErrorKind::Budget
        | ModelErrorKind::Configuration => return RetryDecision::GiveUp,
    };
    schedule(error, retries, (most, reason, base), entropy)
}

/// Decides about a request that was refused as too large (413) although it had just been shortened. Gateways return
/// that status for limits of their own too, which the next attempt may not meet.
pub fn decide_too_large(error: &ModelError, retries: u32, entropy: &mut Entropy) -> RetryDecision {
    schedule(error, retries, (MAX_RETRIES, RetryReason::ApiError, Duration::from_secs(1)), entropy)
}

fn schedule(
    error: &ModelError,
    retries: u32,
    (most, reason, base): (u32, RetryReason, Duration),
    entropy: &mut Entropy,
) -> RetryDecision {
    if retries >= most
        || error.should_retry == Some(false)
        || error.retry_after.is_some_and(|wait| wait > LONGEST_WAIT)
    {
        return RetryDecision::GiveUp;
    }
    // The server's delay is a minimum: jitter may only lengthen it.
    let after = match error.retry_after {
        Some(wait) if wait < SHORTEST_WAIT => entropy.jitter(backoff(SHORTEST_WAIT, retries), 0.1),
        Some(wait) => entropy.jitter(wait, 0.1),
        None => entropy.jitter(base, 0.5),
    };
    RetryDecision::Retry { after, reason }
}

fn backoff(base: Duration, doublings: u32) -> Duration {
    // Five retries double four times at most; the cap is for callers that count differently.
    (base * 2_u32.pow(doublings.min(6))).min(Duration::from_secs(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ModelErrorKind, retry_after: Option<u64>) -> ModelError {
        ModelError { retry_after: retry_after.map(Duration::from_secs), ..ModelError::new(kind, "") }
    }

    fn check(kind: ModelErrorKind, tries_again: u32) {
        let mut entropy = Entropy::seeded(7);
        let retries = (0..20)
            .take_while(|n| decide(&error(kind, None), *n, &mut entropy) != RetryDecision::GiveUp)
            .count();
        assert_eq!(retries, tries_again as usize, "{kind:?}");
    }

    #[test]
    fn each_kind_of_failure_has_its_number_of_retries() {
        check(ModelErrorKind::Authentication, 2);
        check(ModelErrorKind::AccessDenied, 0);
        check(ModelErrorKind::RateLimit, 5);
        check(ModelErrorKind::Server, 5);
        check(ModelErrorKind::Connect, 5);
        check(ModelErrorKind::Cut, 5);
        check(ModelErrorKind::Stalled, 5);
        check(ModelErrorKind::Refused, 0);
        check(ModelErrorKind::ContextLength, 0);
        check(ModelErrorKind::Quota, 0);
        check(ModelErrorKind::Budget, 0);
    }

    #[test]
    fn the_providers_word_on_retries_wins_but_no_retry_brings_money() {
        let retried = |kind, should_retry| {
            let error = ModelError { should_retry: Some(should_retry), ..error(kind, None) };
            decide(&error, 0, &mut Entropy::seeded(7)) != RetryDecision::GiveUp
        };
        assert!(!retried(ModelErrorKind::RateLimit, false));
        assert!(!retried(ModelErrorKind::Server, false));
        assert!(retried(ModelErrorKind::Refused, true));
        assert!(retried(ModelErrorKind::Server, true));
        assert!(!retried(ModelErrorKind::Quota, true));
        assert!(!retried(ModelErrorKind::Configuration, true));
    }

    #[test]
    fn waits_grow_and_are_spread() {
        let mut entropy = Entropy::seeded(7);
        let mut waits = Vec::new();
        for n in 0..5 {
            let RetryDecision::Retry { after, .. } =
                decide(&error(ModelErrorKind::Server, None), n, &mut entropy)
            else {
                panic!("retry {n}");
            };
            waits.push(after);
        }
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
    }

    #[test]
    fn a_server_that_asks_for_no_wait_is_retried_soon_and_not_in_a_loop() {
        let mut entropy = Entropy::seeded(7);
        let waits: Vec<Duration> = (0..20)
            .map_while(|n| match decide(&error(ModelErrorKind::RateLimit, Some(0)), n, &mut entropy) {
                RetryDecision::Retry { after, .. } => Some(after),
                RetryDecision::GiveUp => None,
            })
            .collect();
        assert_eq!(waits.len(), 5);
        assert!(waits[0] >= SHORTEST_WAIT && waits[0] < Duration::from_secs(1), "{waits:?}");
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
    }

    #[test]
    fn the_servers_own_wait_is_honoured_and_bounded() {
        let mut entropy = Entropy::seeded(7);
        let RetryDecision::Retry { after, .. } =
            decide(&error(ModelErrorKind::RateLimit, Some(3)), 0, &mut entropy)
        else {
            panic!()
        };
        assert!(after >= Duration::from_secs(3));
        assert_eq!(
            decide(&error(ModelErrorKind::RateLimit, Some(9999)), 0, &mut entropy),
            RetryDecision::GiveUp
        );
    }
}
