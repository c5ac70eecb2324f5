//! Refusals, as `application/problem+json`: what is wrong, in a sentence, and a word for programs.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::trouble::Trouble;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Problem {
    #[serde(rename = "type")]
    kind: &'static str,
    title: String,
    status: u16,
    /// For people: what is wrong and what to do.
    detail: String,
    /// For programs. It stays the same from version to version.
    code: &'static str,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            code,
        }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", detail)
    }
}

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        use StatusCode as S;
        let (status, code) = match &trouble {
            Trouble::NoSession(_) => (S::NOT_FOUND, "session_not_found"),
            Trouble::NoRuntime(_) => (S::NOT_FOUND, "runtime_not_found"),
            Trouble::NoRun(_) => (S::NOT_FOUND, "run_not_found"),
            Trouble::NoJob(_) => (S::NOT_FOUND, "job_not_found"),
            Trouble::NoApproval(_) => (S::NOT_FOUND, "approval_not_found"),
            Trouble::AlreadyAnswered(_) => (S::CONFLICT, "already_answered"),
            Trouble::BusyElsewhere { .. } => (S::CONFLICT, "session_busy_elsewhere"),
            Trouble::QueueFull(_) => (S::TOO_MANY_REQUESTS, "queue_full"),
            Trouble::NotOpen(_) => (S::CONFLICT, "session_closed"),
            Trouble::Borrowed(_) => (S::CONFLICT, "session_borrowed"),
            Trouble::NotResumable(_) => (S::CONFLICT, "not_resumable"),
            Trouble::CannotAsk(_) => (S::UNPROCESSABLE_ENTITY, "cannot_ask"),
            Trouble::Invalid(_) => (S::BAD_REQUEST, "invalid_request"),
            Trouble::Unprocessable(_) => (S::UNPROCESSABLE_ENTITY, "unprocessable"),
            Trouble::NotOpened(_) => (S::UNPROCESSABLE_ENTITY, "not_opened"),
            Trouble::Stopping => (S::SERVICE_UNAVAILABLE, "stopping"),
            Trouble::NoEntry => (S::CONFLICT, "no_entry"),
            Trouble::RunEnded(_) => (S::CONFLICT, "run_ended"),
            Trouble::RunUnderWay(_) => (S::CONFLICT, "run_under_way"),
            Trouble::Store(_) => (S::INTERNAL_SERVER_ERROR, "store"),
        };
        Self::new(status, code, trouble.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
