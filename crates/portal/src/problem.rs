//! Refusals, as `application/problem+json`: what is wrong, in a sentence, and a word for programs.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hangar_registry::error::RegistryError;
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

impl From<RegistryError> for Problem {
    fn from(error: RegistryError) -> Self {
        use StatusCode as S;
        let (status, code) = match &error {
            RegistryError::NoSession(_) => (S::NOT_FOUND, "session_not_found"),
            RegistryError::NoRuntime(_) => (S::NOT_FOUND, "runtime_not_found"),
            RegistryError::NoRun(_) => (S::NOT_FOUND, "run_not_found"),
            RegistryError::NoJob(_) => (S::NOT_FOUND, "job_not_found"),
            RegistryError::NoApproval(_) => (S::NOT_FOUND, "approval_not_found"),
            RegistryError::AlreadyAnswered(_) => (S::CONFLICT, "already_answered"),
            RegistryError::BusyElsewhere { .. } => (S::CONFLICT, "session_busy_elsewhere"),
            RegistryError::OpenElsewhere(_) | RegistryError::Unreachable { .. } => {
                (S::CONFLICT, "session_open_elsewhere")
            }
            RegistryError::QueueFull(_) => (S::TOO_MANY_REQUESTS, "queue_full"),
            RegistryError::NotOpen(_) => (S::CONFLICT, "session_closed"),
            RegistryError::Leased(_) => (S::CONFLICT, "session_borrowed"),
            RegistryError::NotResumable(_) => (S::CONFLICT, "not_resumable"),
            RegistryError::CannotAsk(_) => (S::UNPROCESSABLE_ENTITY, "cannot_ask"),
            RegistryError::Invalid(_) => (S::BAD_REQUEST, "invalid_request"),
            RegistryError::Unprocessable(_) => (S::UNPROCESSABLE_ENTITY, "unprocessable"),
            RegistryError::NotOpened(_) => (S::UNPROCESSABLE_ENTITY, "not_opened"),
            RegistryError::Stopping => (S::SERVICE_UNAVAILABLE, "stopping"),
            RegistryError::Fleet(_) => (S::SERVICE_UNAVAILABLE, "fleet_unavailable"),
            RegistryError::NoEntry => (S::CONFLICT, "no_entry"),
            RegistryError::RunEnded(_) => (S::CONFLICT, "run_ended"),
            RegistryError::RunUnderWay(_) => (S::CONFLICT, "run_under_way"),
            RegistryError::Store(_) => (S::INTERNAL_SERVER_ERROR, "store"),
        };
        let detail = match advice(&error) {
            Some(advice) => format!("{error}; {advice}"),
            None => error.to_string(),
        };
        Self::new(status, code, detail)
    }
}

/// Advice for the user of the API.
fn advice(error: &RegistryError) -> Option<String> {
    let lists = |what: &str| Some(format!("GET /api/v1/{what} lists those that there are"));
    match error {
        RegistryError::NoSession(_) => lists("sessions"),
        RegistryError::NoRuntime(_) => lists("runtimes"),
        RegistryError::NoRun(_) => lists("runs"),
        RegistryError::NoJob(_) => lists("jobs"),
        RegistryError::NoApproval(_) => Some("GET /api/v1/approvals lists those that are open".to_owned()),
        RegistryError::Stopping => Some("start the portal again with: hangar up".to_owned()),
        RegistryError::NoEntry => Some("start with --entry FILE or PUT /api/v1/jobs/entry".to_owned()),
        RegistryError::RunEnded(run) => Some(format!("POST /api/v1/runs/{run}/retry starts it anew")),
        // These say themselves what to do.
        RegistryError::AlreadyAnswered(_)
        | RegistryError::BusyElsewhere { .. }
        | RegistryError::OpenElsewhere(_)
        | RegistryError::Unreachable { .. }
        | RegistryError::QueueFull(_)
        | RegistryError::NotOpen(_)
        | RegistryError::Leased(_)
        | RegistryError::NotResumable(_)
        | RegistryError::CannotAsk(_)
        | RegistryError::Invalid(_)
        | RegistryError::Unprocessable(_)
        | RegistryError::NotOpened(_)
        | RegistryError::RunUnderWay(_)
        | RegistryError::Fleet(_)
        | RegistryError::Store(_) => None,
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
