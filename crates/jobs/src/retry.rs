//! Retry policy for sessions that crash: which errors are worth another attempt, and how long to wait before it.

use std::time::Duration;

use hangar_runtimes::outcome::ErrorKind;

use crate::record::CrashError;

/// The pause before the second attempt. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Six doublings pass the longest pause; more could overflow.
const MOST_DOUBLINGS: u32 = 6;

/// The name of the error of a turn whose process ended under it. Nothing failed, so there is nothing to wait for.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// Whether an attempt on `next` may succeed after one on `model` crashed.
pub(crate) fn is_worthwhile(error: &CrashError, model: &str, next: &str) -> bool {
    match kind_of(error) {
        // Another model may know better.
        Some(ErrorKind::UnknownModel | ErrorKind::ContextLimit) => model != next,
        kind => kind.is_none_or(ErrorKind::is_retryable),
    }
}

/// Whether a later retry of the same prompt may succeed.
pub(crate) fn is_retryable(error: &CrashError) -> bool {
    kind_of(error).is_none_or(ErrorKind::is_retryable)
}

/// Delay before another attempt, after `crashes` attempts of which the last ended with `error`.
pub(crate) fn pause(error: &CrashError, crashes: u32) -> Duration {
    if error.name == INTERRUPTED {
        return Duration::ZERO;
    }
    let doublings = crashes.saturating_sub(1).min(MOST_DOUBLINGS);
    (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
}

/// The kind of failure by its name. Errors of our own have none.
fn kind_of(error: &CrashError) -> Option<ErrorKind> {
    ErrorKind::ALL.iter().copied().find(|kind| kind.as_str() == error.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, on_the_same: bool, on_another: bool) {
        let error = CrashError::new(name, "");
        let worthwhile = (is_worthwhile(&error, "m", "m"), is_worthwhile(&error, "m", "n"));
        assert_eq!(worthwhile, (on_the_same, on_another), "{name}");
    }

    #[test]
    fn logins_quotas_and_bad_requests_are_not_tried_again() {
        for name in ["auth_failed", "budget_exceeded", "bad_request", "agent_not_found", "turn_cancelled"] {
            check(name, false, false);
        }
        for name in ["rate_limited", "model_overloaded", "turn_failed", "port_exit", INTERRUPTED] {
            check(name, true, true);
        }
    }

    #[test]
    fn another_model_may_do_what_one_cannot() {
        check("unknown_model", false, true);
        check("context_limit", false, true);
    }

    #[test]
    fn pauses_double_up_to_a_limit() {
        let error = CrashError::new("port_exit", "");
        let seconds: Vec<u64> = (1..=9).map(|crashes| pause(&error, crashes).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(pause(&error, u32::MAX), LONGEST_PAUSE);
        assert_eq!(pause(&CrashError::new(INTERRUPTED, ""), 3), Duration::ZERO);
    }
}
