//! The sending half of a JSON-RPC connection: notifications, requests and responses, with backpressure. The owner of the
//! connection reads and interprets messages; [`LineReader`] reads those that are framed by lines.
//!
//! The write queue is bounded by bytes. A peer that stops reading is disconnected: it can reconnect and resume its sessions,
//! while the memory of a queue that grows cannot be reclaimed.

mod accept;
mod lines;
mod pending;

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use hangar_protocol::rpc::{self, ErrorObject, Id, RpcMessage};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub use accept::accept;
pub use lines::{LineReader, LineSplitter, ReadLine};
pub use pending::{PendingConnection, PendingConnections};

/// Largest write queue in bytes. A single message may be larger if the queue is empty.
const MAX_QUEUED: usize = 64 << 20;
/// Senders of much data wait until the queue is below this.
const COMFORTABLE: usize = 4 << 20;
/// Overhead of a queued frame beside its bytes.
const FRAME_OVERHEAD: usize = 64;
/// Queued frames are joined into one write up to this size.
const WRITE_TOGETHER: usize = 32 << 10;
/// Longest error message. Some quote their input, which may be as long as a frame.
const MAX_ERROR: usize = 4 << 10;
/// Timeout for flushing the queue when a connection closes.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// An encoded message, shared between the peers that it is sent to.
pub type EncodedMessage = Arc<[u8]>;
/// Result of a request.
pub type RpcResult = Result<Box<RawValue>, ErrorObject>;

/// Framing of messages on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// A `Content-Length` header before each message.
    Length,
    /// One message per line.
    Line,
}

impl Framing {
    pub fn frame(self, message: &RpcMessage) -> EncodedMessage {
        let mut bytes = message.to_bytes();
        match self {
            Framing::Length => rpc::encode(&bytes).into(),
            Framing::Line => {
                bytes.push(b'\n');
                bytes.into()
            }
        }
    }
}

/// Truncates an error message that is too long.
fn short(mut error: ErrorObject) -> ErrorObject {
    if error.message.len() > MAX_ERROR {
        error.message.truncate(error.message.floor_char_boundary(MAX_ERROR));
        error.message.push('…');
    }
    error
}

/// Failure of a request.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("the client is gone")]
    Gone,
    #[error("{}", .0.message)]
    Refused(ErrorObject),
    #[error("the client's answer is not as expected: {0}")]
    Unexpected(serde_json::Error),
}

/// The sending half of a connection.
#[derive(Clone)]
pub struct Peer(Arc<Shared>);

struct Shared {
    framing: Framing,
    outgoing: mpsc::UnboundedSender<EncodedMessage>,
    queued: AtomicUsize,
    written: Notify,
    next_id: AtomicI64,
    waiting: Mutex<HashMap<i64, oneshot::Sender<RpcResult>>>,
    closed: CancellationToken,
}

/// The queue of frames to write.
pub struct Outgoing(mpsc::UnboundedReceiver<EncodedMessage>);

impl Peer {
    pub fn new(framing: Framing) -> (Self, Outgoing) {
        let (outgoing, frames) = mpsc::unbounded_channel();
        let shared = Shared {
            framing,
            outgoing,
            queued: AtomicUsize::new(0),
            written: Notify::new(),
            next_id: AtomicI64::new(0),
            waiting: Mutex::default(),
            closed: CancellationToken::new(),
        };
        (Self(Arc::new(shared)), Outgoing(frames))
    }

    /// Queues a frame.
    pub fn send(&self, frame: EncodedMessage) {
        let cost = frame.len() + FRAME_OVERHEAD;
        let before = self.0.queued.fetch_add(cost, Ordering::Relaxed);
        if before > 0 && before + cost > MAX_QUEUED {
            tracing::warn!(queued = before, "a client does not read what it is sent; closing its connection");
            self.close();
            return;
        }
        // A connection that is gone loses what is sent to it.
        let _ = self.0.outgoing.send(frame);
    }

    fn say(&self, message: &RpcMessage) {
        self.send(self.0.framing.frame(message));
    }

    pub fn notify(&self, method: &str, params: &impl Serialize) {
        self.say(&RpcMessage::Notification { method: method.to_owned(), params: raw(params) });
    }

    pub fn respond(&self, id: Id, result: RpcResult) {
        self.say(&RpcMessage::Response { id: Some(id), result: result.map_err(short) });
    }

    /// Refuses something that may be no proper message, and then has no name.
    pub fn refuse(&self, id: Option<Id>, error: ErrorObject) {
        self.say(&RpcMessage::Response { id, result: Err(short(error)) });
    }

    /// Asks the other side and waits for its answer or its end.
    pub async fn request<T: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, PeerError> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.waiting().insert(id, answer);
        // A caller that stops waiting withdraws its request.
        let _forget = Forget { peer: self, id };
        self.say(&RpcMessage::Request { id: Id::Number(id), method: method.to_owned(), params: raw(params) });
        let answer = tokio::select! {
            answer = answered => answer.map_err(|_| PeerError::Gone)?,
            () = self.0.closed.cancelled() => return Err(PeerError::Gone),
        };
        let result = answer.map_err(PeerError::Refused)?;
        rpc::read(result.get()).map_err(PeerError::Unexpected)
    }

    /// Delivers an answer of the other side to its caller.
    pub fn answered(&self, id: Option<Id>, result: RpcResult) {
        if let Some(Id::Number(id)) = id
            && let Some(waiting) = self.waiting().remove(&id)
        {
            let _ = waiting.send(result);
        }
    }

    /// Waits until the other side has taken most of what it was sent.
    pub async fn keep_pace(&self) {
        self.until_queued(COMFORTABLE).await;
    }

    /// Waits until the other side has taken all that it was sent.
    pub async fn drained(&self) {
        self.until_queued(0).await;
    }

    async fn until_queued(&self, most: usize) {
        loop {
            // Made before the look: what is written in between counts.
            let written = self.0.written.notified();
            if self.0.queued.load(Ordering::Relaxed) <= most || self.is_closed() {
                return;
            }
            tokio::select! {
                () = written => {}
                () = self.0.closed.cancelled() => {}
            }
        }
    }

    /// Ends the connection. Questions have no answer from now on.
    pub fn close(&self) {
        self.0.closed.cancel();
    }

    pub async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    /// Whether both are halves of the same connection.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub fn is_closed(&self) -> bool {
        self.0.closed.is_cancelled()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<RpcResult>>> {
        self.0.waiting.lock()
    }

    /// Writes until the other side is gone.
    pub async fn write(&self, writer: &mut (impl AsyncWrite + Unpin), Outgoing(frames): &mut Outgoing) {
        let mut together = Vec::new();
        while let Some(first) = frames.recv().await {
            // Events come in bursts of small frames, and a write costs more than the copy of a few.
            together.clear();
            let mut cost = first.len() + FRAME_OVERHEAD;
            while together.len() + first.len() < WRITE_TOGETHER
                && let Ok(next) = frames.try_recv()
            {
                if together.is_empty() {
                    together.extend_from_slice(&first);
                }
                cost += next.len() + FRAME_OVERHEAD;
                together.extend_from_slice(&next);
            }
            let bytes = if together.is_empty() { &first[..] } else { &together[..] };
            let mut done = writer.write_all(bytes).await;
            if done.is_ok() && frames.is_empty() {
                done = writer.flush().await;
            }
            if let Err(error) = done {
                tracing::debug!(%error, "writing to a client failed");
                return;
            }
            self.took(cost);
            together.shrink_to(WRITE_TOGETHER);
        }
    }

    /// Writes what is left to say, to a peer that may have stopped listening.
    pub async fn finish(&self, writer: &mut (impl AsyncWrite + Unpin), Outgoing(frames): &mut Outgoing) {
        let rest = async {
            while let Ok(frame) = frames.try_recv() {
                if writer.write_all(&frame).await.is_err() {
                    return;
                }
                self.took(frame.len() + FRAME_OVERHEAD);
            }
            // The peer may be gone, which is why this is the end.
            let _ = writer.flush().await;
        };
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, rest).await;
    }

    /// Frames that cost so much no longer wait.
    fn took(&self, cost: usize) {
        self.0.queued.fetch_sub(cost, Ordering::Relaxed);
        self.0.written.notify_waiters();
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

/// Values of ours always have a form in JSON.
pub fn raw(value: &impl Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(framing: Framing, expected: &str) {
        let message = RpcMessage::Notification { method: "tick".to_owned(), params: raw(&json!({ "n": 1 })) };
        assert_eq!(String::from_utf8_lossy(&framing.frame(&message)), expected);
    }

    #[test]
    fn a_message_is_framed_by_its_length_or_by_the_end_of_its_line() {
        let body = r#"{"jsonrpc":"2.0","method":"tick","params":{"n":1}}"#;
        check(Framing::Length, &format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        check(Framing::Line, &format!("{body}\n"));
    }

    #[tokio::test]
    async fn an_error_does_not_send_back_all_that_it_is_about() {
        let (peer, mut outgoing) = Peer::new(Framing::Line);
        let error = |message| ErrorObject { code: 1, message, data: None };
        peer.refuse(None, error("ä".repeat(MAX_ERROR)));
        peer.respond(Id::Number(1), Err(error("x".repeat(MAX_ERROR + 1))));
        let mut written = Vec::new();
        peer.finish(&mut written, &mut outgoing).await;
        let messages: Vec<Value> = written
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        let texts: Vec<&str> = messages.iter().filter_map(|one| one["error"]["message"].as_str()).collect();
        assert_eq!(texts, ["ä".repeat(MAX_ERROR / 2) + "…", "x".repeat(MAX_ERROR) + "…"]);
    }

    #[tokio::test]
    async fn frames_that_wait_are_written_in_their_order_whatever_their_size() {
        let (peer, mut outgoing) = Peer::new(Framing::Line);
        let sizes = [1, WRITE_TOGETHER * 2, 3, 4, WRITE_TOGETHER, 5];
        for size in sizes {
            peer.send("x".repeat(size).into_bytes().into_iter().chain(*b"\n").collect());
        }
        let mut written = Vec::new();
        peer.finish(&mut written, &mut outgoing).await;
        let lines: Vec<usize> = written.split(|byte| *byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!(lines, [&sizes[..], &[0]].concat());
        assert_eq!(peer.0.queued.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn an_answer_goes_to_whoever_asked() {
        let (peer, _outgoing) = Peer::new(Framing::Line);
        let asking = tokio::spawn({
            let peer = peer.clone();
            async move { peer.request::<Value>("ask", &json!({})).await }
        });
        tokio::task::yield_now().await;
        peer.answered(Some(Id::Number(99)), Ok(raw(&"for nobody").unwrap()));
        peer.answered(Some(Id::Number(0)), Ok(raw(&7).unwrap()));
        assert_eq!(asking.await.unwrap().unwrap(), json!(7));
        assert!(peer.waiting().is_empty());
    }

    #[tokio::test]
    async fn a_peer_that_stops_reading_is_cut_off() {
        let (peer, _outgoing) = Peer::new(Framing::Line);
        let big = "x".repeat(8 << 20);
        for _ in 0..16 {
            peer.notify("session/update", &big);
        }
        peer.closed().await;
        assert!(matches!(peer.request::<()>("x", &()).await, Err(PeerError::Gone)));
    }
}
