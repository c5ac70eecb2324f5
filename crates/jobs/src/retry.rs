//! Kinds of errors of sessions that crash: which are worth another attempt. When it is made is up to the scheduler.

use hangar_runtimes::outcome::ErrorKind;
use hangar_scheduler::retry::{Failure, FailureKind};

use crate::record::CrashError;

/// The name of the error of a turn whose process ended under it.
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

/// The error as the scheduler knows it.
pub(crate) fn failure(error: &CrashError) -> Failure {
    let kind = match kind_of(error) {
        Some(ErrorKind::Auth) => FailureKind::Login,
        Some(ErrorKind::BudgetExceeded) => FailureKind::Quota,
        Some(ErrorKind::RateLimited) => FailureKind::RateLimited,
        Some(ErrorKind::Overloaded) => FailureKind::Overloaded,
        Some(kind) if !kind.is_retryable() => FailureKind::BadRequest,
        None if error.name == INTERRUPTED => FailureKind::Interrupted,
        Some(_) | None => FailureKind::Transient,
    };
    Failure::new(kind, &error.message)
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
    fn errors_are_kinds_of_failure() {
        for (name, kind) in [
            ("auth_failed", FailureKind::Login),
            ("budget_exceeded", FailureKind::Quota),
            ("rate_limited", FailureKind::RateLimited),
            ("model_overloaded", FailureKind::Overloaded),
            ("agent_not_found", FailureKind::BadRequest),
            ("port_exit", FailureKind::Transient),
            ("worktree_failed", FailureKind::Transient),
            (INTERRUPTED, FailureKind::Interrupted),
        ] {
            assert_eq!(failure(&CrashError::new(name, "")).kind, kind, "{name}");
        }
    }
}
