//! One connection: requests both ways, side by side, over any pair of byte streams.
//!
//! What waits to be written is bounded by bytes. A client that stops reading is cut off: it can come back and resume
//! its sessions, while memory that grows behind it cannot be had back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hangar_protocol::rpc::{self, ErrorObject, FrameDecoder, Id, Message};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Bytes that may wait for a client. One answer may be larger, if nothing else waits.
const MAX_QUEUED: usize = 64 << 20;
/// What a waiting frame costs besides its bytes.
const FRAME_OVERHEAD: usize = 64;
const READ_BUFFER: usize = 64 << 10;
/// From this many bytes on, frames that wait are no longer joined into one write.
const WRITE_TOGETHER: usize = 32 << 10;

/// A frame may go to many clients; its bytes are made once.
pub(crate) type Frame = Arc<[u8]>;
type Answer = Result<Box<RawValue>, ErrorObject>;

/// A request of the other side.
pub(crate) struct Request {
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerError {
    #[error("the client is gone")]
    Gone,
    #[error("{}", .0.message)]
    Refused(ErrorObject),
    #[error("the client's answer is not as expected: {0}")]
    Unexpected(serde_json::Error),
}

/// The sending half of a connection.
#[derive(Clone)]
pub(crate) struct Peer(Arc<Shared>);

struct Shared {
    outgoing: mpsc::UnboundedSender<Frame>,
    queued: AtomicUsize,
    next_id: AtomicI64,
    waiting: Mutex<HashMap<i64, oneshot::Sender<Answer>>>,
    closed: CancellationToken,
}

/// What a connection still needs to run.
pub(crate) struct Outgoing(mpsc::UnboundedReceiver<Frame>);

impl Peer {
    pub(crate) fn new() -> (Self, Outgoing) {
        let (outgoing, frames) = mpsc::unbounded_channel();
        let shared = Shared {
            outgoing,
            queued: AtomicUsize::new(0),
            next_id: AtomicI64::new(0),
            waiting: Mutex::new(HashMap::new()),
            closed: CancellationToken::new(),
        };
        (Self(Arc::new(shared)), Outgoing(frames))
    }

    /// Puts a frame behind those that wait.
    pub(crate) fn send(&self, frame: Frame) {
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

    pub(crate) fn respond(&self, id: Id, result: Result<Box<RawValue>, ErrorObject>) {
        self.send(frame(&Message::Response { id: Some(id), result }));
    }

    /// Asks the other side and waits for its answer or its end.
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
        self.send(frame(&Message::Request {
            id: Id::Number(id),
            method: method.to_owned(),
            params: raw(params),
        }));
        let answer = tokio::select! {
            answer = answered => answer.map_err(|_| PeerError::Gone)?,
            () = self.0.closed.cancelled() => return Err(PeerError::Gone),
        };
        let result = answer.map_err(PeerError::Refused)?;
        serde_json::from_str(result.get()).map_err(PeerError::Unexpected)
    }

    pub(crate) fn close(&self) {
        self.0.closed.cancel();
    }

    pub(crate) async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.is_cancelled()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Answer>>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and writes until either side ends. Each request is handed over as it comes; answering is up to the taker.
    pub(crate) async fn run(
        &self,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin,
        outgoing: Outgoing,
        mut take: impl FnMut(Request),
    ) {
        tokio::select! {
            () = self.read(reader, &mut take) => {}
            () = self.write(writer, outgoing) => {}
            () = self.0.closed.cancelled() => {}
        }
        self.close();
        self.waiting().clear();
    }

    async fn read(&self, mut reader: impl AsyncRead + Unpin, take: &mut impl FnMut(Request)) {
        let mut decoder = FrameDecoder::default();
        let mut buffer = vec![0; READ_BUFFER];
        loop {
            match reader.read(&mut buffer).await {
                Ok(0) => return,
                Ok(count) => decoder.feed(&buffer[..count]),
                Err(error) => {
                    tracing::debug!(%error, "reading from a client failed");
                    return;
                }
            }
            loop {
                match decoder.next_frame() {
                    Ok(Some(body)) => self.message(&body, take),
                    Ok(None) => break,
                    Err(error) => {
                        // There is no telling where the next frame begins.
                        tracing::warn!(%error, "a client sent bytes that are no frame; closing its connection");
                        return;
                    }
                }
            }
        }
    }

    fn message(&self, body: &[u8], take: &mut impl FnMut(Request)) {
        match Message::parse(body) {
            Ok(Message::Request { id, method, params }) => take(Request { id, method, params }),
            // Nothing that a client could announce changes anything here.
            Ok(Message::Notification { .. }) => {}
            Ok(Message::Response { id: Some(Id::Number(id)), result }) => {
                if let Some(waiting) = self.waiting().remove(&id) {
                    let _ = waiting.send(result);
                }
            }
            Ok(Message::Response { .. }) => {}
            Err(malformed) => {
                let error = ErrorObject { code: malformed.code, message: malformed.reason, data: None };
                self.send(frame(&Message::Response { id: malformed.id, result: Err(error) }));
            }
        }
    }

    async fn write(&self, mut writer: impl AsyncWrite + Unpin, Outgoing(mut frames): Outgoing) {
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
            if let Err(error) = writer.write_all(bytes).await {
                tracing::debug!(%error, "writing to a client failed");
                return;
            }
            self.0.queued.fetch_sub(cost, Ordering::Relaxed);
            together.shrink_to(WRITE_TOGETHER);
            if frames.is_empty() && writer.flush().await.is_err() {
                return;
            }
        }
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

pub(crate) fn notification(method: &str, params: &impl Serialize) -> Frame {
    frame(&Message::Notification { method: method.to_owned(), params: raw(params) })
}

/// Values of ours always have a form in JSON.
pub(crate) fn raw(value: &impl Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

fn frame(message: &Message) -> Frame {
    rpc::encode(&message.to_bytes()).into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::DuplexStream;

    use super::*;

    /// A server that answers `echo` with its parameters, and the bytes of its client.
    fn echo() -> (Peer, DuplexStream, tokio::task::JoinHandle<()>) {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (peer, outgoing) = Peer::new();
        let server = peer.clone();
        let running = tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(ours);
            let answering = server.clone();
            server
                .run(reader, writer, outgoing, move |request| {
                    let params = request.params.unwrap_or_else(|| raw(&Value::Null).unwrap());
                    answering.respond(request.id, Ok(params));
                })
                .await;
        });
        (peer, theirs, running)
    }

    async fn receive(stream: &mut DuplexStream, decoder: &mut FrameDecoder) -> Value {
        loop {
            if let Some(body) = decoder.next_frame().unwrap() {
                return serde_json::from_slice(&body).unwrap();
            }
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the connection ended");
            decoder.feed(&buffer[..count]);
        }
    }

    async fn write(stream: &mut DuplexStream, body: &str) {
        stream.write_all(&rpc::encode(body.as_bytes())).await.unwrap();
    }

    #[tokio::test]
    async fn requests_are_answered_by_their_own_id_and_garbage_harms_no_other_request() {
        let (_peer, mut client, _running) = echo();
        let mut decoder = FrameDecoder::default();
        write(&mut client, "{not json").await;
        write(&mut client, r#"{"jsonrpc":"2.0","id":"x","method":"echo","params":{"a":1}}"#).await;
        assert_eq!(receive(&mut client, &mut decoder).await["error"]["code"], -32700);
        let answer = receive(&mut client, &mut decoder).await;
        assert_eq!(answer, json!({"jsonrpc":"2.0","id":"x","result":{"a":1}}));
    }

    #[tokio::test]
    async fn our_own_requests_have_whole_numbers_as_ids_and_wait_for_their_answer() {
        let (peer, mut client, _running) = echo();
        let asking = tokio::spawn(async move { peer.request::<Value>("hooks.invoke", &json!({})).await });
        let mut decoder = FrameDecoder::default();
        let question = receive(&mut client, &mut decoder).await;
        assert!(question["id"].as_u64().is_some(), "{question}");
        let answer = json!({"jsonrpc":"2.0","id":question["id"],"result":{"output":7}});
        write(&mut client, &answer.to_string()).await;
        assert_eq!(asking.await.unwrap().unwrap(), json!({"output":7}));
    }

    #[tokio::test]
    async fn a_question_to_a_client_that_leaves_ends() {
        let (peer, client, running) = echo();
        let asking = tokio::spawn(async move { peer.request::<Value>("hooks.invoke", &json!({})).await });
        tokio::task::yield_now().await;
        drop(client);
        assert!(matches!(asking.await.unwrap(), Err(PeerError::Gone)));
        running.await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_stops_reading_is_cut_off() {
        let (peer, client, running) = echo();
        let big: Frame = vec![b'x'; 8 << 20].into();
        for _ in 0..64 {
            peer.send(Arc::clone(&big));
        }
        running.await.unwrap();
        assert!(peer.is_closed());
        assert!(peer.0.queued.load(Ordering::Relaxed) <= 65 * (big.len() + FRAME_OVERHEAD));
        drop(client);
    }

    #[tokio::test]
    async fn bytes_that_are_no_frame_end_the_connection() {
        let (peer, mut client, running) = echo();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        running.await.unwrap();
        assert!(peer.is_closed());
    }
}
