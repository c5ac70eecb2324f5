//! Refusals, as `application/problem+json`: what is wrong, in a sentence, and a word for programs.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hangar_registry::trouble::Trouble;
use schemars::JsonSchema;
use serde::Serialize;

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
        let detail = match advice(&trouble) {
            Some(advice) => format!("{trouble}; {advice}"),
            None => trouble.to_string(),
        };
        Self::new(status, code, detail)
    }
}

/// What somebody who uses the API can do about it.
fn advice(trouble: &Trouble) -> Option<String> {
    let lists = |what: &str| Some(format!("GET /api/v1/{what} lists those that there are"));
    match trouble {
        Trouble::NoSession(_) => lists("sessions"),
        Trouble::NoRuntime(_) => lists("runtimes"),
        Trouble::NoRun(_) => lists("runs"),
        Trouble::NoJob(_) => lists("jobs"),
        Trouble::NoApproval(_) => Some("GET /api/v1/approvals lists those that are open".to_owned()),
        Trouble::Stopping => Some("start the portal again with: hangar up".to_owned()),
        Trouble::NoEntry => Some("start with --entry FILE or PUT /api/v1/jobs/entry".to_owned()),
        Trouble::RunEnded(run) => Some(format!("POST /api/v1/runs/{run}/retry starts it anew")),
        // These say themselves what to do.
        Trouble::AlreadyAnswered(_)
        | Trouble::BusyElsewhere { .. }
        | Trouble::QueueFull(_)
        | Trouble::NotOpen(_)
        | Trouble::Borrowed(_)
        | Trouble::NotResumable(_)
        | Trouble::CannotAsk(_)
        | Trouble::Invalid(_)
        | Trouble::Unprocessable(_)
        | Trouble::NotOpened(_)
        | Trouble::RunUnderWay(_)
        | Trouble::Store(_) => None,
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
