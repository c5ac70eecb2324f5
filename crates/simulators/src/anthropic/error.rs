//! Errors in the vendor's form.

use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::scenario::{FailureKind, VendorFailure};
use crate::shape::{Flaw, FlawKind};
use crate::signature::digest;

pub(super) fn refuse(status: u16, kind: &str, message: impl Into<String>) -> Refusal {
    let message = message.into();
    let id = request_id(&message);
    Refusal::new(status, message.clone(), body(kind, &message)).with_header("request-id", id)
}

/// The default: something in the body is invalid.
pub(super) fn invalid(message: impl Into<String>) -> Refusal {
    refuse(400, "invalid_request_error", message)
}

pub(super) fn body(kind: &str, message: &str) -> Value {
    let id = request_id(message);
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": id})
}

pub(super) fn request_id(seed: &str) -> String {
    format!("req_{}", &digest(&["request", seed])[..24])
}

/// A flaw in the wording of the vendor's parser.
pub(super) fn flawed(flaw: &Flaw) -> Refusal {
    let path = flaw.dotted(true);
    let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
    let quoted = |words: &[String]| words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>();
    invalid(match &flaw.kind {
        FlawKind::Unknown => format!("{path}Extra inputs are not permitted"),
        FlawKind::Missing => format!("{path}Field required"),
        FlawKind::Type { expected, .. } => {
            let word = match expected.iter().find(|word| *word != "null").map(String::as_str) {
                Some("array") => "list",
                Some("object") => "dictionary",
                Some(word) => word,
                None => "value",
            };
            format!("{path}Input should be a valid {word}")
        }
        FlawKind::Value { allowed, .. } => match quoted(allowed).split_last() {
            Some((last, [])) => format!("{path}Input should be {last}"),
            Some((last, rest)) => format!("{path}Input should be {} or {last}", rest.join(", ")),
            None => format!("{path}Input is not allowed"),
        },
        FlawKind::Tag { tag, found, allowed } => format!(
            "{path}Input tag '{found}' found using '{tag}' does not match any of the expected tags: {}",
            quoted(allowed).join(", ")
        ),
    })
}

/// Status, type and sentence of a failure.
fn words(kind: FailureKind) -> (u16, &'static str, &'static str) {
    match kind {
        FailureKind::RateLimited | FailureKind::SlowDown => {
            (429, "rate_limit_error", "This request would exceed your organization's rate limit.")
        }
        FailureKind::Quota => (
            402,
            "billing_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or \
             purchase credits.",
        ),
        FailureKind::Overloaded => (529, "overloaded_error", "Overloaded"),
        FailureKind::ServerError | FailureKind::Other => (500, "api_error", "Internal server error"),
        FailureKind::Unauthorized => (401, "authentication_error", "invalid x-api-key"),
        FailureKind::ContextLength => {
            (400, "invalid_request_error", "prompt is too long: 1000001 tokens > 1000000 maximum")
        }
        FailureKind::TooLarge => {
            (413, "request_too_large", "Request exceeds the maximum allowed number of bytes.")
        }
        FailureKind::Policy => (400, "invalid_request_error", "Output blocked by content filtering policy"),
    }
}

pub(super) fn failed(failure: &VendorFailure) -> Refusal {
    let (status, kind, message) = words(failure.kind);
    let kind = failure.code.as_deref().unwrap_or(kind);
    let message = failure.message.as_deref().unwrap_or(message);
    let refusal = refuse(failure.status.unwrap_or(status), kind, message);
    match failure.retry_after {
        Some(seconds) => refusal.with_header("retry-after", seconds.to_string()),
        None => refusal,
    }
}
