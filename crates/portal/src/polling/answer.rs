//! Answers: JSON with status 200, whatever became of the request, except where there is nothing to ask or nothing worked.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use crate::guard::ChangePermit;

/// Why a request was not done, by the names that clients know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum PollingError {
    ModelIdNotFound,
    WorkingDirectoryNotAbsolutePath,
    WorkingDirectoryNotExists,
    SessionNotFound,
    SessionClosed,
    TaskNotFound,
    TaskClosed,
    /// The task works in a leased session, and ends by itself.
    TaskCannotClose,
    JobNotFound,
    JobsClosed,
    HttpRequestTimeout,
    ParallelCallNotSupported,
}

/// Response to a request.
#[derive(Debug)]
pub(crate) enum PollingResponse {
    Done(serde_json::Value),
    Refused(PollingError),
    UnknownEndpoint,
    /// The request may come from another site's page.
    Foreign,
    /// A browser may fetch an address that nobody meant to visit, such as a link in a terminal.
    PostOnly,
    /// The client sent something that cannot be read.
    Unreadable(StatusCode, String),
    Failed(String),
}

impl PollingResponse {
    pub(crate) fn of(value: &impl Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => Self::Done(value),
            Err(error) => Self::Failed(error.to_string()),
        }
    }

    pub(crate) fn closed() -> Self {
        Self::Done(json!({ "result": "Closed" }))
    }
}

impl From<PollingError> for PollingResponse {
    fn from(refusal: PollingError) -> Self {
        Self::Refused(refusal)
    }
}

impl IntoResponse for PollingResponse {
    fn into_response(self) -> Response {
        let (status, body) = match self {
            Self::Done(body) => (StatusCode::OK, body),
            Self::Refused(refusal) => (StatusCode::OK, json!({ "error": refusal })),
            Self::UnknownEndpoint => (StatusCode::NOT_FOUND, json!({ "error": "Unknown API endpoint" })),
            Self::Foreign => (StatusCode::FORBIDDEN, json!({ "error": ChangePermit::REFUSAL })),
            Self::PostOnly => (StatusCode::METHOD_NOT_ALLOWED, json!({ "error": "POST stops the server" })),
            Self::Unreadable(status, error) => (status, json!({ "error": error })),
            Self::Failed(error) => (StatusCode::INTERNAL_SERVER_ERROR, json!({ "error": error })),
        };
        (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
    }
}
