//! Translation of provider failures into errors that the loop acts on.

mod said;
#[cfg(test)]
mod tests;

use std::time::Duration;

use hangar_agent::model::{ModelError, ModelErrorKind, RequestIds};
use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::Value;

use self::said::ErrorContent;

/// Header in which OpenAI's and Anthropic's servers tell their SDKs whether to retry.
const SHOULD_RETRY: &str = "x-should-retry";
/// Longest id of a request that is kept, in bytes.
const LONGEST_ID: usize = 200;

/// Error of a response with an error status.
pub(crate) fn refused(status: StatusCode, headers: &HeaderMap, body: &str) -> ModelError {
    let said = ErrorContent::parse(body);
    let kind = said.kind(Some(status.as_u16()));
    let message = match (said.message, headers.get(LOCATION)) {
        // Redirects are not followed: a key would follow them to another host.
        (_, Some(to)) if status.is_redirection() => {
            format!("moved to {}", String::from_utf8_lossy(to.as_bytes()))
        }
        (Some(message), _) => message,
        (None, _) => status.canonical_reason().unwrap_or("no reason given").to_owned(),
    };
    ModelError {
        kind,
        status: Some(status.as_u16()),
        message: format!("{} {message}", status.as_u16()),
        body: said.kept,
        code: said.code,
        retry_after: retry_after(headers).or(said.retry_after),
        should_retry: should_retry(headers).or(said.retryable),
        request_ids: request_ids(headers),
    }
}

/// Ids of a request in the logs of GitHub, which only its own servers send.
pub(crate) fn request_ids(headers: &HeaderMap) -> RequestIds {
    let id = |name: &str| {
        let text = headers.get(name)?.to_str().ok()?.trim();
        Some(text.to_owned()).filter(|text| !text.is_empty() && text.len() <= LONGEST_ID)
    };
    RequestIds { github: id("x-github-request-id"), service: id("x-copilot-service-request-id") }
}

/// Error that came inside a stream, as the data of its event.
pub(crate) fn in_stream(data: &Value) -> ModelError {
    let said = ErrorContent::of(data);
    let status =
        said.code.as_deref().and_then(|code| code.parse().ok()).filter(|code| (400..600).contains(code));
    ModelError {
        kind: said.kind(status),
        status,
        message: said
            .message
            .unwrap_or_else(|| "the model provider reported an error without a message".into()),
        body: said.kept,
        code: said.code,
        retry_after: said.retry_after,
        should_retry: said.retryable,
        request_ids: RequestIds::default(),
    }
}

pub(crate) fn protocol(message: impl Into<String>) -> ModelError {
    bare(ModelErrorKind::Protocol, message)
}

pub(crate) fn bare(kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
    ModelError::new(kind, message)
}

/// Text truncated to at most `limit` bytes, at a character boundary.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// Delay before a retry that the provider asks for.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds =
        |text: &str| text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    if let Some(wait) = text("retry-after-ms").and_then(seconds) {
        return Some(wait / 1000);
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Some(wait) = seconds(after) {
        return Some(wait);
    }
    // A date is compared with the server's own clock, not with ours.
    let until = date(after)?.duration_since(date(text(DATE.as_str())?)?);
    Some(Duration::try_from(until).unwrap_or_default())
}

/// Whether the provider asks for a retry, if it says.
fn should_retry(headers: &HeaderMap) -> Option<bool> {
    headers.get(SHOULD_RETRY)?.to_str().ok()?.trim().parse().ok()
}

fn date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}
