//! Streams of server-sent events.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, unfold};
use futures_util::{Stream, StreamExt};
use hangar_registry::frame::{self, StreamItem};
use hangar_registry::subscription::Subscription;
use serde::Serialize;
use tokio::time::Instant;

use super::Of;
use crate::problem::Problem;

/// Interval of heartbeats on an idle stream.
pub(super) const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);
/// Time for which events that follow another are batched. An event after silence is sent at once; a stream of small
/// deltas costs each of many readers a hundred writes a second, not a thousand.
const GATHER: Duration = Duration::from_millis(10);
/// Maximum size of one write to a connection.
const CHUNK: usize = 64 << 10;

/// The last event that a reader has who comes back.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(id) = headers.get("last-event-id").filter(|id| !id.is_empty()) else { return Ok(None) };
    match id.to_str().ok().and_then(|id| id.trim().parse().ok()) {
        Some(id) => Ok(Some(id)),
        None => Err(Problem::invalid("the `Last-Event-ID` is not the number of an event")),
    }
}

pub(super) fn response(
    chunks: impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send + 'static,
) -> Response {
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies must not collect what is meant for now.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn frame_of(item: StreamItem) -> Bytes {
    match item {
        StreamItem::Event(event) => event.bytes(),
        StreamItem::Session(frame) => frame,
    }
}

/// A session, for one reader.
pub(super) fn session(subscription: Subscription) -> Response {
    // Something is sent at once, so that a reader knows that it is connected.
    let beginning = stream::iter([Ok(frame::HEARTBEAT)]);
    let reading = Reading { subscription: Some(subscription), told: None };
    response(beginning.chain(unfold(reading, |mut reading| async move {
        let chunk = reading.next().await?;
        Some((Ok(chunk), reading))
    })))
}

struct Reading {
    /// Gone once the session is.
    subscription: Option<Subscription>,
    /// Time of the last live event that was sent.
    told: Option<Instant>,
}

impl Reading {
    /// Next bytes for the wire. `None` for a reader that fell behind: it reconnects with the number of its last event.
    async fn next(&mut self) -> Option<Bytes> {
        let subscription = self.subscription.as_mut()?;
        if let Some(told) = self.told {
            tokio::time::sleep_until(told + GATHER).await;
        }
        let first = match tokio::time::timeout(HEARTBEAT_EVERY, subscription.next()).await {
            Err(_) => return Some(frame::HEARTBEAT),
            Ok(Ok(Some(item))) => frame_of(item),
            Ok(Ok(None)) => {
                self.subscription = None;
                return Some(frame::END);
            }
            Ok(Err(_)) => return None,
        };
        self.told = subscription.is_live().then(Instant::now);
        // Events from the meantime are included.
        let mut chunk = BytesMut::new();
        while first.len().max(chunk.len()) < CHUNK
            && let Some(item) = subscription.ready()
        {
            if chunk.is_empty() {
                chunk.extend_from_slice(&first);
            }
            chunk.extend_from_slice(&frame_of(item));
        }
        Some(if chunk.is_empty() { first } else { chunk.freeze() })
    }
}

#[derive(Serialize)]
struct Hello<'a> {
    boot: &'a str,
}

/// Stream of resource changes, for clients that have loaded the lists.
pub(super) async fn resources(State(app): Of) -> Response {
    let feed = app.hub.feed().await;
    let hello = Some(frame::named("hello", &Hello { boot: app.hub.boot() }));
    response(unfold((app.hub, feed, hello), |(hub, mut feed, hello)| async move {
        if let Some(hello) = hello {
            return Some((Ok(hello), (hub, feed, None)));
        }
        let message = tokio::select! {
            message = tokio::time::timeout(HEARTBEAT_EVERY, feed.recv()) => message,
            () = hub.stopping().cancelled() => return None,
        };
        match message {
            Err(_) => Some((Ok(frame::HEARTBEAT), (hub, feed, None))),
            Ok(Ok(message)) => Some((Ok(message), (hub, feed, None))),
            // A client that fell behind loads the lists again.
            Ok(Err(_)) => None,
        }
    }))
}
