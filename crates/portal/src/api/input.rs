//! Inputs of requests, validated before a handler sees them.

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use hangar_registry::error::RegistryError;
use hangar_store::SessionId;
use serde::de::DeserializeOwned;

use super::{App, BodyLimit};
use crate::problem::Problem;
use crate::serve::Stalled;

/// The body, as JSON. Members that do not exist are named.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &App) -> Result<Self, Problem> {
        // A page of another site can send a form or a text without a preflight request, but no JSON.
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_json = kind.is_some_and(|kind| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind.eq_ignore_ascii_case("application/json")
        });
        if !is_json {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "json_required",
                "send the body as JSON, with `content-type: application/json`",
            ));
        }
        let limit = match request.extensions().get::<BodyLimit>() {
            Some(BodyLimit(bytes)) => format!("{} KB", bytes >> 10),
            None => format!("{} MB", super::MAX_BODY >> 20),
        };
        let bytes = bytes::Bytes::from_request(request, state).await.map_err(|rejection| {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                let detail = format!("the body is larger than {limit}");
                return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail);
            }
            if Stalled::caused(&rejection) {
                return Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", Stalled.to_string());
            }
            Problem::invalid("the body could not be read")
        })?;
        // A list of values would do for a type with members, too.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(Problem::invalid("the body has to be a JSON object"));
        }
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Problem::invalid(format!("the body is invalid: {error}")))
    }
}

/// Validated length of a page.
pub(super) fn count(limit: Option<u64>, usual: u64, most: u64) -> Result<u64, Problem> {
    match limit {
        Some(0) => Err(Problem::invalid("a `limit` of 0 asks for nothing")),
        limit => Ok(limit.unwrap_or(usual).min(most)),
    }
}

/// Query parameters.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        axum::extract::Query::try_from_uri(&parts.uri).map(|axum::extract::Query(query)| Self(query)).map_err(
            |rejection| {
                let why = std::error::Error::source(&rejection).map(ToString::to_string);
                let why = why.unwrap_or_else(|| rejection.to_string());
                Problem::invalid(format!("the query is invalid: {why}"))
            },
        )
    }
}

/// The session that a path names.
pub(super) struct Id(pub(super) SessionId);

impl FromRequestParts<App> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &App) -> Result<Self, Problem> {
        let Name(text) = Name::from_request_parts(parts, state).await?;
        text.parse().map(Self).map_err(|_| RegistryError::NoSession(text).into())
    }
}

/// Any other name in a path.
pub(super) struct Name(pub(super) String);

impl FromRequestParts<App> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &App) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(text)| Self(text)).map_err(|_| Problem::invalid("the path is not valid UTF-8"))
    }
}
