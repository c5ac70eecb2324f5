//! One connection: a message per line, requests both ways.
//!
//! What waits to be written is bounded by bytes. A client that stops reading is cut off: it can come back and load its
//! sessions, while memory that grows behind it cannot be had back.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hangar_protocol::rpc::{ErrorObject, Id, Message};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Longest line that is read: a prompt with its images.
const MAX_LINE: usize = 64 << 20;
/// Bytes that may wait for a client.
const MAX_QUEUED: usize = 64 << 20;
/// Whoever has much to say waits until no more than this waits for the client.
const COMFORTABLE: usize = 4 << 20;
/// What a waiting line costs besides its bytes.
const LINE_OVERHEAD: usize = 64;
/// How long the last lines may take to reach a client.
const LAST_WORDS: Duration = Duration::from_secs(2);

type Answer = Result<Box<RawValue>, ErrorObject>;

/// The client did not answer as it should, or not at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerError {
    #[error("the client is gone")]
    Gone,
    #[error("the client refused: {}", .0.message)]
    Refused(ErrorObject),
    #[error("the client's answer is not as expected: {0}")]
    Unexpected(serde_json::Error),
}

/// The sending half of a connection.
#[derive(Clone)]
pub(crate) struct Peer(Arc<Shared>);

struct Shared {
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    queued: AtomicUsize,
    written: Notify,
    next_id: AtomicI64,
    waiting: Mutex<HashMap<i64, oneshot::Sender<Answer>>>,
    closed: CancellationToken,
}

/// The lines that wait to be written.
pub(crate) struct Outgoing(mpsc::UnboundedReceiver<Vec<u8>>);

impl Peer {
    pub(crate) fn new() -> (Self, Outgoing) {
        let (outgoing, lines) = mpsc::unbounded_channel();
        let shared = Shared {
            outgoing,
            queued: AtomicUsize::new(0),
            written: Notify::new(),
            next_id: AtomicI64::new(0),
            waiting: Mutex::default(),
            closed: CancellationToken::new(),
        };
        (Self(Arc::new(shared)), Outgoing(lines))
    }

    fn send(&self, message: &Message) {
        let mut line = message.to_bytes();
        line.push(b'\n');
        let cost = line.len() + LINE_OVERHEAD;
        let before = self.0.queued.fetch_add(cost, Ordering::Relaxed);
        if before > 0 && before + cost > MAX_QUEUED {
            tracing::warn!(
                queued = before,
                "the client does not read what it is sent; closing its connection"
            );
            self.close();
            return;
        }
        // A connection that is gone loses what is sent to it.
        let _ = self.0.outgoing.send(line);
    }

    pub(crate) fn notify(&self, method: &str, params: &impl Serialize) {
        self.send(&Message::Notification { method: method.to_owned(), params: raw(params) });
    }

    pub(crate) fn respond(&self, id: Id, result: Result<impl Serialize, ErrorObject>) {
        let result =
            result.and_then(|value| raw(&value).ok_or_else(|| internal("the answer has no form in JSON")));
        self.send(&Message::Response { id: Some(id), result });
    }

    /// Refuses something that is no proper message.
    pub(crate) fn refuse(&self, id: Option<Id>, error: ErrorObject) {
        self.send(&Message::Response { id, result: Err(error) });
    }

    /// Asks the client and waits for its answer or its end.
    pub(crate) async fn request<T: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, PeerError> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.waiting().insert(id, answer);
        // Whoever stops waiting takes the question back.
        let _forget = Forget { peer: self, id };
        self.send(&Message::Request { id: Id::Number(id), method: method.to_owned(), params: raw(params) });
        let answer = tokio::select! {
            answer = answered => answer.map_err(|_| PeerError::Gone)?,
            () = self.0.closed.cancelled() => return Err(PeerError::Gone),
        };
        let result = answer.map_err(PeerError::Refused)?;
        serde_json::from_str(result.get()).map_err(PeerError::Unexpected)
    }

    /// Hands the client's answer to whoever asked.
    pub(crate) fn answered(&self, id: Option<Id>, result: Answer) {
        if let Some(Id::Number(id)) = id
            && let Some(waiting) = self.waiting().remove(&id)
        {
            let _ = waiting.send(result);
        }
    }

    /// Waits until the client has taken most of what it was sent.
    pub(crate) async fn keep_pace(&self) {
        while self.0.queued.load(Ordering::Relaxed) > COMFORTABLE && !self.0.closed.is_cancelled() {
            tokio::select! {
                () = self.0.written.notified() => {}
                () = self.0.closed.cancelled() => {}
            }
        }
    }

    pub(crate) fn close(&self) {
        self.0.closed.cancel();
    }

    pub(crate) async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Answer>>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes until the client is gone.
    pub(crate) async fn write(&self, writer: &mut (impl AsyncWrite + Unpin), outgoing: &mut Outgoing) {
        while let Some(line) = outgoing.0.recv().await {
            if let Err(error) = self.put(writer, &line).await {
                tracing::debug!(%error, "writing to the client failed");
                return;
            }
            if outgoing.0.is_empty() && writer.flush().await.is_err() {
                return;
            }
        }
    }

    /// Writes what is left to say, to a client that may have stopped listening.
    pub(crate) async fn finish(&self, writer: &mut (impl AsyncWrite + Unpin), outgoing: &mut Outgoing) {
        let rest = async {
            while let Ok(line) = outgoing.0.try_recv() {
                if self.put(writer, &line).await.is_err() {
                    return;
                }
            }
            // The client may be gone, which is why this is the end.
            let _ = writer.flush().await;
        };
        let _ = tokio::time::timeout(LAST_WORDS, rest).await;
    }

    async fn put(&self, writer: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> io::Result<()> {
        writer.write_all(line).await?;
        self.0.queued.fetch_sub(line.len() + LINE_OVERHEAD, Ordering::Relaxed);
        self.0.written.notify_waiters();
        Ok(())
    }
}

struct Forget<'a> {
    peer: &'a Peer,
    id: i64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.peer.waiting().remove(&self.id);
    }
}

pub(crate) fn internal(message: impl Into<String>) -> ErrorObject {
    error(hangar_protocol::rpc::codes::INTERNAL_ERROR, message)
}

pub(crate) fn error(code: i64, message: impl Into<String>) -> ErrorObject {
    ErrorObject { code, message: message.into(), data: None }
}

/// Values of ours always have a form in JSON.
fn raw(value: &impl Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

/// The lines of a client.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(Vec<u8>),
    /// The line was longer than lines may be; it is gone.
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader) }
    }

    /// The next line that is not empty; `None` when there will be none.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let buffer = self.reader.fill_buf().await?;
            if buffer.is_empty() {
                // What ends without a newline may be half a message.
                return Ok(None);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            if line.len() + piece.len() > MAX_LINE {
                too_long = true;
                line = Vec::new();
            } else if !too_long {
                line.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_none() {
                continue;
            }
            if too_long {
                return Ok(Some(Line::TooLong));
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(Line::Text(line)));
            }
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(input: &[u8], expected: &[Line]) {
        let mut lines = Lines::new(input);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(line);
        }
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn empty_lines_are_skipped_and_half_a_line_is_none() {
        let text = |text: &str| Line::Text(text.as_bytes().to_vec());
        check(b"a\n\n \r\nb\r\nhalf", &[text("a"), text("b\r")]).await;
        check(b"", &[]).await;
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_named_and_the_next_one_is_read() {
        let mut input = vec![b'x'; MAX_LINE + 1];
        input.extend_from_slice(b"\nnext\n");
        check(&input, &[Line::TooLong, Line::Text(b"next".to_vec())]).await;
    }

    #[tokio::test]
    async fn a_client_that_stops_reading_is_cut_off() {
        let (peer, _outgoing) = Peer::new();
        let big = "x".repeat(8 << 20);
        for _ in 0..16 {
            peer.notify("session/update", &big);
        }
        peer.closed().await;
        assert!(matches!(peer.request::<()>("x", &()).await, Err(PeerError::Gone)));
    }
}
