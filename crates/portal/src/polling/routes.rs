//! Paths and what they mean. Any method will do, with two exceptions: a GET that changes something has to come from a client
//! that may send one, and a browser that visits the address does not stop the server. The body is plain text.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::any;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::json;

use super::Polling;
use super::answer::{PollingError, PollingResponse};
use super::item::PollItem;
use super::live::{self, PollLog, Reader};
use crate::guard::{ChangePermit, is_navigation};
use crate::serve::Stalled;

/// Maximum size of a body: a prompt, or a path.
const MOST_BODY: usize = 4 << 20;

pub fn routes<S>(polling: Arc<Polling>) -> Router<S> {
    Router::new()
        .route("/api", any(dispatch))
        .route("/api/", any(dispatch))
        .route("/api/{*path}", any(dispatch))
        .with_state(polling)
}

async fn dispatch(State(polling): State<Arc<Polling>>, request: Request) -> PollingResponse {
    let (head, body) = request.into_parts();
    let Some(path) = head.uri.path().strip_prefix("/api/") else { return PollingResponse::UnknownEndpoint };
    // Decoded after it was split: a name may have a slash in it.
    let decoded = |segment| percent_decode_str(segment).decode_utf8();
    let Ok(segments) = path.split('/').map(decoded).collect::<Result<Vec<Cow<'_, str>>, _>>() else {
        return PollingResponse::UnknownEndpoint;
    };
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    if !only_tells(&segments) && head.extensions.get() != Some(&ChangePermit::Admitted) {
        return PollingResponse::Foreign;
    }
    if segments == ["stop"] && is_navigation(&head.headers) {
        return PollingResponse::PostOnly;
    }
    polling.answer(&segments, Text(body)).await
}

/// Whether a path is read-only. Polled items are returned once, and listing models may start an agent.
fn only_tells(path: &[&str]) -> bool {
    matches!(
        path,
        ["config" | "test" | "token"]
            | ["copilot", "task" | "job"]
            | ["copilot", "job", "running"]
            | ["copilot", "job", _, "status"]
    )
}

/// A body that has not been read.
pub(crate) struct Text(Body);

impl Text {
    pub(crate) async fn read(self) -> Result<String, PollingResponse> {
        let bytes = to_bytes(self.0, MOST_BODY).await.map_err(|error| match Stalled::caused(&error) {
            true => PollingResponse::Unreadable(StatusCode::REQUEST_TIMEOUT, Stalled.to_string()),
            false => {
                let error = format!("the body could not be read, or has more than {MOST_BODY} bytes");
                PollingResponse::Unreadable(StatusCode::PAYLOAD_TOO_LARGE, error)
            }
        })?;
        String::from_utf8(bytes.into()).map_err(|_| {
            PollingResponse::Unreadable(StatusCode::BAD_REQUEST, "the body is not UTF-8".to_owned())
        })
    }
}

/// The names of what can be wrong with what is polled.
struct Words {
    not_found: PollingError,
    closed: PollingError,
}

const SESSION: Words =
    Words { not_found: PollingError::SessionNotFound, closed: PollingError::SessionClosed };
const TASK: Words = Words { not_found: PollingError::TaskNotFound, closed: PollingError::TaskClosed };
const JOB: Words = Words { not_found: PollingError::JobNotFound, closed: PollingError::JobsClosed };

impl Polling {
    async fn answer(&self, path: &[&str], body: Text) -> PollingResponse {
        self.route(path, body).await.unwrap_or_else(|answer| answer)
    }

    async fn route(&self, path: &[&str], body: Text) -> Result<PollingResponse, PollingResponse> {
        let (path, reader) = match path {
            [path @ .., "live", token] => (path, Some(Reader::Token((*token).to_owned()))),
            [path @ .., "live"] => (path, Some(Reader::Plain)),
            path => (path, None),
        };
        if let Some(reader) = reader {
            return Ok(self.poll(path, reader).await);
        }
        Ok(match path {
            ["config"] => self.config(),
            ["test"] => PollingResponse::Done(json!({ "message": "Hello, world!" })),
            ["stop"] => self.stop(),
            ["token"] => PollingResponse::Done(json!({ "token": uuid::Uuid::new_v4().to_string() })),
            ["copilot", "models"] => self.models().await,
            ["copilot", "session", "start", model] => self.start_session(model, &body.read().await?).await,
            ["copilot", "session", id, "stop"] => self.stop_session(id).await,
            ["copilot", "session", id, "query"] => self.query(id, body.read().await?).await,
            ["copilot", "test", "installJobsEntry"] if self.test => self.install(&body.read().await?).await,
            ["copilot", "task"] => self.list_tasks(),
            ["copilot", "task", "start", name, "session", id] => self.start_task(name, id, body).await?,
            ["copilot", "task", id, "stop"] => self.stop_task(id).await,
            ["copilot", "job"] => self.list_jobs(),
            ["copilot", "job", "running"] => self.running_jobs(),
            ["copilot", "job", "start", name] => self.start_job(name, body).await?,
            ["copilot", "job", id, "status"] => self.job_status(id),
            ["copilot", "job", id, "stop"] => self.stop_job(id).await,
            _ => PollingResponse::UnknownEndpoint,
        })
    }

    async fn poll(&self, path: &[&str], reader: Reader) -> PollingResponse {
        match path {
            ["copilot", "session", id] => {
                let session = self.tables.sessions.find(id);
                self.read(session.as_deref().map(|session| &session.log), reader, SESSION).await
            }
            ["copilot", "task", id] => {
                let task = self.tables.tasks.find(id);
                self.read(task.as_deref().map(|task| &task.log), reader, TASK).await
            }
            ["copilot", "job", id] => {
                let job = self.tables.jobs.find(id);
                self.read(job.as_deref().map(|job| &job.log), reader, JOB).await
            }
            _ => PollingResponse::UnknownEndpoint,
        }
    }

    async fn read<T: PollItem + Serialize>(
        &self,
        log: Option<&PollLog<T>>,
        reader: Reader,
        words: Words,
    ) -> PollingResponse {
        let Some(log) = log else { return words.not_found.into() };
        let read = tokio::select! {
            read = log.read(reader) => read,
            // A server that stops ends all waits.
            () = self.hub.stopping().cancelled() => live::PollAnswer::TimedOut,
        };
        match read {
            live::PollAnswer::One(item) => PollingResponse::of(&item),
            live::PollAnswer::Many(items) => PollingResponse::of(&json!({ "responses": items })),
            live::PollAnswer::TimedOut => PollingError::HttpRequestTimeout.into(),
            live::PollAnswer::Parallel => PollingError::ParallelCallNotSupported.into(),
            live::PollAnswer::Closed => words.closed.into(),
            live::PollAnswer::NotFound => words.not_found.into(),
        }
    }
}
