//! One connection: requests both ways, side by side, over any pair of byte streams.

use hangar_peer::{EncodedMessage, FLUSH_TIMEOUT, Framing, Outgoing, Peer, raw};
use hangar_protocol::rpc::{ErrorObject, FrameDecoder, Id, RpcMessage, codes};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::handshake::AdmissionState;

const READ_BUFFER: usize = 64 << 10;

/// Notification by which clients cancel a request.
const CANCEL: &str = "$/cancelRequest";

/// Message that the other side sends unasked.
pub(crate) enum Incoming {
    Request(RpcRequest),
    /// It does not wait for the answer to this request any more.
    Cancelled(Id),
}

/// A request of the other side.
pub(crate) struct RpcRequest {
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
}

pub(crate) fn connect() -> (Peer, Outgoing) {
    Peer::new(Framing::Length)
}

/// A notice that may go to many clients.
pub(crate) fn notification(method: &str, params: &impl Serialize) -> EncodedMessage {
    Framing::Length.frame(&RpcMessage::Notification { method: method.to_owned(), params: raw(params) })
}

/// Reads and writes until either side ends. Each request is handed over as it comes; answering is up to the taker. A
/// client that has said all it wants may still be listening: it gets what it asked for, if that is `settled` soon.
pub(crate) async fn run(
    peer: &Peer,
    gate: &AdmissionState,
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    mut outgoing: Outgoing,
    mut take: impl FnMut(Incoming),
    settled: impl Future<Output = ()>,
) {
    // One and the same to the end: a frame that was begun is finished before the next.
    let mut writing = std::pin::pin!(peer.write(&mut writer, &mut outgoing));
    let heard_all = tokio::select! {
        () = read(peer, gate, reader, &mut take) => true,
        () = &mut writing => false,
        () = peer.closed() => false,
    };
    if heard_all {
        let last_words = async {
            settled.await;
            peer.drained().await;
        };
        tokio::select! {
            // A client that is still not served by then has left.
            _ = tokio::time::timeout(FLUSH_TIMEOUT, last_words) => {}
            () = writing => {}
        }
    }
    peer.close();
}

async fn read(
    peer: &Peer,
    gate: &AdmissionState,
    mut reader: impl AsyncRead + Unpin,
    take: &mut impl FnMut(Incoming),
) {
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
            decoder.limit(gate.max_body());
            match decoder.next_frame() {
                Ok(Some(body)) => {
                    message(peer, &body, take);
                    if !gate.took_frame() {
                        tracing::warn!("a connection was not admitted by its first requests; closing it");
                        return;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    // There is no telling where the next frame begins.
                    tracing::warn!(%error, "a client sent bytes that are no frame; closing its connection");
                    // A client that was not admitted may be a browser, which could interpret an answer.
                    if gate.is_open() {
                        let message = format!("{error}; the connection ends here");
                        peer.refuse(None, ErrorObject { code: codes::PARSE_ERROR, message, data: None });
                    }
                    return;
                }
            }
        }
    }
}

/// The request that is meant, if one is.
fn cancelled_id(params: Option<&RawValue>) -> Option<Id> {
    let params: Value = serde_json::from_str(params?.get()).ok()?;
    Id::read(&params["id"])
}

fn message(peer: &Peer, body: &[u8], take: &mut impl FnMut(Incoming)) {
    match RpcMessage::parse(body) {
        Ok(RpcMessage::Request { id, method, params }) => {
            take(Incoming::Request(RpcRequest { id, method, params }));
        }
        Ok(RpcMessage::Notification { method, params }) if method == CANCEL => {
            cancelled_id(params.as_deref()).into_iter().for_each(|id| take(Incoming::Cancelled(id)));
        }
        // Nothing else that a client could announce changes anything here.
        Ok(RpcMessage::Notification { .. }) => {}
        Ok(RpcMessage::Response { id, result }) => peer.answered(id, result),
        Err(malformed) => {
            let error = ErrorObject { code: malformed.code, message: malformed.reason, data: None };
            peer.refuse(malformed.id, error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hangar_peer::PeerError;
    use hangar_protocol::rpc;
    use serde_json::json;
    use tokio::io::{AsyncWriteExt, DuplexStream};

    use super::*;
    use crate::handshake::{ConnectionToken, ServerAccess};

    /// A server that answers `echo` with its parameters, and the bytes of its client.
    fn echo() -> (Peer, DuplexStream, tokio::task::JoinHandle<()>) {
        let gate = AdmissionState::new(&ServerAccess::Owner);
        gate.open();
        echo_behind(gate)
    }

    fn echo_behind(gate: AdmissionState) -> (Peer, DuplexStream, tokio::task::JoinHandle<()>) {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (peer, outgoing) = connect();
        let server = peer.clone();
        let running = tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(ours);
            let answering = server.clone();
            let echo = move |said: Incoming| {
                let Incoming::Request(request) = said else { return };
                let params = request.params.unwrap_or_else(|| raw(&Value::Null).unwrap());
                answering.respond(request.id, Ok(params));
            };
            run(&server, &gate, reader, writer, outgoing, echo, std::future::ready(())).await;
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
        let big: EncodedMessage = vec![b'x'; 8 << 20].into();
        for _ in 0..64 {
            peer.send(Arc::clone(&big));
        }
        running.await.unwrap();
        assert!(peer.is_closed());
        drop(client);
    }

    #[tokio::test]
    async fn bytes_that_are_no_frame_end_the_connection_with_a_word_about_them() {
        let (peer, mut client, running) = echo();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let error = receive(&mut client, &mut FrameDecoder::default()).await;
        assert_eq!((&error["id"], &error["error"]["code"]), (&Value::Null, &json!(-32700)));
        let message = "a header that is neither Content-Length nor Content-Type; the connection ends here";
        assert_eq!(error["error"]["message"], message);
        running.await.unwrap();
        assert!(peer.is_closed());
    }

    /// Feeds bytes on a connection that was not admitted, and checks the responses until it closes.
    async fn check_stranger(bytes: &[u8], expected: &str) {
        let (_peer, mut client, running) =
            echo_behind(AdmissionState::new(&ServerAccess::Token(ConnectionToken::new("secret"))));
        client.write_all(bytes).await.unwrap();
        let mut told = String::new();
        client.read_to_string(&mut told).await.unwrap();
        assert_eq!(told, expected);
        running.await.unwrap();
    }

    #[tokio::test]
    async fn before_the_token_bytes_that_are_no_frame_end_the_connection_without_a_word() {
        let frame = String::from_utf8(rpc::encode(br#"{"id":1,"method":"echo","params":7}"#)).unwrap();
        let post =
            format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{frame}", frame.len());
        for request in [&post, "GET / HTTP/1.1\r\n\r\n", "OPTIONS * HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM"]
        {
            check_stranger(request.as_bytes(), "").await;
        }
        check_stranger(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "").await;
        check_stranger(b"Content-Length: 65537\r\n\r\n", "").await;
    }

    #[tokio::test]
    async fn before_the_token_only_a_few_requests_are_read() {
        let request = rpc::encode(br#"{"id":1,"method":"echo","params":7}"#);
        let answer = String::from_utf8(rpc::encode(br#"{"jsonrpc":"2.0","id":1,"result":7}"#)).unwrap();
        check_stranger(&request.repeat(100), &answer.repeat(5)).await;
    }

    #[tokio::test]
    async fn a_client_that_has_said_all_is_answered_before_the_connection_ends() {
        let (_peer, mut client, running) = echo();
        for number in 0..100 {
            write(&mut client, &format!(r#"{{"id":{number},"method":"echo","params":{number}}}"#)).await;
        }
        client.shutdown().await.unwrap();
        let mut decoder = FrameDecoder::default();
        for number in 0..100 {
            assert_eq!(receive(&mut client, &mut decoder).await["result"], number);
        }
        running.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_never_settled_keeps_no_connection_open() {
        let (ours, client) = tokio::io::duplex(64);
        let (peer, outgoing) = connect();
        drop(client);
        let (reader, writer) = tokio::io::split(ours);
        run(
            &peer,
            &AdmissionState::new(&ServerAccess::Owner),
            reader,
            writer,
            outgoing,
            |_| {},
            std::future::pending(),
        )
        .await;
        assert!(peer.is_closed());
    }
}
