//! From what went wrong to what the loop can act on.

#[cfg(test)]
mod tests;

use std::time::Duration;

use hangar_agent::model::{ModelError, ModelErrorKind};
use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::Value;

/// What of a provider's error is kept, in bytes.
const BODY_KEPT: usize = 8 * 1024;
/// What of a body that is no JSON is shown to people.
const TEXT_SHOWN: usize = 300;

/// An answer that says no.
pub(crate) fn refused(status: StatusCode, headers: &HeaderMap, body: &str) -> ModelError {
    let said = Said::parse(body);
    let kind = match status.as_u16() {
        401 => ModelErrorKind::Authentication,
        403 => ModelErrorKind::AccessDenied,
        413 => ModelErrorKind::ContextLength,
        429 => ModelErrorKind::RateLimit,
        400 | 422 | 500 if said.is_context_length() => ModelErrorKind::ContextLength,
        408 | 409 | 500..=599 => ModelErrorKind::Server,
        _ => ModelErrorKind::Refused,
    };
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
        retry_after: retry_after(headers),
    }
}

/// An error that came inside a stream, as its event's data.
pub(crate) fn in_stream(data: &Value) -> ModelError {
    let said = Said::of(data);
    let names = [said.code.as_deref(), said.kind.as_deref()];
    let is = |parts: &[&str]| names.iter().flatten().any(|name| parts.iter().any(|part| name.contains(part)));
    let status =
        said.code.as_deref().and_then(|code| code.parse().ok()).filter(|code| (400..600).contains(code));
    let kind = if said.is_context_length() {
        ModelErrorKind::ContextLength
    } else if is(&["rate_limit", "too_many_requests", "429"]) {
        ModelErrorKind::RateLimit
    } else if is(&["permission", "403"]) {
        ModelErrorKind::AccessDenied
    } else if is(&["authentication", "api_key", "401"]) {
        ModelErrorKind::Authentication
    } else if is(&["invalid", "not_found", "unsupported", "content_policy", "400", "404", "422"]) {
        ModelErrorKind::Refused
    } else {
        // A stream that had begun: what fails it is most often over after a while (`overloaded_error`, `server_error`).
        ModelErrorKind::Server
    };
    ModelError {
        kind,
        status,
        message: said
            .message
            .unwrap_or_else(|| "the model provider reported an error without a message".into()),
        body: said.kept,
        code: said.code,
        retry_after: None,
    }
}

pub(crate) fn protocol(message: impl Into<String>) -> ModelError {
    bare(ModelErrorKind::Protocol, message)
}

pub(crate) fn bare(kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
    ModelError { kind, status: None, message: message.into(), body: None, code: None, retry_after: None }
}

/// Text cut to at most `limit` bytes, between characters.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// What a provider said of an error, in any of the shapes that are about.
struct Said {
    message: Option<String>,
    code: Option<String>,
    kind: Option<String>,
    kept: Option<String>,
}

impl Said {
    fn parse(body: &str) -> Self {
        let body = body.trim();
        match serde_json::from_str::<Value>(body) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => Self::of(&value),
            _ => {
                let kept = Some(cut(body, BODY_KEPT).to_owned()).filter(|body| !body.is_empty());
                // The page of a gateway is not a message.
                let message = kept.as_deref().filter(|body| !body.starts_with('<')).map(|body| {
                    cut(body.lines().next().unwrap_or_default(), TEXT_SHOWN).trim_end().to_owned()
                });
                Self { message, code: None, kind: None, kept }
            }
        }
    }

    fn of(value: &Value) -> Self {
        // `{"error": {...}}`, `{"error": "text"}`, `{"response": {"error": {...}}}`, `[{"error": {...}}]`, or the error
        // itself: `{"message": ...}`, `{"detail": ...}`.
        let value = value.get(0).unwrap_or(value);
        let error = [value.get("error"), value.pointer("/response/error")].into_iter().flatten();
        let error = error.into_iter().find(|error| !error.is_null()).unwrap_or(value);
        let text = |value: &Value| match value {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let field = |name: &str| error.get(name).and_then(text);
        let message = field("message").or_else(|| text(error)).or_else(|| field("detail"));
        // A list of what was wrong with the request.
        let message = message.or_else(|| error.pointer("/detail/0/msg").and_then(text));
        Self {
            message,
            code: field("code"),
            kind: field("type"),
            kept: Some(cut(&error.to_string(), BODY_KEPT).to_owned()),
        }
    }

    /// Whether the request was too long for the model. Every server says it in words of its own.
    fn is_context_length(&self) -> bool {
        const NAMES: &[&str] = &[
            "context_length_exceeded",
            "exceed_context_size_error",
            "model_max_prompt_tokens_exceeded",
            "request_too_large",
        ];
        const PHRASES: &[&str] = &[
            "context length",
            "context window",
            "context size",
            "context limit",
            "context_length",
            "maximum context",
            "prompt is too long",
            "prompt too long",
            "prompt token count",
            "maximum prompt length",
            "input is too long",
            "input length",
            "longer than the maximum model length",
            "reduce the length of the messages",
            "too many tokens",
            "exceeds the maximum number of tokens",
            "exceed_context_size",
            "tokens + `max_new_tokens` must be",
            "context overflow",
        ];
        let named = [&self.code, &self.kind].into_iter().flatten().any(|name| NAMES.contains(&name.as_str()));
        named
            || self.message.as_ref().is_some_and(|message| {
                let message = message.to_lowercase();
                PHRASES.iter().any(|phrase| message.contains(phrase))
            })
    }
}

/// How long the provider asks to wait.
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
    // A date: what counts is how far it is from the server's own idea of now.
    let until = date(after)?.duration_since(date(text(DATE.as_str())?)?);
    Some(Duration::try_from(until).unwrap_or_default())
}

fn date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}
