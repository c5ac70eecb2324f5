//! Kinds of errors of sessions that crash: which are worth another attempt. When it is made is up to the scheduler.

use hangar_runtimes::outcome::{ErrorKind, TurnFailure};
use hangar_scheduler::retry::{AttemptFailure, AttemptFailureKind};

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

/// The failure of a turn as the scheduler knows it.
pub fn attempt_failure(failed: &TurnFailure) -> AttemptFailure {
    failure(&CrashError::from(failed))
}

/// The error as the scheduler knows it.
pub(crate) fn failure(error: &CrashError) -> AttemptFailure {
    let kind = match kind_of(error) {
        // Other work of the account may go on.
        Some(ErrorKind::BudgetExceeded) if error.own_cap => AttemptFailureKind::BadRequest,
        Some(ErrorKind::Auth | ErrorKind::NoProvider) => AttemptFailureKind::Login,
        Some(ErrorKind::BudgetExceeded) => AttemptFailureKind::Quota,
        Some(ErrorKind::RateLimited) => AttemptFailureKind::RateLimited,
        Some(ErrorKind::Overloaded) => AttemptFailureKind::Overloaded,
        Some(kind) if !kind.is_retryable() => AttemptFailureKind::BadRequest,
        None if error.name == INTERRUPTED => AttemptFailureKind::Interrupted,
        Some(_) | None => AttemptFailureKind::Transient,
    };
    let told = [Some(&error.message), error.cause.as_ref()];
    let retry_after = match kind {
        AttemptFailureKind::RateLimited | AttemptFailureKind::Overloaded => {
            told.into_iter().flatten().find_map(|text| retry_after(text))
        }
        AttemptFailureKind::Login
        | AttemptFailureKind::Quota
        | AttemptFailureKind::BadRequest
        | AttemptFailureKind::Interrupted
        | AttemptFailureKind::Transient => None,
    };
    AttemptFailure { retry_after, ..AttemptFailure::new(kind, &error.message) }
}

/// Phrases after which agents say how long to wait.
const PHRASES: [&str; 5] = ["retry-after", "retry after", "try again in", "retry in", "retry_after"];

/// Seconds that a provider asked to wait, from the words of an agent: `Retry-After: 30`, `try again in 1m30s`, `retry in 2.5
/// seconds`.
fn retry_after(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    PHRASES.iter().find_map(|phrase| {
        let rest = &text[text.find(phrase)? + phrase.len()..];
        duration(rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()))
    })
}

/// A time such as `30`, `2.5 seconds`, `1m30s` or `500ms`, rounded up.
fn duration(mut text: &str) -> Option<u64> {
    let mut total: Option<f64> = None;
    loop {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let Ok(number) = text[..end].trim_end_matches('.').parse::<f64>() else { break };
        let rest = text[end..].trim_start_matches([' ', '"']);
        let unit: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
        let seconds = match unit.as_str() {
            "ms" | "milliseconds" => number / 1000.0,
            "m" | "min" | "minute" | "minutes" => number * 60.0,
            "h" | "hour" | "hours" => number * 3600.0,
            _ => number,
        };
        total = Some(total.unwrap_or(0.0) + seconds);
        if unit.is_empty() || unit.len() > 2 {
            break;
        }
        text = &rest[unit.len()..];
    }
    total.map(|seconds| seconds.ceil() as u64)
}

/// The kind of failure by its name. Errors of our own have none.
fn kind_of(error: &CrashError) -> Option<ErrorKind> {
    ErrorKind::ALL.iter().copied().find(|kind| kind.as_str() == error.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangar_runtimes::outcome::Evidence;

    #[track_caller]
    fn check(name: &str, on_the_same: bool, on_another: bool) {
        let error = CrashError::new(name, "");
        let worthwhile = (is_worthwhile(&error, "m", "m"), is_worthwhile(&error, "m", "n"));
        assert_eq!(worthwhile, (on_the_same, on_another), "{name}");
    }

    #[test]
    fn logins_quotas_and_bad_requests_are_not_tried_again() {
        for name in [
            "auth_failed",
            "authentication",
            "budget_exceeded",
            "bad_request",
            "agent_not_found",
            "turn_cancelled",
        ] {
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
    fn a_time_that_an_agent_was_told_to_wait_is_read_from_its_words() {
        for (text, seconds) in [
            ("429 Too Many Requests, Retry-After: 30", Some(30)),
            ("Rate limit reached. Please try again in 1m30s.", Some(90)),
            ("try again in 2.5 seconds", Some(3)),
            ("{\"retry_after\": 7}", Some(7)),
            ("overloaded; retry in 500ms", Some(1)),
            ("try again in 20.5s. Visit https://x/1", Some(21)),
            ("try again in 2 hours", Some(7200)),
            ("try again later", None),
            ("retry after a while", None),
        ] {
            assert_eq!(failure(&CrashError::new("rate_limited", text)).retry_after, seconds, "{text}");
        }
        assert_eq!(failure(&CrashError::new("turn_failed", "retry after 5")).retry_after, None);
        let stderr = CrashError {
            cause: Some("retry-after: 4".to_owned()),
            ..CrashError::new("model_overloaded", "x")
        };
        assert_eq!(failure(&stderr).retry_after, Some(4));
    }

    #[test]
    fn a_cap_of_the_session_says_nothing_about_its_account() {
        let failed = |code: &str| TurnFailure {
            kind: ErrorKind::BudgetExceeded,
            message: "used up".to_owned(),
            evidence: Evidence { code: Some(code.to_owned()), ..Evidence::default() },
        };
        for (code, holds) in [("budget", false), ("error_max_budget_usd", false), ("quota_exceeded", true)] {
            let failure = attempt_failure(&failed(code));
            assert!(!failure.kind.is_retryable(), "{code}");
            assert_eq!(failure.kind.holds_account(), holds, "{code}");
        }
    }

    #[test]
    fn errors_are_kinds_of_failure() {
        for (name, kind) in [
            ("auth_failed", AttemptFailureKind::Login),
            ("authentication", AttemptFailureKind::Login),
            ("budget_exceeded", AttemptFailureKind::Quota),
            ("rate_limited", AttemptFailureKind::RateLimited),
            ("model_overloaded", AttemptFailureKind::Overloaded),
            ("agent_not_found", AttemptFailureKind::BadRequest),
            ("port_exit", AttemptFailureKind::Transient),
            ("worktree_failed", AttemptFailureKind::Transient),
            (INTERRUPTED, AttemptFailureKind::Interrupted),
        ] {
            assert_eq!(failure(&CrashError::new(name, "")).kind, kind, "{name}");
        }
    }
}
