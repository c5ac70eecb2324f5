//! Errors in the vendor's form.

use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::scenario::{FailureKind, VendorFailure};
use crate::shape::{Flaw, FlawKind};
use crate::signature::digest;

/// An error about a parameter, with the vendor's code for it.
pub(super) fn refuse(
    status: u16,
    message: impl Into<String>,
    param: Option<&str>,
    code: Option<&str>,
) -> Refusal {
    let message = message.into();
    let body = json!({
        "error": {"message": message, "type": "invalid_request_error", "param": param, "code": code},
    });
    with_id(Refusal::new(status, message, body))
}

pub(super) fn invalid(message: impl Into<String>, param: &str, code: &str) -> Refusal {
    refuse(400, message, Some(param), Some(code))
}

pub(super) fn with_id(refusal: Refusal) -> Refusal {
    let id = request_id(&refusal.message);
    refusal.with_header("x-request-id", id)
}

pub(super) fn request_id(seed: &str) -> String {
    format!("req_{}", digest(&["request", seed]))
}

/// `'a', 'b', and 'c'`.
pub(super) fn listed(words: &[String]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [rest @ .., last] => format!("{}, and {last}", rest.join(", ")),
    }
}

/// A flaw in the wording of the vendor's parser.
pub(super) fn flawed(flaw: &Flaw) -> Refusal {
    let path = flaw.bracketed();
    match &flaw.kind {
        FlawKind::Unknown => invalid(format!("Unknown parameter: '{path}'."), &path, "unknown_parameter"),
        FlawKind::Missing => {
            invalid(format!("Missing required parameter: '{path}'."), &path, "missing_required_parameter")
        }
        FlawKind::Type { expected, found } => {
            let expected: Vec<_> =
                expected.iter().filter(|word| *word != "null").map(|word| article(word)).collect();
            let expected = match expected.as_slice() {
                [one] => one.clone(),
                several => format!("one of {}", several.join(" or ")),
            };
            let found = article(found);
            let message = format!("Invalid type for '{path}': expected {expected}, but got {found} instead.");
            invalid(message, &path, "invalid_type")
        }
        FlawKind::Value { found, allowed } | FlawKind::Tag { found, allowed, .. } => {
            let path = if matches!(flaw.kind, FlawKind::Tag { .. }) { format!("{path}.type") } else { path };
            let listed = listed(allowed);
            let message = format!("Invalid value: '{found}'. Supported values are: {listed}.");
            invalid(message, &path, "invalid_value")
        }
    }
}

fn article(word: &str) -> String {
    match word {
        "array" | "integer" | "object" => format!("an {word}"),
        "number" => "a decimal".to_owned(),
        "null" => "null".to_owned(),
        word => format!("a {word}"),
    }
}

/// Status, type, code and sentence of a failure.
fn words(kind: FailureKind) -> (u16, &'static str, &'static str, &'static str) {
    match kind {
        FailureKind::RateLimited => (
            429,
            "tokens",
            "rate_limit_exceeded",
            "Rate limit reached for this model in organization org-simulated on tokens per min (TPM): Limit 500000, Used \
             499000, Requested 2000. Please try again in 120ms.",
        ),
        FailureKind::SlowDown => (
            429,
            "requests",
            "slow_down",
            "The rate of your requests has increased too fast. Please slow down.",
        ),
        FailureKind::Quota => (
            429,
            "insufficient_quota",
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        FailureKind::Overloaded => (
            503,
            "service_unavailable_error",
            "server_is_overloaded",
            "Our servers are currently overloaded. Please try again later.",
        ),
        FailureKind::ServerError | FailureKind::Other => (
            500,
            "server_error",
            "server_error",
            "The server had an error while processing your request. Sorry about that!",
        ),
        FailureKind::Unauthorized => {
            (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: ***.")
        }
        FailureKind::ContextLength => {
            (400, "invalid_request_error", "context_length_exceeded", super::check::TOO_LONG)
        }
        FailureKind::TooLarge => {
            (413, "invalid_request_error", "request_too_large", "The request body is too large.")
        }
        FailureKind::Policy => (
            400,
            "invalid_request_error",
            "invalid_prompt",
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
        ),
    }
}

pub(super) fn failed(failure: &VendorFailure) -> Refusal {
    let (status, kind, code, message) = words(failure.kind);
    let code = failure.code.as_deref().unwrap_or(code);
    let message = failure.message.as_deref().unwrap_or(message);
    let body = json!({"error": {"message": message, "type": kind, "param": Value::Null, "code": code}});
    let refusal = with_id(Refusal::new(failure.status.unwrap_or(status), message, body));
    match failure.retry_after {
        Some(seconds) => refusal
            .with_header("retry-after", seconds.ceil().to_string())
            .with_header("retry-after-ms", (seconds * 1000.0).to_string()),
        None => refusal,
    }
}
