//! The content of a provider's error, in any of the known shapes, and the kind of error that follows from it.
//!
//! Codes come first, because they are meant for programs; then the status; then the message, whose wording differs
//! between servers.

use std::time::Duration;

use hangar_agent::model::ModelErrorKind;
use serde_json::Value;

use super::cut;

/// Bytes of a provider's error that are kept.
pub(super) const BODY_KEPT: usize = 8 * 1024;
/// Bytes of a body other than JSON that are shown to people.
const TEXT_SHOWN: usize = 300;

/// Codes and types that are unambiguous. Those that a vendor uses for several errors (`invalid_request_error`) are not
/// listed.
const CODES: &[(ModelErrorKind, &[&str])] = &[
    (
        ModelErrorKind::Quota,
        &[
            "insufficient_quota",
            "credit_balance_exhausted",
            "organization_spend_limit_exceeded",
            "project_spend_limit_exceeded",
            "organization_usage_limit_exceeded",
            "billing_hard_limit_reached",
            "billing_error",
            "exceeded_current_quota_error",
            "quota_exceeded",
            "session_quota_exceeded",
            "free_quota_exceeded",
            "overage_limit_reached",
            "billing_not_configured",
            "insufficient_credits",
            "payment_required",
        ],
    ),
    (
        ModelErrorKind::RateLimit,
        &[
            "rate_limit_exceeded",
            "rate_limit_error",
            "rate_limited",
            "too_many_requests",
            "slow_down",
            "user_model_rate_limited",
            "user_global_rate_limited",
            "integration_rate_limited",
        ],
    ),
    (
        ModelErrorKind::ContextLength,
        &[
            "context_length_exceeded",
            "token_limit_exceeded",
            "exceed_context_size_error",
            "model_max_prompt_tokens_exceeded",
            "request_too_large",
        ],
    ),
    (ModelErrorKind::Reasoning, &["invalid_encrypted_content"]),
    (
        ModelErrorKind::Server,
        &[
            "overloaded_error",
            "server_is_overloaded",
            "model_overloaded",
            "provider_overloaded",
            "provider_unavailable",
            "server_error",
            "internal_server_error",
        ],
    ),
];

/// Parts of the names of errors inside a stream, which come without a status.
const NAME_PARTS: &[(ModelErrorKind, &[&str])] = &[
    (ModelErrorKind::RateLimit, &["rate_limit", "too_many_requests", "resource_exhausted"]),
    (ModelErrorKind::AccessDenied, &["permission"]),
    (ModelErrorKind::Authentication, &["authentication", "api_key"]),
    (
        ModelErrorKind::Refused,
        &[
            "invalid",
            "not_found",
            "unsupported",
            "content_policy",
            "content_filter",
            "cyber_policy",
            "bio_policy",
        ],
    ),
];

/// Phrases in errors about a request that is too long for the model.
const TOO_LONG: &[&str] = &[
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
    "exceeded model token limit",
    "more than max tokens allowed",
    "exceed_context_size",
    "tokens + `max_new_tokens` must be",
    "context overflow",
];

/// Phrases in refusals of an image: Anthropic, OpenAI, Gemini, llama.cpp.
const BAD_IMAGE: &[&str] = &[
    "could not process image",
    "image exceeds",
    "image dimensions exceed",
    "unsupported image",
    "does not represent a valid image",
    "unable to process input image",
    "invalid image",
    "invalid base64 image",
    "failed to decode image",
    "failed to load image",
];

/// Phrases in refusals of the reasoning of earlier answers: Anthropic, OpenAI, Gemini.
const BAD_REASONING: &[&str] = &[
    "`signature` in `thinking` block",
    "signature in thinking block",
    "bound to a different conversation",
    "blocks in the latest assistant message cannot be modified",
    "expected `thinking` or `redacted_thinking`",
    "encrypted content could not be",
    "encrypted content for item",
    "without its required following item",
    "without its required 'reasoning' item",
    "thought signature",
    "thought_signature",
];

/// Phrases in errors about an account without credit, where the code does not say so: Anthropic's 400.
const NO_MONEY: &[&str] = &[
    "credit balance is too low",
    "credit balance too low",
    "spend limit",
    "spending limit",
    "usage limits",
    "insufficient balance",
];

/// Content of a provider's error.
pub(super) struct ErrorContent {
    pub(super) message: Option<String>,
    pub(super) code: Option<String>,
    /// `type` and other names of the error, beside its code.
    names: Vec<String>,
    pub(super) kept: Option<String>,
    /// Google's `RetryInfo`.
    pub(super) retry_after: Option<Duration>,
    /// OpenRouter's hint whether another attempt makes sense.
    pub(super) retryable: Option<bool>,
}

impl ErrorContent {
    pub(super) fn parse(body: &str) -> Self {
        let body = body.trim();
        match serde_json::from_str::<Value>(body) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => Self::of(&value),
            _ => {
                let kept = Some(cut(body, BODY_KEPT).to_owned()).filter(|body| !body.is_empty());
                // A gateway's HTML page is not a message.
                let message = kept.as_deref().filter(|body| !body.starts_with('<')).map(|body| {
                    cut(body.lines().next().unwrap_or_default(), TEXT_SHOWN).trim_end().to_owned()
                });
                Self { message, code: None, names: Vec::new(), kept, retry_after: None, retryable: None }
            }
        }
    }

    pub(super) fn of(value: &Value) -> Self {
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
        let at = |pointer: &str| error.pointer(pointer).and_then(text);
        let message = at("/message").or_else(|| text(error)).or_else(|| at("/detail"));
        // A list of validation errors.
        let message = message.or_else(|| at("/detail/0/msg"));
        let names = ["/type", "/metadata/error_type", "/status"].into_iter().filter_map(at);
        let retryable = ["/metadata/availability/retryable", "/availability/retryable"];
        Self {
            message,
            code: at("/code"),
            names: names.map(|name| name.to_lowercase()).collect(),
            kept: Some(cut(&error.to_string(), BODY_KEPT).to_owned()),
            retry_after: retry_info(error),
            retryable: retryable.into_iter().find_map(|pointer| error.pointer(pointer)?.as_bool()),
        }
    }

    /// Kind of the error. `status` is that of the answer, or the one that an error inside a stream names.
    pub(super) fn kind(&self, status: Option<u16>) -> ModelErrorKind {
        match self.coded() {
            // Waiting does not help if the request alone exceeds the limit per minute.
            Some(ModelErrorKind::RateLimit) if self.is_over_a_limit_per_minute() => {
                return ModelErrorKind::ContextLength;
            }
            Some(kind) => return kind,
            None => {}
        }
        match status {
            Some(401) => ModelErrorKind::Authentication,
            Some(402) => ModelErrorKind::Quota,
            Some(403) => ModelErrorKind::AccessDenied,
            Some(413) => ModelErrorKind::ContextLength,
            Some(429) if self.is_over_a_limit_per_minute() => ModelErrorKind::ContextLength,
            Some(429) => ModelErrorKind::RateLimit,
            Some(400 | 422 | 500) if self.says(TOO_LONG) => ModelErrorKind::ContextLength,
            Some(400) if self.says(NO_MONEY) => ModelErrorKind::Quota,
            Some(400 | 422) if self.says(BAD_IMAGE) => ModelErrorKind::Image,
            Some(400) if self.says(BAD_REASONING) => ModelErrorKind::Reasoning,
            Some(408 | 409 | 500..=599) => ModelErrorKind::Server,
            Some(_) => ModelErrorKind::Refused,
            None => self.kind_in_stream(),
        }
    }

    /// Kind by the code and the other names of the error, if one of them is known.
    fn coded(&self) -> Option<ModelErrorKind> {
        let is = |code: &str| self.all_names().any(|name| name == code);
        let coded = CODES.iter().find(|(_, codes)| codes.iter().any(|code| is(code)));
        coded.map(|(kind, _)| *kind)
    }

    /// Kind of an error inside a stream without a status: by parts of its names, then by its message.
    fn kind_in_stream(&self) -> ModelErrorKind {
        let named =
            |parts: &[&str]| self.all_names().any(|name| parts.iter().any(|part| name.contains(part)));
        if self.says(&["rate limit"]) {
            return ModelErrorKind::RateLimit;
        }
        if self.says(TOO_LONG) {
            return ModelErrorKind::ContextLength;
        }
        if self.says(NO_MONEY) {
            return ModelErrorKind::Quota;
        }
        let known = NAME_PARTS.iter().find(|(_, parts)| named(parts));
        // Failures of a stream that had begun are mostly temporary.
        known.map_or(ModelErrorKind::Server, |(kind, _)| *kind)
    }

    fn all_names(&self) -> impl Iterator<Item = &str> {
        self.code.as_deref().into_iter().chain(self.names.iter().map(String::as_str))
    }

    fn says(&self, phrases: &[&str]) -> bool {
        self.message.as_ref().is_some_and(|message| {
            let message = message.to_lowercase();
            phrases.iter().any(|phrase| message.contains(phrase))
        })
    }

    /// Whether the request alone exceeds the limit per minute, so that waiting does not help: `on tokens per min (TPM):
    /// Limit 30000, Requested 40000`.
    fn is_over_a_limit_per_minute(&self) -> bool {
        let Some(message) = self.message.as_ref().map(|message| message.to_lowercase()) else { return false };
        if !["tokens per min", "tpm"].iter().any(|words| message.contains(words)) {
            return false;
        }
        match (number_behind(&message, "limit "), number_behind(&message, "requested ")) {
            (Some(limit), Some(requested)) => requested > limit,
            _ => message.contains("request too large"),
        }
    }
}

/// The number after a word: `limit 30000,`.
fn number_behind(text: &str, word: &str) -> Option<u64> {
    text.match_indices(word).find_map(|(at, _)| {
        let digits = text[at + word.len()..].chars().take_while(|char| char.is_ascii_digit() || *char == ',');
        digits.filter(char::is_ascii_digit).collect::<String>().parse().ok()
    })
}

/// The retry delay that Google puts into the details of an error: `{"@type": "…/google.rpc.RetryInfo", "retryDelay":
/// "34.1s"}`.
fn retry_info(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
